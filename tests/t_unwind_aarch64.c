/*
 * t_unwind_aarch64.c - walks stacks of aarch64 that were recorded (fx_aarch64.sh), on whatever machine this runs.
 * Test program. A recorded stack is copied, and every word in it that pointed into the stack points into the copy.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "ehframe.h"
#include "modules.h"
#include "unwind_aarch64.h"

struct record {
	const char *name;
	uint64_t pc, sp, x29, x30, nstack;
	const uint64_t *stack; /* from sp up */
	uint64_t ncalls;
	const uint64_t *calls; /* return addresses, innermost first */
};
struct program {
	const char *options;
	uint64_t code, code_bytes, frames_address;
	const uint8_t *frames;
	size_t frames_bytes;
	const struct record *records;
	size_t nrecords;
};
#include "fx_aarch64.inc"

enum { MOST = 64, ROOM = 16384 };

static struct mew_arena arena;
static struct mew_unwind_thread walker;
static char *room; /* ROOM bytes; what follows cannot be read */
static uint64_t *copy;
static struct mew_module_map map;
static struct mew_modules modules = { .n = 1, .map = &map };
static uintptr_t pcs[MOST];
static size_t npcs;
static enum mew_unwind_stop stop;

static int set_up(void **unused)
{
	(void)unused;
	mew_arena_init(&arena, 0);
	room = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return room == MAP_FAILED || mprotect(room + ROOM, 4096, PROT_NONE) != 0 ? -1 : 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	mew_arena_fini(&arena);
	return munmap(room, ROOM + 4096);
}

static void use_program(const struct program *p)
{
	const struct mew_ehframe in = { .frames = { p->frames, p->frames_bytes, p->frames_address }, .lo = p->code,
					.hi = p->code + p->code_bytes, .machine = &mew_machine_aarch64 };

	map = (struct mew_module_map){ .lo = in.lo, .hi = in.hi, .path = "recorded", .build_id = "" };
	assert_int_equal(mew_ehframe_compile(&in, &arena, &map.table), 0);
	assert_non_null(map.table);
	assert_int_equal(map.table->unsupported_rows, 0);
	modules.generation++;
}

static uint64_t moved(const struct record *r, uint64_t word)
{
	return word >= r->sp && word <= r->sp + r->nstack * 8 ? word - r->sp + (uintptr_t)copy : word;
}

static struct mew_unwind_regs use_record(const struct record *r)
{
	assert_true(r->nstack * 8 <= ROOM);
	copy = (uint64_t *)(room + ROOM) - r->nstack;
	for (size_t i = 0; i < r->nstack; i++)
		copy[i] = moved(r, r->stack[i]);
	walker.stack_lo = (uintptr_t)room;
	walker.stack_hi = (uintptr_t)room + ROOM;
	return (struct mew_unwind_regs){ .ip = r->pc, .sp = (uintptr_t)copy, .bp = moved(r, r->x29),
					 .bx = moved(r, r->x30) };
}

static void walk(const struct mew_unwind_regs *regs)
{
	npcs = mew_unwind_aarch64(&walker, &modules, regs, 0, 0, pcs, MOST, &stop);
}

static void assert_calls(const struct record *r, size_t first, size_t at)
{
	assert_int_equal(stop, MEW_STOP_END);
	assert_int_equal(npcs - at, r->ncalls - first);
	for (size_t i = first; i < r->ncalls; i++)
		assert_int_equal(pcs[at + i - first], r->calls[i]);
}

static bool is(const struct record *r, const char *name)
{
	return strcmp(r->name, name) == 0;
}

static void recorded_stacks_are_found_whole(void **unused)
{
	size_t walked = 0;

	(void)unused;
	for (size_t i = 0; i < MEW_COUNTOF(programs); i++) {
		use_program(&programs[i]);
		for (size_t j = 0; j < programs[i].nrecords; j++) {
			const struct record *r = &programs[i].records[j];
			struct mew_unwind_regs regs = use_record(r);

			if (is(r, "frame without rules"))
				continue;
			walk(&regs);
			if (npcs != 1 + r->ncalls || stop != MEW_STOP_END)
				printf("%s: %s at %#zx: %zu frames of %zu, stop %d\n", programs[i].options, r->name,
				       (size_t)r->pc, npcs, (size_t)r->ncalls + 1, (int)stop);
			assert_int_equal(pcs[0], r->pc);
			assert_calls(r, 0, 1);
			walked++;
		}
	}
	assert_int_equal(walked, 40);
}

/* Its frame record leads on where the code above keeps them too; else the stack ends there, and says why. */
static void a_frame_record_serves_where_there_is_no_rule(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < MEW_COUNTOF(programs); i++) {
		use_program(&programs[i]);
		for (size_t j = 0; j < programs[i].nrecords; j++) {
			const struct record *r = &programs[i].records[j];
			struct mew_unwind_regs regs = use_record(r);

			if (!is(r, "frame without rules"))
				continue;
			walk(&regs);
			assert_true(npcs >= 3);
			assert_int_equal(pcs[1], r->calls[0]);
			if (strstr(programs[i].options, "omit-frame-pointer") == NULL) {
				assert_calls(r, 1, 3);
			} else {
				assert_int_equal(npcs, 3);
				assert_int_equal(stop, MEW_STOP_NO_RULE);
			}
		}
	}
}

static const struct record *find_record(const struct program *p, const char *name)
{
	size_t i = 0;

	while (i < p->nrecords - 1 && !is(&p->records[i], name))
		i++;
	assert_true(is(&p->records[i], name));
	return &p->records[i];
}

/* x30 is a return address where nothing was called yet, and nowhere else. */
static void the_link_register_counts_for_the_leaf_alone(void **unused)
{
	const struct record *r = find_record(&programs[1], "leaf"), *deep = find_record(&programs[1], "deep");
	struct mew_unwind_regs regs;

	(void)unused;
	use_program(&programs[1]);
	regs = use_record(r);
	regs.bx = 0;
	walk(&regs);
	assert_int_equal(npcs, 1); /* as the outermost frame */
	assert_int_equal(stop, MEW_STOP_END);
	regs.bx = r->x30 | (uintptr_t)0x7f << 48; /* signed */
	walk(&regs);
	assert_int_equal(pcs[1], r->calls[0]);
	regs = use_record(deep);
	regs.bx = 12345;
	walk(&regs);
	assert_calls(deep, 0, 1);
	for (size_t i = 0; i < deep->nstack; i++) { /* a caller that is a leaf cannot have called */
		if (copy[i] == deep->calls[0])
			copy[i] = r->pc + 1;
	}
	walk(&regs);
	assert_int_equal(npcs, 2);
	assert_int_equal(stop, MEW_STOP_BAD_STACK); /* its frame has no size */
}

static void a_stack_that_ends_early_is_not_left(void **unused)
{
	const struct record *r = find_record(&programs[1], "signal");
	struct mew_unwind_regs regs;
	size_t last = 0;

	(void)unused;
	use_program(&programs[1]);
	regs = use_record(r);
	for (uint64_t words = 1; words <= r->nstack; words++) {
		walker.stack_hi = (uintptr_t)(copy + words);
		walk(&regs);
		assert_true(npcs >= last && npcs <= r->ncalls + 1);
		assert_int_equal(npcs == r->ncalls + 1, stop == MEW_STOP_END);
		last = npcs;
	}
	assert_int_equal(last, r->ncalls + 1);
}

static void any_stack_ends_somewhere(void **unused)
{
	uint64_t random = 88172645463325252u;

	(void)unused;
	for (size_t turn = 0; turn < 20000; turn++) {
		const struct program *p = &programs[turn / 5000 % MEW_COUNTOF(programs)];
		const struct record *r = &p->records[turn % p->nrecords];
		struct mew_unwind_regs regs;

		if (turn % 5000 == 0)
			use_program(p);
		regs = use_record(r);
		for (unsigned i = 0; i < 6; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[random % r->nstack] = i % 2 == 0 ? random : (uintptr_t)copy + (random >> 20) % 4096;
		}
		regs.bp = turn % 3 == 0 ? random : regs.bp;
		regs.ip = turn % 7 == 0 ? p->code + (random >> 9) % p->code_bytes : regs.ip;
		walk(&regs);
		assert_in_range(npcs, 1, MOST);
		assert_true(stop < MEW_STOPS);
	}
}

#define RECORDED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		RECORDED(recorded_stacks_are_found_whole),
		RECORDED(a_frame_record_serves_where_there_is_no_rule),
		RECORDED(the_link_register_counts_for_the_leaf_alone),
		RECORDED(a_stack_that_ends_early_is_not_left),
		RECORDED(any_stack_ends_somewhere),
	};

	return cmocka_run_group_tests_name("unwind_aarch64", tests, NULL, NULL);
}
