/*
 * family.c - the names that the hooks put in front of the allocator, and the api behind them.
 * Below all layers; every call of the process comes through here. No version script on this library: with a version
 * node the calls that libc and other libraries make themselves would not arrive.
 *
 * Disarmed, each function is one indirect jump and leaves no frame (gcc 12, -O2: `malloc: jmp *mew_hooks_now(%rip)`);
 * the pointers are plain, aligned words for that reason: an atomic load would cost a second instruction and order
 * nothing more. hotpath.h is absent here because it poisons the very names that are defined.
 *
 * operator new and delete are not here. libstdc++'s call malloc and are counted there; those of jemalloc, tcmalloc and
 * mimalloc do not. Exporting them for everybody would cost more than it gives: a program that links libstdc++
 * statically would take these for its own, and then have none behind them that can throw. They are in libmew_hooks_cxx
 * (cxx.c), preloaded where such an allocator is.
 */
#include "config.h"

#include "hooks.h"

#include <malloc.h>
#include <stdlib.h>

#include "internal.h"

/* Old libc headers no longer declare the first, and only C23's declare the others. */
void cfree(void *block);
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

/* A static link takes this file for malloc alone; the weak reference in libmew would not bring the api along. */
__attribute__((used)) static const struct mew_hooks_api *(*const keep_api)(unsigned version) = mew_hooks_api;

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *malloc(size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_malloc(size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void free(void *block)
{
	mew_hooks_now.do_free(block);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *calloc(size_t n, size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_calloc(n, size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *realloc(void *block, size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_realloc(block, size);
}

/*
 * An overflowing product asks for what no allocator has: the failure, its errno and its count are then realloc's own.
 */
MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *reallocarray(void *block, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX;
	return mew_hooks_now.do_realloc(block, bytes);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS int posix_memalign(void **out, size_t alignment, size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_posix_memalign(out, alignment, size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *aligned_alloc(size_t alignment, size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_aligned_alloc(alignment, size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *memalign(size_t alignment, size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_memalign(alignment, size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *valloc(size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_valloc(size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *pvalloc(size_t size)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_pvalloc(size);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS size_t malloc_usable_size(void *block)
{
	MEW_HOOKS_JUMP return mew_hooks_now.do_usable_size(block);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void cfree(void *block)
{
	mew_hooks_now.do_free(block);
}

/* The sizes are hints for the allocator and never trusted for accounting. */
MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void free_sized(void *block, size_t size)
{
	(void)size;
	mew_hooks_now.do_free(block);
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void free_aligned_sized(void *block, size_t alignment, size_t size)
{
	(void)alignment;
	(void)size;
	mew_hooks_now.do_free(block);
}
