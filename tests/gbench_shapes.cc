// gbench_shapes.cc - the usual shapes of Google Benchmark programs, each with a known number of allocations.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <unistd.h>

// what an iteration allocates is asked for here, so that a test can look for the name in stacks
__attribute__((noinline)) void *take_block(size_t bytes)
{
	void *block = malloc(bytes);

	benchmark::DoNotOptimize(block);
	return block;
}

static void one_malloc(benchmark::State &state)
{
	free(take_block(999)); // before the loop
	for (auto _ : state)
		free(take_block(24));
	free(take_block(999)); // behind it
}
BENCHMARK(one_malloc);

static void keep_running(benchmark::State &state)
{
	while (state.KeepRunning())
		free(take_block(24));
}
BENCHMARK(keep_running);

static void batch(benchmark::State &state)
{
	while (state.KeepRunningBatch(7))
		for (int i = 0; i < 7; i++)
			free(take_block(24));
}
BENCHMARK(batch)->Iterations(100); // overshoots to 105

static void no_malloc(benchmark::State &state)
{
	for (auto _ : state)
		benchmark::ClobberMemory();
}
BENCHMARK(no_malloc);

static void sized(benchmark::State &state)
{
	for (auto _ : state) {
		void *first = take_block(static_cast<size_t>(state.range(0)));
		void *second = take_block(static_cast<size_t>(state.range(1)));

		free(first);
		free(second);
	}
	state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sized)->Args({ 100, 28 })->Args({ 1000, 24 });
BENCHMARK(sized)->ArgNames({ "first", "second" })->Args({ 3, 5 });

static void paused(benchmark::State &state)
{
	for (auto _ : state) {
		state.PauseTiming();
		free(take_block(4096));
		state.ResumeTiming();
		free(take_block(10));
	}
}
BENCHMARK(paused)->Iterations(500);

static void leaks(benchmark::State &state)
{
	for (auto _ : state)
		benchmark::DoNotOptimize(take_block(32)); // NOLINT: the growth is what is tested
}
BENCHMARK(leaks)->Iterations(50);

// bodies that wait for each other hang when one of them is called alone
static std::atomic<int> arrived;
static void threads(benchmark::State &state)
{
	if (state.thread_index() == 0)
		free(take_block(1));
	for (auto _ : state)
		free(take_block(16));
	arrived++;
	while (arrived % state.threads() != 0)
		std::this_thread::yield();
}
BENCHMARK(threads)->Threads(2)->Iterations(200)->UseRealTime();

static void four(benchmark::State &state)
{
	free(take_block(100));
	for (auto _ : state)
		free(take_block(16));
	free(take_block(100));
}
BENCHMARK(four)->Threads(4)->Iterations(50);

// what is allocated around a body, inside the window of Google Benchmark's own memory pass
static void *around;
static void set_up(const benchmark::State &)
{
	around = malloc(5000);
}
static void tear_down(const benchmark::State &)
{
	free(around);
	free(take_block(7000));
}
static void prepared(benchmark::State &state)
{
	for (auto _ : state)
		free(take_block(20));
}
BENCHMARK(prepared)->Setup(set_up)->Teardown(tear_down)->Iterations(30);

class Box : public benchmark::Fixture {
public:
	void SetUp(const benchmark::State &) override
	{
		kept = malloc(50);
	}
	void TearDown(const benchmark::State &) override
	{
		free(kept);
	}
	void *kept = nullptr;
};
BENCHMARK_DEFINE_F(Box, use)(benchmark::State &state)
{
	for (auto _ : state)
		free(take_block(40));
}
BENCHMARK_REGISTER_F(Box, use)->Iterations(64);

template <int N> static void several(benchmark::State &state)
{
	for (auto _ : state)
		for (int i = 0; i < N; i++)
			free(take_block(8));
}
BENCHMARK_TEMPLATE(several, 3)->Iterations(40);

static void manual(benchmark::State &state)
{
	for (auto _ : state) {
		free(take_block(12));
		state.SetIterationTime(0.001);
	}
}
BENCHMARK(manual)->UseManualTime()->Iterations(30);

static void repeated(benchmark::State &state)
{
	for (auto _ : state)
		free(take_block(12));
}
BENCHMARK(repeated)->Repetitions(3)->Iterations(30);
BENCHMARK(repeated)->Name("aggregated")->Repetitions(3)->Iterations(30)->ReportAggregatesOnly();

static void grows(benchmark::State &state)
{
	for (auto _ : state)
		for (int64_t i = 0; i < state.range(0); i++)
			free(take_block(8));
	state.SetComplexityN(state.range(0));
}
BENCHMARK(grows)->Arg(1)->Arg(4)->Complexity(benchmark::oN);

#ifdef FAILING
static void fails_inside(benchmark::State &state)
{
	for (auto _ : state) {
		free(take_block(12));
		state.SkipWithError("no such input");
		break;
	}
}
BENCHMARK(fails_inside);

static void fails_before(benchmark::State &state)
{
	state.SkipWithError("nothing to do");
	for (auto _ : state)
		free(take_block(12));
}
BENCHMARK(fails_before);

static void fails_on_a_thread(benchmark::State &state)
{
	if (state.thread_index() == 1) {
		state.SkipWithError("thread 1 is late");
		return;
	}
	for (auto _ : state)
		free(take_block(12));
}
BENCHMARK(fails_on_a_thread)->Threads(2)->Iterations(5);

static void crashes(benchmark::State &state)
{
	for (auto _ : state) {
		fprintf(stderr, "last words\n");
		abort();
	}
}
BENCHMARK(crashes);

static void leaves(benchmark::State &state)
{
	for (auto _ : state)
		exit(0);
}
BENCHMARK(leaves);

static void lasts(benchmark::State &state)
{
	for (auto _ : state)
		for (;;)
			sleep(1);
}
BENCHMARK(lasts);
#endif

#ifdef RUDE
// closes what it did not open, goes elsewhere, and writes where results may go
static void rude(benchmark::State &state)
{
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
	if (chdir("/") != 0)
		abort();
	for (auto _ : state)
		free(take_block(24));
	printf("rude/name\n");
}
BENCHMARK(rude)->Iterations(10);
#endif

#ifdef SKIPS
static void skipped(benchmark::State &state)
{
	state.SkipWithMessage("no such machine");
	for (auto _ : state)
		free(take_block(24));
}
BENCHMARK(skipped);
#endif

static void after(benchmark::State &state)
{
	for (auto _ : state)
		free(take_block(24));
}
BENCHMARK(after)->Iterations(20);

int main(int argc, char **argv)
{
#ifdef RUDE
	printf("before/all\n");
#endif
#ifdef REENTERS
	benchmark::MaybeReenterWithoutASLR(argc, argv);
#endif
	benchmark::Initialize(&argc, argv);
	benchmark::RunSpecifiedBenchmarks();
	benchmark::Shutdown();
	return ENDS_WITH;
}
