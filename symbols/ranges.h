/*
 * ranges.h - address ranges that may nest and overlap, flattened once, then searched by bisection.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_RANGES_H
#define MEW_SYMBOLS_RANGES_H

#include "base.h"

#define MEW_NO_ITEM UINT32_MAX

struct mew_range {
	uint64_t lo, hi; /* hi is one past the end */
	uint32_t depth;  /* of two equal ranges the deeper one is the inner one */
	uint32_t item;   /* the caller's number */
};

struct mew_range_cut { /* from lo to the next cut's lo: item, or MEW_NO_ITEM for a hole */
	uint64_t lo;
	uint32_t item;
};

/* Zero it before use. */
struct mew_ranges {
	struct mew_range *all; /* until mew_ranges_flatten() */
	size_t n, capacity;
	struct mew_range_cut *cuts;
	size_t ncuts;
};

/* Add [lo, hi); an empty range is ignored. Returns false without memory. */
bool mew_ranges_add(struct mew_ranges *r, uint64_t lo, uint64_t hi, uint32_t depth, uint32_t item);

/*
 * Turn what was added into disjoint pieces: at each address the range that begins last (the innermost) wins, and of
 * those the shortest, the deepest, the one added first. Nothing can be added after. Returns false without memory.
 */
bool mew_ranges_flatten(struct mew_ranges *r);

/* The item at an address; MEW_NO_ITEM for none. O(log n). */
uint32_t mew_ranges_find(const struct mew_ranges *r, uint64_t address);

void mew_ranges_fini(struct mew_ranges *r);

/* Number of the first of n ascending addresses that is not below `address`; n where there is none. */
size_t mew_first_from(const uint64_t *addresses, size_t n, uint64_t address);

/* Grow an array to hold one more of `bytes` each; true on success. *items may move. */
bool mew_grow(void *items, size_t *capacity, size_t used, size_t bytes);

#endif
