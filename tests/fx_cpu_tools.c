/*
 * fx_cpu_tools.c - a benchmark program whose profile is known: a kernel inlined into two callers, and five functions.
 * Test fixture of t_cpu_tools, which finds lines by the words in capitals.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What the compiler knows it makes a clone for, and perf shows the clone's name. */
static inline unsigned long hidden(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n;
}

static inline __attribute__((always_inline)) void kernel(unsigned long n) /* line: KERNEL */
{
	for (unsigned long i = 0; i < n; i++) __asm__ volatile("" : "+r"(i)); /* line: KERNEL_LOOP */
}

__attribute__((noinline)) static void first_caller(unsigned long n)
{
	kernel(3 * n);
	__asm__ volatile("# first" : : : "memory");
}

__attribute__((noinline)) static void second_caller(unsigned long n)
{
	kernel(n);
	__asm__ volatile("# second" : : : "memory");
}

/* What each caller took, as the last call of the body saw it, goes into the file that MEW_FX_TRUTH names. */
static void tell(uint64_t first, uint64_t second)
{
	const char *path = getenv("MEW_FX_TRUTH");
	FILE *to = path != NULL ? fopen(path, "w") : NULL;

	if (to == NULL)
		return;
	(void)fprintf(to, "%llu %llu\n", (unsigned long long)first, (unsigned long long)second);
	(void)fclose(to);
}

MEW_BENCHMARK(inlined)
{
	uint64_t first = 0, second = 0;

	MEW_LOOP(st) {
		uint64_t start = now_ns(), middle;

		first_caller(hidden(100000));
		middle = now_ns();
		second_caller(hidden(100000));
		first += middle - start;
		second += now_ns() - middle;
	}
	tell(first, second);
}

#define WORKER(name)                                                                                                   \
	__attribute__((noinline)) static void name(unsigned long n)                                                    \
	{                                                                                                              \
		for (unsigned long i = 0; i < n; i++)                                                                  \
			__asm__ volatile("# " #name : "+r"(i));                                                        \
		__asm__ volatile("" : : : "memory");                                                                   \
	}
WORKER(work_a)
WORKER(work_b)
WORKER(work_c)
WORKER(work_d)
WORKER(work_e)

MEW_BENCHMARK(five)
{
	MEW_LOOP(st) {
		work_a(hidden(70000));
		work_b(hidden(50000));
		work_c(hidden(36000));
		work_d(hidden(24000));
		work_e(hidden(20000));
	}
}

MEW_MAIN()
