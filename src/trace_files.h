/*
 * trace_files.h - files of events in memory.
 * Layer L6. After the measurement.
 */
#ifndef MEW_TRACE_FILES_H
#define MEW_TRACE_FILES_H

#include "trace_events.h"

struct mew_trace_files {
	struct mew_trace_source *list;
	size_t n, bytes;
};

/*
 * Read every *.json of a directory in the order of their names, mew's own first. Links, files that are too large,
 * unreadable ones and ones that are no trace are told to `say` and passed over.
 *
 * directory  open; borrowed
 * Returns    MEW_OK, MEW_E_NOMEM
 */
int mew_trace_files_sweep(struct mew_trace_files *files, int directory, struct mew_trace_events *events,
			  void (*say)(const char *text), struct mew_error *err);

/*
 * Read one file; a gzip file is unpacked where the system has zlib. Returns MEW_OK; MEW_E_IO, MEW_E_INVALID,
 * MEW_E_NOMEM.
 */
int mew_trace_files_read(struct mew_trace_files *files, int directory, const char *name, size_t most,
			 struct mew_trace_events *events, struct mew_error *err);

/* What of a file is not on the timeline, if anything. */
void mew_trace_files_tell(const struct mew_trace_source *s, void (*say)(const char *text));

void mew_trace_files_fini(struct mew_trace_files *files);

#endif
