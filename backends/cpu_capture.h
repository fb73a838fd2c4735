/*
 * cpu_capture.h - one capture of the CPU backend, as its windows and its figures share it.
 * Layer L3. Private to cpu.c and cpu_figures.c.
 */
#ifndef MEW_CPU_CAPTURE_H
#define MEW_CPU_CAPTURE_H

#include "mew/backend.h"

#include "cpu_counters.h"
#include "cpu_crew.h"
#include "cpu_ladder.h"
#include "cpu_perfring.h"
#include "cpu_timer.h"

struct mew_cpu_bench_thread { /* one benchmark thread */
	struct mew_cpu_thread *sampled; /* NULL before thread_begin */
	uint64_t cpu_ns;                /* the thread's CPU clock at begin, then what passed until end */
	uint64_t cpu_pause_ns;          /* the clock when the pause began */
	uint64_t cpu_paused_ns;
	bool has_cpu;
	struct mew_cpu_counters counters;
};

struct mew_capture {
	struct mew_capture_config config;
	struct mew_cpu_window window;
	struct mew_cpu_bench_thread *threads;
	struct mew_cpu_drainer *drainer; /* of the ring engine, while the window is open */
	struct mew_cpu_crew *crew; /* threads that the case made itself */
	bool watches;         /* nobody opened a case: this capture watches for new threads itself */
	uint64_t cost_ns;     /* of one sample; 0: not known, see cost_why */
	const char *cost_why;
	uint64_t from_ns, until_ns; /* of the window: records before, or from then on (0: never) are left out */
	int taken;            /* the signal whose handler was not mew's any more when the window closed; 0: none */
	char why_engine[MEW_CPU_REASON_BYTES]; /* why no better one; "" for the best */
};

/* The backend's drain(). */
int mew_cpu_drain(struct mew_capture *c, struct mew_sink *sink, struct mew_error *err);

#endif
