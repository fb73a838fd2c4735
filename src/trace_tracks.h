/*
 * trace_tracks.h - whose the events are: numbers and names of processes and threads from many files.
 * Layer L6. After the measurement.
 */
#ifndef MEW_TRACE_TRACKS_H
#define MEW_TRACE_TRACKS_H

#include "trace_files.h"
#include "writer.h"

/*
 * Give processes of different files that have one number different ones. One process may have left several files.
 *
 * Returns  MEW_OK, MEW_E_NOMEM
 */
int mew_trace_renumber(struct mew_trace_events *events, const struct mew_trace_files *files);

/* Of several names of one process or thread the last one stays; other metadata goes. */
void mew_trace_drop_old_names(struct mew_trace_events *events);

/* Tracks that nobody named get their number for a name. */
void mew_trace_write_missing_names(struct mew_writer *w, struct mew_trace_events *events);

/* The event that names a process or a thread (`what`) "KIND NUMBER". */
void mew_trace_write_name(struct mew_writer *w, const char *what, int64_t pid, int64_t tid, const char *kind,
			  int64_t number);

#endif
