/*
 * gate_gbench.cc - the kernels of bench/gate.py for Google Benchmark.
 */
#include <benchmark/benchmark.h>

#include "gate_work.h"

static void arith(benchmark::State &state)
{
	unsigned percent = percent_of_name();

	for (auto _ : state) {
		auto x = arithmetic(percent);
		benchmark::DoNotOptimize(x);
	}
}
BENCHMARK(arith);

static void alloc(benchmark::State &state)
{
	unsigned percent = percent_of_name();

	for (auto _ : state)
		allocating(percent);
}
BENCHMARK(alloc);

BENCHMARK_MAIN();
