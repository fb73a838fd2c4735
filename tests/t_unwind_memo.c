/*
 * t_unwind_memo.c - a stack that is recognised is the stack that a walk finds: over many ways down, with and without
 * frame pointers, with frames of changing size, and where two different stacks meet at one stack pointer.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "modules.h"
#include "stackset.h"
#include "unwind.h"
#include "unwind_memo.h"
#include "unwind_stacks.h"

#define FRAMES 256u
#define STACKS 4096u

static struct mew_unwind_thread *walker;
static struct mew_unwind_memo memo;
static struct mew_stackset *stacks, *layouts;
static uint32_t layout_of[STACKS + 1];
static unsigned recognised, walked;

/* As the memory backend does it, and each answer is compared with a walk. */
static MEW_NOINLINE void look(void)
{
	uintptr_t caller = (uintptr_t)__builtin_return_address(0), pcs[FRAMES], slots[FRAMES], quick[FRAMES];
	struct mew_unwind_trail trail = { .slots = slots };
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	uint32_t layout = 0, id = 0;
	size_t n, m, first = 1;

	mew_unwind_here(&regs);
	m = mew_memo_recall(&memo, &regs, caller, quick, &layout);
	n = mew_unwind_walk_trail(walker, &regs, 0, 0, pcs, FRAMES, &stop, &trail);
	while (first < n && pcs[first] != caller)
		first++;
	assert_true(first < n);
	if (m != 0)
		id = mew_stackset_find(stacks, quick, m);
	if (id != 0 && layout_of[id] == layout) {
		recognised++;
		assert_int_equal(m, n - first);
		assert_memory_equal(quick, pcs + first, m * sizeof *quick);
		return;
	}
	walked++;
	layout = mew_memo_learn(&memo, layouts, &regs, pcs, first, n, &trail);
	id = mew_stackset_intern(stacks, pcs + first, n - first);
	assert_int_not_equal(id, 0);
	layout_of[id] = layout;
}

#define HOLD __asm__ volatile("" : : : "memory") /* keeps a call from becoming a jump */

/* Six levels choose one of two ways each. */
typedef void level_fn(unsigned depth, unsigned path);
#define LEVELS(name, room_bytes, attribute)                                                                                        \
	static MEW_NOINLINE attribute void name##_left(unsigned depth, unsigned path);                                 \
	static MEW_NOINLINE attribute void name##_right(unsigned depth, unsigned path)                                 \
	{                                                                                                              \
		if (depth == 0)                                                                                        \
			look();                                                                                        \
		else if ((path & 1) != 0)                                                                              \
			name##_left(depth - 1, path >> 1);                                                             \
		else                                                                                                   \
			name##_right(depth - 1, path >> 1);                                                            \
		HOLD;                                                                                                  \
	}                                                                                                              \
	static MEW_NOINLINE attribute void name##_left(unsigned depth, unsigned path)                                  \
	{                                                                                                              \
		volatile char room[room_bytes] = { 1 };                                                                         \
                                                                                                                       \
		room[0] = room[7];                                                                                     \
		if (depth == 0)                                                                                        \
			look();                                                                                        \
		else if ((path & 1) != 0)                                                                              \
			name##_right(depth - 1, path >> 1);                                                            \
		else                                                                                                   \
			name##_left(depth - 1, path >> 1);                                                             \
		HOLD;                                                                                                  \
	}
LEVELS(plain, 48, )
#ifdef __clang__
LEVELS(framed, 48, )
#else
LEVELS(framed, 48, __attribute__((optimize("no-omit-frame-pointer"))))
#endif

/* Both kinds of frames are equal. */
static void even_left(unsigned depth, unsigned path);
#define EVEN(name)                                                                                                     \
	static MEW_NOINLINE void name(unsigned depth, unsigned path)                                                   \
	{                                                                                                              \
		if (depth == 0)                                                                                        \
			look();                                                                                        \
		else if ((path & 1) != 0)                                                                              \
			even_left(depth - 1, path >> 1);                                                               \
		else                                                                                                   \
			even_right(depth - 1, path >> 1);                                                              \
		HOLD;                                                                                                  \
	}
static void even_right(unsigned depth, unsigned path);
EVEN(even_left)
EVEN(even_right)

/* A frame whose size changes from call to call, so that only the saved frame pointer leads on. */
static MEW_NOINLINE void grown(unsigned bytes, level_fn *next, unsigned path)
{
	volatile char *room = alloca(bytes);

	room[0] = 1;
	next(3, path);
	HOLD;
}

static MEW_NOINLINE void mixed(unsigned path)
{
	switch (path % 4) {
	case 0: plain_left(6, path >> 2); break;
	case 1: framed_left(6, path >> 2); break;
	case 2: grown(16 + path % 7 * 16, plain_right, path >> 5); break;
	default: grown(16 + path % 5 * 32, framed_right, path >> 5); break;
	}
	HOLD;
}

static int begin(void **state)
{
	(void)state;
	memset(&memo, 0, sizeof memo);
	memset(layout_of, 0, sizeof layout_of);
	recognised = walked = 0;
	walker = calloc(1, sizeof *walker);
	stacks = mew_stackset_new(STACKS, STACKS * 64);
	layouts = mew_stackset_new(1024, 1 << 17);
	return walker != NULL && stacks != NULL && layouts != NULL && mew_unwind_thread_init(walker) == 0 &&
			       mew_modules_renew() == 0
		       ? 0
		       : -1;
}

static int end(void **state)
{
	(void)state;
	free(walker);
	mew_stackset_free(stacks);
	mew_stackset_free(layouts);
	return 0;
}

static bool can_walk(void)
{
#ifdef __x86_64__
	return true;
#else
	print_message("stacks are walked on x86-64 only\n");
	return false;
#endif
}

static void test_the_same_way_again_is_recognised(void **state)
{
	(void)state;
	if (!can_walk())
		skip();
	for (unsigned i = 0; i < 1000; i++)
		plain_left(6, 21);
	assert_int_equal(walked, 1);
	assert_int_equal(recognised, 999);
	for (unsigned i = 0; i < 1000; i++)
		framed_left(6, 21);
	assert_int_equal(walked, 2);
}

/* Ways of equal frames share a layout, so each of the 64 is walked once. */
static void test_many_ways_of_one_layout(void **state)
{
	(void)state;
	if (!can_walk())
		skip();
	for (unsigned i = 0; i < 6400; i++)
		even_right(6, i * 37 % 64);
	assert_int_equal(recognised + walked, 6400);
	assert_int_equal(walked, 64);
}

static void test_ways_of_all_kinds(void **state)
{
	unsigned seed = 12345;

	(void)state;
	if (!can_walk())
		skip();
	for (unsigned i = 0; i < 50000; i++) {
		seed = seed * 1664525u + 1013904223u;
		mixed(seed >> 12 & 0x3ff);
	}
	assert_int_equal(recognised + walked, 50000);
	assert_true(recognised > 5000);
}

/* Libraries come and go, and with them what code lies where: nothing that was learnt before holds. */
static void test_other_modules_forget_all(void **state)
{
	(void)state;
	if (!can_walk())
		skip();
	for (volatile unsigned i = 0; i < 10; i++) /* volatile: ten copies of the call would be ten ways */
		plain_left(6, 5);
	assert_int_equal(walked, 1);
	assert_int_equal(mew_modules_renew(), 0);
	for (volatile unsigned i = 0; i < 10; i++)
		plain_left(6, 5);
	assert_in_range(walked, 1, 2); /* a snapshot that found nothing new may be the old one */
}

static ucontext_t outside, on_fiber;

static void look_on_fiber(void)
{
	for (volatile int i = 0; i < 3; i++)
		plain_left(4, 5);
}

/* The memory of a fiber may be gone, and another in the same place shorter, when a layout would be read by. */
static void test_other_stacks_are_walked_each_time(void **state)
{
	static char memory[65536] __attribute__((aligned(16)));

	(void)state;
	assert_int_equal(mew_stacks_add((uintptr_t)memory, (uintptr_t)memory + sizeof memory), 0);
	assert_int_equal(getcontext(&on_fiber), 0);
	on_fiber.uc_stack.ss_sp = memory;
	on_fiber.uc_stack.ss_size = sizeof memory;
	on_fiber.uc_link = &outside;
	makecontext(&on_fiber, look_on_fiber, 0);
	assert_int_equal(swapcontext(&outside, &on_fiber), 0);
	assert_int_equal(mew_stacks_remove((uintptr_t)memory), 0);
	assert_int_equal(recognised, 0);
	assert_int_equal(walked, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_same_way_again_is_recognised, begin, end),
		cmocka_unit_test_setup_teardown(test_many_ways_of_one_layout, begin, end),
		cmocka_unit_test_setup_teardown(test_ways_of_all_kinds, begin, end),
		cmocka_unit_test_setup_teardown(test_other_modules_forget_all, begin, end),
		cmocka_unit_test_setup_teardown(test_other_stacks_are_walked_each_time, begin, end),
	};

	return cmocka_run_group_tests_name("unwind_memo", tests, NULL, NULL);
}
