/*
 * shadow.h - which blocks were born in the window, and how big: a table indexed by address.
 * Layer L3. Two levels: a root of pointers and leaves of 2^22 granules, both reserved and touched on use alone. Whoever
 * holds a block owns its entry, so there is no lock and no hash. Look-ups: any thread, malloc.
 *
 * An entry is epoch << 56 | stack << 36 | size: one cache line holds all there is to know of a block. Windows differ in
 * their epoch, so that opening one forgets all older blocks at no cost. A size that does not fit is in a second lane,
 * which nothing else touches; epoch 0 is of no window.
 */
#ifndef MEW_SHADOW_H
#define MEW_SHADOW_H

#include "base.h"

#ifdef __aarch64__
#define MEW_SHADOW_ADDRESS_BITS 48
#else
#define MEW_SHADOW_ADDRESS_BITS 47
#endif
#define MEW_SHADOW_LEAF_BITS 22
#define MEW_SHADOW_EPOCH_BITS 8
#define MEW_SHADOW_STACK_BITS 20
#define MEW_SHADOW_SIZE_BITS 36
#define MEW_SHADOW_ENTRIES ((size_t)1 << MEW_SHADOW_LEAF_BITS)
#define MEW_SHADOW_WIDE (((uint64_t)1 << MEW_SHADOW_SIZE_BITS) - 1) /* in place of a size: look into the lane */

#define MEW_SHADOW_INLINE static inline __attribute__((always_inline))

struct mew_shadow_leaf {
	uint64_t entry[MEW_SHADOW_ENTRIES];
	uint64_t wide[MEW_SHADOW_ENTRIES];
	struct mew_shadow_leaf *next; /* of all; they are never unmapped */
};

struct mew_shadow {
	struct mew_shadow_leaf **root;
	size_t roots;
	unsigned granule_bits; /* blocks begin at multiples of 1 << granule_bits */
	uintptr_t granule_mask;
	uint64_t epoch;        /* already shifted; 0 before the first window */
};
extern struct mew_shadow mew_shadow_table __attribute__((visibility("hidden")));

struct mew_shadow_place {
	struct mew_shadow_leaf *leaf; /* NULL: no leaf there */
	size_t index;
};

/*
 * Reserve the root. The table lives as long as the process: a late thread may still look into it.
 *
 * granule_bits  3, or 4 where the allocator never returns less than 16-byte alignment; fixed by the first call
 * Returns       0, or -1 without address space
 * Context       outside windows
 */
int mew_shadow_init(unsigned granule_bits);

/* Begin a window: no block is in the table. Context: outside windows. */
void mew_shadow_next_epoch(void);

/* Bytes of memory that the table takes. Context: outside windows. */
size_t mew_shadow_bytes(void);

/*
 * The leaf of a root slot, mapped now if need be; NULL when the kernel refuses. Keeps errno. Context: any thread,
 * malloc.
 */
struct mew_shadow_leaf *mew_shadow_leaf_make(size_t slot);

/* Where a block's entry is. Context: any thread, malloc. */
MEW_SHADOW_INLINE struct mew_shadow_place mew_shadow_find(const void *block)
{
	size_t granule = (uintptr_t)block >> mew_shadow_table.granule_bits, slot = granule >> MEW_SHADOW_LEAF_BITS;
	struct mew_shadow_place place = { NULL, granule & (MEW_SHADOW_ENTRIES - 1) };

	if (MEW_LIKELY(slot < mew_shadow_table.roots))
		place.leaf = __atomic_load_n(&mew_shadow_table.root[slot], __ATOMIC_ACQUIRE);
	return place;
}

/*
 * Enter a block.
 *
 * stack    below 1 << MEW_SHADOW_STACK_BITS
 * Returns  false when it cannot be entered: beyond the table, between granules, or no memory for its leaf
 * Context  any thread, malloc; the caller owns the block
 */
MEW_SHADOW_INLINE bool mew_shadow_put(const void *block, size_t size, uint32_t stack)
{
	uint64_t entry = mew_shadow_table.epoch | (uint64_t)stack << MEW_SHADOW_SIZE_BITS;
	struct mew_shadow_place place = mew_shadow_find(block);

	if (MEW_UNLIKELY(((uintptr_t)block & mew_shadow_table.granule_mask) != 0))
		return false;
	if (MEW_UNLIKELY(place.leaf == NULL)) {
		place.leaf = mew_shadow_leaf_make((uintptr_t)block >>
						  (mew_shadow_table.granule_bits + MEW_SHADOW_LEAF_BITS));
		if (place.leaf == NULL)
			return false;
	}
	if (MEW_UNLIKELY(size >= MEW_SHADOW_WIDE))
		place.leaf->wide[place.index] = size;
	entry |= MEW_UNLIKELY(size >= MEW_SHADOW_WIDE) ? MEW_SHADOW_WIDE : size;
	__atomic_store_n(&place.leaf->entry[place.index], entry, __ATOMIC_RELAXED);
	return true;
}

/*
 * Take a block out if it is in.
 *
 * size, stack  returned when it was
 * Context      any thread, malloc; the caller owns the block
 */
MEW_SHADOW_INLINE bool mew_shadow_take(const void *block, size_t *size, uint32_t *stack)
{
	struct mew_shadow_place place = mew_shadow_find(block);
	uint64_t entry;

	if (MEW_UNLIKELY(place.leaf == NULL))
		return false;
	entry = __atomic_load_n(&place.leaf->entry[place.index], __ATOMIC_RELAXED);
	if (((entry ^ mew_shadow_table.epoch) >> (MEW_SHADOW_STACK_BITS + MEW_SHADOW_SIZE_BITS)) != 0)
		return false;
	__atomic_store_n(&place.leaf->entry[place.index], 0, __ATOMIC_RELAXED);
	*stack = (uint32_t)(entry >> MEW_SHADOW_SIZE_BITS) & (((uint32_t)1 << MEW_SHADOW_STACK_BITS) - 1);
	*size = (size_t)(entry & MEW_SHADOW_WIDE);
	if (MEW_UNLIKELY(*size == MEW_SHADOW_WIDE))
		*size = (size_t)place.leaf->wide[place.index];
	return true;
}

#endif
