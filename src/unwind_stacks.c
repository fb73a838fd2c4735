/*
 * unwind_stacks.c - a fixed table of stacks, published word by word.
 * Layer L1. Lock-free: a reader takes a bound that did not change while it read the other.
 */
#include "config.h"

#include "unwind_stacks.h"

#include <stdatomic.h>

#include "hotpath.h"

static struct {
	_Atomic uint32_t taken;
	_Atomic uintptr_t lo, hi; /* lo is written last and cleared first; 0 for none */
} stacks[MEW_STACKS_MAX];
static _Atomic uint32_t used; /* no place from here on was ever taken */

static bool read_place(uint32_t i, uintptr_t *lo, uintptr_t *hi)
{
	*lo = atomic_load_explicit(&stacks[i].lo, memory_order_acquire);
	*hi = atomic_load_explicit(&stacks[i].hi, memory_order_acquire);
	return *lo != 0 && atomic_load_explicit(&stacks[i].lo, memory_order_relaxed) == *lo;
}

static bool overlaps_known(uintptr_t lo, uintptr_t hi)
{
	uint32_t n = atomic_load_explicit(&used, memory_order_acquire);
	uintptr_t other_lo, other_hi;

	for (uint32_t i = 0; i < n; i++)
		if (read_place(i, &other_lo, &other_hi) && lo < other_hi && other_lo < hi)
			return true;
	return false;
}

int mew_stacks_add(uintptr_t lo, uintptr_t hi)
{
	uint32_t free_now, n;

	if (overlaps_known(lo, hi))
		return -2;
	for (uint32_t i = 0; i < MEW_STACKS_MAX; i++) {
		free_now = 0;
		if (!atomic_compare_exchange_strong(&stacks[i].taken, &free_now, 1))
			continue;
		n = atomic_load(&used);
		while (n <= i && !atomic_compare_exchange_weak(&used, &n, i + 1))
			continue;
		atomic_store_explicit(&stacks[i].hi, hi, memory_order_release);
		atomic_store_explicit(&stacks[i].lo, lo, memory_order_release);
		return 0;
	}
	return -1;
}

int mew_stacks_remove(uintptr_t lo)
{
	uint32_t n = atomic_load_explicit(&used, memory_order_acquire);
	uintptr_t expected;

	for (uint32_t i = 0; i < n; i++) {
		expected = lo;
		if (lo == 0 || !atomic_compare_exchange_strong(&stacks[i].lo, &expected, 0))
			continue;
		atomic_store_explicit(&stacks[i].hi, 0, memory_order_relaxed);
		atomic_store_explicit(&stacks[i].taken, 0, memory_order_release);
		return 0;
	}
	return -1;
}

bool mew_stacks_find(uintptr_t sp, uintptr_t *lo, uintptr_t *hi)
{
	uint32_t n = atomic_load_explicit(&used, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++)
		if (read_place(i, lo, hi) && sp >= *lo && sp < *hi)
			return true;
	return false;
}
