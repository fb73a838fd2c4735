/*
 * fx_cpu_work.c - functions that take a known time.
 * Test fixture of the CPU backend.
 */
#include "config.h"

#include "fx_cpu_work.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define GAP_TICKS 1500u /* an interrupt takes longer, one turn of the loop never does */

static uint64_t rate_per_us;

/* The counter and the clock at one moment: read again when something came in between. */
static uint64_t read_both(uint64_t *ns)
{
	struct timespec t;
	uint64_t before, after;

	do {
		before = fx_tsc();
		(void)clock_gettime(CLOCK_MONOTONIC, &t);
		after = fx_tsc();
	} while (after - before > GAP_TICKS);
	*ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return before;
}

static void measure_rate(void)
{
	uint64_t from_ns, ns, from = read_both(&from_ns), ticks;

	do
		ticks = read_both(&ns) - from;
	while (ns - from_ns < 50000000);
	rate_per_us = ticks * 1000 / (ns - from_ns);
}

uint64_t fx_us(uint64_t us)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, measure_rate);
	return us * rate_per_us;
}

/*
 * Work, not a deadline: gaps in which the processor did something else (a sample, another process) do not count as
 * done. With a deadline a sample would shorten the work it interrupts, and what it measures would depend on its own
 * cost.
 */
static inline __attribute__((always_inline)) uint64_t spin(uint64_t ticks)
{
	uint64_t from = fx_tsc(), last = from, now, done = 0;

	while (done < ticks) {
		now = fx_tsc();
		if (now - last < GAP_TICKS)
			done += now - last;
		last = now;
	}
	return last - from;
}

/* The asm differs, so that no compiler makes one function of equal ones. */
#define SPINNER(name, mark)                                                                                            \
	FX_IN(name) uint64_t name(uint64_t ticks)                                                                      \
	{                                                                                                              \
		__asm__ volatile("# " mark : : : "memory");                                                            \
		return spin(ticks);                                                                                    \
	}

#define WAITER(name, in, mark)                                                                                         \
	FX_IN(in) uint64_t name(uint64_t deadline)                                                                     \
	{                                                                                                              \
		uint64_t from = fx_tsc(), now;                                                                         \
                                                                                                                       \
		__asm__ volatile("# " mark : : : "memory");                                                            \
		do                                                                                                     \
			now = fx_tsc();                                                                                \
		while (now < deadline);                                                                                \
		return now - from;                                                                                     \
	}

WAITER(fx_one_until, fx_one, "1 until")
WAITER(fx_two_until, fx_two, "2 until")
SPINNER(fx_one, "1")
SPINNER(fx_two, "2")
SPINNER(fx_seven, "7")
SPINNER(fx_hog, "hog")
SPINNER(fx_after, "after")

static uint64_t slowness;

FX_IN(fx_compare) static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	(void)spin(slowness);
	return x < y ? -1 : x > y;
}

FX_IN(fx_sort) void fx_sort(int *numbers, size_t n, uint64_t compare_ticks)
{
	slowness = compare_ticks;
	qsort(numbers, n, sizeof *numbers, compare);
	__asm__ volatile("" : : : "memory"); /* no tail call: the frame must be there */
}

uint64_t fx_deep(uintptr_t low, size_t left, uint64_t ticks)
{
	volatile char room[512];
	uint64_t spent;

	room[0] = 1;
	if ((uintptr_t)&room[0] - low < left)
		spent = fx_one(ticks);
	else
		spent = fx_deep(low, left, ticks);
	return spent + room[0] - 1;
}
