/*
 * fx_family.c - loops that use every function of the malloc family, resize blocks, and share blocks with their pauses.
 * Test fixture of dhat.sh; built without the compiler's knowledge of malloc, so that every call is made. It leaves out
 * what DHAT means otherwise: malloc(0), a byte there, and blocks made outside the loop and resized in it.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define LARGE ((size_t)200000) /* the peak of the process lies in the loop */

MEW_BENCHMARK(family)
{
	MEW_LOOP(st) {
		void *aligned = NULL;
		void *blocks[] = {
			malloc(LARGE), calloc(7, 1001), realloc(NULL, 333), reallocarray(NULL, 3, 50),
			aligned_alloc(64, 640), memalign(32, 77), valloc(5000), strdup("a short text"),
		};

		if (posix_memalign(&aligned, 256, 1234) == 0)
			mew_keep(aligned);
		for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
			mew_keep(blocks[i]);
			free(blocks[i]);
		}
		free(aligned);
	}
}

/* A buffer that grows by half, is cut to a third and kept beside the next one. */
MEW_BENCHMARK(resized)
{
	char *kept = NULL;

	MEW_LOOP(st) {
		char *buffer = malloc(10);

		for (size_t size = 15; buffer != NULL && size < LARGE; size += size / 2)
			buffer = realloc(buffer, size);
		if (buffer != NULL)
			buffer = realloc(buffer, LARGE / 3);
		free(kept);
		kept = buffer;
	}
	free(kept);
}

/* A block of a pause is freed by the loop, and one of the loop in a pause. */
MEW_BENCHMARK(shared)
{
	void *taken = NULL, *handed = NULL;

	MEW_LOOP(st) {
		MEW_PAUSED(st) {
			free(handed);
			taken = malloc(4321);
		}
		free(taken);
		handed = malloc(LARGE);
		mew_keep(handed);
	}
	free(handed);
}

MEW_MAIN()
