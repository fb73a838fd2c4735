/*
 * fx_span_cmocka.c - a user's cmocka program with budgets, some of which are exceeded: t_budget.c reads what it prints.
 * Test fixture, linked as `pkg-config --libs mew` links.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <mew.h>

static void fail_test(const struct mew_span_failure *failure, void *data)
{
	(void)data;
	fail_msg("%s", failure->text);
}

__attribute__((noinline)) static void greedy_reader(unsigned blocks)
{
	for (unsigned i = 0; i < blocks; i++) {
		char *block = malloc(100 + i);

		mew_keep(block);
		free(block);
	}
}

static void test_within(void **state)
{
	(void)state;
	mew_assert_allocs_le(3)
	{
		greedy_reader(3);
	}
}

static void test_beyond(void **state)
{
	(void)state;
	mew_assert_allocs_le(4) /* the outer one is left by the longjmp of the inner one */
	{
		mew_assert_allocs_le(1)
		{
			greedy_reader(7);
		}
	}
}

static void test_cmocka_fails_inside(void **state)
{
	(void)state;
	mew_assert_no_alloc
	{
		assert_int_equal(1, 2);
	}
}

static void test_after(void **state)
{
	(void)state;
	mew_assert_allocs_le(2)
	{
		greedy_reader(2);
	}
	mew_assert_no_alloc
	{
		greedy_reader(0);
	}
}

MEW_BENCHMARK(after_all)
{
	MEW_LOOP(st)
		mew_assert_allocs_le(1)
		{
			greedy_reader(1);
		}
}

/* Neither the timing of a body with budgets nor a memory pass is kept from running by what was left open. */
static void test_profile_after(void **state)
{
	struct mew_results *r = mew_run(mew_entries(), .iterations = 10);
	struct mew_memory_profiles *m = mew_memory_profile(mew_entries(), 10);

	(void)state;
	assert_non_null(r);
	assert_int_equal(mew_results_at(r, 0)->status, MEW_OK);
	assert_non_null(m);
	assert_int_equal(mew_memory_at(m, 0)->status, MEW_OK);
	assert_int_equal(mew_memory_at(m, 0)->total_allocations, 10);
	mew_memory_free(m);
	mew_results_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_within),
		cmocka_unit_test(test_beyond),
		cmocka_unit_test(test_cmocka_fails_inside),
		cmocka_unit_test(test_after),
		cmocka_unit_test(test_profile_after),
	};

	mew_span_on_failure(fail_test, NULL);
	return cmocka_run_group_tests_name("fixture", tests, NULL, NULL);
}
