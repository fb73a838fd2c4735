/*
 * fx_cpu_rig.h - drives the CPU backend through its contract, in the order of a runner, and adds up what it saw.
 * Test fixture.
 */
#ifndef FX_CPU_RIG_H
#define FX_CPU_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fx_cpu_work.h"
#include "model.h"
#include "mew/backend.h"

FX_BOUNDS(fx_body);

struct rig;
typedef void rig_fn(struct rig *r, unsigned thread, void *arg);

struct rig {
	/* given; threads and interval_ns 0 mean 1 and 0.1 ms */
	unsigned threads;
	uint64_t interval_ns;
	int pause_cpu;
	enum mew_clock clock;
	int engine;    /* enum mew_cpu_engine; 0: the best */
	rig_fn *body;  /* the loop: between begin and end */
	rig_fn *after; /* between end and thread_end; may be NULL */
	void *arg;

	/* what came of it */
	int status;
	struct mew_error error;
	struct mew_model *model;
	const struct mew_case *row;
	uint64_t window_ns;   /* unpaused wall time, mean over threads */
	uint64_t pauses;      /* of all threads */

	/* private */
	struct mew_capture *capture;
	struct rig_thread *each;
};

extern const struct mew_backend mew_backend_cpu;

/* Run one window. rig_fini() is due in any case. */
void rig_run(struct rig *r);
void rig_fini(struct rig *r);

/* For bodies. */
void rig_pause(struct rig *r, unsigned thread);
void rig_resume(struct rig *r, unsigned thread);

/* Nanoseconds of CLOCK_MONOTONIC; CPU time of the calling thread. */
uint64_t rig_now_ns(void);
uint64_t rig_thread_cpu_ns(void);

/* A number below `below`; *state is not 0. */
uint64_t rig_pick(uint64_t *state, uint64_t below);

/*
 * Sampling is a game of chance, and other processes disturb it: what is timed gets five tries, the tolerances stay.
 * `once` is an expression that says why when it is false. Behind <cmocka.h>.
 */
#define RIG_TRIES 5
#define RIG_ASSERT_IN_TRIES(once)                                                                                      \
	do {                                                                                                           \
		int left_ = RIG_TRIES;                                                                                 \
                                                                                                                       \
		while (left_ > 0 && !(once))                                                                           \
			left_--;                                                                                       \
		if (left_ == 0)                                                                                        \
			fail_msg("%d tries, each outside of its tolerance (above): %s", RIG_TRIES, #once);             \
	} while (0)

/* The same, skipped with `why` where no try set rig_was_judged: the machine was too busy to tell. */
extern bool rig_was_judged;
#define RIG_ASSERT_IF_JUDGED(once, why)                                                                                \
	do {                                                                                                           \
		int left_ = RIG_TRIES;                                                                                 \
                                                                                                                       \
		rig_was_judged = false;                                                                                \
		while (left_ > 0 && !(once))                                                                           \
			left_--;                                                                                       \
		if (left_ == 0 && rig_was_judged)                                                                      \
			fail_msg("%d tries, each outside of its tolerance (above): %s", RIG_TRIES, #once);             \
		if (left_ == 0) {                                                                                      \
			printf("# this machine is too busy: %s\n", why);                                               \
			skip();                                                                                        \
		}                                                                                                      \
	} while (0)

/* In the quick builds (MEW_TEST_QUICK) accuracy is not judged. The first is for one test, which skips itself; the
 * second for a whole program: it prints the plan that says so, and main() returns 0. */
bool rig_is_quick(void);
bool rig_skips_all(void);

/* Does that engine of the CPU clock work here? */
bool rig_has(int engine);

/* Summed weights in seconds: of samples with the leaf in the range; with any frame there; of one thread; and counts. */
double rig_self(const struct rig *r, struct fx_range range);
double rig_total(const struct rig *r, struct fx_range range);
double rig_thread(const struct rig *r, unsigned thread);
size_t rig_hits(const struct rig *r, struct fx_range leaf);

/* Does frame `depth` (0 the leaf, -1 the outermost) of a sample lie in the range? */
bool rig_frame_in(const struct rig *r, const struct mew_cpu_sample *s, int depth, struct fx_range range);
/* Does any? */
bool rig_passes(const struct rig *r, const struct mew_cpu_sample *s, struct fx_range range);

/* Why a figure is absent; NULL when it is there. */
const char *rig_why(const struct rig *r, enum mew_cpu_figure figure);

/* Is the sum of weights the unpaused wall time, within 1 %, two intervals and 4 sigma? Prints both when not. */
bool rig_adds_up(const struct rig *r);

/*
 * Run until it adds up, three times at most: a process switch between clock and window is no fault of the backend.
 * The body starts over with the same arg. Returns whether it did; the last run's outcome stays.
 */
bool rig_run_until_it_adds_up(struct rig *r);

/* A body that works in fx_one for 100 ms. */
void rig_short_body(struct rig *r, unsigned thread, void *arg);

/* Processes that only burn CPU; they die with the caller. */
void rig_compete(unsigned n);
void rig_compete_end(void);

/* Timers of this process by the kernel's list; -1 when it has no such list. */
int rig_timers(void);

#endif
