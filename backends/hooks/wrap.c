/*
 * wrap.c - pthread_create, thrd_create, dlopen, dlclose: passed on unchanged, with a word to the listener of a capture.
 * Below all layers; any thread, not malloc. Without a listener a call is passed on by a jump. There is no wrapper of
 * fork: arm() registers a pthread_atfork handler, which also covers daemon() and forkpty(), whose fork no wrapper sees.
 * Compiled twice: into libmew_hooks, and with MEW_THREADS_ALONE into libmew_threads, which leaves malloc as it is.
 */
#include "config.h"

#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#define STARTS 128u

/* One of each struct that libmew talks through, so that a memory and a CPU capture can run side by side. */
enum { LISTENS_HOOKS, LISTENS_THREADS, LISTENERS };
static const struct mew_hooks_listener *listeners[LISTENERS];
static uint64_t modules_unannounced;
#ifndef MEW_THREADS_ALONE
static uint64_t deepbind_dropped;
#endif

static int set_listener(const struct mew_hooks_listener **listener, const struct mew_hooks_listener *wanted)
{
	const struct mew_hooks_listener *none = NULL;

	if (wanted == NULL) {
		__atomic_store_n(listener, NULL, __ATOMIC_RELEASE);
		return 0;
	}
	return __atomic_compare_exchange_n(listener, &none, wanted, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED) ? 0 : -1;
}

static int set_threads_listener(const struct mew_hooks_listener *wanted)
{
	return set_listener(&listeners[LISTENS_THREADS], wanted);
}

static bool somebody_listens(void)
{
	return __atomic_load_n(&listeners[LISTENS_HOOKS], __ATOMIC_RELAXED) != NULL ||
	       __atomic_load_n(&listeners[LISTENS_THREADS], __ATOMIC_RELAXED) != NULL;
}

#ifndef MEW_THREADS_ALONE
int mew_hooks_set_listener(const struct mew_hooks_listener *wanted)
{
	return set_listener(&listeners[LISTENS_HOOKS], wanted);
}

void mew_hooks_forget_listeners(void)
{
	for (int i = 0; i < LISTENERS; i++)
		__atomic_store_n(&listeners[i], NULL, __ATOMIC_RELEASE);
}

uint64_t mew_hooks_deepbind_dropped(void)
{
	return __atomic_load_n(&deepbind_dropped, __ATOMIC_RELAXED);
}
#endif

uint64_t mew_hooks_modules_unannounced(void)
{
	return __atomic_load_n(&modules_unannounced, __ATOMIC_RELAXED);
}

enum call { CALL_THREAD_START, CALL_THREAD_EXIT, CALL_MODULES_CHANGED };

static void tell_one(const struct mew_hooks_listener *l, enum call call)
{
	void (*function)(void) = NULL;
	int saved = errno;

	if (l == NULL)
		return;
	switch (call) {
	case CALL_THREAD_START: function = l->thread_start; break;
	case CALL_THREAD_EXIT: function = l->thread_exit; break;
	case CALL_MODULES_CHANGED: function = l->modules_changed; break;
	}
	if (function != NULL)
		function();
	errno = saved;
}

/*
 * The memory capture first on the way in and last on the way out: it then knows the thread whenever the other
 * allocates.
 */
static void tell(enum call call)
{
	for (int i = 0; i < LISTENERS; i++)
		tell_one(__atomic_load_n(&listeners[call == CALL_THREAD_EXIT ? LISTENERS - 1 - i : i],
					 __ATOMIC_ACQUIRE), call);
}

/* The wrapped function behind this library, looked up once; two threads that look at once find the same. */
static uintptr_t next_of(uintptr_t *slot, const char *name)
{
	uintptr_t found = __atomic_load_n(slot, __ATOMIC_RELAXED);

	if (found == 0) {
		found = mew_hooks_find(name);
		if (found == 0)
			mew_hooks_die("mew: the C library has no pthread_create, thrd_create, dlopen or dlclose\n");
		__atomic_store_n(slot, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* What a new thread needs to begin. Not from the heap: that would be an allocation the program never made. */
struct start {
	void *(*function)(void *);
	int (*c11_function)(void *); /* in place of the other one */
	void *argument;
	unsigned char taken;
};
static struct start starts[STARTS];

/* The raw call: a map of mew's own is none of the program's. */
static struct start *map_start(void)
{
	long page = syscall(SYS_mmap, NULL, sizeof(struct start), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0L);

	return page == -1 ? NULL : (struct start *)page;
}

static struct start *take_start(void)
{
	for (size_t i = 0; i < STARTS; i++)
		if (!__atomic_exchange_n(&starts[i].taken, 1, __ATOMIC_ACQUIRE))
			return &starts[i];
	return map_start();
}

static void give_start_back(struct start *s)
{
	if ((uintptr_t)s - (uintptr_t)starts < sizeof starts)
		__atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
	else
		(void)syscall(SYS_munmap, s, sizeof *s);
}

static void leave_thread(void *unused)
{
	(void)unused;
	tell(CALL_THREAD_EXIT);
}

/*
 * In a section of its own, with a label behind it, so that its range is known: it is the root of the stacks of a
 * thread. (__start_ and __stop_ symbols would do, but GNU ld exports them however hidden they are.)
 */
__asm__(".pushsection mew_thread_main, 1, \"ax\", @progbits\n"
	".globl mew_hooks_thread_end\n"
	".hidden mew_hooks_thread_end\n"
	"mew_hooks_thread_end:\n"
	".popsection");

__attribute__((noinline, section("mew_thread_main"))) void *mew_hooks_thread_main(void *data)
{
	struct start s = *(struct start *)data;
	void *result;

	give_start_back(data);
	tell(CALL_THREAD_START);
	pthread_cleanup_push(leave_thread, NULL);
	result = s.function != NULL ? s.function(s.argument) : (void *)(intptr_t)s.c11_function(s.argument);
	pthread_cleanup_pop(1);
	return result;
}

static int c11_main(void *data)
{
	return (int)(intptr_t)mew_hooks_thread_main(data);
}

/* Room for a start that the listener hears of; NULL: nobody listens, or there is no memory. */
static struct start *prepare_start(void *(*function)(void *), int (*c11_function)(void *), void *argument)
{
	struct start *s;

	if (!somebody_listens())
		return NULL;
	s = take_start();
	if (s != NULL) {
		s->function = function;
		s->c11_function = c11_function;
		s->argument = argument;
	}
	return s;
}

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int c11_create_fn(thrd_t *, thrd_start_t, void *);

MEW_HOOKS_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *),
				    void *argument)
{
	static uintptr_t next;
	create_fn *create = (create_fn *)next_of(&next, "pthread_create");
	struct start *s = prepare_start(function, NULL, argument);
	int error;

	if (s == NULL)
		return create(thread, attr, function, argument);
	error = create(thread, attr, mew_hooks_thread_main, s);
	if (error != 0)
		give_start_back(s);
	return error;
}

/* glibc makes it without a call of pthread_create that anybody could see. */
MEW_HOOKS_EXPORT int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	static uintptr_t next;
	c11_create_fn *create = (c11_create_fn *)next_of(&next, "thrd_create");
	struct start *s = prepare_start(NULL, function, argument);
	int result;

	if (s == NULL)
		return create(thread, function, argument);
	result = create(thread, c11_main, s);
	if (result != thrd_success)
		give_start_back(s);
	return result;
}

static int is_first(void)
{
	static const char here;

	return mew_hooks_module_base((uintptr_t)dlsym(RTLD_DEFAULT, "pthread_create")) ==
	       mew_hooks_module_base((uintptr_t)&here);
}

MEW_HOOKS_EXPORT const struct mew_threads_api *mew_threads_api(unsigned version)
{
	static struct mew_threads_api api = {
		.version = MEW_THREADS_VERSION,
		.size = sizeof(struct mew_threads_api),
		.set_listener = set_threads_listener,
		.is_first = is_first,
		.modules_unannounced = mew_hooks_modules_unannounced,
	};

	if (version != MEW_THREADS_VERSION)
		return NULL;
	api.thread_lo = (uintptr_t)mew_hooks_thread_main;
	api.thread_hi = (uintptr_t)mew_hooks_thread_end;
	return &api;
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

static bool has_search_path(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map->l_ld; d != NULL && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_RUNPATH || d->d_tag == DT_RPATH)
			return true;
	return false;
}

/*
 * glibc's dlopen looks at its return address: the caller's RUNPATH (and the RPATH of it) is searched for names without
 * a slash, and $ORIGIN is the caller's folder. From here it would see this library instead, which has neither.
 */
__attribute__((noinline)) static bool depends_on_caller(const char *path, const void *caller)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (path == NULL)
		return false;
	if (strchr(path, '$') != NULL)
		return true;
	if (strchr(path, '/') != NULL)
		return false;
	return dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map != NULL && has_search_path(map);
}

typedef void *dlopen_fn(const char *, int);
static uintptr_t next_dlopen;

static void *open_and_tell(const char *path, int flags)
{
	void *handle = ((dlopen_fn *)next_of(&next_dlopen, "dlopen"))(path, flags);

	if (handle != NULL && path != NULL)
		tell(CALL_MODULES_CHANGED);
	return handle;
}

MEW_HOOKS_EXPORT MEW_HOOKS_JUMPS void *dlopen(const char *path, int flags)
{
	dlopen_fn *open = (dlopen_fn *)next_of(&next_dlopen, "dlopen");

#ifndef MEW_THREADS_ALONE
	if ((flags & RTLD_DEEPBIND) != 0) {
		/* such a library binds to libc's malloc past the hooks, and past any other allocator */
		flags &= ~RTLD_DEEPBIND;
		(void)__atomic_fetch_add(&deepbind_dropped, 1, __ATOMIC_RELAXED);
	}
#endif
	if (!somebody_listens())
		MEW_HOOKS_JUMP return open(path, flags);
	if (!depends_on_caller(path, __builtin_return_address(0)))
		MEW_HOOKS_JUMP return open_and_tell(path, flags);
	(void)__atomic_fetch_add(&modules_unannounced, 1, __ATOMIC_RELAXED);
	MEW_HOOKS_JUMP return open(path, flags);
}

MEW_HOOKS_EXPORT int dlclose(void *handle)
{
	static uintptr_t next;
	int result = ((int (*)(void *))next_of(&next, "dlclose"))(handle);

	tell(CALL_MODULES_CHANGED);
	return result;
}
