/*
 * t_memory.c - the figures of the memory backend, driven through its contract.
 * Every body runs four times: counting and with stacks, before the process has threads (plain counters) and after.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../backends/shadow.h"
#include "fx_alloc_rig.h"
#include "modules.h"

#define HUGE_BYTES ((size_t)1 << 62)

struct figures { /* expected; what is not named must be 0 */
	uint64_t peak, allocations, cumulative, frees, moved, in_place, failed, foreign, adopted, net_bytes, net_blocks;
};

static void check_figures(const struct alloc_rig *rig, const struct figures *want)
{
	const struct mew_memory_case *got = rig->figures;

	assert_int_equal(got->peak_bytes, want->peak);
	assert_int_equal(got->total_bytes, want->peak);
	assert_int_equal(got->total_allocations, want->allocations);
	assert_int_equal(got->cumulative_bytes, want->cumulative);
	assert_int_equal(got->frees, want->frees);
	assert_int_equal(got->reallocs_moved, want->moved);
	assert_int_equal(got->reallocs_in_place, want->in_place);
	assert_int_equal(got->failed, want->failed);
	assert_int_equal(got->foreign_frees, want->foreign);
	assert_int_equal(got->adopted, want->adopted);
	assert_int_equal(got->net_bytes, want->net_bytes);
	assert_int_equal(got->net_blocks, want->net_blocks);
	assert_int_equal(got->lost, 0);
}

static void run(struct alloc_rig *rig)
{
	int status = alloc_rig_run(rig);

	if (status != MEW_OK)
		print_message("the backend said: %s\n", rig->error.text);
	assert_int_equal(status, MEW_OK);
}

static void expect(void **state, alloc_body_fn *body, void *data, const struct figures *want)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .body = body, .data = data };

	run(&rig);
	check_figures(&rig, want);
	alloc_rig_free(&rig);
}

/* --- known bodies ------------------------------------------------------------------------------------------------------- */

static void three_mallocs(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	for (uint64_t i = 0; i < rig->iterations; i++) {
		void *a = fx_malloc(100), *b = fx_malloc(100);

		mew_keep(fx_malloc(100)); /* stays */
		fx_free(a);
		fx_free(b);
	}
}

static void test_three_mallocs_two_frees(void **state)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .body = three_mallocs, .iterations = 10 };

	run(&rig);
	check_figures(&rig, &(struct figures){ .peak = 1200, .allocations = 30, .cumulative = 3000, .frees = 20,
					       .net_bytes = 1000, .net_blocks = 10 });
	assert_int_equal(rig.figures->iterations, 10);
	assert_true(rig.figures->allocations_per_iteration == 3.0);
	assert_true(rig.figures->bytes_per_iteration == 300.0);
	alloc_rig_free(&rig);
}

static void grow(struct alloc_rig *rig, unsigned thread)
{
	void *p = NULL;

	(void)rig;
	(void)thread;
	for (size_t size = 16; size <= 1 << 20; size *= 2)
		p = fx_realloc(p, size);
	fx_free(p);
}

static void test_growth_counts_each_size_once(void **state)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .body = grow };

	run(&rig);
	/* 17 sizes: the first is an allocation, sixteen are reallocs; never old and new at once */
	assert_int_equal(rig.figures->peak_bytes, 1 << 20);
	assert_int_equal(rig.figures->total_allocations, 17);
	assert_int_equal(rig.figures->cumulative_bytes, (1 << 21) - 16);
	assert_int_equal(rig.figures->reallocs_moved + rig.figures->reallocs_in_place, 16);
	assert_int_equal(rig.figures->net_bytes, 0);
	alloc_rig_free(&rig);
}

struct moves {
	unsigned moved, in_place;
};

static void watch_moves(struct alloc_rig *rig, unsigned thread)
{
	struct moves *m = rig->data;
	uintptr_t before;
	void *p, *fence;

	(void)thread;
	p = fx_malloc(1000);
	fence = fx_malloc(16); /* nothing behind p to grow into */
	for (size_t i = 0; i < 8; i++) {
		size_t size = i % 2 == 0 ? 900 - i : 3000 + 1000 * i;

		before = (uintptr_t)p;
		p = fx_realloc(p, size);
		if ((uintptr_t)p == before)
			m->in_place++;
		else
			m->moved++;
	}
	fx_free(fence);
	fx_free(p);
}

static void test_moved_and_in_place_are_told_apart(void **state)
{
	struct moves seen = { 0, 0 };
	struct alloc_rig rig = { .stacks = *state != NULL, .body = watch_moves, .data = &seen };

	run(&rig);
	assert_int_equal(rig.figures->reallocs_moved, seen.moved);
	assert_int_equal(rig.figures->reallocs_in_place, seen.in_place);
	assert_true(seen.in_place > 0); /* shrinking a block of 1000 bytes to 900 never moves it */
	alloc_rig_free(&rig);
}

static void fail_realloc(struct alloc_rig *rig, unsigned thread)
{
	void *p = fx_malloc(100);

	(void)thread;
	*(bool *)rig->data = fx_realloc(p, HUGE_BYTES) == NULL && errno == ENOMEM;
	fx_free(p);
}

static void test_failed_realloc_keeps_the_block(void **state)
{
	bool failed = false;

	expect(state, fail_realloc, &failed,
	       &(struct figures){ .peak = 100, .allocations = 1, .cumulative = 100, .frees = 1, .failed = 1 });
	assert_true(failed);
}

static void realloc_to_nothing(struct alloc_rig *rig, unsigned thread)
{
	void *p = fx_realloc(fx_malloc(100), 0);

	(void)thread;
	*(void **)rig->data = p;
	fx_free(p);
}

static void test_realloc_to_nothing_follows_the_allocator(void **state)
{
	void *returned = NULL;
	struct alloc_rig rig = { .stacks = *state != NULL, .body = realloc_to_nothing, .data = &returned };

	run(&rig);
	assert_int_equal(rig.figures->frees, 1);
	assert_int_equal(rig.figures->total_allocations, returned == NULL ? 1 : 2);
	assert_int_equal(rig.figures->peak_bytes, 100);
	assert_int_equal(rig.figures->net_blocks, 0);
	alloc_rig_free(&rig);
}

static void sizes_and_failures(struct alloc_rig *rig, unsigned thread)
{
	void *p;

	(void)thread;
	fx_free(fx_malloc(0));
	fx_free(fx_calloc(10, 30));
	mew_keep(fx_calloc(HUGE_BYTES, 8));
	mew_keep(fx_malloc(HUGE_BYTES));
	mew_keep(reallocarray(NULL, *(volatile size_t *)rig->data, 8));
	if (posix_memalign(&p, 64, 100) == 0)
		fx_free(p);
	if (posix_memalign(&p, 3, 100) == 0)
		fx_free(p);
	fx_free(NULL);
}

static void test_sizes_are_those_asked_for(void **state)
{
	size_t too_many = HUGE_BYTES;

	expect(state, sizes_and_failures, &too_many,
	       &(struct figures){ .peak = 300, .allocations = 3, .cumulative = 400, .frees = 3, .failed = 4 });
}

static void call_libc(struct alloc_rig *rig, unsigned thread)
{
	char *text;

	(void)thread;
	fx_free(strdup(rig->data));
	if (asprintf(&text, "%s", "twelve bytes") == 12)
		fx_free(text);
}

static void test_calls_inside_libc_count(void **state)
{
	char text[] = "strdup me";
	struct alloc_rig rig = { .stacks = *state != NULL, .body = call_libc, .data = text };

	run(&rig);
	assert_int_equal(rig.figures->peak_bytes >= 10, 1);
	assert_true(rig.figures->total_allocations >= 2);
	assert_int_equal(rig.figures->net_blocks, 0);
	assert_int_equal(rig.figures->foreign_frees, 0);
	alloc_rig_free(&rig);
}

/* --- blocks from before the window ---------------------------------------------------------------------------------------- */

static void free_older(struct alloc_rig *rig, unsigned thread)
{
	fx_free(((void **)rig->data)[thread]);
}

static void test_free_of_an_older_block(void **state)
{
	void *older = fx_malloc(5000);

	expect(state, free_older, &older, &(struct figures){ .foreign = 1 });
}

static void hide_growth(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	fx_free(*(void **)rig->data);
	fx_free(fx_malloc(70));
}

static void test_free_of_an_older_block_hides_nothing(void **state)
{
	void *older = fx_malloc(5000);

	expect(state, hide_growth, &older,
	       &(struct figures){ .peak = 70, .allocations = 1, .cumulative = 70, .frees = 1, .foreign = 1 });
}

static void realloc_older(struct alloc_rig *rig, unsigned thread)
{
	void **older = rig->data;

	(void)thread;
	older[1] = older[0];
	older[0] = fx_realloc(older[0], 90);
}

static void test_realloc_of_an_older_block_adopts_it(void **state)
{
	void *older[2] = { fx_malloc(100), NULL };
	struct alloc_rig rig = { .stacks = *state != NULL, .body = realloc_older, .data = older };
	bool stayed;

	run(&rig);
	stayed = older[0] == older[1];
	check_figures(&rig, &(struct figures){ .peak = 90, .allocations = 1, .cumulative = 90, .adopted = 1,
					       .moved = !stayed, .in_place = stayed, .net_bytes = 90, .net_blocks = 1 });
	alloc_rig_free(&rig);
	fx_free(older[0]);
}

static void leak(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	*(void **)rig->data = fx_malloc(40);
}

static void test_the_next_window_forgets(void **state)
{
	void *leaked;

	expect(state, leak, &leaked,
	       &(struct figures){ .peak = 40, .allocations = 1, .cumulative = 40, .net_bytes = 40, .net_blocks = 1 });
	expect(state, free_older, &leaked, &(struct figures){ .foreign = 1 });
}

static void test_forgetting_outlasts_the_epochs(void **state)
{
	void *leaked;

	expect(state, leak, &leaked,
	       &(struct figures){ .peak = 40, .allocations = 1, .cumulative = 40, .net_bytes = 40, .net_blocks = 1 });
	for (unsigned i = 0; i < (1u << MEW_SHADOW_EPOCH_BITS) - 2; i++)
		mew_shadow_next_epoch(); /* the next window has the number of the one that leaked */
	expect(state, free_older, &leaked, &(struct figures){ .foreign = 1 });
}

/* --- pauses ------------------------------------------------------------------------------------------------------------- */

static void pause_around_malloc(struct alloc_rig *rig, unsigned thread)
{
	void *p;

	alloc_rig_pause(rig, thread);
	p = fx_malloc(100);
	alloc_rig_resume(rig, thread);
	fx_free(p);
}

static void test_allocated_in_a_pause_freed_outside(void **state)
{
	expect(state, pause_around_malloc, NULL, &(struct figures){ .foreign = 1 });
}

static void pause_around_free(struct alloc_rig *rig, unsigned thread)
{
	for (unsigned i = 0; i < 5; i++) {
		void *p = fx_malloc(100);

		alloc_rig_pause(rig, thread);
		fx_free(p);
		alloc_rig_resume(rig, thread);
	}
}

static void test_allocated_outside_freed_in_a_pause(void **state)
{
	expect(state, pause_around_free, NULL,
	       &(struct figures){ .peak = 100, .allocations = 5, .cumulative = 500, .frees = 5 });
}

static void pause_only(struct alloc_rig *rig, unsigned thread)
{
	alloc_rig_pause(rig, thread);
	fx_free(fx_realloc(fx_malloc(100), 200));
	mew_keep(fx_malloc(HUGE_BYTES));
	alloc_rig_resume(rig, thread);
}

static void pause_around_realloc(struct alloc_rig *rig, unsigned thread)
{
	size_t *sizes = rig->data;
	void *p = fx_malloc(100);

	alloc_rig_pause(rig, thread);
	p = fx_realloc(p, sizes[0]);
	alloc_rig_resume(rig, thread);
	if (sizes[1])
		fx_free(p);
	else
		mew_keep(p);
}

static void test_realloc_in_a_pause_admits_nothing(void **state)
{
	size_t grow_keep[] = { 5000, 0 }, grow_free[] = { 5000, 1 }, shrink_keep[] = { 60, 0 };

	expect(state, pause_around_realloc, grow_keep,
	       &(struct figures){ .peak = 100, .allocations = 1, .cumulative = 100, .net_bytes = 100, .net_blocks = 1 });
	expect(state, pause_around_realloc, grow_free,
	       &(struct figures){ .peak = 100, .allocations = 1, .cumulative = 100, .frees = 1 });
	expect(state, pause_around_realloc, shrink_keep,
	       &(struct figures){ .peak = 100, .allocations = 1, .cumulative = 100, .net_bytes = 60, .net_blocks = 1 });
}

static void pause_to_the_end(struct alloc_rig *rig, unsigned thread)
{
	alloc_rig_pause(rig, thread);
}

static void test_a_window_may_end_paused(void **state)
{
	void *leaked;

	expect(state, pause_to_the_end, NULL, &(struct figures){ .peak = 0 });
	expect(state, leak, &leaked,
	       &(struct figures){ .peak = 40, .allocations = 1, .cumulative = 40, .net_bytes = 40, .net_blocks = 1 });
	fx_free(leaked);
}

/* --- nothing ------------------------------------------------------------------------------------------------------------ */

static void empty(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
}

static void zero_test(void **state, unsigned threads)
{
	void *older[8];
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = threads, .body = empty };

	run(&rig);
	check_figures(&rig, &(struct figures){ .peak = 0 });
	alloc_rig_free(&rig);
	rig.body = pause_only;
	run(&rig);
	check_figures(&rig, &(struct figures){ .peak = 0 });
	alloc_rig_free(&rig);
	for (unsigned i = 0; i < threads; i++)
		older[i] = fx_malloc(64);
	rig.body = free_older;
	rig.data = older;
	run(&rig);
	check_figures(&rig, &(struct figures){ .foreign = threads });
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

static void keep_errno(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	for (size_t size = 8; size < (size_t)1 << 26; size *= 4) {
		void *p = fx_malloc(size);

		errno = 1234;
		fx_free(p);
		if (errno != 1234)
			*(bool *)rig->data = true;
	}
}

static void test_free_keeps_errno(void **state)
{
	bool changed = false;
	struct alloc_rig rig = { .stacks = *state != NULL, .body = keep_errno, .data = &changed };

	run(&rig);
	assert_false(changed);
	alloc_rig_free(&rig);
}

/* --- several threads ------------------------------------------------------------------------------------------------------ */

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
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = 2, .body = hand_over, .data = slots };

	assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
	run(&rig);
	check_figures(&rig, &(struct figures){ .peak = 1000, .allocations = 5000, .cumulative = 50000, .frees = 5000 });
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

	run(&rig);
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
	run(&rig);
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
	run(&rig);
	assert_false(failed);
	assert_in_range(rig.figures->total_allocations, 160, 200);
	assert_in_range(rig.figures->peak_bytes, 300, 2000);
	/* the vector and the stack of the last thread may be kept for the next one */
	assert_in_range(rig.figures->net_bytes, 0, 1000);
	alloc_rig_free(&rig);
	(void)pthread_key_delete(key);
}

/* --- a slow model ----------------------------------------------------------------------------------------------------------- */

#define MODEL_SLOTS 256

struct model {
	void *block[MODEL_SLOTS];
	size_t size[MODEL_SLOTS];
	bool tracked[MODEL_SLOTS];
	uint64_t live, peak;
	struct figures want;
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

static void model_change(struct model *m, size_t gone, size_t come)
{
	m->live = m->live - gone + come;
	if (m->live > m->peak)
		m->peak = m->live;
}

static void model_allocated(struct model *m, size_t size)
{
	m->want.allocations++;
	m->want.cumulative += size;
}

static void model_malloc(struct model *m, size_t slot, size_t size, bool paused)
{
	m->block[slot] = size % 3 == 0 ? fx_calloc(1, size) : fx_malloc(size);
	m->size[slot] = size;
	m->tracked[slot] = !paused;
	if (paused)
		return;
	model_allocated(m, size);
	model_change(m, 0, size);
}

static void model_free(struct model *m, size_t slot, bool paused)
{
	fx_free(m->block[slot]);
	m->block[slot] = NULL;
	if (m->tracked[slot]) {
		m->want.frees++;
		model_change(m, m->size[slot], 0);
	} else if (!paused) {
		m->want.foreign++;
	}
}

static void model_realloc(struct model *m, size_t slot, size_t size, bool paused)
{
	uintptr_t before = (uintptr_t)m->block[slot];
	size_t old = m->tracked[slot] ? m->size[slot] : 0;
	bool moved;

	m->block[slot] = fx_realloc(m->block[slot], size);
	moved = (uintptr_t)m->block[slot] != before;
	if (paused) {
		size = m->tracked[slot] && old < size ? old : size;
		if (m->tracked[slot])
			model_change(m, old, size);
		m->size[slot] = size;
		return;
	}
	m->want.moved += moved;
	m->want.in_place += !moved;
	m->want.adopted += !m->tracked[slot];
	m->tracked[slot] = true;
	m->size[slot] = size;
	model_allocated(m, size);
	model_change(m, old, size);
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
			model_malloc(m, slot, size, paused);
		else if ((r >> 44) % 3 == 0)
			model_realloc(m, slot, size, paused);
		else
			model_free(m, slot, paused);
		if (paused)
			alloc_rig_resume(rig, thread);
		(void)pthread_mutex_unlock(&turn);
	}
}

static void compare_with_model(void **state, unsigned threads, uint64_t seed)
{
	static struct model m;
	struct alloc_rig rig = { .stacks = *state != NULL, .threads = threads, .body = random_steps, .data = &m };

	memset(&m, 0, sizeof m);
	m.seed = seed;
	m.rounds = 20000 / threads;
	for (size_t i = 0; i < MODEL_SLOTS; i += 3)
		m.block[i] = fx_malloc(m.size[i] = 100);
	run(&rig);
	m.want.peak = m.peak;
	m.want.net_bytes = m.live;
	for (size_t i = 0; i < MODEL_SLOTS; i++)
		m.want.net_blocks += m.block[i] != NULL && m.tracked[i];
	check_figures(&rig, &m.want);
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

	run(&rig);
	assert_int_equal(rig.figures->total_allocations, 80000);
	assert_int_equal(rig.figures->frees, 80000);
	assert_int_equal(rig.figures->net_bytes, 0);
	assert_int_equal(rig.figures->net_blocks, 0);
	assert_in_range(rig.figures->peak_bytes, 64 * 60, 4 * 64 * 200);
	alloc_rig_free(&rig);
}

/* --- stacks --------------------------------------------------------------------------------------------------------------- */

static MEW_NOINLINE void *allocate_here(size_t size)
{
	void *p = fx_malloc(size);

	mew_keep(p);
	return p;
}

static MEW_NOINLINE void *allocate_there(size_t size)
{
	void *p = fx_malloc(size);

	mew_clobber();
	return p;
}

/* The peak, 1100 bytes, is where both hold theirs; the 900 bytes after it are more from one stack but less in all. */
static void two_stacks(struct alloc_rig *rig, unsigned thread)
{
	void *a = allocate_here(300), *b = allocate_there(800), *c;

	(void)thread;
	fx_free(b);
	c = allocate_here(600);
	fx_free(a);
	fx_free(c);
	*(void **)rig->data = allocate_there(50);
}

static void test_what_each_stack_held_at_the_peak(void **state)
{
	void *leaked;
	struct alloc_rig rig = { .stacks = true, .body = two_stacks, .data = &leaked };
	uint64_t here = 0, there = 0, net = 0, allocations = 0;

	(void)state;
	run(&rig);
	assert_int_equal(rig.figures->peak_bytes, 1100);
	assert_in_range(rig.row->nheap_stacks, 2, 4); /* one function may be called from two places of the body */
	for (size_t i = 0; i < rig.row->nheap_stacks; i++) {
		const struct mew_heap_stack *s = &rig.row->heap_stacks[i];

		here += s->peak_bytes == 300;
		there += s->peak_bytes == 800;
		net += s->net_bytes;
		allocations += s->allocations;
		assert_true(rig.model->stacks[s->stack].depth >= 3); /* allocator's caller, body, rig ... */
		assert_in_range(s->stack, 0, rig.model->nstacks - 1);
	}
	assert_int_equal(here, 1);
	assert_int_equal(there, 1);
	assert_int_equal(net, 50);
	assert_int_equal(allocations, 4);
	fx_free(leaked);
	alloc_rig_free(&rig);
}

/* The leaf of every stack is the call of the allocator: a place in this program, not in mew and not in the hooks. */
static void test_leaf_is_the_callers_code(void **state)
{
	void *leaked;
	struct alloc_rig rig = { .stacks = true, .body = two_stacks, .data = &leaked };

	(void)state;
	run(&rig);
	for (size_t i = 0; i < rig.row->nheap_stacks; i++) {
		const struct mew_stack *stack = &rig.model->stacks[rig.row->heap_stacks[i].stack];
		const struct mew_location *leaf = &rig.model->locations[rig.model->frames[stack->first]];
		uintptr_t here = (uintptr_t)allocate_here, there = (uintptr_t)allocate_there;
		uintptr_t lo = here < there ? here : there, hi = (here < there ? there : here) + 256;
		uintptr_t at = mew_modules_find(mew_modules_current(), here)->bias + leaf->offset;

		assert_int_not_equal(leaf->module, MEW_NO_MODULE);
		assert_in_range(at, lo, hi);
	}
	fx_free(leaked);
	alloc_rig_free(&rig);
}

/* --- fork ------------------------------------------------------------------------------------------------------------------ */

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
	run(&rig);
	assert_int_equal(hung, 0);
	assert_int_equal(rig.figures->total_allocations, rig.figures->frees);
	alloc_rig_free(&rig);
}

/* --- one at a time --------------------------------------------------------------------------------------------------------- */

static void test_a_second_capture_is_refused(void **state)
{
	struct mew_capture_config config = { .pass = MEW_PASS_MEMORY, .threads = 1 };
	struct mew_capture *first, *second = NULL;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_memory.probe(&err), MEW_OK);
	assert_int_equal(mew_backend_memory.open(&first, &config, &err), MEW_OK);
	assert_int_equal(mew_backend_memory.open(&second, &config, &err), MEW_E_BUSY);
	assert_int_equal(mew_backend_memory.probe(&err), MEW_E_BUSY);
	mew_backend_memory.close(first);
	assert_int_equal(mew_backend_memory.probe(&err), MEW_OK);
}

static void *do_nothing(void *data)
{
	return data;
}

static void test_the_process_gets_threads(void **state)
{
	pthread_t id;

	(void)state;
	assert_int_equal(pthread_create(&id, NULL, do_nothing, NULL), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
}

#define BOTH(test) cmocka_unit_test_prestate(test, NULL), cmocka_unit_test_prestate(test, &with_stacks)
#define ON_ANY_THREAD                                                                                                  \
	BOTH(test_three_mallocs_two_frees), BOTH(test_growth_counts_each_size_once),                                   \
		BOTH(test_moved_and_in_place_are_told_apart), BOTH(test_failed_realloc_keeps_the_block),               \
		BOTH(test_realloc_to_nothing_follows_the_allocator), BOTH(test_sizes_are_those_asked_for),             \
		BOTH(test_calls_inside_libc_count), BOTH(test_free_of_an_older_block),                                 \
		BOTH(test_free_of_an_older_block_hides_nothing), BOTH(test_realloc_of_an_older_block_adopts_it),       \
		BOTH(test_the_next_window_forgets), BOTH(test_forgetting_outlasts_the_epochs),                         \
		BOTH(test_allocated_in_a_pause_freed_outside), BOTH(test_allocated_outside_freed_in_a_pause),          \
		BOTH(test_realloc_in_a_pause_admits_nothing), BOTH(test_a_window_may_end_paused),                      \
		BOTH(test_zero_on_1_thread), BOTH(test_free_keeps_errno), BOTH(test_random_steps_on_1_thread)

int main(void)
{
	static int with_stacks;
	const struct CMUnitTest tests[] = {
		ON_ANY_THREAD,
		cmocka_unit_test(test_what_each_stack_held_at_the_peak),
		cmocka_unit_test(test_leaf_is_the_callers_code),
		cmocka_unit_test(test_a_second_capture_is_refused),
		cmocka_unit_test(test_the_process_gets_threads), /* from here on counters are shared */
		ON_ANY_THREAD,
		BOTH(test_zero_on_2_threads),
		BOTH(test_zero_on_8_threads),
		BOTH(test_allocated_in_one_thread_freed_in_another),
		BOTH(test_peak_is_of_one_moment),
		BOTH(test_peak_is_of_all_threads),
		BOTH(test_threads_that_come_and_go),
		BOTH(test_random_steps_on_4_threads),
		BOTH(test_unordered_threads),
		BOTH(test_fork_while_another_thread_allocates),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
