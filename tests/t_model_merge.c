/*
 * t_model_merge.c - merging of models whose numbers clash, the sink that fills one, and memory that runs out meanwhile.
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

#include "fx_model.h"
#include "modules.h"
#include "sink.h"

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

/* Counters of a pass under hooks or a sampler do not replace those of timing; those of a later repetition do. */
static void test_merge_counters(void **state)
{
	struct mew_model *m = new_model(), *piece = new_model();
	struct mew_case *timed = new_case(m, "k"), *c = new_case(piece, "k");

	(void)state;
	assert_int_equal(mew_model_add_counter(m, timed, "rate", 1), 0);
	assert_int_equal(mew_model_add_counter(piece, c, "rate", 2), 0);
	assert_int_equal(mew_model_merge(m, piece), 0);
	assert_true(mew_model_find(m, "k")->counters[0].value == 2);
	(void)mew_model_row(m, mew_model_find(m, "k"), T);
	(void)mew_model_row(piece, c, M);
	c->counters[0].value = 3;
	assert_int_equal(mew_model_merge(m, piece), 0);
	assert_true(mew_model_find(m, "k")->counters[0].value == 2);
	(void)mew_model_row(piece, c, T);
	assert_int_equal(mew_model_merge(m, piece), 0);
	assert_true(mew_model_find(m, "k")->counters[0].value == 3);
	mew_model_free(piece);
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
		cmocka_unit_test(test_merge_stacks),
		cmocka_unit_test(test_merge_rows),
		cmocka_unit_test(test_merge_counters),
		cmocka_unit_test(test_merge_lists_and_facts),
		cmocka_unit_test(test_merge_edges),
		cmocka_unit_test(test_sink_stack),
		cmocka_unit_test(test_sink_records),
		cmocka_unit_test(test_no_room_for_strings),
		cmocka_unit_test(test_allocation_failures),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
