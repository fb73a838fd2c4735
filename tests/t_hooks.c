/*
 * t_hooks.c - libmew_hooks: arming, the self-test, and wrappers that change nothing but tell the listener.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "fx_alloc_rig.h"
#include "hooks_link.h"

static const struct mew_hooks_api *api;

/* --- before main -------------------------------------------------------------------------------------------------- */

static void *early;

/* Runs before ordinary constructors, of this program and of cmocka. */
__attribute__((constructor(101))) static void allocate_early(void)
{
	early = realloc(calloc(3, 50), 400);
	free(NULL);
}

static void test_blocks_from_before_main(void **state)
{
	(void)state;
	assert_non_null(early);
	assert_true(malloc_usable_size(early) >= 400);
	early = realloc(early, 100000);
	assert_non_null(early);
	free(early);
}

/* --- the struct --------------------------------------------------------------------------------------------------- */

static void test_unknown_versions_get_nothing(void **state)
{
	(void)state;
	assert_non_null(mew_hooks_api(MEW_HOOKS_VERSION));
	assert_null(mew_hooks_api(MEW_HOOKS_VERSION + 1));
	assert_int_equal(api->version, MEW_HOOKS_VERSION);
	assert_int_equal(api->size, sizeof *api);
}

static void test_calls_inside_libc_reach_the_hooks(void **state)
{
	(void)state;
	assert_int_equal(api->selftest(), 1);
}

static void test_next_is_the_c_library(void **state)
{
	(void)state;
	assert_int_equal(api->next_is_libc(), 1);
	assert_non_null(strstr(api->next_path(), "libc"));
}

static unsigned seen;

static void *count_malloc(size_t size)
{
	seen++;
	return api->next->do_malloc(size);
}

static void test_armed_and_disarmed(void **state)
{
	struct mew_malloc_family family = *api->next;
	void *volatile p;

	(void)state;
	family.do_malloc = count_malloc;
	seen = 0;
	assert_int_equal(api->arm(&family), 0);
	p = malloc(10);
	api->disarm();
	assert_int_equal(seen, 1);
	free(p);
	p = malloc(10);
	free(p);
	assert_int_equal(seen, 1);
}

static void test_armed_twice_is_refused(void **state)
{
	struct mew_malloc_family family = *api->next;

	(void)state;
	assert_int_equal(api->arm(&family), 0);
	assert_int_equal(api->arm(&family), -1);
	assert_int_equal(api->selftest(), -1);
	api->disarm();
	assert_int_equal(api->selftest(), 1);
}

static void test_a_forked_child_is_disarmed(void **state)
{
	struct mew_malloc_family family = *api->next;
	void *volatile p;
	int status = 0;
	pid_t child;

	(void)state;
	family.do_malloc = count_malloc;
	assert_int_equal(api->arm(&family), 0);
	seen = 0;
	child = fork();
	if (child == 0) {
		p = malloc(10);
		free(p);
		_exit(seen == 0 ? 0 : 1);
	}
	p = malloc(10);
	free(p);
	api->disarm();
	assert_true(seen >= 1);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- mappings ----------------------------------------------------------------------------------------------------- */

static int unmap_and_count(void *address, size_t bytes)
{
	seen++;
	return api->next_maps->do_unmap(address, bytes);
}

static void test_mappings_are_routed_while_armed(void **state)
{
	struct mew_map_family family = *api->next_maps;
	char *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t child;

	(void)state;
	assert_true(p != MAP_FAILED);
	family.do_unmap = unmap_and_count;
	seen = 0;
	assert_int_equal(api->arm_maps(&family), 0);
	assert_int_equal(api->arm_maps(&family), -1);
	assert_int_equal(munmap(p, 4096), 0);
	child = fork();
	if (child == 0)
		_exit(munmap(p + 4096, 4096) == 0 && seen == 1 ? 0 : 1);
	api->disarm_maps();
	assert_int_equal(munmap(p + 4096, 4096), 0);
	assert_int_equal(seen, 1);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static unsigned started, ended, changed; /* atomic */
static int errno_seen;                   /* by a thread's function */
static pthread_t starter, ender;

static void note_start(void)
{
	(void)__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED);
	starter = pthread_self();
	errno = EDOM;
}

static void note_end(void)
{
	(void)__atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
	ender = pthread_self();
}

static void note_change(void)
{
	changed++;
}

static const struct mew_hooks_listener listener = { note_start, note_end, note_change };

static void *give_back(void *data)
{
	errno_seen = errno;
	return data;
}

static void *leave_early(void *data)
{
	pthread_exit(data);
}

static void *wait_for_cancel(void *data)
{
	for (;;)
		(void)pause();
	return data;
}

static void *run_thread(void *(*function)(void *), bool cancel)
{
	static int argument;
	void *result = NULL;
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, function, &argument), 0);
	if (cancel)
		assert_int_equal(pthread_cancel(id), 0);
	assert_int_equal(pthread_join(id, &result), 0);
	assert_true(cancel || result == &argument);
	if (started != 0) {
		assert_true(pthread_equal(starter, id));
		assert_true(pthread_equal(ender, id));
	}
	return result;
}

static void test_threads_are_announced(void **state)
{
	(void)state;
	started = ended = 0;
	(void)run_thread(give_back, false);
	assert_int_equal(started, 0); /* nobody listens yet */
	assert_int_equal(api->set_listener(&listener), 0);
	assert_int_equal(api->set_listener(&listener), -1);
	for (unsigned i = 1; i <= 300; i++) {
		(void)run_thread(i % 2 ? give_back : leave_early, false);
		assert_int_equal(started, i);
		assert_int_equal(ended, i);
		assert_int_equal(errno_seen, 0); /* whatever the listener did to it */
	}
	assert_true(run_thread(wait_for_cancel, true) == PTHREAD_CANCELED);
	assert_int_equal(ended, 301);
	assert_int_equal(api->set_listener(NULL), 0);
}

static void *hold(void *data)
{
	(void)pthread_barrier_wait(data);
	return NULL;
}

/* More threads than the static places for their start. */
static void test_many_threads_at_once(void **state)
{
	static pthread_t ids[200];
	pthread_barrier_t together;
	pthread_attr_t small;

	(void)state;
	assert_int_equal(pthread_attr_init(&small), 0);
	assert_int_equal(pthread_attr_setstacksize(&small, 65536), 0);
	assert_int_equal(pthread_barrier_init(&together, NULL, 201), 0);
	assert_int_equal(api->set_listener(&listener), 0);
	started = ended = 0;
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(pthread_create(&ids[i], &small, hold, &together), 0);
	(void)pthread_barrier_wait(&together);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(pthread_join(ids[i], NULL), 0);
	assert_int_equal(started, 200);
	assert_int_equal(ended, 200);
	assert_int_equal(api->set_listener(NULL), 0);
	(void)pthread_barrier_destroy(&together);
	(void)pthread_attr_destroy(&small);
}

/* --- modules ------------------------------------------------------------------------------------------------------ */

/* A library that is part of every glibc, by its full name: a bare one would depend on this program's own RUNPATH. */
static const char *some_library(void)
{
	static char path[PATH_MAX];
	const char *libc = api->next_path(), *slash = strrchr(libc, '/');

	assert_non_null(slash);
	(void)snprintf(path, sizeof path, "%.*s/libresolv.so.2", (int)(slash - libc), libc);
	return path;
}

static void test_modules_are_announced(void **state)
{
	void *handle;

	(void)state;
	changed = 0;
	assert_int_equal(api->set_listener(&listener), 0);
	handle = dlopen(some_library(), RTLD_NOW);
	assert_non_null(handle);
	assert_int_equal(changed, 1);
	assert_int_equal(dlclose(handle), 0);
	assert_int_equal(changed, 2);
	assert_null(dlopen("/nowhere/at-all.so", RTLD_NOW));
	assert_int_equal(changed, 2);
	assert_int_equal(api->set_listener(NULL), 0);
}

/* With the flag, this library would find libc's malloc before the hooks. */
static void test_deepbind_is_dropped(void **state)
{
	struct mew_malloc_family family = *api->next;
	uint64_t before = api->deepbind_dropped();
	void *handle = dlopen("libjansson.so.4", RTLD_NOW | RTLD_DEEPBIND), *symbol;
	void *(*make)(long long);

	(void)state;
	assert_int_equal(api->deepbind_dropped(), before + 1);
	symbol = handle != NULL ? dlsym(handle, "json_integer") : NULL;
	if (symbol == NULL) {
		print_message("libjansson.so.4 is not installed: no library to open that allocates\n");
		skip();
	}
	memcpy(&make, &symbol, sizeof make);
	family.do_malloc = count_malloc;
	seen = 0;
	assert_int_equal(api->arm(&family), 0);
	symbol = make(1);
	api->disarm();
	assert_non_null(symbol);
	assert_true(seen >= 1);
}

static void open_oddly(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	(void)dlopen("$ORIGIN/nowhere/at-all.so", RTLD_NOW | RTLD_DEEPBIND);
}

static void test_a_row_says_how_libraries_were_opened(void **state)
{
	struct alloc_rig rig = { .stacks = true, .body = open_oddly };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_non_null(rig.figures->reason);
	assert_non_null(strstr(rig.figures->reason, "1 libraries were opened by a search that depends on the caller"));
	assert_non_null(strstr(rig.figures->reason, "RTLD_DEEPBIND was taken off"));
	alloc_rig_free(&rig);
}

/* dlopen's own view of its caller: this program is in $ORIGIN, and not beside the hooks. */
static void expect_own_origin(void)
{
	char self[PATH_MAX + 1], name[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX);
	const char *said;

	assert_true(n > 0);
	self[n] = '\0';
	(void)snprintf(name, sizeof name, "$ORIGIN/%s", strrchr(self, '/') + 1);
	if (dlopen(name, RTLD_NOW) != NULL)
		return;
	said = dlerror(); /* an executable cannot be loaded, but it was found */
	assert_non_null(said);
	assert_null(strstr(said, "cannot open"));
}

static void test_dlopen_sees_its_real_caller(void **state)
{
	uint64_t before = api->modules_unannounced();

	(void)state;
	expect_own_origin();
	assert_int_equal(api->set_listener(&listener), 0);
	expect_own_origin();
	assert_int_equal(api->set_listener(NULL), 0);
	assert_int_equal(api->modules_unannounced(), before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_from_before_main),
		cmocka_unit_test(test_unknown_versions_get_nothing),
		cmocka_unit_test(test_calls_inside_libc_reach_the_hooks),
		cmocka_unit_test(test_next_is_the_c_library),
		cmocka_unit_test(test_armed_and_disarmed),
		cmocka_unit_test(test_armed_twice_is_refused),
		cmocka_unit_test(test_a_forked_child_is_disarmed),
		cmocka_unit_test(test_mappings_are_routed_while_armed),
		cmocka_unit_test(test_modules_are_announced),
		cmocka_unit_test(test_deepbind_is_dropped),
		cmocka_unit_test(test_a_row_says_how_libraries_were_opened),
		cmocka_unit_test(test_dlopen_sees_its_real_caller),
		cmocka_unit_test(test_threads_are_announced),
		cmocka_unit_test(test_many_threads_at_once),
	};

	api = mew_hooks_link();
	if (api == NULL) {
		(void)fprintf(stderr, "libmew_hooks is not linked to this test\n");
		return 1;
	}
	return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
