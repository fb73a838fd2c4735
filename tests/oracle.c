/*
 * oracle.c - single-steps fx_work() and walks the stack at every instruction, three ways: mew's tables, libunwind, and
 * the calls that were really executed. Test program, built and judged by oracle.sh.
 */
#include "config.h"

#ifndef CALLS_ALONE
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "ehframe.h"
#include "fx_recent.h"
#include "fx_work.h"
#include "modules.h"
#include "unwind.h"

#define FRAMES 256
#define TRAP_FLAG 0x100
#define LONGEST_CALL 15 /* bytes of an x86 instruction */
#ifdef CALLS_ALONE
#define OTHER "the executed calls"
#else
#define OTHER "libunwind"
#endif
#define SITES 12        /* places of disagreement that are told */

struct call {
	uintptr_t slot, address; /* where the return address lies on the stack, and what it is */
};

struct site {
	uintptr_t pc;
	size_t mew, other;
	const char *what;
	enum mew_unwind_stop stop;
	unsigned times;
};

static struct mew_unwind_thread walker, reuser; /* the second goes by its last walk */
static struct mew_unwind_recent recent;
/* What lies above the first instruction stepped, in the program (0) and in its signal handler (1). */
static struct {
	uintptr_t pcs[FRAMES];
	size_t n, first_call;
} base[2];
static unsigned level;
static uintptr_t interrupted_sp;
static struct call calls[FRAMES];
static size_t ncalls;
static uintptr_t last_ip, last_sp;
static volatile sig_atomic_t stop_steps;
static struct site sites[SITES];
static size_t nsites;
static unsigned long truncated_by[MEW_STOPS];
static unsigned long instructions, equal, truncated, different, libunwind_wrong, wrong_calls, reuse_wrong;

/* The C library has no unwind information: what cannot be known must be cut, for that very reason. */
#ifdef NO_TABLES
static const bool cut_expected = true;
#else
static const bool cut_expected = false;
#endif

static void note(uintptr_t pc, const char *what, size_t mew, size_t other, enum mew_unwind_stop stop)
{
	for (size_t i = 0; i < nsites; i++) {
		if (sites[i].pc == pc && sites[i].what == what) {
			sites[i].times++;
			return;
		}
	}
	if (nsites < SITES)
		sites[nsites++] = (struct site){ pc, mew, other, what, stop, 1 };
}

/* Do pcs end with the calls that are known, below the program's own base? */
static bool ends_with_calls(const uintptr_t *pcs, size_t n)
{
	size_t known = ncalls + base[0].n;

	if (n < known)
		return false;
	pcs += n - known;
	for (size_t i = 0; i < ncalls; i++) {
		if (pcs[i] != calls[ncalls - 1 - i].address)
			return false;
	}
	return memcmp(pcs + ncalls, base[0].pcs, base[0].n * sizeof pcs[0]) == 0;
}

/* The first instruction of the program or of its signal handler: what lies above it is taken from the walk. */
static void begin_level(unsigned new_level, const uintptr_t *pcs, size_t n, uintptr_t sp)
{
	if (new_level == 1 && !cut_expected && !ends_with_calls(pcs, n)) {
		wrong_calls++;
		note(pcs[0], "not the interrupted calls", n, ncalls + base[0].n, MEW_STOP_END);
	}
	level = new_level;
	interrupted_sp = last_sp;
	base[level].n = n - 1;
	base[level].first_call = ncalls;
	memcpy(base[level].pcs, pcs + 1, base[level].n * sizeof pcs[0]);
	last_sp = sp;
}

/* Learn from one instruction whether it called or returned; no unwind information is used. */
static void follow_calls(uintptr_t ip, uintptr_t sp)
{
	uintptr_t top = *(const uintptr_t *)sp;

	if (level == 1 && sp >= interrupted_sp)
		level = 0;
	if (level == 1 && ip == base[1].pcs[0]) /* the handler returned to the kernel's trampoline */
		memmove(base[1].pcs, base[1].pcs + 1, --base[1].n * sizeof base[1].pcs[0]);
	while (ncalls > base[level].first_call && calls[ncalls - 1].slot < sp)
		ncalls--;
	if (sp == last_sp - 8 && top > last_ip && top <= last_ip + LONGEST_CALL && ip != top && ncalls < FRAMES)
		calls[ncalls++] = (struct call){ sp, top };
	last_ip = ip;
	last_sp = sp;
}

/* Are pcs exactly the calls that were executed and not returned from? */
static bool agrees_with_calls(const uintptr_t *pcs, size_t n)
{
	size_t depth = ncalls - base[level].first_call;

	if (n != 1 + depth + base[level].n)
		return false;
	for (size_t i = 0; i < depth; i++) {
		if (pcs[1 + i] != calls[ncalls - 1 - i].address)
			return false;
	}
	return memcmp(pcs + 1 + depth, base[level].pcs, base[level].n * sizeof pcs[0]) == 0;
}

/* Who has only the executed calls does not know where a jump leads: to code. */
static bool is_jump_target(uintptr_t pc, uintptr_t other)
{
#ifdef CALLS_ALONE
	(void)other;
	return mew_modules_is_code(mew_modules_current(), pc);
#else
	return pc == other;
#endif
}

/*
 * A jump to another frame is under way: frame 1 is where it goes, and what is above are the calls that it does not leave.
 * libunwind does not know how such a frame ends.
 */
static bool agrees_with_jump(const uintptr_t *pcs, size_t n, const uintptr_t *other, size_t nother)
{
	const struct mew_module_map *map = mew_modules_find(mew_modules_current(), pcs[0]);
	size_t depth = ncalls - base[level].first_call, kept;

	if (map == NULL || map->table == NULL ||
	    mew_rule_kind(mew_unwind_table_rule(map->table, pcs[0])) != MEW_RULE_JUMP)
		return false;
	if (n < 2 + base[level].n || nother < 2 || !is_jump_target(pcs[1], other[1]))
		return false;
	kept = n - 2 - base[level].n;
	if (kept > depth)
		return false;
	for (size_t i = 0; i < kept; i++) {
		if (pcs[2 + i] != calls[base[level].first_call + kept - 1 - i].address)
			return false;
	}
	return memcmp(pcs + 2 + kept, base[level].pcs, base[level].n * sizeof pcs[0]) == 0;
}

#ifdef CALLS_ALONE
/* Where there is no libunwind, the calls that were really executed stand in for it. */
static size_t walk_other(ucontext_t *context, uintptr_t *pcs)
{
	size_t n = 0;

	pcs[n++] = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	for (size_t i = ncalls; i-- > base[level].first_call && n < FRAMES;)
		pcs[n++] = calls[i].address;
	for (size_t i = 0; i < base[level].n && n < FRAMES; i++)
		pcs[n++] = base[level].pcs[i];
	return n;
}
#else
static size_t walk_other(ucontext_t *context, uintptr_t *pcs)
{
	unw_cursor_t cursor;
	unw_word_t ip;
	size_t n = 0;

	if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) != 0)
		return 0;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0)
			break;
		pcs[n++] = ip;
	} while (n < FRAMES && unw_step(&cursor) > 0);
	return n;
}
#endif

/*
 * Where mew and libunwind part, the executed calls decide: both read the same unwind information, which compilers get
 * wrong at the end of realigned functions and which some linkers leave out for their stubs.
 */
static void judge(ucontext_t *context, const uintptr_t *pcs, size_t n, enum mew_unwind_stop stop)
{
	static uintptr_t other[FRAMES];
	size_t nother = walk_other(context, other), common = 0, shorter = n < nother ? n : nother;
	bool executed = agrees_with_calls(pcs, n) || agrees_with_jump(pcs, n, other, nother);

	while (common < shorter && pcs[common] == other[common])
		common++;
	if (executed && (common < n || n != nother)) {
		libunwind_wrong++;
		note(pcs[0], "libunwind is wrong", n, nother, stop);
	} else if (common == n && n == nother) {
		equal++;
	} else if (common == n && stop != MEW_STOP_END) {
		truncated++;
		truncated_by[stop]++;
		if (!cut_expected)
			note(pcs[0], "truncated", n, nother, stop);
	} else {
		different++;
		note(pcs[0], "different", n, nother, stop);
	}
	if (!executed && (stop == MEW_STOP_END || common < n)) {
		wrong_calls++;
		note(pcs[0], "not the executed calls", n, 1 + ncalls - base[level].first_call + base[level].n, stop);
	}
}

/* A walk that takes over the outer part of the last one must find what a walk of its own finds. */
static void judge_reuse(const struct mew_unwind_regs *regs, const uintptr_t *pcs, size_t n, enum mew_unwind_stop stop)
{
	static uintptr_t again[FRAMES];
	enum mew_unwind_stop stop_again;
	size_t nagain = mew_unwind_walk(&reuser, regs, 0, 0, again, FRAMES, &stop_again);

	if (nagain == n && stop_again == stop && memcmp(again, pcs, n * sizeof pcs[0]) == 0)
		return;
	reuse_wrong++;
	note(pcs[0], "taken over wrongly", nagain, n, stop_again);
}

static void on_trap(int number, siginfo_t *info, void *ucontext)
{
	static uintptr_t pcs[FRAMES];
	ucontext_t *context = ucontext;
	enum mew_unwind_stop stop;
	struct mew_unwind_regs regs;
	size_t n;

	(void)number;
	(void)info;
	if (stop_steps) {
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		return;
	}
	if (instructions % 8 == 0)
		walker.generation = 0; /* now and then without the cache */
	mew_unwind_from_ucontext(&regs, ucontext);
	n = mew_unwind_walk(&walker, &regs, 0, 0, pcs, FRAMES, &stop);
	if (instructions++ == 0)
		begin_level(0, pcs, n, regs.sp);
	else if (fx_signal_entered)
		begin_level(1, pcs, n, regs.sp);
	fx_signal_entered = 0;
	follow_calls(regs.ip, regs.sp);
	judge(context, pcs, n, stop);
	judge_reuse(&regs, pcs, n, stop);
}

__attribute__((noinline)) static void drive(void)
{
	fx_start_steps();
	fx_work();
	stop_steps = 1;
}

static bool passed(void)
{
	if (different != 0 || wrong_calls != 0 || reuse_wrong != 0 || instructions < 10000)
		return false;
	if (!cut_expected && reused < instructions) /* of what is not walked to its end nothing is kept */
		return false;
	return cut_expected ? equal > 1000 && truncated == truncated_by[MEW_STOP_NO_RULE] : truncated * 10000 <= instructions;
}

static void report(const char *name)
{
	double all = (double)instructions / 100;

	printf("# %s: %lu instructions, %.3f %% equal to " OTHER ", %.4f %% truncated, %lu different, "
	       "%lu where the executed calls prove libunwind wrong, %lu not the executed calls\n",
	       name, instructions, (double)equal / all, (double)truncated / all, different, libunwind_wrong,
	       wrong_calls);
	printf("#   %.1f frames a stack taken over from the one before, %lu wrongly\n",
	       (double)reused / (double)instructions, reuse_wrong);
	printf("#   cut short: %lu without a rule, %lu by a rule that does not help, %lu at a bad stack\n",
	       truncated_by[MEW_STOP_NO_RULE], truncated_by[MEW_STOP_UNSUPPORTED], truncated_by[MEW_STOP_BAD_STACK]);
	for (size_t i = 0; i < nsites; i++) {
		const struct mew_module_map *map = mew_modules_find(mew_modules_current(), sites[i].pc);

		printf("#   %s at %s+0x%zx: %zu frames (stop %d), other %zu, %u times\n", sites[i].what,
		       map != NULL ? map->path : "?", (size_t)(sites[i].pc - (map != NULL ? map->bias : 0)),
		       sites[i].mew, (int)sites[i].stop, sites[i].other, sites[i].times);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	reuser.recent = &recent;
	if (mew_modules_renew() != 0 || mew_unwind_thread_init(&walker) != 0 || mew_unwind_thread_init(&reuser) != 0 ||
	    sigaction(SIGTRAP, &action, NULL) != 0) {
		printf("# no modules, no stack bounds or no SIGTRAP\n");
		return EXIT_FAILURE;
	}
	drive();
	report(argc > 1 ? argv[1] : "build");
	return passed() ? EXIT_SUCCESS : EXIT_FAILURE;
}
