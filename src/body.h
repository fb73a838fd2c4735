/*
 * body.h - one call of a case's body, on all its threads.
 * Layer L4.
 */
#ifndef MEW_BODY_H
#define MEW_BODY_H

#include "entries.h"
#include "state.h"

/*
 * Call the body once on each thread of the block and wait until all have left it. What went wrong is in the block's
 * states.
 *
 * item     borrowed
 * b        initialised; states[0] runs on the calling thread when it is the only one
 * Context  runner thread
 */
void mew_body_call(const struct mew_item *item, struct mew_block *b);

#endif
