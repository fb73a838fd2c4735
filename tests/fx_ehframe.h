/*
 * fx_ehframe.h - what must be true of every compiled unwind table, whatever bytes it came from.
 * Test fixture of t_ehframe.c and fuzz_ehframe.c.
 */
#ifndef FX_EHFRAME_H
#define FX_EHFRAME_H

#include "ehframe.h"

/* Rows ascend, each index is inside its array, each rule is one that exists, and a look-up finds what a search does. */
static inline bool fx_table_is_sound(const struct mew_unwind_table *t, uintptr_t lo, uintptr_t hi)
{
	uint32_t row = 0;

	if (t->nrows == 0 || t->base != lo || t->offset[t->nrows - 1] > hi - lo)
		return false;
	for (uint32_t i = 0; i < t->nrows; i++) {
		if (t->rule[i] >= t->nrules || (i > 0 && t->offset[i] <= t->offset[i - 1]))
			return false;
	}
	for (uint32_t i = 0; i < t->nrules; i++) {
		if (mew_rule_kind(t->rules[i]) > MEW_RULE_JUMP)
			return false;
	}
	for (uintptr_t pc = lo; pc < hi; pc += 1 + (hi - lo) / 4096) {
		while (row + 1 < t->nrows && t->offset[row + 1] <= pc - lo)
			row++;
		if (mew_unwind_table_rule(t, pc) !=
		    (t->offset[row] <= pc - lo ? t->rules[t->rule[row]] : (uint64_t)MEW_RULE_NONE))
			return false;
	}
	return mew_unwind_table_rule(t, lo - 1) == MEW_RULE_NONE &&
	       mew_unwind_table_rule(t, hi + 4096) == MEW_RULE_NONE;
}

#endif
