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

/* Of one thread. Zero it before mew_cpu_counters_open(). */
struct mew_cpu_counters {
	const struct mew_cpu_event *events; /* MEW_CPU_COUNTERS of them; NULL when nothing was tried */
	int fds[MEW_CPU_COUNTERS];          /* -1 for one that does not count */
	int failed[MEW_CPU_COUNTERS];       /* errno of those */
	uint64_t from[MEW_CPU_COUNTERS];    /* readings when the window opened */
	uint64_t enabled_ns, running_ns;    /* how long the group was due to count and did, then */
	double counts[MEW_CPU_COUNTERS];    /* of the window, scaled */
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

void mew_cpu_counters_close(struct mew_cpu_counters *c);

/*
 * The figures of n threads' counters together, or why there is none.
 *
 * has_pauses   the case paused: the counters went on, so there are no figures
 * Context      drain
 */
void mew_cpu_counters_put(const struct mew_cpu_counters *const *all, size_t n, bool has_pauses, struct mew_sink *sink);

#endif
