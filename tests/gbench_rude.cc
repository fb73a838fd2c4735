// gbench_rude.cc - a Google Benchmark program with bad manners, one for each macro that gbench_rude.sh sets.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

__attribute__((noinline)) void *take_block(size_t bytes)
{
	void *block = malloc(bytes);

	benchmark::DoNotOptimize(block);
	return block;
}

static void first(benchmark::State &state)
{
	for (auto _ : state)
		free(take_block(24));
}
BENCHMARK(first);

static void second(benchmark::State &state)
{
#ifdef PRINTS
	printf("second/between\nthird\n");
	fflush(stdout);
#endif
#ifdef EXITS
	exit(3);
#endif
	for (auto _ : state) {
		free(take_block(24));
		free(take_block(8));
	}
}
BENCHMARK(second);

static void third(benchmark::State &state)
{
	for (auto _ : state) {
#ifdef CRASHES
		fprintf(stderr, "last words of %d\n", static_cast<int>(getpid()));
		abort();
#endif
		free(take_block(32));
	}
}
BENCHMARK(third);

static void fourth(benchmark::State &state)
{
	for (auto _ : state)
		benchmark::ClobberMemory();
}
BENCHMARK(fourth);

// the same program once more, in another environment
static int again(char **argv)
{
#ifdef FORGETS
	unsetenv("LD_PRELOAD");
#elif defined(REPLACES)
	setenv("LD_PRELOAD", "libm.so.6", 1);
#elif defined(CLEARS)
	clearenv();
#elif defined(ADDS)
	const char *old = getenv("LD_PRELOAD");
	const std::string both = std::string("libm.so.6") + (old != nullptr ? ":" : "") + (old != nullptr ? old : "");

	setenv("LD_PRELOAD", both.c_str(), 1);
#endif
	setenv("AGAIN", "yes", 1);
	execv("/proc/self/exe", argv);
	return 9;
}

int main(int argc, char **argv)
{
#ifdef REENTERS
	benchmark::MaybeReenterWithoutASLR(argc, argv); // first, as in BENCHMARK_MAIN()
#endif
#ifdef PRINTS
	printf("first/before\nfourth\n");
	fflush(stdout);
#endif
#ifdef DROPS
	if (setgid(65534) != 0 || setuid(65534) != 0)
		return 9;
#endif
#ifdef CLOSES
	for (int fd = 0; fd < 1024; fd++)
		close(fd);
#endif
#ifdef MOVES
	if (chdir("/") != 0)
		return 9;
#endif
#if defined(FORGETS) || defined(REPLACES) || defined(CLEARS) || defined(ADDS)
	if (getenv("AGAIN") == nullptr)
		return again(argv);
#else
	(void)again;
#endif
	benchmark::Initialize(&argc, argv);
	benchmark::RunSpecifiedBenchmarks();
	benchmark::Shutdown();
	return 0;
}
