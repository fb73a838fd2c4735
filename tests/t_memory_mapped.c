/*
 * t_memory_mapped.c - what the program maps itself, through the real hooks: every rule of the series.
 * What is mapped at a body's end shows in the peak when something much larger is mapped then: the probe.
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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fx_alloc_rig.h"
#include "fx_preload.h"
#include "hooks_link.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define PROBE ((size_t)1 << 20) /* pages */

static char *map_at(char *at, size_t pages, int flags)
{
	return mmap(at, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static char *map(size_t pages)
{
	return map_at(NULL, pages, 0);
}

static int unmap(char *at, size_t pages)
{
	return munmap(at, pages * PAGE);
}

static char *remap(char *at, size_t old, size_t pages, int flags, char *target)
{
	return mremap(at, old * PAGE, pages * PAGE, flags, target);
}

static void probe(void)
{
	char *p = map(PROBE);

	if (p == MAP_FAILED)
		abort();
	(void)unmap(p, PROBE);
}

/* Run a body and compare its highest with so many pages. */
static void expect_peak(alloc_body_fn *body, void *data, bool stacks, size_t pages)
{
	struct alloc_rig rig = { .stacks = stacks, .body = body, .data = data };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_true(rig.figures->present >> MEW_FIG_MAPPED_PEAK_BYTES & 1);
	assert_int_equal(rig.figures->mapped_peak_bytes, pages * PAGE);
	assert_int_equal(rig.figures->lost, 0);
	alloc_rig_free(&rig);
}

/* The same for a body that ends in a probe: `pages` are then what it left mapped. */
static void expect_left(alloc_body_fn *body, void *data, size_t pages)
{
	expect_peak(body, data, false, PROBE + pages);
}

/* --- nothing ------------------------------------------------------------------------------------------------------ */

static void *do_nothing(void *data)
{
	return data;
}

/* Memory that the C library and mew map for themselves: large blocks, a thread's stack, tables of blocks and stacks. */
static void map_nothing(struct alloc_rig *rig, unsigned thread)
{
	static void *blocks[20000];
	pthread_t id;

	(void)rig;
	(void)thread;
	for (size_t i = 0; i < 20000; i++)
		blocks[i] = fx_malloc(i % 100 == 0 ? 300000 : 100);
	for (size_t i = 0; i < 20000; i++)
		fx_free(blocks[i]);
	if (pthread_create(&id, NULL, do_nothing, NULL) == 0)
		(void)pthread_join(id, NULL);
}

static void unmap_older(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	(void)unmap(rig->data, 4);
}

static void test_zero(void **state)
{
	(void)state;
	expect_peak(map_nothing, NULL, false, 0);
	expect_peak(map_nothing, NULL, true, 0);
	expect_peak(unmap_older, map(4), false, 0);
}

/* --- map and unmap ------------------------------------------------------------------------------------------------ */

static void map_and_unmap(struct alloc_rig *rig, unsigned thread)
{
	char *a, *b;

	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 10; i++) {
		a = mmap(NULL, 2 * PAGE + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* 3 pages */
		b = map(4);
		(void)munmap(a, 2 * PAGE + 1);
		(void)unmap(b, 4);
	}
}

static void test_whole_pages_alive_at_once(void **state)
{
	(void)state;
	expect_peak(map_and_unmap, NULL, false, 7);
	expect_peak(map_and_unmap, NULL, true, 7);
}

static void unmap_parts(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(20);

	(void)rig;
	(void)thread;
	(void)unmap(p + 4 * PAGE, 3);
	(void)unmap(p + 5 * PAGE, 3); /* two of these are gone */
	(void)unmap(p, 1);
	(void)unmap(p + 19 * PAGE, 1);
	probe();
}

static void unmap_over_everything(struct alloc_rig *rig, unsigned thread)
{
	char *around = rig->data;

	(void)thread;
	for (size_t i = 0; i < 40; i += 2)
		(void)map_at(around + i * PAGE, 1, MAP_FIXED);
	(void)unmap(around + PAGE, 30);
	probe();
	(void)unmap(around, 40);
}

static void test_parts_leave(void **state)
{
	(void)state;
	expect_left(unmap_parts, NULL, 14);
	expect_left(unmap_over_everything, map(40), 5);
}

static void replace(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(10);

	(void)rig;
	(void)thread;
	(void)map_at(p + 2 * PAGE, 3, MAP_FIXED); /* within */
	(void)map_at(p + 8 * PAGE, 2, MAP_FIXED_NOREPLACE); /* refused */
	(void)unmap(p + 9 * PAGE, 1);
	(void)map_at(p + 7 * PAGE, 3, MAP_FIXED); /* two of three are there */
	probe();
	(void)unmap(p, 10);
}

static void test_fixed_mappings_replace(void **state)
{
	(void)state;
	expect_left(replace, NULL, 10);
}

static void provoke_failures(struct alloc_rig *rig, unsigned thread)
{
	bool *right = rig->data;
	char *p = map(2);

	(void)thread;
	errno = 0;
	*right = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL;
	*right &= mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF;
	*right &= munmap(p + 1, PAGE) == -1 && errno == EINVAL;
	*right &= munmap(p, 0) == -1 && errno == EINVAL;
	*right &= mremap(p, PAGE, 0, 0) == MAP_FAILED && errno == EINVAL;
	errno = 77;
	*right &= unmap(p + PAGE, 1) == 0 && errno == 77;
	probe();
	*right &= errno == 77;
	(void)unmap(p, 1);
}

static void test_failures_are_passed_on_and_change_nothing(void **state)
{
	bool right = false;

	(void)state;
	expect_left(provoke_failures, &right, 1);
	assert_true(right);
}

/* --- remap -------------------------------------------------------------------------------------------------------- */

static void shrink(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(10);

	(void)rig;
	(void)thread;
	p = remap(p, 10, 4, 0, NULL);
	probe();
	(void)unmap(p, 4);
}

static void grow(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(5), *wall = p + 4 * PAGE; /* nothing to grow into: it moves */

	(void)rig;
	(void)thread;
	p = remap(p, 4, 30, MREMAP_MAYMOVE, NULL);
	p = remap(p, 30, 25, MREMAP_MAYMOVE, NULL);
	p = remap(p, 25, 28, MREMAP_MAYMOVE, NULL); /* in place */
	probe();
	(void)unmap(p, 28);
	(void)unmap(wall, 1);
}

static void test_shrinking_and_growing(void **state)
{
	(void)state;
	expect_left(shrink, NULL, 4);
	expect_left(grow, NULL, 29);
}

/* A peak is of one moment: never old and new size at once. */
static void grow_alone(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(1);

	(void)rig;
	(void)thread;
	for (size_t pages = 1; pages < 1024; pages *= 2)
		p = remap(p, pages, 2 * pages, MREMAP_MAYMOVE, NULL);
	(void)unmap(p, 1024);
}

static void test_growth_is_one_step(void **state)
{
	(void)state;
	expect_peak(grow_alone, NULL, false, 1024);
}

static void move_over(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(8), *target = map(20);

	(void)rig;
	(void)thread;
	(void)remap(p, 8, 6, MREMAP_MAYMOVE | MREMAP_FIXED, target + 2 * PAGE);
	probe(); /* 8 are gone, and 6 of the 20 are now those */
	(void)unmap(target, 20);
}

static void leave_behind(struct alloc_rig *rig, unsigned thread)
{
	char *p = map(8), *copy = remap(p, 8, 8, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);

	(void)thread;
	*(bool *)rig->data = copy != MAP_FAILED;
	probe();
	(void)unmap(p, 8);
	if (copy != MAP_FAILED)
		(void)unmap(copy, 8);
}

static void map_twice(struct alloc_rig *rig, unsigned thread)
{
	char *p = mmap(NULL, 8 * PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *again = remap(p, 0, 6, MREMAP_MAYMOVE, NULL);

	(void)rig;
	(void)thread;
	probe();
	(void)unmap(p, 8);
	(void)unmap(again, 6);
}

static void test_moves(void **state)
{
	bool known = false;

	(void)state;
	expect_left(move_over, NULL, 20);
	expect_left(map_twice, NULL, 14);
	expect_peak(leave_behind, &known, false, PROBE + 16);
	assert_true(known);
}

static void grow_into_a_wall(struct alloc_rig *rig, unsigned thread)
{
	char *p = rig->data;

	(void)thread;
	(void)map_at(p, 4, MAP_FIXED);
	if (remap(p, 4, 6, 0, NULL) != MAP_FAILED) /* the rest of the older mapping is in the way */
		abort();
	probe();
	(void)unmap(p, 10);
}

static void test_a_failed_remap_keeps_what_was(void **state)
{
	(void)state;
	expect_left(grow_into_a_wall, map(10), 4);
}

static void remap_older(struct alloc_rig *rig, unsigned thread)
{
	char **older = rig->data;

	(void)thread;
	older[0] = remap(older[0], 10, 8, 0, NULL);                    /* nothing joins */
	older[1] = remap(older[1], 10, 16, MREMAP_MAYMOVE, NULL);      /* all of it does */
	probe();
}

static void test_older_mappings_join_when_they_grow(void **state)
{
	char *older[2] = { map(10), map(10) };

	(void)state;
	expect_left(remap_older, older, 16);
	(void)unmap(older[0], 8);
	(void)unmap(older[1], 16);
}

/* --- pauses ------------------------------------------------------------------------------------------------------- */

static void pause_around(struct alloc_rig *rig, unsigned thread)
{
	char *tracked = map(10), *replaced = map(10), *moved = map(10), *in_pause;

	alloc_rig_pause(rig, thread);
	in_pause = map(50);
	(void)unmap(tracked, 4);
	(void)map_at(replaced, 3, MAP_FIXED);
	moved = remap(moved, 10, 30, MREMAP_MAYMOVE, NULL);
	moved = remap(moved, 30, 8, 0, NULL);
	alloc_rig_resume(rig, thread);
	probe(); /* 6 + 7 + 8 */
	(void)unmap(in_pause, 50);
	(void)unmap(replaced, 10);
	(void)unmap(moved, 8);
	(void)unmap(tracked + 4 * PAGE, 6);
}

static void test_a_pause_stops_admission_alone(void **state)
{
	(void)state;
	expect_left(pause_around, NULL, 21);
}

/* --- against a slow model ----------------------------------------------------------------------------------------- */

#define CELLS 48u

struct model {
	char *base; /* an older mapping of 2 * CELLS pages */
	bool tracked[2 * CELLS];
	size_t peak;
};

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static void model_step(struct model *m)
{
	size_t live = 0;

	for (size_t i = 0; i < 2 * CELLS; i++)
		live += m->tracked[i];
	m->peak = live > m->peak ? live : m->peak;
}

static void model_remap(struct model *m, size_t from, size_t n, size_t to, size_t target, bool paused)
{
	bool moved[CELLS];

	if (remap(m->base + from * PAGE, n, to, MREMAP_MAYMOVE | MREMAP_FIXED, m->base + target * PAGE) == MAP_FAILED)
		return; /* across mappings, or a hole: nothing changes */
	for (size_t i = 0; i < to; i++)
		moved[i] = i < n && m->tracked[from + i];
	for (size_t i = 0; i < n; i++)
		m->tracked[from + i] = false;
	for (size_t i = 0; i < to; i++)
		m->tracked[target + i] = to > n && !paused ? true : moved[i];
}

static void random_steps(struct alloc_rig *rig, unsigned thread)
{
	struct model *m = rig->data;
	unsigned seed = 12345;

	(void)unmap(map(1), 1); /* the set has its memory before there are holes which that could lie in */
	for (unsigned step = 0; step < 20000; step++) {
		size_t from = next_random(&seed) % (CELLS - 8), n = 1 + next_random(&seed) % 8;
		size_t to = 1 + next_random(&seed) % 8;
		bool paused = next_random(&seed) % 4 == 0;

		if (paused)
			alloc_rig_pause(rig, thread);
		switch (next_random(&seed) % 3) {
		case 0:
			(void)map_at(m->base + from * PAGE, n, MAP_FIXED);
			memset(m->tracked + from, !paused, n);
			break;
		case 1:
			(void)unmap(m->base + from * PAGE, n);
			memset(m->tracked + from, false, n);
			break;
		default:
			model_remap(m, from, n, to, CELLS + next_random(&seed) % (CELLS - 8), paused);
			break;
		}
		model_step(m);
		if (paused)
			alloc_rig_resume(rig, thread);
	}
	(void)unmap(m->base, 2 * CELLS);
}

static void test_random_steps(void **state)
{
	struct model m = { .base = map(2 * CELLS) };
	struct alloc_rig rig = { .body = random_steps, .data = &m };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_true(m.peak > CELLS / 2);
	assert_int_equal(rig.figures->mapped_peak_bytes, m.peak * PAGE);
	alloc_rig_free(&rig);
}

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
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_whole_pages_alive_at_once),
		cmocka_unit_test(test_parts_leave),
		cmocka_unit_test(test_fixed_mappings_replace),
		cmocka_unit_test(test_failures_are_passed_on_and_change_nothing),
		cmocka_unit_test(test_shrinking_and_growing),
		cmocka_unit_test(test_growth_is_one_step),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_a_failed_remap_keeps_what_was),
		cmocka_unit_test(test_older_mappings_join_when_they_grow),
		cmocka_unit_test(test_a_pause_stops_admission_alone),
		cmocka_unit_test(test_random_steps),
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
		return cmocka_run_group_tests_name("memory_mapped", tests, NULL, NULL);
	if (mew_hooks_link() == NULL || mew_hooks_link()->next_is_libc())
		return FX_NOT_THERE;
	return cmocka_run_group_tests_name("memory_mapped", again, NULL, NULL);
}
