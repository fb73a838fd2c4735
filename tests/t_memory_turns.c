/*
 * t_memory_turns.c - what the memory pass says of single iterations: the sequence of their allocations, the leak, the
 * growth of resident memory. Through the public interface, in this process.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "mew.h"

#define ITERATIONS 40

static void *kept[8192]; /* of the warm-up calls too */
static size_t nkept;

static void keep_block(size_t size)
{
	void *p = malloc(size);

	mew_keep(p);
	kept[nkept++] = p;
}

static void free_kept(void *arg)
{
	(void)arg;
	while (nkept > 0)
		free(kept[--nkept]);
}

static void leaks_24(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		void *p = malloc(100);

		mew_keep(p);
		keep_block(24);
		free(p);
	}
}

static void fills_a_cache(struct mew_state *st, void *arg)
{
	unsigned turn = 0;

	(void)arg;
	MEW_LOOP(st) {
		if (turn++ == 0)
			keep_block(5000);
	}
}

static void alternates(struct mew_state *st, void *arg)
{
	unsigned turn = 0;

	(void)arg;
	MEW_LOOP(st) {
		for (unsigned i = 0; i < 1 + turn % 3; i++) {
			void *p = malloc(10);

			mew_keep(p);
			free(p);
		}
		turn++;
	}
}

static void batched(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP_BATCH(st, 4) {
		for (unsigned i = 0; i < 4; i++) {
			void *p = malloc(10);

			mew_keep(p);
			free(p);
		}
	}
}

static void two_a_turn(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		void *p = malloc(10), *q = malloc(20);

		mew_keep(p);
		mew_keep(q);
		free(p);
		free(q);
	}
}

static void touches_48_mib(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		size_t bytes = (size_t)48 << 20;
		void *p = malloc(bytes);

		if (p != NULL)
			memset(p, 1, bytes);
		mew_keep(p);
		free(p);
	}
}

static struct mew_memory_profiles *profiles;

static const struct mew_memory_case *profile(mew_run_fn *body, unsigned threads, uint64_t iterations)
{
	const struct mew_entry entries[] = { { .name = "it", .run = body, .threads = threads, .teardown = free_kept },
					     { 0 } };
	const struct mew_memory_case *row;

	mew_memory_free(profiles);
	profiles = mew_memory_profile(entries, iterations);
	assert_non_null(profiles);
	row = mew_memory_find(profiles, "it");
	assert_non_null(row);
	if (row->status != MEW_OK)
		print_message("%s\n", row->reason);
	assert_int_equal(row->status, MEW_OK);
	return row;
}

static bool has(const struct mew_memory_case *row, enum mew_memory_figure figure)
{
	return mew_memory_why(row, figure) == NULL;
}

static void test_a_leak_has_its_slope(void **state)
{
	const struct mew_memory_case *row = profile(leaks_24, 1, ITERATIONS);

	(void)state;
	assert_true(row->leak_bytes_per_iteration == 24.0);
	assert_true(row->leak_bytes_per_iteration_low == 24.0);
	assert_true(row->leak_bytes_per_iteration_high == 24.0);
	assert_int_equal(row->net_bytes, 24 * ITERATIONS);
	assert_int_equal(row->allocations_first, 2);
	assert_int_equal(row->steady, 1);
}

static void test_a_cache_that_fills_once_is_no_leak(void **state)
{
	const struct mew_memory_case *row = profile(fills_a_cache, 1, ITERATIONS);

	(void)state;
	assert_true(row->leak_bytes_per_iteration == 0.0);
	assert_int_equal(row->net_bytes, 5000);
	assert_int_equal(row->allocations_first, 1);
	assert_int_equal(row->allocations_min, 0);
	assert_int_equal(row->allocations_max, 1);
	assert_int_equal(row->steady, 1);
}

static void test_an_uneven_sequence(void **state)
{
	const struct mew_memory_case *row = profile(alternates, 1, ITERATIONS);

	(void)state;
	assert_int_equal(row->allocations_first, 1);
	assert_int_equal(row->allocations_min, 1);
	assert_int_equal(row->allocations_max, 3);
	assert_int_equal(row->steady, 0);
	assert_int_equal(row->temporary_allocations, row->total_allocations);
}

static void test_a_batch_hides_the_sequence(void **state)
{
	const struct mew_memory_case *row = profile(batched, 1, ITERATIONS);

	(void)state;
	assert_false(has(row, MEW_FIG_ALLOCATIONS_FIRST));
	assert_false(has(row, MEW_FIG_STEADY));
	assert_non_null(strstr(mew_memory_why(row, MEW_FIG_ALLOCATIONS_MAX), "MEW_LOOP_BATCH"));
	assert_true(row->allocations_per_iteration == 1.0);
	assert_true(has(row, MEW_FIG_LEAK_BYTES_PER_ITERATION));
}

static void test_too_few_iterations_say_so(void **state)
{
	const struct mew_memory_case *row = profile(two_a_turn, 1, 1);

	(void)state;
	assert_int_equal(row->allocations_first, 2);
	assert_false(has(row, MEW_FIG_STEADY));
	assert_false(has(row, MEW_FIG_LEAK_BYTES_PER_ITERATION));
	row = profile(leaks_24, 1, 4);
	assert_true(row->leak_bytes_per_iteration == 24.0);
	assert_false(has(row, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW));
}

/* Each turn has what its own thread allocated, whatever the others do meanwhile. */
static void test_turns_of_several_threads(void **state)
{
	const struct mew_memory_case *row = profile(two_a_turn, 4, ITERATIONS);

	(void)state;
	assert_int_equal(row->iterations, 4 * ITERATIONS);
	assert_int_equal(row->allocations_first, 2);
	assert_int_equal(row->allocations_min, 2);
	assert_int_equal(row->allocations_max, 2);
	assert_int_equal(row->steady, 1);
}

/* More turns than points are kept. */
static void test_the_slope_of_many_turns(void **state)
{
	const struct mew_memory_case *row = profile(leaks_24, 1, 3000);

	(void)state;
	assert_true(row->leak_bytes_per_iteration == 24.0);
	assert_int_equal(row->net_bytes, 24 * 3000);
}

static void test_resident_memory_grows(void **state)
{
	const struct mew_memory_case *row = profile(touches_48_mib, 1, 3);

	(void)state;
	if (!has(row, MEW_FIG_RSS_PEAK_DELTA_BYTES)) {
		print_message("%s\n", mew_memory_why(row, MEW_FIG_RSS_PEAK_DELTA_BYTES));
		skip();
	}
	assert_in_range(row->rss_peak_delta_bytes, 40 << 20, 60 << 20);
	row = profile(two_a_turn, 1, ITERATIONS);
	assert_in_range(row->rss_peak_delta_bytes, 0, 4 << 20);
}

static void test_the_mode_is_said(void **state)
{
	const struct mew_memory_case *row = profile(two_a_turn, 1, ITERATIONS);

	(void)state;
	assert_string_equal(row->mode, "count");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_leak_has_its_slope),
		cmocka_unit_test(test_a_cache_that_fills_once_is_no_leak),
		cmocka_unit_test(test_an_uneven_sequence),
		cmocka_unit_test(test_a_batch_hides_the_sequence),
		cmocka_unit_test(test_too_few_iterations_say_so),
		cmocka_unit_test(test_turns_of_several_threads),
		cmocka_unit_test(test_the_slope_of_many_turns),
		cmocka_unit_test(test_resident_memory_grows),
		cmocka_unit_test(test_the_mode_is_said),
	};
	int failures = cmocka_run_group_tests_name("memory_turns", tests, NULL, NULL);

	mew_memory_free(profiles);
	return failures;
}
