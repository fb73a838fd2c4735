/*
 * trace_profile.h - CPU profiles among the events of a trace: Profile and ProfileChunk, in the form of trace_samples.h.
 * Layer L6. Any process may have written them.
 */
#ifndef MEW_TRACE_PROFILE_H
#define MEW_TRACE_PROFILE_H

#include "trace_events.h"

/*
 * Is an event of phase P one that viewers read? Sets its start.
 *
 * Returns  NULL, or what is wrong
 */
const char *mew_trace_profile_read(struct mew_trace_event *e);

/* By process, then by id, then in the order of the file. */
int mew_trace_profile_order(const struct mew_trace_event *a, const struct mew_trace_event *b);

struct mew_trace_profile; /* one, while its events are looked at */

/* NULL without memory. Freed by mew_trace_profile_free(), for which NULL is fine. */
struct mew_trace_profile *mew_trace_profile_new(void);
void mew_trace_profile_free(struct mew_trace_profile *p);

/*
 * The next event of one profile: do its nodes hang on nodes that are there, its samples on nodes, and are all times
 * behind 0?
 *
 * first    it is the first one of its profile
 * Returns  NULL, or what is wrong
 */
const char *mew_trace_profile_check(struct mew_trace_profile *p, const struct mew_trace_event *e, bool first);

#endif
