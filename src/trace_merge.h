/*
 * trace_merge.h - all fragments of a traced run into one sound trace.
 * Layer L6. Once, after the measurement.
 */
#ifndef MEW_TRACE_MERGE_H
#define MEW_TRACE_MERGE_H

#include "trace_events.h"

#define MEW_FRAGMENT_MAX ((size_t)64 << 20)  /* bytes of one fragment */
#define MEW_FRAGMENTS_MAX ((size_t)256 << 20) /* and of all */

struct mew_clock_pair { /* read as nearly at once as can be */
	int64_t monotonic_ns, realtime_ns, boottime_ns;
};

/* The tightest of several readings. Context: any thread. */
void mew_clock_pair_read(struct mew_clock_pair *out);

struct mew_trace_merge {
	const char *own;    /* file of the process that asked for the trace */
	int directory;      /* where the fragments are; open, borrowed */
	const char *output; /* a name that ends in .gz is compressed */
	int64_t zero_ns;    /* CLOCK_MONOTONIC at the run's start */
	const struct mew_clock_pair *pairs; /* over the run, in order; 1 or more */
	size_t npairs;
	void (*say)(const char *text); /* one line for each file that is skipped or damaged */
	bool fixed_clock;   /* tests: the slice of the writing has no length of its own */

	/* returned */
	size_t events, fragments;
	uint64_t bad, dropped, lost, thinned;
	uint64_t far, beyond; /* of those dropped: a day or more outside the run; of more processes than are shown */
	uint64_t torn; /* mew's own files that break off in a line */
	uint64_t unended; /* those whose process ended before it had written all, torn or not */
};

/*
 * Read all, put all on one clock, make process ids and arrows unique, pair, nest, sort, and write the file whole or not
 * at all. Fragments are not removed.
 *
 * Returns  MEW_OK; MEW_E_IO naming the output; MEW_E_NOMEM
 */
int mew_trace_merge(struct mew_trace_merge *m, struct mew_error *err);

#endif
