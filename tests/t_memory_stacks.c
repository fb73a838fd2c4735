/*
 * t_memory_stacks.c - what the memory backend says of each allocation stack.
 * The rig compares the sums over all stacks with the figures in every test of the others as well.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>

#include "fx_alloc_rig.h"
#include "modules.h"
#include "unwinder.h"

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
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
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
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
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

/* What a walk itself allocates, as libunwind does, is none of the program's. */
static void test_other_unwinders_find_the_same(void **state)
{
	static const char *const names[] = { "fp", "libunwind" };
	struct mew_error err;

	for (size_t i = 0; i < MEW_COUNTOF(names); i++) {
		if (mew_unwinder_use(names[i], &err) == MEW_OK)
			test_what_each_stack_held_at_the_peak(state);
		assert_int_equal(mew_unwinder_use("table", &err), MEW_OK);
	}
}

struct pool {
	sem_t work, done;
	unsigned turns; /* until it ends */
};

static MEW_NOINLINE void serve(struct pool *pool)
{
	(void)sem_wait(&pool->work);
	fx_free(fx_malloc(100));
	(void)sem_post(&pool->done);
}

static void *pool_thread(void *data)
{
	struct pool *pool = data;

	while (pool->turns-- > 0)
		serve(pool);
	return NULL;
}

static void ask_pool(struct alloc_rig *rig, unsigned thread)
{
	struct pool *pool = rig->data;

	(void)thread;
	(void)sem_post(&pool->work);
	(void)sem_wait(&pool->done);
}

/* Its stack is first looked for inside the allocator. It is found: the thread's own functions are in it. */
static void test_stacks_of_a_thread_that_was_here_before(void **state)
{
	struct pool pool = { .turns = 1 };
	struct alloc_rig rig = { .stacks = true, .body = ask_pool, .data = &pool };
	const struct mew_stack *stack;
	bool served = false;
	pthread_t id;

	(void)state;
	assert_int_equal(sem_init(&pool.work, 0, 0), 0);
	assert_int_equal(sem_init(&pool.done, 0, 0), 0);
	assert_int_equal(pthread_create(&id, NULL, pool_thread, &pool), 0);
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(rig.row->nheap_stacks, 1);
	assert_int_equal(rig.figures->total_allocations, 1);
	stack = &rig.model->stacks[rig.row->heap_stacks[0].stack];
	for (size_t i = 0; i < stack->depth; i++) {
		const struct mew_location *l = &rig.model->locations[rig.model->frames[stack->first + i]];
		uintptr_t lo = (uintptr_t)pool_thread;
		uintptr_t at = l->offset + (l->module == MEW_NO_MODULE ? 0 : mew_modules_find(mew_modules_current(), lo)->bias);

		served = served || (at > lo && at < lo + 128);
	}
	assert_true(served);
	assert_int_equal(pthread_join(id, NULL), 0);
	alloc_rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_each_stack_held_at_the_peak),
		cmocka_unit_test(test_other_unwinders_find_the_same),
		cmocka_unit_test(test_leaf_is_the_callers_code),
		cmocka_unit_test(test_stacks_of_a_thread_that_was_here_before),
	};

	return cmocka_run_group_tests_name("memory_stacks", tests, NULL, NULL);
}
