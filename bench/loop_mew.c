/*
 * loop_mew.c - what mew's loop costs and how long a result takes; the same rows as loop_gbench.cc.
 * Prints "row value" lines; bench/compare.sh runs both in turn and prints ratios.
 */
#include <mew.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURNS 200000000u
#define PAIRS 300000u

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void empty(struct mew_state *st, void *arg)
{
	double start = now();

	(void)arg;
	MEW_LOOP(st) {
	}
	if (mew_iterations(st) == TURNS)
		(void)printf("empty_loop_ns %.4f\n", (now() - start) * 1e9 / TURNS);
}

static void pairs(struct mew_state *st, void *arg)
{
	double start = now();

	(void)arg;
	MEW_LOOP(st) {
		mew_pause(st);
		mew_resume(st);
	}
	if (mew_iterations(st) == PAIRS)
		(void)printf("pause_pair_ns %.2f\n", (now() - start) * 1e9 / PAIRS);
}

static void add(struct mew_state *st, void *arg)
{
	unsigned long x = 1;

	(void)arg;
	MEW_LOOP(st) {
		x += x;
		mew_keep(x);
	}
}

static void nap(struct mew_state *st, void *arg)
{
	const struct timespec ten_ms = { 0, 10000000 };

	(void)arg;
	MEW_LOOP(st)
		(void)nanosleep(&ten_ms, NULL);
}

static double wall(const struct mew_entry *entry, double *width)
{
	const struct mew_entry entries[] = { *entry, { 0 } };
	double start = now(), spent;
	struct mew_results *r = mew_run(entries);
	const struct mew_result *row = mew_results_at(r, 0);

	spent = now() - start;
	if (row == NULL || row->status != MEW_OK) {
		(void)fprintf(stderr, "loop_mew: %s\n", row != NULL ? row->reason : mew_last_error()->text);
		exit(1);
	}
	*width = (row->median_high_ns - row->median_low_ns) / 2 / row->median_ns;
	mew_results_free(r);
	return spent;
}

int main(void)
{
	const struct mew_entry fixed[] = {
		{ .name = "empty", .run = empty, .iterations = TURNS },
		{ .name = "pairs", .run = pairs, .iterations = PAIRS },
		{ 0 },
	};
	const struct mew_entry one_ns = { .name = "add", .run = add }, sleeping = { .name = "nap", .run = nap };
	double width;

	mew_results_free(mew_run(fixed, .min_warmup_time = 1e-6));
	(void)printf("known_seconds %.4f\n", wall(&one_ns, &width));
	(void)printf("known_half_width_percent %.3f\n", width * 100);
	(void)printf("sleep_seconds %.4f\n", wall(&sleeping, &width));
	return 0;
}
