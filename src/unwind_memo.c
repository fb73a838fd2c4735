/*
 * unwind_memo.c - layouts of stacks: written down after a walk, read by at the next event in the same place.
 * Layer L1. The calling thread, malloc.
 *
 * A layout is a list of words, interned like a stack so that equal ones are one:
 *
 *	head      frames | exact << 16 | relative << 32 | registers << 48
 *	generation of the module snapshot
 *	places    of the frames, in bytes from the stack pointer
 *	exact     pairs of place and word: return addresses of mew's own frames, and the one that ended the walk
 *	relative  pairs of place and word minus stack pointer: frame pointers
 *	registers pairs of number and value minus stack pointer: those that the walk began with and went by
 */
#include "config.h"

#include "unwind_memo.h"

#include "modules.h"
#include "stackset.h"
#include "unwind.h"

#include "hotpath.h"

#define OWN_MAX 8u
#define FRAMES_MAX 256u
#define WORDS_MAX (2u + FRAMES_MAX + 2u * (OWN_MAX + 1u) + 2u * MEW_TRAIL_FRAMES)
#define COUNT_BITS 16u
#define COUNT_MASK (((uintptr_t)1 << COUNT_BITS) - 1)

/* It reads frames of other functions, also the gaps that a sanitizer guards. */
#define READS_STACKS __attribute__((no_sanitize("address", "thread")))

static inline size_t entry_of(uintptr_t sp, uintptr_t caller)
{
	uint64_t key = ((uint64_t)sp >> 4 ^ (uint64_t)caller << 20) * 0x9e3779b97f4a7c15u;

	return key >> 55; /* 9 bits */
}
_Static_assert(MEW_MEMO_ENTRIES == 1u << 9, "entry_of() takes as many bits as the table has");

/* Inside this thread's stack: the layout was learnt at this very stack pointer. */
READS_STACKS static inline uintptr_t word_at(uintptr_t sp, uintptr_t place)
{
	return *(const volatile uintptr_t *)(sp + place);
}

size_t mew_memo_recall(const struct mew_unwind_memo *memo, const struct mew_unwind_regs *regs, uintptr_t caller,
		       uintptr_t *pcs, uint32_t *layout)
{
	const struct mew_memo_entry *e = &memo->entry[entry_of(regs->sp, caller)];
	const struct mew_modules *modules = mew_modules_current();
	const uintptr_t *places, *exact, *relative;
	size_t n, nexact, nrelative, nregisters;
	uintptr_t differences = 0;

	if (e->sp != regs->sp || modules == NULL || e->layout[1] != modules->generation)
		return 0;
	n = e->layout[0] & COUNT_MASK;
	nexact = e->layout[0] >> COUNT_BITS & COUNT_MASK;
	nrelative = e->layout[0] >> 2 * COUNT_BITS & COUNT_MASK;
	nregisters = e->layout[0] >> 3 * COUNT_BITS;
	places = e->layout + 2;
	exact = places + n;
	relative = exact + 2 * nexact;
	for (size_t i = 0; i < nexact; i++)
		differences |= word_at(regs->sp, exact[2 * i]) ^ exact[2 * i + 1];
	for (size_t i = 0; i < nrelative; i++)
		differences |= (word_at(regs->sp, relative[2 * i]) - regs->sp) ^ relative[2 * i + 1];
	relative += 2 * nrelative;
	for (size_t i = 0; i < nregisters; i++)
		differences |= ((relative[2 * i] == MEW_TRAIL_BP ? regs->bp :
				 regs->bx) - regs->sp) ^ relative[2 * i + 1];
	if (differences != 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		pcs[i] = word_at(regs->sp, places[i]);
	*layout = e->id;
	return n;
}

static bool is_register(const struct mew_trail_word *w)
{
	return w->at == MEW_TRAIL_BP || w->at == MEW_TRAIL_BX;
}

uint32_t mew_memo_learn(struct mew_unwind_memo *memo, struct mew_stackset *layouts, const struct mew_unwind_regs *regs,
			const uintptr_t *pcs, size_t first, size_t n, const struct mew_unwind_trail *trail)
{
	struct mew_memo_entry *e = &memo->entry[entry_of(regs->sp, pcs[first])];
	uintptr_t words[WORDS_MAX];
	size_t at = 2, nexact = first - 1, nrelative = 0;
	uint32_t id;

	if (!trail->whole || first == 0 || first > OWN_MAX || n > FRAMES_MAX)
		return 0;
	words[1] = trail->generation;
	for (size_t i = first; i < n; i++)
		words[at++] = trail->slots[i] - regs->sp;
	for (size_t i = 1; i < first; i++) {
		words[at++] = trail->slots[i] - regs->sp;
		words[at++] = pcs[i];
	}
	if (trail->end.at != 0) {
		nexact++;
		words[at++] = trail->end.at - regs->sp;
		words[at++] = trail->end.value;
	}
	for (size_t i = 0; i < trail->nframes; i++) {
		const struct mew_trail_word *w = &trail->frame[i];

		if (is_register(w))
			continue;
		nrelative++;
		words[at++] = w->at - regs->sp;
		words[at++] = w->value - regs->sp;
	}
	for (size_t i = 0; i < trail->nframes; i++) {
		if (!is_register(&trail->frame[i]))
			continue;
		words[at++] = trail->frame[i].at;
		words[at++] = trail->frame[i].value - regs->sp;
	}
	words[0] = (n - first) | nexact << COUNT_BITS | nrelative << 2 * COUNT_BITS |
		   (trail->nframes - nrelative) << 3 * COUNT_BITS;
	id = mew_stackset_intern(layouts, words, at);
	if (id == 0)
		return 0; /* the set is full: what was learnt before still serves */
	*e = (struct mew_memo_entry){ regs->sp, mew_stackset_frames(layouts, id, &at), id };
	return id;
}
