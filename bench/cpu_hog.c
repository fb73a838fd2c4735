/*
 * cpu_hog.c - a program that only computes, 24 frames deep, without frame pointers: what a sampler adds to it.
 * usage: cpu_hog [ROUNDS]     MEW_BENCH_MODE is "none" (default), "empty" (a timer with an empty handler) or "mew",
 * or "mew-cpu" for mew's CPU clock; MEW_BENCH_US the interval. Prints "cpu_s S", CPU seconds of its thread, and of a sampler in the process also
 * "received R", samples over samples due, and for mew "frames N", the deepest stack.
 */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"
#include "mew/backend.h"
#include "os.h"
#include "sink.h"

#define DEPTH 16 /* and what is above and below: 24 frames in all */

extern const struct mew_backend mew_backend_cpu;

static uint32_t table[1 << 14];
static uint64_t interval_ns, cpu_ns;

/* --- the work ---------------------------------------------------------------------------------------------------- */

MEW_NOINLINE static double kernel(unsigned k)
{
	uint32_t h = k * 2654435761u;
	double a = k;

	for (int i = 0; i < 400; i++) {
		h = h * 1664525u + 1013904223u;
		a = (a + table[h >> 18] * 1e-9) * 0.999 + 1.0;
	}
	return a;
}

/* What is used behind the call keeps each frame. */
MEW_NOINLINE static double work(int depth, unsigned k)
{
	volatile double kept[4];
	double sum = 0;

	kept[depth & 3] = k;
	if (depth > 1)
		return work(depth - 1, k ^ (unsigned)depth) + kept[depth & 3];
	for (unsigned i = 0; i < 40; i++)
		sum += kernel(k + i);
	return sum + sqrt(kept[depth & 3] + 3.0);
}

MEW_NOINLINE static double run(unsigned rounds)
{
	double sum = 0;

	for (unsigned i = 0; i < rounds; i++)
		sum += work(DEPTH + 1, i);
	return sum;
}

/* Prints the CPU time; returns the wall time in nanoseconds. */
static uint64_t run_timed(unsigned rounds)
{
	uint64_t wall = mew_os_now_ns(), cpu = mew_os_thread_cpu_ns();
	volatile double sum = run(rounds);

	(void)sum;
	cpu_ns = mew_os_thread_cpu_ns() - cpu;
	wall = mew_os_now_ns() - wall;
	printf("cpu_s %.6f\n", (double)cpu_ns * 1e-9);
	return wall;
}

static void print_received(double samples)
{
	printf("received %.4f\n", samples * (double)interval_ns / (double)cpu_ns);
}

/* --- under an empty handler -------------------------------------------------------------------------------------- */

static volatile uint64_t signals;

static void do_nothing(int number)
{
	(void)number;
	signals++;
}

static int run_empty(unsigned rounds)
{
	struct itimerspec spec = { { 0, (long)interval_ns }, { 0, (long)interval_ns } };
	struct sigaction action = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;

	if (sigaction(SIGUSR1, &action, NULL) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
	    timer_settime(timer, 0, &spec, NULL) != 0) {
		perror("cpu_hog: timer");
		return 2;
	}
	(void)run_timed(rounds);
	(void)timer_delete(timer);
	print_received((double)signals);
	return 0;
}

/* --- under mew --------------------------------------------------------------------------------------------------- */

static void check(int status, const struct mew_error *err)
{
	if (status == MEW_OK)
		return;
	(void)fprintf(stderr, "cpu_hog: %s\n", err->text);
	exit(2);
}

static uint32_t deepest(const struct mew_model *m)
{
	uint32_t frames = 0;

	for (size_t i = 0; i < m->nstacks; i++)
		frames = m->stacks[i].depth > frames ? m->stacks[i].depth : frames;
	return frames;
}

static int run_sampled(unsigned rounds, enum mew_clock clock)
{
	struct mew_capture_config config = { .pass = MEW_PASS_CPU, .threads = 1, .interval_ns = interval_ns,
					     .clock = clock };
	struct mew_model *model = mew_model_new();
	struct mew_sink sink = { .model = model, .kind = MEW_KIND_CPU, .iterations = 1 };
	struct mew_capture *capture;
	struct mew_error err;

	sink.row = model != NULL ? mew_model_case(model, "hog", NULL) : NULL;
	if (sink.row == NULL || mew_model_row(model, sink.row, MEW_KIND_CPU) == NULL)
		return 2;
	check(mew_backend_cpu.open(&capture, &config, &err), &err);
	check(mew_backend_cpu.thread_begin(capture, 0, &err), &err);
	check(mew_backend_cpu.begin(capture, &err), &err);
	sink.window_ns = run_timed(rounds);
	mew_backend_cpu.end(capture);
	mew_backend_cpu.thread_end(capture, 0);
	check(mew_backend_cpu.drain(capture, &sink, &err), &err);
	mew_backend_cpu.close(capture);
	print_received((double)sink.row->cpu.sample_count);
	printf("frames %u\n", (unsigned)deepest(model));
	mew_model_free(model);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20000;
	const char *mode = getenv("MEW_BENCH_MODE"), *us = getenv("MEW_BENCH_US");

	interval_ns = (us != NULL ? strtoull(us, NULL, 10) : 100) * 1000;
	if (rounds == 0 || interval_ns == 0 || interval_ns >= 1000000000) {
		(void)fprintf(stderr, "usage: MEW_BENCH_US=1..999999 cpu_hog [ROUNDS]\n");
		return 2;
	}
	for (uint32_t i = 0; i < MEW_COUNTOF(table); i++)
		table[i] = i * 77;
	if (mode != NULL && strcmp(mode, "empty") == 0)
		return run_empty(rounds);
	if (mode != NULL && strcmp(mode, "mew") == 0)
		return run_sampled(rounds, MEW_CLOCK_WALL);
	if (mode != NULL && strcmp(mode, "mew-cpu") == 0)
		return run_sampled(rounds, MEW_CLOCK_CPU);
	(void)run_timed(rounds);
	return 0;
}
