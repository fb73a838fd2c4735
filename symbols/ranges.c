/*
 * ranges.c - one sweep over the sorted ranges with a stack of the open ones cuts the address space into pieces.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "ranges.h"

#include <stdlib.h>
#include <string.h>

bool mew_grow(void *items, size_t *capacity, size_t used, size_t bytes)
{
	size_t wanted = *capacity < 16 ? 16 : *capacity * 2, total;
	void *old, *grown;

	if (used < *capacity)
		return true;
	if (wanted <= *capacity || !mew_mul_size(wanted, bytes, &total))
		return false;
	/* copied as bytes: the caller's pointer has another type than void * */
	memcpy(&old, items, sizeof old);
	grown = realloc(old, total);
	if (grown == NULL)
		return false;
	memcpy(items, &grown, sizeof grown);
	*capacity = wanted;
	return true; /* cppcheck-suppress memleak ; it went into *items */
}

bool mew_ranges_add(struct mew_ranges *r, uint64_t lo, uint64_t hi, uint32_t depth, uint32_t item)
{
	if (lo >= hi)
		return true;
	if (!mew_grow(&r->all, &r->capacity, r->n, sizeof *r->all))
		return false;
	r->all[r->n++] = (struct mew_range){ .lo = lo, .hi = hi, .depth = depth, .item = item };
	return true;
}

/* Outer before inner; of equal ones the first added comes last and so wins the sweep. */
static int by_nesting(const void *a, const void *b)
{
	const struct mew_range *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->hi != y->hi)
		return x->hi > y->hi ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return (x->item < y->item) - (x->item > y->item);
}

static void cut(struct mew_ranges *r, uint64_t lo, uint32_t item)
{
	if (r->ncuts > 0 && r->cuts[r->ncuts - 1].lo == lo)
		r->cuts[r->ncuts - 1].item = item;
	else
		r->cuts[r->ncuts++] = (struct mew_range_cut){ .lo = lo, .item = item };
}

/* Close the open ranges that end at or before `upto`. Returns how many stay open. */
static size_t close_until(struct mew_ranges *r, const struct mew_range **open, size_t nopen, uint64_t upto)
{
	while (nopen > 0 && open[nopen - 1]->hi <= upto) {
		uint64_t end = open[--nopen]->hi;

		while (nopen > 0 && open[nopen - 1]->hi <= end)
			nopen--;
		cut(r, end, nopen > 0 ? open[nopen - 1]->item : MEW_NO_ITEM);
	}
	return nopen;
}

static void sweep(struct mew_ranges *r, const struct mew_range **open)
{
	size_t nopen = 0;

	for (size_t i = 0; i < r->n; i++) {
		nopen = close_until(r, open, nopen, r->all[i].lo);
		cut(r, r->all[i].lo, r->all[i].item);
		open[nopen++] = &r->all[i];
	}
	(void)close_until(r, open, nopen, UINT64_MAX);
}

bool mew_ranges_flatten(struct mew_ranges *r)
{
	const struct mew_range **open;
	size_t most;

	if (r->n == 0)
		return true;
	if (!mew_mul_size(r->n, 2, &most))
		return false;
	open = calloc(r->n, sizeof *open);
	r->cuts = calloc(most, sizeof *r->cuts);
	if (open != NULL && r->cuts != NULL) {
		qsort(r->all, r->n, sizeof *r->all, by_nesting);
		sweep(r, open);
	}
	free(open);
	free(r->all);
	r->all = NULL;
	r->n = r->capacity = 0;
	return open != NULL && r->cuts != NULL;
}

uint32_t mew_ranges_find(const struct mew_ranges *r, uint64_t address)
{
	size_t low = 0, high = r->ncuts;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->cuts[middle].lo <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low == 0 ? MEW_NO_ITEM : r->cuts[low - 1].item;
}

size_t mew_first_from(const uint64_t *addresses, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (addresses[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void mew_ranges_fini(struct mew_ranges *r)
{
	free(r->all);
	free(r->cuts);
	*r = (struct mew_ranges){ .n = 0 };
}
