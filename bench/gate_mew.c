/*
 * gate_mew.c - the kernels of bench/gate.py for mew: as cases of one program for --versus, and by the program's name
 * for the gate across processes.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include "gate_work.h"

/* Never copied into its callers: where two cases are said to be equal they have one loop, at one address. */
__attribute__((noinline)) static void arith_loop(struct mew_state *st, unsigned percent)
{
	MEW_LOOP(st) {
		uint64_t x = arithmetic(percent);

		mew_keep(x);
	}
}

__attribute__((noinline)) static void alloc_loop(struct mew_state *st, unsigned percent)
{
	MEW_LOOP(st)
		allocating(percent);
}

MEW_BENCHMARK(arith) { arith_loop(st, percent_of_name()); }
MEW_BENCHMARK(arith_a) { arith_loop(st, 0); }
MEW_BENCHMARK(arith_0) { arith_loop(st, 0); }
MEW_BENCHMARK(arith_1) { arith_loop(st, 1); }
MEW_BENCHMARK(arith_3) { arith_loop(st, 3); }
MEW_BENCHMARK(arith_elsewhere) /* the same work in a loop of its own: what its place in memory does */
{
	MEW_LOOP(st) {
		uint64_t x = arithmetic(0);

		mew_keep(x);
	}
}
MEW_BENCHMARK(alloc) { alloc_loop(st, percent_of_name()); }
MEW_BENCHMARK(alloc_a) { alloc_loop(st, 0); }
MEW_BENCHMARK(alloc_0) { alloc_loop(st, 0); }
MEW_BENCHMARK(alloc_1) { alloc_loop(st, 1); }
MEW_BENCHMARK(alloc_3) { alloc_loop(st, 3); }
MEW_BENCHMARK(alloc_elsewhere)
{
	MEW_LOOP(st)
		allocating(0);
}

MEW_MAIN()
