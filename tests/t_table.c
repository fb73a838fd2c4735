/*
 * t_table.c - tables for people: they fit, they align, nothing is lost without a word.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fx_results.h"
#include "grid.h"
#include "textual.h"

extern const struct mew_report mew_report_table;

static char *table_of(const struct mew_model *m, struct mew_report_input in)
{
	in.model = m;
	return fx_report(&mew_report_table, &in, NULL);
}

static char *table(struct mew_report_input in)
{
	struct mew_model *m = fx_results();
	char *text = table_of(m, in);

	mew_model_free(m);
	return text;
}

/* A copy of the first line that contains `what`. */
static char *line_with(const char *text, const char *what)
{
	const char *at = strstr(text, what), *start = at;

	if (at == NULL)
		fail_msg("no line with '%s' in:\n%s", what, text);
	while (start > text && start[-1] != '\n')
		start--;
	return strndup(start, strcspn(start, "\n"));
}

static void fits(const char *text, size_t width)
{
	for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
		char *line = strndup(text, strcspn(text, "\n"));

		if (mew_text_width(line) > width)
			fail_msg("more than %zu columns: %s", width, line);
		free(line);
	}
}

static void golden(const char *name, struct mew_report_input in)
{
	char *text = table(in);

	fx_golden(name, text);
	free(text);
}

static void looks_as_agreed(void **state)
{
	(void)state;
	golden("table_80.txt", (struct mew_report_input){ .width = 80, .utf8 = 1 });
	golden("table_120.txt", (struct mew_report_input){ .width = 120, .utf8 = 1 });
	golden("table_ascii.txt", (struct mew_report_input){ .width = 80 });
	golden("table_verbose.txt", (struct mew_report_input){ .width = 100, .utf8 = 1, .verbose = 1 });
	golden("table_color.txt", (struct mew_report_input){ .width = 100, .utf8 = 1, .color = 1 });
}

static void fits_every_width(void **state)
{
	(void)state;
	for (int width = 60; width <= 200; width++) {
		char *text = table(
			(struct mew_report_input){ .width = width, .utf8 = width % 2, .verbose = width % 3 == 0 });

		fits(text, (size_t)width);
		free(text);
	}
}

static void color_changes_no_text(void **state)
{
	char *plain = table((struct mew_report_input){ .width = 90, .utf8 = 1 });
	char *color = table((struct mew_report_input){ .width = 90, .utf8 = 1, .color = 1 }), *to = color;

	(void)state;
	assert_null(strchr(plain, '\033'));
	assert_non_null(strchr(color, '\033'));
	for (const char *from = color; *from != '\0';)
		if (*from == '\033')
			from += strcspn(from, "m") + 1;
		else
			*to++ = *from++;
	*to = '\0';
	assert_string_equal(plain, color);
	free(plain);
	free(color);
}

static void one_unit_a_column(void **state)
{
	char *text = table((struct mew_report_input){ .width = 120, .utf8 = 1 });
	char *small = line_with(text, "zlib/inflate [1k]"), *large = line_with(text, "zlib/inflate [64k]");

	(void)state;
	assert_non_null(strstr(text, "\xc2\xb5s"));
	assert_non_null(strstr(small, " 3.200 "));
	assert_non_null(strstr(large, "204.8 "));
	assert_int_equal(strchr(small, '.') - small, strchr(large, '.') - large); /* on the point */
	free(text);
	free(small);
	free(large);
}

static void a_failed_case_says_why(void **state)
{
	char *text = table((struct mew_report_input){ .width = 120, .utf8 = 1 });
	char *line = line_with(text, "broken");

	(void)state;
	assert_non_null(strstr(line, "failed: the body left its loop early"));
	free(line);
	line = line_with(text, "skipped:");
	assert_non_null(strstr(line, "avx512"));
	assert_null(strstr(line, "failed"));
	assert_null(strstr(line, "not measured"));
	free(line);
	assert_non_null(strstr(text, "not measured: the hooks are not loaded"));
	assert_non_null(strstr(text, "| data.bin: no such file"));
	free(text);
}

static void a_long_reason_is_wrapped_not_cut(void **state)
{
	static const char reason[] =
		"first words of a reason that is far longer than any terminal is wide, which goes on and on "
		"so that several lines are needed until it comes to its last word: finis";
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "case", NULL);
	char *text;

	(void)state;
	mew_model_fail(m, c, MEW_KIND_CPU, MEW_E_BODY, reason);
	mew_model_seal(m);
	text = table_of(m, (struct mew_report_input){ .width = 60 });
	assert_non_null(strstr(text, "first words"));
	assert_non_null(strstr(text, "finis"));
	fits(text, 60);
	free(text);
	mew_model_free(m);
}

static void too_short_is_marked(void **state)
{
	char *text = table((struct mew_report_input){ .width = 80, .utf8 = 1 });
	char *line = line_with(text, "\nempty");

	(void)state;
	free(line);
	line = line_with(text, "empty ");
	assert_non_null(strchr(line, '!'));
	free(line);
	line = line_with(text, "zlib/inflate [1k]");
	assert_null(strchr(line, '!'));
	free(line);
	assert_non_null(strstr(text, "!: under 20 times"));
	free(text);
}

static void narrow_tables_keep_the_headline(void **state)
{
	char *wide = table((struct mew_report_input){ .width = 160, .utf8 = 1 });
	char *narrow = table((struct mew_report_input){ .width = 60, .utf8 = 1 });
	char *head = line_with(wide, "median"), *short_head = line_with(narrow, "median");

	(void)state;
	assert_non_null(strstr(head, "p99"));
	assert_non_null(strstr(head, "samples"));
	assert_null(strstr(short_head, "samples"));
	assert_non_null(strstr(short_head, "\xc2\xb1"));
	free(head);
	free(short_head);
	free(wide);
	free(narrow);
}

static void long_names_keep_both_ends(void **state)
{
	char *text = table((struct mew_report_input){ .width = 70, .utf8 = 1 });
	char *line = line_with(text, "parse/document"), *dots = strstr(line, "\xe2\x80\xa6");

	(void)state;
	assert_non_null(dots);
	assert_non_null(strstr(dots, "middle"));
	free(line);
	free(text);
	text = table((struct mew_report_input){ .width = 70 });
	line = line_with(text, "parse/document");
	assert_non_null(strstr(line, "..."));
	free(line);
	free(text);
}

static void optional_columns_need_a_value(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "case", NULL);
	char *text;

	(void)state;
	mew_model_row(m, c, MEW_KIND_TIME);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, 5);
	mew_model_seal(m);
	text = table_of(m, (struct mew_report_input){ .width = 120 });
	assert_null(strstr(text, "throughput"));
	assert_non_null(strstr(text, "+/-"));
	assert_non_null(strstr(text, "5.000"));
	assert_non_null(strstr(text, "  -\n")); /* no interval */
	free(text);
	mew_model_free(m);
}

static void add_memory(struct mew_model *m, const char *key, double slope, double low, uint64_t mapped)
{
	struct mew_case *c = mew_model_case(m, key, NULL);

	assert_non_null(mew_model_row(m, c, MEW_KIND_MEMORY));
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES, 100);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_TOTAL_ALLOCATIONS, 0);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION, slope);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW, low);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, slope + 1);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MAPPED_PEAK_BYTES, mapped);
}

/* A slope whose interval holds 0 is not called a leak, and a column of zeros says nothing. */
static void a_leak_is_shown_when_it_is_sure(void **state)
{
	struct mew_model *m = mew_model_new();
	char *text, *line;

	(void)state;
	add_memory(m, "steady", 7.5, -2, 0);
	text = table_of(m, (struct mew_report_input){ .width = 120 });
	assert_null(strstr(text, "leak/iter"));
	assert_null(strstr(text, "mapped"));
	free(text);
	add_memory(m, "leaks", 24.5, 23, 4096);
	text = table_of(m, (struct mew_report_input){ .width = 120 });
	assert_non_null(strstr(text, "leak/iter"));
	assert_non_null(strstr(text, "mapped"));
	line = line_with(text, "leaks");
	assert_non_null(strstr(line, "24.5"));
	free(line);
	line = line_with(text, "steady");
	assert_null(strstr(line, "7.5"));
	free(line);
	free(text);
	mew_model_free(m);
}

static void jemalloc_has_its_columns_where_there_is_room(void **state)
{
	static const char *const titles[] = { "je allocated", "je active", "je unused", "je resident", "je retained" };
	struct mew_model *m = mew_model_new();
	char *text;

	(void)state;
	add_memory(m, "case", 0, 0, 0);
	text = table_of(m, (struct mew_report_input){ .width = 200 });
	assert_null(strstr(text, "je "));
	free(text);
	for (int bit = MEW_FIG_JEMALLOC_ALLOCATED_CLOSE; bit <= MEW_FIG_JEMALLOC_RETAINED_CLOSE; bit += 2)
		mew_model_u64(mew_model_find(m, "case"), MEW_KIND_MEMORY, bit, (uint64_t)(1000 + bit));
	mew_model_f64(mew_model_find(m, "case"), MEW_KIND_MEMORY, MEW_FIG_JEMALLOC_FRAGMENTATION_CLOSE, 0.125);
	text = table_of(m, (struct mew_report_input){ .width = 200 });
	for (size_t i = 0; i < MEW_COUNTOF(titles); i++)
		assert_non_null(strstr(text, titles[i]));
	assert_non_null(strstr(text, "12.5"));
	free(text);
	text = table_of(m, (struct mew_report_input){ .width = 60 });
	assert_null(strstr(text, "je retained"));
	fits(text, 60);
	free(text);
	mew_model_free(m);
}

static void no_allocation_is_explained_when_asked(void **state)
{
	struct mew_model *m = mew_model_new();
	char *text;

	(void)state;
	add_memory(m, "case", 0, 0, 0);
	text = table_of(m, (struct mew_report_input){ .width = 200 });
	assert_null(strstr(text, "mew_keep"));
	free(text);
	assert_int_equal(mew_model_add_fact(m, "optimized", "yes"), 0);
	text = table_of(m, (struct mew_report_input){ .width = 200, .verbose = 1 });
	assert_non_null(strstr(text, "mew_keep(pointer) keeps them"));
	free(text);
	assert_int_equal(mew_model_add_fact(m, "optimized", "no"), 0);
	text = table_of(m, (struct mew_report_input){ .width = 200, .verbose = 1 });
	assert_null(strstr(text, "mew_keep"));
	free(text);
	mew_model_u64(mew_model_find(m, "case"), MEW_KIND_MEMORY, MEW_FIG_TOTAL_ALLOCATIONS, 1);
	assert_int_equal(mew_model_add_fact(m, "optimized", "yes"), 0);
	text = table_of(m, (struct mew_report_input){ .width = 200, .verbose = 1 });
	assert_null(strstr(text, "mew_keep"));
	free(text);
	mew_model_free(m);
}

static void lists_are_shown_when_asked(void **state)
{
	char *text = table((struct mew_report_input){ .width = 100, .utf8 = 1, .verbose = 1 }), *line;

	(void)state;
	line = line_with(text, "  64-127");
	assert_non_null(strstr(line, " 1,200"));
	free(line);
	assert_non_null(strstr(text, " 716,000 "));
	assert_non_null(strstr(text, "      apr "));
	free(text);
	text = table((struct mew_report_input){ .width = 100, .utf8 = 1 });
	assert_null(strstr(text, "716,000"));
	line = line_with(text, "inflateInit2_"); /* the three largest are shown unasked */
	assert_non_null(strstr(line, "699.2"));
	free(line);
	free(text);
}

static void kinds_are_chosen(void **state)
{
	char *text = table((struct mew_report_input){ .kinds = 1u << MEW_KIND_MEMORY });

	(void)state;
	assert_non_null(strstr(text, "peak live"));
	assert_null(strstr(text, "median"));
	assert_null(strstr(text, "counters of the bodies"));
	free(text);
}

static void nothing_is_said_to_be_nothing(void **state)
{
	struct mew_model *m = mew_model_new();
	char *text;

	(void)state;
	mew_model_seal(m);
	text = table_of(m, (struct mew_report_input){ 0 });
	assert_string_equal(text, "nothing was measured\n");
	free(text);
	mew_model_free(m);
}

static void terminals_are_safe_from_names(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "evil\033[2J\nname\xff", NULL);
	char *text;

	(void)state;
	mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_BODY, "it printed \033]0;title\a");
	assert_int_equal(mew_model_add_fact(m, "cpu_model", "\033[31mred"), 0);
	mew_model_seal(m);
	text = table_of(m, (struct mew_report_input){ .utf8 = 1 });
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\a'));
	assert_non_null(strstr(text, "evil?[2J name?"));
	free(text);
	mew_model_free(m);
}

static void equal_keys_name_their_program(void **state)
{
	struct mew_model *m = mew_model_new();
	char *text;

	(void)state;
	mew_model_fail(m, mew_model_case(m, "sort", "./old/bench_a"), MEW_KIND_TIME, MEW_E_LOOP, "one");
	mew_model_fail(m, mew_model_case(m, "sort", "./new/bench_b"), MEW_KIND_TIME, MEW_E_LOOP, "two");
	mew_model_seal(m);
	text = table_of(m, (struct mew_report_input){ 0 });
	assert_non_null(strstr(text, "sort (bench_a)"));
	assert_non_null(strstr(text, "sort (bench_b)"));
	free(text);
	mew_model_free(m);
}

/* --- the parts -----------------------------------------------------------------------------------------------------
 */

static void number_is(double value, unsigned digits, bool exact, const char *want)
{
	char text[MEW_NUMBER_BYTES];

	mew_text_number(text, value, digits, exact);
	assert_string_equal(text, want);
}

static void numbers_keep_their_digits(void **state)
{
	(void)state;
	number_is(0, 4, false, "0");
	number_is(-0.0, 4, false, "0");
	number_is(3.2, 4, false, "3.200");
	number_is(9.9996, 4, false, "10.00");
	number_is(999.96, 4, false, "1000");
	number_is(204.84, 4, false, "204.8");
	number_is(123456, 4, false, "123456");
	number_is(0.0123456, 4, false, "0.0123");
	number_is(12, 4, true, "12");
	number_is(12.5, 4, true, "12.50");
	number_is(-12, 4, true, "-12");
	number_is(1e17, 4, true, "1.000e17");
	number_is(9.9999e17, 4, false, "1.000e18");
	number_is(5e-9, 3, false, "5.00e-9");
	number_is(1.0 / 0.0, 4, false, "-");
}

static void unit_is(enum mew_scale scale, double a, double b, double c, const char *want)
{
	double values[] = { a, b, c };

	assert_string_equal(mew_unit_pick(scale, values, 3)->ascii, want);
}

static void units_follow_the_median(void **state)
{
	(void)state;
	unit_is(MEW_SCALE_TIME, 3, 4000, 5e9, "us");
	unit_is(MEW_SCALE_TIME, 1e9, 2e9, 3, "s");
	unit_is(MEW_SCALE_TIME, 0, 0, 0, "ns");
	unit_is(MEW_SCALE_BYTES, 0, 0, 3e6, "MiB"); /* zeros do not count */
	unit_is(MEW_SCALE_BYTES, 1032, 9999, 8000, "B");
	unit_is(MEW_SCALE_BYTES, 20480, 20480, 1, "KiB");
	unit_is(MEW_SCALE_NONE, 1e6, 1e6, 1e6, "");
	unit_is(MEW_SCALE_RATE, 5e6, 5e6, 5e6, "M/s");
	unit_is(MEW_SCALE_BYTE_RATE, 3.2e8, 3.2e8, 3.2e8, "MiB/s");
}

static void cut_is(const char *text, size_t columns, bool utf8, const char *want)
{
	char *cut = mew_text_cut(text, columns, utf8);

	assert_string_equal(cut, want);
	assert_true(mew_text_width(cut) <= columns);
	free(cut);
}

static void cuts_take_the_middle(void **state)
{
	(void)state;
	cut_is("abcdefgh", 8, true, "abcdefgh");
	cut_is("abcdefghi", 8, true, "abcd\xe2\x80\xa6ghi");
	cut_is("abcdefghi", 8, false, "abc...hi");
	cut_is("abcdefghi", 2, false, "ab");
	cut_is("abcdefghi", 0, true, "");
	cut_is("e\xcc\x81"
	       "bcdefghi\xcc\x88",
	       3, true, "e\xcc\x81\xe2\x80\xa6i\xcc\x88"); /* marks stay with their letters */
	cut_is("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5, true,
	       "\xe6\x97\xa5\xe2\x80\xa6\xe8\xaa\x9e"); /* two columns each */
	cut_is("abcdefgh\xcc\x81i", 3, true, "a\xe2\x80\xa6i");
	assert_int_equal(mew_text_width("\xe6\x97\xa5\xe6\x9c\xac"), 4);
	assert_int_equal(mew_text_width("gr\xc3\xb6\xc3\x9f" "e"), 5);
	assert_int_equal(mew_text_width("bad\xff"), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_agreed),
		cmocka_unit_test(fits_every_width),
		cmocka_unit_test(color_changes_no_text),
		cmocka_unit_test(one_unit_a_column),
		cmocka_unit_test(a_failed_case_says_why),
		cmocka_unit_test(a_long_reason_is_wrapped_not_cut),
		cmocka_unit_test(too_short_is_marked),
		cmocka_unit_test(narrow_tables_keep_the_headline),
		cmocka_unit_test(long_names_keep_both_ends),
		cmocka_unit_test(optional_columns_need_a_value),
		cmocka_unit_test(a_leak_is_shown_when_it_is_sure),
		cmocka_unit_test(jemalloc_has_its_columns_where_there_is_room),
		cmocka_unit_test(no_allocation_is_explained_when_asked),
		cmocka_unit_test(lists_are_shown_when_asked),
		cmocka_unit_test(kinds_are_chosen),
		cmocka_unit_test(nothing_is_said_to_be_nothing),
		cmocka_unit_test(terminals_are_safe_from_names),
		cmocka_unit_test(equal_keys_name_their_program),
		cmocka_unit_test(numbers_keep_their_digits),
		cmocka_unit_test(units_follow_the_median),
		cmocka_unit_test(cuts_take_the_middle),
	};

	return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
