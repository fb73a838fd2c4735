/*
 * hook_family.h - the hooks that count a block by its size alone, and the table of the whole family.
 * Layer L3, a template. Context: malloc. The includer defines these first, and hook_free, hook_realloc and
 * hook_posix_memalign besides:
 *
 *   HOOK(call, size)   the body of a hook: `call` on the next allocator, whose block of `size` bytes then counts
 *   NEXT               the next allocator's family
 */

static void *hook_malloc(size_t size)
{
	HOOK(do_malloc(size), size);
}

static void *hook_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		bytes = SIZE_MAX; /* fails below, and counts as failed */
	HOOK(do_calloc(n, size), bytes);
}

static void *hook_aligned_alloc(size_t alignment, size_t size)
{
	HOOK(do_aligned_alloc(alignment, size), size);
}

static void *hook_memalign(size_t alignment, size_t size)
{
	HOOK(do_memalign(alignment, size), size);
}

static void *hook_valloc(size_t size)
{
	HOOK(do_valloc(size), size);
}

static void *hook_pvalloc(size_t size)
{
	HOOK(do_pvalloc(size), size);
}

static size_t hook_usable_size(void *block)
{
	return NEXT.do_usable_size(block);
}

#define MEW_HEAP_FAMILY                                                                                                \
	{                                                                                                              \
		.do_malloc = hook_malloc, .do_free = hook_free, .do_calloc = hook_calloc, .do_realloc = hook_realloc,  \
		.do_posix_memalign = hook_posix_memalign, .do_aligned_alloc = hook_aligned_alloc,                      \
		.do_memalign = hook_memalign, .do_valloc = hook_valloc, .do_pvalloc = hook_pvalloc,                    \
		.do_usable_size = hook_usable_size,                                                                    \
	}
