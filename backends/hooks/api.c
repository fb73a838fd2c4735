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
#include <sys/mman.h>

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
	mew_hooks_forget_listeners();
	mew_hooks_maps_disarm();
	(void)mew_hooks_pools_watch(NULL);
	disarm();
}

static bool watch_forks(void)
{
	if (__atomic_load_n(&fork_watched, __ATOMIC_ACQUIRE))
		return true;
	if (pthread_atfork(NULL, NULL, disarm_child) != 0)
		return false;
	__atomic_store_n(&fork_watched, 1, __ATOMIC_RELEASE);
	return true;
}

static int arm(const struct mew_malloc_family *family)
{
	if (!mew_hooks_resolve() || !watch_forks())
		return -1;
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

/* --- mappings and pools ------------------------------------------------------------------------------------------- */

static void *probe_map(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset)
{
	if (bytes == 0)
		probe_reached = true;
	return mew_hooks_maps_next.do_map(address, bytes, protection, flags, fd, offset);
}

/* Does the program's mmap lead here? An empty mapping is refused by the kernel, so the call changes nothing. */
static int arm_probe(bool is_libc)
{
	void *(*volatile map)(void *, size_t, int, int, int, off_t) = mmap; /* volatile: the call must really be made */
	static struct mew_map_family probe;
	int saved = errno;

	probe = mew_hooks_maps_next;
	probe.do_map = probe_map;
	probe_reached = false;
	if (!mew_hooks_maps_arm(&probe, is_libc))
		return -1;
	(void)map(NULL, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mew_hooks_maps_disarm();
	errno = saved;
	return probe_reached ? 0 : -2;
}

static int arm_maps(const struct mew_map_family *family)
{
	bool is_libc = next_is_libc();
	int refused;

	if (!mew_hooks_resolve() || !watch_forks())
		return -1;
	refused = arm_probe(is_libc);
	if (refused != 0)
		return refused;
	return mew_hooks_maps_arm(family, is_libc) ? 0 : -1;
}

static int watch_pools(const struct mew_pool_watch_ *watch)
{
	if (watch != NULL && !watch_forks())
		return -1;
	return mew_hooks_pools_watch(watch) ? 0 : -1;
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
		.next_maps = &mew_hooks_maps_next,
		.arm_maps = arm_maps,
		.disarm_maps = mew_hooks_maps_disarm,
		.watch_pools = watch_pools,
	};

	if (version != MEW_HOOKS_VERSION || !mew_hooks_resolve())
		return NULL;
	api.thread_lo = (uintptr_t)mew_hooks_thread_main;
	api.thread_hi = (uintptr_t)mew_hooks_thread_end;
	return &api;
}
