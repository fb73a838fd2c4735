/*
 * t_model.c - the catalogue of figures, rows and their absences, lists, interning, and what a sealed model refuses.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fx_model.h"
#include "modules.h"
#include "sink.h"

/* --- catalogue -------------------------------------------------------------------------------------------------- */

/* The columns of a list cover its rows in the same way. */
static void list_covers(const struct mew_list_type *list, size_t count_offset)
{
	size_t at = 0;

	assert_int_equal(list->count_offset, count_offset);
	for (size_t i = 0; i < list->ncolumns; i++, at += 8) {
		assert_int_equal(list->columns[i].bit, i);
		assert_int_equal(list->columns[i].offset, at);
		assert_true(list->columns[i].name[0] != '\0' && list->columns[i].help[0] != '\0');
		assert_non_null(strstr(" By 1 s text ", list->columns[i].unit));
		assert_true(list->columns[i].type != MEW_VALUE_LIST);
	}
	assert_int_equal(at, list->row_bytes);
}

/*
 * Every member after the head is a figure, in order: each begins where the one before ends, the last ends the row. The
 * rows of a list are counted by the member behind it.
 */
static void catalogue_covers(enum mew_kind kind, size_t row_bytes)
{
	size_t n, at = sizeof(struct mew_row_head);
	const struct mew_figure *f = mew_figures(kind, &n);

	assert_non_null(f);
	assert_true(n <= 64);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(f[i].bit, i);
		assert_int_equal(f[i].offset, at);
		at += 8;
		assert_true(f[i].name[0] != '\0' && f[i].help[0] != '\0');
		assert_non_null(strstr(" ns s By 1 1/s By/s text list ", f[i].unit));
		assert_int_equal(f[i].type == MEW_VALUE_LIST, f[i].list != NULL);
		assert_int_equal(f[i].type == MEW_VALUE_LIST, strcmp(f[i].unit, "list") == 0);
		if (f[i].list != NULL) {
			list_covers(f[i].list, at);
			at += 8;
		}
		assert_int_equal(f[i].type == MEW_VALUE_TEXT, strcmp(f[i].unit, "text") == 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(f[i].name, f[k].name);
	}
	assert_int_equal(at, row_bytes);
}

static void test_catalogue(void **state)
{
	size_t n = 1;

	(void)state;
	catalogue_covers(T, sizeof(struct mew_result));
	catalogue_covers(M, sizeof(struct mew_memory_case));
	catalogue_covers(C, sizeof(struct mew_cpu_case));
	assert_null(mew_figures(MEW_KINDS, &n));
	assert_int_equal(n, 0);
	assert_string_equal(mew_kind_name(T), "time");
	assert_string_equal(mew_kind_name(M), "memory");
	assert_string_equal(mew_kind_name(C), "cpu");
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static size_t absences(const struct mew_row_head *row)
{
	size_t n = 0;

	for (const struct mew_absent *a = row->absent_; a != NULL; a = a->next)
		n++;
	return n;
}

static void test_figures_and_absences(void **state)
{
	struct mew_model *m = new_model();
	struct mew_case *c = new_case(m, "a");
	struct mew_row_head *row = mew_model_row(m, c, M);
	char why[] = "the hooks are not loaded";

	(void)state;
	assert_string_equal(row->key, "a");
	assert_int_equal(c->kinds, 1u << M);
	assert_non_null(mew_row_why(row, MEW_FIG_PEAK_BYTES)); /* absent until set, never zero without a reason */
	mew_model_u64(c, M, MEW_FIG_PEAK_BYTES, 0);
	assert_true(mew_row_has(row, MEW_FIG_PEAK_BYTES));
	assert_null(mew_row_why(row, MEW_FIG_PEAK_BYTES));
	mew_model_absent(m, c, M, MEW_FIG_PEAK_BYTES, why);
	mew_model_absent(m, c, M, MEW_FIG_FREES, "first");
	mew_model_absent(m, c, M, MEW_FIG_FREES, "second");
	memset(why, 'x', sizeof why - 1);
	assert_false(mew_row_has(row, MEW_FIG_PEAK_BYTES));
	assert_string_equal(mew_row_why(row, MEW_FIG_PEAK_BYTES), "the hooks are not loaded");
	assert_string_equal(mew_row_why(row, MEW_FIG_FREES), "second");
	assert_int_equal(absences(row), 2);
	mew_model_u64(c, M, MEW_FIG_PEAK_BYTES, 4096);
	assert_null(mew_row_why(row, MEW_FIG_PEAK_BYTES));
	assert_int_equal(c->memory.peak_bytes, 4096);
	assert_int_equal(absences(row), 1);
	mew_model_u64(c, M, MEW_FIG_FREES, 3);
	assert_int_equal(absences(row), 0);
	assert_int_equal(row->present, 1u << MEW_FIG_PEAK_BYTES | 1u << MEW_FIG_FREES);
	mew_model_free(m);
}

static void test_figure_types(void **state)
{
	struct mew_model *m = new_model();
	struct mew_case *c = new_case(m, "a");
	char name[] = "inflate (inflate.c:12)";

	(void)state;
	mew_model_f64(c, C, MEW_FIG_WALL_TIME, 0.25); /* before the row is there: kept */
	(void)mew_model_row(m, c, C);
	assert_true(c->cpu.wall_time == 0.25 && mew_row_has(mew_case_row(c, C), MEW_FIG_WALL_TIME));
	mew_model_f64(c, C, MEW_FIG_WALL_TIME, (double)NAN);
	assert_non_null(mew_row_why(mew_case_row(c, C), MEW_FIG_WALL_TIME));
	mew_model_f64(c, C, MEW_FIG_INTERVAL, (double)INFINITY);
	assert_false(mew_row_has(mew_case_row(c, C), MEW_FIG_INTERVAL));
	mew_model_u64(c, C, MEW_FIG_INTERVAL, 2);
	assert_true(c->cpu.interval == 2);
	mew_model_f64(c, C, MEW_FIG_SAMPLE_COUNT, 1e6);
	assert_int_equal(c->cpu.sample_count, 1000000);
	mew_model_f64(c, C, MEW_FIG_SAMPLE_COUNT, -1);
	assert_false(mew_row_has(mew_case_row(c, C), MEW_FIG_SAMPLE_COUNT));
	mew_model_text(m, c, C, MEW_FIG_TOP_FUNCTION, name);
	name[0] = 'x';
	assert_string_equal(c->cpu.top_function, "inflate (inflate.c:12)");
	mew_model_text(m, c, C, MEW_FIG_TOP_FUNCTION, NULL);
	assert_false(mew_row_has(mew_case_row(c, C), MEW_FIG_TOP_FUNCTION));
	mew_model_text(m, c, C, MEW_FIG_CPU_TIME, "text");
	mew_model_u64(c, C, MEW_FIG_TOP_FUNCTION, 7);
	assert_false(mew_row_has(mew_case_row(c, C), MEW_FIG_CPU_TIME));
	assert_false(mew_row_has(mew_case_row(c, C), MEW_FIG_TOP_FUNCTION));
	mew_model_u64(c, C, 63, 7); /* no such figure: nothing happens */
	mew_model_u64(c, C, -1, 7);
	mew_model_absent(m, c, C, 64, "none");
	assert_int_equal(c->cpu.present, 1u << MEW_FIG_INTERVAL);
	assert_non_null(mew_row_why(mew_case_row(c, C), 64));
	mew_model_free(m);
}

static void test_failed_row(void **state)
{
	struct mew_model *m = new_model();
	struct mew_case *c = new_case(m, "a");
	struct mew_heap_stack s = { .peak_bytes = 1 };
	struct mew_row_head *row;

	(void)state;
	row = mew_model_row(m, c, M);
	row->profiler = "hooks";
	mew_model_u64(c, M, MEW_FIG_PEAK_BYTES, 1);
	assert_int_equal(mew_model_add_heap_stack(c, &s), 0);
	mew_model_fail(m, c, M, MEW_E_LOOP, "the body left its loop early");
	assert_int_equal(row->status, MEW_E_LOOP);
	assert_int_equal(row->present, 0);
	assert_string_equal(row->profiler, "hooks");
	assert_string_equal(row->key, "a");
	assert_int_equal(c->nheap_stacks, 0); /* no graph of a case without figures */
	for (int bit = 0; bit <= MEW_FIG_MEMORY_LOST; bit++) {
		assert_false(mew_row_has(row, bit));
		assert_string_equal(mew_row_why(row, bit), "the body left its loop early");
	}
	assert_int_equal(c->time.status, MEW_OK); /* the other rows are untouched */
	row = mew_model_row(m, c, M);
	assert_int_equal(row->status, MEW_OK);
	assert_null(row->reason);
	mew_model_fail(m, c, C, MEW_E_BODY, NULL);
	assert_int_equal(c->kinds, 1u << M | 1u << C);
	assert_non_null(c->cpu.reason);
	mew_model_free(m);
}

/* --- cases and lists -------------------------------------------------------------------------------------------- */

static void test_cases(void **state)
{
	struct mew_model *m = new_model();
	char key[32];

	(void)state;
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%d", i);
		new_case(m, key)->threads = (unsigned)i;
	}
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_int_equal(new_case(m, key)->threads, i);
		assert_ptr_equal(mew_model_find(m, key), &m->cases[i]);
	}
	assert_int_equal(m->ncases, 100);
	assert_null(mew_model_find(m, "none"));
	assert_non_null(mew_model_case(m, "k0", "./a"));
	assert_ptr_not_equal(mew_model_case(m, "k0", "./a"), mew_model_case(m, "k0", "./b"));
	assert_ptr_not_equal(mew_model_case(m, "k0", "./a"), mew_model_case(m, "k0", NULL));
	assert_int_equal(m->ncases, 102);
	assert_null(mew_model_string(m, NULL));
	mew_model_free(m);
	mew_model_free(NULL);
}

static void test_lists(void **state)
{
	struct mew_model *m = new_model();
	struct mew_case *c = new_case(m, "a");
	uint64_t real[3] = { 10, 20, 30 }, cpu[3] = { 11, 21, 31 };
	struct mew_run run = { .phase = 4, .loops = 5, .nsamples = 3, .real_ns = real, .cpu_ns = cpu };

	(void)state;
	assert_int_equal(mew_model_add_run(m, c, &run), 0);
	run.cpu_ns = NULL;
	run.repetition = 1;
	assert_int_equal(mew_model_add_run(m, c, &run), 0);
	memset(real, 0, sizeof real);
	assert_int_equal(c->nruns, 2);
	assert_int_equal(c->runs[0].real_ns[2], 30);
	assert_int_equal(c->runs[0].cpu_ns[0], 11);
	assert_null(c->runs[1].cpu_ns);
	assert_int_equal(c->runs[1].repetition, 1);
	for (int i = 0; i < 50; i++) {
		struct mew_cpu_sample s = { .stack = (uint32_t)i, .weight_ns = 100 };

		assert_int_equal(mew_model_add_sample(c, &s), 0);
		assert_int_equal(mew_model_add_counter(m, c, "n", i), 0);
		assert_int_equal(mew_model_add_phase_data(m, c, i, "k", "v"), 0);
	}
	for (int i = 0; i < 50; i++) {
		assert_int_equal(c->samples[i].stack, i);
		assert_true(c->counters[i].value == i);
		assert_int_equal(c->phase_data[i].phase, i);
	}
	mew_model_free(m);
}

static void test_facts(void **state)
{
	struct mew_model *m = new_model();

	(void)state;
	assert_null(mew_model_fact(m, "cpu"));
	assert_int_equal(mew_model_add_fact(m, "cpu", "one"), 0);
	assert_int_equal(mew_model_add_fact(m, "libc", "glibc"), 0);
	assert_int_equal(mew_model_add_fact(m, "cpu", "two"), 0);
	assert_int_equal(m->nfacts, 2);
	assert_string_equal(mew_model_fact(m, "cpu"), "two");
	assert_string_equal(m->facts[0].name, "cpu");
	mew_model_free(m);
}

/* --- interning -------------------------------------------------------------------------------------------------- */

static void test_intern_modules_and_functions(void **state)
{
	struct mew_model *m = new_model();
	uint32_t a = mew_model_module(m, "/lib/a.so", "ab", 100, false);

	(void)state;
	assert_int_equal(a, 0);
	assert_int_equal(mew_model_module(m, "/lib/a.so", "ab", 100, false), a);
	assert_int_equal(mew_model_module(m, "/lib/a.so", "ac", 100, false), 1);
	assert_int_equal(mew_model_module(m, "/lib/a.soa", "b", 100, false), 2);
	assert_int_equal(mew_model_module(m, "/lib/a.so", NULL, 100, false), 3);
	assert_string_equal(m->modules[3].build_id, "");
	assert_false(m->modules[a].gone);
	assert_int_equal(mew_model_module(m, "/lib/a.so", "ab", 100, true), a);
	assert_int_equal(mew_model_module(m, "/lib/a.so", "ab", 100, false), a);
	assert_true(m->modules[a].gone);
	assert_int_equal(mew_model_function(m, "f", "x.c", 3, a), 0);
	assert_int_equal(mew_model_function(m, "f", "x.c", 3, a), 0);
	assert_int_equal(mew_model_function(m, "f", "x.c", 4, a), 1); /* statics of one name in one file: by line */
	assert_int_equal(mew_model_function(m, "f", "y.c", 3, a), 2);
	assert_int_equal(mew_model_function(m, "f", "x.c", 3, 1), 3);
	assert_int_equal(mew_model_function(m, "fx.c", NULL, 3, a), 4);
	assert_string_equal(m->functions[4].file, "");
	assert_int_equal(m->nfunctions, 5);
	mew_model_free(m);
}

static void test_intern_many(void **state)
{
	enum { N = 300000 }; /* some of them meet in their 32-bit hash */
	struct mew_model *m = new_model();

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		for (uint32_t i = 0; i < N; i++) {
			uint32_t frames[3] = { i, i / 7, i / 100 };

			assert_int_equal(mew_model_location(m, i % 3, (uint64_t)i << 20), i);
			assert_int_equal(mew_model_stack(m, frames, 3), i);
		}
	}
	assert_int_equal(m->nlocations, N);
	assert_int_equal(m->nstacks, N);
	assert_int_equal(m->nframes, 3 * N);
	assert_int_equal(m->frames[m->stacks[777].first], 777);
	mew_model_free(m);
}

static void test_intern_stacks(void **state)
{
	struct mew_model *m = new_model();
	uint32_t frames[4] = { 1, 2, 3, 4 };

	(void)state;
	assert_int_equal(mew_model_stack(m, frames, 4), 0);
	assert_int_equal(mew_model_stack(m, frames, 3), 1); /* a part is not the whole */
	assert_int_equal(mew_model_stack(m, frames + 1, 3), 2);
	assert_int_equal(mew_model_stack(m, frames, 0), 3);
	assert_int_equal(mew_model_stack(m, NULL, 0), 3);
	assert_int_equal(mew_model_stack(m, frames, 4), 0);
	assert_int_equal(m->stacks[2].depth, 3);
	assert_memory_equal(&m->frames[m->stacks[2].first], frames + 1, 3 * sizeof *frames);
	mew_model_free(m);
}

static void test_lines(void **state)
{
	struct mew_line two[] = { { 5, 50 }, { 6, 60 } }, one[] = { { 7, 70 } };
	struct mew_model *m = new_model();
	uint32_t a = mew_model_location(m, 0, 1), b = mew_model_location(m, 0, 2), c = mew_model_location(m, 0, 3);

	(void)state;
	m->locations[a].why = "no symbols";
	assert_int_equal(mew_model_set_lines(m, a, two, 2), 0);
	assert_null(m->locations[a].why);
	assert_int_equal(mew_model_set_lines(m, b, one, 1), 0);
	assert_int_equal(m->lines[m->locations[a].first_line + 1].line, 60);
	assert_int_equal(mew_model_set_lines(m, a, one, 1), 0);
	assert_int_equal(m->locations[a].nlines, 1);
	assert_int_equal(m->lines[m->locations[a].first_line].function, 7);
	assert_int_equal(mew_model_set_lines(m, b, two, 2), 0);
	assert_int_equal(mew_model_set_lines(m, c, one, 1), 0);
	assert_int_equal(m->lines[m->locations[b].first_line].function, 5);
	assert_int_equal(m->lines[m->locations[b].first_line + 1].function, 6);
	assert_int_equal(m->lines[m->locations[a].first_line].function, 7);
	assert_int_equal(mew_model_set_lines(m, b, NULL, 0), 0);
	assert_int_equal(m->locations[b].nlines, 0);
	assert_int_equal(mew_model_set_lines(m, 99, one, 1), -1);
	mew_model_free(m);
}

static void test_sealed(void **state)
{
	struct mew_model *m = new_model(), *other = new_model();
	struct mew_case *c = new_case(m, "a");
	uint32_t frame = 0;

	(void)state;
	(void)mew_model_row(m, c, T);
	mew_model_f64(c, T, MEW_FIG_MEDIAN_NS, 5);
	mew_model_seal(m);
	assert_true(m->sealed);
	assert_null(mew_model_string(m, "x"));
	assert_null(mew_model_case(m, "b", NULL));
	assert_null(mew_model_row(m, c, C));
	mew_model_fail(m, c, T, MEW_E_IO, "late");
	assert_int_equal(c->time.status, MEW_OK);
	assert_int_equal(mew_model_module(m, "p", "", 1, false), UINT32_MAX);
	assert_int_equal(mew_model_location(m, 0, 1), UINT32_MAX);
	assert_int_equal(mew_model_function(m, "f", "", 1, 0), UINT32_MAX);
	assert_int_equal(mew_model_stack(m, &frame, 1), UINT32_MAX);
	assert_int_equal(mew_model_merge(m, other), -1);
	assert_ptr_equal(mew_model_find(m, "a"), c);
	assert_int_equal(mew_model_merge(other, m), 0); /* reading is free */
	assert_true(mew_model_find(other, "a")->time.median_ns == 5);
	mew_model_free(m);
	mew_model_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_catalogue),
		cmocka_unit_test(test_figures_and_absences),
		cmocka_unit_test(test_figure_types),
		cmocka_unit_test(test_failed_row),
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_intern_modules_and_functions),
		cmocka_unit_test(test_intern_many),
		cmocka_unit_test(test_intern_stacks),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_sealed),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
