/*
 * t_unwind.c - walks of known stacks: through calls, realigned frames, code without rules; limits and bad stacks.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind.h"

#ifdef __x86_64__

#include "ehframe.h"
#include "fx_walk.h"

static void before_a_snapshot_there_is_the_leaf(void **unused)
{
	(void)unused;
	assert_int_equal(mew_unwind_thread_init(&walker), 0);
	walk_here();
	assert_int_equal(npcs, 1);
	assert_int_equal(stop, MEW_STOP_NO_RULE);
}

static void finds_every_caller_to_the_end(void **unused)
{
	(void)unused;
	prepare();
	chain(20, walk_here);
	assert_int_equal(nexpected, 22);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
}

static void goes_deep(void **unused)
{
	(void)unused;
	prepare();
	chain(3000, walk_here);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
}

static void says_when_the_buffer_is_full(void **unused)
{
	size_t whole;

	(void)unused;
	prepare();
	chain(5, walk_here);
	whole = npcs;

	prepare();
	max = 3;
	chain(5, walk_here);
	assert_int_equal(npcs, 3);
	assert_int_equal(stop, MEW_STOP_FULL);

	prepare();
	max = whole; /* fits exactly: nothing is cut, so it is not full */
	chain(5, walk_here);
	assert_int_equal(npcs, whole);
	assert_int_equal(stop, MEW_STOP_END);
}

/* A section of its own has linker symbols around it. */
extern const char __start_fx_entry[], __stop_fx_entry[];
__attribute__((section("fx_entry"), noinline)) static void enter(void (*body)(void))
{
	body();
	sink = 1;
}

MEW_NOINLINE static void body_of_entry(void)
{
	nexpected = 0;
	chain(4, walk_here);
	sink = 2;
}

static void stops_below_the_entry_frame(void **unused)
{
	(void)unused;
	prepare();
	entry_lo = (uintptr_t)__start_fx_entry;
	entry_hi = (uintptr_t)__stop_fx_entry;
	enter(body_of_entry);
	assert_int_equal(stop, MEW_STOP_END);
	assert_callers(1);
	assert_int_equal(npcs, 1 + nexpected); /* the body is the last: neither the entry frame nor anything above */
}

MEW_NOINLINE static double realigned(int n)
{
	double v[8] __attribute__((aligned(64)));
	char *p = __builtin_alloca((size_t)n * 16 + 32);

	NOTE_CALLER();
	for (int i = 0; i < 8; i++)
		v[i] = n + i;
	memset(p, n, (size_t)n);
	walk_here();
	return v[n & 7] + p[n - 1];
}

static void leaves_realigned_frames(void **unused)
{
	(void)unused;
	prepare();
	sink = (uintptr_t)realigned(9);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
}

static jmp_buf way_out;

__attribute__((noreturn, noinline)) static void never_returns(void)
{
	walk_here();
	longjmp(way_out, 1);
}

/* Its call is its last instruction: the return address lies in the next function, whose frame has another size. */
__attribute__((noinline)) static void ends_with_a_call(int n)
{
	volatile char room[400] = { 0 };

	NOTE_CALLER();
	room[n] = (char)n;
	sink = (uintptr_t)room[0];
	never_returns();
}

static void a_return_address_belongs_to_the_call_before_it(void **unused)
{
	(void)unused;
	prepare();
	if (setjmp(way_out) == 0)
		ends_with_a_call(7);
	assert_int_equal(stop, MEW_STOP_END);
	assert_true(npcs > 4);
	assert_int_equal(pcs[1], expected[1]); /* walk_here's caller */
	assert_int_equal(pcs[3], expected[0]); /* and, over never_returns, that of ends_with_a_call */
}

static int compare_and_walk(const void *a, const void *b)
{
	if (npcs == 0)
		walk_here();
	return *(const char *)a - *(const char *)b;
}

static void walks_through_the_c_library(void **unused)
{
	char letters[] = "unwinder";

	(void)unused;
	prepare();
	chain(0, walk_here);
	npcs = nexpected = 0;
	qsort(letters, 8, 1, compare_and_walk);
	assert_int_equal(stop, MEW_STOP_END);
	assert_callers(1);
	assert_true(npcs > 6);
	assert_string_equal(letters, "deinnruw");
}

/* --- code without rules ------------------------------------------------------------------------------------------- */

/*
 * Each calls its argument and has no unwind information: the first keeps a frame pointer, the second spoils it, the
 * third points it at a place on the stack where no return address is.
 */
__asm__(".text\n"
	"with_frame_pointer:\n\tpush %rbp\n\tmov %rsp, %rbp\n\tcall *%rdi\n\tpop %rbp\n\tret\n"
	"without_frame_pointer:\n\tpush %rbp\n\tmov $8, %ebp\n\tcall *%rdi\n\tpop %rbp\n\tret\n"
	"with_misleading_frame_pointer:\n\tpush %rbp\n\tpush $12345\n\tpush $0\n\tmov %rsp, %rbp\n\t"
	"call *%rdi\n\tadd $16, %rsp\n\tpop %rbp\n\tret\n");
extern void with_misleading_frame_pointer(void (*call)(void));
extern void with_frame_pointer(void (*call)(void));
extern void without_frame_pointer(void (*call)(void));

static void frame_pointers_serve_where_there_is_no_rule(void **unused)
{
	uintptr_t here;

	(void)unused;
	prepare();
	chain(0, walk_here); /* notes this function as a caller */
	here = expected[0];
	nexpected = 0;
	with_frame_pointer(walk_here);
	assert_int_equal(pcs[1], expected[0]);
	assert_in_range(pcs[2], here, here + 200); /* this function, a bit further on */
	assert_int_equal(stop, MEW_STOP_END);
}

static void a_spoilt_frame_pointer_is_not_followed(void **unused)
{
	(void)unused;
	prepare();
	without_frame_pointer(walk_here);
	assert_int_equal(npcs, 2);
	assert_int_equal(pcs[1], expected[0]);
	assert_int_equal(stop, MEW_STOP_NO_RULE);

	prepare();
	with_misleading_frame_pointer(walk_here);
	assert_int_equal(npcs, 2);
	assert_int_equal(pcs[1], expected[0]);
	assert_int_equal(stop, MEW_STOP_NO_RULE);
}

/* --- bad stacks --------------------------------------------------------------------------------------------------- */

static void never_reads_outside_the_stack(void **unused)
{
	struct mew_unwind_regs regs = { .ip = (uintptr_t)walk_here };

	(void)unused;
	prepare();
	chain(8, walk_here);
	for (uintptr_t cut = 8; cut <= 512; cut += 8) { /* stacks that end early: every load beyond must be refused */
		mew_unwind_here(&regs);
		walker.stack_hi = regs.sp + cut;
		npcs = mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop);
		assert_true(npcs >= 1);
		assert_int_not_equal(stop, MEW_STOP_END);
	}
	assert_int_equal(mew_unwind_thread_init(&walker), 0);
	regs.sp = 64; /* not in the stack at all; reading there would crash */
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
	regs.sp = UINTPTR_MAX - 7;
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
	mew_unwind_here(&regs);
	walker.stack_lo = regs.sp + 64; /* just below: the words above it are in bounds, those at it are not */
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
}

/* Also what lies between variables, so not for the sanitizers to judge. */
static MEW_NOINLINE __attribute__((no_sanitize("address", "thread"))) void copy_words(uintptr_t lo, uintptr_t hi, uintptr_t *to)
{
	for (uintptr_t at = lo; at < hi; at += sizeof at)
		to[(at - lo) / sizeof at] = *(const volatile uintptr_t *)at;
}

/* The same stack in a copy: the same frames, and where the copy ends so does the walk. */
static void a_copy_is_walked_like_the_stack(void **unused)
{
	static uintptr_t words[8192], live[MOST];
	struct mew_unwind_copy copy = { .words = words };
	struct mew_unwind_regs regs;
	size_t nlive;

	(void)unused;
	prepare();
	mew_unwind_here(&regs);
	nlive = mew_unwind_walk(&walker, &regs, 0, 0, live, MOST, &stop);
	assert_int_equal(stop, MEW_STOP_END);
	copy.lo = regs.sp;
	copy.hi = walker.stack_hi;
	assert_true(copy.hi - copy.lo <= sizeof words);
	copy_words(copy.lo, copy.hi, words);
	walker.stack_lo = walker.stack_hi = 0; /* the thread's own stack is not looked at */
	regs.copy = &copy;
	npcs = mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop);
	assert_int_equal(stop, MEW_STOP_END);
	assert_int_equal(npcs, nlive);
	assert_memory_equal(pcs, live, nlive * sizeof live[0]);
	for (uintptr_t bytes = 8; bytes < copy.hi - copy.lo; bytes += 8) {
		struct mew_unwind_copy cut = { .lo = copy.lo, .hi = copy.lo + bytes, .words = words };

		regs.copy = &cut;
		npcs = mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop);
		assert_true(npcs >= 1 && npcs <= nlive);
		assert_memory_equal(pcs, live, npcs * sizeof live[0]);
		assert_true(npcs == nlive || stop == MEW_STOP_BAD_STACK);
	}
	assert_int_equal(mew_unwind_thread_init(&walker), 0);
}

/* An address of the C library where the frame is found through rbp. */
static uintptr_t code_with_frame_pointer(void)
{
	const struct mew_module_map *map = mew_modules_find(mew_modules_current(), (uintptr_t)qsort);

	assert_non_null(map);
	assert_non_null(map->table);
	for (uintptr_t pc = map->lo; pc < map->hi; pc++) {
		uint64_t rule = mew_unwind_table_rule(map->table, pc);

		if (mew_rule_kind(rule) == MEW_RULE_BP && mew_rule_cfa_offset(rule) == 16)
			return pc;
	}
	return 0;
}

static void a_frame_must_lie_above_the_one_before(void **unused)
{
	struct mew_unwind_regs regs;

	(void)unused;
	prepare();
	mew_unwind_here(&regs);
	regs.ip = code_with_frame_pointer();
	if (regs.ip == 0) {
		printf("the C library has no function with a frame pointer\n");
		skip();
	}
	regs.bp = regs.sp - 16;
	assert_int_equal(mew_unwind_walk(&walker, &regs, 0, 0, pcs, MOST, &stop), 1);
	assert_int_equal(stop, MEW_STOP_BAD_STACK);
}

static void any_registers_end_somewhere(void **unused)
{
	struct mew_unwind_regs regs;
	uint64_t random = 88172645463325252u;
	const struct mew_module_map *map;

	(void)unused;
	prepare();
	chain(40, walk_here);
	mew_unwind_here(&regs);
	map = mew_modules_find(mew_modules_current(), (uintptr_t)qsort);
	assert_non_null(map);
	for (int i = 0; i < 20000; i++) {
		struct mew_unwind_regs wild = regs;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		wild.ip = map->lo + random % (map->hi - map->lo);
		wild.sp = regs.sp + (random >> 32) % 512;
		wild.bp = i % 2 == 0 ? random : regs.sp + (random >> 40) % 4096;
		wild.bx = i % 3 == 0 ? random >> 8 : regs.sp + (random >> 24) % 4096;
		npcs = mew_unwind_walk(&walker, &wild, 0, 0, pcs, MOST, &stop);
		assert_in_range(npcs, 1, MOST);
		assert_true(stop < MEW_STOPS);
	}
}

static void *walk_in_thread(void *arg)
{
	(void)arg;
	if (mew_unwind_thread_init(&walker) != 0)
		return NULL;
	chain(3, walk_here);
	return &walker;
}

static void another_thread_has_its_own_end(void **unused)
{
	pthread_t thread;
	void *done;

	(void)unused;
	prepare();
	assert_int_equal(pthread_create(&thread, NULL, walk_in_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, &done), 0);
	assert_non_null(done);
	assert_callers(1);
	assert_int_equal(stop, MEW_STOP_END);
	assert_in_range(npcs, nexpected + 1, nexpected + 4); /* start_thread, clone */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_a_snapshot_there_is_the_leaf),
		cmocka_unit_test(finds_every_caller_to_the_end),
		cmocka_unit_test(goes_deep),
		cmocka_unit_test(says_when_the_buffer_is_full),
		cmocka_unit_test(stops_below_the_entry_frame),
		cmocka_unit_test(leaves_realigned_frames),
		cmocka_unit_test(a_return_address_belongs_to_the_call_before_it),
		cmocka_unit_test(walks_through_the_c_library),
		cmocka_unit_test(frame_pointers_serve_where_there_is_no_rule),
		cmocka_unit_test(a_spoilt_frame_pointer_is_not_followed),
		cmocka_unit_test(never_reads_outside_the_stack),
		cmocka_unit_test(a_copy_is_walked_like_the_stack),
		cmocka_unit_test(a_frame_must_lie_above_the_one_before),
		cmocka_unit_test(any_registers_end_somewhere),
		cmocka_unit_test(another_thread_has_its_own_end),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}

#else

static void other_machines_have_the_leaf_and_say_so(void **unused)
{
	static struct mew_unwind_thread thread;
	struct mew_unwind_regs regs = { .ip = 4096 };
	enum mew_unwind_stop stop;
	uintptr_t pc = 0;

	(void)unused;
	assert_int_equal(mew_unwind_walk(&thread, &regs, 0, 0, &pc, 1, &stop), 1);
	assert_int_equal(pc, 4096);
	assert_int_equal(stop, MEW_STOP_UNSUPPORTED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(other_machines_have_the_leaf_and_say_so) };

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}

#endif
