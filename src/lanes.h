/*
 * lanes.h - cases of the memory pass beside each other: each lane is a thread with a worker process of its own.
 * Layer L4. The command's thread; counts are exact whatever runs beside them, times are not: only this pass goes here.
 */
#ifndef MEW_LANES_H
#define MEW_LANES_H

#include "host.h"

#define MEW_LANES_MAX 256u

enum mew_lane_stage { MEW_LANE_WAITS, MEW_LANE_RUNS, MEW_LANE_ENDED };

struct mew_lane_task { /* a case of the pass */
	struct mew_plan_case c; /* a copy: another pass may begin before this one has ended */
	struct mew_host *host;  /* borrowed: its program; the lanes have workers of their own */

	/* the lanes' until all have ended */
	enum mew_lane_stage stage;
	unsigned blockers;       /* cases that it comes after and that have not ended */
	uint64_t ready_ns, start_ns, end_ns;
	bool has_waited;         /* for a lane, since ready_ns; else its lane waited for the case */
	int track;               /* of the timeline, that it is on */
	struct mew_model *model; /* what it left, to be taken over and freed by the caller; NULL: it did not run */
};

struct mew_lanes_options {
	unsigned lanes;                     /* processes at once */
	const struct mew_plan_options *plan; /* copied; its progress is called on the thread that waits */
	const volatile int *cancelled;      /* may be NULL */
};

struct mew_lanes;

/*
 * Start the pass: each lane takes the first case that waits for no other (`after`), in the order of the tasks, until
 * none is left. Workers that the hosts have are retired.
 *
 * tasks    n of them; those that a case comes after stand before it; borrowed until mew_lanes_free()
 * Returns  MEW_OK; MEW_E_NOMEM when not even one lane could be started: then no case ran
 */
int mew_lanes_start(struct mew_lanes **out, struct mew_lane_task *tasks, size_t n, const struct mew_lanes_options *o,
		    struct mew_error *err);

/* Wait until no case waits for a lane: what is left runs already. Also when cancelled. */
void mew_lanes_await_last(struct mew_lanes *l);

/* Wait until all lanes are empty, and give them back. */
void mew_lanes_free(struct mew_lanes *l);

#endif
