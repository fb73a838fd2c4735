/*
 * fx_span_bench.c - a benchmark program with budgets in its bodies: t_budget.c runs it.
 * Test fixture, linked as `pkg-config --libs mew` links.
 */
#include <mew.h>

#include <stdlib.h>

static void take_block(void)
{
	void *block = malloc(8);

	mew_keep(block);
	free(block);
}

MEW_BENCHMARK(within, .threads = 2)
{
	MEW_LOOP(st)
		mew_assert_allocs_le(1)
			take_block();
}

MEW_BENCHMARK(beyond)
{
	MEW_LOOP(st)
		mew_assert_no_alloc
			take_block();
}

MEW_MAIN()
