/*
 * t_analyse.c - the figures of a CPU row against samples whose answer is known by hand.
 * Test program.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "analyse.h"
#include "stats.h"

#define PERIOD_NS 100000u

struct fixture {
	struct mew_model *model;
	struct mew_case *row;
	uint32_t module, other;
	uint64_t next_offset, now_ns;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ .model = mew_model_new() };
	assert_non_null(f->model);
	f->row = mew_model_case(f->model, "case", NULL);
	assert_non_null(mew_model_row(f->model, f->row, MEW_KIND_CPU));
	f->module = mew_model_module(f->model, "/opt/lib/libone.so", "", 4096, false);
	f->other = mew_model_module(f->model, "/opt/bin/prog", "", 4096, false);
}

static void end(struct fixture *f)
{
	mew_model_free(f->model);
}

static void analyse(struct fixture *f)
{
	struct mew_error error;

	assert_int_equal(mew_analyse(f->model, &error), MEW_OK);
}

/* A new leaf in a function; file NULL: without a name. `inside`: the function it is inlined into, or UINT32_MAX. */
static uint32_t leaf(struct fixture *f, const char *name, const char *file, uint32_t line, uint32_t module,
		     uint32_t inside)
{
	uint32_t location = mew_model_location(f->model, module, f->next_offset++);
	struct mew_line lines[2] = { { 0, 7 }, { inside, 9 } };

	assert_int_not_equal(location, UINT32_MAX);
	if (name != NULL) {
		lines[0].function = mew_model_function(f->model, name, file, line, module);
		assert_int_equal(mew_model_set_lines(f->model, location, lines, inside == UINT32_MAX ? 1 : 2), 0);
	}
	return mew_model_stack(f->model, &location, 1);
}

static void sample(struct fixture *f, uint32_t stack, unsigned n, uint64_t weight_ns)
{
	for (unsigned i = 0; i < n; i++) {
		struct mew_cpu_sample s = { .stack = stack, .time_ns = f->now_ns += weight_ns, .weight_ns = weight_ns };

		assert_int_equal(mew_model_add_sample(f->row, &s), 0);
	}
}

static bool reason_has(const struct fixture *f, const char *part)
{
	return f->row->cpu.reason != NULL && strstr(f->row->cpu.reason, part) != NULL;
}

static void top_is_the_largest_sum_over_function_and_file(void **state)
{
	struct fixture f;
	struct mew_interval want;
	const struct mew_cpu_case *row;

	(void)state;
	begin(&f);
	/* hot(): 150 in two modules and at many addresses; cold(): 120 at one address */
	for (int i = 0; i < 10; i++)
		sample(&f, leaf(&f, "hot", "/src/lib/hot.c", 12, i % 2 ? f.module : f.other, UINT32_MAX), 15,
		       PERIOD_NS);
	sample(&f, leaf(&f, "cold", "/src/lib/cold.c", 3, f.module, UINT32_MAX), 50, PERIOD_NS);
	/* another file: another function */
	sample(&f, leaf(&f, "hot", "/src/else/hot.c", 12, f.module, UINT32_MAX), 20, PERIOD_NS);
	analyse(&f);
	row = &f.row->cpu;
	assert_string_equal(row->top_function, "hot (hot.c:12)");
	assert_true(fabs(row->top_function_total_self_time - 150 * 1e-4) < 1e-9);
	assert_true(fabs(row->top_function_share - 150.0 / 220.0) < 1e-9);
	assert_true(mew_stats_wilson(150, 220, 1.959964, &want));
	assert_true(fabs(row->top_function_share_low - want.low) < 1e-6);
	assert_true(fabs(row->top_function_share_high - want.high) < 1e-6);
	assert_int_equal(row->sample_count, 220);
	assert_true(fabs(row->sample_weight - 220 * 1e-4) < 1e-9);
	assert_int_equal(row->unresolved, 0);
	assert_null(row->reason);
	end(&f);
}

static void weight_counts_not_the_number_of_samples(void **state)
{
	struct fixture f;
	double n = 1200.0 * 1200.0 / (200 * 1.0 + 10 * 10000.0);
	struct mew_interval want;

	(void)state;
	begin(&f);
	sample(&f, leaf(&f, "often", "/a.c", 1, f.module, UINT32_MAX), 200, PERIOD_NS);
	sample(&f, leaf(&f, "late", "/b.c", 2, f.module, UINT32_MAX), 10, 100 * PERIOD_NS);
	analyse(&f);
	assert_string_equal(f.row->cpu.top_function, "late (b.c:2)");
	assert_true(fabs(f.row->cpu.top_function_share - 1000.0 / 1200.0) < 1e-9);
	/* ten heavy samples are not 210: the interval is as wide as that of 14 */
	assert_true(mew_stats_wilson(n * 1000.0 / 1200.0, n, 1.959964, &want));
	assert_true(fabs(f.row->cpu.top_function_share_low - want.low) < 1e-6);
	end(&f);
}

static void an_inlined_function_counts_as_itself(void **state)
{
	struct fixture f;
	uint32_t caller;

	(void)state;
	begin(&f);
	caller = mew_model_function(f.model, "caller", "/c.c", 40, f.module);
	sample(&f, leaf(&f, "inlined", "/inc/i.h", 4, f.module, caller), 120, PERIOD_NS);
	sample(&f, leaf(&f, "caller", "/c.c", 40, f.module, UINT32_MAX), 30, PERIOD_NS);
	analyse(&f);
	assert_string_equal(f.row->cpu.top_function, "inlined (i.h:4)");
	end(&f);
}

static void the_definition_with_most_time_lends_its_line(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	/* static functions of one name in one file, as macros make them */
	sample(&f, leaf(&f, "step", "/gen.c", 10, f.module, UINT32_MAX), 40, PERIOD_NS);
	sample(&f, leaf(&f, "step", "/gen.c", 90, f.module, UINT32_MAX), 35, PERIOD_NS);
	sample(&f, leaf(&f, "step", "/gen.c", 90, f.other, UINT32_MAX), 35, PERIOD_NS);
	analyse(&f);
	assert_string_equal(f.row->cpu.top_function, "step (gen.c:90)");
	assert_true(fabs(f.row->cpu.top_function_share - 1.0) < 1e-9);
	end(&f);
}

static void without_debug_information_the_module_is_named(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	sample(&f, leaf(&f, "work", "", 0, f.module, UINT32_MAX), 110, PERIOD_NS);
	sample(&f, leaf(&f, "work", "", 0, f.other, UINT32_MAX), 20, PERIOD_NS);
	analyse(&f);
	assert_string_equal(f.row->cpu.top_function, "work (libone.so)");
	assert_true(fabs(f.row->cpu.top_function_share - 110.0 / 130.0) < 1e-9);
	end(&f);
}

static void samples_without_a_name_are_counted_and_not_hidden(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 30; i++)
		sample(&f, leaf(&f, NULL, NULL, 0, f.module, UINT32_MAX), 4, PERIOD_NS);
	f.model->locations[0].why = "libone.so: stripped";
	sample(&f, leaf(&f, "named", "/n.c", 1, f.other, UINT32_MAX), 50, PERIOD_NS);
	sample(&f, MEW_NO_STACK, 10, PERIOD_NS);
	analyse(&f);
	assert_string_equal(f.row->cpu.top_function, "unknown (libone.so)");
	assert_int_equal(f.row->cpu.unresolved, 120);
	assert_int_equal(f.row->cpu.sample_count, 180);
	assert_true(reason_has(&f, "120 of 180 samples have no function name (libone.so: stripped)"));
	end(&f);
}

/* A stripped function has no name, but its start tells it from its neighbours. */
static void starts_tell_functions_without_a_name_apart(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	for (int i = 0; i < 40; i++) {
		sample(&f, leaf(&f, NULL, NULL, 0, f.module, UINT32_MAX), i % 4 == 0 ? 4 : 2, PERIOD_NS);
		f.model->locations[i].start = i % 4 == 0 ? 0x4a20 : 0x5000 + (uint64_t)(i % 4) * 256;
	}
	analyse(&f);
	assert_string_equal(f.row->cpu.top_function, "libone.so+0x4a20");
	assert_true(fabs(f.row->cpu.top_function_share - 40.0 / 100.0) < 1e-9);
	assert_int_equal(f.row->cpu.unresolved, 100);
	end(&f);
}

static void few_samples_and_a_close_race_are_said_once(void **state)
{
	struct fixture f;
	const char *reason;

	(void)state;
	begin(&f);
	f.row->cpu.reason = "the interval was capped";
	sample(&f, leaf(&f, "left", "/l.c", 1, f.module, UINT32_MAX), 31, PERIOD_NS);
	sample(&f, leaf(&f, "right", "/r.c", 2, f.module, UINT32_MAX), 29, PERIOD_NS);
	analyse(&f);
	assert_true(reason_has(&f, "the interval was capped; fewer than 100 samples: 60"));
	assert_true(reason_has(&f, "too close to call: left (l.c:1) has 51.7 % of the time and right (r.c:2) has "
				   "48.3 %"));
	assert_string_equal(f.row->cpu.top_function, "left (l.c:1)");
	reason = f.row->cpu.reason;
	analyse(&f);
	assert_string_equal(f.row->cpu.reason, reason);
	end(&f);
}

static void a_clear_winner_is_not_called_close(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	sample(&f, leaf(&f, "left", "/l.c", 1, f.module, UINT32_MAX), 600, PERIOD_NS);
	sample(&f, leaf(&f, "right", "/r.c", 2, f.module, UINT32_MAX), 400, PERIOD_NS);
	analyse(&f);
	assert_null(f.row->cpu.reason);
	end(&f);
}

static void without_samples_the_top_is_absent_and_says_why(void **state)
{
	struct fixture f;
	const struct mew_row_head *head;

	(void)state;
	begin(&f);
	analyse(&f);
	head = mew_case_row(f.row, MEW_KIND_CPU);
	assert_false(mew_row_has(head, MEW_FIG_TOP_FUNCTION));
	assert_false(mew_row_has(head, MEW_FIG_TOP_FUNCTION_SHARE));
	assert_non_null(strstr(mew_row_why(head, MEW_FIG_TOP_FUNCTION), "no samples"));
	assert_true(mew_row_has(head, MEW_FIG_SAMPLE_COUNT));
	assert_int_equal(f.row->cpu.sample_count, 0);
	assert_non_null(strstr(mew_row_why(head, MEW_FIG_TOP_FUNCTION), "the loop"));
	end(&f);
	begin(&f);
	assert_int_equal(mew_model_add_fact(f.model, MEW_FACT_RECORDED, "whole programs"), 0);
	analyse(&f);
	assert_null(strstr(mew_row_why(mew_case_row(f.row, MEW_KIND_CPU), MEW_FIG_TOP_FUNCTION), "loop"));
	end(&f);
}

static void a_failed_row_stays_without_figures(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	mew_model_fail(f.model, f.row, MEW_KIND_CPU, MEW_E_LOOP, "the loop was left early");
	sample(&f, leaf(&f, "left", "/l.c", 1, f.module, UINT32_MAX), 20, PERIOD_NS);
	analyse(&f);
	assert_false(mew_row_has(mew_case_row(f.row, MEW_KIND_CPU), MEW_FIG_TOP_FUNCTION));
	assert_string_equal(f.row->cpu.reason, "the loop was left early");
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top_is_the_largest_sum_over_function_and_file),
		cmocka_unit_test(weight_counts_not_the_number_of_samples),
		cmocka_unit_test(an_inlined_function_counts_as_itself),
		cmocka_unit_test(the_definition_with_most_time_lends_its_line),
		cmocka_unit_test(without_debug_information_the_module_is_named),
		cmocka_unit_test(samples_without_a_name_are_counted_and_not_hidden),
		cmocka_unit_test(starts_tell_functions_without_a_name_apart),
		cmocka_unit_test(few_samples_and_a_close_race_are_said_once),
		cmocka_unit_test(a_clear_winner_is_not_called_close),
		cmocka_unit_test(without_samples_the_top_is_absent_and_says_why),
		cmocka_unit_test(a_failed_row_stays_without_figures),
	};

	return cmocka_run_group_tests_name("analyse", tests, NULL, NULL);
}
