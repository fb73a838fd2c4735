/*
 * t_hooks.c - libmew_hooks: the family is complete and counted once under any allocator, and wrappers change nothing.
 * For other allocators the program runs itself again with them preloaded and a scenario's name in MEW_TEST_SCENARIO.
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
#include <sys/wait.h>
#include <unistd.h>

#include "fx_alloc_rig.h"
#include "hooks_link.h"

void cfree(void *block);
void free_sized(void *block, size_t size);
void free_aligned_sized(void *block, size_t alignment, size_t size);

static const struct mew_hooks_api *api;

/* --- before main ---------------------------------------------------------------------------------------------------------- */

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

/* --- the struct ------------------------------------------------------------------------------------------------------------- */

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
	int status = 0;
	pid_t child;

	(void)state;
	family.do_malloc = count_malloc;
	assert_int_equal(api->arm(&family), 0);
	seen = 0;
	child = fork();
	if (child == 0) {
		free(fx_malloc(10));
		_exit(seen == 0 ? 0 : 1);
	}
	free(fx_malloc(10));
	api->disarm();
	assert_true(seen >= 1);
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- threads ---------------------------------------------------------------------------------------------------------------- */

static unsigned started, ended, changed;
static pthread_t starter, ender;

static void note_start(void)
{
	started++;
	starter = pthread_self();
	errno = EDOM;
}

static void note_end(void)
{
	ended++;
	ender = pthread_self();
}

static void note_change(void)
{
	changed++;
}

static const struct mew_hooks_listener listener = { note_start, note_end, note_change };

static void *give_back(void *data)
{
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
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(pthread_create(&ids[i], &small, hold, &together), 0);
	(void)pthread_barrier_wait(&together);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(pthread_join(ids[i], NULL), 0);
	assert_int_equal(api->set_listener(NULL), 0);
	(void)pthread_barrier_destroy(&together);
	(void)pthread_attr_destroy(&small);
}

/* --- modules ---------------------------------------------------------------------------------------------------------------- */

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

static void test_deepbind_is_dropped(void **state)
{
	uint64_t before = api->deepbind_dropped();
	void *handle = dlopen(some_library(), RTLD_NOW | RTLD_DEEPBIND);

	(void)state;
	assert_non_null(handle);
	assert_int_equal(api->deepbind_dropped(), before + 1);
	assert_int_equal(dlclose(handle), 0);
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

/* --- the family, under this allocator --------------------------------------------------------------------------------------- */

#define ALIGNED_TO(p, n) (((uintptr_t)(p) & ((n) - 1)) == 0)

struct family_result {
	bool misaligned, null;
};

static void use(struct family_result *r, void *p, size_t alignment)
{
	mew_keep(p); /* compilers delete a pair of allocation and free that nobody looks at */
	r->null |= p == NULL;
	r->misaligned |= !ALIGNED_TO(p, alignment);
	if (p != NULL)
		memset(p, 1, 100);
}

/* 11 allocations of 100 bytes each, one after the other. */
static void whole_family(struct alloc_rig *rig, unsigned thread)
{
	struct family_result *r = rig->data;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;

	(void)thread;
	p = fx_malloc(100), use(r, p, 8), free(p);
	p = fx_calloc(25, 4), use(r, p, 8), cfree(p);
	p = fx_realloc(NULL, 100), use(r, p, 8), free_sized(p, 100);
	p = reallocarray(NULL, 50, 2), use(r, p, 8), free(p);
	r->null |= posix_memalign(&p, 256, 100) != 0;
	use(r, p, 256), free(p);
	p = aligned_alloc(64, 100), use(r, p, 64), free_aligned_sized(p, 64, 100);
	p = memalign(128, 100), use(r, p, 128), free(p);
	p = valloc(100), use(r, p, page), free(p);
	p = pvalloc(100), use(r, p, page), r->null |= p == NULL || malloc_usable_size(p) < page, free(p);
	p = strndup("a string of one hundred bytes that libc copies with its own call of malloc, padded to ninety-nine here.", 99);
	use(r, p, 8), free(p);
	p = fx_malloc(1), p = fx_realloc(p, 100), use(r, p, 8), free(p);
}

static int complain(const char *what, uint64_t got, uint64_t want)
{
	(void)fprintf(stderr, "%s is %llu, not %llu\n", what, (unsigned long long)got, (unsigned long long)want);
	return 1;
}

static int family_once(bool stacks)
{
	struct family_result r = { false, false };
	struct alloc_rig rig = { .stacks = stacks, .body = whole_family, .data = &r };
	int bad = 0;

	if (alloc_rig_run(&rig) != MEW_OK) {
		(void)fprintf(stderr, "%s\n", rig.error.text);
		return 1;
	}
	if (rig.figures->total_allocations != 12)
		bad |= complain("total_allocations", rig.figures->total_allocations, 12);
	if (rig.figures->frees != 11)
		bad |= complain("frees", rig.figures->frees, 11);
	if (rig.figures->cumulative_bytes != 1101)
		bad |= complain("cumulative_bytes", rig.figures->cumulative_bytes, 1101);
	if (rig.figures->peak_bytes != 100)
		bad |= complain("peak_bytes", rig.figures->peak_bytes, 100);
	if (rig.figures->foreign_frees != 0 || rig.figures->net_blocks != 0 || rig.figures->failed != 0)
		bad |= complain("foreign + net + failed", rig.figures->foreign_frees + rig.figures->net_blocks, 0);
	if (r.null || r.misaligned)
		bad |= complain("null or misaligned blocks", 1, 0);
	alloc_rig_free(&rig);
	return bad;
}

/* Blocks of 8 bytes lie side by side under other allocators: none may shadow its neighbour. */
static void small_blocks(struct alloc_rig *rig, unsigned thread)
{
	static void *blocks[5000];

	(void)rig;
	(void)thread;
	for (size_t i = 0; i < 5000; i++)
		blocks[i] = fx_malloc(1 + i % 16);
	for (size_t i = 0; i < 5000; i += 2)
		fx_free(blocks[i]);
	for (size_t i = 1; i < 5000; i += 2)
		fx_free(blocks[i]);
}

static int many_small(bool stacks)
{
	struct alloc_rig rig = { .stacks = stacks, .body = small_blocks };
	int bad = 0;

	if (alloc_rig_run(&rig) != MEW_OK) {
		(void)fprintf(stderr, "%s\n", rig.error.text);
		return 1;
	}
	if (rig.figures->frees != 5000 || rig.figures->net_bytes != 0)
		bad |= complain("frees of small blocks", rig.figures->frees, 5000);
	if (rig.figures->peak_bytes != 42468)
		bad |= complain("peak_bytes of small blocks", rig.figures->peak_bytes, 42468);
	alloc_rig_free(&rig);
	return bad;
}

#define NOT_THERE 77 /* the allocator that was to be preloaded is not installed */

static int scenario_family(void)
{
	return family_once(false) | family_once(true) | many_small(false) | many_small(true);
}

/* The hooks are there but another allocator comes first: refused, with its name. */
static int scenario_not_first(void)
{
	struct mew_error err;

	if (mew_backend_memory.probe(&err) != MEW_E_UNSUPPORTED)
		return complain("status of the probe", (uint64_t)-err.status, (uint64_t)-MEW_E_UNSUPPORTED);
	if (strstr(err.text, "not first") == NULL || strstr(err.text, "jemalloc") == NULL) {
		(void)fprintf(stderr, "the probe said: %s\n", err.text);
		return 1;
	}
	return 0;
}

static int run_scenario(const char *name)
{
	if (strcmp(name, "not first") == 0)
		return dlsym(RTLD_DEFAULT, "mallctl") != NULL ? scenario_not_first() : NOT_THERE;
	return api->next_is_libc() ? NOT_THERE : scenario_family();
}

static void test_family_under_the_c_library(void **state)
{
	(void)state;
	assert_int_equal(scenario_family(), 0);
}

/* --- the same with other allocators in the process -------------------------------------------------------------------------- */

/* File of the hooks, where they are a library of their own; "" where they are part of this program. */
static const char *hooks_file(void)
{
	static char self[PATH_MAX + 1];
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX);
	Dl_info info;

	if (n <= 0 || dladdr((const void *)(uintptr_t)api->arm, &info) == 0)
		return "";
	self[n] = '\0';
	return strcmp(info.dli_fname, self) == 0 || strchr(info.dli_fname, '/') == NULL ? "" : info.dli_fname;
}

static int run_again(const char *scenario, const char *preload)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		if (setenv("LD_PRELOAD", preload, 1) == 0 && setenv("MEW_TEST_SCENARIO", scenario, 1) == 0)
			(void)execl("/proc/self/exe", "t_hooks", (char *)NULL);
		_exit(126);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		print_message("%s with %s: signal %d\n", scenario, preload, WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void family_with(const char *allocator)
{
	char preload[2 * PATH_MAX];
	int status;

	(void)snprintf(preload, sizeof preload, "%s:%s", hooks_file(), allocator);
	status = run_again("family", preload);
	if (status == NOT_THERE) {
		print_message("%s is not installed: the hooks were not tried in front of it\n", allocator);
		skip();
	}
	assert_int_equal(status, 0);
}

static void test_family_under_jemalloc(void **state)
{
	(void)state;
	family_with("libjemalloc.so.2"); /* 5.3.0 has no pvalloc of its own */
}

static void test_family_under_tcmalloc(void **state)
{
	(void)state;
	family_with("libtcmalloc_minimal.so.4");
}

static void test_family_under_mimalloc(void **state)
{
	(void)state;
	family_with("libmimalloc.so.2");
}

static void test_behind_another_allocator(void **state)
{
	int status;

	(void)state;
	if (hooks_file()[0] == '\0') {
		print_message("the hooks are part of this program: nothing can come before them\n");
		skip();
	}
	status = run_again("not first", "libjemalloc.so.2");
	if (status == NOT_THERE) {
		print_message("libjemalloc.so.2 is not installed\n");
		skip();
	}
	assert_int_equal(status, 0);
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
		cmocka_unit_test(test_family_under_the_c_library),
		cmocka_unit_test(test_family_under_jemalloc),
		cmocka_unit_test(test_family_under_tcmalloc),
		cmocka_unit_test(test_family_under_mimalloc),
		cmocka_unit_test(test_behind_another_allocator),
		cmocka_unit_test(test_modules_are_announced),
		cmocka_unit_test(test_deepbind_is_dropped),
		cmocka_unit_test(test_dlopen_sees_its_real_caller),
		cmocka_unit_test(test_threads_are_announced),
		cmocka_unit_test(test_many_threads_at_once),
	};
	const char *scenario = getenv("MEW_TEST_SCENARIO");

	api = mew_hooks_link();
	if (scenario != NULL)
		return run_scenario(scenario);
	if (api == NULL) {
		(void)fprintf(stderr, "libmew_hooks is not linked to this test\n");
		return 1;
	}
	return cmocka_run_group_tests_name("hooks", tests, NULL, NULL);
}
