/*
 * record_trace.h - recorded processes on the timeline, watched from outside while they run: nothing is done in them.
 * Layer L4. The command's thread.
 */
#ifndef MEW_RECORD_TRACE_H
#define MEW_RECORD_TRACE_H

#include "record_read.h"

#define MEW_RECORD_TICK_MS 10

struct mew_record_trace; /* of one run */

/* Returns NULL without memory. */
struct mew_record_trace *mew_record_trace_new(void);
void mew_record_trace_free(struct mew_record_trace *t); /* NULL is fine */

/* Read what every process has now: its heap, its memory, its threads. Call each MEW_RECORD_TICK_MS. */
void mew_record_trace_look(struct mew_record_trace *t, const struct mew_recorder *r);

/*
 * Leave a fragment for a process that is gone, in the directory that MEW_TRACE_DIR names.
 *
 * c        the case of its figures; NULL: there is none
 * Returns  MEW_OK; MEW_E_IO
 */
int mew_record_trace_write(struct mew_record_trace *t, const struct mew_recording *g, const struct mew_record_orders *o,
			   const struct mew_case *c, struct mew_error *err);

#endif
