/*
 * resolve.c - find the allocator behind the hooks on the first call, whoever makes it and however early.
 * Below all layers; runs inside malloc, possibly before any constructor. While dlsym() is at work its own allocations
 * come from a small static buffer. hotpath.h is absent: the members named here are its poisoned functions.
 */
#include "config.h"

#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_BYTES ((size_t)16384)
#define BOOT_ALIGNMENT ((size_t)16)

/* --- memory before there is an allocator ------------------------------------------------------------------------- */

static unsigned char boot_memory[BOOT_BYTES] __attribute__((aligned(4096)));
static size_t boot_used;

void *mew_hooks_boot_alloc(size_t size, size_t alignment)
{
	size_t old = __atomic_load_n(&boot_used, __ATOMIC_RELAXED), begin, end;

	if (alignment < BOOT_ALIGNMENT)
		alignment = BOOT_ALIGNMENT;
	do {
		/* the size is stored in front, for realloc and usable size */
		begin = (old + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
		if (size > BOOT_BYTES || begin > BOOT_BYTES - size)
			mew_hooks_die("libmew_hooks: the memory for start-up is used up; please report this program\n");
		end = begin + size;
	} while (!__atomic_compare_exchange_n(&boot_used, &old, end, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*(size_t *)(void *)(boot_memory + begin - sizeof(size_t)) = size;
	return boot_memory + begin;
}

bool mew_hooks_boot_owns(const void *block)
{
	return (uintptr_t)block - (uintptr_t)boot_memory < BOOT_BYTES;
}

bool mew_hooks_boot_was_used(void)
{
	return __atomic_load_n(&boot_used, __ATOMIC_RELAXED) != 0;
}

static size_t boot_size(const void *block)
{
	return ((const size_t *)block)[-1];
}

/* --- what is put in place of a missing or foreign member ---------------------------------------------------------- */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void *memalign_by_posix(size_t alignment, size_t size)
{
	void *block = NULL;
	int error;

	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	error = mew_hooks_next.do_posix_memalign(&block, alignment, size);
	if (error != 0) {
		errno = error;
		return NULL;
	}
	return block;
}

static int posix_by_memalign(void **out, size_t alignment, size_t size)
{
	int saved = errno, error;
	void *block;

	if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
		return EINVAL;
	block = mew_hooks_next.do_memalign(alignment, size);
	error = errno;
	errno = saved;
	if (block == NULL)
		return error;
	*out = block;
	return 0;
}

static void *valloc_by_memalign(size_t size)
{
	return mew_hooks_next.do_memalign(page_bytes(), size);
}

static void *pvalloc_by_memalign(size_t size)
{
	size_t page = page_bytes();

	if (size > SIZE_MAX - (page - 1)) {
		errno = ENOMEM;
		return NULL;
	}
	return mew_hooks_next.do_memalign(page, (size + page - 1) & ~(page - 1));
}

/* --- blocks of the boot buffer, once there are any ---------------------------------------------------------------- */

static struct mew_malloc_family provider; /* as found; differs from `next` only when boot blocks exist */

static void checked_free(void *block)
{
	if (!mew_hooks_boot_owns(block))
		provider.do_free(block);
}

static void *checked_realloc(void *block, size_t size)
{
	size_t old;
	void *moved;

	if (!mew_hooks_boot_owns(block))
		return provider.do_realloc(block, size);
	old = boot_size(block);
	moved = provider.do_malloc(size);
	if (moved != NULL)
		memcpy(moved, block, old < size ? old : size);
	return moved;
}

static size_t checked_usable_size(void *block)
{
	return mew_hooks_boot_owns(block) ? boot_size(block) : provider.do_usable_size(block);
}

/* --- looking up --------------------------------------------------------------------------------------------------- */

struct mew_malloc_family mew_hooks_next;

/* A function of this name from one file; 0 when the next one is another file's. */
static uintptr_t find_beside(const char *name, uintptr_t base)
{
	uintptr_t found = mew_hooks_find(name);

	return found != 0 && mew_hooks_module_base(found) == base ? found : 0;
}

/*
 * An aligned allocation ends in free(), so it must come from the file that free comes from: Debian's jemalloc 5.3.0 has
 * no pvalloc, and the one behind it is libc's, whose blocks jemalloc's free cannot take. What is missing is built from
 * what is there. A library that wraps malloc and free without any aligned function leaves those to the next file, as
 * without us.
 */
static void fill_gaps(uintptr_t base)
{
	uintptr_t posix = find_beside("posix_memalign", base), member = find_beside("memalign", base);

	if (posix == 0 && member == 0)
		return;
	if (posix == 0)
		provider.do_posix_memalign = posix_by_memalign;
	if (member == 0)
		provider.do_memalign = memalign_by_posix;
	if (find_beside("aligned_alloc", base) == 0)
		provider.do_aligned_alloc = provider.do_memalign;
	if (find_beside("valloc", base) == 0)
		provider.do_valloc = valloc_by_memalign;
	if (find_beside("pvalloc", base) == 0)
		provider.do_pvalloc = pvalloc_by_memalign;
}

static uintptr_t need(const char *name)
{
	uintptr_t found = mew_hooks_find(name);

	if (found == 0)
		mew_hooks_die("libmew_hooks: no complete allocator follows in the search order: the hooks need the C "
			      "library as a shared one, so link without -static, or without them\n");
	return found;
}

static void look_up(void)
{
	provider.do_malloc = (void *(*)(size_t))need("malloc");
	provider.do_free = (void (*)(void *))need("free");
	provider.do_calloc = (void *(*)(size_t, size_t))need("calloc");
	provider.do_realloc = (void *(*)(void *, size_t))need("realloc");
	provider.do_posix_memalign = (int (*)(void **, size_t, size_t))need("posix_memalign");
	provider.do_aligned_alloc = (void *(*)(size_t, size_t))need("aligned_alloc");
	provider.do_memalign = (void *(*)(size_t, size_t))need("memalign");
	provider.do_valloc = (void *(*)(size_t))need("valloc");
	provider.do_usable_size = (size_t(*)(void *))need("malloc_usable_size");
	provider.do_pvalloc = (void *(*)(size_t))mew_hooks_find("pvalloc"); /* musl has none */
	if (provider.do_pvalloc == NULL)
		provider.do_pvalloc = pvalloc_by_memalign;
	fill_gaps(mew_hooks_module_base((uintptr_t)provider.do_free));
	mew_hooks_next = provider;
	if (mew_hooks_boot_was_used()) {
		mew_hooks_next.do_free = checked_free;
		mew_hooks_next.do_realloc = checked_realloc;
		mew_hooks_next.do_usable_size = checked_usable_size;
	}
}

enum phase { PHASE_NEW, PHASE_LOOKING, PHASE_DONE };
static int phase = PHASE_NEW;
static MEW_HOOKS_TLS bool looking;

bool mew_hooks_resolve(void)
{
	int expected = PHASE_NEW, saved = errno;

	if (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) == PHASE_DONE)
		return true;
	if (looking)
		return false;
	looking = true;
	if (__atomic_compare_exchange_n(&phase, &expected, PHASE_LOOKING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		look_up();
		mew_hooks_now = mew_hooks_next;
		__atomic_store_n(&phase, PHASE_DONE, __ATOMIC_RELEASE);
	} else {
		while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) != PHASE_DONE)
			(void)sched_yield();
	}
	looking = false;
	errno = saved;
	return true;
}

/* --- the first functions `now` points to -------------------------------------------------------------------------- */

static void *boot_malloc(size_t size)
{
	return mew_hooks_resolve() ? mew_hooks_now.do_malloc(size) : mew_hooks_boot_alloc(size, BOOT_ALIGNMENT);
}

static void boot_free(void *block)
{
	/* nothing was allocated outside the boot buffer yet, or by this thread before it began to look */
	if (block != NULL && !mew_hooks_boot_owns(block) && mew_hooks_resolve())
		mew_hooks_now.do_free(block);
}

static void *boot_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (mew_hooks_resolve())
		return mew_hooks_now.do_calloc(n, size);
	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return mew_hooks_boot_alloc(bytes, BOOT_ALIGNMENT);
}

static void *boot_realloc(void *block, size_t size)
{
	void *moved;
	size_t old;

	if (mew_hooks_resolve())
		return mew_hooks_now.do_realloc(block, size);
	moved = mew_hooks_boot_alloc(size, BOOT_ALIGNMENT);
	if (block != NULL) {
		old = boot_size(block);
		memcpy(moved, block, old < size ? old : size);
	}
	return moved;
}

static void *boot_memalign(size_t alignment, size_t size)
{
	return mew_hooks_resolve() ? mew_hooks_now.do_memalign(alignment, size) : mew_hooks_boot_alloc(size, alignment);
}

static void *boot_aligned_alloc(size_t alignment, size_t size)
{
	return mew_hooks_resolve() ? mew_hooks_now.do_aligned_alloc(alignment, size)
				   : mew_hooks_boot_alloc(size, alignment);
}

static int boot_posix_memalign(void **out, size_t alignment, size_t size)
{
	if (mew_hooks_resolve())
		return mew_hooks_now.do_posix_memalign(out, alignment, size);
	*out = mew_hooks_boot_alloc(size, alignment);
	return 0;
}

static void *boot_valloc(size_t size)
{
	return mew_hooks_resolve() ? mew_hooks_now.do_valloc(size) : mew_hooks_boot_alloc(size, page_bytes());
}

static void *boot_pvalloc(size_t size)
{
	return mew_hooks_resolve() ? mew_hooks_now.do_pvalloc(size) : mew_hooks_boot_alloc(size, page_bytes());
}

static size_t boot_usable_size(void *block)
{
	if (mew_hooks_resolve())
		return mew_hooks_now.do_usable_size(block);
	return block != NULL ? boot_size(block) : 0;
}

struct mew_malloc_family mew_hooks_now = {
	.do_malloc = boot_malloc,
	.do_free = boot_free,
	.do_calloc = boot_calloc,
	.do_realloc = boot_realloc,
	.do_posix_memalign = boot_posix_memalign,
	.do_aligned_alloc = boot_aligned_alloc,
	.do_memalign = boot_memalign,
	.do_valloc = boot_valloc,
	.do_pvalloc = boot_pvalloc,
	.do_usable_size = boot_usable_size,
};
