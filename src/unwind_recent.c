/*
 * unwind_recent.c - keeps the frames of a walk, and checks by the words of the stack whether they still hold.
 * Layer L1. The calling thread, signal. The rules are those of cfi.h as unwind_x86_64.c goes by them.
 */
#include "config.h"

#include "unwind_recent.h"

#include "cfi.h"

#include "hotpath.h"

/* It reads other functions' frames, also the gaps that a sanitizer guards. */
#define READS_STACKS __attribute__((no_sanitize("address", "thread")))

/* Inside the stack: it was read before, and lies above a frame that is there now. */
READS_STACKS static inline uintptr_t word_at(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

bool mew_recent_holds(const struct mew_unwind_recent *r, size_t frame, uintptr_t *pcs, size_t *known)
{
	for (size_t i = frame; i-- > 0;) {
		uintptr_t word = word_at(r->frame[i].sp - 8);

		if (MEW_UNLIKELY(word != r->frame[i].ip)) {
			*known = i; /* those outside it may hold all the same */
			return false;
		}
		*pcs++ = word;
	}
	*known = 0;
	for (size_t i = 0; i < r->frame[frame].nwords; i++)
		if (word_at(r->word[i].at) != r->word[i].value)
			return false;
	return r->end.at == 0 || word_at(r->end.at) == r->end.value;
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

struct reads { /* of one step */
	uintptr_t cfa;
	unsigned needs;
	struct mew_trail_word word[3];
	size_t nwords;
};

static void read_word(struct reads *reads, uintptr_t at, uintptr_t value)
{
	reads->word[reads->nwords++] = (struct mew_trail_word){ at, value };
}

/* Where the CFA came from. False for a step that cannot be checked by words. */
static bool read_cfa(struct reads *reads, const struct mew_recent_step *s)
{
	uintptr_t loaded = reads->cfa - (uintptr_t)mew_rule_load_add(s->rule);
	uintptr_t offset = (uintptr_t)mew_rule_short_offset(s->rule);

	switch (mew_rule_kind(s->rule)) {
	case MEW_RULE_END:
	case MEW_RULE_PLT:
	case MEW_RULE_SP: return true;
	case MEW_RULE_BP: reads->needs |= MEW_RECENT_BP; return true;
	case MEW_RULE_BX: reads->needs |= MEW_RECENT_BX; return true;
	case MEW_RULE_SP_LOAD: read_word(reads, s->sp + offset, loaded); return true;
	case MEW_RULE_BP_LOAD:
		reads->needs |= MEW_RECENT_BP;
		read_word(reads, s->bp + offset, loaded);
		return true;
	default: return false;
	}
}

/* Where the caller's register, which is needed, came from: as restore() of the walk decides it. */
static bool read_register(struct reads *reads, const struct mew_recent_step *s, unsigned which, enum mew_rule_save how,
			  uintptr_t slot, uintptr_t value)
{
	switch (how) {
	case MEW_SAVE_SAME: reads->needs |= which; return true;
	case MEW_SAVE_CFA: read_word(reads, reads->cfa + slot, value); return true;
	case MEW_SAVE_BP:
		reads->needs |= MEW_RECENT_BP;
		if (s->bp + slot >= s->sp && s->bp + slot < reads->cfa)
			read_word(reads, s->bp + slot, value);
		else
			reads->needs |= which;
		return true;
	default: return false;
	}
}

/* One more frame inside those that are kept. False when it cannot be checked, or there is no room. */
static bool keep_frame(struct mew_unwind_recent *r, uintptr_t ip, const struct mew_recent_step *s)
{
	uint32_t i = r->n;
	const struct mew_recent_frame outside = { .sp = r->end.at + 8 };
	const struct mew_recent_frame *caller = i > 0 ? &r->frame[i - 1] : &outside;
	struct reads reads = { .cfa = caller->sp };
	uint32_t nwords = caller->nwords;

	if (i == MEW_RECENT_FRAMES || !read_cfa(&reads, s))
		return false;
	if ((caller->needs & MEW_RECENT_BP) != 0 &&
	    !read_register(&reads, s, MEW_RECENT_BP, mew_rule_bp(s->rule), (uintptr_t)mew_rule_bp_offset(s->rule),
			   caller->bp))
		return false;
	if ((caller->needs & MEW_RECENT_BX) != 0 &&
	    !read_register(&reads, s, MEW_RECENT_BX, mew_rule_bx(s->rule), (uintptr_t)mew_rule_bx_offset(s->rule),
			   caller->bx))
		return false;
	if (nwords + reads.nwords > MEW_RECENT_WORDS)
		return false;
	for (size_t w = 0; w < reads.nwords; w++) {
		if (reads.word[w].at < s->sp) /* below the frame: nobody vouches for what lies there */
			return false;
		r->word[nwords++] = reads.word[w];
	}
	r->frame[i] = (struct mew_recent_frame){ ip, s->sp, s->bp, s->bx, nwords, reads.needs };
	r->n = i + 1;
	return true;
}

void mew_recent_keep(struct mew_unwind_recent *r, size_t met, const uintptr_t *pcs, size_t n, struct mew_trail_word end)
{
	size_t most = n < MEW_RECENT_STEPS ? n : MEW_RECENT_STEPS;

	if (met == 0)
		r->end = end;
	r->n = (uint32_t)met;
	for (size_t i = met > 0 ? 1 : 0; i < most; i++)
		if (!keep_frame(r, pcs[n - 1 - i], &r->step[(n - 1 - i) & (MEW_RECENT_STEPS - 1)]))
			return;
}
