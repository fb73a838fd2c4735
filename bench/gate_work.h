/*
 * gate_work.h - the two kernels that all gates are tried on, with a known part of extra work.
 * No layer: bench/gate_mew.c and bench/gate_gbench.cc include it.
 */
#ifndef MEW_BENCH_GATE_WORK_H
#define MEW_BENCH_GATE_WORK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 2000u
#define BLOCKS 200u

/* Percent of extra work, from the end of the program's file name: "bench-3" does 3 % more. One file, one layout. */
static inline unsigned percent_of_name(void)
{
	char path[4096] = "";
	const char *dash;

	if (readlink("/proc/self/exe", path, sizeof path - 1) <= 0)
		abort();
	dash = strrchr(path, '-');
	return dash != NULL ? (unsigned)strtoul(dash + 1, NULL, 10) : 0;
}

static inline uint64_t arithmetic(unsigned percent)
{
	uint64_t x = 1;

	for (unsigned i = 0, n = STEPS + STEPS * percent / 100; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* Blocks of mixed sizes, half of them freed in another order than they came in. */
static inline void allocating(unsigned percent)
{
	unsigned n = BLOCKS + BLOCKS * percent / 100;
	void *kept[32] = { 0 };

	for (unsigned i = 0; i < n; i++) {
		unsigned slot = i * 7 % 32;

		free(kept[slot]);
		kept[slot] = malloc(16 + i * 40 % 1000);
		__asm__ volatile("" : : "r"(kept[slot]) : "memory");
	}
	for (unsigned i = 0; i < 32; i++)
		free(kept[i]);
}

#endif
