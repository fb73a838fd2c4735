/*
 * t_csv.c - the CSV report: a spreadsheet's view of every figure, read back here by the rules of RFC 4180.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "fx_comma.h"
#include "fx_results.h"

extern const struct mew_report mew_report_csv;

static char *csv_of(const struct mew_model *m)
{
	return fx_report(&mew_report_csv, &(struct mew_report_input){ .model = m }, NULL);
}

static char *sample(void)
{
	struct mew_model *m = fx_results();
	char *text = csv_of(m);

	mew_model_free(m);
	return text;
}

/* --- a reader ------------------------------------------------------------------------------------------------------
 */

/* The next field, unquoted, into `out`; returns what follows it, the separator included. */
static const char *next_field(const char *at, char *out, size_t size)
{
	bool quoted = *at == '"';
	size_t used = 0;

	at += quoted;
	while (*at != '\0' && (quoted || (*at != ',' && *at != '\n'))) {
		if (*at == '"') {
			assert_true(quoted); /* a bare quote is not RFC 4180 */
			if (at[1] != '"')
				break;
			at++;
		}
		assert_true(used + 1 < size);
		out[used++] = *at++;
	}
	out[used] = '\0';
	if (quoted) {
		assert_true(*at == '"');
		at++;
	}
	assert_true(*at == ',' || *at == '\n');
	return at;
}

static const char *skip_row(const char *at, size_t *fields)
{
	char field[4096];

	for (*fields = 1; *(at = next_field(at, field, sizeof field)) == ','; at++)
		++*fields;
	return at + 1;
}

/* The field of a case (by key) under a column's name, into a buffer that the next call overwrites. */
static const char *field_of(const char *text, const char *key, const char *column)
{
	static char field[4096];
	const char *at = text;
	size_t wanted = 0, fields;

	for (;;) {
		at = next_field(at, field, sizeof field);
		if (strcmp(field, column) == 0)
			break;
		if (*at++ == '\n')
			fail_msg("no column %s", column);
		wanted++;
	}
	for (at = skip_row(text, &fields); *at != '\0'; at = skip_row(at, &fields)) {
		const char *here = next_field(at, field, sizeof field);

		if (strcmp(field, key) != 0)
			continue;
		for (size_t k = 0; k < wanted; k++)
			here = next_field(here + 1, field, sizeof field);
		return field;
	}
	fail_msg("no case %s", key);
	return NULL;
}

/* --- tests ---------------------------------------------------------------------------------------------------------
 */

static void looks_as_agreed(void **state)
{
	char *text = sample();

	(void)state;
	fx_golden("results.csv", text);
	free(text);
}

static void every_row_has_every_column(void **state)
{
	char *text = sample();
	size_t columns, fields, rows = 0;
	const char *at = skip_row(text, &columns);

	(void)state;
	for (; *at != '\0'; rows++) {
		at = skip_row(at, &fields);
		assert_int_equal(fields, columns);
	}
	assert_int_equal(rows, 6);
	assert_null(strchr(text, '\r'));
	free(text);
}

static void figures_stand_under_their_names(void **state)
{
	static const char first[] = "zlib/inflate/case:0";
	char *text = sample();

	(void)state;
	assert_string_equal(field_of(text, first, "label"), "1k");
	assert_string_equal(field_of(text, first, "program"), "./bench/codec_bench");
	assert_string_equal(field_of(text, first, "threads"), "1");
	assert_string_equal(field_of(text, first, "time_status"), "MEW_OK");
	assert_string_equal(field_of(text, first, "time_median_ns"), "3200");
	assert_string_equal(field_of(text, first, "time_cpu_ns"), "3193.6");
	assert_string_equal(field_of(text, first, "memory_peak_bytes"), "40312");
	assert_string_equal(field_of(text, first, "memory_allocations_per_iteration"), "5");
	assert_string_equal(field_of(text, first, "cpu_top_function"), "inflate_fast (inffast.c:50)");
	assert_string_equal(field_of(text, first, "cpu_wall_time"), "0.125");
	assert_string_equal(field_of(text, first, "counter_blocks"), "-12");
	free(text);
}

static void absent_is_empty_and_zero_is_zero(void **state)
{
	char *text = sample();

	(void)state;
	assert_string_equal(field_of(text, "zlib/inflate/case:0", "time_migrations"), "");
	assert_string_equal(field_of(text, "zlib/inflate/case:1", "counter_blocks"), "");
	assert_string_equal(field_of(text, "empty", "memory_peak_bytes"), "0");
	assert_string_equal(field_of(text, "empty", "cpu_status"), "");
	assert_string_equal(field_of(text, "empty", "cpu_wall_time"), "");
	assert_string_equal(field_of(text, "broken", "time_status"), "MEW_E_LOOP");
	assert_string_equal(field_of(text, "broken", "time_median_ns"), "");
	assert_string_equal(field_of(text, "broken", "time_reason"),
			    "the body left its loop early; every way out of MEW_LOOP must be its end");
	free(text);
}

static void separators_in_texts_are_quoted(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "a,b \"c\"\nd", NULL);
	char *text;

	(void)state;
	mew_model_fail(m, c, MEW_KIND_CPU, MEW_E_BODY, " blanks at both ends ");
	assert_int_equal(mew_model_add_counter(m, c, "n,\"x\"", 0.5), 0);
	c = mew_model_case(m, "bad \xff", "");
	mew_model_seal(m);
	text = csv_of(m);
	assert_string_equal(field_of(text, "a,b \"c\"\nd", "cpu_reason"), " blanks at both ends ");
	assert_string_equal(field_of(text, "a,b \"c\"\nd", "counter_n,\"x\""), "0.5");
	assert_string_equal(field_of(text, "bad \xef\xbf\xbd", "threads"), "1");
	assert_non_null(strstr(text, "\"a,b \"\"c\"\"\nd\""));
	free(text);
	mew_model_free(m);
}

/* Set in the environment of the tests or not: a decimal comma must never appear. */
static void no_locale_can_change_a_number(void **state)
{
	char *plain = sample(), *text;

	(void)state;
	if (!fx_set_comma()) {
		free(plain);
		skip();
	}
	text = sample();
	(void)setlocale(LC_ALL, "C");
	assert_string_equal(text, plain);
	free(text);
	free(plain);
}

static void no_cases_leave_the_head(void **state)
{
	struct mew_model *m = mew_model_new();
	size_t columns;
	char *text;

	(void)state;
	mew_model_seal(m);
	text = csv_of(m);
	assert_string_equal(skip_row(text, &columns), "");
	assert_true(columns > 50);
	free(text);
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_agreed),
		cmocka_unit_test(every_row_has_every_column),
		cmocka_unit_test(figures_stand_under_their_names),
		cmocka_unit_test(absent_is_empty_and_zero_is_zero),
		cmocka_unit_test(separators_in_texts_are_quoted),
		cmocka_unit_test(no_locale_can_change_a_number),
		cmocka_unit_test(no_cases_leave_the_head),
	};

	return cmocka_run_group_tests_name("csv", tests, NULL, NULL);
}
