/*
 * unwind_fp.c - the walk along frame pointers alone: MEW_UNWINDER=fp.
 * Layer L1. Any thread, signal, malloc. It needs no unwind information, and misses the caller of a leaf that has no
 * frame or is about to build it; code without frame pointers ends the stack or drops out of it.
 */
#include "config.h"

#include "unwind.h"

#include "modules.h"

#include "hotpath.h"

/* It reads other functions' frames, also the gaps that a sanitizer guards. */
__attribute__((no_sanitize("address", "thread"))) static uintptr_t word_at(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

/* A frame: the caller's frame pointer, and above it the return address. It lies at or above sp and in the stack. */
static bool is_frame(uintptr_t bp, uintptr_t sp, uintptr_t hi)
{
	return bp >= sp && (bp & (sizeof bp - 1)) == 0 && hi >= 2 * sizeof bp && bp <= hi - 2 * sizeof bp;
}

size_t mew_unwind_by_frame_pointers(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
				    uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
				    struct mew_unwind_trail *trail)
{
	const struct mew_modules *modules = mew_modules_current();
	uintptr_t bp = regs->bp, sp = regs->sp, shift = 0, lo, hi, ip;
	size_t n = 0;

	if (trail != NULL)
		trail->whole = false;
	*stop = MEW_STOP_FULL;
	if (max == 0)
		return 0;
	pcs[n++] = regs->ip;
	*stop = MEW_STOP_BAD_STACK;
	if (!mew_unwind_bounds(t, regs, &lo, &hi))
		return n;
	if (regs->copy != NULL)
		shift = (uintptr_t)regs->copy->words - regs->copy->lo;
	*stop = MEW_STOP_NO_RULE;
	while (is_frame(bp, sp, hi)) { /* ends: sp rises */
		ip = mew_unwind_strip(word_at(bp + sizeof bp + shift));
		if (ip == 0 || (ip >= entry_lo && ip < entry_hi))
			break;
		if (!mew_modules_is_code(modules, ip))
			return n;
		if (n == max) {
			*stop = MEW_STOP_FULL;
			return n;
		}
		pcs[n++] = ip;
		sp = bp + 2 * sizeof bp;
		bp = word_at(bp + shift);
	}
	if (bp == 0 || is_frame(bp, sp, hi)) /* the outermost frame has 0 for a caller's frame pointer */
		*stop = MEW_STOP_END;
	return n;
}
