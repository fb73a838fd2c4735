/*
 * arena.c - an allocator of the program's own, which tells mew what it hands out: the memory pass then shows the pool
 * "arena" (by_pool), where the heap's figures are 0: the chunk behind it is there before the loop.
 */
#include <mew.h>
#include <mew/pool.h>

#include <stdlib.h>
#include <string.h>

struct arena {
	char *chunk;
	size_t used, size;
};

static struct mew_pool pool = MEW_POOL("arena");

static void *arena_take(struct arena *a, size_t size)
{
	size_t rounded = (size + 15) & ~(size_t)15;
	void *block;

	if (rounded > a->size - a->used)
		return NULL;
	block = a->chunk + a->used;
	a->used += rounded;
	mew_pool_alloc(&pool, block, size);
	return block;
}

static void arena_reset(struct arena *a)
{
	a->used = 0;
	mew_pool_reset(&pool);
}

/* Forty strings of an arena that is emptied after each turn. */
MEW_BENCHMARK(strings)
{
	static const char text[] = "a string of an arena";
	struct arena a = { malloc(4096), 0, 4096 };

	if (a.chunk == NULL) {
		mew_fail(st, "out of memory for the arena");
		return;
	}
	MEW_LOOP(st) {
		for (int i = 0; i < 40; i++) {
			char *copy = arena_take(&a, sizeof text);

			if (copy != NULL)
				memcpy(copy, text, sizeof text);
			mew_keep(copy);
		}
		arena_reset(&a);
	}
	free(a.chunk);
}

MEW_MAIN()
