/*
 * t_stackset.c - interning: ids, equality, the limits and what is counted beyond them; many threads at once.
 * Test program. Also run under the thread sanitizer.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "base.h"
#include "stackset.h"

static void ids_count_up_and_equal_stacks_share_one(void **unused)
{
	static const uintptr_t a[] = { 1, 2, 3 }, b[] = { 1, 2 }, c[] = { 2, 3 }, d[] = { 3, 2, 1 };
	struct mew_stackset *s = mew_stackset_new(100, 1000);

	(void)unused;
	assert_non_null(s);
	assert_int_equal(mew_stackset_count(s), 0);
	assert_int_equal(mew_stackset_intern(s, a, 3), 1);
	assert_int_equal(mew_stackset_intern(s, b, 2), 2); /* a prefix is another stack */
	assert_int_equal(mew_stackset_intern(s, c, 2), 3);
	assert_int_equal(mew_stackset_intern(s, d, 3), 4);
	assert_int_equal(mew_stackset_intern(s, a, 3), 1);
	assert_int_equal(mew_stackset_intern(s, d, 3), 4);
	assert_int_equal(mew_stackset_count(s), 4);
	assert_int_equal(mew_stackset_lost(s), 0);
	mew_stackset_free(s);
}

static void frames_come_back_as_they_went_in(void **unused)
{
	struct mew_stackset *s = mew_stackset_new(4, 3000);
	uintptr_t deep[2000];
	const uintptr_t one = 42;
	size_t n;

	(void)unused;
	assert_non_null(s);
	for (size_t i = 0; i < MEW_COUNTOF(deep); i++)
		deep[i] = 0x7f0000000000u + i * 7;
	assert_int_equal(mew_stackset_intern(s, deep, MEW_COUNTOF(deep)), 1);
	assert_int_equal(mew_stackset_intern(s, &one, 1), 2);
	assert_memory_equal(mew_stackset_frames(s, 1, &n), deep, sizeof deep);
	assert_int_equal(n, MEW_COUNTOF(deep));
	assert_int_equal(*mew_stackset_frames(s, 2, &n), 42);
	assert_int_equal(n, 1);
	assert_null(mew_stackset_frames(s, 0, &n));
	assert_int_equal(n, 0);
	assert_null(mew_stackset_frames(s, 3, &n));
	mew_stackset_free(s);
}

static void beyond_the_limit_of_stacks_new_ones_are_lost(void **unused)
{
	struct mew_stackset *s = mew_stackset_new(8, 1000);

	(void)unused;
	assert_non_null(s);
	for (uintptr_t i = 1; i <= 20; i++)
		assert_int_equal(mew_stackset_intern(s, &i, 1), i <= 8 ? i : 0);
	assert_int_equal(mew_stackset_lost(s), 12);
	assert_int_equal(mew_stackset_count(s), 8);
	for (uintptr_t i = 1; i <= 8; i++) /* those that are in are still found */
		assert_int_equal(mew_stackset_intern(s, &i, 1), i);
	assert_int_equal(mew_stackset_lost(s), 12);
	mew_stackset_free(s);
}

static void beyond_the_limit_of_frames_too(void **unused)
{
	static const uintptr_t pcs[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct mew_stackset *s = mew_stackset_new(100, 10);

	(void)unused;
	assert_non_null(s);
	assert_int_equal(mew_stackset_intern(s, pcs, 7), 1);
	assert_int_equal(mew_stackset_intern(s, pcs, 4), 0); /* 3 are left */
	assert_int_equal(mew_stackset_intern(s, pcs, 3), 2);
	assert_int_equal(mew_stackset_intern(s, pcs + 1, 1), 0);
	assert_int_equal(mew_stackset_intern(s, pcs, 7), 1);
	assert_int_equal(mew_stackset_intern(s, pcs, 0), 0);
	assert_int_equal(mew_stackset_lost(s), 3);
	mew_stackset_free(s);
}

static void refuses_sizes_that_ids_cannot_name(void **unused)
{
	(void)unused;
	assert_null(mew_stackset_new(0, 10));
	assert_null(mew_stackset_new((size_t)1 << 33, 10));
	assert_null(mew_stackset_new(10, (size_t)1 << 33));
	mew_stackset_free(NULL);
}

static void says_how_much_it_maps(void **unused)
{
	struct mew_stackset *s = mew_stackset_new(1000, 10000);

	(void)unused;
	assert_non_null(s);
	assert_in_range(mew_stackset_bytes(s), 10000 * sizeof(uintptr_t), 10000 * sizeof(uintptr_t) + 100000);
	mew_stackset_free(s);
}

/* One frame more in the set's hash, as in stackset.c. */
static uint64_t mix(uint64_t h, uintptr_t pc)
{
	h = (h ^ pc) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

/* Stacks made to have one hash; only a look at length and frames tells them apart. */
static void stacks_of_one_hash_stay_apart(void **unused)
{
	const uint64_t seed = 0x9e3779b97f4a7c15u, other = mix(2 * seed, 5);
	const uintptr_t a[] = { 1, mix(2 * seed, 1) ^ seed ^ 1 }; /* the hash of its first frame alone */
	const uintptr_t b[] = { 5, other ^ seed ^ 1 };
	struct mew_stackset *s = mew_stackset_new(10, 100);
	size_t n;

	(void)unused;
	assert_non_null(s);
	assert_int_equal(mew_stackset_intern(s, a, 2), 1);
	assert_int_equal(mew_stackset_intern(s, b, 2), 2);
	assert_int_equal(mew_stackset_intern(s, a, 1), 3);
	assert_int_equal(mew_stackset_intern(s, b, 2), 2);
	assert_int_equal(*mew_stackset_frames(s, 3, &n), 1);
	assert_int_equal(n, 1);
	mew_stackset_free(s);
}

enum { THREADS = 4, STACKS = 3000, DEPTH = 12 };

static struct mew_stackset *shared;
static uint32_t ids[THREADS][STACKS];

static void fill(uintptr_t pcs[DEPTH], size_t number)
{
	for (size_t i = 0; i < DEPTH; i++)
		pcs[i] = i < DEPTH / 2 ? number * 31 + i : i; /* stacks of one program share their roots */
}

static void *intern_all(void *arg)
{
	size_t thread = (size_t)(uintptr_t)arg, n;
	uintptr_t pcs[DEPTH];

	for (size_t i = 0; i < STACKS; i++) {
		size_t number = thread % 2 == 0 ? i : STACKS - 1 - i; /* two ways round, to meet in the middle too */
		uint32_t id;
		const uintptr_t *frames;

		fill(pcs, number);
		id = mew_stackset_intern(shared, pcs, DEPTH);
		ids[thread][number] = id;
		frames = mew_stackset_frames(shared, id, &n);
		if (n != DEPTH || memcmp(frames, pcs, sizeof pcs) != 0)
			return arg;
	}
	return NULL;
}

static void threads_agree_on_every_id(void **unused)
{
	pthread_t threads[THREADS];

	(void)unused;
	shared = mew_stackset_new(THREADS * STACKS, THREADS * STACKS * DEPTH);
	assert_non_null(shared);
	for (uintptr_t i = 1; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, intern_all, (void *)i), 0);
	assert_null(intern_all(NULL));
	for (size_t i = 1; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	for (size_t i = 0; i < STACKS; i++) {
		assert_in_range(ids[0][i], 1, mew_stackset_count(shared));
		for (size_t t = 1; t < THREADS; t++)
			assert_int_equal(ids[t][i], ids[0][i]);
	}
	assert_int_equal(mew_stackset_lost(shared), 0);
	mew_stackset_free(shared);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_count_up_and_equal_stacks_share_one),
		cmocka_unit_test(frames_come_back_as_they_went_in),
		cmocka_unit_test(beyond_the_limit_of_stacks_new_ones_are_lost),
		cmocka_unit_test(beyond_the_limit_of_frames_too),
		cmocka_unit_test(refuses_sizes_that_ids_cannot_name),
		cmocka_unit_test(says_how_much_it_maps),
		cmocka_unit_test(stacks_of_one_hash_stay_apart),
		cmocka_unit_test(threads_agree_on_every_id),
	};

	return cmocka_run_group_tests_name("stackset", tests, NULL, NULL);
}
