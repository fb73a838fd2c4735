/*
 * fx_gate.c - one program that a gate compares with copies of itself: what a copy does follows from its file's name,
 * so that base and head differ in that and in nothing else.
 *
 * name holds   "slow" twice the work; "allocs" a block more; "fewer" a block less; "crash" dies in a sample; "leak" keeps
 *              a block; "idle" does nothing and says so to its check; "half" declares half the bytes; "fickle" allocates
 *              another number of blocks from process to process; "rude" prints, reads, and goes elsewhere; "loose" leaves
 *              a process in a session of its own; "stuck" does that and never ends a sample; "unable" skips; "late" does so from
 *              its ninth process on; "linger" hangs at its exit; "other" (compiled in) has further cases; "five" has turns of five iterations in one
 *              of them, not seven
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* readlink, also under -std=c11 */
#endif
#include <mew.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
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

/* For as long as FX_NAP says, which is its test's alone: so it can tell whether this process is still there. */
static void leave_process(void)
{
	const char *nap = getenv("FX_NAP");

	if (fork() != 0)
		return;
	(void)setsid();
	(void)execl("/bin/sleep", "sleep", nap != NULL ? nap : "79", (char *)NULL);
	_exit(127);
}

static void be_rude(void)
{
	char line[64];

	for (int i = 0; i < 5000; i++)
		(void)printf("a program that prints much more than anybody wants to read, %d\n", i);
	if (fgets(line, sizeof line, stdin) != NULL || chdir("/") != 0)
		abort();
}

static void die(void)
{
	(void)fprintf(stderr, "first words\n\nlast words\n\n");
	(void)raise(SIGKILL);
}

/* How many processes asked this before, which a file counts. */
static unsigned earlier_processes(void)
{
	static unsigned count;
	static bool is_known;
	FILE *f;

	if (is_known)
		return count;
	f = fopen("processes", "a+");
	if (f == NULL)
		abort();
	while (fgetc(f) != EOF)
		count++;
	(void)fputc('x', f);
	(void)fclose(f);
	is_known = true;
	return count;
}

/* From process to process: base 4, head 5, base 5, head 4. */
static unsigned fickle_blocks(void)
{
	unsigned n = earlier_processes() % 4;

	return n == 1 || n == 2 ? 5 : 4;
}

static const char *did_it(struct mew_state *st, void *arg)
{
	(void)st;
	(void)arg;
	return is_named("idle") ? "nothing was decoded" : NULL;
}

__attribute__((destructor)) static void linger(void)
{
	while (is_named("linger"))
		(void)pause();
}

MEW_BENCHMARK(spin, .expect = did_it)
{
	uint64_t n = is_named("slow") ? 2 * WORK : WORK, done = 0;
	bool dies = is_named("crash"), is_stuck = is_named("stuck");

	if (is_named("unable"))
		mew_skip(st, "no such processor");
	if (is_named("late") && earlier_processes() >= 8)
		mew_skip(st, "no such file any more");
	if (is_named("rude"))
		be_rude();
	if (is_stuck || is_named("loose"))
		leave_process();
	MEW_LOOP(st) {
		uint64_t x = work(n);

		while (is_stuck)
			(void)pause();

		mew_keep(x);
		if (dies && ++done == 20)
			die();
	}
}

MEW_BENCHMARK(blocks)
{
	unsigned n = is_named("allocs") ? 5 : is_named("fewer") ? 3 : is_named("fickle") ? fickle_blocks() : 4;
	bool keeps = is_named("leak");

	MEW_LOOP(st) {
		for (unsigned i = 0; i < n; i++) {
			void *p = malloc(64);

			mew_keep(p);
			if (!keeps || i != 0)
				free(p);
		}
	}
	mew_set_bytes(st, is_named("half") ? 128 : 256);
}

#ifdef FX_OTHER
MEW_BENCHMARK(further)
{
	MEW_LOOP(st) {
		mew_clobber();
	}
}

MEW_BENCHMARK(batch)
{
	uint64_t batch = is_named("five") ? 5 : 7, n = batch * (is_named("slow") ? 2 * WORK : WORK);

	MEW_LOOP_BATCH(st, batch) {
		uint64_t x = work(n);

		mew_keep(x);
	}
}
#endif

MEW_MAIN()
