/*
 * t_rows.c - the formats of other tools: Google Benchmark, Bencher, github-action-benchmark, OTLP, Markdown. What their
 * readers refuse or silently lose must never be written.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fx_results.h"

extern const struct mew_report mew_report_gbench, mew_report_bmf, mew_report_gha, mew_report_otlp, mew_report_markdown;
static const struct mew_report *const json_reports[] = { &mew_report_gbench, &mew_report_bmf, &mew_report_gha,
							  &mew_report_otlp };

#define HOSTILE "</script><img src=x onerror=alert(1)> | `a\\|b` \"q\" \x01 \xff @team"
#define FIRST "zlib/inflate/case:0"
#define BROKEN_WHY "the body left its loop early; every way out of MEW_LOOP must be its end"

static char *text_of(const struct mew_report *report, const struct mew_model *m)
{
	return fx_report(report, &(struct mew_report_input){ .model = m }, NULL);
}

static json_t *parsed(const struct mew_report *report, const struct mew_model *m)
{
	char *text = text_of(report, m);
	json_error_t where;
	json_t *top = json_loads(text, JSON_REJECT_DUPLICATES, &where); /* rejects NaN and bytes that are not UTF-8 too */

	if (top == NULL)
		fail_msg("%s, line %d: %s", report->name, where.line, where.text);
	free(text);
	return top;
}

static json_t *sample(const struct mew_report *report)
{
	struct mew_model *m = fx_results();
	json_t *top = parsed(report, m);

	mew_model_free(m);
	return top;
}

static struct mew_case *add_time(struct mew_model *m, const char *key, const char *program, double median)
{
	struct mew_case *c = mew_model_case(m, key, program);

	assert_non_null(c);
	assert_non_null(mew_model_row(m, c, MEW_KIND_TIME));
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, median);
	return c;
}

static double number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_number(value))
		fail_msg("%s is no number", key);
	return json_number_value(value);
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value != NULL ? value : "";
}

static void no_null(json_t *value)
{
	json_t *item;
	const char *key;
	size_t i;

	assert_false(json_is_null(value));
	if (json_is_object(value))
		json_object_foreach (value, key, item)
			no_null(item);
	else
		json_array_foreach (value, i, item)
			no_null(item);
}

/* --- all of them --------------------------------------------------------------------------------------------------- */

static void same_model_same_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i <= MEW_COUNTOF(json_reports); i++) {
		const struct mew_report *report = i < MEW_COUNTOF(json_reports) ? json_reports[i] : &mew_report_markdown;
		struct mew_model *a = fx_results(), *b = fx_results();
		char *once = text_of(report, a), *again = text_of(report, b), name[64];

		assert_string_equal(once, again);
		(void)snprintf(name, sizeof name, "results%s", report->suffix);
		fx_golden(name, once);
		free(once);
		free(again);
		mew_model_free(a);
		mew_model_free(b);
	}
}

static void nothing_is_null_even_of_hostile_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(json_reports); i++) {
		struct mew_model *m = fx_results_open();
		struct mew_case *c = add_time(m, HOSTILE, HOSTILE, 5);
		json_t *top;

		c->label = mew_model_string(m, HOSTILE);
		assert_int_equal(mew_model_add_counter(m, c, HOSTILE, 1), 0);
		assert_int_equal(mew_model_add_counter(m, c, "inf", INFINITY), 0);
		assert_int_equal(mew_model_add_counter(m, c, "nan", NAN), 0);
		assert_int_equal(mew_model_add_fact(m, HOSTILE, HOSTILE), 0);
		mew_model_seal(m);
		top = parsed(json_reports[i], m);
		no_null(top);
		json_decref(top);
		mew_model_free(m);
	}
}

static void an_empty_model_is_a_sound_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(json_reports); i++) {
		struct mew_model *m = mew_model_new();

		mew_model_seal(m);
		json_decref(parsed(json_reports[i], m));
		mew_model_free(m);
	}
}

/* --- Google Benchmark ---------------------------------------------------------------------------------------------- */

static const json_t *gbench_row(const json_t *top, const char *name, size_t skip)
{
	const json_t *row, *rows = json_object_get(top, "benchmarks");
	size_t i;

	json_array_foreach (rows, i, row)
		if (strcmp(text(row, "name"), name) == 0 && skip-- == 0)
			return row;
	fail_msg("no row %s", name);
	return NULL;
}

static void gbench_rows_have_all_that_compare_py_reads(void **state)
{
	json_t *top = sample(&mew_report_gbench);
	const json_t *row;
	size_t i;

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(json_object_get(top, "context"), "json_schema_version")), 1);
	json_array_foreach (json_object_get(top, "benchmarks"), i, row) {
		(void)number(row, "real_time");
		(void)number(row, "cpu_time");
		(void)number(row, "iterations");
		assert_string_equal(text(row, "time_unit"), "ns");
		assert_true(text(row, "name")[0] != '\0' && text(row, "run_name")[0] != '\0');
	}
	row = gbench_row(top, "broken", 0);
	assert_true(json_is_true(json_object_get(row, "error_occurred")));
	assert_string_equal(text(row, "error_message"), BROKEN_WHY);
	assert_string_equal(text(row, "mew.skipped"), "real_time cpu_time");
	json_decref(top);
}

static void gbench_repetitions_share_a_name_and_have_aggregates(void **state)
{
	json_t *top = sample(&mew_report_gbench);
	const json_t *first = gbench_row(top, FIRST, 0), *second = gbench_row(top, FIRST, 1);

	(void)state;
	assert_true(number(first, "real_time") == 204800.0 / 64); /* per iteration, the median of the block */
	assert_true(number(first, "iterations") == 3 * 64);
	assert_true(number(second, "repetition_index") == 1);
	assert_true(number(second, "real_time") == (204800.0 + 205001.0) / 2 / 64);
	assert_string_equal(text(second, "mew.skipped"), "cpu_time");
	assert_string_equal(text(first, "mew.skipped"), "");
	assert_string_equal(text(gbench_row(top, FIRST "_median", 0), "run_type"), "aggregate");
	assert_true(number(gbench_row(top, FIRST "_cv", 0), "real_time") < 0.01);
	assert_string_equal(text(gbench_row(top, FIRST "_cv", 0), "aggregate_unit"), "percentage");
	assert_string_equal(text(gbench_row(top, FIRST "_mean", 0), "mew.skipped"), "cpu_time"); /* the second has none */
	assert_true(number(gbench_row(top, FIRST "_mean", 0), "cpu_time") == 0);
	json_decref(top);
}

static void gbench_iterations_are_of_all_threads(void **state)
{
	static const uint64_t real[] = { 1000, 1000 }, cpu[] = { 3200, 3200 };
	struct mew_run run = { .phase = MEW_PHASE_MEASUREMENT_VALUE, .loops = 10, .nsamples = 2, .real_ns = real, .cpu_ns = cpu };
	struct mew_model *m = mew_model_new();
	struct mew_case *c = add_time(m, "a", NULL, 100);
	json_t *top;

	(void)state;
	c->threads = 4;
	for (run.repetition = 0; run.repetition < 2; run.repetition++)
		assert_int_equal(mew_model_add_run(m, c, &run), 0);
	mew_model_seal(m);
	top = parsed(&mew_report_gbench, m);
	assert_true(number(gbench_row(top, "a", 1), "iterations") == 2 * 10 * 4);
	assert_true(number(gbench_row(top, "a", 1), "real_time") == 100);
	assert_true(number(gbench_row(top, "a", 1), "cpu_time") == 80);
	assert_true(number(gbench_row(top, "a_mean", 0), "cpu_time") == 80);
	json_decref(top);
	mew_model_free(m);
}

static void gbench_names_what_means_the_same(void **state)
{
	json_t *top = sample(&mew_report_gbench);
	const json_t *row = gbench_row(top, FIRST, 0);

	(void)state;
	assert_true(number(row, "allocs_per_iter") == 5);
	assert_true(number(row, "max_bytes_used") == 40312);
	assert_true(number(row, "total_allocated_bytes") == 4031200);
	assert_true(number(row, "net_heap_growth") == 0);
	assert_true(number(row, "bytes_per_second") == 3.2e8);
	assert_true(number(row, "memory.frees") == 500);
	assert_true(number(row, "ratio") == 3.25);
	assert_null(json_object_get(row, "time.migrations"));
	json_decref(top);
}

static void gbench_counters_cannot_take_a_members_place(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = add_time(m, "a", NULL, 5);
	json_t *top;

	(void)state;
	assert_int_equal(mew_model_add_counter(m, c, "real_time", 77), 0);
	assert_int_equal(mew_model_add_counter(m, c, "time.median_ns", 78), 0);
	mew_model_seal(m);
	top = parsed(&mew_report_gbench, m);
	assert_true(number(gbench_row(top, "a", 0), "real_time") == 5);
	assert_true(number(gbench_row(top, "a", 0), "counter.real_time") == 77);
	json_decref(top);
	mew_model_free(m);
}

/* --- Bencher ------------------------------------------------------------------------------------------------------- */

static void bmf_has_bencher_s_measures_with_intervals(void **state)
{
	json_t *top = sample(&mew_report_bmf);
	const json_t *row = json_object_get(top, FIRST), *latency = json_object_get(row, "latency");

	(void)state;
	assert_true(number(latency, "value") == 3200);
	assert_true(number(latency, "lower_value") < 3200 && number(latency, "upper_value") > 3200);
	assert_true(number(json_object_get(row, "throughput"), "value") == 3.2e8);
	assert_true(number(json_object_get(row, "throughput"), "lower_value") < 3.2e8);
	assert_true(number(json_object_get(row, "memory-peak-bytes"), "value") == 40312);
	assert_true(number(json_object_get(row, "counter-blocks"), "value") == -12);
	assert_true(number(json_object_get(row, "memory-leak-bytes-per-iteration"), "lower_value") == 23.5);
	assert_null(json_object_get(row, "time-median-low-ns"));
	assert_null(json_object_get(top, "broken")); /* a benchmark without measures is refused */
	json_decref(top);
}

static void equal_keys_of_two_programs_stay_apart(void **state)
{
	struct mew_model *m = mew_model_new();
	json_t *top;

	(void)state;
	(void)add_time(m, "same", "./one", 1);
	(void)add_time(m, "same", "./two", 2);
	(void)add_time(m, "other", "./two", 3);
	mew_model_seal(m);
	top = parsed(&mew_report_bmf, m);
	assert_true(number(json_object_get(json_object_get(top, "same (./one)"), "latency"), "value") == 1);
	assert_true(number(json_object_get(json_object_get(top, "same (./two)"), "latency"), "value") == 2);
	assert_non_null(json_object_get(top, "other"));
	json_decref(top);
	mew_model_free(m);
}

/* --- github-action-benchmark --------------------------------------------------------------------------------------- */

static void gha_has_only_what_should_be_small(void **state)
{
	json_t *top = sample(&mew_report_gha);
	const json_t *entry;
	size_t i, found = 0;

	(void)state;
	json_array_foreach (top, i, entry) {
		assert_true(number(entry, "value") >= 0);
		assert_true(text(entry, "unit")[0] != '\0');
		assert_null(strstr(text(entry, "name"), "per_second"));
		assert_null(strstr(text(entry, "name"), "samples"));
		if (strcmp(text(entry, "name"), FIRST ": time median_ns") != 0)
			continue;
		found++;
		assert_true(number(entry, "value") == 3200);
		assert_string_equal(text(entry, "range"), "\xc2\xb1 12.80");
		assert_non_null(strstr(text(entry, "extra"), "zlib/inflate [1k]"));
	}
	assert_int_equal(found, 1);
	json_decref(top);
}

/* --- OTLP ---------------------------------------------------------------------------------------------------------- */

static const json_t *metrics_of(const json_t *top)
{
	const json_t *resource = json_array_get(json_object_get(top, "resourceMetrics"), 0);
	const json_t *scope = json_array_get(json_object_get(resource, "scopeMetrics"), 0);

	return json_object_get(scope, "metrics");
}

static const json_t *points_of(const json_t *top, const char *name, const char *shape)
{
	const json_t *metric;
	size_t i;

	json_array_foreach (metrics_of(top), i, metric)
		if (strcmp(text(metric, "name"), name) == 0)
			return json_object_get(json_object_get(metric, shape), "dataPoints");
	fail_msg("no metric %s", name);
	return NULL;
}

static void otlp_whole_numbers_are_strings_and_shapes_fit(void **state)
{
	struct mew_model *m = fx_results_open();
	const json_t *point;
	json_t *top;

	(void)state;
	assert_int_equal(mew_model_add_fact(m, "date", "2026-01-02T03:04:05Z"), 0);
	mew_model_seal(m);
	top = parsed(&mew_report_otlp, m);
	point = json_array_get(points_of(top, "mew.memory.peak_bytes", "gauge"), 0);
	assert_string_equal(text(point, "asInt"), "40312");
	assert_string_equal(text(point, "startTimeUnixNano"), "1767323045000000000");
	assert_true(strcmp(text(point, "timeUnixNano"), text(point, "startTimeUnixNano")) > 0);
	assert_string_equal(text(json_array_get(points_of(top, "mew.memory.total_allocations", "sum"), 0), "asInt"), "500");
	assert_true(number(json_array_get(points_of(top, "mew.time.median_ns", "gauge"), 0), "asDouble") == 3200);
	json_decref(top);
	mew_model_free(m);
}

static void check_histogram(const json_t *point, const char *count)
{
	const json_t *bounds = json_object_get(point, "explicitBounds"), *counts = json_object_get(point, "bucketCounts");
	uint64_t sum = 0;

	assert_int_equal(json_array_size(counts), json_array_size(bounds) + 1);
	for (size_t i = 1; i < json_array_size(bounds); i++)
		assert_true(json_number_value(json_array_get(bounds, i - 1)) < json_number_value(json_array_get(bounds, i)));
	for (size_t i = 0; i < json_array_size(counts); i++)
		sum += strtoull(json_string_value(json_array_get(counts, i)), NULL, 10);
	assert_string_equal(text(point, "count"), count);
	assert_int_equal(sum, strtoull(count, NULL, 10));
}

/* A narrow range, and one that spans all a sample can be. */
static void otlp_histograms_have_one_bucket_more_than_bounds(void **state)
{
	const uint64_t wide[] = { 0, 1, 7, 1000, 123456789, UINT64_MAX };
	const struct mew_run run = { .phase = MEW_PHASE_MEASUREMENT_VALUE, .loops = 1, .nsamples = 6, .real_ns = wide };
	struct mew_model *m = fx_results_open();
	struct mew_case *c = add_time(m, "wide", NULL, 5);
	const json_t *times;
	json_t *top;

	(void)state;
	assert_int_equal(mew_model_add_run(m, c, &run), 0);
	mew_model_seal(m);
	top = parsed(&mew_report_otlp, m);
	times = points_of(top, "mew.time.iteration", "histogram");
	assert_int_equal(json_array_size(times), 2);
	check_histogram(json_array_get(times, 0), "5");
	check_histogram(json_array_get(times, 1), "6");
	check_histogram(json_array_get(points_of(top, "mew.memory.size_histogram", "histogram"), 0), "1301");
	json_decref(top);
	mew_model_free(m);
}

/* --- Markdown ------------------------------------------------------------------------------------------------------ */

static size_t unescaped_pipes(const char *line, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += line[i] == '|';
	return n;
}

static void markdown_rows_have_the_columns_of_their_head(void **state)
{
	struct mew_model *m = fx_results_open();
	struct mew_case *c = add_time(m, HOSTILE, NULL, 5);
	size_t columns = 0;
	char *md;

	(void)state;
	mew_model_fail(m, c, MEW_KIND_CPU, MEW_E_BODY, HOSTILE);
	mew_model_seal(m);
	md = text_of(&mew_report_markdown, m);
	for (const char *line = md; *line != '\0';) {
		size_t bytes = strcspn(line, "\n");

		if (*line == '|') {
			if (columns == 0)
				columns = unescaped_pipes(line, bytes);
			assert_int_equal(unescaped_pipes(line, bytes), columns);
		} else {
			columns = 0;
		}
		line += bytes + (line[bytes] == '\n');
	}
	assert_null(strstr(md, "<img"));
	assert_null(strstr(md, "</script"));
	assert_null(strchr(md, '\x01'));
	assert_null(strchr(md, '\xff'));
	free(md);
	mew_model_free(m);
}

static void markdown_has_the_figures_of_the_table(void **state)
{
	struct mew_model *m = fx_results();
	char *md = text_of(&mew_report_markdown, m);

	(void)state;
	assert_non_null(strstr(md, "| `zlib/inflate [1k]` | 3.200 | 0.4 |"));
	assert_non_null(strstr(md, "| median (\xc2\xb5s) |"));
	assert_non_null(strstr(md, "failed: the body left its loop early; every way out of MEW\\_LOOP must be its end"));
	free(md);
	mew_model_free(m);
}

static void megabyte_names_are_cut_for_people(void **state)
{
	size_t n = (size_t)1 << 20;
	char *name = malloc(n + 1), *md;
	struct mew_model *m = mew_model_new();

	(void)state;
	assert_non_null(name);
	memset(name, '|', n);
	name[n] = '\0';
	(void)add_time(m, name, NULL, 5);
	mew_model_seal(m);
	md = text_of(&mew_report_markdown, m);
	assert_true(strlen(md) < 4000);
	free(md);
	json_decref(parsed(&mew_report_gbench, m));
	mew_model_free(m);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_model_same_bytes),
		cmocka_unit_test(nothing_is_null_even_of_hostile_names),
		cmocka_unit_test(an_empty_model_is_a_sound_file),
		cmocka_unit_test(gbench_rows_have_all_that_compare_py_reads),
		cmocka_unit_test(gbench_repetitions_share_a_name_and_have_aggregates),
		cmocka_unit_test(gbench_iterations_are_of_all_threads),
		cmocka_unit_test(gbench_names_what_means_the_same),
		cmocka_unit_test(gbench_counters_cannot_take_a_members_place),
		cmocka_unit_test(bmf_has_bencher_s_measures_with_intervals),
		cmocka_unit_test(equal_keys_of_two_programs_stay_apart),
		cmocka_unit_test(gha_has_only_what_should_be_small),
		cmocka_unit_test(otlp_whole_numbers_are_strings_and_shapes_fit),
		cmocka_unit_test(otlp_histograms_have_one_bucket_more_than_bounds),
		cmocka_unit_test(markdown_rows_have_the_columns_of_their_head),
		cmocka_unit_test(markdown_has_the_figures_of_the_table),
		cmocka_unit_test(megabyte_names_are_cut_for_people),
	};

	return cmocka_run_group_tests_name("rows", tests, NULL, NULL);
}
