/*
 * t_table_allocators.c - the mark of the fastest allocator: it stands where every process says so, and nowhere else.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fx_results.h"
#include "summarise.h"

extern const struct mew_report mew_report_table;

#define SAMPLES 20u
#define BASE_NS 1000000u

static struct mew_case *add_case(struct mew_model *m, const char *key, const char *allocator)
{
	struct mew_case *c = mew_model_case_under(m, key, NULL, allocator);

	assert_non_null(c);
	c->threads = 1;
	return c;
}

/*
 * A case under an allocator, `percent` slower than the plain time of each process. Processes differ by far more than that,
 * as those of a busy machine do, and alike for all allocators. In process `odd` it is as much faster instead.
 */
static void add(struct mew_model *m, const char *key, const char *allocator, unsigned processes, int percent, int odd)
{
	struct mew_case *c = add_case(m, key, allocator);

	for (unsigned p = 0; p < processes; p++) {
		uint64_t plain = (uint64_t)BASE_NS * (10 + 7 * p % 10) / 10, ns[SAMPLES];
		int here = (int)p == odd ? -percent : percent;
		struct mew_run run = {
			.phase = MEW_PHASE_MEASUREMENT_VALUE, .process = p, .loops = 10, .nsamples = SAMPLES, .real_ns = ns
		};

		for (unsigned i = 0; i < SAMPLES; i++)
			ns[i] = plain + (uint64_t)((int64_t)plain * here / 100);
		assert_int_equal(mew_model_add_run(m, c, &run), 0);
	}
	mew_summarise_time(m, c, false);
}

/* The allocators whose row of the case ends in the mark, one after the other. */
static void assert_fastest(struct mew_model *m, const char *key, const char *expected)
{
	struct mew_report_input in = { .model = m, .width = 160 };
	char found[80] = "", *text, *rest, *line;

	mew_model_seal(m);
	text = rest = fx_report(&mew_report_table, &in, NULL);
	while ((line = strsep(&rest, "\n")) != NULL) {
		char name[40], allocator[40];
		size_t n = strlen(line);

		while (n > 0 && line[n - 1] == ' ')
			line[--n] = '\0';
		if (n < 8 || strcmp(line + n - 8, " fastest") != 0 || sscanf(line, "%39s on %39s", name, allocator) != 2)
			continue;
		if (strcmp(name, key) == 0)
			(void)snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", found[0] != '\0' ? " " : "", allocator);
	}
	free(text);
	mew_model_free(m);
	assert_string_equal(found, expected);
}

static void two(unsigned processes, int odd, const char *expected)
{
	struct mew_model *m = mew_model_new();

	add(m, "work", "slow", processes, 2, odd);
	add(m, "work", "quick", processes, 0, -1);
	assert_fastest(m, "work", expected);
}

static void six_processes_of_two_show_it(void **state)
{
	(void)state;
	two(6, -1, "quick");
	two(12, -1, "quick");
}

static void five_do_not(void **state)
{
	(void)state;
	two(5, -1, "");
	two(1, -1, ""); /* however many samples it has */
}

static void one_process_that_disagrees_ends_it(void **state)
{
	(void)state;
	two(6, 3, "");
	two(8, 3, "");
	two(12, 3, "quick"); /* of more, one may */
}

static void equal_ones_have_no_mark(void **state)
{
	struct mew_model *m = mew_model_new();

	(void)state;
	add(m, "work", "one", 12, 0, -1);
	add(m, "work", "other", 12, 0, -1);
	assert_fastest(m, "work", "");
}

static void three(unsigned processes, int second, const char *expected)
{
	struct mew_model *m = mew_model_new();

	add(m, "work", "quick", processes, 0, -1);
	add(m, "work", "slow", processes, 2, -1);
	add(m, "work", "second", processes, second, -1);
	assert_fastest(m, "work", expected);
}

static void more_allocators_need_more_processes(void **state)
{
	(void)state;
	three(6, 5, "");
	three(7, 5, "quick");
}

static void it_must_beat_each_other_one(void **state)
{
	(void)state;
	three(12, 0, "");
}

static void cases_are_apart(void **state)
{
	struct mew_model *m = mew_model_new();

	(void)state;
	add(m, "work", "one", 8, 0, -1);
	add(m, "work", "other", 8, 2, -1);
	add(m, "play", "one", 8, 2, -1);
	add(m, "play", "other", 8, 0, -1);
	assert_fastest(m, "play", "other");
}

static void one_that_failed_is_no_rival(void **state)
{
	struct mew_model *m = mew_model_new();

	(void)state;
	add(m, "work", "quick", 7, 0, -1);
	add(m, "work", "slow", 7, 2, -1);
	mew_model_fail(m, add_case(m, "work", "broken"), MEW_KIND_TIME, MEW_E_BODY, "it crashed");
	assert_fastest(m, "work", "quick");

	m = mew_model_new();
	add(m, "work", "alone", 12, 0, -1);
	mew_model_fail(m, add_case(m, "work", "broken"), MEW_KIND_TIME, MEW_E_BODY, "it crashed");
	assert_fastest(m, "work", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(six_processes_of_two_show_it),
		cmocka_unit_test(five_do_not),
		cmocka_unit_test(one_process_that_disagrees_ends_it),
		cmocka_unit_test(equal_ones_have_no_mark),
		cmocka_unit_test(more_allocators_need_more_processes),
		cmocka_unit_test(it_must_beat_each_other_one),
		cmocka_unit_test(cases_are_apart),
		cmocka_unit_test(one_that_failed_is_no_rival),
	};

	return cmocka_run_group_tests_name("table_allocators", tests, NULL, NULL);
}
