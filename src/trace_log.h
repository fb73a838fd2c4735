/*
 * trace_log.h - this process's part of the timeline: a file of events that is loadable at every moment.
 * Layer L2. Outside windows; any thread (a lock is held while a line is written).
 *
 * Format   a JSON array of Chrome trace events, one a line, that ends anywhere: "[\n", then lines that end in ",\n". The
 *          first line is metadata "mew_trace" whose zero_ns (CLOCK_MONOTONIC) the others' `ts` count from, in
 *          microseconds with three decimals; the file is thus exact, and moves to another zero by whole nanoseconds.
 */
#ifndef MEW_TRACE_LOG_H
#define MEW_TRACE_LOG_H

#include "trace.h"

#include "mew.h"

#define MEW_TRACE_DIR_VARIABLE "MEW_TRACE_DIR"
#define MEW_TRACE_MAIN_TID 1 /* of the process that asked for the trace: its phases, not its threads, are shown */

/* Arguments of an event: members of a JSON object; those that do not fit are left out whole. */
struct mew_trace_args {
	size_t used;
	char text[1024];
};
void mew_trace_arg_text(struct mew_trace_args *a, const char *key, const char *value); /* NULL: left out */
void mew_trace_arg_number(struct mew_trace_args *a, const char *key, uint64_t value);
void mew_trace_arg_ms(struct mew_trace_args *a, const char *key, uint64_t ns); /* milliseconds with three decimals */

struct mew_trace_slice {
	const char *category, *name;
	uint64_t start_ns, end_ns;
	const struct mew_trace_args *args; /* may be NULL */
};

/*
 * Take records from now on, into a file of its own in `directory` (made at the first write), or into the file `path`.
 *
 * Returns  MEW_OK; MEW_E_INVALID when the directory is none, a link, or not ours; MEW_E_BUSY when another command writes to
 *          the file; MEW_E_IO
 */
int mew_trace_log_begin(const char *directory, const char *path, struct mew_error *err);

/* Write what waits and take no more records. */
void mew_trace_log_end(void);

/*
 * Keep other commands off the file `path` of mew_trace_log_begin() also after mew_trace_log_end(): until the descriptor
 * that is returned is closed, which is the caller's to do. -1 where there is no file or no descriptor.
 */
int mew_trace_log_hold(void);

/* The directory that this process's fragments go to, opened; -1 where there is none. The caller closes it. */
int mew_trace_log_directory(void);

/* Could its file not be made, or written on? What was recorded since is lost. */
bool mew_trace_log_failed(void);

/* What this process's events count from, CLOCK_MONOTONIC; 0 where it takes no records. */
uint64_t mew_trace_log_zero(void);

/* Write what the rings hold, and free those of threads that ended. */
void mew_trace_drain(void);

/* One event on the calling thread's line. Nothing happens where no trace is asked for. */
void mew_trace_slice(const struct mew_trace_slice *s);
void mew_trace_mark(const char *category, const char *name, uint64_t time_ns, const struct mew_trace_args *args);
/* One that may overlap others: drawn on a line of its own. */
void mew_trace_span(const char *category, const char *name, uint64_t start_ns, uint64_t end_ns,
		    const struct mew_trace_args *args);
void mew_trace_counter(const char *name, const char *series, uint64_t time_ns, uint64_t value);
/*
 * An arrow from just before the end of a slice that ended at from_ns to the one that starts at to_ns, on this thread's
 * line. Not by bind_id on the slices: catapult would complain of arguments that both have.
 */
void mew_trace_arrow(const char *name, uint64_t from_ns, uint64_t to_ns);
/* The same from a slice on another thread's line, `track` being that thread's mew_trace_track(). */
void mew_trace_arrow_from(const char *name, int track, uint64_t from_ns, uint64_t to_ns);
/* The number of the calling thread's line. */
int mew_trace_track(void);
/* What that line is called, and its place in the process, ascending. The last call counts. */
void mew_trace_thread(const char *name, int place);
/* Resident memory of the process, now. */
void mew_trace_resident(void);

/* What the process is called on the timeline, and its place there, ascending. The last call counts. */
void mew_trace_process(const char *name, int place);

#endif
