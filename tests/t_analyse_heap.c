/*
 * t_analyse_heap.c - which function an allocation is blamed on, and the order and length of the list.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analyse.h"

#define MOST_NAMES 4

struct fixture {
	struct mew_model *model;
	struct mew_case *row;
	uint32_t module;
	uint64_t next_offset;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ .model = mew_model_new() };
	assert_non_null(f->model);
	f->row = mew_model_case(f->model, "case", NULL);
	assert_non_null(mew_model_row(f->model, f->row, MEW_KIND_MEMORY));
	f->module = mew_model_module(f->model, "/opt/bin/prog", "", 4096, false);
}

static void analyse(struct fixture *f)
{
	struct mew_error error;

	assert_int_equal(mew_analyse(f->model, &error), MEW_OK);
}

/* A location with the functions that meet there, innermost first. */
static uint32_t place(struct fixture *f, const char *const *names)
{
	uint32_t location = mew_model_location(f->model, f->module, f->next_offset++);
	struct mew_line lines[MOST_NAMES];
	size_t n = 0;

	for (; names[n] != NULL; n++)
		lines[n] = (struct mew_line){ mew_model_function(f->model, names[n], "/src/a.cc", 10, f->module), 7 };
	assert_int_equal(mew_model_set_lines(f->model, location, lines, n), 0);
	return location;
}
#define PLACE(f, ...) place((f), (const char *const[]){ __VA_ARGS__, NULL })

static void allocate(struct fixture *f, const uint32_t *frames, size_t n, struct mew_heap_stack s)
{
	s.stack = mew_model_stack(f->model, frames, n);
	assert_int_equal(mew_model_add_heap_stack(f->row, &s), 0);
}
#define ALLOCATE(f, ...)                                                                                               \
	allocate((f), (const uint32_t[]){ __VA_ARGS__ }, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), \
		 (struct mew_heap_stack){ .peak_bytes = 1, .allocations = 1 })

static void assert_row(const struct mew_memory_case *row, size_t i, const char *label, uint64_t peak,
		       uint64_t cumulative, uint64_t allocations, uint64_t net)
{
	assert_in_range(i, 0, row->nby_function - 1);
	assert_string_equal(row->by_function[i].function, label);
	assert_int_equal(row->by_function[i].peak_bytes, peak);
	assert_int_equal(row->by_function[i].cumulative_bytes, cumulative);
	assert_int_equal(row->by_function[i].allocations, allocations);
	assert_int_equal(row->by_function[i].net_bytes, net);
}

static void functions_are_added_up_and_the_largest_peak_comes_first(void **state)
{
	struct fixture f;
	uint32_t outer, parse, again, grow;

	(void)state;
	begin(&f);
	outer = PLACE(&f, "main");
	parse = PLACE(&f, "parse");
	again = PLACE(&f, "parse");
	grow = PLACE(&f, "grow");
	allocate(&f, (const uint32_t[]){ grow, outer }, 2, (struct mew_heap_stack){ 0, 900, 1000, 3, 7 });
	allocate(&f, (const uint32_t[]){ parse, outer }, 2, (struct mew_heap_stack){ 0, 600, 650, 2, 0 });
	allocate(&f, (const uint32_t[]){ again, outer }, 2, (struct mew_heap_stack){ 0, 400, 400, 1, 400 });
	allocate(&f, (const uint32_t[]){ outer }, 1, (struct mew_heap_stack){ 0, 0, 99, 9, 0 });
	analyse(&f);
	assert_int_equal(f.row->memory.nby_function, 3);
	assert_row(&f.row->memory, 0, "parse (a.cc:10)", 1000, 1050, 3, 400);
	assert_row(&f.row->memory, 1, "grow (a.cc:10)", 900, 1000, 3, 7);
	assert_row(&f.row->memory, 2, "main (a.cc:10)", 0, 99, 9, 0);
	analyse(&f); /* a second time changes nothing */
	assert_int_equal(f.row->memory.nby_function, 3);
	assert_row(&f.row->memory, 0, "parse (a.cc:10)", 1000, 1050, 3, 400);
	mew_model_free(f.model);
}

/* The C++ library's own frames are passed over, inlined or not; user code is not, whatever it returns. */
static void cxx_glue_is_passed_over(void **state)
{
	static const char *const glue[] = {
		"operator new(unsigned long)",
		"operator new[](unsigned long, std::nothrow_t const&)",
		"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::reserve(unsigned long)",
		"__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
		"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>(int*, int const&)",
		"std::pair<std::_Rb_tree_iterator<int>, bool> std::_Rb_tree<int, int>::_M_emplace_unique<int>(int&&)",
		"std::basic_ostream<char>& std::operator<< <char>(std::basic_ostream<char>&, char)",
	};
	static const char *const own[] = {
		"std::vector<int, std::allocator<int> > make<int>(int)",
		"pool::operator new(unsigned long)",
		"stdx::vector::grow()",
		"std_list_append",
		"(anonymous namespace)::grow(std::vector<int>&)",
		"int (anonymous namespace)::twice<std::string>(std::string)",
		"unsigned long operator_newest(int)",
		"std::string&& Buffer::operator()(int)",
		"malloc_wrapper",
	};
	struct fixture f;
	uint32_t outer;

	(void)state;
	begin(&f);
	outer = PLACE(&f, "main");
	for (size_t i = 0; i < sizeof glue / sizeof *glue; i++) {
		ALLOCATE(&f, PLACE(&f, glue[i]), outer);
		ALLOCATE(&f, PLACE(&f, "operator new(unsigned long)"), PLACE(&f, "std::allocate", glue[i], "main"), outer);
	}
	analyse(&f);
	if (f.row->memory.nby_function != 1)
		fail_msg("%s is not passed over", f.row->memory.by_function[1].function);
	assert_row(&f.row->memory, 0, "main (a.cc:10)", 14, 0, 14, 0);
	mew_model_free(f.model);
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		char label[160];

		begin(&f);
		outer = PLACE(&f, "main");
		ALLOCATE(&f, PLACE(&f, "operator new(unsigned long)"), PLACE(&f, "std::get", own[i], "caller"), outer);
		analyse(&f);
		(void)snprintf(label, sizeof label, "%s (a.cc:10)", own[i]);
		assert_row(&f.row->memory, 0, label, 1, 0, 1, 0);
		mew_model_free(f.model);
	}
}

static void a_frame_is_always_left(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	ALLOCATE(&f, PLACE(&f, "operator new(unsigned long)"), PLACE(&f, "std::thread::start", "std::invoke"));
	ALLOCATE(&f, mew_model_location(f.model, f.module, 0x900), PLACE(&f, "main"));
	assert_int_equal(mew_model_add_heap_stack(f.row, &(struct mew_heap_stack){ .stack = MEW_NO_STACK }), 0);
	analyse(&f);
	assert_int_equal(f.row->memory.nby_function, 3);
	assert_row(&f.row->memory, 0, "std::invoke (a.cc:10)", 1, 0, 1, 0);
	assert_row(&f.row->memory, 1, "unknown (prog)", 1, 0, 1, 0);
	assert_row(&f.row->memory, 2, "unknown", 0, 0, 0, 0);
	mew_model_free(f.model);
}

static void the_list_ends_at_32(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (unsigned i = 0; i < 100; i++) {
		char name[16];
		uint32_t at;

		(void)snprintf(name, sizeof name, "f%02u", i);
		at = PLACE(&f, name);
		allocate(&f, &at, 1, (struct mew_heap_stack){ 0, i / 50, i / 10, i % 10 / 2, 0 });
	}
	analyse(&f);
	assert_int_equal(f.row->memory.nby_function, 32);
	assert_row(&f.row->memory, 0, "f98 (a.cc:10)", 1, 9, 4, 0); /* peak, then bytes, then count, then name */
	assert_row(&f.row->memory, 1, "f99 (a.cc:10)", 1, 9, 4, 0);
	assert_row(&f.row->memory, 2, "f96 (a.cc:10)", 1, 9, 3, 0);
	assert_row(&f.row->memory, 31, "f69 (a.cc:10)", 1, 6, 4, 0);
	mew_model_free(f.model);
}

static void without_stacks_it_is_absent_and_says_why(void **state)
{
	struct fixture f;
	const struct mew_memory_case *row;

	(void)state;
	begin(&f);
	row = &f.row->memory;
	mew_model_u64(f.row, MEW_KIND_MEMORY, MEW_FIG_TOTAL_ALLOCATIONS, 5);
	mew_model_text(f.model, f.row, MEW_KIND_MEMORY, MEW_FIG_MODE, "count");
	analyse(&f);
	assert_non_null(mew_memory_why(row, MEW_FIG_BY_FUNCTION));
	assert_non_null(strstr(mew_memory_why(row, MEW_FIG_BY_FUNCTION), "--html or .flamegraph"));
	mew_model_text(f.model, f.row, MEW_KIND_MEMORY, MEW_FIG_MODE, "capture");
	mew_model_u64(f.row, MEW_KIND_MEMORY, MEW_FIG_TOTAL_ALLOCATIONS, 0);
	analyse(&f);
	assert_null(mew_memory_why(row, MEW_FIG_BY_FUNCTION)); /* nobody allocated: a list without rows */
	assert_int_equal(row->nby_function, 0);
	mew_model_fail(f.model, f.row, MEW_KIND_MEMORY, MEW_E_LOOP, "the loop was left early");
	analyse(&f);
	assert_string_equal(mew_memory_why(row, MEW_FIG_BY_FUNCTION), "the loop was left early");
	mew_model_free(f.model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_added_up_and_the_largest_peak_comes_first),
		cmocka_unit_test(cxx_glue_is_passed_over),
		cmocka_unit_test(a_frame_is_always_left),
		cmocka_unit_test(the_list_ends_at_32),
		cmocka_unit_test(without_stacks_it_is_absent_and_says_why),
	};

	return cmocka_run_group_tests_name("analyse_heap", tests, NULL, NULL);
}
