/*
 * t_span.c - spans: what they count, on which threads, how they end, and that a memory capture is never in their way.
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
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fx_alloc_rig.h"
#include "span_registry.h"

#define HUGE_BYTES ((size_t)1 << 62)

static void allocate(unsigned n, size_t size)
{
	for (unsigned i = 0; i < n; i++)
		fx_free(fx_malloc(size));
}

static void begin(struct mew_span *span, enum mew_span_scope scope)
{
	assert_int_equal(mew_span_begin(span, scope), MEW_OK);
}

static void expect(struct mew_span *span, uint64_t allocations, uint64_t bytes, uint64_t frees, int64_t net)
{
	assert_int_equal(mew_span_end(span), MEW_OK);
	assert_int_equal(span->allocations, allocations);
	assert_int_equal(span->cumulative_bytes, bytes);
	assert_int_equal(span->frees, frees);
	assert_int_equal(span->net_blocks, net);
	assert_false(mew_spans_hold_hooks());
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

static void test_nothing_is_nothing(void **state)
{
	struct mew_span span;

	(void)state;
	begin(&span, MEW_SPAN_THREAD);
	expect(&span, 0, 0, 0, 0);
	begin(&span, MEW_SPAN_PROCESS);
	expect(&span, 0, 0, 0, 0);
}

static void test_every_function_counts_once(void **state)
{
	enum mew_span_scope scope = *(enum mew_span_scope *)*state;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mew_span span;
	void *blocks[7];

	begin(&span, scope);
	blocks[0] = fx_malloc(1);
	blocks[1] = fx_calloc(3, 10);
	blocks[2] = memalign(64, 200);
	blocks[3] = aligned_alloc(64, 640);
	blocks[4] = valloc(3000);
	blocks[5] = fx_realloc(NULL, 40000);
	assert_int_equal(posix_memalign(&blocks[6], page, 500000), 0);
	for (size_t i = 0; i < MEW_COUNTOF(blocks); i++)
		fx_free(blocks[i]);
	fx_free(NULL);
	expect(&span, 7, 1 + 30 + 200 + 640 + 3000 + 40000 + 500000, 7, 0);
}

static void test_realloc_is_one_allocation(void **state)
{
	enum mew_span_scope scope = *(enum mew_span_scope *)*state;
	struct mew_span span;
	void *block;

	begin(&span, scope);
	block = fx_realloc(fx_malloc(10), 20);
	block = fx_realloc(block, 100000);
	assert_null(fx_realloc(block, HUGE_BYTES)); /* fails and changes nothing */
	fx_free(block);
	expect(&span, 3, 10 + 20 + 100000, 1, 0);
}

static void test_realloc_to_nothing_follows_the_allocator(void **state)
{
	void *block = fx_malloc(10);
	struct mew_span span;
	bool freed;

	(void)state;
	begin(&span, MEW_SPAN_THREAD);
	block = fx_realloc(block, 0);
	freed = block == NULL;
	assert_int_equal(mew_span_end(&span), MEW_OK);
	assert_int_equal(span.allocations, !freed);
	assert_int_equal(span.frees, freed);
	assert_int_equal(span.net_blocks, freed ? -1 : 0);
	fx_free(block);
}

static void test_failures_and_older_blocks(void **state)
{
	void *older = fx_malloc(50);
	struct mew_span span;

	(void)state;
	begin(&span, MEW_SPAN_THREAD);
	assert_null(fx_malloc(HUGE_BYTES));
	assert_null(fx_calloc(HUGE_BYTES, 8));
	fx_free(older);
	expect(&span, 0, 0, 1, -1);
}

static void test_calls_inside_libc_count(void **state)
{
	char *(*volatile copy)(const char *) = strdup;
	struct mew_span span;
	char *text;

	(void)state;
	begin(&span, MEW_SPAN_THREAD);
	text = copy("eleven char");
	expect(&span, 1, 12, 0, 1);
	fx_free(text);
}

static void test_errno_stays(void **state)
{
	struct mew_span span;

	(void)state;
	errno = ELOOP;
	begin(&span, MEW_SPAN_THREAD);
	fx_free(fx_malloc(10));
	assert_int_equal(mew_span_end(&span), MEW_OK);
	assert_int_equal(errno, ELOOP);
}

static void test_spans_nest_and_overlap(void **state)
{
	enum mew_span_scope scope = *(enum mew_span_scope *)*state;
	struct mew_span outer, inner, late;

	begin(&outer, scope);
	allocate(1, 10);
	begin(&inner, MEW_SPAN_THREAD);
	allocate(2, 100);
	begin(&late, scope);
	allocate(4, 1000);
	assert_int_equal(mew_span_end(&outer), MEW_OK); /* before the ones that began in it */
	allocate(8, 10000);
	assert_int_equal(mew_span_end(&inner), MEW_OK);
	assert_true(mew_spans_hold_hooks());
	expect(&late, 12, 84000, 12, 0);
	assert_int_equal(outer.allocations, 7);
	assert_int_equal(outer.cumulative_bytes, 4210);
	assert_int_equal(inner.allocations, 14);
	assert_int_equal(inner.cumulative_bytes, 84200);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static pthread_barrier_t both;

static void *count_apart(void *data)
{
	unsigned n = *(unsigned *)data;
	struct mew_span *span = fx_malloc(sizeof *span);

	if (mew_span_begin(span, MEW_SPAN_THREAD) != MEW_OK)
		return span;
	(void)pthread_barrier_wait(&both);
	allocate(n, n);
	(void)pthread_barrier_wait(&both);
	if (mew_span_end(span) != MEW_OK)
		span->allocations = UINT64_MAX;
	return span;
}

static void test_threads_count_apart(void **state)
{
	unsigned n[2] = { 10000, 3 };
	struct mew_span *spans[2];
	pthread_t ids[2];

	(void)state;
	assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, count_apart, &n[i]), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(ids[i], (void **)&spans[i]), 0);
		assert_int_equal(spans[i]->allocations, n[i]);
		assert_int_equal(spans[i]->frees, n[i]);
		fx_free(spans[i]);
	}
	assert_false(mew_spans_hold_hooks());
	(void)pthread_barrier_destroy(&both);
}

static void *allocate_on_signal(void *data)
{
	(void)pthread_barrier_wait(&both);
	for (unsigned i = 0; i < 5000; i++)
		*(void **)data = fx_realloc(*(void **)data, 1 + i % 100);
	(void)pthread_barrier_wait(&both);
	return NULL;
}

static void test_the_process_has_all_threads(void **state)
{
	struct mew_span all, mine;
	void *blocks[2] = { NULL, NULL };
	pthread_t ids[2];

	(void)state;
	assert_int_equal(pthread_barrier_init(&both, NULL, 3), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, allocate_on_signal, &blocks[i]), 0);
	begin(&all, MEW_SPAN_PROCESS);
	begin(&mine, MEW_SPAN_THREAD);
	(void)pthread_barrier_wait(&both);
	allocate(7, 5);
	(void)pthread_barrier_wait(&both);
	assert_int_equal(mew_span_end(&mine), MEW_OK);
	assert_int_equal(mine.allocations, 7);
	expect(&all, 10007, 2 * 50 * 5050 + 35, 7, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(ids[i], NULL), 0);
		fx_free(blocks[i]);
	}
	(void)pthread_barrier_destroy(&both);
}

static void *end_here(void *data)
{
	return mew_span_end(data) == MEW_OK ? data : NULL;
}

static bool ends_on_another_thread(struct mew_span *span)
{
	void *result = NULL;
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, end_here, span), 0);
	assert_int_equal(pthread_join(id, &result), 0);
	return result == span;
}

static void test_only_one_of_the_process_ends_elsewhere(void **state)
{
	struct mew_span span;

	(void)state;
	begin(&span, MEW_SPAN_THREAD);
	assert_false(ends_on_another_thread(&span));
	assert_int_equal(mew_span_end(&span), MEW_OK);
	begin(&span, MEW_SPAN_PROCESS);
	assert_true(ends_on_another_thread(&span));
	assert_false(mew_spans_hold_hooks());
}

static struct mew_span of_process, of_thread;

static void *leave_open(void *data)
{
	struct mew_span on_stack, on_stack_too;

	(void)data;
	(void)mew_span_begin(&on_stack, MEW_SPAN_THREAD);
	(void)mew_span_begin(&on_stack_too, MEW_SPAN_PROCESS);
	(void)mew_span_begin(&of_thread, MEW_SPAN_THREAD);
	(void)mew_span_begin(&of_process, MEW_SPAN_PROCESS);
	return NULL;
}

static void test_a_thread_takes_its_spans_along(void **state)
{
	pthread_t id;

	(void)state;
	assert_int_equal(pthread_create(&id, NULL, leave_open, NULL), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_true(mew_spans_hold_hooks()); /* for the one in static memory that anyone may end */
	assert_int_equal(mew_span_end(&of_thread), MEW_E_INVALID);
	assert_int_equal(mew_span_end(&of_process), MEW_OK);
	assert_false(mew_spans_hold_hooks());
}

/* --- spans that are never ended ----------------------------------------------------------------------------------- */

static jmp_buf way_out;

__attribute__((noinline, noreturn)) static void leave_by_longjmp(enum mew_span_scope scope)
{
	struct mew_span span;

	begin(&span, scope);
	allocate(3, 10);
	longjmp(way_out, 1);
}

/* Deeper and larger than the frame that was left, so that it holds the place of the dead span. */
__attribute__((noinline)) static bool stack_stays_as_written(void)
{
	volatile unsigned char bytes[4096];
	bool stays = true;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)i;
	allocate(50, 10);
	for (size_t i = 0; i < sizeof bytes; i++)
		stays = stays && bytes[i] == (unsigned char)i;
	return stays;
}

static void test_a_span_left_by_longjmp_is_discarded(void **state)
{
	struct mew_span span;

	if (setjmp(way_out) == 0)
		leave_by_longjmp(*(enum mew_span_scope *)*state);
	assert_true(mew_spans_hold_hooks()); /* nobody has looked yet */
	assert_true(stack_stays_as_written());
	begin(&span, MEW_SPAN_THREAD);
	allocate(1, 10);
	expect(&span, 1, 10, 1, 0); /* and the hooks are given back, so none but this one was open */
}

/* As cmocka does when free() crashes on a damaged heap. */
static void test_a_crash_in_the_allocator_silences_nothing(void **state)
{
	struct mew_span span;

	(void)state;
	(void)mew_spans_keep_out(true);
	begin(&span, MEW_SPAN_THREAD);
	allocate(2, 10);
	expect(&span, 2, 20, 2, 0);
}

static void allocate_in_window(struct alloc_rig *rig, unsigned thread)
{
	struct mew_span span;

	(void)thread;
	*(int *)rig->data = mew_span_begin(&span, MEW_SPAN_THREAD);
	allocate(5, 10);
}

static int capture(int *status_in_window)
{
	const struct alloc_figures want = { .peak = 10, .allocations = 5, .cumulative = 50, .frees = 5 };
	struct alloc_rig rig = { .body = allocate_in_window, .data = status_in_window };
	int status = alloc_rig_run(&rig);

	if (status == MEW_OK && alloc_rig_compare(&rig, &want) != 0)
		status = MEW_E_LOST;
	alloc_rig_free(&rig);
	return status;
}

static void test_a_dead_span_keeps_no_capture_away(void **state)
{
	int in_window = MEW_OK;

	if (setjmp(way_out) == 0)
		leave_by_longjmp(*(enum mew_span_scope *)*state);
	assert_int_equal(capture(&in_window), MEW_OK);
	assert_int_equal(in_window, MEW_E_BUSY);
	assert_false(mew_spans_hold_hooks());
	if (setjmp(way_out) == 0)
		leave_by_longjmp(*(enum mew_span_scope *)*state);
	assert_int_equal(mew_backend_memory.probe(&(struct mew_error){ .status = MEW_OK }), MEW_OK);
	assert_int_equal(capture(&in_window), MEW_OK);
}

static void test_a_capture_takes_the_hooks_from_a_live_span(void **state)
{
	int in_window = MEW_OK;
	struct mew_span outer, inner;

	begin(&outer, *(enum mew_span_scope *)*state);
	assert_int_equal(capture(&in_window), MEW_OK);
	begin(&inner, MEW_SPAN_THREAD);
	allocate(2, 10);
	assert_int_equal(mew_span_end(&outer), MEW_E_LOST);
	assert_non_null(strstr(mew_last_error()->text, "memory pass"));
	assert_int_equal(outer.allocations, 0);
	expect(&inner, 2, 20, 2, 0);
}

__attribute__((noinline)) static struct mew_span *begin_elsewhere(enum mew_span_scope scope)
{
	struct mew_span *span = fx_malloc(sizeof *span);

	begin(span, scope);
	begin(&of_process, scope);
	return span;
}

static void test_static_and_heap_spans_outlive_their_frame(void **state)
{
	struct mew_span *span = begin_elsewhere(*(enum mew_span_scope *)*state);

	assert_true(stack_stays_as_written()); /* 50 allocations */
	mew_spans_sweep(__builtin_frame_address(0));
	assert_int_equal(mew_span_end(span), MEW_OK);
	assert_int_equal(span->allocations, 50);
	expect(&of_process, 50, 500, 50, 0);
	fx_free(span);
}

/* --- wrong use, children ------------------------------------------------------------------------------------------ */

static void test_wrong_use_is_told(void **state)
{
	struct mew_span span = { .allocations = 0 }, moved;

	(void)state;
	assert_int_equal(mew_span_begin(NULL, MEW_SPAN_THREAD), MEW_E_INVALID);
	assert_int_equal(mew_span_end(NULL), MEW_E_INVALID);
	assert_int_equal(mew_span_begin(&span, (enum mew_span_scope)7), MEW_E_INVALID);
	assert_int_equal(mew_span_end(&span), MEW_E_INVALID);
	begin(&span, MEW_SPAN_THREAD);
	moved = span;
	assert_int_equal(mew_span_end(&moved), MEW_E_INVALID);
	assert_int_equal(mew_span_end(&span), MEW_OK);
	assert_int_equal(mew_span_end(&span), MEW_E_INVALID);
}

static int child(struct mew_span *inherited)
{
	struct mew_span span;

	if (mew_span_end(inherited) != MEW_E_LOST)
		return 1;
	if (mew_span_begin(&span, MEW_SPAN_PROCESS) != MEW_OK)
		return 2;
	allocate(3, 10);
	return mew_span_end(&span) == MEW_OK && span.allocations == 3 ? 0 : 3;
}

static void test_a_forked_child_begins_anew(void **state)
{
	struct mew_span span;
	int status = -1;
	pid_t id;

	(void)state;
	begin(&span, MEW_SPAN_THREAD);
	id = fork();
	if (id == 0)
		_exit(child(&span));
	assert_int_equal(waitpid(id, &status, 0), id);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	allocate(1, 10);
	expect(&span, 1, 10, 1, 0);
}

#define BOTH(test) cmocka_unit_test_prestate(test, &thread), cmocka_unit_test_prestate(test, &process)

int main(void)
{
	static enum mew_span_scope thread = MEW_SPAN_THREAD, process = MEW_SPAN_PROCESS;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_nothing),
		BOTH(test_every_function_counts_once),
		BOTH(test_realloc_is_one_allocation),
		cmocka_unit_test(test_realloc_to_nothing_follows_the_allocator),
		cmocka_unit_test(test_failures_and_older_blocks),
		cmocka_unit_test(test_calls_inside_libc_count),
		cmocka_unit_test(test_errno_stays),
		BOTH(test_spans_nest_and_overlap),
		cmocka_unit_test(test_threads_count_apart),
		cmocka_unit_test(test_the_process_has_all_threads),
		cmocka_unit_test(test_only_one_of_the_process_ends_elsewhere),
		cmocka_unit_test(test_a_thread_takes_its_spans_along),
		BOTH(test_a_span_left_by_longjmp_is_discarded),
		cmocka_unit_test(test_a_crash_in_the_allocator_silences_nothing),
		BOTH(test_a_dead_span_keeps_no_capture_away),
		BOTH(test_a_capture_takes_the_hooks_from_a_live_span),
		BOTH(test_static_and_heap_spans_outlive_their_frame),
		cmocka_unit_test(test_wrong_use_is_told),
		cmocka_unit_test(test_a_forked_child_begins_anew),
	};

	return cmocka_run_group_tests_name("span", tests, NULL, NULL);
}
