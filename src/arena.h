/*
 * arena.h - bump memory from the kernel, with a limit; never calls malloc.
 * Layer L0.
 */
#ifndef MEW_ARENA_H
#define MEW_ARENA_H

#include "base.h"

struct mew_arena_chunk;

struct mew_arena {
	struct mew_arena_chunk *chunks; /* newest first */
	size_t used, size;              /* of the newest chunk */
	size_t mapped, limit;           /* bytes taken from the kernel; 0 limit: none */
	bool huge; /* may be set before the first use: chunks of 2 MiB in huge pages, for what will be filled */
	bool kept; /* the same: chunks of kept memory (kept.h) */
};

/* An empty arena that maps nothing yet. limit_bytes 0 means none. Context: any thread. */
void mew_arena_init(struct mew_arena *a, size_t limit_bytes);

/*
 * Memory, aligned to 16 bytes, that lives until mew_arena_fini(); zeroed, but for what mew_arena_trim() gave back
 * before.
 *
 * Returns  NULL when the limit or the kernel refuses
 * Context  one thread at a time; inside malloc or a signal handler when the caller makes it so
 */
void *mew_arena_alloc(struct mew_arena *a, size_t bytes);

/*
 * Give the end of the newest piece back, when more was asked for than was needed: what comes next begins there.
 *
 * piece    what mew_arena_alloc() returned last
 * bytes    that stay; 0: none
 */
void mew_arena_trim(struct mew_arena *a, void *piece, size_t bytes);

/* Give everything back; the arena is empty and usable again. */
void mew_arena_fini(struct mew_arena *a);

#endif
