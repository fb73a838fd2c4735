/*
 * t_os_maps.c - the bounds of a stack by /proc/self/maps beside those that the C library gives.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "mew.h"
#include "os.h"

#define STACK_BYTES ((size_t)1 << 20)

struct bounds {
	uintptr_t lo, hi, frame;
	int status;
};

static struct bounds by_maps(void)
{
	struct bounds b = { .frame = (uintptr_t)__builtin_frame_address(0) };

	b.status = mew_os_stack_bounds_by_maps(&b.lo, &b.hi);
	return b;
}

/*
 * Both hold the caller's frame, and one ends where the other does: below it is a thread's own block, above the first
 * thread's are its arguments. All of it up to the end can be read.
 */
static bool agrees(const struct bounds *b)
{
	uintptr_t lo, hi;

	if (b->status != 0 || mew_os_stack_bounds(&lo, &hi) != 0)
		return false;
	if (b->frame < b->lo || b->frame >= b->hi || b->frame < lo || b->hi + 16384 < hi)
		return false;
	mew_keep((void *)(uintptr_t)((const volatile uintptr_t *)b->hi)[-1]);
	return true;
}

static MEW_NOINLINE bool agrees_deep(unsigned depth)
{
	volatile char room[1024];
	struct bounds b;

	room[0] = (char)depth;
	if (depth > 0)
		return agrees_deep(depth - 1) && room[0] == (char)depth;
	b = by_maps();
	return agrees(&b);
}

static void test_the_first_thread(void **state)
{
	struct bounds before = by_maps(), after;

	(void)state;
	assert_true(agrees(&before));
	assert_true(agrees_deep(2000)); /* it has grown by megabytes */
	after = by_maps();
	assert_int_equal(after.hi, before.hi);
	assert_int_equal(after.lo, before.lo); /* where it may grow to, not where it has grown to */
}

static void *in_thread(void *data)
{
	struct bounds b = by_maps();

	*(bool *)data = agrees(&b) && agrees_deep(100);
	return NULL;
}

/* What the body of a thread, whose data is a bool, finds. */
static bool is_right_in_thread(void *(*body)(void *), const pthread_attr_t *attr)
{
	bool right = false;
	pthread_t id;

	return pthread_create(&id, attr, body, &right) == 0 && pthread_join(id, NULL) == 0 && right;
}

static void test_a_thread(void **state)
{
	(void)state;
	assert_true(is_right_in_thread(in_thread, NULL));
}

static void test_a_thread_on_memory_of_the_program(void **state)
{
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;

	(void)state;
	assert_true(stack != MAP_FAILED);
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK_BYTES), 0);
	assert_true(is_right_in_thread(in_thread, &attr));
	(void)pthread_attr_destroy(&attr);
	(void)munmap(stack, STACK_BYTES);
}

static void *in_forked_thread(void *data)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		bool right = false;

		(void)in_thread(&right);
		_exit(right ? 0 : 1);
	}
	*(bool *)data = child > 0 && waitpid(child, &status, 0) == child && status == 0;
	return NULL;
}

/* Its id is that of a first thread, its stack is not. */
static void test_a_child_that_a_thread_forked(void **state)
{
	(void)state;
	assert_true(is_right_in_thread(in_forked_thread, NULL));
}

static ucontext_t caller, fiber;
static struct bounds seen;

static void in_fiber(void)
{
	seen = by_maps();
}

static struct bounds on_a_fiber(void)
{
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	seen.status = -1;
	if (stack == MAP_FAILED || getcontext(&fiber) != 0)
		return seen;
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = STACK_BYTES;
	fiber.uc_link = &caller;
	makecontext(&fiber, in_fiber, 0);
	(void)swapcontext(&caller, &fiber);
	(void)munmap(stack, STACK_BYTES);
	return seen;
}

static void *fiber_in_thread(void *data)
{
	struct bounds mine = by_maps(), there = on_a_fiber();

	*(bool *)data = agrees(&mine) && there.status == 0 && there.hi == mine.hi && there.frame != mine.frame;
	return NULL;
}

/* A fiber comes and goes: the bounds that stay are those of the thread. */
static void test_a_fiber_has_the_stack_of_its_thread(void **state)
{
	bool right = false;

	(void)state;
	(void)fiber_in_thread(&right);
	assert_true(right);
	assert_true(is_right_in_thread(fiber_in_thread, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_thread),
		cmocka_unit_test(test_a_thread),
		cmocka_unit_test(test_a_thread_on_memory_of_the_program),
		cmocka_unit_test(test_a_child_that_a_thread_forked),
		cmocka_unit_test(test_a_fiber_has_the_stack_of_its_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
