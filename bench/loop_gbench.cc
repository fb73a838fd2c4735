// loop_gbench.cc - the rows of loop_mew.c with Google Benchmark, the peer.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

static const int64_t turns = 200000000, pairs = 300000;

static double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void empty(benchmark::State &state)
{
	double start = now();

	while (state.KeepRunning()) {
	}
	std::printf("empty_loop_ns %.4f\n", (now() - start) * 1e9 / double(turns));
}
BENCHMARK(empty)->Iterations(turns);

static void pause_pair(benchmark::State &state)
{
	double start = now();

	while (state.KeepRunning()) {
		state.PauseTiming();
		state.ResumeTiming();
	}
	std::printf("pause_pair_ns %.2f\n", (now() - start) * 1e9 / double(pairs));
}
BENCHMARK(pause_pair)->Iterations(pairs);

static void add(benchmark::State &state)
{
	unsigned long x = 1;

	while (state.KeepRunning()) {
		x += x;
		benchmark::DoNotOptimize(x);
	}
}
BENCHMARK(add);

static void nap(benchmark::State &state)
{
	const struct timespec ten_ms = { 0, 10000000 };

	while (state.KeepRunning())
		(void)nanosleep(&ten_ms, nullptr);
}
BENCHMARK(nap);

class silent : public benchmark::BenchmarkReporter {
	bool ReportContext(const Context &) override
	{
		return true;
	}
	void ReportRuns(const std::vector<Run> &) override
	{
	}
};

static double wall(const char *name)
{
	silent reporter;
	double start = now();

	benchmark::RunSpecifiedBenchmarks(&reporter, name);
	return now() - start;
}

int main(int argc, char **argv)
{
	benchmark::Initialize(&argc, argv);
	(void)wall("empty|pause_pair");
	std::printf("known_seconds %.4f\n", wall("add"));
	std::printf("sleep_seconds %.4f\n", wall("nap"));
	return 0;
}
