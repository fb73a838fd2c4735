/*
 * memory_window.h - lets a plain workload be measured inside a window of the memory backend when one is in the process.
 * For bench/ alone. memory_window.c provides the two functions as a library to preload; without it they are absent.
 */
#ifndef MEW_BENCH_MEMORY_WINDOW_H
#define MEW_BENCH_MEMORY_WINDOW_H

#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

/* Call bench_window_open or bench_window_close where the process has them. */
static inline void bench_window(const char *name)
{
	void (*function)(void) = (void (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, name);

	if (function != NULL)
		function();
}

/* CPU nanoseconds of the calling thread: other processes on the machine do not count. */
static inline double bench_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#endif
