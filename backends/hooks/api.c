/*
 * api.c - arming, the self-test and the struct that libmew is given.
 * Below all layers; called by libmew outside windows, never inside malloc.
 */
#include "config.h"

#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int armed, fork_watched; /* atomic */

/*
 * Frees are switched first on the way in and last on the way out: a thread that already allocates through the armed
 * functions then also frees through them.
 */
static void route(const struct mew_malloc_family *to, bool frees_first)
{
	for (int step = 0; step < 2; step++) {
		if ((step == 0) == frees_first) {
			__atomic_store_n(&mew_hooks_now.do_free, to->do_free, __ATOMIC_RELEASE);
			__atomic_store_n(&mew_hooks_now.do_realloc, to->do_realloc, __ATOMIC_RELEASE);
			continue;
		}
		__atomic_store_n(&mew_hooks_now.do_malloc, to->do_malloc, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_calloc, to->do_calloc, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_posix_memalign, to->do_posix_memalign, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_aligned_alloc, to->do_aligned_alloc, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_memalign, to->do_memalign, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_valloc, to->do_valloc, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_pvalloc, to->do_pvalloc, __ATOMIC_RELEASE);
		__atomic_store_n(&mew_hooks_now.do_usable_size, to->do_usable_size, __ATOMIC_RELEASE);
	}
}

static void disarm(void)
{
	if (__atomic_exchange_n(&armed, 0, __ATOMIC_ACQ_REL))
		route(&mew_hooks_next, false);
}

/* The child has one thread and, of what other threads were in the middle of, only half. */
static void disarm_child(void)
{
	(void)mew_hooks_set_listener(NULL);
	disarm();
}

static int arm(const struct mew_malloc_family *family)
{
	if (!mew_hooks_resolve())
		return -1;
	if (!__atomic_load_n(&fork_watched, __ATOMIC_ACQUIRE)) {
		if (pthread_atfork(NULL, NULL, disarm_child) != 0)
			return -1;
		__atomic_store_n(&fork_watched, 1, __ATOMIC_RELEASE);
	}
	if (__atomic_exchange_n(&armed, 1, __ATOMIC_ACQ_REL))
		return -1;
	route(family, true);
	return 0;
}

/* --- the self-test ------------------------------------------------------------------------------------------------ */

#define PROBE_TEXT "a call that libc makes itself"

static MEW_HOOKS_TLS bool probe_reached;

static void *probe_malloc(size_t size)
{
	if (size == sizeof PROBE_TEXT)
		probe_reached = true;
	return mew_hooks_next.do_malloc(size);
}

static int selftest(void)
{
	struct mew_malloc_family probe;
	char *(*volatile copy)(const char *) = strdup; /* volatile: the call must really be made */
	char *text;

	if (!mew_hooks_resolve())
		return -1;
	probe = mew_hooks_next;
	probe.do_malloc = probe_malloc;
	probe_reached = false;
	if (arm(&probe) != 0)
		return -1;
	text = copy(PROBE_TEXT);
	disarm();
	free(text);
	if (text == NULL)
		return -1;
	return probe_reached;
}

/* --- what comes next ---------------------------------------------------------------------------------------------- */

static const char *next_path(void)
{
	Dl_info info;

	if (!mew_hooks_resolve() || dladdr((const void *)(uintptr_t)mew_hooks_next.do_malloc, &info) == 0 ||
	    info.dli_fname == NULL)
		return "";
	return info.dli_fname;
}

static int next_is_libc(void)
{
	uintptr_t libc_function = mew_hooks_find("gnu_get_libc_version");
	Dl_info next, libc;

	if (!mew_hooks_resolve() || libc_function == 0)
		return 0;
	if (dladdr((const void *)(uintptr_t)mew_hooks_next.do_malloc, &next) == 0 ||
	    dladdr((const void *)libc_function, &libc) == 0)
		return 0;
	return next.dli_fbase == libc.dli_fbase;
}

MEW_HOOKS_EXPORT const struct mew_hooks_api *mew_hooks_api(unsigned version)
{
	static struct mew_hooks_api api = {
		.version = MEW_HOOKS_VERSION,
		.size = sizeof(struct mew_hooks_api),
		.next = &mew_hooks_next,
		.next_path = next_path,
		.next_is_libc = next_is_libc,
		.arm = arm,
		.disarm = disarm,
		.selftest = selftest,
		.set_listener = mew_hooks_set_listener,
		.deepbind_dropped = mew_hooks_deepbind_dropped,
		.modules_unannounced = mew_hooks_modules_unannounced,
	};

	if (version != MEW_HOOKS_VERSION || !mew_hooks_resolve())
		return NULL;
	api.thread_lo = (uintptr_t)mew_hooks_thread_main;
	api.thread_hi = (uintptr_t)mew_hooks_thread_end;
	return &api;
}
