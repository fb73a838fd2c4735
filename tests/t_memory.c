/*
 * t_memory.c - the figures of the memory backend, driven through its contract: one thread.
 * Every body runs four times: counting and with stacks, before the process has threads (plain counters) and after.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backends/shadow.h"
#include "fx_alloc_rig.h"

#define HUGE_BYTES ((size_t)1 << 62)

static void expect(void **state, alloc_body_fn *body, void *data, const struct alloc_figures *want)
{
	struct alloc_rig rig = { .stacks = *state != NULL, .body = body, .data = data };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, want), 0);
	alloc_rig_free(&rig);
}

/* --- known bodies ------------------------------------------------------------------------------------------------- */

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
	const struct alloc_figures want = { .peak = 1200, .allocations = 30, .cumulative = 3000, .frees = 20,
					    .net_bytes = 1000, .net_blocks = 10 };
	struct alloc_rig rig = { .stacks = *state != NULL, .body = three_mallocs, .iterations = 10 };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &want), 0);
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

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
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

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
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
	       &(struct alloc_figures){ .peak = 100, .allocations = 1, .cumulative = 100, .frees = 1, .failed = 1 });
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

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
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
	       &(struct alloc_figures){ .peak = 300, .allocations = 3, .cumulative = 400, .frees = 3, .failed = 4 });
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

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.figures->peak_bytes >= 10, 1);
	assert_true(rig.figures->total_allocations >= 2);
	assert_int_equal(rig.figures->net_blocks, 0);
	assert_int_equal(rig.figures->foreign_frees, 0);
	alloc_rig_free(&rig);
}

/* --- blocks from before the window -------------------------------------------------------------------------------- */

static void free_older(struct alloc_rig *rig, unsigned thread)
{
	fx_free(((void **)rig->data)[thread]);
}

static void test_free_of_an_older_block(void **state)
{
	void *older = fx_malloc(5000);

	expect(state, free_older, &older, &(struct alloc_figures){ .foreign = 1 });
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
	       &(struct alloc_figures){ .peak = 70, .allocations = 1, .cumulative = 70, .frees = 1, .foreign = 1 });
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
	struct alloc_figures want = { .peak = 90, .allocations = 1, .cumulative = 90, .adopted = 1,
				      .net_bytes = 90, .net_blocks = 1 };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	want.in_place = older[0] == older[1];
	want.moved = !want.in_place;
	assert_int_equal(alloc_rig_compare(&rig, &want), 0);
	alloc_rig_free(&rig);
	fx_free(older[0]);
}

static void leak(struct alloc_rig *rig, unsigned thread)
{
	(void)thread;
	*(void **)rig->data = fx_malloc(40);
}

static const struct alloc_figures leak_figures = {
	.peak = 40, .allocations = 1, .cumulative = 40, .net_bytes = 40, .net_blocks = 1
};

static void test_the_next_window_forgets(void **state)
{
	void *leaked;

	expect(state, leak, &leaked, &leak_figures);
	expect(state, free_older, &leaked, &(struct alloc_figures){ .foreign = 1 });
}

static void test_forgetting_outlasts_the_epochs(void **state)
{
	void *leaked;

	expect(state, leak, &leaked, &leak_figures);
	for (unsigned i = 0; i < (1u << MEW_SHADOW_EPOCH_BITS) - 2; i++)
		mew_shadow_next_epoch(); /* the next window has the number of the one that leaked */
	expect(state, free_older, &leaked, &(struct alloc_figures){ .foreign = 1 });
}

/* --- pauses ------------------------------------------------------------------------------------------------------- */

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
	expect(state, pause_around_malloc, NULL, &(struct alloc_figures){ .foreign = 1 });
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
	       &(struct alloc_figures){ .peak = 100, .allocations = 5, .cumulative = 500, .frees = 5 });
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
	struct alloc_figures want = { .peak = 100, .allocations = 1, .cumulative = 100, .net_bytes = 100,
				      .net_blocks = 1 };

	expect(state, pause_around_realloc, grow_keep, &want);
	want.net_bytes = 60;
	expect(state, pause_around_realloc, shrink_keep, &want);
	expect(state, pause_around_realloc, grow_free,
	       &(struct alloc_figures){ .peak = 100, .allocations = 1, .cumulative = 100, .frees = 1 });
}

static void pause_to_the_end(struct alloc_rig *rig, unsigned thread)
{
	alloc_rig_pause(rig, thread);
}

static void test_a_window_may_end_paused(void **state)
{
	void *leaked;

	expect(state, pause_to_the_end, NULL, &(struct alloc_figures){ .peak = 0 });
	expect(state, leak, &leaked, &leak_figures);
	fx_free(leaked);
}

/* --- the rest ---------------------------------------------------------------------------------------------------- */

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

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_false(changed);
	alloc_rig_free(&rig);
}

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
		BOTH(test_free_keeps_errno)

int main(void)
{
	static int with_stacks;
	const struct CMUnitTest tests[] = {
		ON_ANY_THREAD,
		cmocka_unit_test(test_a_second_capture_is_refused),
		cmocka_unit_test(test_the_process_gets_threads), /* from here on counters are shared */
		ON_ANY_THREAD,
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
