/*
 * t_memory_pools.c - pools that announce their blocks through mew/pool.h: series of their own, with the heap's rules.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fx_alloc_rig.h"
#include "hooks_link.h"
#include "mew/pool.h"

static struct mew_pool arena = MEW_POOL("arena"), slab = MEW_POOL("slab");
static char memory[1 << 20]; /* blocks are places in it: what they hold is nobody's business */

/* Run a body in a window; `want` are its pools by name. The heap must not have noticed. */
static void expect(alloc_body_fn *body, void *data, unsigned threads, const struct mew_memory_pool *want, size_t n)
{
	struct alloc_rig rig = { .threads = threads, .body = body, .data = data };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &(struct alloc_figures){ .peak = 0 }), 0);
	assert_true(rig.figures->present >> MEW_FIG_BY_POOL & 1);
	assert_int_equal(rig.figures->nby_pool, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(rig.figures->by_pool[i].name, want[i].name);
		assert_int_equal(rig.figures->by_pool[i].peak_bytes, want[i].peak_bytes);
		assert_int_equal(rig.figures->by_pool[i].allocations, want[i].allocations);
		assert_int_equal(rig.figures->by_pool[i].cumulative_bytes, want[i].cumulative_bytes);
		assert_int_equal(rig.figures->by_pool[i].net_bytes, want[i].net_bytes);
	}
	assert_null(rig.figures->reason);
	alloc_rig_free(&rig);
}

#define EXPECT(body, data, ...)                                                                                        \
	do {                                                                                                           \
		const struct mew_memory_pool want_[] = { __VA_ARGS__ };                                                \
		expect(body, data, 1, want_, sizeof want_ / sizeof want_[0]);                                          \
	} while (0)

/* --- known bodies ------------------------------------------------------------------------------------------------- */

static void alloc_and_free(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 10; i++) {
		mew_pool_alloc(&slab, memory, 100);
		mew_pool_alloc(&slab, memory + 100, 60);
		mew_pool_free(&slab, memory);
		mew_pool_alloc(&arena, memory + 100, 7); /* carved out of the slab's block: both count */
		mew_pool_free(&slab, memory + 100);
		mew_pool_free(&arena, memory + 100);
		mew_pool_alloc(&arena, NULL, 5);
		mew_pool_free(&arena, NULL);
	}
	mew_pool_alloc(&arena, memory + 3, 0);
	mew_pool_alloc(&slab, memory + 3, 40);
}

static void test_pools_are_series_of_their_own(void **state)
{
	(void)state;
	EXPECT(alloc_and_free, NULL, { "arena", 7, 11, 70, 0 }, { "slab", 160, 21, 1640, 40 });
}

static void test_windows_forget(void **state)
{
	(void)state;
	EXPECT(alloc_and_free, NULL, { "arena", 7, 11, 70, 0 }, { "slab", 160, 21, 1640, 40 });
	EXPECT(alloc_and_free, NULL, { "arena", 7, 11, 70, 0 }, { "slab", 160, 21, 1640, 40 });
}

static void free_older(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	mew_pool_free(&arena, memory);
	mew_pool_reset(&slab);
}

static void test_older_blocks_are_ignored(void **state)
{
	(void)state;
	mew_pool_alloc(&arena, memory, 100);
	mew_pool_alloc(&slab, memory, 100);
	EXPECT(free_older, NULL, { "arena", 0, 0, 0, 0 }, { "slab", 0, 0, 0, 0 });
}

static void announce_again(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 5; i++)
		mew_pool_alloc(&arena, memory, 100 + i);
}

static void test_a_block_is_alive_once(void **state)
{
	(void)state;
	EXPECT(announce_again, NULL, { "arena", 104, 5, 510, 104 });
}

static void reset_often(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned round = 0; round < 1000; round++) { /* the table is built anew several times */
		for (unsigned i = 0; i < 100; i++)
			mew_pool_alloc(&arena, memory + 1000 * i + round, 10);
		mew_pool_reset(&arena);
		mew_pool_free(&arena, memory + round); /* gone already */
	}
	mew_pool_alloc(&slab, memory, 3);
	mew_pool_reset(&arena);
}

static void test_reset_takes_all_of_one_pool(void **state)
{
	(void)state;
	EXPECT(reset_often, NULL, { "arena", 1000, 100000, 1000000, 0 }, { "slab", 3, 1, 3, 3 });
}

static void use_two_objects(struct alloc_rig *rig, unsigned thread)
{
	struct mew_pool again = MEW_POOL("arena"), other = MEW_POOL("other");

	(void)rig;
	(void)thread;
	mew_pool_alloc(&arena, memory, 10);
	mew_pool_alloc(&again, memory + 10, 20);
	mew_pool_alloc(&other, memory, 5);
	mew_pool_free(&again, memory);
	mew_pool_reset(&arena);
}

static void test_one_name_is_one_pool(void **state)
{
	(void)state;
	EXPECT(use_two_objects, NULL, { "arena", 30, 2, 30, 0 }, { "other", 5, 1, 5, 5 });
}

static void pause_around(struct alloc_rig *rig, unsigned thread)
{
	mew_pool_alloc(&arena, memory, 10);
	mew_pool_alloc(&arena, memory + 100, 20);
	mew_pool_alloc(&slab, memory, 70);
	alloc_rig_pause(rig, thread);
	mew_pool_alloc(&arena, memory + 200, 1000);
	mew_pool_free(&arena, memory);
	mew_pool_reset(&slab);
	alloc_rig_resume(rig, thread);
	mew_pool_free(&arena, memory + 200);
	mew_pool_alloc(&arena, memory, 10);
}

static void test_a_pause_stops_admission_alone(void **state)
{
	(void)state;
	EXPECT(pause_around, NULL, { "arena", 30, 3, 40, 30 }, { "slab", 70, 1, 70, 0 });
}

/* --- many blocks, many threads, many pools ------------------------------------------------------------------------ */

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Against a model that is an array of sizes. */
static void random_steps(struct alloc_rig *rig, unsigned thread)
{
	static uint32_t sizes[2][sizeof memory / 64];
	struct mew_pool *const pools[] = { &arena, &slab };
	struct mew_memory_pool *model = rig->data;
	unsigned seed = 7;

	(void)thread;
	memset(sizes, 0, sizeof sizes);
	for (unsigned step = 0; step < 300000; step++) {
		unsigned which = next_random(&seed) % 2, at = next_random(&seed) % (sizeof memory / 64);
		struct mew_memory_pool *m = &model[which];

		if (next_random(&seed) % 50000 == 0) {
			mew_pool_reset(pools[which]);
			memset(sizes[which], 0, sizeof sizes[which]);
			m->net_bytes = 0;
		} else if (sizes[which][at] != 0) {
			mew_pool_free(pools[which], memory + 64 * (size_t)at);
			m->net_bytes -= sizes[which][at];
			sizes[which][at] = 0;
		} else {
			sizes[which][at] = 1 + next_random(&seed) % 1000;
			mew_pool_alloc(pools[which], memory + 64 * (size_t)at, sizes[which][at]);
			m->net_bytes += sizes[which][at];
			m->cumulative_bytes += sizes[which][at];
			m->allocations++;
		}
		m->peak_bytes = m->net_bytes > m->peak_bytes ? m->net_bytes : m->peak_bytes;
	}
}

static void test_random_steps(void **state)
{
	struct mew_memory_pool model[] = { { "arena", 0, 0, 0, 0 }, { "slab", 0, 0, 0, 0 } };

	(void)state;
	expect(random_steps, model, 1, model, 2);
	assert_true(model[0].peak_bytes > 1000000);
}

static pthread_barrier_t together;

static void on_threads(struct alloc_rig *rig, unsigned thread)
{
	char *mine = memory + 1000 * (size_t)thread;

	(void)rig;
	for (unsigned i = 0; i < 20000; i++) {
		mew_pool_alloc(&arena, mine, 10);
		mew_pool_free(&arena, mine);
	}
	(void)pthread_barrier_wait(&together);
	mew_pool_alloc(&slab, mine, 100);
	(void)pthread_barrier_wait(&together);
	mew_pool_free(&slab, memory + 1000 * (size_t)(3 - thread)); /* another's */
}

static void test_threads_share_pools(void **state)
{
	struct alloc_rig rig = { .threads = 4, .body = on_threads };

	(void)state;
	assert_int_equal(pthread_barrier_init(&together, NULL, 4), 0);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->nby_pool, 2);
	assert_int_equal(rig.figures->by_pool[0].allocations, 80000);
	assert_int_equal(rig.figures->by_pool[0].net_bytes, 0);
	assert_in_range(rig.figures->by_pool[0].peak_bytes, 10, 40);
	assert_int_equal(rig.figures->by_pool[1].peak_bytes, 400);
	assert_int_equal(rig.figures->by_pool[1].net_bytes, 0);
	alloc_rig_free(&rig);
	(void)pthread_barrier_destroy(&together);
}

static bool stop;

static void fork_or_announce(struct alloc_rig *rig, unsigned thread)
{
	unsigned *hung = rig->data;

	while (thread != 0 && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
		mew_pool_alloc(&arena, memory, 10);
	for (unsigned i = 0; thread == 0 && i < 200 && *hung < 3; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			(void)alarm(5);
			for (unsigned k = 0; k < 50; k++)
				mew_pool_alloc(&slab, memory, 10);
			_exit(mew_pool_listener_() == NULL ? 0 : 1);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
			(*hung)++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void test_forked_children_are_not_watched(void **state)
{
	unsigned hung = 0;
	struct alloc_rig rig = { .threads = 2, .body = fork_or_announce, .data = &hung };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(hung, 0);
	assert_int_equal(rig.figures->nby_pool, 1);
	assert_string_equal(rig.figures->by_pool[0].name, "arena");
	alloc_rig_free(&rig);
}

static void use_many(struct alloc_rig *rig, unsigned thread)
{
	static struct mew_pool pools[70];
	static char names[70][16];

	(void)thread;
	for (int i = 69; i >= 0; i--) {
		(void)snprintf(names[i], sizeof names[i], "pool %02d", i);
		pools[i] = (struct mew_pool)MEW_POOL(names[i]);
		mew_pool_alloc(&pools[i], memory, (size_t)i);
		mew_pool_free(&pools[i], memory);
	}
	(void)rig;
}

static void test_more_pools_than_there_is_room_for(void **state)
{
	struct alloc_rig rig = { .body = use_many };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->nby_pool, 64);
	assert_string_equal(rig.figures->by_pool[0].name, "pool 06"); /* the first 64 that came, by name */
	assert_string_equal(rig.figures->by_pool[63].name, "pool 69");
	assert_int_equal(rig.figures->by_pool[63].peak_bytes, 69);
	assert_non_null(strstr(rig.figures->reason, "first 64"));
	alloc_rig_free(&rig);
}

/* --- absence ------------------------------------------------------------------------------------------------------ */

static void announce_nothing(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
}

static void test_without_pools_the_figure_is_absent(void **state)
{
	struct alloc_rig rig = { .body = announce_nothing };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_false(rig.figures->present >> MEW_FIG_BY_POOL & 1);
	assert_non_null(strstr(mew_memory_why(rig.figures, MEW_FIG_BY_POOL), "mew/pool.h"));
	alloc_rig_free(&rig);
}

static void announce_from_handler(int signal_number)
{
	(void)signal_number;
	mew_pool_alloc(&arena, memory, 10);
}

static void raise_signal(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	errno = 77;
	(void)raise(SIGUSR1);
	if (errno != 77)
		abort();
}

static void test_signal_handlers_count(void **state)
{
	(void)state;
	assert_true(signal(SIGUSR1, announce_from_handler) != SIG_ERR);
	EXPECT(raise_signal, NULL, { "arena", 10, 1, 10, 10 });
	(void)signal(SIGUSR1, SIG_DFL);
}

static void test_one_watcher_at_a_time(void **state)
{
	static const struct mew_pool_watch_ nobody;
	const struct mew_hooks_api *api = mew_hooks_link();
	struct alloc_rig rig = { .body = announce_nothing };

	(void)state;
	assert_int_equal(api->watch_pools(&nobody), 0);
	assert_int_equal(api->watch_pools(&nobody), -1);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_non_null(strstr(mew_memory_why(rig.figures, MEW_FIG_BY_POOL), "another capture"));
	alloc_rig_free(&rig);
	assert_int_equal(api->watch_pools(NULL), 0);
	assert_null(mew_pool_listener_());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pools_are_series_of_their_own),
		cmocka_unit_test(test_windows_forget),
		cmocka_unit_test(test_older_blocks_are_ignored),
		cmocka_unit_test(test_a_block_is_alive_once),
		cmocka_unit_test(test_reset_takes_all_of_one_pool),
		cmocka_unit_test(test_one_name_is_one_pool),
		cmocka_unit_test(test_a_pause_stops_admission_alone),
		cmocka_unit_test(test_random_steps),
		cmocka_unit_test(test_threads_share_pools),
		cmocka_unit_test(test_forked_children_are_not_watched),
		cmocka_unit_test(test_more_pools_than_there_is_room_for),
		cmocka_unit_test(test_without_pools_the_figure_is_absent),
		cmocka_unit_test(test_signal_handlers_count),
		cmocka_unit_test(test_one_watcher_at_a_time),
	};

	return cmocka_run_group_tests_name("memory_pools", tests, NULL, NULL);
}
