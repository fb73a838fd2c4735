/*
 * trace_events.h - the events of trace files as checked records; what makes a set of them one sound trace.
 * Layer L6. One thread, after the measurement.
 */
#ifndef MEW_TRACE_EVENTS_H
#define MEW_TRACE_EVENTS_H

#include "trace_json.h"

#include "mew.h"

struct mew_trace_event {
	struct mew_slice name, category, args; /* JSON, with quotes or braces */
	struct mew_slice id, bind;             /* of async spans, old flows and profiles; of new flows */
	int64_t ts_ns, duration_ns;
	int64_t start_ns; /* of a Profile: when its first sample is counted from */
	int64_t pid, tid;
	uint64_t number; /* that joins it to its partners; 0: none. Set by mew_trace_pair() */
	uint32_t file, serial;
	char phase; /* one of "MXBEiCbestfP"; an `I` becomes `i` */
	char scope; /* of an instant: t, p or g */
	bool flow_in, flow_out, unfinished, dropped, has_id2;
	bool has_start; /* a Profile; other P are a ProfileChunk */
};

struct mew_trace_events {
	struct mew_trace_event *list;
	size_t n, capacity;
	uint64_t dropped; /* events that had no partner or that no viewer could show; these among them: */
	uint64_t far;     /* a day or more outside the run */
	uint64_t beyond;  /* of more processes than are shown */
	uint64_t numbers;
	bool failed;      /* no memory: the list is a part */
	bool full;        /* the file that is being read has too many */
};

struct mew_trace_source { /* one file of events */
	char *name; /* for messages; borrowed */
	char *text;       /* borrowed; bytes that are not UTF-8 are overwritten by '?' */
	size_t bytes;
	/* returned */
	bool cut;          /* it is an array that lacks its end */
	bool torn;         /* mew's own, and its last line lacks its end: the process or the disk came to one */
	bool unended;      /* mew's own, and its process did not close it, as exit() would: its last records were not written */
	bool is_ours;      /* a mew process wrote it: times are of CLOCK_MONOTONIC, from zero_ns on */
	int64_t zero_ns;
	uint64_t bad;      /* events left out, and why the first of them was */
	char first_bad[120];
	uint64_t lost;     /* records its process dropped */
	uint64_t thinned;  /* samples that were not put into it */
};

#define MEW_TRACE_EVENTS_MAX ((size_t)4000000)

/*
 * Append the events of a file. An event of a wrong type is left out and counted.
 *
 * Returns  MEW_OK; MEW_E_INVALID when the text is no JSON, neither an array nor an object with traceEvents, or too much
 *          of one (then none of its events is in the list); MEW_E_NOMEM
 */
int mew_trace_load(struct mew_trace_events *events, struct mew_trace_source *source, uint32_t file,
		   struct mew_error *err);
void mew_trace_events_fini(struct mew_trace_events *events);

/*
 * Make begin and end one slice, give each async span, arrow and profile a number of its own, and leave out what has no
 * partner; an open begin ends with its process's last event. Times and process ids are final before this call.
 */
void mew_trace_pair(struct mew_trace_events *events);

/* Slices of one thread that overlap in part: the later one becomes an async span. Leaves out what was dropped. */
void mew_trace_nest(struct mew_trace_events *events);

/* The order of a file: metadata, then by time; a slice before those inside it and before what refers to them. */
void mew_trace_sort(struct mew_trace_events *events);
int mew_trace_order(const struct mew_trace_event *a, const struct mew_trace_event *b);

/* memcmp of slices, the shorter first. */
int mew_slice_order(struct mew_slice a, struct mew_slice b);

#endif
