/*
 * t_unwind_nested.c - walks out of signal handlers and inside them, the cache they share, what a handler may do.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#ifdef __x86_64__

#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "ehframe.h"
#include "fx_walk.h"
#include "fx_work.h"

static uintptr_t interrupted;

static void on_signal(int number, siginfo_t *info, void *ucontext)
{
	struct mew_unwind_regs regs;

	(void)number;
	(void)info;
	interrupted = (uintptr_t)((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
	mew_unwind_here(&regs);
	npcs = mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop);
}

static void on_signal_outside(int number, siginfo_t *info, void *ucontext)
{
	struct mew_unwind_regs regs;

	(void)number;
	(void)info;
	interrupted = (uintptr_t)((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP];
	mew_unwind_from_ucontext(&regs, ucontext);
	npcs = mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop);
}

MEW_NOINLINE static void raise_here(void)
{
	NOTE_CALLER();
	__asm__ volatile("int3"); /* no function between: this one is interrupted */
	sink = 3;
}

static void with_handler(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags }, before;

	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	chain(6, raise_here);
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}

static size_t place_of(uintptr_t pc)
{
	for (size_t i = 0; i < npcs; i++) {
		if (pcs[i] == pc)
			return i;
	}
	return npcs;
}

static void leaves_a_signal_handler(void **unused)
{
	size_t at;

	(void)unused;
	prepare();
	with_handler(on_signal, 0);
	at = place_of(interrupted);
	assert_in_range(at, 2, npcs - 1); /* the handler and the kernel's trampoline come before */
	assert_callers(at + 1);
	assert_int_equal(stop, MEW_STOP_END);
}

/* The first instruction of a function faults; the code right before it has another rule. */
__asm__(".text\n"
	"other_code:\n\t.cfi_startproc\n\t.cfi_def_cfa_offset 4096\n\tnop\n\t.cfi_endproc\n"
	"faults_at_once:\n\t.cfi_startproc\n\tud2\n\tret\n\t.cfi_endproc\n");
extern void faults_at_once(void);

static void on_fault(int number, siginfo_t *info, void *ucontext)
{
	on_signal(number, info, ucontext);
	((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void an_interrupted_address_is_exact(void **unused)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, before;

	(void)unused;
	prepare();
	assert_int_equal(sigaction(SIGILL, &action, &before), 0);
	chain(6, faults_at_once);
	assert_int_equal(sigaction(SIGILL, &before, NULL), 0);
	assert_int_equal(interrupted, (uintptr_t)faults_at_once);
	assert_callers(place_of(interrupted) + 2); /* faults_at_once itself notes no caller */
	assert_int_equal(stop, MEW_STOP_END);
}

static void starts_from_interrupted_code(void **unused)
{
	(void)unused;
	prepare();
	with_handler(on_signal_outside, 0);
	assert_int_equal(pcs[0], interrupted);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
}

static void from_another_stack_it_sees_the_interrupted_one_only(void **unused)
{
	static char room[65536];
	const stack_t other = { .ss_sp = room, .ss_size = sizeof room }, none = { .ss_flags = SS_DISABLE };

	(void)unused;
	prepare();
	assert_int_equal(sigaltstack(&other, NULL), 0);
	with_handler(on_signal_outside, SA_ONSTACK);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);

	nexpected = 0;
	with_handler(on_signal, SA_ONSTACK); /* the walk itself is on memory that it must not trust */
	assert_int_equal(npcs, 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
	assert_int_equal(sigaltstack(&none, NULL), 0);
}

static size_t good_walks, bad_walks;
static uintptr_t root;

static void on_tick(int number, siginfo_t *info, void *ucontext)
{
	static uintptr_t mine[MOST];
	enum mew_unwind_stop how;
	struct mew_unwind_regs regs;
	size_t n;

	(void)number;
	(void)info;
	mew_unwind_from_ucontext(&regs, ucontext);
	n = mew_unwind_walk(&walker, &regs, 0, 0, mine, MOST, &how);
	if (how == MEW_STOP_END && mine[n - 1] == root)
		good_walks++;
	else
		bad_walks++;
}

/* One cache, a walk in the program and another in a signal that interrupts it anywhere. */
static void a_nested_walk_does_no_harm(void **unused)
{
	struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART }, before;
	struct itimerval every = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };

	(void)unused;
#ifdef FX_THREAD_SANITIZER
	printf("the thread sanitizer hands signals over late, with the registers of a stack that is gone\n");
	skip();
#endif
	prepare();
	chain(0, walk_here);
	root = pcs[npcs - 1];
	good_walks = bad_walks = 0;
	assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
	for (unsigned i = 0; good_walks + bad_walks < 500; i++) {
		nexpected = 0;
		if (i % 16 == 0)
			walker.generation = 0; /* as if modules had changed: the cache is emptied while signals come */
		chain(30, walk_here);
		if (stop != MEW_STOP_END || npcs < nexpected || pcs[nexpected] != expected[0])
			break;
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	action.sa_handler = SIG_IGN;
	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_int_equal(stop, MEW_STOP_END);
	assert_callers(1);
	assert_int_equal(bad_walks, 0);
}

/* --- the cache ---------------------------------------------------------------------------------------------------- */

/* Make every remembered rule say that the stack ends here. */
static void spoil_cache(void)
{
	for (size_t i = 0; i < MEW_UNWIND_CACHE; i++) {
		if (walker.cache[i].pc != 0)
			walker.cache[i].rule = MEW_RULE_END;
	}
}

static void rules_are_remembered_until_modules_change(void **unused)
{
	(void)unused;
	prepare();
	for (int turn = 0; turn < 3; turn++) {
		npcs = nexpected = 0;
		if (turn > 0)
			spoil_cache();
		if (turn == 2)
			walker.generation--; /* a snapshot that is not the newest */
		chain(3, walk_here);
		if (turn == 1)
			assert_true(npcs < nexpected); /* it does use them */
		else
			assert_callers(1);
	}
	assert_int_equal(stop, MEW_STOP_END);
	assert_int_equal(walker.generation, mew_modules_current()->generation);
}

static uintptr_t colliding[MEW_UNWIND_CACHE]; /* code of the C library: one address for each place of the cache */
static volatile sig_atomic_t steps_end;
static unsigned steps;

static void find_colliding(void)
{
	const struct mew_module_map *map = mew_modules_find(mew_modules_current(), (uintptr_t)qsort);
	size_t found = 0;

	assert_non_null(map);
	memset(colliding, 0, sizeof colliding);
	for (uintptr_t pc = map->lo; pc < map->hi && found < MEW_UNWIND_CACHE; pc++) {
		uintptr_t *place = &colliding[(pc ^ pc >> 10) & (MEW_UNWIND_CACHE - 1)];

		found += *place == 0;
		*place = *place == 0 ? pc : *place;
	}
	assert_int_equal(found, MEW_UNWIND_CACHE);
}

/* Entries whose rule is not the one of their address; `filled` are those that have an address of code. */
static size_t untrue_entries(size_t *filled)
{
	size_t untrue = 0;

	*filled = 0;
	for (size_t i = 0; i < MEW_UNWIND_CACHE; i++) {
		uintptr_t pc = walker.cache[i].pc;
		const struct mew_module_map *map = mew_modules_find(mew_modules_current(), pc);

		if (map == NULL || map->table == NULL)
			continue;
		++*filled;
		untrue += walker.cache[i].rule != mew_unwind_table_rule(map->table, pc);
	}
	return untrue;
}

static size_t untrue_ever;

/* A nested walk that takes every place of the cache for itself, after a look at what the interrupted one has done. */
static void on_step(int number, siginfo_t *info, void *ucontext)
{
	ucontext_t *context = ucontext;
	enum mew_unwind_stop how;
	struct mew_unwind_regs regs;
	uintptr_t pc;
	size_t filled;

	(void)number;
	(void)info;
	steps++;
	untrue_ever += untrue_entries(&filled);
	if (steps_end)
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x100;
	mew_unwind_from_ucontext(&regs, ucontext);
	for (size_t i = 0; i < MEW_UNWIND_CACHE; i++) {
		regs.ip = colliding[i];
		(void)mew_unwind_walk(&walker, &regs, 0, 0, &pc, 1, &how);
	}
}

static void walk_in_steps(void)
{
	NOTE_CALLER();
	fx_start_steps();
	walk_here();
	steps_end = 1;
}

static void a_walk_interrupted_at_every_instruction_leaves_true_rules(void **unused)
{
	struct sigaction action = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, before;
	size_t filled;

	(void)unused;
	prepare();
	find_colliding();
	untrue_ever = 0;
	steps = 0;
	steps_end = 0;
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	chain(2, walk_in_steps);
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
	assert_true(steps > 300);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
	assert_int_equal(untrue_ever, 0);
	assert_int_equal(untrue_entries(&filled), 0);
	assert_true(filled > MEW_UNWIND_CACHE / 2);
}

/* Strict mode lets a process read, write and exit; any other system call kills it. */
static void makes_no_system_calls(void **unused)
{
	int status = 0;
	pid_t child;

	(void)unused;
#if defined(FX_ADDRESS_SANITIZER) || defined(FX_THREAD_SANITIZER)
	printf("sanitizers make system calls of their own\n");
	skip();
#endif
	prepare();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
			_exit(77);
		chain(10, walk_here);
		(void)syscall(SYS_exit, stop == MEW_STOP_END && npcs > nexpected ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("the kernel has no strict seccomp mode\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_a_signal_handler),
		cmocka_unit_test(an_interrupted_address_is_exact),
		cmocka_unit_test(starts_from_interrupted_code),
		cmocka_unit_test(from_another_stack_it_sees_the_interrupted_one_only),
		cmocka_unit_test(a_nested_walk_does_no_harm),
		cmocka_unit_test(rules_are_remembered_until_modules_change),
		cmocka_unit_test(a_walk_interrupted_at_every_instruction_leaves_true_rules),
		cmocka_unit_test(makes_no_system_calls),
	};

	return cmocka_run_group_tests_name("unwind_nested", tests, NULL, NULL);
}

#else

#include <stdio.h>

static void other_machines_have_the_leaf_only(void **unused)
{
	(void)unused;
	printf("stacks are walked on x86-64 only\n");
	skip();
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(other_machines_have_the_leaf_only) };

	return cmocka_run_group_tests_name("unwind_nested", tests, NULL, NULL);
}

#endif
