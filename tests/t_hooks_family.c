/*
 * t_hooks_family.c - the malloc family is complete, and each call is counted once, under any allocator.
 * The program runs itself again with another allocator preloaded and a scenario's name in MEW_TEST_SCENARIO.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
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

/* --- the family, under this allocator ----------------------------------------------------------------------------- */

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
	char text[128];
	void *p;

	(void)thread;
	memset(text, 'x', sizeof text);
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
	p = strndup(text, 99), use(r, p, 8), free(p);
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

/* --- the same with other allocators in the process ---------------------------------------------------------------- */

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
		cmocka_unit_test(test_family_under_the_c_library),
		cmocka_unit_test(test_family_under_jemalloc),
		cmocka_unit_test(test_family_under_tcmalloc),
		cmocka_unit_test(test_family_under_mimalloc),
		cmocka_unit_test(test_behind_another_allocator),
	};
	const char *scenario = getenv("MEW_TEST_SCENARIO");

	api = mew_hooks_link();
	if (api == NULL) {
		(void)fprintf(stderr, "libmew_hooks is not linked to this test\n");
		return 1;
	}
	if (scenario != NULL)
		return run_scenario(scenario);
	return cmocka_run_group_tests_name("hooks_family", tests, NULL, NULL);
}
