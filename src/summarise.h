/*
 * summarise.h - from the runs of a case to its figures of time.
 * Layer L4.
 */
#ifndef MEW_SUMMARISE_H
#define MEW_SUMMARISE_H

#include "model.h"

/*
 * Compute the time row of a case from its measurement/value runs; figures that cannot be had are absent with a reason.
 */
void mew_summarise_time(struct mew_model *m, struct mew_case *c, bool latency);

/* The row of a case that ran to see whether it works: no figures, and a reason that says `how` it ran. */
void mew_summarise_dry(struct mew_model *m, struct mew_case *c, const char *how);

/* Append to the row that fewer processes were run than was asked for, and why; the figures are of those. */
void mew_summarise_fewer(struct mew_model *m, struct mew_case *c, enum mew_kind kind, uint64_t run, unsigned asked,
			 const struct mew_error *why);

/* Append a sentence to a row's reason without failing it. */
void mew_summarise_note(struct mew_model *m, struct mew_case *c, enum mew_kind kind, const char *note);

#endif
