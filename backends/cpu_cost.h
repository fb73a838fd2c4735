/*
 * cpu_cost.h - what one sample of the timer steals from the thread it lands on.
 * Layer L3. Private to the CPU backend; outside windows.
 */
#ifndef MEW_CPU_COST_H
#define MEW_CPU_COST_H

#include "base.h"

/*
 * Median time that one tick takes from its thread: interrupt, signal, walk and return. Measured by sampling the calling
 * thread while it does nothing but read the clock, at the first call in this process, which lasts 20 ms (60 on a busy
 * machine); later calls return the same.
 *
 * why      returned: NULL, or one sentence that lives for ever: why it cannot be had
 * Returns  nanoseconds; 0 when it cannot be had
 * Context  runner thread, outside windows; takes a slot and a timer of its own while it measures
 */
uint64_t mew_cpu_cost_ns(const char **why);

/*
 * Judge what was measured: the median of n times, sorted on return, if it is known well enough.
 *
 * stolen_ns  n times; changed
 * Returns    nanoseconds; 0 below 50 values, or when the 95 % interval of the median is wider than half of it
 * Context    any thread
 */
uint64_t mew_cpu_cost_median(double *stolen_ns, size_t n);

#endif
