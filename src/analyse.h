/*
 * analyse.h - from samples and names to the figures of a CPU row: which function takes the time, and how sure that is.
 * Layer L3. Between mew_symbolise() and the seal.
 */
#ifndef MEW_ANALYSE_H
#define MEW_ANALYSE_H

#include "error.h"
#include "model.h"

/* Fewer samples than this are reported with a remark. */
#define MEW_SAMPLES_ENOUGH 100u

/*
 * Fill the figures that follow from the samples of every valid CPU row: sample_count, sample_weight, top_function,
 * top_function_total_self_time, top_function_share with its interval, unresolved; and add remarks to the row's reason:
 * fewer than 100 samples; a runner-up whose interval overlaps; 5 % or more without a name.
 *
 * Self time is summed by weight per (function, file); a sample belongs to the innermost function of its leaf, inlined
 * ones included. Functions without a file are told apart by module, and leaves without a name count together per
 * module, so that all self times add up to sample_weight. Samples with unequal weights count as (sum w)^2 / (sum w^2)
 * equal ones in the interval (Kish 1965).
 *
 * m        borrowed, not sealed; a second call changes nothing
 * Returns  MEW_OK; MEW_E_NOMEM
 * Context  one thread at a time for one model; never inside a window; allocates
 */
int mew_analyse(struct mew_model *m, struct mew_error *err);

#endif
