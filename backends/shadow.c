/*
 * shadow.c - the slow parts of the table of blocks: reserving, and forgetting when the epochs are used up.
 * Layer L3. mew_shadow_leaf_make() runs inside malloc.
 */
#include "config.h"

#include "shadow.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os.h"

#include "hotpath.h"

#define EPOCH_ONE ((uint64_t)1 << (MEW_SHADOW_STACK_BITS + MEW_SHADOW_SIZE_BITS))

struct mew_shadow mew_shadow_table;
static struct mew_shadow_leaf *leaves; /* atomic; the root is far larger than what is used of it */

int mew_shadow_init(unsigned granule_bits)
{
	size_t roots = (size_t)1 << (MEW_SHADOW_ADDRESS_BITS - granule_bits - MEW_SHADOW_LEAF_BITS);

	if (mew_shadow_table.root != NULL)
		return 0;
	mew_shadow_table.root = mew_os_reserve(roots * sizeof *mew_shadow_table.root);
	if (mew_shadow_table.root == NULL)
		return -1;
	mew_shadow_table.granule_bits = granule_bits;
	mew_shadow_table.granule_mask = ((uintptr_t)1 << granule_bits) - 1;
	mew_shadow_table.roots = roots;
	return 0;
}

struct mew_shadow_leaf *mew_shadow_leaf_make(size_t slot)
{
	struct mew_shadow_leaf *none = NULL, *leaf;
	int saved = errno;

	if (slot >= mew_shadow_table.roots)
		return NULL;
	leaf = mew_os_reserve(sizeof *leaf);
	/* a page of the table for every 8 KiB of heap is one more that the processor must find: large ones are few */
	if (leaf != NULL)
		(void)syscall(SYS_madvise, leaf->entry, sizeof leaf->entry, MADV_HUGEPAGE);
	if (leaf != NULL && !__atomic_compare_exchange_n(&mew_shadow_table.root[slot], &none, leaf, 0, __ATOMIC_RELEASE,
							 __ATOMIC_ACQUIRE)) {
		mew_os_unmap(leaf, sizeof *leaf); /* another thread was first */
		leaf = none;
	} else if (leaf != NULL) {
		leaf->next = __atomic_load_n(&leaves, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&leaves, &leaf->next, leaf, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
	}
	errno = saved;
	return leaf;
}

/* Once in 255 windows the numbers begin again: entries of the first round must not come back to life. */
static void forget_all(void)
{
	for (struct mew_shadow_leaf *leaf = __atomic_load_n(&leaves, __ATOMIC_ACQUIRE); leaf != NULL;
	     leaf = leaf->next) {
		if (syscall(SYS_madvise, leaf->entry, sizeof leaf->entry, MADV_DONTNEED) == 0)
			continue;
		for (size_t j = 0; j < MEW_SHADOW_ENTRIES; j++) /* refused, as for locked memory */
			leaf->entry[j] = 0;
	}
}

void mew_shadow_next_epoch(void)
{
	mew_shadow_table.epoch += EPOCH_ONE;
	if (mew_shadow_table.epoch != 0)
		return;
	forget_all();
	mew_shadow_table.epoch = EPOCH_ONE;
}

size_t mew_shadow_bytes(void)
{
	const struct mew_shadow_leaf *leaf = __atomic_load_n(&leaves, __ATOMIC_ACQUIRE);
	size_t bytes = 0;

	for (; leaf != NULL; leaf = leaf->next)
		bytes += mew_os_resident(leaf, sizeof *leaf);
	return bytes;
}
