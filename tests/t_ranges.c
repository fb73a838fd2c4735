/*
 * t_ranges.c - the flattened index against a linear search that applies the rule "innermost wins" address by address.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../symbols/ranges.h"

#define MOST 40
#define SPACE 64

/* Does a win over b where both cover an address? */
static bool is_inner(const struct mew_range *a, const struct mew_range *b)
{
	if (a->lo != b->lo)
		return a->lo > b->lo;
	if (a->hi != b->hi)
		return a->hi < b->hi;
	return a->depth != b->depth ? a->depth > b->depth : a->item < b->item;
}

static uint32_t linear(const struct mew_range *all, size_t n, uint64_t address)
{
	const struct mew_range *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (address >= all[i].lo && address < all[i].hi && (best == NULL || is_inner(&all[i], best)))
			best = &all[i];
	return best == NULL ? MEW_NO_ITEM : best->item;
}

static void agrees_with_a_linear_search(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 3000; round++) {
		struct mew_ranges r = { .n = 0 };
		struct mew_range all[MOST];
		size_t n = (size_t)rand() % MOST;

		for (size_t i = 0; i < n; i++) {
			uint64_t lo = (uint64_t)rand() % SPACE, bytes = (uint64_t)rand() % (SPACE / 2);

			all[i] = (struct mew_range){ lo, lo + bytes, (uint32_t)rand() % 3, (uint32_t)i };
			assert_true(mew_ranges_add(&r, all[i].lo, all[i].hi, all[i].depth, all[i].item));
		}
		assert_true(mew_ranges_flatten(&r));
		for (uint64_t address = 0; address < 2 * SPACE; address++)
			assert_int_equal(mew_ranges_find(&r, address), linear(all, n, address));
		mew_ranges_fini(&r);
	}
}

static void nothing_is_found_in_nothing(void **state)
{
	struct mew_ranges r = { .n = 0 };

	(void)state;
	assert_true(mew_ranges_add(&r, 5, 5, 0, 1));
	assert_true(mew_ranges_flatten(&r));
	assert_int_equal(mew_ranges_find(&r, 5), MEW_NO_ITEM);
	mew_ranges_fini(&r);
}

static void the_top_of_the_address_space_works(void **state)
{
	struct mew_ranges r = { .n = 0 };

	(void)state;
	assert_true(mew_ranges_add(&r, UINT64_MAX - 8, UINT64_MAX, 0, 3));
	assert_true(mew_ranges_add(&r, 0, 1, 0, 4));
	assert_true(mew_ranges_flatten(&r));
	assert_int_equal(mew_ranges_find(&r, UINT64_MAX - 1), 3);
	assert_int_equal(mew_ranges_find(&r, UINT64_MAX), MEW_NO_ITEM);
	assert_int_equal(mew_ranges_find(&r, 0), 4);
	mew_ranges_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_linear_search),
		cmocka_unit_test(nothing_is_found_in_nothing),
		cmocka_unit_test(the_top_of_the_address_space_works),
	};

	return cmocka_run_group_tests_name("ranges", tests, NULL, NULL);
}
