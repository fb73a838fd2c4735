/*
 * unwind_memo.h - recognise a stack that was walked before by the words that steered that walk.
 * Layer L1. The calling thread, malloc: no locks, no heap, no system calls. Each thread has a memo of its own; what it
 * learnt is shared by all.
 *
 * A walk is a function of the words it reads: the return addresses, and the saved frame pointers that a canonical frame
 * address came from. Where those lie, seen from the stack pointer, is a layout. So a stack is read at the places of the
 * last layout that was seen at this stack pointer, all words at once instead of one frame after the other. Whoever
 * finds there a stack that a walk once found with this very layout knows, by induction over the frames, that a walk
 * would now find the same. Anything else needs a walk.
 */
#ifndef MEW_UNWIND_MEMO_H
#define MEW_UNWIND_MEMO_H

#include "base.h"

struct mew_stackset;
struct mew_unwind_regs;
struct mew_unwind_trail;

#define MEW_MEMO_ENTRIES 512u

struct mew_unwind_memo { /* zeroed; 12 KiB: lives in mapped memory */
	struct mew_memo_entry {
		uintptr_t sp;
		const uintptr_t *layout; /* see unwind_memo.c */
		uint32_t id;
	} entry[MEW_MEMO_ENTRIES];
};

/*
 * Read a stack by the layout that was last learnt here.
 *
 * regs     of the place where the walk would begin
 * caller   the return address that is the first of the result
 * pcs      room for the frames of a walk; filled from `caller` on
 * layout   returned: the layout that they must have been learnt with
 * Returns  the number of frames; 0: nothing is known
 */
size_t mew_memo_recall(const struct mew_unwind_memo *memo, const struct mew_unwind_regs *regs, uintptr_t caller,
		       uintptr_t *pcs, uint32_t *layout);

/*
 * Learn from a walk of n frames, of which those before `first` are mew's own.
 *
 * layouts  where layouts are interned
 * Returns  the layout of the frames from `first` on; 0 when they have none that can be relied on
 */
uint32_t mew_memo_learn(struct mew_unwind_memo *memo, struct mew_stackset *layouts, const struct mew_unwind_regs *regs,
			const uintptr_t *pcs, size_t first, size_t n, const struct mew_unwind_trail *trail);

#endif
