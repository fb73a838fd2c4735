/*
 * arena.c - a list of mapped chunks, the newest is bumped.
 * Layer L0. Inside malloc and signal handlers: no heap, no locks; the owner serialises.
 */
#include "config.h"

#include "arena.h"

#include "kept.h"
#include "os.h"

#include "hotpath.h"

#define CHUNK_BYTES ((size_t)1 << 20)
#define ALIGN_BYTES ((size_t)16)

struct mew_arena_chunk {
	struct mew_arena_chunk *next;
	size_t size; /* whole map */
};

void mew_arena_init(struct mew_arena *a, size_t limit_bytes)
{
	*a = (struct mew_arena){ .limit = limit_bytes };
}

static bool grow(struct mew_arena *a, size_t bytes)
{
	struct mew_arena_chunk *chunk;
	size_t size = CHUNK_BYTES, need;

	if (!mew_add_size(bytes, sizeof *chunk + ALIGN_BYTES, &need))
		return false;
	if (need > size)
		size = (need + 4095) & ~(size_t)4095;
	if (a->huge && !mew_os_whole_huge(&size))
		return false;
	if (size < need || (a->limit != 0 && size > a->limit - a->mapped))
		return false;
	chunk = a->kept ? mew_kept_map(size) : a->huge ? mew_os_map_huge(size) : mew_os_map(size);
	if (chunk == NULL)
		return false;
	chunk->next = a->chunks;
	chunk->size = size;
	a->chunks = chunk;
	a->size = size;
	a->used = (sizeof *chunk + ALIGN_BYTES - 1) & ~(ALIGN_BYTES - 1);
	a->mapped += size;
	return true;
}

void *mew_arena_alloc(struct mew_arena *a, size_t bytes)
{
	size_t rounded;
	char *p;

	if (!mew_add_size(bytes, ALIGN_BYTES - 1, &rounded))
		return NULL;
	rounded &= ~(ALIGN_BYTES - 1);
	if ((a->chunks == NULL || rounded > a->size - a->used) && !grow(a, rounded))
		return NULL;
	p = (char *)a->chunks + a->used;
	a->used += rounded;
	return p;
}

void mew_arena_trim(struct mew_arena *a, void *piece, size_t bytes)
{
	a->used = (size_t)((char *)piece - (char *)a->chunks) + ((bytes + ALIGN_BYTES - 1) & ~(ALIGN_BYTES - 1));
}

void mew_arena_fini(struct mew_arena *a)
{
	struct mew_arena_chunk *chunk = a->chunks;

	while (chunk != NULL) {
		struct mew_arena_chunk *next = chunk->next;

		if (a->kept)
			mew_kept_unmap(chunk, chunk->size);
		else
			mew_os_unmap(chunk, chunk->size);
		chunk = next;
	}
	*a = (struct mew_arena){ .limit = a->limit, .huge = a->huge, .kept = a->kept };
}
