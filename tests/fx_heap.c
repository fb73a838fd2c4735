/*
 * fx_heap.c - a benchmark whose heap is known, which also measures itself from inside and tells of its privileges.
 * Test fixture of allocators.sh, which links it in many ways.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define KEPT 16u

/* one allocation of 100 bytes */
MEW_BENCHMARK(heap)
{
	MEW_LOOP(st) {
		void *block = malloc(100);

		mew_keep(block);
		free(block);
	}
}

/* every iteration leaves a mebibyte behind, until the loop is left */
MEW_BENCHMARK(grow)
{
	static void *kept[KEPT];
	size_t n = 0;

	MEW_LOOP(st) {
		free(kept[n % KEPT]);
		kept[n % KEPT] = malloc((size_t)1 << 20);
		mew_keep(kept[n % KEPT]);
		n++;
	}
	for (size_t i = 0; i < KEPT; i++) {
		free(kept[i]);
		kept[i] = NULL;
	}
}

#ifdef FAKE_MSAN /* stands for the run-time library, which works only when everything is built with it */
void __msan_init(void);
void __msan_init(void)
{
}
#endif

static int measure_inside(void)
{
	struct mew_memory_profiles *profiles = mew_memory_profile(mew_entries(), 10);
	const struct mew_memory_case *row = profiles != NULL ? mew_memory_find(profiles, "heap") : NULL;

	if (row == NULL)
		return 1;
	(void)printf("status %d, %llu allocations, reason: %s\n", (int)row->status,
		     (unsigned long long)row->total_allocations, row->reason != NULL ? row->reason : "none");
	mew_memory_free(profiles);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--inside") == 0)
		return measure_inside();
	if (argc > 1 && strcmp(argv[1], "--privileged") == 0)
		return printf("%s\n", getauxval(AT_SECURE) != 0 ? "privileged" : "ordinary") < 0;
	return mew_main(argc, argv);
}
