/*
 * t_unwind_ways.c - the unwinders beside the table, and walks on stacks that are no thread's own.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef __x86_64__

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "fx_walk.h"
#include "mew.h"
#include "unwinder.h"

#define STACK_BYTES ((size_t)65536)

static struct mew_error error;
static char *memory; /* room for two stacks */

static int map_memory(void **unused)
{
	(void)unused;
	memory = malloc(2 * STACK_BYTES);
	return memory != NULL ? 0 : -1;
}

static int by_table_again(void **unused)
{
	(void)unused;
	free(memory);
	return mew_unwinder_use("table", &error);
}

/* --- which unwinder ----------------------------------------------------------------------------------------------- */

static void the_environment_chooses_once(void **unused)
{
	(void)unused;
	assert_int_equal(setenv("MEW_UNWINDER", "dwarf", 1), 0);
	assert_int_equal(mew_unwinder_choose(&error), MEW_E_INVALID);
	assert_non_null(strstr(error.text, "\"dwarf\""));
	assert_non_null(strstr(error.text, "table, fp or libunwind"));
	assert_null(mew_unwinder_note()); /* nothing has changed */
	assert_int_equal(setenv("MEW_UNWINDER", "fp", 1), 0);
	assert_int_equal(mew_unwinder_choose(&error), MEW_OK);
	assert_non_null(strstr(mew_unwinder_note(), "MEW_UNWINDER=fp"));
	assert_int_equal(setenv("MEW_UNWINDER", "table", 1), 0);
	assert_int_equal(mew_unwinder_choose(&error), MEW_OK);
	assert_non_null(mew_unwinder_note()); /* the first answer stays */
	assert_int_equal(unsetenv("MEW_UNWINDER"), 0);
	assert_int_equal(mew_unwinder_use("", &error), MEW_OK);
	assert_null(mew_unwinder_note());
}

/* Frames with a frame pointer, whatever flags this file is compiled with. */
#ifdef __clang__
#define FRAMED __attribute__((noinline, disable_tail_calls))
#else
#define FRAMED __attribute__((noinline, optimize("no-omit-frame-pointer")))
#endif

FRAMED static void framed_leaf(void)
{
	struct mew_unwind_regs regs;

	NOTE_CALLER();
	mew_unwind_here(&regs);
	regs.bp = (uintptr_t)__builtin_frame_address(0);
	npcs = mew_unwind_walk(&walker, &regs, entry_lo, entry_hi, pcs, max, &stop);
	sink = npcs;
}

FRAMED static void framed(unsigned depth)
{
	NOTE_CALLER();
	sink = (uintptr_t)__builtin_frame_address(0);
	if (depth > 0)
		framed(depth - 1);
	else
		framed_leaf();
	sink = depth;
}

static void frame_pointers_lead_through_code_that_has_them(void **unused)
{
	(void)unused;
	prepare();
	assert_int_equal(mew_unwinder_use("fp", &error), MEW_OK);
	framed(30);
	assert_callers(1);

	prepare();
	max = 10;
	framed(30);
	assert_int_equal(npcs, 10);
	assert_int_equal(stop, MEW_STOP_FULL);

	prepare();
	framed(2);
	entry_lo = expected[0] - 16; /* the next call comes from close behind */
	entry_hi = expected[0] + 400;
	nexpected = 0;
	framed(2);
	assert_int_equal(stop, MEW_STOP_END);
	assert_int_equal(npcs, 4);
}

static void a_wrong_frame_pointer_ends_the_stack(void **unused)
{
	struct mew_unwind_regs regs;
	uintptr_t words[8] = { 0 };

	(void)unused;
	prepare();
	assert_int_equal(mew_unwinder_use("fp", &error), MEW_OK);
	mew_unwind_here(&regs);
	for (uintptr_t wrong = 1; wrong < 8; wrong++) {
		regs.bp = (uintptr_t)words + wrong;
		assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
		assert_int_equal(stop, MEW_STOP_NO_RULE);
	}
	regs.bp = walker.stack_hi - 8; /* its return address would lie outside */
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_NO_RULE);
	regs.sp = regs.bp = (uintptr_t)words;
	words[0] = (uintptr_t)words; /* a circle, by return addresses that are good */
	words[1] = (uintptr_t)qsort + 1;
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 2);
	assert_int_equal(stop, MEW_STOP_NO_RULE);
	words[1] = 12345; /* no code */
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_NO_RULE);
	regs.sp = 64;
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
}

static void libunwind_finds_the_same_stack(void **unused)
{
	(void)unused;
	if (mew_unwinder_use("libunwind", &error) != MEW_OK) {
		assert_int_equal(error.status, MEW_E_UNSUPPORTED);
		printf("%s\n", error.text);
		skip();
	}
	prepare();
	errno = 42;
	chain(20, walk_here);
	assert_int_equal(errno, 42);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);

	prepare();
	max = 5;
	chain(20, walk_here);
	assert_int_equal(npcs, 5);
	assert_int_equal(stop, MEW_STOP_FULL);
}

/* --- other stacks ------------------------------------------------------------------------------------------------- */

static ucontext_t caller_context, fiber_context;

static void fiber(void)
{
	chain(5, walk_here);
	sink = 4;
}

static void run_on(char *stack)
{
	prepare();
	assert_int_equal(getcontext(&fiber_context), 0);
	fiber_context.uc_stack.ss_sp = stack;
	fiber_context.uc_stack.ss_size = STACK_BYTES;
	fiber_context.uc_link = &caller_context;
	makecontext(&fiber_context, fiber, 0);
	assert_int_equal(swapcontext(&caller_context, &fiber_context), 0);
}

static void a_fiber_is_walked_when_its_stack_is_known(void **unused)
{
	(void)unused;
	run_on(memory);
	assert_int_equal(npcs, 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);

	assert_int_equal(mew_stack_register(memory, memory + STACK_BYTES), MEW_OK);
	run_on(memory);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
	run_on(memory + STACK_BYTES); /* another */
	assert_int_equal(npcs, 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);

	assert_int_equal(mew_stack_unregister(memory), MEW_OK);
	run_on(memory);
	assert_int_equal(npcs, 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
}

static void loads_end_at_the_end_of_a_fibers_stack(void **unused)
{
	size_t last = MOST;

	(void)unused;
	for (size_t less = 0; less < 800; less += 16) {
		assert_int_equal(mew_stack_register(memory, memory + STACK_BYTES - less), MEW_OK);
		run_on(memory);
		assert_int_equal(mew_stack_unregister(memory), MEW_OK);
		assert_true(npcs <= last); /* never more from a shorter stack */
		assert_int_equal(npcs < nexpected, npcs < nexpected && stop == MEW_STOP_BAD_STACK);
		last = npcs;
	}
	assert_int_equal(last, 1);
}

static void stacks_are_checked(void **unused)
{
	(void)unused;
	assert_int_equal(mew_stack_register(NULL, memory), MEW_E_INVALID);
	assert_int_equal(mew_stack_register(memory, memory), MEW_E_INVALID);
	assert_int_equal(mew_stack_register(memory + 1, memory), MEW_E_INVALID);
	assert_int_equal(mew_stack_unregister(memory), MEW_E_INVALID);
	assert_int_equal(mew_stack_unregister(NULL), MEW_E_INVALID);
	assert_int_equal(mew_stack_register(memory, memory + 1024), MEW_OK);
	assert_int_equal(mew_stack_register(memory, memory + 1024), MEW_E_INVALID);
	assert_int_equal(mew_stack_register(memory + 512, memory + 2048), MEW_E_INVALID);
	assert_non_null(strstr(mew_last_error()->text, "overlaps"));
	for (size_t i = 1; i < 64; i++)
		assert_int_equal(mew_stack_register(memory + i * 1024, memory + (i + 1) * 1024), MEW_OK);
	assert_int_equal(mew_stack_register(memory + STACK_BYTES, memory + STACK_BYTES + 8), MEW_E_NOMEM);
	assert_non_null(strstr(mew_last_error()->text, "64"));
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(mew_stack_unregister(memory + i * 1024), MEW_OK);
	assert_int_equal(mew_stack_register(memory + STACK_BYTES, memory + STACK_BYTES + 8), MEW_OK);
	assert_int_equal(mew_stack_unregister(memory + STACK_BYTES), MEW_OK);
}

static void walk_in_trap(int number, siginfo_t *info, void *ucontext)
{
	struct mew_unwind_regs regs;

	(void)number;
	(void)info;
	mew_unwind_from_ucontext(&regs, ucontext);
	npcs = mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop);
}

MEW_NOINLINE static void trap_here(void)
{
	NOTE_CALLER();
	__asm__ volatile("int3");
	sink = 5;
}

MEW_NOINLINE static void fault_here(void)
{
	NOTE_CALLER();
	__asm__ volatile("ud2");
	sink = 7;
}

static void step_over(int number, siginfo_t *info, void *ucontext)
{
	ucontext_t *context = ucontext;

	(void)number;
	(void)info;
	chain(3, trap_here);
	context->uc_mcontext.gregs[REG_RIP] += 2; /* ud2 has two bytes */
}

/* A tick inside a handler that has a stack of its own: that stack, then the one that was interrupted. */
static void the_alternate_signal_stack_is_walked(void **unused)
{
	struct sigaction trap = { .sa_sigaction = walk_in_trap, .sa_flags = SA_SIGINFO }, before[2];
	struct sigaction fault = { .sa_sigaction = step_over, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t alternate = { .ss_sp = memory, .ss_size = STACK_BYTES }, none = { .ss_flags = SS_DISABLE };
	size_t at;

	(void)unused;
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(SIGTRAP, &trap, &before[0]), 0);
	assert_int_equal(sigaction(SIGILL, &fault, &before[1]), 0);
	prepare();
	chain(4, fault_here);
	assert_int_equal(sigaction(SIGTRAP, &before[0], NULL), 0);
	assert_int_equal(sigaction(SIGILL, &before[1], NULL), 0);
	assert_int_equal(sigaltstack(&none, NULL), 0);

	assert_int_equal(stop, MEW_STOP_END);
	assert_int_equal(nexpected, 6 + 5);
	assert_true(npcs > nexpected);
	for (size_t i = 0; i < 5; i++) /* in the handler */
		assert_int_equal(pcs[1 + i], expected[10 - i]);
	at = 6; /* the kernel's return and the place of the fault; then the callers of that */
	while (at < npcs && pcs[at] != expected[5])
		at++;
	assert_true(at + 6 <= npcs);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pcs[at + i], expected[5 - i]);
}

#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, map_memory, by_table_again)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_MEMORY(the_environment_chooses_once),
		IN_MEMORY(frame_pointers_lead_through_code_that_has_them),
		IN_MEMORY(a_wrong_frame_pointer_ends_the_stack),
		IN_MEMORY(libunwind_finds_the_same_stack),
		IN_MEMORY(a_fiber_is_walked_when_its_stack_is_known),
		IN_MEMORY(loads_end_at_the_end_of_a_fibers_stack),
		IN_MEMORY(stacks_are_checked),
		IN_MEMORY(the_alternate_signal_stack_is_walked),
	};

	return cmocka_run_group_tests_name("unwind_ways", tests, NULL, NULL);
}

#else

static void other_machines_have_no_walk(void **unused)
{
	(void)unused;
	skip();
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(other_machines_have_no_walk) };

	return cmocka_run_group_tests_name("unwind_ways", tests, NULL, NULL);
}

#endif
