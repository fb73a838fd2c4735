/*
 * t_versus.c - two cases of one program inside one process: what is found, what an order is, what cannot be compared. The
 * program compared is this one, started again as a worker.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>

#include <mew.h>

#include "pair.h"
#include "versus.h"
#include "worker.h"

static uint64_t work(uint64_t n)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		mew_keep(x);
	}
	return x;
}

#define CASE(id, count) \
	MEW_BENCHMARK(id) \
	{ \
		MEW_LOOP(st) { \
			uint64_t x = work(count); \
\
			mew_keep(x); \
		} \
	}

CASE(once, 2000)
CASE(fourfold, 8000) /* far enough from once that each gets iterations of its own number */

#define BATCH(id, n) \
	MEW_BENCHMARK(id) \
	{ \
		MEW_LOOP_BATCH(st, n) \
		{ \
			uint64_t x = work(2000 * (n)); \
\
			mew_keep(x); \
		} \
	}

BATCH(sevens, 7)
BATCH(fives, 5)
BATCH(hundreds, 100) /* one turn is longer than a sample would be */

MEW_BENCHMARK(threaded, .threads = 2)
{
	MEW_LOOP(st)
		mew_clobber();
}

MEW_BENCHMARK(fails)
{
	mew_fail(st, "no input");
}

/* As if its first two blocks lost the processor, behind a set-up that takes longer than their iterations. */
MEW_BENCHMARK(late)
{
	static unsigned blocks;
	bool is_late = blocks++ < 2;

	if (is_late)
		(void)usleep(60000);
	MEW_LOOP(st) {
		uint64_t x = work(2000);

		if (is_late)
			(void)usleep(5000);
		is_late = false;
		mew_keep(x);
	}
}

MEW_BENCHMARK(leaves)
{
	MEW_LOOP(st)
		break;
}

MEW_BENCHMARK(dies)
{
	unsigned n = 0;

	MEW_LOOP(st)
		if (++n == 100)
			(void)raise(SIGKILL);
}

/* A second thread would change what malloc does. */
MEW_BENCHMARK(alone)
{
	if (!__libc_single_threaded)
		mew_fail(st, "there is a second thread");
	MEW_LOOP(st) {
		uint64_t x = work(2000);

		mew_keep(x);
	}
}

MEW_BENCHMARK(deep)
{
	volatile char room[256 * 1024];

	memset((char *)(uintptr_t)room, 1, sizeof room);
	MEW_LOOP(st) {
		uint64_t x = work(2000) + (uint64_t)room[17];

		mew_keep(x);
	}
}

static int compare(const char *base, const char *head, double max_time, uint64_t seed, struct mew_versus *out, struct mew_error *err)
{
	const struct mew_host_options host = { .capture = true };
	const struct mew_versus_options o = {
		.program = "/proc/self/exe", .keys = { base, head }, .host = &host, .max_time = max_time, .seed = seed,
	};

	return mew_versus(&o, out, err);
}

static void fourfold_work_is_slower(void **state)
{
	struct mew_versus v;
	struct mew_error err;

	(void)state;
	if (compare("once", "fourfold", 5, 1, &v, &err) != MEW_OK)
		fail_msg("%s", err.text);
	assert_int_equal(v.verdict.outcome, MEW_OUTCOME_REGRESSED);
	assert_true(v.verdict.ratio > 2.5 && v.verdict.ratio < 6.5);
	assert_true(v.verdict.n >= 8);
	assert_int_equal(2 * (v.verdict.n + v.disturbed), v.npairs);
	assert_true(v.loops[MEW_BASE] > v.loops[MEW_HEAD]);
	mew_versus_free(&v);
	assert_int_equal(compare("fourfold", "once", 5, 1, &v, &err), MEW_OK);
	assert_int_equal(v.verdict.outcome, MEW_OUTCOME_IMPROVED);
	mew_versus_free(&v);
}

static void a_late_start_does_not_make_samples_of_one_iteration(void **state)
{
	struct mew_versus v;
	struct mew_error err;

	(void)state;
	assert_int_equal(compare("late", "once", 0.1, 1, &v, &err), MEW_OK);
	assert_true(v.loops[MEW_BASE] > 1);
	assert_int_equal(v.loops[MEW_BASE], v.loops[MEW_HEAD]);
	mew_versus_free(&v);
}

static void batches_are_compared_by_whole_turns(void **state)
{
	static const struct {
		const char *base, *head;
		uint64_t of[MEW_SIDES];
	} rows[] = { { "once", "sevens", { 1, 7 } }, { "sevens", "once", { 7, 1 } }, { "sevens", "fives", { 7, 5 } },
		     { "hundreds", "sevens", { 100, 7 } } };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(rows); i++) {
		struct mew_versus v;
		struct mew_error err;

		if (compare(rows[i].base, rows[i].head, 0.1, 1, &v, &err) != MEW_OK)
			fail_msg("%s, %s: %s", rows[i].base, rows[i].head, err.text);
		for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
			assert_true(v.loops[side] > 0 && v.loops[side] % rows[i].of[side] == 0);
		assert_true(v.npairs >= 4);
		/* an iteration is the same work in all, whatever their turns: far from the sevenfold of a mistaken one */
		assert_true(v.verdict.n == 0 || (v.ns[MEW_HEAD] > v.ns[MEW_BASE] / 3 && v.ns[MEW_HEAD] < v.ns[MEW_BASE] * 3));
		mew_versus_free(&v);
	}
}

/* Known extra work of a pair: as many whole turns as are that part of a sample, which may have to grow for one. */
static void extra_work_is_whole_turns(void **state)
{
	static const struct {
		uint64_t loops, batch, grown, extra;
	} rows[] = { { 1000, 0, 1000, 20 }, { 700, 7, 700, 14 }, { 70, 7, 350, 7 }, { 20, 1, 50, 1 } };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(rows); i++) {
		struct mew_pair_case c = { .key = "once", .loops = rows[i].loops, .batch = rows[i].batch };
		struct mew_error err;

		assert_int_equal(mew_pair_add_work(&c, 200000, 0.02, &err), MEW_OK);
		assert_int_equal(c.loops, rows[i].grown);
		assert_int_equal(c.extra, rows[i].extra);
	}
}

static void a_seed_is_an_order(void **state)
{
	char orders[6][9];
	bool differ = false;

	(void)state;
	for (unsigned i = 0; i < MEW_COUNTOF(orders); i++) {
		struct mew_versus v;
		struct mew_error err;

		assert_int_equal(compare("once", "fourfold", 5, i < 2 ? 42 : i, &v, &err), MEW_OK);
		assert_true(v.npairs >= 8);
		for (unsigned k = 0; k < 8; k++)
			orders[i][k] = v.pairs[k].head_first ? 'h' : 'b';
		orders[i][8] = '\0';
		/* of two neighbours in a block one begins with either side */
		for (unsigned k = 0; k < 8; k += 2)
			assert_true(orders[i][k] != orders[i][k + 1]);
		mew_versus_free(&v);
	}
	assert_string_equal(orders[0], orders[1]);
	for (unsigned i = 2; i < MEW_COUNTOF(orders); i++)
		differ = differ || strcmp(orders[i], orders[0]) != 0;
	assert_true(differ);
}

static void without_time_one_block_is_taken(void **state)
{
	struct mew_versus v;
	struct mew_error err;

	(void)state;
	assert_int_equal(compare("once", "fourfold", 1e-9, 1, &v, &err), MEW_OK);
	assert_int_equal(v.blocks, 1);
	assert_int_equal(v.npairs, 4);
	assert_int_not_equal(v.verdict.outcome, MEW_OUTCOME_REGRESSED); /* four are no evidence, whatever they say */
	for (size_t i = 0; i < v.npairs; i++)
		assert_true(v.pairs[i].ns[MEW_BASE] > 0 && v.pairs[i].ns[MEW_HEAD] > 0);
	mew_versus_free(&v);
}

static void the_process_has_one_thread_and_room(void **state)
{
	struct mew_versus v;
	struct mew_error err;

	(void)state;
	if (compare("alone", "deep", 0.01, 1, &v, &err) != MEW_OK)
		fail_msg("%s", err.text);
	mew_versus_free(&v);
}

static void what_cannot_be_compared_is_named(void **state)
{
	const struct {
		const char *base, *head;
		int status;
		const char *says;
	} rows[] = {
		{ "once", "none", MEW_E_INVALID, "no case \"none\"" },
		{ "", "once", MEW_E_INVALID, "no case \"\"" },
		{ "once", "once", MEW_E_INVALID, "not compared with itself" },
		{ "once", "threaded", MEW_E_INVALID, "2 threads" },
		{ "once", "fails", MEW_E_BODY, "no input" },
		{ "fails", "once", MEW_E_BODY, "no input" },
		{ "once", "leaves", MEW_E_LOOP, "" },
		{ "leaves", "once", MEW_E_LOOP, "" },
		{ "once", "dies", MEW_E_BODY, "signal 9" },
	};

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(rows); i++) {
		struct mew_versus v;
		struct mew_error err;
		int status = compare(rows[i].base, rows[i].head, 0.01, 1, &v, &err);

		if (status != rows[i].status || strstr(err.text, rows[i].says) == NULL)
			fail_msg("row %zu: status %d, %s", i, status, status != MEW_OK ? err.text : "");
		mew_versus_free(&v);
	}
}

static void a_program_that_is_none_is_named(void **state)
{
	const struct mew_host_options host = { .capture = true };
	const struct mew_versus_options o = { .program = "/bin/true", .keys = { "a", "b" }, .host = &host, .max_time = 1 };
	struct mew_versus v;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_versus(&o, &v, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "/bin/true"));
	mew_versus_free(&v);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fourfold_work_is_slower),
		cmocka_unit_test(a_late_start_does_not_make_samples_of_one_iteration),
		cmocka_unit_test(batches_are_compared_by_whole_turns),
		cmocka_unit_test(extra_work_is_whole_turns),
		cmocka_unit_test(a_seed_is_an_order),
		cmocka_unit_test(without_time_one_block_is_taken),
		cmocka_unit_test(the_process_has_one_thread_and_room),
		cmocka_unit_test(what_cannot_be_compared_is_named),
		cmocka_unit_test(a_program_that_is_none_is_named),
	};

	if (argc == 2 && strncmp(argv[1], MEW_WORKER_FLAG, strlen(MEW_WORKER_FLAG)) == 0)
		return mew_worker_main(atoi(argv[1] + strlen(MEW_WORKER_FLAG)), strstr(argv[1], MEW_WORKER_KNOWN) != NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
