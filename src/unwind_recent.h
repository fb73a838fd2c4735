/*
 * unwind_recent.h - the stack that a thread was last found on: a walk that comes upon it takes its outer part over.
 * Layer L1. The calling thread, signal: no locks, no heap, no system calls. Each thread has one of its own.
 *
 * A walk is a function of the registers that it has at a frame and of the words that it reads from there on. So a frame
 * that is known, with the same address, stack pointer and such of the other registers as are still needed, leads to the
 * same callers if the words are the same: the return addresses, and what the caller's registers were read from. All of
 * them are read again, which takes a load each instead of a look-up in the tables; one that is different ends the
 * agreement, and the walk goes on as ever.
 *
 * Return addresses lie right below the CFA: so it is for x86-64 alone. Frames are kept outermost first, where they stay
 * while the inner ones come and go. Steps that read more than words of the stack (out of a signal, by a frame pointer
 * where there is no rule) are not kept, nor is anything inside them.
 */
#ifndef MEW_UNWIND_RECENT_H
#define MEW_UNWIND_RECENT_H

#include "unwind.h"

#define MEW_RECENT_FRAMES 128u /* of a deeper stack the outer ones */
#define MEW_RECENT_WORDS 128u
#define MEW_RECENT_STEPS 32u /* a power of two; frames kept by one walk at most */

enum { MEW_RECENT_BP = 1, MEW_RECENT_BX = 2 }; /* registers that the steps from a frame on need */

struct mew_recent_step { /* one frame of the walk under way; the rule is MEW_RULE_NONE for an exact place */
	uintptr_t sp, bp, bx;
	uint64_t rule;
};

struct mew_unwind_recent { /* zero `n` and `busy`; the rest needs nothing. 8 KiB */
	uint32_t n;    /* frames known */
	uint32_t busy; /* a walk is under way: one that interrupts it does without */
	uint64_t generation; /* of the snapshot */
	uintptr_t entry_lo, entry_hi, stack_hi;
	struct mew_trail_word end; /* the return address that ended the walk; at is 0 where a rule did */
	struct mew_recent_step step[MEW_RECENT_STEPS]; /* by number from the leaf, the last ones */
	struct mew_recent_frame {
		uintptr_t ip, sp; /* the return address, read from sp - 8 */
		uintptr_t bp, bx;
		uint32_t nwords; /* of `word`, that steps from this frame on read beside return addresses */
		uint32_t needs;
	} frame[MEW_RECENT_FRAMES];
	struct mew_trail_word word[MEW_RECENT_WORDS];
};

/*
 * Begin a walk.
 *
 * Returns  the number of frames that it may come upon
 */
static inline size_t mew_recent_begin(struct mew_unwind_recent *r, uint64_t generation, uintptr_t entry_lo,
				      uintptr_t entry_hi, uintptr_t stack_hi)
{
	if (MEW_LIKELY(r->generation == generation && r->entry_lo == entry_lo && r->entry_hi == entry_hi &&
		       r->stack_hi == stack_hi))
		return r->n;
	r->generation = generation;
	r->entry_lo = entry_lo;
	r->entry_hi = entry_hi;
	r->stack_hi = stack_hi;
	return r->n = 0;
}

/*
 * Are the callers of a known frame still the same?
 *
 * frame    its number
 * pcs      returned: as many addresses; also spoilt when the answer is no
 * known    returned then: the frames that may still be met
 */
bool mew_recent_holds(const struct mew_unwind_recent *r, size_t frame, uintptr_t *pcs, size_t *known);

/*
 * Is this return address, with these registers, a frame that is known, and are its callers?
 *
 * known    frames that may still be met; changed
 * lost     MEW_RECENT_BP, MEW_RECENT_BX: registers whose value is not known
 * pcs      returned: the callers' addresses, `frame` of them; room for `room`
 * frame    returned: its number
 */
static inline bool mew_recent_meets(const struct mew_unwind_recent *r, size_t *known, uintptr_t ip,
				    const struct mew_recent_step *at, unsigned lost, uintptr_t *pcs, size_t room,
				    size_t *frame)
{
	size_t i = *known;
	unsigned needs;

	while (i > 0 && r->frame[i - 1].sp < at->sp)
		i--;
	*known = i;
	if (i == 0 || r->frame[i - 1].sp != at->sp || r->frame[i - 1].ip != ip)
		return false;
	*frame = --i;
	needs = r->frame[i].needs;
	if ((needs & lost) != 0 || ((needs & MEW_RECENT_BP) != 0 && r->frame[i].bp != at->bp) ||
	    ((needs & MEW_RECENT_BX) != 0 && r->frame[i].bx != at->bx))
		return false;
	return i <= room && mew_recent_holds(r, i, pcs, known);
}

/*
 * Keep what a walk found that came to its end.
 *
 * met      how many of the known frames are part of it, the outer ones; 0: it came upon none
 * pcs      its n addresses without those that were taken over, the last being the one met
 * end      what ended it; where it met one, that stays
 */
void mew_recent_keep(struct mew_unwind_recent *r, size_t met, const uintptr_t *pcs, size_t n,
		     struct mew_trail_word end);

#endif
