/*
 * threads.h - the struct through which libmew hears of new threads and modules: libmew_threads and libmew_hooks have
 * it. Below all layers: it knows libc alone. libmew finds mew_threads_api() through a weak symbol; of two libraries
 * that have it the first one in the process answers, and its wrappers are the ones that calls reach.
 */
#ifndef MEW_THREADS_H
#define MEW_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define MEW_THREADS_VERSION 1u

/* Who wants to hear of threads and modules; members may be NULL. Each call keeps errno as it was. */
struct mew_hooks_listener {
	void (*thread_start)(void);    /* on the new thread, before its function */
	void (*thread_exit)(void);     /* there, after its function or pthread_exit; TSD destructors follow */
	void (*modules_changed)(void); /* on the thread that called dlopen or dlclose, after it, without loader lock */
};

struct mew_threads_api {
	unsigned version; /* MEW_THREADS_VERSION */
	size_t size;      /* of this struct; members are added at the end only */

	/*
	 * At most one listener, beside that of mew_hooks_api; NULL takes it away. Returns 0, or -1 when another one is
	 * there. Context: any thread.
	 */
	int (*set_listener)(const struct mew_hooks_listener *listener);

	/* Do the program's calls of pthread_create come here? Context: any thread, not signal, not malloc. */
	int (*is_first)(void);

	/* dlopen() calls passed on without a modules_changed afterwards, because their result depends on the caller. */
	uint64_t (*modules_unannounced)(void);

	/* Code range of the frame that calls a thread's function: stacks of such threads end above it. */
	uintptr_t thread_lo, thread_hi;
};

/*
 * Entry of the library.
 *
 * version  MEW_THREADS_VERSION of the caller
 * Returns  the struct; NULL when this library does not speak that version
 * Context  any thread, not malloc
 */
const struct mew_threads_api *mew_threads_api(unsigned version);

#endif
