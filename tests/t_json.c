/*
 * t_json.c - results survive the file, byte for byte, and no file can break the reader.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fx_results.h"
#include "tools/read_json.h"

extern const struct mew_report mew_report_json, mew_report_table, mew_report_csv, mew_report_folded;

static char *json_of(const struct mew_model *m, size_t *bytes)
{
	return fx_report(&mew_report_json, &(struct mew_report_input){ .model = m }, bytes);
}

static char *sample(size_t *bytes)
{
	struct mew_model *m = fx_results();
	char *text = json_of(m, bytes);

	mew_model_free(m);
	return text;
}

static struct mew_model *reread(const char *text, size_t bytes)
{
	struct mew_error err = { .status = MEW_OK };
	struct mew_model *m = mew_read_json_text("test.mew.json", text, bytes, &err);

	if (m == NULL)
		fail_msg("%s", err.text);
	return m;
}

/* --- written and read back ------------------------------------------------------------------------------------------
 */

static void looks_as_agreed(void **state)
{
	char *text = sample(NULL), *again = sample(NULL);

	(void)state;
	fx_golden("results.mew.json", text);
	assert_string_equal(text, again); /* the same model, the same bytes */
	free(text);
	free(again);
}

static void same_bytes_after_a_round(void **state)
{
	size_t bytes, again_bytes;
	char *text = sample(&bytes), *again;
	struct mew_model *m = reread(text, bytes);

	(void)state;
	again = json_of(m, &again_bytes);
	assert_int_equal(bytes, again_bytes);
	assert_string_equal(text, again);
	free(text);
	free(again);
	mew_model_free(m);
}

static void odd_values_survive(void **state)
{
	struct mew_model *m = fx_results_open(), *back;
	struct mew_case *c = mew_model_case(m, "odd \x01\"\\\n</script> \xe6\x97\xa5", NULL);
	const struct mew_run run = { .phase = 77, .loops = UINT64_MAX };
	size_t bytes, again_bytes;
	char *text, *again;

	(void)state;
	mew_model_row(m, c, MEW_KIND_TIME);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, 5e-324);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEAN_NS, 1.7976931348623157e308);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MIN_NS, -0.0);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MAX_NS, 1e20);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_P90_NS, 0.1);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_ITERATIONS, UINT64_MAX);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_LOOPS, INT64_MAX);
	assert_int_equal(mew_model_add_run(m, c, &run), 0);
	assert_int_equal(mew_model_add_counter(m, c, "negative", -1e-7), 0);
	mew_model_seal(m);
	text = json_of(m, &bytes);
	back = reread(text, bytes);
	again = json_of(back, &again_bytes);
	assert_string_equal(text, again);
	c = mew_model_find(back, "odd \x01\"\\\n</script> \xe6\x97\xa5");
	assert_non_null(c);
	assert_true(c->time.median_ns == 5e-324 && c->time.mean_ns == 1.7976931348623157e308 && c->time.max_ns == 1e20);
	assert_true(c->time.iterations == UINT64_MAX && c->time.loops == INT64_MAX);
	assert_int_equal(c->runs[0].phase, 77);
	assert_true(c->runs[0].loops == UINT64_MAX);
	mew_model_free(m);
	mew_model_free(back);
	free(text);
	free(again);
}

/* Texts that are not UTF-8 are repaired once; then the file is stable. */
static void bad_text_is_repaired_once(void **state)
{
	struct mew_model *m = mew_model_new(), *back;
	struct mew_case *c = mew_model_case(m, "bad \xff\xc3", NULL);
	size_t bytes;
	char *text, *again;

	(void)state;
	mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_BODY, "\xe6\x97");
	mew_model_seal(m);
	text = json_of(m, &bytes);
	back = reread(text, bytes);
	again = json_of(back, NULL);
	assert_string_equal(text, again);
	mew_model_free(m);
	mew_model_free(back);
	free(text);
	free(again);
}

static void reads_what_was_measured(void **state)
{
	size_t bytes;
	char *text = sample(&bytes);
	struct mew_model *m = reread(text, bytes);
	const struct mew_case *c = mew_model_find(m, "zlib/inflate/case:0"), *broken = mew_model_find(m, "broken");

	(void)state;
	assert_true(m->sealed);
	assert_int_equal(m->ncases, 6);
	assert_int_equal(m->grade, 'C');
	assert_string_equal(mew_model_fact(m, "cpu_model"), "Imaginary 9000");
	assert_string_equal(c->label, "1k");
	assert_string_equal(c->time.label, "1k");
	assert_string_equal(c->program, "./bench/codec_bench");
	assert_true(c->time.median_ns == 3200);
	assert_string_equal(mew_row_why((const void *)&c->time, MEW_FIG_MIGRATIONS),
			    "the kernel does not tell this thread's migrations");
	assert_false(mew_row_has((const void *)&c->time, MEW_FIG_PAGE_FAULTS));
	assert_int_equal(c->nruns, 4);
	assert_int_equal(c->runs[0].phase, MEW_PHASE_CALIBRATION_LOOPS);
	assert_null(c->runs[0].cpu_ns);
	assert_true(c->runs[2].real_ns[1] == 205001);
	assert_int_equal(c->nsamples, 6);
	assert_true(c->samples[4].stack == MEW_NO_STACK);
	assert_false(c->samples[4].blocked);
	assert_true(c->samples[5].blocked);
	assert_int_equal(broken->time.status, MEW_E_LOOP);
	assert_string_equal(broken->output, "opening \"data.bin\"\ndata.bin: no such file\n");
	assert_true(m->locations[3].module == MEW_NO_MODULE && m->locations[3].offset == UINT64_MAX - 15);
	assert_string_equal(m->locations[2].why, "the file has no symbol there");
	assert_int_equal(m->locations[2].start, 0xbe00);
	mew_model_free(m);
	free(text);
}

/* A strict reader of another make takes it, and finds the names that the manual promises. */
static void others_can_read_it(void **state)
{
	char *text = sample(NULL);
	json_t *top = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *first;

	(void)state;
	assert_non_null(top);
	first = json_array_get(json_object_get(top, "cases"), 0);
	assert_int_equal(json_integer_value(json_object_get(top, "schema")), 1);
	assert_string_equal(json_string_value(json_object_get(top, "mew")), MEW_VERSION);
	assert_true(json_number_value(json_object_get(json_object_get(first, "time"), "median_ns")) == 3200);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "memory"), "peak_bytes")), 40312);
	assert_string_equal(json_string_value(json_object_get(json_object_get(first, "cpu"), "top_function")),
			    "inflate_fast (inffast.c:50)");
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(first, "runs"), 0), "phase")), "calibration/loops");
	json_decref(top);
	free(text);
}

/* --- refused, and why -----------------------------------------------------------------------------------------------
 */

static void refused_text(const char *text, size_t bytes, int status, const char *why)
{
	struct mew_error err = { .status = MEW_OK };
	struct mew_model *m = mew_read_json_text("x.json", text, bytes, &err);

	if (m != NULL)
		fail_msg("taken: %.200s", text);
	assert_int_equal(err.status, status);
	if (strstr(err.text, why) == NULL || strstr(err.text, "x.json") == NULL)
		fail_msg("'%s' does not say '%s' of x.json", err.text, why);
}

static void refused(const char *text, const char *why)
{
	refused_text(text, strlen(text), MEW_E_INVALID, why);
}

static void foreign_files_are_refused(void **state)
{
	(void)state;
	refused("", "not sound JSON");
	refused("{", "line 1");
	refused("[1, 2]", "not a mew result");
	refused("\"text\"", "not a mew result");
	refused("{\"context\": {}, \"benchmarks\": []}", "it has no \"schema\"");
	refused("{\"schema\": 7}", "not a mew result");
	refused("{\"schema\": \"1\", \"cases\": []}", "not a mew result");
	refused("{\"schema\": 7, \"mew\": \"9.0\"}",
		"was written by schema 7, this mew reads up to 1: use a newer mew");
	refused("{\"schema\": 1, \"mew\": \"0.1.0\"}", "not a mew result");
	refused("{\"schema\": 1, \"cases\": []} tail", "not sound JSON");
	refused("\x1f\x8b\x08", "not sound JSON");
}

/* The sample with one piece of text replaced. */
static void refused_with(const char *old, const char *new, const char *why)
{
	size_t bytes;
	char *text = sample(&bytes), *at = strstr(text, old), *changed = NULL;

	if (at == NULL)
		fail_msg("the sample has no %s", old);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old)) >= 0);
	refused(changed, why);
	free(changed);
	free(text);
}

static void damage_is_named(void **state)
{
	(void)state;
	refused_with("\"status\": \"MEW_OK\"", "\"status\": \"MEW_FINE\"", "'status' must be a status this mew knows");
	refused_with("\"status\": \"MEW_OK\"", "\"status\": 0", "case zlib/inflate/case:0: 'status'");
	refused_with("\"threads\": 1", "\"threads\": -1", "'threads' must be a whole number");
	refused_with("\"threads\": 1", "\"threads\": 4294967296", "'threads' must be a whole number below 2^32");
	refused_with("\"median_ns\": 3200", "\"median_ns\": \"3200\"", "'median_ns' must be a number");
	refused_with("\"median_ns\": 3200", "\"median_ns\": [3200]", "'median_ns' must be a number");
	refused_with("\"peak_bytes\": 40312", "\"peak_bytes\": 40312.5", "'peak_bytes' must be a whole number");
	refused_with("\"stack\": [0", "\"stack\": [5", "'stack' must be a number in its list");
	refused_with("\"stack\": [0", "\"stack\": [18446744073709551615", "x.json");
	refused_with("\"stack\": [0", "\"stack\": [\"18446744073709551616\"", "below 2^64");
	refused_with("\"thread\": [0,", "\"thread\": [", "'thread' must be a list as long as the other");
	refused_with("\"weight_ns\": [100000", "\"weight_ns\": [{}", "'weight_ns' must be a whole number");
	refused_with("\"real_ns\":[204800]", "\"real_ns\":[204800,1]", "'cpu_ns' must be a list as long as the other");
	refused_with("\"calibration/loops\"", "\"calibration/dreams\"", "'phase' must be a phase this mew knows");
	refused_with("\"low\":64", "\"low\":-1", "'low' must be a whole number");
	refused_with("\"high\":127,", "", "'high' must be a whole number");
	refused_with("\"name\":\"apr\"", "\"name\":7", "'name' must be a text");
	refused_with("[0,4096,", "[5,4096,", "'heap_stacks' must be a number in its list");
	refused_with("[0,4096,", "[0,null,", "'heap_stacks' must be a whole number");
	refused_with("\"lines\":[[0,130]]", "\"lines\":[[4,130]]", "location 0: 'lines' must be a number in its list");
	refused_with("\"module\":0,\"offset\"", "\"module\":2,\"offset\"",
		     "location 0: 'module' must be a number in its list");
	refused_with("\"offset\":\"0x1139\"", "\"offset\":\"1139\"", "'offset' must be a number like");
	refused_with("\"offset\":\"0x1139\"", "\"offset\":4409", "'offset' must be a text");
	refused_with("\t\t[1,0]", "\t\t[6,0]", "stack 0: 'stacks' must be a number in its list");
	refused_with("\t\t[1,0]", "\t\t7", "'stacks' must be a list of lists");
	refused_with("\"letter\": \"C\"", "\"letter\": \"E\"", "'letter' must be one of A, B, C, D");
	refused_with("\"kernel\": \"Linux 6.1.0\"", "\"kernel\": 6", "'kernel' must be a text");
	refused_with("\"key\": \"empty\"", "\"key\": \"broken\"", "one that no other case of the program has");
	refused_with("\"key\": \"empty\"", "\"key\": \"\"", "'key' must be a name");
	refused_with("\"key\": \"empty\"", "\"key\": null", "'key' must be a text");
	refused_with("\"ratio\": 3.25", "\"ratio\": \"3.25\"", "'ratio' must be a number");
	refused_with("\"hooks\": \"temperature\"", "\"hooks\": 1", "'hooks' must be a text or null");
	refused_with("\"modules\": [", "\"modules\": 3, \"other\": [", "'modules' must be a list");
}

static void what_is_not_known_is_passed_over(void **state)
{
	static const char text[] =
		"{\"schema\": 1, \"mew\": \"0.1.9\", \"new\": [1], \"cases\": [{\"key\": \"a\", \"threads\": 1, "
		"\"bytes_per_iteration\": 0, \"items_per_iteration\": 0, \"new\": {}, \"time\": "
		"{\"status\": \"MEW_OK\", \"new_figure_ns\": 5, \"median_ns\": 4}}]}";
	struct mew_model *m = reread(text, sizeof text - 1);

	(void)state;
	assert_true(mew_model_find(m, "a")->time.median_ns == 4);
	assert_int_equal(m->grade, 0);
	mew_model_free(m);
}

static void equal_things_are_renumbered(void **state)
{
	static const char text[] =
		"{\"schema\": 1, \"mew\": \"0\", \"modules\": [{\"path\": \"a\", \"build_id\": \"\", \"size\": 1}, "
		"{\"path\": \"a\", "
		"\"build_id\": \"\", \"size\": 1}], \"locations\": [{\"module\": 0, \"offset\": \"0x1\"}, {\"module\": "
		"1, "
		"\"offset\": \"0x1\"}], \"stacks\": [[0, 1], [1, 0], []], \"cases\": [{\"key\": \"a\", \"threads\": 1, "
		"\"bytes_per_iteration\": 0, \"items_per_iteration\": 0, \"heap_stacks\": [[1, 1, 1, 1, 1], [2, 1, 1, "
		"1, 1]]}]}";
	struct mew_model *m = reread(text, sizeof text - 1);
	size_t bytes;
	char *again;

	(void)state;
	assert_int_equal(m->nmodules, 1);
	assert_int_equal(m->nlocations, 1);
	again = json_of(m, &bytes); /* whatever points somewhere points into its list */
	mew_model_free(m);
	m = reread(again, bytes);
	free(again);
	mew_model_free(m);
}

/* --- hostile -------------------------------------------------------------------------------------------------------
 */

/* Whatever was taken must be fit for every report. */
static void use(struct mew_model *m)
{
	const struct mew_report *const reports[] = { &mew_report_json, &mew_report_table, &mew_report_csv };

	for (size_t i = 0; i < MEW_COUNTOF(reports); i++)
		free(fx_report(reports[i], &(struct mew_report_input){ .model = m, .utf8 = 1, .verbose = 1 }, NULL));
	for (size_t i = 0; i < m->ncases; i++)
		for (int kind = MEW_KIND_MEMORY; kind <= MEW_KIND_CPU; kind++)
			free(fx_report(&mew_report_folded,
				       &(struct mew_report_input){ .model = m, .only_case = i, .only_kind = kind },
				       NULL));
	mew_model_free(m);
}

/* Returns whether it was taken; a refusal has a sentence. */
static bool survives(const char *text, size_t bytes)
{
	struct mew_error err = { .status = MEW_OK };
	struct mew_model *m = mew_read_json_text("hostile.json", text, bytes, &err);

	if (m == NULL) {
		assert_int_not_equal(err.status, MEW_OK);
		assert_non_null(strstr(err.text, "hostile.json"));
		assert_null(strchr(err.text, '\n'));
		return false;
	}
	use(m);
	return true;
}

static void cut_anywhere(void **state)
{
	size_t bytes;
	char *text = sample(&bytes);

	(void)state;
	for (size_t at = 0; at + 2 < bytes; at += 97)
		assert_false(survives(text, at));
	free(text);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void flipped_bytes(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;
	size_t bytes, taken = 0;
	char *text = sample(&bytes);

	(void)state;
	for (int i = 0; i < 600; i++) {
		char *copy = malloc(bytes + 1);

		assert_non_null(copy);
		memcpy(copy, text, bytes + 1);
		for (uint64_t n = 1 + next_random(&seed) % 3; n > 0; n--)
			copy[next_random(&seed) % bytes] = (char)next_random(&seed);
		taken += survives(copy, bytes);
		free(copy);
	}
	assert_true(taken > 0); /* harmless flips, in names and figures, are taken: the flips reach behind the parser */
	free(text);
}

/* Every value in turn becomes a value of another type. */
static size_t replace_each(json_t *top, json_t *at)
{
	json_t *const others[] = { json_null(), json_integer(-1), json_integer(INT64_MAX), json_string("\xe6\x97\xa5"),
				   json_array() };
	size_t n = json_is_object(at) ? json_object_size(at) : json_array_size(at), tried = 0;
	void *iter = json_object_iter(at);

	for (size_t i = 0; i < n; i++) {
		json_t *old = json_incref(json_is_object(at) ? json_object_iter_value(iter) : json_array_get(at, i));

		for (size_t k = 0; k < MEW_COUNTOF(others); k++) {
			char *text;

			if (json_is_object(at))
				assert_int_equal(json_object_iter_set(at, iter, others[k]), 0);
			else
				assert_int_equal(json_array_set(at, i, others[k]), 0);
			text = json_dumps(top, JSON_COMPACT);
			assert_non_null(text);
			(void)survives(text, strlen(text));
			tried++;
			free(text);
		}
		if (json_is_object(at))
			assert_int_equal(json_object_iter_set(at, iter, old), 0);
		else
			assert_int_equal(json_array_set(at, i, old), 0);
		tried += replace_each(top, old);
		json_decref(old);
		iter = json_object_iter_next(at, iter);
	}
	for (size_t k = 0; k < MEW_COUNTOF(others); k++)
		json_decref(others[k]);
	return tried;
}

static void other_types_anywhere(void **state)
{
	char *text = sample(NULL);
	json_t *top = json_loads(text, 0, NULL);

	(void)state;
	assert_non_null(top);
	assert_true(replace_each(top, top) > 2000);
	json_decref(top);
	free(text);
}

static void deep_nesting_is_refused(void **state)
{
	size_t bytes = 1000000;
	char *text = malloc(bytes);

	(void)state;
	assert_non_null(text);
	memset(text, '[', bytes);
	assert_false(survives(text, bytes));
	free(text);
}

/* --- files ---------------------------------------------------------------------------------------------------------
 */

static void files_are_read(void **state)
{
	char path[] = "/tmp/mew-json-XXXXXX", blanks[1000];
	int fd = mkstemp(path);
	size_t bytes;
	char *text = sample(&bytes);
	struct mew_error err = { .status = MEW_OK };
	struct mew_model *m;

	(void)state;
	assert_true(fd >= 0);
	memset(blanks, ' ', sizeof blanks);
	for (int i = 0; i < 200; i++) /* more than one read takes */
		assert_int_equal(write(fd, blanks, sizeof blanks), (ssize_t)sizeof blanks);
	assert_int_equal(write(fd, text, bytes), (ssize_t)bytes);
	assert_int_equal(close(fd), 0);
	m = mew_read_json(path, &err);
	assert_non_null(m);
	assert_int_equal(m->ncases, 6);
	mew_model_free(m);
	assert_int_equal(unlink(path), 0);
	assert_null(mew_read_json(path, &err));
	assert_int_equal(err.status, MEW_E_IO);
	assert_non_null(strstr(err.text, path));
	assert_null(mew_read_json("/", &err));
	assert_int_equal(err.status, MEW_E_IO);
	assert_null(mew_read_json("/dev/null", NULL)); /* no error slot */
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_agreed),
		cmocka_unit_test(same_bytes_after_a_round),
		cmocka_unit_test(odd_values_survive),
		cmocka_unit_test(bad_text_is_repaired_once),
		cmocka_unit_test(reads_what_was_measured),
		cmocka_unit_test(others_can_read_it),
		cmocka_unit_test(foreign_files_are_refused),
		cmocka_unit_test(damage_is_named),
		cmocka_unit_test(what_is_not_known_is_passed_over),
		cmocka_unit_test(equal_things_are_renumbered),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(flipped_bytes),
		cmocka_unit_test(other_types_anywhere),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(files_are_read),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
