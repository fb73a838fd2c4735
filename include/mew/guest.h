/*
 * mew/guest.h - for benchmark frameworks that drive bodies themselves: what <mew/gbench.hpp> tells mew about the loops
 * of Google Benchmark. Layer L4. In libmew_guest, which needs no framework.
 *
 * One body is a block. Its threads call, in this order:
 *   enter    before the framework's own barrier in front of the loop
 *   start    behind it: the window opens when the last of those that entered is here
 *   pause / resume   inside the loop; others are ignored
 *   finish   the loop is over, before the framework's barrier behind it; the window closes with the last thread
 *   leave    behind that barrier, with the iterations that the thread did
 * A thread that leaves its loop early just does not come; its block then has no figures. Blocks follow each other: the
 * next enter() drops a block that was not asked for, so that searches for an iteration count cost nothing afterwards.
 */
#ifndef MEW_GUEST_H
#define MEW_GUEST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEW_GUEST_API __attribute__((visibility("default")))

enum mew_guest_pass {
	MEW_GUEST_ALONE,  /* not started by the command: figures are for the framework's own report */
	MEW_GUEST_LIST,   /* names are wanted, nothing runs */
	MEW_GUEST_TIME,
	MEW_GUEST_MEMORY,
	MEW_GUEST_CPU
};

struct mew_guest_memory { /* of one window, all threads */
	uint64_t allocations, bytes, peak_bytes, iterations;
	int64_t net_bytes;
};

struct mew_guest_counter {
	const char *name;
	double value;
};

enum mew_guest_outcome { MEW_GUEST_RAN, MEW_GUEST_FAILED, MEW_GUEST_SKIPPED };

struct mew_guest_run { /* one measured run, as the framework reports it */
	size_t size;          /* sizeof this struct */
	const char *key;      /* full name of the case */
	const char *label;    /* may be NULL */
	const char *why;      /* of a run that failed or was skipped */
	int outcome;          /* enum mew_guest_outcome */
	unsigned threads, repetition;
	uint64_t iterations;  /* of all threads; 0: not known */
	double real_ns;       /* of the whole run, mean over threads */
	double cpu_ns;        /* of the whole run, all threads */
	int is_aggregate;     /* times are of one iteration, and stand for several runs that are not reported */
	const struct mew_guest_counter *counters;
	size_t ncounters;
};

/* The program is about to run its benchmarks. Returns an enum mew_guest_pass. Context: any thread. */
MEW_GUEST_API int mew_guest_begin(void);
/* Before mew_guest_begin(): its setting for the time of a run also takes a number of iterations, as "100x". */
MEW_GUEST_API void mew_guest_takes_counts(void);
/* MEW_GUEST_LIST: a name on each line. */
MEW_GUEST_API void mew_guest_names(const char *lines);
/* It will not do, and why: the sentence reaches the command. */
MEW_GUEST_API void mew_guest_refuse(const char *why);

MEW_GUEST_API void mew_guest_enter(unsigned threads, unsigned thread);
MEW_GUEST_API void mew_guest_start(void);
MEW_GUEST_API void mew_guest_finish(void);
MEW_GUEST_API void mew_guest_leave(uint64_t iterations);
MEW_GUEST_API void mew_guest_pause(void);
MEW_GUEST_API void mew_guest_resume(void);
/* Was any edge of a loop seen in this process? */
MEW_GUEST_API int mew_guest_has_edges(void);

/*
 * Can allocations be counted here? Returns 0, or a negative mew_status; *why (may be NULL) then is one sentence that
 * lives as long as the process.
 */
MEW_GUEST_API int mew_guest_can_count(const char **why);

/*
 * A pass that the framework makes for memory alone, on one thread. Between the two calls the loop is counted from edge
 * to edge; everything between them where no edge was ever seen.
 *
 * out      of the loop, or of the whole pass; zeroes when nothing could be counted
 * Returns  1 counted from edge to edge, 0 as a whole, -1 not counted
 */
MEW_GUEST_API void mew_guest_memory_start(void);
MEW_GUEST_API int mew_guest_memory_stop(struct mew_guest_memory *out);

/*
 * A case was measured: its row goes to the command. In the memory and CPU pass the figures are those of the last block,
 * which must have run on so many threads for so many iterations; the row says why not, else.
 *
 * memory   memory pass: gets the figures; may be NULL
 * Returns  1 when *memory was filled, else 0
 */
MEW_GUEST_API int mew_guest_report(const struct mew_guest_run *run, struct mew_guest_memory *memory);

#ifdef __cplusplus
}
#endif
#endif
