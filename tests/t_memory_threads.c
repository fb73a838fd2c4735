/*
 * t_memory_threads.c - the memory backend with several threads: exact figures, against a slow model too; fork.
 * Every test runs twice: counting and with stacks.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fx_alloc_rig.h"

#define HUGE_BYTES ((size_t)1 << 62)

/* --- nothing ------------------------------------------------------------------------------------------------------ */

static void empty(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
}

static void pause_only(struct alloc_rig *rig, unsigned thread)
{
	alloc_rig_pause(rig, thread);
	fx_free(fx_realloc(fx_malloc(100), 200));
	mew_keep(fx_malloc(HUGE_BYTES));
	alloc_rig_resume(rig, thread);
}

static void free_older(struct alloc_rig *rig, unsigned thread)
{
	fx_free(((void **)rig->data)[thread]);
}

static void zero_test(void **state, unsigned threads)
{
	void *older[8];
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = threads, .body = empty };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &(struct alloc_figures){ .peak = 0 }), 0);
	alloc_rig_free(&rig);
	rig.body = pause_only;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &(struct alloc_figures){ .peak = 0 }), 0);
	alloc_rig_free(&rig);
	for (unsigned i = 0; i < threads; i++)
		older[i] = fx_malloc(64);
	rig.body = free_older;
	rig.data = older;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &(struct alloc_figures){ .foreign = threads }), 0);
	alloc_rig_free(&rig);
}

static void test_zero_on_1_thread(void **state)
{
	zero_test(state, 1);
}

static void test_zero_on_2_threads(void **state)
{
	zero_test(state, 2);
}

static void test_zero_on_8_threads(void **state)
{
	zero_test(state, 8);
}

/* --- several threads ---------------------------------------------------------------------------------------------- */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;

static void hand_over(struct alloc_rig *rig, unsigned thread)
{
	void **slots = rig->data;

	for (unsigned round = 0; round < 50; round++) {
		if (thread == 0)
			for (unsigned i = 0; i < 100; i++)
				slots[i] = fx_malloc(10);
		(void)pthread_barrier_wait(&all);
		if (thread == 1)
			for (unsigned i = 0; i < 100; i++)
				fx_free(slots[i]);
		(void)pthread_barrier_wait(&all);
	}
}

static void test_allocated_in_one_thread_freed_in_another(void **state)
{
	void *slots[100];
	const struct alloc_figures want = { .peak = 1000, .allocations = 5000, .cumulative = 50000, .frees = 5000 };
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = 2, .body = hand_over, .data = slots };

	assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &want), 0);
	alloc_rig_free(&rig);
	(void)pthread_barrier_destroy(&all);
}

/* One block of 1000 bytes in the whole process at a time: a sum of figures from different moments would show more. */
static void one_at_a_time(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 3000; i++) {
		(void)pthread_mutex_lock(&turn);
		fx_free(fx_malloc(1000 - i % 7));
		(void)pthread_mutex_unlock(&turn);
	}
}

static void test_peak_is_of_one_moment(void **state)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = 4, .body = one_at_a_time };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->peak_bytes, 1000);
	assert_int_equal(rig.figures->total_allocations, 12000);
	assert_int_equal(rig.figures->frees, 12000);
	assert_int_equal(rig.figures->net_bytes, 0);
	alloc_rig_free(&rig);
}

/* Everybody holds all of his blocks at once, once; before and after, less. */
static void all_at_once(struct alloc_rig *rig, unsigned thread)
{
	void *mine[64];

	(void)rig;
	for (unsigned round = 0; round < 20; round++) {
		unsigned n = round == 11 ? 64 : 20 + (round * 7 + thread) % 40;

		(void)pthread_barrier_wait(&all);
		for (unsigned i = 0; i < n; i++)
			mine[i] = fx_malloc(100);
		(void)pthread_barrier_wait(&all);
		for (unsigned i = 0; i < n; i++)
			fx_free(mine[i]);
	}
}

static void test_peak_is_of_all_threads(void **state)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = 6, .body = all_at_once };

	assert_int_equal(pthread_barrier_init(&all, NULL, 6), 0);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->peak_bytes, 6 * 64 * 100);
	assert_int_equal(rig.figures->net_blocks, 0);
	alloc_rig_free(&rig);
	(void)pthread_barrier_destroy(&all);
}

static pthread_key_t key;

static void allocate_late(void *value)
{
	fx_free(value);
	fx_free(fx_malloc(50));
}

static void *short_life(void *data)
{
	(void)data;
	(void)pthread_setspecific(key, fx_malloc(200));
	fx_free(fx_malloc(100));
	return fx_malloc(30);
}

static void start_threads(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	for (unsigned i = 0; i < 40; i++) {
		pthread_t id;
		void *result = NULL;

		if (pthread_create(&id, NULL, short_life, NULL) != 0 || pthread_join(id, &result) != 0)
			*(bool *)rig->data = true;
		fx_free(result);
	}
}

/* libc allocates a vector for each new thread's variables as well, so only what is certain is compared. */
static void test_threads_that_come_and_go(void **state)
{
	bool failed = false;
	struct alloc_rig rig = { .stacks = *state != NULL, .body = start_threads, .data = &failed };

	assert_int_equal(pthread_key_create(&key, allocate_late), 0);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_false(failed);
	assert_in_range(rig.figures->total_allocations, 160, 200);
	assert_in_range(rig.figures->peak_bytes, 300, 2000);
	/* the vector and the stack of the last thread may be kept for the next one */
	assert_in_range(rig.figures->net_bytes, 0, 1000);
	alloc_rig_free(&rig);
	(void)pthread_key_delete(key);
}

/* --- a slow model ------------------------------------------------------------------------------------------------- */

#define MODEL_SLOTS 256

struct model {
	void *block[MODEL_SLOTS];
	size_t size[MODEL_SLOTS];
	bool tracked[MODEL_SLOTS];
	uint64_t live, peak, usable, peak_usable, temporary;
	uint64_t below_64[64], powers[58];
	const void *last[8]; /* of each thread */
	struct alloc_figures want;
	uint64_t seed;
	unsigned rounds;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A peak has its usable size when it ends: its last moment stands for it. */
static void model_change(struct model *m, size_t gone, size_t come, size_t usable_gone, size_t usable_come)
{
	if (come < gone && m->live > m->peak) {
		m->peak = m->live;
		m->peak_usable = m->usable;
	}
	m->live = m->live - gone + come;
	m->usable = m->usable - usable_gone + usable_come;
}

static void model_allocated(struct model *m, unsigned thread, const void *block, size_t size)
{
	unsigned power = 0;

	m->want.allocations++;
	m->want.cumulative += size;
	m->last[thread] = block;
	if (size < 64)
		m->below_64[size]++;
	while (size >> power > 1)
		power++;
	if (size >= 64)
		m->powers[power - 6]++;
}

static void model_malloc(struct model *m, unsigned thread, size_t slot, size_t size, bool paused)
{
	void *block = size % 3 == 0 ? fx_calloc(1, size) : fx_malloc(size);

	m->block[slot] = block;
	m->size[slot] = size;
	m->tracked[slot] = !paused;
	if (paused)
		return;
	model_allocated(m, thread, block, size);
	model_change(m, 0, size, 0, malloc_usable_size(block));
}

static void model_free(struct model *m, unsigned thread, size_t slot, bool paused)
{
	void *block = m->block[slot];

	if (m->tracked[slot]) {
		m->want.frees++;
		m->temporary += m->last[thread] == block;
		if (m->last[thread] == block)
			m->last[thread] = NULL;
		model_change(m, m->size[slot], 0, malloc_usable_size(block), 0);
	} else if (!paused) {
		m->want.foreign++;
	}
	fx_free(block);
	m->block[slot] = NULL;
}

static void model_realloc(struct model *m, unsigned thread, size_t slot, size_t size, bool paused)
{
	uintptr_t before = (uintptr_t)m->block[slot];
	size_t old = m->tracked[slot] ? m->size[slot] : 0;
	size_t usable = m->tracked[slot] ? malloc_usable_size(m->block[slot]) : 0, usable_now;
	bool moved;

	m->block[slot] = fx_realloc(m->block[slot], size);
	usable_now = malloc_usable_size(m->block[slot]);
	moved = (uintptr_t)m->block[slot] != before;
	if (paused) {
		size = m->tracked[slot] && old < size ? old : size;
		if (m->tracked[slot])
			model_change(m, old, size, usable, usable_now);
		m->size[slot] = size;
		return;
	}
	m->want.moved += moved;
	m->want.in_place += !moved;
	m->want.adopted += !m->tracked[slot];
	m->tracked[slot] = true;
	m->size[slot] = size;
	model_allocated(m, thread, m->block[slot], size);
	model_change(m, old, size, usable, usable_now);
}

/* Each step is done and written down under one mutex, so that the order is known. */
static void random_steps(struct alloc_rig *rig, unsigned thread)
{
	struct model *m = rig->data;

	for (unsigned i = 0; i < m->rounds; i++) {
		uint64_t r;
		size_t slot, size;
		bool paused;

		(void)pthread_mutex_lock(&turn);
		r = next_random(&m->seed);
		slot = r % MODEL_SLOTS;
		size = 1 + ((r >> 16) % 64 == 0 ? (r >> 24) % 100000 : (r >> 24) % 300);
		paused = (r >> 50) % 8 == 0;
		if (paused)
			alloc_rig_pause(rig, thread);
		if (m->block[slot] == NULL)
			model_malloc(m, thread, slot, size, paused);
		else if ((r >> 44) % 3 == 0)
			model_realloc(m, thread, slot, size, paused);
		else
			model_free(m, thread, slot, paused);
		if (paused)
			alloc_rig_resume(rig, thread);
		(void)pthread_mutex_unlock(&turn);
	}
}

static void compare_sizes(const struct model *m, const struct mew_memory_case *row)
{
	size_t at = 0;

	for (size_t i = 0; i < 64 + 58; i++) {
		uint64_t want = i < 64 ? m->below_64[i] : m->powers[i - 64];
		uint64_t low = i < 64 ? i : (uint64_t)64 << (i - 64);

		if (want == 0)
			continue;
		assert_true(at < row->nsize_histogram);
		assert_int_equal(row->size_histogram[at].low, low);
		assert_int_equal(row->size_histogram[at].high, i < 64 ? low : 2 * low - 1);
		assert_int_equal(row->size_histogram[at++].count, want);
	}
	assert_int_equal(at, row->nsize_histogram);
}

static void compare_with_model(void **state, unsigned threads, uint64_t seed)
{
	static struct model m;
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = threads, .body = random_steps, .data = &m };

	memset(&m, 0, sizeof m);
	m.seed = seed;
	m.rounds = 30000 / threads;
	for (size_t i = 0; i < MODEL_SLOTS; i += 3)
		m.block[i] = fx_malloc(m.size[i] = 100);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	if (m.live > m.peak) {
		m.peak = m.live;
		m.peak_usable = m.usable;
	}
	assert_int_equal(rig.figures->peak_usable_bytes, m.peak_usable);
	assert_int_equal(rig.figures->temporary_allocations, m.temporary);
	assert_true(m.temporary > 0);
	compare_sizes(&m, rig.figures);
	m.want.peak = m.peak;
	m.want.net_bytes = m.live;
	for (size_t i = 0; i < MODEL_SLOTS; i++)
		m.want.net_blocks += m.block[i] != NULL && m.tracked[i];
	assert_int_equal(alloc_rig_compare(&rig, &m.want), 0);
	alloc_rig_free(&rig);
	for (size_t i = 0; i < MODEL_SLOTS; i++)
		fx_free(m.block[i]);
}

static void test_random_steps_on_1_thread(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		compare_with_model(state, 1, seed * 7919);
}

static void test_random_steps_on_4_threads(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		compare_with_model(state, seed % 2 == 0 ? 4 : 3, seed * 104729);
}

/* Without an order to compare with, the counts are still exact and nothing may be lost. */
static void unordered_steps(struct alloc_rig *rig, unsigned thread)
{
	void *mine[64] = { NULL };
	uint64_t seed = thread + 1;

	(void)rig;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t r = next_random(&seed);

		fx_free(mine[r % 64]);
		mine[r % 64] = fx_malloc((r >> 20) % 200);
	}
	for (unsigned i = 0; i < 64; i++)
		fx_free(mine[i]);
}

static void test_unordered_threads(void **state)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = 4, .body = unordered_steps };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->total_allocations, 80000);
	assert_int_equal(rig.figures->frees, 80000);
	assert_int_equal(rig.figures->net_bytes, 0);
	assert_int_equal(rig.figures->net_blocks, 0);
	assert_in_range(rig.figures->peak_bytes, 64 * 60, 4 * 64 * 200);
	alloc_rig_free(&rig);
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

static bool stop;

static void fork_or_allocate(struct alloc_rig *rig, unsigned thread)
{
	unsigned *hung = rig->data;

	while (thread != 0 && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
		fx_free(fx_malloc(64));
	for (unsigned i = 0; thread == 0 && i < 300 && *hung < 3; i++) {
		int status = 0;
		pid_t child = fork();

		if (child == 0) {
			(void)alarm(5);
			for (unsigned k = 0; k < 50; k++)
				fx_free(fx_realloc(fx_malloc(64), 128));
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
			(*hung)++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void test_fork_while_another_thread_allocates(void **state)
{
	unsigned hung = 0;
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = 2, .body = fork_or_allocate, .data = &hung };

	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(hung, 0);
	assert_int_equal(rig.figures->total_allocations, rig.figures->frees);
	alloc_rig_free(&rig);
}

#define BOTH(test) cmocka_unit_test_prestate(test, NULL), cmocka_unit_test_prestate(test, &with_stacks)

int main(void)
{
	static int with_stacks;
	const struct CMUnitTest tests[] = {
		BOTH(test_zero_on_1_thread),
		BOTH(test_random_steps_on_1_thread),
		BOTH(test_zero_on_2_threads), /* from here on counters are shared */
		BOTH(test_zero_on_8_threads),
		BOTH(test_random_steps_on_1_thread),
		BOTH(test_allocated_in_one_thread_freed_in_another),
		BOTH(test_peak_is_of_one_moment),
		BOTH(test_peak_is_of_all_threads),
		BOTH(test_threads_that_come_and_go),
		BOTH(test_random_steps_on_4_threads),
		BOTH(test_unordered_threads),
		BOTH(test_fork_while_another_thread_allocates),
	};

	return cmocka_run_group_tests_name("memory_threads", tests, NULL, NULL);
}
