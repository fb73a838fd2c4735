/*
 * memory_deep.c - a program that allocates all the time, from deep stacks: mixed sizes, 4096 blocks alive, 12 frames,
 * 256 stacks. usage: memory_deep [OPERATIONS [THREADS [WORK]]]     prints "deep NS", CPU nanoseconds per operation (one
 * malloc, one free) WORK is rounds of arithmetic per operation, about 1 ns each: a program that also does something
 * else.
 */
#define _GNU_SOURCE 1

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory_window.h"

#define BLOCKS 4096
#define DEPTH 8 /* and four leaves below, and main and work above */
#define THREADS_MAX 64

struct worker {
	pthread_t id;
	long operations, work_rounds;
	uint64_t random;
	double ns;
	unsigned char *block[BLOCKS];
};

static uint64_t step(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

/* Most are small, some are larger, one in 128 is 16 KiB to 48 KiB. */
static size_t size_for(uint64_t r)
{
	unsigned kind = r % 128;

	r >>= 8;
	if (kind < 96)
		return 8 + r % 128;
	if (kind < 122)
		return 128 + r % 1024;
	return kind < 127 ? 2048 + r % 8192 : 16384 + r % 32768;
}

#define LEAF(name)                                                                                                     \
	__attribute__((noinline)) static void *name(size_t size)                                                       \
	{                                                                                                              \
		unsigned char *p = malloc(size);                                                                       \
                                                                                                                       \
		if (p != NULL)                                                                                         \
			p[0] = 1;                                                                                      \
		__asm__ volatile("" : "+r"(p)); /* keeps the call from becoming a jump */                             \
		return p;                                                                                              \
	}
LEAF(small_leaf)
LEAF(other_leaf)
LEAF(third_leaf)
LEAF(last_leaf)

__attribute__((noinline)) static void *choose_leaf(size_t size, unsigned which)
{
	void *p;

	switch (which % 4) {
	case 0: p = small_leaf(size); break;
	case 1: p = other_leaf(size); break;
	case 2: p = third_leaf(size); break;
	default: p = last_leaf(size); break;
	}
	__asm__ volatile("" : "+r"(p));
	return p;
}

static void *even(unsigned depth, size_t size, unsigned path);

/* Six levels choose one of two ways each: 64 upper stacks over 4 leaves. */
#define LEVEL(name, left, right)                                                                                       \
	__attribute__((noinline)) static void *name(unsigned depth, size_t size, unsigned path)                        \
	{                                                                                                              \
		void *p;                                                                                               \
                                                                                                                       \
		if (depth == 0)                                                                                        \
			p = choose_leaf(size, path);                                                                   \
		else if (depth <= 6 && (path >> (depth + 1) & 1) != 0)                                                 \
			p = left(depth - 1, size, path);                                                               \
		else                                                                                                   \
			p = right(depth - 1, size, path);                                                              \
		__asm__ volatile("" : "+r"(p));                                                                        \
		return p;                                                                                              \
	}
LEVEL(odd, even, even)
LEVEL(even, odd, even)

static void *work(void *data)
{
	struct worker *w = data;
	uint64_t mixed = w->random;
	double begin = bench_cpu_ns();

	for (long i = 0; i < w->operations; i++) {
		uint64_t r = step(&w->random);
		size_t slot = (r >> 20) % BLOCKS;
		void *fresh;

		for (long k = 0; k < w->work_rounds; k++)
			(void)step(&mixed);
		fresh = odd(DEPTH, size_for(r), (unsigned)(r >> 40) % 256);
		free(w->block[slot]);
		w->block[slot] = fresh;
	}
	w->ns = (bench_cpu_ns() - begin) / (double)w->operations;
	for (size_t i = 0; i < BLOCKS; i++)
		free(w->block[i]);
	__asm__ volatile("" : : "r"(mixed));
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	long operations = argc > 1 ? strtol(argv[1], NULL, 10) : 2000000;
	long threads = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	double ns = 0;

	if (operations < 1 || threads < 1 || threads > THREADS_MAX) {
		(void)fprintf(stderr, "usage: memory_deep [OPERATIONS [1..%d THREADS [WORK]]]\n", THREADS_MAX);
		return 2;
	}
	bench_window("bench_window_open");
	for (long i = 0; i < threads; i++) {
		workers[i].operations = operations;
		workers[i].work_rounds = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
		workers[i].random = 88172645463325252u + (uint64_t)i;
		if (threads == 1)
			(void)work(&workers[i]);
		else if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
			return 2;
	}
	for (long i = 0; i < threads; i++) {
		if (threads > 1)
			(void)pthread_join(workers[i].id, NULL);
		ns += workers[i].ns / (double)threads;
	}
	bench_window("bench_window_close");
	(void)printf("deep %.3f\n", ns);
	return 0;
}
