/*
 * analyse.h - from stacks and names to figures: which function takes the time, and how sure that is; which allocate.
 * Layer L3. Between mew_symbolise() and the seal.
 */
#ifndef MEW_ANALYSE_H
#define MEW_ANALYSE_H

#include "error.h"
#include "model.h"

/* Fewer samples than this are reported with a remark. */
#define MEW_SAMPLES_ENOUGH 100u
/* by_function has no more rows than this. */
#define MEW_MOST_BY_FUNCTION 32u

/*
 * Fill the figures that follow from the samples of every valid CPU row: sample_count, sample_weight, top_function,
 * top_function_total_self_time, top_function_share with its interval, by_function (the 32 largest), unresolved; and add
 * remarks to the row's reason: fewer than 100 samples; a runner-up whose interval overlaps; 5 % or more without a name.
 *
 * Self time is summed by weight per (function, file); a sample belongs to the innermost function of its leaf, inlined
 * ones included. Functions without a file are told apart by module, and leaves without a name count together per
 * module, so that all self times add up to sample_weight. Samples with unequal weights count as (sum w)^2 / (sum w^2)
 * equal ones in the interval (Kish 1965).
 *
 * Then do mew_analyse_heap().
 *
 * m        borrowed, not sealed; a second call changes nothing
 * Returns  MEW_OK; MEW_E_NOMEM
 * Context  one thread at a time for one model; never inside a window; allocates
 */
int mew_analyse(struct mew_model *m, struct mew_error *err);

/*
 * Fill by_function of every valid memory row from its stacks: the 32 functions with the largest peak (then bytes in
 * all, then count). An allocation belongs to the innermost function of its stack, inlined ones included, that is not
 * the C++ library's own: operator new, std:: and __gnu_cxx:: allocate for their caller. Absent, with the reason, where
 * the row was counted without stacks.
 *
 * m        borrowed, not sealed; a second call changes nothing
 * Returns  MEW_OK; MEW_E_NOMEM
 * Context  as mew_analyse()
 */
int mew_analyse_heap(struct mew_model *m, struct mew_error *err);

#endif
