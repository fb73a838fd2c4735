/*
 * t_lists.c - figures that are lists: set, copied, replaced, merged, sent over the wire, refused.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "model.h"
#include "sink.h"
#include "wire.h"

#define M MEW_KIND_MEMORY

static const struct mew_size_class classes[] = { { 0, 0, 1 }, { 24, 24, 1200 }, { 64, 127, UINT64_MAX } };
static const struct mew_memory_function functions[] = {
	{ "parse (parse.c:12)", 4096, 8192, 2, 0 },
	{ "grow (buffer.c:7)", 512, 513, 1, 511 },
};

static struct mew_model *new_model(struct mew_case **c)
{
	struct mew_model *m = mew_model_new();

	assert_non_null(m);
	*c = mew_model_case(m, "a", NULL);
	assert_non_null(*c);
	assert_non_null(mew_model_row(m, *c, M));
	return m;
}

static void fill(struct mew_model *m, struct mew_case *c)
{
	struct mew_sink sink = { .model = m, .row = c, .kind = M };

	mew_sink_text(&sink, MEW_FIG_MODE, "capture");
	mew_sink_list(&sink, MEW_FIG_SIZE_HISTOGRAM, classes, MEW_COUNTOF(classes));
	mew_sink_list(&sink, MEW_FIG_BY_FUNCTION, functions, MEW_COUNTOF(functions));
	mew_sink_list(&sink, MEW_FIG_BY_POOL, NULL, 0);
	assert_false(sink.failed);
}

static void assert_filled(const struct mew_case *c)
{
	const struct mew_memory_case *row = &c->memory;

	assert_null(mew_memory_why(row, MEW_FIG_SIZE_HISTOGRAM));
	assert_int_equal(row->nsize_histogram, MEW_COUNTOF(classes));
	assert_memory_equal(row->size_histogram, classes, sizeof classes);
	assert_null(mew_memory_why(row, MEW_FIG_BY_FUNCTION));
	assert_int_equal(row->nby_function, MEW_COUNTOF(functions));
	for (size_t i = 0; i < MEW_COUNTOF(functions); i++) {
		assert_string_equal(row->by_function[i].function, functions[i].function);
		assert_int_equal(row->by_function[i].peak_bytes, functions[i].peak_bytes);
		assert_int_equal(row->by_function[i].cumulative_bytes, functions[i].cumulative_bytes);
		assert_int_equal(row->by_function[i].allocations, functions[i].allocations);
		assert_int_equal(row->by_function[i].net_bytes, functions[i].net_bytes);
	}
	assert_null(mew_memory_why(row, MEW_FIG_BY_POOL)); /* a list without rows is not an absent one */
	assert_int_equal(row->nby_pool, 0);
	assert_string_equal(row->mode, "capture");
}

static void test_copied(void **state)
{
	char name[] = "arena";
	struct mew_memory_pool pool = { name, 1, 2, 3, 4 };
	const struct mew_memory_case *row;
	struct mew_case *c;
	struct mew_model *m = new_model(&c);

	(void)state;
	row = &c->memory;
	mew_model_absent(m, c, M, MEW_FIG_BY_POOL, "no pool said anything");
	assert_string_equal(mew_memory_why(row, MEW_FIG_BY_POOL), "no pool said anything");
	mew_model_list(m, c, M, MEW_FIG_BY_POOL, &pool, 1);
	memset(name, 'x', sizeof name - 1);
	pool.net_bytes = 0;
	assert_null(mew_memory_why(row, MEW_FIG_BY_POOL));
	assert_int_equal(row->nby_pool, 1);
	assert_string_equal(row->by_pool[0].name, "arena");
	assert_int_equal(row->by_pool[0].net_bytes, 4);
	fill(m, c);
	assert_filled(c);
	mew_model_free(m);
}

/* What is no list, or cannot be kept, leaves the figure absent, and the sink says that something went wrong. */
static void test_refused(void **state)
{
	const struct mew_memory_function nameless = { .peak_bytes = 1 };
	struct mew_case *c;
	struct mew_model *m = new_model(&c);
	struct mew_sink sink = { .model = m, .row = c, .kind = M };

	(void)state;
	fill(m, c);
	mew_model_list(m, c, M, MEW_FIG_BY_FUNCTION, &nameless, 1);
	assert_non_null(mew_memory_why(&c->memory, MEW_FIG_BY_FUNCTION));
	mew_model_list(m, c, M, MEW_FIG_PEAK_BYTES, classes, 1);
	assert_non_null(mew_memory_why(&c->memory, MEW_FIG_PEAK_BYTES));
	mew_model_list(m, c, M, MEW_FIG_SIZE_HISTOGRAM, classes, SIZE_MAX / 2);
	assert_non_null(mew_memory_why(&c->memory, MEW_FIG_SIZE_HISTOGRAM));
	mew_model_u64(c, M, MEW_FIG_BY_POOL, 3);
	assert_non_null(mew_memory_why(&c->memory, MEW_FIG_BY_POOL));
	assert_false(sink.failed);
	m->strings.limit = m->strings.mapped;
	while (mew_arena_alloc(&m->strings, 16) != NULL)
		continue;
	mew_sink_list(&sink, MEW_FIG_SIZE_HISTOGRAM, classes, MEW_COUNTOF(classes));
	assert_true(sink.failed);
	sink.failed = false;
	mew_sink_text(&sink, MEW_FIG_MODE, "count");
	assert_true(sink.failed);
	assert_int_equal(c->memory.present, 0);
	mew_model_free(m);
}

static void test_merged(void **state)
{
	struct mew_case *c, *other;
	struct mew_model *m = new_model(&c), *into = new_model(&other);

	(void)state;
	fill(m, c);
	mew_model_list(into, other, M, MEW_FIG_BY_POOL, &(struct mew_memory_pool){ .name = "old" }, 1);
	assert_int_equal(mew_model_merge(into, m), 0);
	mew_model_free(m); /* nothing of it may be left in the other */
	assert_filled(&into->cases[0]);
	mew_model_free(into);
}

static void test_over_the_wire(void **state)
{
	struct mew_case *c;
	struct mew_model *m = new_model(&c), *out = mew_model_new();
	struct mew_wire w;

	(void)state;
	fill(m, c);
	mew_wire_init(&w);
	mew_wire_put_model(&w, m);
	assert_false(w.failed);
	assert_true(mew_wire_model(&w, out));
	assert_int_equal(w.at, w.size);
	mew_model_free(m);
	mew_wire_fini(&w);
	assert_filled(&out->cases[0]);
	mew_model_free(out);
}

/* A message that was cut anywhere is refused, whatever length it promises. */
static void test_cut_message(void **state)
{
	struct mew_case *c;
	struct mew_model *m = new_model(&c);
	struct mew_wire w;
	size_t whole;

	(void)state;
	fill(m, c);
	mew_wire_init(&w);
	mew_wire_put_model(&w, m);
	whole = w.size;
	for (size_t size = 0; size < whole; size++) {
		struct mew_model *out = mew_model_new();

		w.at = 0;
		w.size = size;
		w.failed = false;
		assert_false(mew_wire_model(&w, out));
		mew_model_free(out);
	}
	mew_wire_fini(&w);
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copied),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_over_the_wire),
		cmocka_unit_test(test_cut_message),
	};

	return cmocka_run_group_tests_name("lists", tests, NULL, NULL);
}
