/*
 * t_ehframe.c - compiles hand-made and real .eh_frame sections and looks the rules up; damaged ones do no harm.
 * Test program. The hand-made sections are written byte by byte, with the numbers of the DWARF 5 standard.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "fx_ehframe.h"
#include "image.h"

#define CODE ((uintptr_t)0x400000)
#define CODE_BYTES ((uintptr_t)0x3000)
#define FRAMES ((uintptr_t)0x500000)
#define HEADER ((uintptr_t)0x4ff000)

/* The section being written. */
static uint8_t section[8192];
static size_t used;
static uint8_t header[1024];
static size_t header_used;
static struct mew_arena arena;

static int open_arena(void **unused)
{
	(void)unused;
	used = header_used = 0;
	mew_arena_init(&arena, 0);
	return 0;
}

static int close_arena(void **unused)
{
	(void)unused;
	mew_arena_fini(&arena);
	return 0;
}

static void put(const void *bytes, size_t n)
{
	assert_true(used + n <= sizeof section);
	memcpy(section + used, bytes, n);
	used += n;
}

static void put32(size_t value)
{
	uint32_t word = (uint32_t)value;

	put(&word, sizeof word);
}

static void begin_entry(size_t *start)
{
	*start = used;
	put32(0);
}

static void end_entry(size_t start)
{
	uint32_t length = (uint32_t)(used - start - 4);

	memcpy(section + start, &length, sizeof length);
}

/* Code alignment 1, data alignment -8, return address 16, pointers pc-relative; CFA rsp + 8 and RA at CFA - 8. */
static size_t put_cie(const char *letters)
{
	size_t start;

	begin_entry(&start);
	put32(0);
	put("\1", 1);
	put(letters, strlen(letters) + 1);
	put("\1\x78\x10\1\x1b", 5);
	put("\x0c\7\10\x90\1", 5);
	end_entry(start);
	return start;
}

#define PUT_FDE(cie, offset, length, program) put_fde(cie, offset, length, program, sizeof(program) - 1)

static size_t put_fde(size_t cie, uintptr_t offset, size_t length, const char *program, size_t n)
{
	size_t start;

	begin_entry(&start);
	put32(used - cie);
	put32(CODE + offset - (FRAMES + used));
	put32(length);
	put("\0", 1);
	put(program, n);
	end_entry(start);
	return start;
}

static const struct mew_unwind_table *compile(void)
{
	const struct mew_ehframe in = { .header = { header, header_used, HEADER }, .frames = { section, used, FRAMES },
					.lo = CODE, .hi = CODE + CODE_BYTES };
	const struct mew_unwind_table *table;

	assert_int_equal(mew_ehframe_compile(&in, &arena, &table), 0);
	if (table != NULL)
		assert_true(fx_table_is_sound(table, in.lo, in.hi));
	return table;
}

static uint64_t rule_at(const struct mew_unwind_table *t, uintptr_t offset)
{
	assert_non_null(t);
	return mew_unwind_table_rule(t, CODE + offset);
}

static void assert_rule(uint64_t rule, enum mew_rule_kind kind, intptr_t cfa, intptr_t bp_slot)
{
	assert_int_equal(mew_rule_kind(rule), kind);
	assert_int_equal(mew_rule_cfa_offset(rule), cfa);
	assert_int_equal(mew_rule_bp(rule), bp_slot != 0 ? MEW_SAVE_CFA : MEW_SAVE_SAME);
	assert_int_equal(mew_rule_bp_offset(rule), bp_slot);
}

static void a_usual_function_has_its_four_rules(void **unused)
{
	const struct mew_unwind_table *t;

	(void)unused; /* push rbp; mov rsp, rbp; ... pop rbp; ret */
	PUT_FDE(put_cie("zR"), 0x100, 0x40, "\x41\x0e\x10\x86\2\x43\x0d\6\x5a\x0c\7\10\xc6");
	t = compile();
	assert_rule(rule_at(t, 0x100), MEW_RULE_SP, 8, 0);
	assert_rule(rule_at(t, 0x101), MEW_RULE_SP, 16, -16);
	assert_rule(rule_at(t, 0x103), MEW_RULE_SP, 16, -16);
	assert_rule(rule_at(t, 0x104), MEW_RULE_BP, 16, -16);
	assert_rule(rule_at(t, 0x11d), MEW_RULE_BP, 16, -16);
	assert_rule(rule_at(t, 0x11e), MEW_RULE_SP, 8, 0);
	assert_rule(rule_at(t, 0x13f), MEW_RULE_SP, 8, 0);
	assert_int_equal(rule_at(t, 0xff), MEW_RULE_NONE);
	assert_int_equal(rule_at(t, 0x140), MEW_RULE_NONE);
	assert_int_equal(t->fdes, 1);
	assert_int_equal(t->unsupported_rows, 0);
}

static void remembered_states_come_back(void **unused)
{
	const struct mew_unwind_table *t;

	(void)unused; /* an early return in the middle */
	PUT_FDE(put_cie("zR"), 0, 0x40, "\x41\x0e\x40\x83\3\x48\x0a\x0e\10\xc3\x41\x0b");
	t = compile();
	assert_rule(rule_at(t, 1), MEW_RULE_SP, 64, 0);
	assert_int_equal(mew_rule_bx(rule_at(t, 1)), MEW_SAVE_CFA);
	assert_int_equal(mew_rule_bx_offset(rule_at(t, 1)), -24);
	assert_rule(rule_at(t, 9), MEW_RULE_SP, 8, 0);
	assert_int_equal(mew_rule_bx(rule_at(t, 9)), MEW_SAVE_SAME);
	assert_int_equal(rule_at(t, 10), rule_at(t, 1));
}

static void realigned_frames_are_found_through_a_register_and_a_saved_word(void **unused)
{
	const struct mew_unwind_table *t;
	uint64_t rule;

	(void)unused; /* CFA r10; rbp at [rbp]; CFA [rbp - 48]; rbx at [rbp - 56] */
	PUT_FDE(put_cie("zR"), 0, 0x80,
		"\x45\x0c\x0a\0\x4b\x10\6\2\x76\0\x5f\x0f\3\x76\x50\6\x41\x10\3\2\x76\x48");
	t = compile();
	rule = rule_at(t, 5);
	assert_int_equal(mew_rule_kind(rule), MEW_RULE_LEAF);
	assert_int_equal(mew_rule_register(rule), 10);
	assert_int_equal(mew_rule_short_offset(rule), 0);
	rule = rule_at(t, 0x40);
	assert_int_equal(mew_rule_kind(rule), MEW_RULE_BP_LOAD);
	assert_int_equal(mew_rule_short_offset(rule), -48);
	assert_int_equal(mew_rule_load_add(rule), 0);
	assert_int_equal(mew_rule_bp(rule), MEW_SAVE_BP);
	assert_int_equal(mew_rule_bp_offset(rule), 0);
	assert_int_equal(mew_rule_bx(rule), MEW_SAVE_BP);
	assert_int_equal(mew_rule_bx_offset(rule), -56);
}

static void expressions_of_assembly_and_linkers_are_known(void **unused)
{
	const struct mew_unwind_table *t;
	size_t cie = put_cie("zR");
	uint64_t rule;

	(void)unused; /* [rsp + 152] + 8, as in cryptography; the linkage table's; and one that nobody writes */
	PUT_FDE(cie, 0, 0x10, "\x0f\6\x77\x98\1\6\x23\10");
	PUT_FDE(cie, 0x10, 0x10, "\x0f\x0b\x77\10\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22");
	PUT_FDE(cie, 0x20, 0x10, "\x0f\4\x77\10\x40\x22");
	t = compile();
	rule = rule_at(t, 0);
	assert_int_equal(mew_rule_kind(rule), MEW_RULE_SP_LOAD);
	assert_int_equal(mew_rule_short_offset(rule), 152);
	assert_int_equal(mew_rule_load_add(rule), 8);
	assert_rule(rule_at(t, 0x10), MEW_RULE_PLT, 11, 0);
	assert_int_equal(rule_at(t, 0x20), MEW_RULE_UNSUPPORTED);
	assert_int_equal(t->unsupported_rows, 1);
}

static void the_outermost_and_the_signal_frame_say_so(void **unused)
{
	const struct mew_unwind_table *t;

	(void)unused;
	PUT_FDE(put_cie("zR"), 0, 0x20, "\7\x10"); /* undefined rip */
	PUT_FDE(put_cie("zRS"), 0x20, 0x20, "");
	t = compile();
	assert_int_equal(rule_at(t, 0), MEW_RULE_END);
	assert_int_equal(rule_at(t, 0x20), MEW_RULE_SIGNAL);
	assert_int_equal(rule_at(t, 0x3f), MEW_RULE_SIGNAL);
}

static void a_jump_to_another_frame_names_its_registers(void **unused)
{
	static const char jump[] = "\x48\x0c\5\0\x09\7\x08\x09\6\x09\x09\x10\1\x83\0";
	const struct mew_unwind_table *t;
	size_t cie = put_cie("zR");
	uint64_t rule;

	(void)unused; /* the end of the C library's longjmp: CFA rdi, rsp in r8, rbp in r9, rip in rdx, rbx at the CFA */
	PUT_FDE(cie, 0, 0x20, jump);
	PUT_FDE(cie, 0x20, 0x20, "\x48\x0c\5\0\x09\7\x08\x09\x10\1"); /* where is rbp? */
	PUT_FDE(cie, 0x40, 0x20, jump);
	t = compile();
	assert_rule(rule_at(t, 7), MEW_RULE_SP, 8, 0);
	rule = rule_at(t, 8);
	assert_int_equal(mew_rule_kind(rule), MEW_RULE_JUMP);
	assert_int_equal(mew_rule_jump_register(rule, 0), 5);
	assert_int_equal(mew_rule_jump_register(rule, 1), 8);
	assert_int_equal(mew_rule_jump_register(rule, 2), 1);
	assert_int_equal(mew_rule_jump_register(rule, 3), 9);
	assert_int_equal(mew_rule_bx(rule), MEW_SAVE_CFA);
	assert_int_equal(mew_rule_bx_offset(rule), 0);
	assert_int_equal(rule_at(t, 0x28), MEW_RULE_UNSUPPORTED);
	assert_rule(rule_at(t, 0x40), MEW_RULE_SP, 8, 0); /* what one function says ends with it */
}

static void what_cannot_be_told_is_not_guessed(void **unused)
{
	const struct mew_unwind_table *t;
	size_t cie = put_cie("zR");

	(void)unused;
	PUT_FDE(cie, 0, 0x10, "\x10\6\2\x77\10");          /* rbp saved at [rsp + 8]: a place without a rule */
	PUT_FDE(cie, 0x10, 0x10, "\11\x10\2");             /* rip in a register */
	PUT_FDE(cie, 0x20, 0x10, "\x44\x3c\x48\x0e\x10");  /* an instruction that does not exist */
	PUT_FDE(cie, 0x30, 0x10, "\x44\x0b");              /* a state that was never remembered */
	PUT_FDE(cie, 0x40, 0x10, "\x0e\xff\xff\xff\xff\7"); /* a frame of 2 GiB */
	PUT_FDE(cie, 0x50, 0x10, "\x44\x0e");              /* ends in the middle of an instruction */
	t = compile();
	assert_int_equal(mew_rule_kind(rule_at(t, 0)), MEW_RULE_SP);
	assert_int_equal(mew_rule_bp(rule_at(t, 0)), MEW_SAVE_LOST);
	assert_int_equal(rule_at(t, 0x10), MEW_RULE_UNSUPPORTED);
	assert_rule(rule_at(t, 0x20), MEW_RULE_SP, 8, 0); /* before it, all is well */
	assert_int_equal(rule_at(t, 0x24), MEW_RULE_UNSUPPORTED);
	assert_int_equal(rule_at(t, 0x2f), MEW_RULE_UNSUPPORTED);
	assert_int_equal(rule_at(t, 0x34), MEW_RULE_UNSUPPORTED);
	assert_int_equal(rule_at(t, 0x40), MEW_RULE_UNSUPPORTED);
	assert_rule(rule_at(t, 0x53), MEW_RULE_SP, 8, 0);
	assert_int_equal(rule_at(t, 0x54), MEW_RULE_UNSUPPORTED);
}

static void functions_may_come_in_any_order_and_overlap(void **unused)
{
	const struct mew_unwind_table *t;
	size_t cie = put_cie("zR");

	(void)unused;
	for (uintptr_t i = 0; i < 90; i++) /* 37 and 90 share no factor: each once, jumbled */
		PUT_FDE(cie, i * 37 % 90 * 0x20, 0x20, "\x41\x0e\x20");
	PUT_FDE(cie, 0x2000, 0x100, "\x0e\x30");
	PUT_FDE(cie, 0x2080, 0x20, "\x0e\x40");
	PUT_FDE(cie, 0x2ff0, 0x100, "\x0e\x50"); /* reaches out of the code */
	PUT_FDE(cie, 0x9000, 0x100, "\x0e\x50"); /* lies outside: discarded by the linker */
	t = compile();
	for (uintptr_t i = 0; i < 90; i++) {
		assert_rule(rule_at(t, i * 0x20), MEW_RULE_SP, 8, 0);
		assert_rule(rule_at(t, i * 0x20 + 0x1f), MEW_RULE_SP, 32, 0);
	}
	assert_rule(rule_at(t, 0x207f), MEW_RULE_SP, 48, 0);
	assert_rule(rule_at(t, 0x2080), MEW_RULE_SP, 64, 0);
	assert_int_equal(rule_at(t, 0x20a0), MEW_RULE_NONE);
	assert_rule(rule_at(t, 0x2fff), MEW_RULE_SP, 80, 0);
	assert_int_equal(rule_at(t, 0x3000), MEW_RULE_NONE);
	assert_int_equal(t->fdes, 93);
}

/* Two CIEs that take turns, as functions with a handler and without do; each has its own rules to begin with. */
static void exception_handlers_do_not_matter(void **unused)
{
	const struct mew_unwind_table *t;
	size_t plain = put_cie("zR"), other, start;

	(void)unused;
	begin_entry(&other);
	put32(0);
	put("\1zPLR\0\1\x78\x10\7\3\0\0\0\0\x1b\x1b\x0c\7\x10\x90\1", 22); /* CFA rsp + 16 */
	end_entry(other);
	for (uintptr_t i = 0; i < 40; i++) {
		if (i % 2 == 0) {
			PUT_FDE(plain, i * 0x20, 0x20, "");
			continue;
		}
		begin_entry(&start);
		put32(used - other);
		put32(CODE + i * 0x20 - (FRAMES + used));
		put32(0x20);
		put("\4\0\0\0\0", 5); /* the handler's data */
		end_entry(start);
	}
	t = compile();
	for (uintptr_t i = 0; i < 40; i++)
		assert_rule(rule_at(t, i * 0x20), MEW_RULE_SP, i % 2 == 0 ? 8 : 16, 0);
	assert_int_equal(t->fdes, 40);
}

enum { MANY = 1200 };

/* Frames of 16 to MANY * 16 bytes, each for one byte of code: more rows than functions have, and as many rules. */
static void rows_and_rules_may_be_many(void **unused)
{
	const struct mew_unwind_table *few, *many;
	char program[5 * MANY];
	size_t n = 0;

	(void)unused;
	PUT_FDE(put_cie("zR"), 0x10, 0x20, "\x0e\x30");
	few = compile();
	for (size_t i = 1; i <= MANY; i++) {
		program[n++] = 0x0e; /* def_cfa_offset, of three bytes */
		program[n++] = (char)(i * 16 % 128 | 128);
		program[n++] = (char)(i * 16 / 128 % 128 | 128);
		program[n++] = (char)(i * 16 / 16384);
		program[n++] = 0x41; /* advance_loc 1 */
	}
	used = 0;
	(void)put_fde(put_cie("zR"), 0x100, MANY, program, n);
	many = compile();
	assert_non_null(many);
	for (size_t i = 1; i <= MANY; i++)
		assert_rule(rule_at(many, 0x100 + i - 1), MEW_RULE_SP, (intptr_t)i * 16, 0);
	assert_int_equal(rule_at(many, 0x100 + MANY), MEW_RULE_NONE);
	assert_int_equal(many->nrules, MANY + 2);
	assert_rule(rule_at(few, 0x10), MEW_RULE_SP, 48, 0); /* it stays as it is beside the other one */
	assert_int_equal(rule_at(few, 0x30), MEW_RULE_NONE);
}

static void put_header_word(size_t value)
{
	uint32_t word = (uint32_t)value;

	memcpy(header + header_used, &word, sizeof word);
	header_used += sizeof word;
}

static void the_search_table_lists_the_functions(void **unused)
{
	const struct mew_unwind_table *t;
	size_t cie = put_cie("zR"), first, second;

	(void)unused;
	first = PUT_FDE(cie, 0x100, 0x10, "\x0e\x20");
	put32(0); /* an end in the middle, which a walk would stop at */
	second = PUT_FDE(cie, 0x200, 0x10, "\x0e\x30");
	put_header_word(0x3b031b01); /* version 1; pc-relative, 4 bytes, header-relative */
	put_header_word(FRAMES - (HEADER + 4));
	put_header_word(2);
	put_header_word(CODE + 0x100 - HEADER);
	put_header_word(FRAMES + first - HEADER);
	put_header_word(CODE + 0x200 - HEADER);
	put_header_word(FRAMES + second - HEADER);
	t = compile();
	assert_rule(rule_at(t, 0x100), MEW_RULE_SP, 32, 0);
	assert_rule(rule_at(t, 0x200), MEW_RULE_SP, 48, 0);
	assert_int_equal(mew_ehframe_address(&(struct mew_span){ header, header_used, HEADER }), FRAMES);
	assert_int_equal(mew_ehframe_address(&(struct mew_span){ header, 7, HEADER }), 0);

	header_used = 12; /* says 2 functions and has none: the frames are walked instead */
	t = compile();
	assert_rule(rule_at(t, 0x100), MEW_RULE_SP, 32, 0);
	assert_int_equal(rule_at(t, 0x200), MEW_RULE_NONE);
}

static void nothing_usable_is_no_table(void **unused)
{
	(void)unused;
	assert_null(compile());
	put32(0);
	assert_null(compile());
	used = 0;
	put("\xff\xff\xff\xff\0\0\0\0\1", 9);
	assert_null(compile());
	used = 0;
	PUT_FDE(put_cie("eh"), 0, 0x10, "\x0e\x20"); /* an augmentation of gcc 2 */
	assert_null(compile());
}

static void no_memory_is_an_error(void **unused)
{
	const struct mew_ehframe in = { .frames = { section, sizeof section, FRAMES }, .lo = CODE,
					.hi = CODE + CODE_BYTES };
	const struct mew_unwind_table *table;
	struct mew_arena tiny;

	(void)unused;
	PUT_FDE(put_cie("zR"), 0, 0x10, "\x0e\x20");
	memset(section + used, 0, sizeof section - used);
	mew_arena_init(&tiny, 16);
	assert_int_equal(mew_ehframe_compile(&in, &tiny, &table), -1);
	assert_null(table);
	mew_arena_fini(&tiny);
}

/* --- the files of this process ------------------------------------------------------------------------------------ */

struct real {
	size_t modules, fdes, rows, unsupported;
};

static int compile_real(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct mew_image image = { info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };
	const struct mew_unwind_table *table;
	struct real *sum = data;
	struct mew_ehframe in;

	(void)size;
	if (!mew_image_frames(&image, info->dlpi_name[0] != '\0' ? info->dlpi_name : "/proc/self/exe", &in))
		return 0;
	if (mew_ehframe_compile(&in, &arena, &table) != 0 || table == NULL ||
	    !fx_table_is_sound(table, in.lo, in.hi))
		return 1;
	sum->modules++;
	sum->fdes += table->fdes;
	sum->rows += table->nrows;
	sum->unsupported += table->unsupported_rows;
	return 0;
}

static void every_loaded_file_compiles(void **unused)
{
	struct real sum = { 0, 0, 0, 0 };

	(void)unused;
	assert_int_equal(dl_iterate_phdr(compile_real, &sum), 0);
	assert_true(sum.modules >= 1);
	assert_true(sum.fdes > 1000);           /* the C library alone has more */
	assert_true(sum.unsupported < sum.rows / 500);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct mew_image image = { info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };

	(void)size;
	return info->dlpi_name[0] == '/' && mew_image_frames(&image, info->dlpi_name, data);
}

/* Bytes that end where the memory ends, so that one read too far is a crash. */
static struct mew_span at_the_edge(struct mew_span from, size_t limit)
{
	size_t n = from.size < limit ? from.size : limit, room = (n + 4095) & ~(size_t)4095;
	char *map = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map + room, 4096, PROT_NONE), 0);
	memcpy(map + room - n, from.bytes, n);
	return (struct mew_span){ (uint8_t *)map + room - n, n, from.address };
}

static void damaged_sections_make_a_sound_table_or_none(void **unused)
{
	const struct mew_unwind_table *table;
	struct mew_ehframe in;
	uint64_t random = 88172645463325252u;

	(void)unused;
	if (dl_iterate_phdr(find_library, &in) == 0) {
		printf("no shared library: a static program\n");
		skip();
	}
	in.header = at_the_edge(in.header, 12 + 8 * 100);
	in.frames = at_the_edge(in.frames, 12000);
	memcpy((uint8_t *)(uintptr_t)in.header.bytes + 8, &(uint32_t){ 100 }, 4); /* what is left of its functions */
	for (int turn = 0; turn < 3000; turn++) {
		uint8_t *bytes = (uint8_t *)(uintptr_t)(turn % 4 == 0 ? in.header.bytes : in.frames.bytes);
		size_t n = turn % 4 == 0 ? in.header.size : in.frames.size;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		bytes[random % n] = (uint8_t)(random >> 40); /* the damage adds up */
		mew_arena_fini(&arena);
		assert_int_equal(mew_ehframe_compile(&in, &arena, &table), 0);
		if (table != NULL)
			assert_true(fx_table_is_sound(table, in.lo, in.hi));
	}
}

#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_ARENA(a_usual_function_has_its_four_rules),
		WITH_ARENA(remembered_states_come_back),
		WITH_ARENA(realigned_frames_are_found_through_a_register_and_a_saved_word),
		WITH_ARENA(expressions_of_assembly_and_linkers_are_known),
		WITH_ARENA(the_outermost_and_the_signal_frame_say_so),
		WITH_ARENA(a_jump_to_another_frame_names_its_registers),
		WITH_ARENA(what_cannot_be_told_is_not_guessed),
		WITH_ARENA(functions_may_come_in_any_order_and_overlap),
		WITH_ARENA(rows_and_rules_may_be_many),
		WITH_ARENA(exception_handlers_do_not_matter),
		WITH_ARENA(the_search_table_lists_the_functions),
		WITH_ARENA(nothing_usable_is_no_table),
		WITH_ARENA(no_memory_is_an_error),
		WITH_ARENA(every_loaded_file_compiles),
		WITH_ARENA(damaged_sections_make_a_sound_table_or_none),
	};

	return cmocka_run_group_tests_name("ehframe", tests, NULL, NULL);
}
