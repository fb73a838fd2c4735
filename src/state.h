/*
 * state.h - the state of a running body and the block of samples its threads share.
 * Layer L4. A block is one call of the body on all threads of a case; its plan says how many samples of how many
 * iterations, and when to stop. The loop runs without interruption within a sample; all bookkeeping is between samples.
 */
#ifndef MEW_STATE_H
#define MEW_STATE_H

#include "base.h"
#include "mew.h"
#include "mew/backend.h"
#include "pace.h"

#include <pthread.h>

#define MEW_COUNTERS_MAX 16
#define MEW_PAUSES_SHOWN 1000u /* of a thread in one call of the body: more would only be a grey bar */

/* When a block of samples is complete. */
struct mew_block_plan {
	uint64_t loops;       /* iterations per sample and thread; 0: find out how many last target_ns (calibration) */
	uint64_t target_ns;   /* wanted length of a sample; of those that are not kept where loops are given */
	uint64_t exact;       /* exactly so many iterations per thread, then stop; 0: no such number */
	uint64_t min_samples; /* never stop before, unless max_ns is over */
	uint64_t max_samples; /* stop then; below min_samples: go on until max_ns, in longer samples that are not kept */
	uint64_t min_ns;      /* never stop before so much measured time */
	uint64_t max_ns;      /* stop after, be it measured time or time spent in samples, pauses included; 0: no limit */
	uint64_t min_iterations;
	double precision;     /* stop when the 95 % interval of the median is within this fraction; 0: do not look */
	struct mew_pace *pace; /* take turns with another loop for each sample; NULL: alone. Never with a backend */
	enum mew_side side;
	struct mew_duo *duo;  /* the other loop is on this thread too; NULL: on its own */
	bool free_running;    /* threads do not wait for each other between samples (capture passes) */
};

struct mew_user_counter {
	char name[64];
	double value;
	unsigned flags;
};

struct mew_sample_run { /* samples of equal loops, in order; calibration has several */
	uint64_t loops;
	size_t first, n;
};

struct mew_block {
	struct mew_block_plan plan;
	const struct mew_backend *backend; /* NULL for timing */
	struct mew_capture *capture;
	unsigned threads;
	struct mew_state *states;          /* one per thread */

	/* samples, filled by the last thread to arrive */
	uint64_t *real_ns, *cpu_ns;        /* capacity plan.max_samples */
	double *scratch;
	size_t nsamples;
	struct mew_sample_run runs[64];
	size_t nruns;
	uint64_t measured_ns;              /* sum of real_ns */
	uint64_t wall_ns, spent_ns;        /* the last sample, and all of them, by the clock: pauses are in, no body sets it */
	uint64_t next_check;               /* sample count at which the precision is looked at again */
	uint64_t context_switches, migrations, page_faults;
	uint64_t paced_switches;           /* context_switches when the turn was last passed on */

	/* rendezvous of the threads */
	pthread_mutex_t lock;
	pthread_cond_t turned;
	unsigned present, arrived;         /* bodies not yet left; waiting now */
	uint64_t generation;
	uint64_t next;                     /* iterations that the waiting threads do next; 0: leave the loop */
	bool opened, closed;               /* the window */
	bool stopping;                     /* free_running: some thread is done; atomic */
	int backend_status;
	struct mew_error backend_error;
};

enum mew_stage { MEW_STAGE_BEFORE, MEW_STAGE_LOOP, MEW_STAGE_AFTER };

struct mew_state {
	struct mew_block *block;
	unsigned thread;
	size_t case_index;
	const char *case_label;

	enum mew_stage stage;
	uint64_t batch;
	uint64_t chunk;      /* iterations of the running sample, overshoot included */
	uint64_t completed;
	uint64_t window_ns;  /* unpaused time in the loop so far */
	uint64_t wall_ns, spent_ns; /* the last sample, and all so far, by the clock */

	unsigned pause_depth;
	bool paused_in_loop; /* some pause took effect */
	uint64_t start_ns, start_cpu_ns, paused_at_ns, paused_ns, pauses;
	uint64_t shown_at_ns, shown_until_ns; /* the last pause, not yet on the timeline; until is 0 when there is none */
	unsigned shown;                       /* pauses on the timeline */
	uint64_t chunk_ns, chunk_cpu_ns; /* the sample just ended */
	struct mew_os_events_slot {
		uint64_t context_switches, page_faults;
		int cpu;
	} events;

	bool manual;
	double manual_s;     /* of the running sample */
	double bytes, items;
	struct mew_user_counter counters[MEW_COUNTERS_MAX];
	unsigned ncounters;
	char label[128];

	bool attached;       /* the backend's thread_begin was called */
	bool skipped;
	int status;          /* first failure of this thread */
	char reason[240];
};

/* Turns of a loop that do at least so many iterations, `batch` in each; 0 counts as 1. */
static inline uint64_t mew_turns(uint64_t iterations, uint64_t batch)
{
	return batch <= 1 ? iterations : iterations / batch + (iterations % batch != 0);
}
/* The iterations that a loop makes of that number: whole turns. */
static inline uint64_t mew_whole_turns(uint64_t iterations, uint64_t batch)
{
	return batch <= 1 ? iterations : mew_turns(iterations, batch) * batch;
}

/*
 * Prepare a block for `threads` threads.
 *
 * Returns  MEW_OK, MEW_E_NOMEM; mew_block_fini() is due in any case
 * Context  runner thread
 */
int mew_block_init(struct mew_block *b, const struct mew_block_plan *plan, unsigned threads,
		   const struct mew_backend *backend, struct mew_capture *capture, struct mew_error *err);
void mew_block_fini(struct mew_block *b);

/*
 * A thread's body returned (or threw): release those that wait for it and judge what it did.
 * Fills st->status and st->reason where the loop was left early, never entered or entered twice.
 *
 * Context  the body's thread
 */
void mew_state_leave(struct mew_state *st);

/* Record a thread's first failure. Context: the body's thread. */
void mew_state_fail(struct mew_state *st, int status, const char *format, ...) MEW_PRINTF(3, 4);

/*
 * What this process's clock and loop cost; measured once, about 1 ms.
 * Context: any thread, outside windows.
 */
struct mew_loop_costs {
	double clock_ns;  /* one clock read */
	double turn_ns;   /* one empty turn of the loop */
	double pause_ns;  /* of a pause and resume pair, charged to the figures if not corrected */
};
const struct mew_loop_costs *mew_loop_costs(void);

#endif
