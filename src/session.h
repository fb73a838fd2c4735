/*
 * session.h - one profiling session at a time in this process, and how its model is completed.
 * Layer L4.
 */
#ifndef MEW_SESSION_H
#define MEW_SESSION_H

#include "model.h"

/*
 * Claim the process. A session whose caller's stack frame is gone (a longjmp out of a body) is taken over, never BUSY.
 *
 * frame    an address in the claiming public function's frame: __builtin_frame_address(0)
 * Returns  MEW_OK, MEW_E_BUSY
 */
int mew_session_begin(const void *frame, struct mew_error *err);
void mew_session_end(void);

struct mew_symbolise_servers; /* symbolise.h */

/*
 * Names for the stacks, with the help of `servers` (borrowed; NULL: nobody is asked), figures from the names, the
 * grade, the seal. Returns MEW_OK, MEW_E_NOMEM; lesser faults are in the rows.
 */
int mew_session_finish(struct mew_model *m, const struct mew_symbolise_servers *servers, struct mew_error *err);

#endif
