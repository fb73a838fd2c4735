/*
 * t_speedscope.c - the speedscope file: what its importer throws at, and what it would silently show wrong.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fx_results.h"
#include "writer.h"

extern const struct mew_report mew_report_speedscope;

/* Parsed strictly: no bad UTF-8, no NaN, no key twice. */
static json_t *file_of(const struct mew_model *m)
{
	char *text = fx_report(&mew_report_speedscope, &(struct mew_report_input){ .model = m }, NULL);
	json_error_t err;
	json_t *file = json_loads(text, JSON_REJECT_DUPLICATES, &err);

	if (file == NULL)
		fail_msg("line %d: %s", err.line, err.text);
	free(text);
	return file;
}

static json_t *sample(void)
{
	struct mew_model *m = fx_results();
	json_t *file = file_of(m);

	mew_model_free(m);
	return file;
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static json_int_t number_of(const json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

static const json_t *profile(const json_t *file, size_t i)
{
	return json_array_get(json_object_get(file, "profiles"), i);
}

static void check_frame(const json_t *frame)
{
	assert_true(json_is_string(json_object_get(frame, "name")));
	assert_true(json_object_get(frame, "file") == NULL || json_is_string(json_object_get(frame, "file"))); /* no null */
	assert_true(json_object_get(frame, "line") == NULL || number_of(frame, "line") > 0);
}

static void check_profile(const json_t *p, size_t nframes)
{
	const json_t *samples = json_object_get(p, "samples"), *weights = json_object_get(p, "weights");
	const char *unit = text_of(p, "unit");
	json_int_t sum = 0;

	assert_string_equal(text_of(p, "type"), "sampled");
	assert_true(strcmp(unit, "nanoseconds") == 0 || strcmp(unit, "bytes") == 0 || strcmp(unit, "none") == 0);
	assert_true(json_array_size(samples) > 0);
	assert_int_equal(json_array_size(samples), json_array_size(weights));
	for (size_t i = 0; i < json_array_size(samples); i++) {
		const json_t *stack = json_array_get(samples, i);

		assert_true(json_is_integer(json_array_get(weights, i)));
		assert_true(json_integer_value(json_array_get(weights, i)) > 0);
		sum += json_integer_value(json_array_get(weights, i));
		assert_true(json_array_size(stack) > 0);
		for (size_t k = 0; k < json_array_size(stack); k++)
			assert_true((size_t)json_integer_value(json_array_get(stack, k)) < nframes);
	}
	assert_int_equal(number_of(p, "startValue"), 0);
	assert_int_equal(number_of(p, "endValue"), sum);
}

static void check_file(const json_t *file)
{
	const json_t *frames = json_object_get(json_object_get(file, "shared"), "frames"),
		     *profiles = json_object_get(file, "profiles");

	assert_string_equal(text_of(file, "$schema"), "https://www.speedscope.app/file-format-schema.json");
	for (size_t i = 0; i < json_array_size(frames); i++)
		check_frame(json_array_get(frames, i));
	assert_true(json_array_size(profiles) > 0);
	for (size_t i = 0; i < json_array_size(profiles); i++)
		check_profile(json_array_get(profiles, i), json_array_size(frames));
	assert_true((size_t)number_of(file, "activeProfileIndex") < json_array_size(profiles));
}

static void looks_as_agreed(void **state)
{
	struct mew_model *m = fx_results();
	char *text = fx_report(&mew_report_speedscope, &(struct mew_report_input){ .model = m }, NULL);

	(void)state;
	fx_golden("results.speedscope.json", text);
	free(text);
	mew_model_free(m);
}

static void sums_are_kept(void **state)
{
	static const json_int_t sums[] = { 550007, 4608, 9344, 13, 512 };
	static const char *const units[] = { "nanoseconds", "bytes", "bytes", "none", "bytes" };
	json_t *file = sample();

	(void)state;
	check_file(file);
	assert_int_equal(json_array_size(json_object_get(file, "profiles")), MEW_COUNTOF(sums));
	for (size_t i = 0; i < MEW_COUNTOF(sums); i++) {
		assert_int_equal(number_of(profile(file, i), "endValue"), sums[i]);
		assert_string_equal(text_of(profile(file, i), "unit"), units[i]);
	}
	json_decref(file);
}

static void stacks_begin_at_the_root_with_inlined_functions_in_them(void **state)
{
	static const char *const names[] = { "main", "inflate", "copy;<match>\n", "libz.so.1+0xbe00" };
	json_t *file = sample();
	const json_t *stack = json_array_get(json_object_get(profile(file, 0), "samples"), 1);
	const json_t *frames = json_object_get(json_object_get(file, "shared"), "frames");

	(void)state;
	assert_int_equal(json_array_size(stack), MEW_COUNTOF(names));
	for (size_t i = 0; i < MEW_COUNTOF(names); i++)
		assert_string_equal(text_of(json_array_get(frames, (size_t)json_integer_value(json_array_get(stack, i))),
					    "name"),
				    names[i]);
	json_decref(file);
}

/* Names of profiles say where the view in time order means nothing. */
static void only_samples_have_an_order(void **state)
{
	json_t *file = sample();

	(void)state;
	assert_null(strstr(text_of(profile(file, 0), "name"), "no time order"));
	for (size_t i = 1; i < json_array_size(json_object_get(file, "profiles")); i++)
		assert_non_null(strstr(text_of(profile(file, i), "name"), "no time order"));
	json_decref(file);
}

/* The model keeps each thread's samples together. */
static void threads_interleave_by_time(void **state)
{
	static const uint64_t times[] = { 10, 30, 50, 20, 40 };
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "case", NULL);
	const json_t *weights;
	json_t *file;

	(void)state;
	mew_model_row(m, c, MEW_KIND_CPU);
	for (uint32_t i = 0; i < MEW_COUNTOF(times); i++)
		assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ MEW_NO_STACK, i / 3, times[i], times[i],
										  false }), 0);
	mew_model_seal(m);
	file = file_of(m);
	check_file(file);
	weights = json_object_get(profile(file, 0), "weights");
	for (size_t i = 0; i < MEW_COUNTOF(times); i++)
		assert_int_equal(json_integer_value(json_array_get(weights, i)), 10 * (json_int_t)(i + 1));
	json_decref(file);
	mew_model_free(m);
}

static void nothing_in_a_model_breaks_the_file(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "\xff\"\n", NULL);
	uint32_t location = mew_model_location(m, MEW_NO_MODULE, 5);
	json_t *file;

	(void)state;
	mew_model_row(m, c, MEW_KIND_CPU);
	assert_int_equal(mew_model_set_lines(m, location, &(struct mew_line){
				 mew_model_function(m, "\xf0\x01</script>", "\xe2\x82", 1, MEW_NO_MODULE), 0 }, 1), 0);
	assert_int_equal(mew_model_stack(m, &location, 1), 0);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ .time_ns = i, .weight_ns = UINT64_MAX - i }),
				 0);
	mew_model_seal(m);
	file = file_of(m);
	check_file(file);
	assert_true(number_of(profile(file, 0), "endValue") == INT64_MAX);
	json_decref(file);
	mew_model_free(m);
}

/* A file without a profile is an error to the reader, so there is none. */
static void no_stacks_is_no_file(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_error err = { .status = MEW_OK };
	struct mew_writer w;
	char *text;

	(void)state;
	assert_int_equal(mew_model_add_sample(mew_model_case(m, "weightless", NULL), &(struct mew_cpu_sample){ 0 }), 0);
	mew_model_seal(m);
	mew_writer_memory(&w);
	assert_int_equal(mew_report_speedscope.write(&(struct mew_report_input){ .model = m }, &w, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "--cpu"));
	text = mew_writer_take(&w, NULL);
	assert_string_equal(text, "");
	free(text);
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_agreed),
		cmocka_unit_test(sums_are_kept),
		cmocka_unit_test(stacks_begin_at_the_root_with_inlined_functions_in_them),
		cmocka_unit_test(only_samples_have_an_order),
		cmocka_unit_test(threads_interleave_by_time),
		cmocka_unit_test(nothing_in_a_model_breaks_the_file),
		cmocka_unit_test(no_stacks_is_no_file),
	};

	return cmocka_run_group_tests_name("speedscope", tests, NULL, NULL);
}
