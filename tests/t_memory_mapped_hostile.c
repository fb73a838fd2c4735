/*
 * t_memory_mapped_hostile.c - what the program maps itself, under threads, fork, handlers, limits and other allocators.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fx_map.h"
#include "fx_preload.h"
#include "hooks_link.h"

/* --- threads ------------------------------------------------------------------------------------------------------ */

static pthread_barrier_t together;

static void hold_at_once(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(10 + thread);

	(void)rig;
	(void)pthread_barrier_wait(&together);
	(void)unmap(p, 10 + thread);
}

/* Addresses that one thread gives back are soon another's: the set must never take one for the other. */
static void hammer(struct alloc_rig *rig, unsigned thread)
{
	unsigned seed = thread;

	(void)rig;
	for (unsigned i = 0; i < 3000; i++) {
		size_t pages = 1 + next_random(&seed) % 8, to = 1 + next_random(&seed) % 8;
		char *p = map(pages);

		p = remap(p, pages, to, MREMAP_MAYMOVE, NULL);
		(void)unmap(p, to);
	}
	(void)pthread_barrier_wait(&together);
	if (thread == 0)
		probe();
}

static void with_threads(alloc_body_fn *body, size_t pages)
{
	struct alloc_rig rig = { .threads = 4, .body = body };

	assert_int_equal(pthread_barrier_init(&together, NULL, 4), 0);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->mapped_peak_bytes, pages * PAGE);
	alloc_rig_free(&rig);
	(void)pthread_barrier_destroy(&together);
}

static void test_threads_share_the_series(void **state)
{
	(void)state;
	with_threads(hold_at_once, 46);
	with_threads(hammer, PROBE);
}

static bool stop;

static void fork_or_map(struct alloc_rig *rig, unsigned thread)
{
	unsigned *hung = rig->data;

	while (thread != 0 && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
		(void)unmap(map(3), 3);
	for (unsigned i = 0; thread == 0 && i < 200 && *hung < 3; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			(void)alarm(5);
			for (unsigned k = 0; k < 50; k++)
				(void)unmap(remap(map(3), 3, 5, MREMAP_MAYMOVE, NULL), 5);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
			(*hung)++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void test_forked_children_do_not_hang(void **state)
{
	unsigned hung = 0;
	struct alloc_rig rig = { .threads = 2, .body = fork_or_map, .data = &hung };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(hung, 0);
	assert_int_equal(rig.figures->mapped_peak_bytes, 3 * PAGE);
	alloc_rig_free(&rig);
}

static void map_in_handler(int signal_number)
{
	(void)signal_number;
	(void)unmap(map(9), 9);
}

static void raise_signal(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	(void)raise(SIGUSR1);
}

static void test_signal_handlers_count(void **state)
{
	(void)state;
	assert_true(signal(SIGUSR1, map_in_handler) != SIG_ERR);
	expect_peak(raise_signal, NULL, false, 9);
	(void)signal(SIGUSR1, SIG_DFL);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

#define MANY ((size_t)65530) /* the kernel's own limit as it comes */

struct many {
	size_t at_once;
	bool is_refused;
};

static void map_many(struct alloc_rig *rig, unsigned thread)
{
	static bool got[MANY];
	struct many *m = rig->data;
	char *whole = map(3), *base = map(2 * MANY);

	(void)thread;
	(void)unmap(base, 2 * MANY);
	for (size_t i = MANY; i-- > 0;) { /* with a gap after each, so that none can be joined */
		got[i] = map_at(base + 2 * i * PAGE, 1, MAP_FIXED_NOREPLACE) == base + 2 * i * PAGE;
		m->at_once += got[i];
	}
	m->is_refused = unmap(whole + PAGE, 1) != 0; /* it would make one more */
	for (size_t i = 0; i < 2 * MANY; i++) { /* every second one first */
		size_t k = i < MANY ? 2 * i % MANY + (2 * i >= MANY) : i % MANY;

		if (got[k] && unmap(base + 2 * k * PAGE, 1) == 0)
			got[k] = false;
	}
	probe();
}

static void test_as_many_ranges_as_the_kernel_allows(void **state)
{
	struct many many = { 0, false };
	struct alloc_rig rig = { .body = map_many, .data = &many };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_true(many.at_once > MANY / 2);
	assert_int_equal(rig.figures->mapped_peak_bytes, (PROBE + (many.is_refused ? 3 : 2)) * PAGE);
	print_message("%zu ranges at once; releasing the middle of one more was %s\n", many.at_once,
		      many.is_refused ? "refused" : "possible");
	alloc_rig_free(&rig);
}

static size_t pages_of_process(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		abort();
	(void)close(fd);
	return strtoul(text, NULL, 10);
}

static void map_without_room(struct alloc_rig *rig, unsigned thread)
{
	struct rlimit limit, none;
	char *base = rig->data;

	(void)thread;
	(void)getrlimit(RLIMIT_AS, &limit);
	none = limit;
	none.rlim_cur = pages_of_process() * PAGE;
	(void)setrlimit(RLIMIT_AS, &none);
	for (size_t i = 0; i < 10000; i++) /* replaces, and so needs no address space */
		(void)map_at(base + 2 * i * PAGE, 1, MAP_FIXED);
	(void)setrlimit(RLIMIT_AS, &limit);
}

static void test_without_memory_the_figure_is_absent(void **state)
{
	char *base = map(20000);
	struct alloc_rig rig = { .body = map_without_room, .data = base };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_false(rig.figures->present >> MEW_FIG_MAPPED_PEAK_BYTES & 1);
	assert_non_null(strstr(mew_memory_why(rig.figures, MEW_FIG_MAPPED_PEAK_BYTES), "ulimit -v"));
	assert_true(rig.figures->present >> MEW_FIG_PEAK_BYTES & 1);
	alloc_rig_free(&rig);
	(void)unmap(base, 20000);
	expect_peak(map_and_unmap, NULL, false, 7); /* and the next window is a good one */
}

/* --- other allocators --------------------------------------------------------------------------------------------- */

/* As a thread of the allocator does: no call of the malloc family is under way, so only the caller's module tells. */
static void allocate_behind_the_hooks(struct alloc_rig *rig, unsigned thread)
{
	const struct mew_hooks_api *api = rig->data;

	(void)thread;
	for (size_t bytes = (size_t)1 << 20; bytes <= (size_t)1 << 27; bytes *= 2) {
		void *block = api->next->do_malloc(bytes);

		mew_keep(block);
		api->next->do_free(block);
	}
}

static void allocator_maps_for_itself(void)
{
	union {
		const struct mew_hooks_api *api;
		void *data;
	} hooks = { mew_hooks_link() };

	expect_peak(map_nothing, NULL, false, 0);
	expect_peak(map_and_unmap, NULL, false, 7);
	expect_peak(allocate_behind_the_hooks, hooks.data, false, 0);
}

static void test_under_this_allocator(void **state)
{
	(void)state;
	allocator_maps_for_itself();
}

static void under(const char *allocator)
{
	int status = fx_run_preloaded("1", allocator);

	if (status == FX_NOT_THERE) {
		print_message("%s is not installed: its mappings were not tried\n", allocator);
		skip();
	}
	assert_int_equal(status, 0);
}

static void test_under_jemalloc(void **state)
{
	(void)state;
	under("libjemalloc.so.2");
}

static void test_under_tcmalloc(void **state)
{
	(void)state;
	under("libtcmalloc_minimal.so.4");
}

static void test_under_mimalloc(void **state)
{
	(void)state;
	under("libmimalloc.so.2");
}

/* --- before main -------------------------------------------------------------------------------------------------- */

static bool early;

/* Runs before ordinary constructors, of this program and of cmocka. */
__attribute__((constructor(101))) static void map_early(void)
{
	char *p = remap(map(2), 2, 4, MREMAP_MAYMOVE, NULL);

	early = p != MAP_FAILED && unmap(p, 4) == 0;
}

static void test_before_main(void **state)
{
	(void)state;
	assert_true(early);
}

int main(void)
{
	const struct CMUnitTest again[] = { cmocka_unit_test(test_under_this_allocator) };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before_main),
		cmocka_unit_test(test_threads_share_the_series),
		cmocka_unit_test(test_forked_children_do_not_hang),
		cmocka_unit_test(test_signal_handlers_count),
		cmocka_unit_test(test_as_many_ranges_as_the_kernel_allows),
		cmocka_unit_test(test_without_memory_the_figure_is_absent),
		cmocka_unit_test(test_under_this_allocator),
		cmocka_unit_test(test_under_jemalloc),
		cmocka_unit_test(test_under_tcmalloc),
		cmocka_unit_test(test_under_mimalloc),
	};

	if (fx_scenario() == NULL)
		return cmocka_run_group_tests_name("memory_mapped_hostile", tests, NULL, NULL);
	if (mew_hooks_link() == NULL || mew_hooks_link()->next_is_libc())
		return FX_NOT_THERE;
	return cmocka_run_group_tests_name("memory_mapped_hostile", again, NULL, NULL);
}
