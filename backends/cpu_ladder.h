/*
 * cpu_ladder.h - which engine a CPU capture uses, and why no better one.
 * Layer L3. Private to the CPU backend; outside windows.
 */
#ifndef MEW_CPU_LADDER_H
#define MEW_CPU_LADDER_H

#include "cpu_timer.h"

#define MEW_CPU_REASON_BYTES 512

/* "timer", "perf", "cpu-timer" or "ring". */
const char *mew_cpu_engine_name(int engine);

/*
 * Is this a value of MEW_SAMPLER? NULL and "" are the default.
 *
 * Returns  MEW_OK; MEW_E_INVALID with text
 */
int mew_cpu_sampler_check(const char *name, struct mew_error *err);

/*
 * Find the best engine for a clock: each is tried on the calling thread until one has really sent its signal. The
 * one without signals is tried first, but only where MEW_SAMPLER asks for it.
 *
 * only     enum mew_cpu_engine: try this one alone; MEW_CPU_ENGINE_BEST: all, in their order
 * engine   returned
 * reason   returned: why those before it do not work here, with the remedy; "" for the first
 * Returns  MEW_OK; MEW_E_DENIED or MEW_E_UNSUPPORTED when none works; MEW_E_INVALID when `only` is none of the clock's
 * Context  runner thread, after mew_cpu_signal_take()
 */
int mew_cpu_ladder(enum mew_clock clock, int only, int *engine, char reason[MEW_CPU_REASON_BYTES],
		   struct mew_error *err);

#endif
