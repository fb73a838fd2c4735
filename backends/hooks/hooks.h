/*
 * hooks.h - the one struct through which libmew talks to libmew_hooks.
 * Below all layers: it knows libc alone. libmew finds mew_hooks_api() through a weak symbol; absent means "not
 * measured".
 */
#ifndef MEW_HOOKS_H
#define MEW_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "threads.h"

#define MEW_HOOKS_VERSION 1u

/*
 * The malloc family, each member with the contract of the function it is named after (names that hotpath.h lets pass).
 */
struct mew_malloc_family {
	void *(*do_malloc)(size_t size);
	void (*do_free)(void *block);
	void *(*do_calloc)(size_t n, size_t size);
	void *(*do_realloc)(void *block, size_t size);
	int (*do_posix_memalign)(void **out, size_t alignment, size_t size);
	void *(*do_aligned_alloc)(size_t alignment, size_t size);
	void *(*do_memalign)(size_t alignment, size_t size);
	void *(*do_valloc)(size_t size);
	void *(*do_pvalloc)(size_t size);
	size_t (*do_usable_size)(void *block);
};

/*
 * mmap, munmap and mremap, with their contracts. do_map takes the offset in bytes; target is mremap's fifth argument,
 * NULL without MREMAP_FIXED.
 */
struct mew_map_family {
	void *(*do_map)(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset);
	int (*do_unmap)(void *address, size_t bytes);
	void *(*do_remap)(void *address, size_t old_bytes, size_t bytes, int flags, void *target);
};

struct mew_pool_watch_; /* mew/pool.h */

struct mew_hooks_api {
	unsigned version; /* MEW_HOOKS_VERSION */
	size_t size;      /* of this struct; members are added at the end only */

	/* The allocator behind the hooks: complete, every member callable at any time. */
	const struct mew_malloc_family *next;
	/* File that provides it ("" when the loader does not say), and whether that is the C library itself. */
	const char *(*next_path)(void);
	int (*next_is_libc)(void);

	/*
	 * Route every call of the family to `family` (borrowed until disarm; every member set), or straight on again.
	 * A forked child runs disarmed. reallocarray arrives as do_realloc, cfree and the sized frees as do_free.
	 *
	 * Returns  0; -1 when armed already, or when the child's disarming cannot be registered
	 * Context  any thread, not signal, not malloc; calls already under way on other threads finish where they were
	 *          sent
	 */
	int (*arm)(const struct mew_malloc_family *family);
	void (*disarm)(void);

	/*
	 * Does a call that libc makes itself reach the hooks? Only then are they first in the process.
	 *
	 * Returns  1 it does, 0 it does not, -1 cannot be tried now (armed, or no memory)
	 * Context  any thread, not signal, not malloc; allocates and frees one string
	 */
	int (*selftest)(void);

	/*
	 * At most one listener, beside that of mew_threads_api; NULL takes it away. Returns 0, or -1 when another one
	 * is there. Context: any thread.
	 */
	int (*set_listener)(const struct mew_hooks_listener *listener);

	/* How often RTLD_DEEPBIND was taken off a dlopen(): such a library would have missed the hooks. */
	uint64_t (*deepbind_dropped)(void);
	/* dlopen() calls passed on without a modules_changed afterwards, because their result depends on the caller. */
	uint64_t (*modules_unannounced)(void);

	/* Code range of the frame that calls a thread's function: stacks of such threads end above it. */
	uintptr_t thread_lo, thread_hi;

	/* The system calls themselves: what an armed family passes on to. */
	const struct mew_map_family *next_maps;
	/*
	 * Route the mmap calls of everybody but the allocator and libc to `family` (borrowed until disarm; every member
	 * set), or straight on again. A forked child runs disarmed.
	 *
	 * Returns  0; -1 when armed already; -2 when another library's mmap comes first in the process
	 * Context  as for arm()
	 */
	int (*arm_maps)(const struct mew_map_family *family);
	void (*disarm_maps)(void);
	/*
	 * Send what programs announce through mew/pool.h to `watch` (must stay valid for good: calls may be under way),
	 * or to nobody (NULL). A forked child is not watched. Returns 0, or -1 when somebody else watches. Context: any
	 * thread.
	 */
	int (*watch_pools)(const struct mew_pool_watch_ *watch);
};

/*
 * Entry of the library.
 *
 * version  MEW_HOOKS_VERSION of the caller
 * Returns  the struct; NULL when this library does not speak that version
 * Context  any thread, malloc
 */
const struct mew_hooks_api *mew_hooks_api(unsigned version);

#endif
