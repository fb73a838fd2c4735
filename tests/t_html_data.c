/*
 * t_html_data.c - the data of the HTML report: what its header, lists and call trees say is what the model has.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fx_html.h"
#include "fx_html_read.h"

static void header_has_rows_reasons_and_facts(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0);
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, NULL);
	json_t *header = fx_html_header(page), *cases = json_object_get(header, "cases"), *row, *figures;
	const char *text;

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(header, "schema")), 2);
	assert_int_equal(json_array_size(cases), m->ncases);
	assert_int_equal(json_array_size(json_object_get(header, "facts")), m->nfacts);
	assert_string_equal(json_string_value(json_array_get(json_object_get(header, "grade"), 0)), "B");
	row = json_object_get(json_object_get(json_array_get(cases, 0), "rows"), "time");
	figures = json_object_get(json_object_get(header, "figures"), "time");
	assert_int_equal(json_array_size(json_object_get(row, "values")), json_array_size(figures));
	assert_string_equal(json_string_value(json_array_get(json_array_get(figures, 0), 0)), "median_ns");
	assert_true(json_real_value(json_array_get(json_object_get(row, "values"), 0)) == 3184.2);
	assert_true(json_is_null(json_array_get(json_object_get(row, "values"), MEW_FIG_CPU_NS)));
	text = json_string_value(json_object_get(json_object_get(row, "absent"), "10"));
	assert_string_equal(text, "the case pauses; ask for it with .pause_cpu");
	row = json_object_get(json_object_get(json_array_get(cases, 7), "rows"), "memory");
	text = json_string_value(json_object_get(row, "status"));
	assert_string_equal(text, "MEW_E_LOOP");
	assert_null(json_object_get(json_object_get(json_array_get(cases, 7), "rows"), "cpu"));
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* A list has its columns in the catalogue, and its rows, as lists of values, among the values of a row. */
static void lists_have_columns_and_rows(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0);
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, NULL);
	json_t *header = fx_html_header(page), *row, *figure, *line;

	(void)state;
	figure = json_array_get(json_object_get(json_object_get(header, "figures"), "memory"), MEW_FIG_BY_FUNCTION);
	assert_string_equal(json_string_value(json_array_get(figure, 1)), "list");
	assert_int_equal(json_array_size(json_array_get(figure, 3)), 5);
	line = json_array_get(json_array_get(figure, 3), 1);
	assert_string_equal(json_string_value(json_array_get(line, 0)), "peak_bytes");
	row = json_object_get(json_object_get(json_array_get(json_object_get(header, "cases"), 0), "rows"), "memory");
	row = json_array_get(json_object_get(row, "values"), MEW_FIG_BY_FUNCTION);
	assert_int_equal(json_array_size(row), 2);
	line = json_array_get(row, 0);
	assert_string_equal(json_string_value(json_array_get(line, 0)), "inflateInit2_ (inflate.c:203)");
	assert_int_equal(json_integer_value(json_array_get(line, 2)), 71600000);
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* What a tree adds up to is what was pushed, for every metric and case. */
static void trees_add_up(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0);
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, NULL);
	json_t *header = fx_html_header(page);

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct mew_case *c = &m->cases[i];
		uint64_t sums[6] = { 0 }, want[6] = { 0 };
		size_t n;
		struct fx_frame *frames = fx_html_tree(page, header, i, "cpu", &n);

		for (size_t k = 0; k < n; k++) {
			sums[0] += frames[k].self[0];
			sums[1] += frames[k].self[1];
		}
		free(frames);
		frames = fx_html_tree(page, header, i, "memory", &n);
		for (size_t k = 0; k < n; k++)
			for (size_t metric = 0; metric < 4; metric++)
				sums[2 + metric] += frames[k].self[metric];
		free(frames);
		for (size_t k = 0; k < c->nsamples; k++)
			want[0] += c->samples[k].weight_ns;
		want[1] = c->nsamples;
		for (size_t k = 0; k < c->nheap_stacks; k++) {
			want[2] += c->heap_stacks[k].peak_bytes;
			want[3] += c->heap_stacks[k].cumulative_bytes;
			want[4] += c->heap_stacks[k].allocations;
			want[5] += c->heap_stacks[k].net_bytes;
		}
		assert_memory_equal(sums, want, sizeof sums);
	}
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* A page of two results has the tables of both, and the lines of the base behind those of the head. */
static void base_stands_behind_the_head(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0), *old = fx_html_model("before", 0);
	const struct mew_report_input in = { .model = m, .base = old };
	char *page;
	json_t *header, *base, *first, *was;

	(void)state;
	page = fx_html_page(&in, NULL);
	header = fx_html_header(page);
	base = json_object_get(header, "base");
	assert_int_equal(json_array_size(json_object_get(base, "cases")), old->ncases);
	first = json_object_get(json_array_get(json_object_get(header, "cases"), 0), "data");
	was = json_object_get(json_array_get(json_object_get(base, "cases"), 0), "data");
	assert_int_equal(json_integer_value(json_object_get(first, "time")), 1);
	assert_true(json_integer_value(json_object_get(was, "time")) > 6 * 3 - 1);
	assert_true(fx_html_has(json_object_get(json_object_get(base, "functions"), "name"), "arena_grow_by_page"));
	assert_false(fx_html_has(json_object_get(json_object_get(header, "functions"), "name"), "arena_grow_by_page"));
	assert_null(json_object_get(header, "sources"));
	json_decref(header);
	free(page);
	mew_model_free(m);
	mew_model_free(old);
}

/* main calls work (with `quick` inlined there) from two lines; a stripped library (two places) and a lost stack beside them. */
static struct mew_model *small_model(void)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "small", NULL);
	uint32_t own = mew_model_module(m, "/bin/small", "aa", 4096, false),
		 blob = mew_model_module(m, "/lib/blob.so", "", 64, false);
	uint32_t fmain = mew_model_function(m, "main", "small.c", 10, own),
		 fwork = mew_model_function(m, "work", "small.c", 30, own);
	uint32_t fquick = mew_model_function(m, "quick", "small.c", 20, own);
	uint32_t main1 = mew_model_location(m, own, 1), main2 = mew_model_location(m, own, 2),
		 work = mew_model_location(m, own, 3);
	uint32_t bare = mew_model_location(m, blob, 0x1234), bare2 = mew_model_location(m, blob, 0x2000);
	const struct mew_line l1 = { fmain, 12 }, l2 = { fmain, 9 }, lw[] = { { fquick, 21 }, { fwork, 33 } };
	const uint32_t s1[] = { work, main1 }, s2[] = { work, main2 }, s3[] = { bare, main1 };
	const uint32_t s4[] = { bare2, main1 };
	const uint32_t stacks[] = { mew_model_stack(m, s1, 2), mew_model_stack(m, s2, 2), mew_model_stack(m, s3, 2),
				    mew_model_stack(m, s4, 2), MEW_NO_STACK };

	assert_int_equal(mew_model_set_lines(m, main1, &l1, 1) | mew_model_set_lines(m, main2, &l2, 1), 0);
	assert_int_equal(mew_model_set_lines(m, work, lw, 2), 0);
	for (uint32_t i = 0; i < MEW_COUNTOF(stacks); i++) {
		const struct mew_cpu_sample s = { stacks[i], 0, i, 100 + i, false };
		const struct mew_heap_stack h = { stacks[i], 1, 2, 3, 4 };

		assert_int_equal(mew_model_add_sample(c, &s) | mew_model_add_heap_stack(c, &h), 0);
	}
	mew_model_seal(m);
	return m;
}

static void assert_frame(const struct fx_frame *f, int64_t level, const char *name, bool is_inlined, int64_t line,
			 uint64_t self)
{
	assert_string_equal(f->name, name);
	assert_int_equal(f->level, level);
	assert_int_equal(f->inlined, is_inlined);
	assert_int_equal(f->line, line);
	assert_int_equal(f->self[0], self);
}

static void samples_merge_by_function(void **state)
{
	struct mew_model *m = small_model();
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, NULL);
	json_t *header = fx_html_header(page), *why = json_object_get(json_object_get(header, "functions"), "why");
	size_t n;
	struct fx_frame *f = fx_html_tree(page, header, 0, "cpu", &n);

	(void)state;
	assert_int_equal(n, 5);
	assert_frame(&f[0], 1, "[no stack]", false, 0, 104);
	assert_frame(&f[1], 1, "main", false, 0, 0);                      /* called from two lines */
	assert_frame(&f[2], 2, "unknown (blob.so)", false, 0, 102 + 103); /* two places */
	assert_frame(&f[3], 2, "work", false, 33, 0);
	assert_frame(&f[4], 3, "quick", true, 21, 201);
	assert_int_equal(json_object_size(why), 2);
	free(f);
	json_decref(header);
	free(page);
	mew_model_free(m);
}

static void allocations_are_told_apart_by_line(void **state)
{
	struct mew_model *m = small_model();
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, NULL);
	json_t *header = fx_html_header(page);
	size_t n;
	struct fx_frame *f = fx_html_tree(page, header, 0, "memory", &n);

	(void)state;
	assert_int_equal(n, 8);
	assert_frame(&f[1], 1, "main", false, 9, 0);
	assert_frame(&f[3], 3, "quick", true, 21, 1);
	assert_frame(&f[4], 1, "main", false, 12, 0);
	assert_int_equal(f[3].self[3], 4);
	free(f);
	json_decref(header);
	free(page);
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_has_rows_reasons_and_facts),
		cmocka_unit_test(lists_have_columns_and_rows),
		cmocka_unit_test(trees_add_up),
		cmocka_unit_test(base_stands_behind_the_head),
		cmocka_unit_test(samples_merge_by_function),
		cmocka_unit_test(allocations_are_told_apart_by_line),
	};

	return cmocka_run_group_tests_name("html data", tests, NULL, NULL);
}
