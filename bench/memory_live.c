/*
 * memory_live.c - many small blocks alive at once: taken in order, given back in another.
 * usage: memory_live [BLOCKS]     prints "live NS", CPU nanoseconds per block taken and given back; ten million by
 * default, which take half a GiB.
 */
#define _GNU_SOURCE 1

#include <stdio.h>
#include <stdlib.h>

#include "memory_window.h"

#define STRIDE 7919 /* prime: the order of the frees visits every block once */

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000000;
	unsigned char **blocks = n > 0 && n % STRIDE != 0 ? calloc(n, sizeof *blocks) : NULL;
	double begin;

	if (blocks == NULL) {
		(void)fprintf(stderr, "usage: memory_live [BLOCKS, no multiple of %d]\n", STRIDE);
		return 2;
	}
	bench_window("bench_window_open");
	begin = bench_cpu_ns();
	for (size_t i = 0; i < n; i++) {
		blocks[i] = malloc(16 + i % 32);
		if (blocks[i] == NULL)
			return 2;
		blocks[i][0] = 1;
	}
	for (size_t i = 0, at = 0; i < n; i++, at = (at + STRIDE) % n)
		free(blocks[at]);
	(void)printf("live %.3f\n", (bench_cpu_ns() - begin) / (double)n);
	bench_window("bench_window_close");
	free(blocks);
	return 0;
}
