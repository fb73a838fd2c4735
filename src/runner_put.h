/*
 * runner_put.h - what a block that ran leaves in the model: its runs, what the body declared, the user's counters.
 * Layer L4.
 */
#ifndef MEW_RUNNER_PUT_H
#define MEW_RUNNER_PUT_H

#include "runner.h"

/* Add them to case `c` of `m`. Returns 0, or -1 without memory. Context: runner thread. */
int mew_runner_put(struct mew_model *m, struct mew_case *c, const struct mew_request *rq, const struct mew_block *b);

#endif
