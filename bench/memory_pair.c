/*
 * memory_pair.c - the cheapest thing an allocator does: a block of 64 bytes, taken and given back.
 * usage: memory_pair [PAIRS [THREADS]]     prints "hot NS batch NS", CPU nanoseconds per pair
 * "hot" frees each block at once; "batch" takes 256 and then frees them. Medians over blocks of equal size, mean of
 * threads.
 */
#define _GNU_SOURCE 1

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory_window.h"

#define SAMPLES 11
#define BATCH 256
#define BYTES 64
#define THREADS_MAX 64

struct worker {
	pthread_t id;
	long pairs;
	double hot_ns, batch_ns;
};

static void *(*volatile take)(size_t) = malloc;
static void (*volatile give)(void *) = free;

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double time_hot(long pairs)
{
	double begin = bench_cpu_ns();

	for (long i = 0; i < pairs; i++)
		give(take(BYTES));
	return (bench_cpu_ns() - begin) / (double)pairs;
}

static double time_batch(long pairs)
{
	void *blocks[BATCH];
	long rounds = pairs / BATCH + 1;
	double begin = bench_cpu_ns();

	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < BATCH; k++)
			blocks[k] = take(BYTES);
		for (int k = 0; k < BATCH; k++)
			give(blocks[k]);
	}
	return (bench_cpu_ns() - begin) / (double)(rounds * BATCH);
}

static void *work(void *data)
{
	struct worker *w = data;
	double hot[SAMPLES], batch[SAMPLES];

	(void)time_hot(2000);
	for (int i = 0; i < SAMPLES; i++) {
		hot[i] = time_hot(w->pairs / SAMPLES + 1);
		batch[i] = time_batch(w->pairs / SAMPLES + 1);
	}
	qsort(hot, SAMPLES, sizeof hot[0], by_value);
	qsort(batch, SAMPLES, sizeof batch[0], by_value);
	w->hot_ns = hot[SAMPLES / 2];
	w->batch_ns = batch[SAMPLES / 2];
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	long pairs = argc > 1 ? strtol(argv[1], NULL, 10) : 4000000, threads = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	double hot = 0, batch = 0;

	if (pairs < 1 || threads < 1 || threads > THREADS_MAX) {
		(void)fprintf(stderr, "usage: memory_pair [PAIRS [1..%d THREADS]]\n", THREADS_MAX);
		return 2;
	}
	bench_window("bench_window_open");
	for (long i = 0; i < threads; i++) {
		workers[i].pairs = pairs;
		if (threads == 1)
			(void)work(&workers[i]);
		else if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
			return 2;
	}
	for (long i = 0; i < threads; i++) {
		if (threads > 1)
			(void)pthread_join(workers[i].id, NULL);
		hot += workers[i].hot_ns / (double)threads;
		batch += workers[i].batch_ns / (double)threads;
	}
	bench_window("bench_window_close");
	(void)printf("hot %.3f batch %.3f\n", hot, batch);
	return 0;
}
