/*
 * t_model.c - the catalogue, rows and absences, interning, merging of models whose numbers clash, and the sink.
 * Linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc the last test lets each allocation fail in turn.
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

#include "model.h"
#include "modules.h"
#include "sink.h"

#define T MEW_KIND_TIME
#define M MEW_KIND_MEMORY
#define C MEW_KIND_CPU

static struct mew_model *new_model(void)
{
	struct mew_model *m = mew_model_new();

	assert_non_null(m);
	return m;
}

static struct mew_case *new_case(struct mew_model *m, const char *key)
{
	struct mew_case *c = mew_model_case(m, key, NULL);

	assert_non_null(c);
	return c;
}

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

/* --- merging ---------------------------------------------------------------------------------------------------- */

/* A stack in words, so that models with other numbers can be compared. */
static void stack_text(const struct mew_model *m, uint32_t stack, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	if (stack == MEW_NO_STACK) {
		snprintf(text, size, "none");
		return;
	}
	assert_true(stack < m->nstacks);
	for (uint32_t i = 0; i < m->stacks[stack].depth; i++) {
		const struct mew_location *l = &m->locations[m->frames[m->stacks[stack].first + i]];
		const char *module = l->module == MEW_NO_MODULE ? "?" : m->modules[l->module].path;

		used += (size_t)snprintf(text + used, size - used, "%s+%llx", module, (unsigned long long)l->offset);
		for (uint32_t k = 0; k < l->nlines; k++) {
			const struct mew_line *line = &m->lines[l->first_line + k];
			const struct mew_function *f = &m->functions[line->function];

			used += (size_t)snprintf(text + used, size - used, "=%s:%s:%u@%s", f->name, f->file, line->line,
						 f->module == MEW_NO_MODULE ? "?" : m->modules[f->module].path);
		}
		used += (size_t)snprintf(text + used, size - used, "%s;", l->why != NULL ? l->why : "");
	}
}

static void assert_stack(const struct mew_model *m, uint32_t stack, const char *want)
{
	char text[400];

	stack_text(m, stack, text, sizeof text);
	assert_string_equal(text, want);
}

/* One location resolved to a function of `module`, seen through one line or, with an inlined one, two. */
static uint32_t named(struct mew_model *m, uint32_t module, uint64_t offset, const char *name, const char *inlined)
{
	uint32_t location = mew_model_location(m, module, offset);
	struct mew_line lines[2];
	size_t n = 0;

	if (inlined != NULL)
		lines[n++] = (struct mew_line){ mew_model_function(m, inlined, "in.h", 2, module), 3 };
	lines[n++] = (struct mew_line){ mew_model_function(m, name, "a.c", 10, module), 11 };
	assert_int_equal(mew_model_set_lines(m, location, lines, n), 0);
	return location;
}

static void add_sample(struct mew_case *c, uint32_t stack, uint64_t weight)
{
	struct mew_cpu_sample s = { .stack = stack, .weight_ns = weight };

	assert_int_equal(mew_model_add_sample(c, &s), 0);
}

static void add_heap(struct mew_case *c, uint32_t stack, uint64_t peak)
{
	struct mew_heap_stack s = { .stack = stack, .peak_bytes = peak };

	assert_int_equal(mew_model_add_heap_stack(c, &s), 0);
}

static void add_run(struct mew_model *m, struct mew_case *c, unsigned process, uint64_t ns)
{
	struct mew_run r = { .process = process, .nsamples = 1, .real_ns = &ns };

	assert_int_equal(mew_model_add_run(m, c, &r), 0);
}

/* Modules prog 0, libx 1; the stack of the memory pass is 0, those of the CPU pass are 1 and 2. */
static struct mew_model *model_a(void)
{
	struct mew_model *m = new_model();
	struct mew_case *c = new_case(m, "k");
	uint32_t prog = mew_model_module(m, "/prog", "11", 1, false), x = mew_model_module(m, "/libx", "22", 1, false);
	uint32_t main_at = named(m, prog, 0x10, "main", NULL), leaf = named(m, x, 0x20, "leaf", "tiny");
	uint32_t dark = mew_model_location(m, x, 0x30);
	uint32_t both[] = { leaf, main_at }, unknown[] = { dark, main_at };

	m->locations[dark].why = "no symbols";
	c->label = mew_model_string(m, "64k");
	(void)mew_model_row(m, c, M);
	mew_model_u64(c, M, MEW_FIG_PEAK_BYTES, 100);
	mew_model_u64(c, M, MEW_FIG_FREES, 5);
	add_heap(c, mew_model_stack(m, both, 2), 100);
	mew_model_row(m, c, C)->profiler = "wall";
	mew_model_text(m, c, C, MEW_FIG_TOP_FUNCTION, "leaf (a.c:10)");
	add_sample(c, mew_model_stack(m, unknown, 2), 7);
	add_run(m, c, 0, 111);
	assert_int_equal(mew_model_add_counter(m, c, "hits", 1), 0);
	assert_int_equal(mew_model_add_counter(m, c, "only a", 2), 0);
	assert_int_equal(mew_model_add_phase_data(m, c, 4, "temp", "40"), 0);
	assert_int_equal(mew_model_add_fact(m, "cpu", "A"), 0);
	m->grade = 'B';
	m->grade_reason = "governor";
	m->hooks = "perf numa";
	return m;
}

/* The same places under other numbers: libx 0, liby 1, prog 2; 0x30 of libx has a name here, 0x20 has none. */
static struct mew_model *model_b(void)
{
	struct mew_model *m = new_model();
	struct mew_case *other = new_case(m, "other"), *c;
	uint32_t x = mew_model_module(m, "/libx", "22", 1, true), y = mew_model_module(m, "/liby", "33", 1, false);
	uint32_t prog = mew_model_module(m, "/prog", "11", 1, false);
	uint32_t nowhere = mew_model_location(m, MEW_NO_MODULE, 0xdead), dark = mew_model_location(m, x, 0x20);
	uint32_t lit = named(m, x, 0x30, "lit", NULL), why = named(m, y, 0x40, "why", NULL);
	uint32_t main_at = named(m, prog, 0x10, "main", NULL);
	uint32_t first[] = { nowhere, why, main_at }, second[] = { dark, main_at }, third[] = { lit, main_at };

	m->locations[dark].why = "stripped";
	(void)mew_model_row(m, other, C);
	mew_model_text(m, other, C, MEW_FIG_TOP_FUNCTION, "lit (a.c:10)");
	add_sample(other, mew_model_stack(m, first, 3), 1);
	add_sample(other, MEW_NO_STACK, 2);
	add_sample(other, mew_model_stack(m, third, 2), 3);
	c = new_case(m, "k");
	c->tags = mew_model_string(m, "fast");
	c->bytes_per_iteration = 64;
	mew_model_row(m, c, M)->reason = mew_model_string(m, "a note");
	mew_model_u64(c, M, MEW_FIG_PEAK_BYTES, 200);
	mew_model_absent(m, c, M, MEW_FIG_ADOPTED, "not seen");
	add_heap(c, mew_model_stack(m, second, 2), 150);
	add_heap(c, mew_model_stack(m, first, 3), 50);
	mew_model_fail(m, c, T, MEW_E_LOOP, "left early");
	add_run(m, c, 1, 222);
	assert_int_equal(mew_model_add_counter(m, c, "hits", 9), 0);
	assert_int_equal(mew_model_add_phase_data(m, c, 4, "temp", "41"), 0);
	assert_int_equal(mew_model_add_fact(m, "cpu", "B"), 0);
	assert_int_equal(mew_model_add_fact(m, "kernel", "6"), 0);
	m->grade = 'C';
	m->grade_reason = mew_model_string(m, "load");
	m->hooks = mew_model_string(m, "num perf");
	return m;
}

static struct mew_model *merged(void)
{
	struct mew_model *a = model_a(), *b = model_b();

	mew_model_seal(b);
	assert_int_equal(mew_model_merge(a, b), 0);
	mew_model_free(b); /* nothing in `a` may point there: the sanitizer sees it, and so would a reader */
	return a;
}

static void test_merge_stacks(void **state)
{
	struct mew_model *m = merged();
	struct mew_case *k = mew_model_find(m, "k"), *other = mew_model_find(m, "other");

	(void)state;
	assert_int_equal(m->ncases, 2);
	assert_int_equal(m->nmodules, 3);
	assert_true(m->modules[1].gone); /* closed in one of the processes */
	assert_int_equal(m->nlocations, 5);
	assert_int_equal(m->nstacks, 3);
	assert_int_equal(k->nheap_stacks, 2);
	assert_stack(m, k->heap_stacks[0].stack,
		     "/libx+20=tiny:in.h:3@/libx=leaf:a.c:11@/libx;/prog+10=main:a.c:11@/prog;");
	assert_int_equal(k->heap_stacks[0].peak_bytes, 150);
	assert_stack(m, k->heap_stacks[1].stack, "?+dead;/liby+40=why:a.c:11@/liby;/prog+10=main:a.c:11@/prog;");
	assert_int_equal(k->nsamples, 1); /* the CPU row had no successor */
	assert_stack(m, k->samples[0].stack, "/libx+30=lit:a.c:11@/libx;/prog+10=main:a.c:11@/prog;");
	assert_int_equal(other->nsamples, 3);
	assert_int_equal(other->samples[0].stack, k->heap_stacks[1].stack);
	assert_stack(m, other->samples[1].stack, "none");
	assert_int_equal(other->samples[2].stack, k->samples[0].stack);
	mew_model_free(m);
}

static void test_merge_rows(void **state)
{
	struct mew_model *m = merged();
	struct mew_case *k = mew_model_find(m, "k");

	(void)state;
	assert_string_equal(k->label, "64k");
	assert_string_equal(k->tags, "fast");
	assert_true(k->bytes_per_iteration == 64);
	assert_int_equal(k->kinds, 1u << T | 1u << M | 1u << C);
	assert_int_equal(k->memory.peak_bytes, 200);
	assert_false(mew_row_has(mew_case_row(k, M), MEW_FIG_FREES)); /* of the replaced row */
	assert_string_equal(mew_row_why(mew_case_row(k, M), MEW_FIG_ADOPTED), "not seen");
	assert_string_equal(k->memory.reason, "a note");
	assert_string_equal(k->memory.label, "64k");
	assert_string_equal(k->cpu.top_function, "leaf (a.c:10)");
	assert_string_equal(k->cpu.profiler, "wall");
	assert_string_equal(mew_model_find(m, "other")->cpu.top_function, "lit (a.c:10)");
	assert_int_equal(k->time.status, MEW_E_LOOP);
	assert_string_equal(mew_row_why(mew_case_row(k, T), MEW_FIG_MEDIAN_NS), "left early");
	mew_model_free(m);
}

static void test_merge_lists_and_facts(void **state)
{
	struct mew_model *m = merged();
	struct mew_case *k = mew_model_find(m, "k");

	(void)state;
	assert_int_equal(k->nruns, 2);
	assert_int_equal(k->runs[0].real_ns[0], 111);
	assert_int_equal(k->runs[1].real_ns[0], 222);
	assert_int_equal(k->runs[1].process, 1);
	assert_int_equal(k->ncounters, 2);
	assert_true(k->counters[0].value == 9 && k->counters[1].value == 2);
	assert_int_equal(k->nphase_data, 2);
	assert_string_equal(k->phase_data[1].value, "41");
	assert_int_equal(m->nfacts, 2);
	assert_string_equal(mew_model_fact(m, "cpu"), "A");
	assert_string_equal(mew_model_fact(m, "kernel"), "6");
	assert_int_equal(m->grade, 'C');
	assert_string_equal(m->grade_reason, "load");
	assert_string_equal(m->hooks, "perf numa num");
	mew_model_free(m);
}

/* Into an empty model everything arrives with the numbers it had; a model merged with itself stays. */
static void test_merge_edges(void **state)
{
	struct mew_model *m = new_model(), *b = model_b();
	char want[400];

	(void)state;
	assert_int_equal(mew_model_merge(m, b), 0);
	assert_int_equal(m->nstacks, b->nstacks);
	for (uint32_t i = 0; i < b->nstacks; i++) {
		stack_text(b, i, want, sizeof want);
		assert_stack(m, i, want);
	}
	assert_string_equal(m->hooks, "num perf");
	assert_int_equal(mew_model_merge(m, m), 0);
	assert_int_equal(mew_model_find(m, "k")->nruns, 1);
	mew_model_free(b);
	b = new_model();
	assert_int_equal(mew_model_merge(m, b), 0);
	assert_int_equal(m->ncases, 2);
	mew_model_free(b);
	mew_model_free(m);
}

/* --- sink ------------------------------------------------------------------------------------------------------- */

static const struct mew_module_map maps[] = {
	{ .lo = 0x1000, .hi = 0x2000, .bias = 0x1000, .path = "/prog", .build_id = "11" },
	{ .lo = 0x7000, .hi = 0x8000, .bias = 0x6000, .path = "/libx", .build_id = "22", .gone = true },
};
static const struct mew_modules snapshot = { .generation = 1, .n = 2, .map = maps };

static void test_sink_stack(void **state)
{
	/* the second is the first byte after /libx: the return address of a call that never returns */
	static const uintptr_t pcs[] = { 0x7010, 0x8000, 0x1010, 0x5000, 0 }, leaf[] = { 0x8000 };
	struct mew_model *m = new_model();
	struct mew_sink sink = { .model = m, .row = new_case(m, "a"), .kind = C };
	uint32_t stack = mew_sink_stack(&sink, &snapshot, pcs, 5);

	(void)state;
	assert_stack(m, stack, "/libx+1010;/libx+1fff;/prog+f;?+5000;?+0;");
	assert_int_equal(m->nmodules, 2);
	assert_true(m->modules[0].gone);
	assert_int_equal(m->modules[0].size, 0x1000);
	assert_string_equal(m->modules[1].build_id, "11");
	assert_int_equal(mew_sink_stack(&sink, &snapshot, pcs, 5), stack);
	assert_stack(m, mew_sink_stack(&sink, &snapshot, leaf, 1), "?+8000;"); /* a leaf is exact */
	assert_stack(m, mew_sink_stack(&sink, NULL, pcs, 1), "?+7010;");
	assert_false(sink.failed);
	mew_model_seal(m);
	assert_int_equal(mew_sink_stack(&sink, &snapshot, pcs, 5), MEW_NO_STACK);
	assert_true(sink.failed);
	mew_model_free(m);
}

static void test_sink_records(void **state)
{
	struct mew_model *m = new_model();
	struct mew_sink sink = { .model = m, .row = new_case(m, "a"), .kind = M };

	(void)state;
	mew_sink_heap(&sink, &(struct mew_heap_stack){ .stack = 3, .peak_bytes = 10, .net_bytes = 4 });
	mew_sink_sample(&sink, &(struct mew_cpu_sample){ .stack = 4, .weight_ns = 20 });
	mew_sink_u64(&sink, MEW_FIG_PEAK_BYTES, 10);
	mew_sink_f64(&sink, MEW_FIG_BYTES_PER_ITERATION, 2.5);
	mew_sink_absent(&sink, MEW_FIG_FAILED, "not counted");
	assert_int_equal(sink.row->heap_stacks[0].net_bytes, 4);
	assert_int_equal(sink.row->samples[0].weight_ns, 20);
	assert_int_equal(sink.row->memory.peak_bytes, 10);
	assert_true(sink.row->memory.bytes_per_iteration == 2.5);
	assert_string_equal(mew_row_why(mew_case_row(sink.row, M), MEW_FIG_FAILED), "not counted");
	assert_false(sink.failed);
	mew_model_free(m);
}

/* --- each allocation fails in turn ------------------------------------------------------------------------------ */

void *__real_malloc(size_t bytes) __attribute__((weak));
void *__real_calloc(size_t n, size_t bytes) __attribute__((weak));
void *__real_realloc(void *old, size_t bytes) __attribute__((weak));
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

static long until_failure; /* 0: never */

static bool fails_now(void)
{
	return until_failure > 0 && --until_failure == 0;
}

void *__wrap_malloc(size_t bytes)
{
	return fails_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return fails_now() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return fails_now() ? NULL : __real_realloc(old, bytes);
}

/* Capture and merge; every step reports its failure. Returns 0, or -1 when one did. */
static int fill(void)
{
	static const uintptr_t pcs[] = { 0x7010, 0x1010 };
	struct mew_model *m = mew_model_new(), *into = mew_model_new();
	struct mew_line line = { 0, 1 };
	struct mew_run run = { .nsamples = 1, .real_ns = &(uint64_t){ 1 } };
	struct mew_sink sink = { .model = m, .kind = C };
	int failed = -1;

	if (m == NULL || into == NULL || (sink.row = mew_model_case(m, "a", "p")) == NULL)
		goto out;
	for (uintptr_t i = 0; i < 100; i++) {
		uintptr_t both[2] = { pcs[0] + i, pcs[1] };
		struct mew_cpu_sample s = { .stack = mew_sink_stack(&sink, &snapshot, both, 2), .weight_ns = 1 };

		mew_sink_sample(&sink, &s);
	}
	if (sink.failed || mew_model_function(m, "f", "", 1, 0) != 0 || mew_model_set_lines(m, 0, &line, 1) != 0 ||
	    mew_model_add_run(m, sink.row, &run) != 0 || mew_model_add_counter(m, sink.row, "c", 1) != 0 ||
	    mew_model_add_phase_data(m, sink.row, 4, "k", "v") != 0 || mew_model_add_fact(m, "cpu", "A") != 0 ||
	    mew_model_row(m, sink.row, C) == NULL || mew_model_merge(into, m) != 0)
		goto out;
	assert_int_equal(into->cases[0].nsamples, 100);
	assert_int_equal(into->nstacks, 100);
	failed = 0;
out:
	mew_model_free(m);
	mew_model_free(into);
	return failed;
}

/* The arena refuses: every setter says so or leaves the figure absent with a reason, and nothing half-made stays. */
static void test_no_room_for_strings(void **state)
{
	struct mew_model *m = new_model(), *b = model_b();
	struct mew_case *c = new_case(m, "a");
	struct mew_run run = { .nsamples = 1, .real_ns = &(uint64_t){ 1 } };

	(void)state;
	m->strings.limit = m->strings.mapped;
	while (mew_arena_alloc(&m->strings, 16) != NULL)
		continue;
	assert_null(mew_model_string(m, "x"));
	assert_null(mew_model_case(m, "b", NULL));
	assert_int_equal(mew_model_add_run(m, c, &run), -1);
	assert_int_equal(mew_model_add_counter(m, c, "c", 1), -1);
	assert_int_equal(mew_model_add_phase_data(m, c, 4, "k", "v"), -1);
	assert_int_equal(mew_model_add_fact(m, "cpu", "A"), -1);
	assert_int_equal(mew_model_module(m, "/p", "", 1, false), UINT32_MAX);
	assert_int_equal(mew_model_function(m, "f", "", 1, 0), UINT32_MAX);
	mew_model_text(m, c, C, MEW_FIG_TOP_FUNCTION, "f");
	mew_model_absent(m, c, C, MEW_FIG_INTERVAL, "why");
	assert_non_null(mew_row_why(mew_case_row(c, C), MEW_FIG_TOP_FUNCTION));
	assert_non_null(mew_row_why(mew_case_row(c, C), MEW_FIG_INTERVAL));
	mew_model_fail(m, c, M, MEW_E_NOMEM, "why");
	assert_int_equal(c->memory.status, MEW_E_NOMEM);
	assert_non_null(c->memory.reason);
	assert_int_equal(mew_model_merge(m, b), -1);
	assert_int_equal(m->ncases, 1);
	assert_int_equal(c->nruns + c->ncounters + c->nphase_data + m->nfacts + m->nmodules + m->nfunctions, 0);
	mew_model_free(m);
	mew_model_free(b);
}

static void test_allocation_failures(void **state)
{
	long n = 0;
	int failed;

	(void)state;
	if (__real_malloc == NULL) {
		print_message("not linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc\n");
		skip();
	}
	do {
		until_failure = ++n;
		failed = fill();
		assert_int_equal(failed != 0, until_failure == 0); /* reported exactly when one failed */
	} while (until_failure == 0);
	until_failure = 0;
	assert_true(n > 30);
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
		cmocka_unit_test(test_merge_stacks),
		cmocka_unit_test(test_merge_rows),
		cmocka_unit_test(test_merge_lists_and_facts),
		cmocka_unit_test(test_merge_edges),
		cmocka_unit_test(test_sink_stack),
		cmocka_unit_test(test_sink_records),
		cmocka_unit_test(test_no_room_for_strings),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
