/*
 * fx_bench.c - a benchmark program with well-behaved and hostile cases, for the tests of the command.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const labels[] = { "small", "large", NULL };

MEW_BENCHMARK_NAMED(fine, "good/fine", .tags = "quick plain")
{
	volatile unsigned x = 1;

	MEW_LOOP(st)
		x = x * 3 + 1;
}

MEW_BENCHMARK_NAMED(family, "good/family", .cases = labels, .tags = "quick")
{
	size_t n = mew_case_index(st) == 0 ? 10 : 1000;

	MEW_LOOP(st)
		for (size_t i = 0; i < n; i++)
			mew_keep(i);
	mew_set_items(st, (double)n);
}

MEW_BENCHMARK_NAMED(talks, "good/talks")
{
	(void)printf("set-up talks on stdout\n");
	(void)fprintf(stderr, "set-up talks on stderr\n");
	MEW_LOOP(st)
		mew_clobber();
}

MEW_BENCHMARK_NAMED(threads, "good/threads", .threads = 2)
{
	MEW_LOOP(st)
		mew_clobber();
}

MEW_BENCHMARK_NAMED(heap, "good/heap")
{
	MEW_LOOP(st) {
		void *a = malloc(100), *b = malloc(100), *c = malloc(100);

		mew_keep(a);
		mew_keep(b);
		mew_keep(c);
		free(a);
		free(b);
		free(c);
	}
}

MEW_BENCHMARK_NAMED(crash, "bad/crash")
{
	(void)printf("last words\n");
	MEW_LOOP(st)
		(void)raise(SIGSEGV);
}

MEW_BENCHMARK_NAMED(leaves, "bad/exit")
{
	MEW_LOOP(st)
		exit(0);
}

MEW_BENCHMARK_NAMED(endless, "bad/endless")
{
	volatile int always = 1;

	MEW_LOOP(st)
		while (always)
			;
}

MEW_BENCHMARK_NAMED(child, "bad/child")
{
	MEW_LOOP(st) {
		if (fork() == 0)
			for (;;)
				(void)pause();
		for (;;)
			(void)pause();
	}
}

MEW_BENCHMARK_NAMED(early, "bad/early")
{
	MEW_LOOP(st)
		break;
}

static void cannot_open(void *data)
{
	(void)data;
	(void)fprintf(stderr, "cannot open data.bin\n");
	exit(1);
}

MEW_BENCHMARK_NAMED(unready, "bad/setup", .setup = cannot_open)
{
	MEW_LOOP(st)
		mew_clobber();
}

static void cannot_close(void *data)
{
	(void)data;
	(void)fprintf(stderr, "cannot flush data.bin\n");
	_exit(3);
}

MEW_BENCHMARK_NAMED(untidy, "bad/teardown", .teardown = cannot_close)
{
	MEW_LOOP(st)
		mew_clobber();
}

MEW_BENCHMARK_NAMED(half, "bad/half", .cases = labels, .tags = "halves", .threads = 2)
{
	if (mew_case_index(st) == 1)
		_exit(9);
	MEW_LOOP(st)
		mew_clobber();
}

static int phase; /* enum mew_phase of the block that runs, where the hook is asked for */

/* Ends the process in the phase that the environment names. */
MEW_BENCHMARK_NAMED(late, "odd/late", .threads = 2)
{
	const char *last = getenv("FX_BENCH_LAST");

	if (mew_thread_index(st) == 0) {
		(void)fprintf(stderr, "late talks\n");
		if (last != NULL && strcmp(last, mew_phase_name(phase)) == 0)
			_exit(9);
	}
	MEW_LOOP(st)
		mew_clobber();
}

/* What the second thread says counts as much; a pass that is not timed runs fewer iterations. */
MEW_BENCHMARK_NAMED(counts, "odd/counts", .threads = 2)
{
	MEW_LOOP(st)
		mew_clobber();
	if (mew_thread_index(st) == 0)
		return;
	mew_set_label(st, "of the second");
	mew_set_counter(st, "turns", (double)mew_iterations(st), MEW_COUNTER_PLAIN);
}

MEW_BENCHMARK_NAMED(skipped, "skip/skipped")
{
	mew_skip(st, "no such device");
}

static void *sleeper(void *arg)
{
	(void)sleep(20);
	return arg;
}

MEW_BENCHMARK_NAMED(forgets, "odd/forgets-a-thread")
{
	pthread_t id;
	pthread_attr_t detached;

	(void)pthread_attr_init(&detached);
	(void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	MEW_LOOP(st)
		mew_clobber();
	(void)pthread_create(&id, &detached, sleeper, NULL);
	(void)pthread_attr_destroy(&detached);
}

static int began;

static int hook_begin(const struct mew_phase_info *info, void *data)
{
	char text[32];

	(void)data;
	phase = info->phase;
	(void)snprintf(text, sizeof text, "%d", ++began);
	return mew_phase_set(info, "blocks", text) == MEW_OK ? 0 : 1;
}

static const struct mew_hook counting = { .name = "counting", .begin = hook_begin };
MEW_HOOK(counting);

/* Interrupts the command in the repetition that the environment names, and stays there. */
static int interrupt(const struct mew_phase_info *info, void *data)
{
	const char *repetition = getenv("FX_BENCH_INTERRUPT");

	(void)data;
	if (repetition != NULL && info->phase == MEW_PHASE_MEASUREMENT_VALUE &&
	    info->repetition == (unsigned)atoi(repetition)) {
		(void)kill(getppid(), SIGINT);
		(void)sleep(60);
	}
	return 0;
}

static const struct mew_hook interrupting = { .name = "interrupting", .begin = interrupt };
MEW_HOOK(interrupting);

MEW_MAIN();
