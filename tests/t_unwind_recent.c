/*
 * t_unwind_recent.c - a walk that takes over the outer part of the last one finds what a walk of its own finds: over many
 * ways down, and where the outer part has changed under frames that lie where they lay.
 * Test program, linked with --wrap=mew_recent_holds, by which it sees what is taken over.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef __x86_64__

#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "ehframe.h"
#include "fx_recent.h"
#include "modules.h"
#include "unwind.h"

#define FRAMES 256u
#define HOLD __asm__ volatile("" : : : "memory") /* keeps a call from becoming a jump */

static struct mew_unwind_thread *walker, *reuser;
static struct mew_unwind_recent *recent;
static size_t room = FRAMES, last_n, walks;
static enum mew_unwind_stop last_stop;

static int begin(void **state)
{
	(void)state;
	walker = calloc(1, sizeof *walker);
	reuser = calloc(1, sizeof *reuser);
	recent = calloc(1, sizeof *recent);
	room = FRAMES;
	walks = reused = 0;
	if (walker == NULL || reuser == NULL || recent == NULL || mew_unwind_thread_init(walker) != 0 ||
	    mew_unwind_thread_init(reuser) != 0 || mew_modules_renew() != 0)
		return -1;
	reuser->recent = recent;
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(walker);
	free(reuser);
	free(recent);
	return 0;
}

/* Walk both ways from the same registers; they must agree. Returns how many frames were taken over. */
static size_t compare(const struct mew_unwind_regs *regs)
{
	uintptr_t plain[FRAMES], quick[FRAMES];
	enum mew_unwind_stop plain_stop, quick_stop;
	size_t before = reused;
	size_t n = mew_unwind_walk(walker, regs, 0, 0, plain, room, &plain_stop);
	size_t m = mew_unwind_walk(reuser, regs, 0, 0, quick, room, &quick_stop);

	assert_int_equal(m, n);
	assert_memory_equal(quick, plain, n * sizeof plain[0]);
	assert_int_equal(quick_stop, plain_stop);
	walks++;
	last_n = n;
	last_stop = plain_stop;
	return reused - before;
}

static MEW_NOINLINE size_t look(void)
{
	struct mew_unwind_regs regs;

	mew_unwind_here(&regs);
	return compare(&regs);
}

/* --- ways down ---------------------------------------------------------------------------------------------------- */

/* Six levels choose one of two ways each. */
typedef void level_fn(unsigned depth, unsigned path);
#define LEVEL(name, other, self, attribute, body)                                                                      \
	static MEW_NOINLINE attribute void name(unsigned depth, unsigned path)                                         \
	{                                                                                                              \
		body;                                                                                                  \
		if (depth == 0)                                                                                        \
			(void)look();                                                                                  \
		else if ((path & 1) != 0)                                                                              \
			other(depth - 1, path >> 1);                                                                   \
		else                                                                                                   \
			self(depth - 1, path >> 1);                                                                    \
		HOLD;                                                                                                  \
	}
#ifdef __clang__
#define FRAMED
#else
#define FRAMED __attribute__((optimize("no-omit-frame-pointer")))
#endif
#define ROOM volatile char space[48] = { 1 }; space[0] = space[7]
#define ALIGNED volatile char space[64] __attribute__((aligned(64))) = { 1 }; space[0] = space[7]
static level_fn plain_left, framed_left, even_left, aligned_left;
LEVEL(plain_right, plain_left, plain_right, , HOLD)
LEVEL(plain_left, plain_right, plain_left, , ROOM)
LEVEL(framed_right, framed_left, framed_right, FRAMED, HOLD)
LEVEL(framed_left, framed_right, framed_left, FRAMED, ROOM)
LEVEL(aligned_right, aligned_left, aligned_right, , ALIGNED)
LEVEL(aligned_left, aligned_right, aligned_left, , ROOM)
static level_fn even_right; /* these two have equal frames */
LEVEL(even_left, even_right, even_left, , HOLD)
LEVEL(even_right, even_left, even_right, , HOLD)

/* A frame whose size changes from call to call, so that only the saved frame pointer leads on. */
static MEW_NOINLINE void grown(unsigned bytes, level_fn *next, unsigned path)
{
	volatile char *space = alloca(bytes);

	space[0] = 1;
	next(3, path);
	HOLD;
}

static MEW_NOINLINE void mixed(unsigned path)
{
	switch (path % 5) {
	case 0: plain_left(6, path >> 2); break;
	case 1: framed_left(6, path >> 2); break;
	case 2: grown(16 + path % 7 * 16, plain_right, path >> 5); break;
	case 3: aligned_right(5, path >> 3); break;
	default: grown(16 + path % 3 * 32, framed_right, path >> 5); break;
	}
	HOLD;
}

static void t_the_same_stack_is_taken_over(void **state)
{
	(void)state;
	for (volatile unsigned i = 0; i < 1000; i++)
		plain_left(6, 21);
	assert_int_equal(last_stop, MEW_STOP_END);
	/* all but the leaf, look() and the frame that it is met in are taken over by every walk but the first */
	assert_true(reused >= 999 * (last_n - 3));
}

static void t_ways_of_all_kinds(void **state)
{
	unsigned seed = 12345;

	(void)state;
	for (unsigned i = 0; i < 30000; i++) {
		seed = seed * 1664525u + 1013904223u;
		mixed(seed >> 12 & 0x3ff);
	}
	assert_int_equal(walks, 30000);
	assert_true(reused > 30000 * 2);
}

/* Return addresses differ in the middle, under the same frames inside and outside of it. */
static void t_equal_frames_of_other_callers(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6400; i++)
		even_right(6, i * 37 % 64);
	assert_int_equal(walks, 6400);
	assert_true(reused > 6400 * 2);
}

/* One tick is deep, the next shallow; of a stack deeper than what is kept, the outer part is. */
static MEW_NOINLINE void deep(unsigned depth)
{
	if (depth > 0)
		deep(depth - 1);
	else
		(void)look();
	HOLD;
}

static void t_depths(void **state)
{
	static const unsigned depths[] = { 100, 3, 200, 200, 1, 120, 200, 0, 90, 128, 127, 129, 200 };

	(void)state;
	for (unsigned round = 0; round < 20; round++)
		for (size_t i = 0; i < MEW_COUNTOF(depths); i++)
			deep(depths[i]);
	assert_int_equal(last_stop, MEW_STOP_END);
	assert_true(reused > 20 * MEW_COUNTOF(depths)); /* how many more depends on what the compiler's frames need */
}

/* A buffer that is too small for what is known fills up as by a walk. */
static void t_a_full_buffer(void **state)
{
	(void)state;
	deep(60);
	for (room = 1; room < 90; room++)
		deep(60);
	assert_int_equal(last_stop, MEW_STOP_END);
	room = 10;
	deep(60);
	assert_int_equal(last_n, 10);
	assert_int_equal(last_stop, MEW_STOP_FULL);
}

static size_t in_handler;

static void on_signal(int number)
{
	(void)number;
	in_handler += look();
}

/* Out of a signal handler a step reads registers from the stack: nothing inside that is taken over. */
static MEW_NOINLINE void interrupted(unsigned depth)
{
	if (depth > 0)
		interrupted(depth - 1);
	else
		assert_int_equal(raise(SIGUSR1), 0);
	HOLD;
}

static void t_through_a_signal_handler(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;

	(void)state;
	in_handler = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	for (volatile unsigned i = 0; i < 40; i++)
		interrupted(i % 10);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_int_equal(walks, 40);
	assert_true(in_handler > 0);
}

/* A walk that interrupts another one does without, and so does one that starts on another stack. */
static void t_not_inside_a_walk(void **state)
{
	(void)state;
	deep(5);
	recent->busy = 1;
	deep(5);
	assert_int_equal(reused, 0);
	recent->busy = 0;
	deep(5);
	assert_true(reused > 0);
}

static void t_other_modules_forget_all(void **state)
{
	(void)state;
	deep(5);
	recent->generation--;
	deep(5);
	assert_int_equal(reused, 0);
}

/* --- stacks made by hand ------------------------------------------------------------------------------------------ */

/* Code that is never run: each finds its caller in another way from its first instructions on, where INSIDE() lies. */
__asm__(".text\n"
	".type by_sp, @function\nby_sp:\n\t.cfi_startproc\n\tsub $24, %rsp\n\t.cfi_def_cfa_offset 32\n"
	"\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tret\n\t.cfi_endproc\n.size by_sp, .-by_sp\n"
	".type by_bp, @function\nby_bp:\n\t.cfi_startproc\n\tpush %rbp\n\t.cfi_def_cfa_offset 16\n"
	"\t.cfi_offset 6, -16\n\tmov %rsp, %rbp\n\t.cfi_def_cfa_register 6\n"
	"\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tret\n\t.cfi_endproc\n.size by_bp, .-by_bp\n"
	".type by_load, @function\nby_load:\n\t.cfi_startproc\n\tnop\n\t.cfi_escape 0x0f, 0x03, 0x76, 0x78, 0x06\n"
	"\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tret\n\t.cfi_endproc\n.size by_load, .-by_load\n"
	".type outermost, @function\noutermost:\n\t.cfi_startproc\n\t.cfi_undefined 16\n"
	"\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tret\n\t.cfi_endproc\n.size outermost, .-outermost\n");
extern const char by_sp[], by_bp[], by_load[], outermost[];
#define INSIDE(function) ((uintptr_t)(function) + 8)

static uintptr_t made[64];

/* Both walkers take `made` for the thread's stack. */
static struct mew_unwind_regs on_made(const char *leaf, size_t sp, size_t bp)
{
	walker->stack_lo = reuser->stack_lo = (uintptr_t)made;
	walker->stack_hi = reuser->stack_hi = (uintptr_t)(made + MEW_COUNTOF(made));
	return (struct mew_unwind_regs){ .ip = INSIDE(leaf), .sp = (uintptr_t)&made[sp], .bp = (uintptr_t)&made[bp] };
}

static uintptr_t place(size_t i)
{
	return (uintptr_t)&made[i];
}

/* by_sp, four times by_sp, the outermost: a return address every fourth word, from word 7 on. */
static void make_plain(void)
{
	memset(made, 0, sizeof made);
	for (size_t i = 7; i < 7 + 4 * 4; i += 4)
		made[i] = INSIDE(by_sp);
	made[7 + 4 * 4] = INSIDE(outermost);
}

static void t_a_caller_that_changed(void **state)
{
	struct mew_unwind_regs regs = on_made(by_sp, 4, 0);

	(void)state;
	make_plain();
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 6);
	assert_int_equal(last_stop, MEW_STOP_END);
	assert_int_equal(compare(&regs), 4);
	made[15]++; /* the third: the same function, another place in it */
	assert_int_equal(compare(&regs), 1);
	assert_int_equal(compare(&regs), 4);
	made[23] = INSIDE(by_sp); /* the outermost: there is one more */
	made[27] = INSIDE(outermost);
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 7);
	assert_int_equal(compare(&regs), 5);
	made[27] = 0; /* what ends the walk */
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 6);
	made[27] = INSIDE(by_sp);
	made[31] = 0;
	(void)compare(&regs);
	assert_int_equal(last_n, 7);
}

/*
 * by_sp, by_bp, by_bp, outermost, by frame pointers at words 12 and 20; beside the outer frame lies another one, to which
 * the saved frame pointer can lead instead. All return addresses of the first stack stay where they are.
 */
static void t_a_frame_pointer_that_changed(void **state)
{
	struct mew_unwind_regs regs = on_made(by_sp, 4, 12);

	(void)state;
	memset(made, 0, sizeof made);
	made[7] = INSIDE(by_bp);
	made[12] = place(20);
	made[13] = INSIDE(by_bp);
	made[20] = 0;
	made[21] = INSIDE(outermost);
	made[30] = 0;
	made[31] = INSIDE(by_sp);
	made[35] = INSIDE(outermost);
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 4);
	assert_int_equal(compare(&regs), 2);
	made[12] = place(30);
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 5);
	assert_int_equal(compare(&regs), 3);
	regs.bp = place(20); /* the register itself */
	(void)compare(&regs);
	assert_int_equal(last_n, 3);
}

/* The CFA is a word of the frame, as in a realigned one. */
static void t_a_loaded_frame_address_that_changed(void **state)
{
	struct mew_unwind_regs regs = on_made(by_sp, 4, 16);

	(void)state;
	memset(made, 0, sizeof made);
	made[7] = INSIDE(by_load);
	made[15] = place(24); /* where the CFA is loaded from: rbp - 8 */
	made[23] = INSIDE(outermost);
	made[31] = INSIDE(by_sp);
	made[35] = INSIDE(outermost);
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 3);
	assert_int_equal(compare(&regs), 1);
	made[15] = place(32);
	assert_int_equal(compare(&regs), 0);
	assert_int_equal(last_n, 4);
}

/* A register that nobody needs may change. */
static void t_a_register_that_is_not_needed(void **state)
{
	struct mew_unwind_regs regs = on_made(by_sp, 4, 0);

	(void)state;
	make_plain();
	(void)compare(&regs);
	regs.bp = 12345;
	regs.bx = 54321;
	assert_int_equal(compare(&regs), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(t_the_same_stack_is_taken_over, begin, end),
		cmocka_unit_test_setup_teardown(t_ways_of_all_kinds, begin, end),
		cmocka_unit_test_setup_teardown(t_equal_frames_of_other_callers, begin, end),
		cmocka_unit_test_setup_teardown(t_depths, begin, end),
		cmocka_unit_test_setup_teardown(t_a_full_buffer, begin, end),
		cmocka_unit_test_setup_teardown(t_through_a_signal_handler, begin, end),
		cmocka_unit_test_setup_teardown(t_not_inside_a_walk, begin, end),
		cmocka_unit_test_setup_teardown(t_other_modules_forget_all, begin, end),
		cmocka_unit_test_setup_teardown(t_a_caller_that_changed, begin, end),
		cmocka_unit_test_setup_teardown(t_a_frame_pointer_that_changed, begin, end),
		cmocka_unit_test_setup_teardown(t_a_loaded_frame_address_that_changed, begin, end),
		cmocka_unit_test_setup_teardown(t_a_register_that_is_not_needed, begin, end),
	};

	return cmocka_run_group_tests_name("unwind_recent", tests, NULL, NULL);
}

#else

static void t_other_machines(void **state)
{
	(void)state;
	print_message("stacks are taken over on x86-64 only\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(t_other_machines) };

	return cmocka_run_group_tests_name("unwind_recent", tests, NULL, NULL);
}

#endif
