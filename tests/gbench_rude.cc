// gbench_rude.cc - a Google Benchmark program with bad manners, one for each macro that gbench_rude.sh sets.
#include <benchmark/benchmark.h>

#include <csignal>
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

static long starts; // of the program, with this one

static void count_start()
{
#if defined(VANISHES) || defined(INTERRUPTS)
	FILE *count = fopen("starts", "a");

	if (count == nullptr || fputc('x', count) != 'x' || fflush(count) != 0)
		abort();
	starts = ftell(count);
	fclose(count);
#endif
}

static void third(benchmark::State &state)
{
#ifdef INTERRUPTS
	if (starts == 4) {
		kill(getppid(), SIGINT);
		sleep(60);
	}
#endif
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

#ifdef MANY
static void ends(benchmark::State &)
{
	abort();
}

// 1,500 of 75 bytes, which do not fit into one filter, and the second of which ends them
static const bool many = [] {
	for (int i = 1000; i < 2500; i++) {
		const std::string name = std::string(57, 'n') + std::to_string(i);

		benchmark::RegisterBenchmark(name.c_str(), i == 1001 ? ends : fourth)->Iterations(1);
	}
	return true;
}();
#endif

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
	count_start();
#ifdef VANISHES
	if (starts == 4 && unlink(argv[0]) != 0) // the list and three processes
		return 9;
#endif
#ifdef LEAVES
	printf("usage: measure FILE\n");
	fflush(stdout);
	_exit(0);
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
