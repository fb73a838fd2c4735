/*
 * t_state.c - the state matrix: every way through a loop, on 1, 2 and 4 threads, gives a defined row and leaves the next
 * case unharmed.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mew.h"

#define ITERATIONS 40u

static uint64_t turns_of_all;

static void work(void)
{
	__atomic_fetch_add(&turns_of_all, 1, __ATOMIC_RELAXED);
}

/* --- bodies ----------------------------------------------------------------------------------------------------- */

static void body_normal(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		work();
}

static void body_batch(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP_BATCH(st, 7)
		work();
}

static void body_batch_zero(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP_BATCH(st, 0)
		work();
}

static void body_break(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		work();
		break;
	}
}

/* Even leaving in the very last iteration is early: the loop did not end by itself. */
static void body_break_last(struct mew_state *st, void *arg)
{
	uint64_t turn = 0;

	(void)arg;
	MEW_LOOP(st) {
		if (++turn == ITERATIONS)
			break;
	}
}

static void body_return(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		work();
		return;
	}
}

static void body_goto(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		goto out;
	}
out:
	work();
}

static void body_longjmp(struct mew_state *st, void *arg)
{
	jmp_buf there;

	(void)arg;
	if (setjmp(there) != 0)
		return;
	MEW_LOOP(st)
		longjmp(there, 1);
}

static void body_no_loop(struct mew_state *st, void *arg)
{
	(void)st;
	(void)arg;
	work();
}

static void body_two_loops(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		work();
	MEW_LOOP(st)
		work();
}

static void body_nested_pauses(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		mew_pause(st);
		MEW_PAUSED(st) {
			mew_pause(st);
			mew_resume(st);
		}
		mew_resume(st);
		work();
	}
}

static void body_ends_paused(struct mew_state *st, void *arg)
{
	uint64_t turn = 0;

	(void)arg;
	MEW_LOOP(st) {
		work();
		if (++turn == ITERATIONS)
			mew_pause(st);
	}
}

static void body_resume_only(struct mew_state *st, void *arg)
{
	(void)arg;
	mew_resume(st);
	MEW_LOOP(st)
		mew_resume(st);
}

static void body_skip_paused(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		mew_pause(st);
		mew_skip(st, "not here");
		break;
	}
}

static void body_skip_before(struct mew_state *st, void *arg)
{
	(void)arg;
	mew_skip(st, "not here");
	MEW_LOOP(st)
		work();
}

static void body_skip_goes_on(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		mew_skip(st, "not here");
}

static void body_fail(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		mew_fail(st, "wrong answer");
}

static void body_break_in_pause(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		MEW_PAUSED(st) {
			return;
		}
	}
}

/* One thread of several leaves early: the others must not wait for it for ever. */
static void body_one_breaks(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st) {
		work();
		if (mew_thread_index(st) == mew_threads(st) - 1)
			break;
	}
}

static void body_one_never_loops(struct mew_state *st, void *arg)
{
	(void)arg;
	if (mew_thread_index(st) == 0)
		return;
	MEW_LOOP(st)
		work();
}

static const struct {
	const char *name;
	mew_run_fn *run;
	int status;
	uint64_t iterations; /* per thread, when MEW_OK */
	const char *reason;  /* part of it */
} matrix[] = {
	{ "normal", body_normal, MEW_OK, ITERATIONS, NULL },
	{ "batch", body_batch, MEW_OK, 42, NULL }, /* 40 in turns of 7: two more ran, and count */
	{ "batch zero", body_batch_zero, MEW_E_INVALID, 0, "at least 1" },
	{ "break", body_break, MEW_E_LOOP, 0, "early" },
	{ "break last", body_break_last, MEW_E_LOOP, 0, "early" },
	{ "return", body_return, MEW_E_LOOP, 0, "early" },
	{ "goto", body_goto, MEW_E_LOOP, 0, "early" },
	{ "longjmp", body_longjmp, MEW_E_LOOP, 0, "early" },
	{ "no loop", body_no_loop, MEW_E_LOOP, 0, "never entered" },
	{ "two loops", body_two_loops, MEW_E_LOOP, 0, "second loop" },
	{ "nested pauses", body_nested_pauses, MEW_OK, ITERATIONS, NULL },
	{ "ends paused", body_ends_paused, MEW_OK, ITERATIONS, NULL },
	{ "resume only", body_resume_only, MEW_OK, ITERATIONS, NULL },
	{ "skip in a pause", body_skip_paused, MEW_E_UNSUPPORTED, 0, "skipped: not here" },
	{ "skip before", body_skip_before, MEW_E_UNSUPPORTED, 0, "skipped: not here" },
	{ "skip goes on", body_skip_goes_on, MEW_E_UNSUPPORTED, 0, "skipped: not here" },
	{ "fail", body_fail, MEW_E_BODY, 0, "wrong answer" },
	{ "return out of a pause", body_break_in_pause, MEW_E_LOOP, 0, "early" },
	{ "one breaks", body_one_breaks, MEW_E_LOOP, 0, "early" },
	{ "one never loops", body_one_never_loops, MEW_E_LOOP, 0, "never entered" },
};

/* The case of the matrix, then a normal one that must not notice. */
static void check_pair(size_t i, unsigned threads)
{
	const struct mew_entry entries[] = {
		{ .name = "subject", .run = matrix[i].run, .threads = threads, .iterations = ITERATIONS },
		{ .name = "after", .run = body_normal, .threads = threads, .iterations = ITERATIONS },
		{ 0 },
	};
	struct mew_results *r = mew_run(entries, .min_warmup_time = 1e-9);
	const struct mew_result *row;

	if (r == NULL)
		fail_msg("%s: %s", matrix[i].name, mew_last_error()->text);
	assert_int_equal(mew_results_count(r), 2);
	row = mew_results_find(r, "subject");
	if (row->status != matrix[i].status)
		fail_msg("%s on %u threads: status %d (%s)", matrix[i].name, threads, row->status, row->reason);
	if (matrix[i].status == MEW_OK) {
		assert_int_equal(row->iterations, matrix[i].iterations * threads);
		assert_true(row->present >> MEW_FIG_MEDIAN_NS & 1);
	} else {
		assert_int_equal(row->present, 0);
		assert_non_null(strstr(row->reason, matrix[i].reason));
		assert_non_null(mew_result_why(row, MEW_FIG_MEDIAN_NS));
	}
	row = mew_results_find(r, "after");
	assert_int_equal(row->status, MEW_OK);
	assert_int_equal(row->iterations, ITERATIONS * threads);
	mew_results_free(r);
}

static void check_matrix(unsigned threads)
{
	for (size_t i = 0; i < sizeof matrix / sizeof matrix[0]; i++)
		check_pair(i, threads);
}

static void test_one_thread(void **state)
{
	(void)state;
	check_matrix(1);
}

static void test_two_threads(void **state)
{
	(void)state;
	check_matrix(2);
}

static void test_four_threads(void **state)
{
	(void)state;
	check_matrix(4);
}

/* --- figures of the loop ---------------------------------------------------------------------------------------- */

static void body_facts(struct mew_state *st, void *arg)
{
	(void)arg;
	assert_int_equal(mew_iterations(st), 0);
	MEW_LOOP(st)
		work();
	mew_set_bytes(st, 1000);
	mew_set_items(st, 10);
	mew_set_label(st, "with a label");
	mew_set_counter(st, "plain", 5, MEW_COUNTER_PLAIN);
	mew_set_counter(st, "each", (double)mew_iterations(st) * 3, MEW_COUNTER_PER_ITERATION);
	mew_set_counter(st, "inverse", 4, MEW_COUNTER_INVERT);
	assert_true(mew_iterations(st) >= 1);
}

static void test_what_a_body_tells(void **state)
{
	const struct mew_entry entries[] = { { .name = "facts", .run = body_facts, .iterations = ITERATIONS }, { 0 } };
	struct mew_results *r = mew_run(entries, .min_warmup_time = 1e-9);
	const struct mew_result *row = mew_results_at(r, 0);

	(void)state;
	assert_non_null(r);
	assert_string_equal(row->label, "with a label");
	assert_true(row->bytes_per_second > 0);
	/* both rates speak of the same iterations, so their ratio is exact */
	assert_true(row->bytes_per_second / row->items_per_second > 99.999 &&
		    row->bytes_per_second / row->items_per_second < 100.001);
	mew_results_free(r);
}

static void body_manual(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		mew_set_iteration_time(st, 0.25);
}

static void test_manual_time(void **state)
{
	const struct mew_entry entries[] = { { .name = "manual", .run = body_manual, .iterations = 100 }, { 0 } };
	struct mew_results *r = mew_run(entries, .min_warmup_time = 1e-9);

	(void)state;
	assert_true(mew_results_at(r, 0)->median_ns > 0.2499e9 && mew_results_at(r, 0)->median_ns < 0.2501e9);
	mew_results_free(r);
}

static void body_paused_sleep(struct mew_state *st, void *arg)
{
	const struct timespec nap = { 0, 2000000 };

	(void)arg;
	MEW_LOOP(st) {
		work();
		MEW_PAUSED(st)
			(void)nanosleep(&nap, NULL);
	}
}

/* 2 ms asleep in every iteration, all of it paused: a tenth of that would already be wrong. */
static void test_pauses_are_outside(void **state)
{
	const struct mew_entry entries[] = { { .name = "paused", .run = body_paused_sleep, .iterations = 20 }, { 0 } };
	struct mew_results *r = mew_run(entries, .min_warmup_time = 1e-9);
	const struct mew_result *row = mew_results_at(r, 0);

	(void)state;
	assert_true(row->median_ns < 200000);
	assert_false(row->present >> MEW_FIG_CPU_NS & 1);
	assert_non_null(strstr(mew_result_why(row, MEW_FIG_CPU_NS), "pauses"));
	mew_results_free(r);
}

#define NAPS_FAR_TOO_MANY 2000u

/* 2 ms in every iteration, next to nothing of it measured; without a bound it gives up, in place of going on for hours. */
static void nap(struct mew_state *st, unsigned *naps)
{
	const struct timespec time = { 0, 2000000 };

	(void)nanosleep(&time, NULL);
	if (++*naps > NAPS_FAR_TOO_MANY)
		mew_fail(st, "it goes on and on");
}

static void body_mostly_paused(struct mew_state *st, void *arg)
{
	MEW_LOOP(st) {
		work();
		MEW_PAUSED(st)
			nap(st, arg);
	}
}

static void body_own_time_zero(struct mew_state *st, void *arg)
{
	MEW_LOOP(st) {
		nap(st, arg);
		mew_set_iteration_time(st, 0);
	}
}

static void body_own_time_zero_of_bytes(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		mew_set_iteration_time(st, 0);
	mew_set_bytes(st, 10);
}

static void body_own_time_tiny(struct mew_state *st, void *arg)
{
	MEW_LOOP(st) {
		nap(st, arg);
		mew_set_iteration_time(st, 1e-9);
	}
}

/* 50 ms are 25 such iterations at most; the calibration has some, and a sample is not cut short. */
static void test_max_time_is_of_the_clock(void **state)
{
	static mew_run_fn *const bodies[] = { body_mostly_paused, body_own_time_zero, body_own_time_tiny };

	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		unsigned naps = 0;
		const struct mew_entry entries[] = { { .name = "naps", .run = bodies[i], .arg = &naps }, { 0 } };
		struct mew_results *r = mew_run(entries, .max_time = 0.05);
		const struct mew_result *row = mew_results_at(r, 0);

		if (row->status != MEW_OK)
			fail_msg("body %zu: %s", i, row->reason);
		assert_true(naps < 100);
		assert_null(row->reason);
		mew_results_free(r);
	}
}

static uint64_t warmed; /* iterations of the first call of the body */
static unsigned ntimed;

static void body_timed(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		work();
	if (ntimed++ == 0)
		warmed = mew_iterations(st);
}

/* 65,536 single calls, as many as are kept, would be a small part of it. */
static void test_a_warm_up_of_single_calls_is_long(void **state)
{
	const struct mew_entry entries[] = { { .name = "timed", .run = body_timed, .iterations = 10 }, { 0 } };
	struct mew_results *r;

	(void)state;
	for (int latency = 0; latency < 2; latency++) {
		ntimed = 0;
		r = mew_run(entries, .min_warmup_time = 0.4, .latency = latency);
		assert_non_null(r);
		assert_int_equal(mew_results_at(r, 0)->status, MEW_OK);
		assert_int_equal(mew_results_at(r, 0)->iterations, 10);
		assert_int_equal(ntimed, 2);
		assert_true(warmed > 65536);
		mew_results_free(r);
	}
}

static void test_a_rate_needs_time(void **state)
{
	const struct mew_entry entries[] = { { .name = "no time", .run = body_own_time_zero_of_bytes, .iterations = 10 }, { 0 } };
	struct mew_results *r = mew_run(entries, .min_warmup_time = 1e-9);
	const struct mew_result *row = mew_results_at(r, 0);

	(void)state;
	assert_string_equal(mew_result_why(row, MEW_FIG_BYTES_PER_SECOND), "an iteration took no time");
	assert_non_null(strstr(mew_result_why(row, MEW_FIG_ITEMS_PER_SECOND), "mew_set_items"));
	mew_results_free(r);
}

static void test_a_min_time_out_of_reach_is_said(void **state)
{
	unsigned naps = 0;
	const struct mew_entry entries[] = { { .name = "naps", .run = body_mostly_paused, .arg = &naps, .min_time = 0.03 }, { 0 } };
	struct mew_results *r = mew_run(entries, .max_time = 0.05);
	const struct mew_result *row = mew_results_at(r, 0);

	(void)state;
	assert_int_equal(row->status, MEW_OK);
	assert_true(row->present >> MEW_FIG_MEDIAN_NS & 1);
	assert_non_null(row->reason);
	assert_non_null(strstr(row->reason, "--min-time was not reached in 0.05 s"));
	mew_results_free(r);
}

static const char *expect_forty(struct mew_state *st, void *arg)
{
	*(int *)arg += 1;
	return mew_iterations(st) >= 40 ? NULL : "fewer than 40 iterations ran";
}

static void test_expectation(void **state)
{
	int calls = 0;
	const struct mew_entry entries[] = {
		{ .name = "met", .run = body_normal, .arg = &calls, .iterations = 40, .expect = expect_forty },
		{ .name = "unmet", .run = body_normal, .arg = &calls, .iterations = 39, .expect = expect_forty },
		{ 0 },
	};
	struct mew_results *r = mew_run(entries, .min_warmup_time = 1e-9);

	(void)state;
	/* warm-up blocks run fewer: what counts is that the first failing block fails its case alone */
	assert_int_equal(mew_results_find(r, "unmet")->status, MEW_E_BODY);
	assert_non_null(strstr(mew_results_find(r, "unmet")->reason, "fewer than 40"));
	assert_true(calls > 0);
	mew_results_free(r);
}

static jmp_buf outside;

/* A jump over the library takes what the session held along; the leak checker need not be told of it. */
MEW_API const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:test_jump_over_the_library";
}

static void body_jumps_out(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		longjmp(outside, 1);
}

/* A failed assertion of a test framework is such a jump: the next session must not find the process busy. */
static void test_jump_over_the_library(void **state)
{
	static const struct mew_entry jumping[] = { { .name = "jumps", .run = body_jumps_out }, { 0 } };
	static const struct mew_entry fine[] = { { .name = "fine", .run = body_normal, .iterations = ITERATIONS }, { 0 } };
	struct mew_results *r;

	(void)state;
	if (setjmp(outside) == 0) {
		(void)mew_run(jumping);
		fail_msg("the body did not jump");
	}
	r = mew_run(fine, .min_warmup_time = 1e-9);
	assert_non_null(r);
	assert_int_equal(mew_results_at(r, 0)->status, MEW_OK);
	mew_results_free(r);
}

static void body_nested_session(struct mew_state *st, void *arg)
{
	static const struct mew_entry inner[] = { { .name = "inner", .run = body_normal }, { 0 } };

	MEW_LOOP(st)
		*(struct mew_results **)arg = mew_run(inner);
}

static void test_a_second_session_is_busy(void **state)
{
	struct mew_results *inner = NULL, *r;
	const struct mew_entry entries[] = { { .name = "outer", .run = body_nested_session, .arg = &inner, .iterations = 1 }, { 0 } };

	(void)state;
	r = mew_run(entries, .min_warmup_time = 1e-9);
	assert_null(inner);
	assert_non_null(r);
	mew_results_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread),
		cmocka_unit_test(test_two_threads),
		cmocka_unit_test(test_four_threads),
		cmocka_unit_test(test_what_a_body_tells),
		cmocka_unit_test(test_manual_time),
		cmocka_unit_test(test_pauses_are_outside),
		cmocka_unit_test(test_max_time_is_of_the_clock),
		cmocka_unit_test(test_a_warm_up_of_single_calls_is_long),
		cmocka_unit_test(test_a_rate_needs_time),
		cmocka_unit_test(test_a_min_time_out_of_reach_is_said),
		cmocka_unit_test(test_expectation),
		cmocka_unit_test(test_jump_over_the_library),
		cmocka_unit_test(test_a_second_session_is_busy),
	};

	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
