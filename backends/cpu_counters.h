/*
 * cpu_counters.h - counters of the processor over a window, one group per benchmark thread.
 * Layer L3. Private to the CPU backend; system calls at the ends of the window, nothing inside it.
 */
#ifndef MEW_CPU_COUNTERS_H
#define MEW_CPU_COUNTERS_H

#include "base.h"
#include "sink.h"

#define MEW_CPU_COUNTERS 4u

struct mew_cpu_event { /* what one counter counts, as in struct perf_event_attr */
	uint32_t type;
	uint64_t config;
	int figure; /* enum mew_cpu_figure */
};

/* Cycles, instructions, cache misses, branch misses. */
extern const struct mew_cpu_event mew_cpu_hardware[MEW_CPU_COUNTERS];

struct mew_cpu_reading { /* of a group, as the kernel writes it: PERF_FORMAT_GROUP with both times */
	uint64_t n;
	uint64_t enabled_ns, running_ns; /* how long the group was due to count, and how long it did */
	uint64_t values[MEW_CPU_COUNTERS];
};

/* Of one thread. Zero it before mew_cpu_counters_open(). */
struct mew_cpu_counters {
	const struct mew_cpu_event *events; /* MEW_CPU_COUNTERS of them; NULL when nothing was tried */
	int fds[MEW_CPU_COUNTERS];          /* -1 for one that does not count */
	int failed[MEW_CPU_COUNTERS];       /* errno of those */
	struct mew_cpu_reading from;        /* when the window opened */
	double counts[MEW_CPU_COUNTERS];    /* of the window, scaled; in the group's order */
	double share;                       /* of the window, that the group really counted */
	bool is_user_only;                  /* the kernel's part is not allowed to be seen */
	bool is_read;                       /* counts are good */
};

/*
 * Open what counts of the four for the calling thread: with the kernel where allowed, else without.
 *
 * events   borrowed until mew_cpu_counters_close()
 * Context  the benchmark thread, before the window
 */
void mew_cpu_counters_open(struct mew_cpu_counters *c, const struct mew_cpu_event *events);

/* The window opens; it closes: counts are what passed, scaled by the time that the group really counted. Any thread. */
void mew_cpu_counters_begin(struct mew_cpu_counters *c);
void mew_cpu_counters_end(struct mew_cpu_counters *c);

/*
 * What a group counted between two readings, scaled up where it did so only for a part of the time.
 *
 * counts   returned: to->n of them
 * share    returned: that part
 * Returns  false when it did not count at all, or these are not two readings of one group
 */
bool mew_cpu_counters_between(const struct mew_cpu_reading *from, const struct mew_cpu_reading *to, double *counts,
			      double *share);

void mew_cpu_counters_close(struct mew_cpu_counters *c);

/*
 * The figures of n threads' counters together, or why there is none.
 *
 * has_pauses   the case paused: the counters went on, so there are no figures
 * Context      drain
 */
void mew_cpu_counters_put(const struct mew_cpu_counters *const *all, size_t n, bool has_pauses, struct mew_sink *sink);

#endif
