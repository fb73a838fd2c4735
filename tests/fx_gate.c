/*
 * fx_gate.c - one program that a gate compares with copies of itself: what a copy does follows from its file's name,
 * so that base and head differ in that and in nothing else.
 *
 * name holds   "slow" twice the work; "allocs" a block more; "fewer" a block less; "crash" dies in a sample; "leak" keeps
 *              a block; "idle" does nothing and says so to its check; "other" (compiled in) has further cases
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* readlink, also under -std=c11 */
#endif
#include <mew.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORK 2000u

static bool is_named(const char *part)
{
	static char path[4096];

	if (path[0] == '\0' && readlink("/proc/self/exe", path, sizeof path - 1) <= 0)
		abort();
	return strstr(strrchr(path, '/'), part) != NULL;
}

static uint64_t work(uint64_t n)
{
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		mew_keep(x);
	}
	return x;
}

static const char *did_it(struct mew_state *st, void *arg)
{
	(void)st;
	(void)arg;
	return is_named("idle") ? "nothing was decoded" : NULL;
}

MEW_BENCHMARK(spin, .expect = did_it)
{
	uint64_t n = is_named("slow") ? 2 * WORK : WORK, done = 0;
	bool dies = is_named("crash");

	MEW_LOOP(st) {
		uint64_t x = work(n);

		mew_keep(x);
		if (dies && ++done == 20)
			(void)raise(SIGKILL);
	}
}

MEW_BENCHMARK(blocks)
{
	unsigned n = is_named("allocs") ? 5 : is_named("fewer") ? 3 : 4;
	bool keeps = is_named("leak");

	MEW_LOOP(st) {
		for (unsigned i = 0; i < n; i++) {
			void *p = malloc(64);

			mew_keep(p);
			if (!keeps || i != 0)
				free(p);
		}
	}
}

#ifdef FX_OTHER
MEW_BENCHMARK(further)
{
	MEW_LOOP(st) {
		mew_clobber();
	}
}
#endif

MEW_MAIN()
