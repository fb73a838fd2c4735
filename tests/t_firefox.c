/*
 * t_firefox.c - the Firefox profile: its tables fit together, and readers of version 57 find what they need.
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
#include "writer.h"

extern const struct mew_report mew_report_firefox;

static json_t *file_of(const struct mew_model *m)
{
	char *text = fx_report(&mew_report_firefox, &(struct mew_report_input){ .model = m }, NULL);
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

/* A member of a member; both must be there. */
static const json_t *at(const json_t *object, const char *table, const char *column)
{
	const json_t *found = json_object_get(json_object_get(object, table), column);

	if (found == NULL)
		fail_msg("there is no %s.%s", table, column);
	return found;
}

static const json_t *thread_of(const json_t *file, size_t i)
{
	return json_array_get(json_object_get(file, "threads"), i);
}

static size_t length_of(const json_t *thread, const char *table)
{
	return (size_t)json_integer_value(at(thread, table, "length"));
}

static json_int_t item(const json_t *thread, const char *table, const char *column, size_t i)
{
	return json_integer_value(json_array_get(at(thread, table, column), i));
}

/* --- how tables fit together ----------------------------------------------------------------------------------------
 */

static void check_lengths(const json_t *thread)
{
	static const char *const tables[] = { "samples",   "markers",	    "stackTable",   "frameTable",
					      "funcTable", "resourceTable", "nativeSymbols" };

	for (size_t i = 0; i < MEW_COUNTOF(tables); i++) {
		json_t *table = json_object_get(thread, tables[i]), *column;
		const char *key;

		json_object_foreach(table, key, column)
			if (json_is_array(column) && json_array_size(column) != length_of(thread, tables[i]))
				fail_msg("%s.%s has another length than its table", tables[i], key);
	}
}

/* Every number of a column is null, -1 where that means none, or a row of the table it speaks of. */
static void check_index(const json_t *thread, const char *table, const char *column, size_t limit, bool optional)
{
	const json_t *values = at(thread, table, column);

	for (size_t i = 0; i < json_array_size(values); i++) {
		const json_t *value = json_array_get(values, i);

		if (optional && (json_is_null(value) || json_integer_value(value) == -1))
			continue;
		assert_true(json_is_integer(value));
		if (json_integer_value(value) < 0 || (size_t)json_integer_value(value) >= limit)
			fail_msg("%s.%s[%zu] is out of range", table, column, i);
	}
}

static void check_indices(const json_t *file, const json_t *thread)
{
	size_t strings = json_array_size(at(file, "shared", "stringArray")), libs = json_array_size(json_object_get(file, "libs"));

	check_index(thread, "samples", "stack", length_of(thread, "stackTable"), false);
	check_index(thread, "stackTable", "frame", length_of(thread, "frameTable"), false);
	check_index(thread, "stackTable", "prefix", length_of(thread, "stackTable"), true);
	check_index(thread, "frameTable", "func", length_of(thread, "funcTable"), false);
	check_index(thread, "frameTable", "category", json_array_size(at(file, "meta", "categories")), false);
	check_index(thread, "frameTable", "nativeSymbol", length_of(thread, "nativeSymbols"), true);
	check_index(thread, "funcTable", "name", strings, false);
	check_index(thread, "funcTable", "fileName", strings, true);
	check_index(thread, "funcTable", "resource", length_of(thread, "resourceTable"), true);
	check_index(thread, "resourceTable", "lib", libs, false);
	check_index(thread, "resourceTable", "name", strings, false);
	check_index(thread, "nativeSymbols", "libIndex", libs, false);
	check_index(thread, "nativeSymbols", "name", strings, false);
	if (json_object_get(thread, "nativeAllocations") != NULL)
		check_index(thread, "nativeAllocations", "stack", length_of(thread, "stackTable"), false);
}

static void check_order(const json_t *thread)
{
	const json_t *times = at(thread, "samples", "time"), *prefixes = at(thread, "stackTable", "prefix");

	for (size_t i = 1; i < json_array_size(times); i++)
		assert_true(json_number_value(json_array_get(times, i - 1)) <= json_number_value(json_array_get(times, i)));
	for (size_t i = 0; i < json_array_size(prefixes); i++) /* parents come before their children */
		if (!json_is_null(json_array_get(prefixes, i)))
			assert_true(json_integer_value(json_array_get(prefixes, i)) < (json_int_t)i);
}

/* An inlined function has the address of the one it was laid into. */
static void check_inlined(const json_t *thread)
{
	for (size_t i = 0; i < length_of(thread, "stackTable"); i++) {
		size_t frame = (size_t)item(thread, "stackTable", "frame", i), outer;
		json_int_t depth = item(thread, "frameTable", "inlineDepth", frame);

		if (depth == 0)
			continue;
		outer = (size_t)item(thread, "stackTable", "frame", (size_t)item(thread, "stackTable", "prefix", i));
		assert_int_equal(item(thread, "frameTable", "inlineDepth", outer), depth - 1);
		assert_true(item(thread, "frameTable", "address", outer) == item(thread, "frameTable", "address", frame));
		assert_true(item(thread, "frameTable", "nativeSymbol", outer) ==
			    item(thread, "frameTable", "nativeSymbol", frame));
	}
}

static void check_file(const json_t *file)
{
	const json_t *threads = json_object_get(file, "threads"), *categories = at(file, "meta", "categories");

	assert_int_equal(json_integer_value(at(file, "meta", "preprocessedProfileVersion")), 57);
	assert_true(json_number_value(at(file, "meta", "interval")) > 0);
	assert_string_equal(json_string_value(json_object_get(json_array_get(categories, 0), "color")), "grey");
	for (size_t i = 0; i < json_array_size(categories); i++)
		assert_string_equal(json_string_value(json_array_get(json_object_get(json_array_get(categories, i),
										     "subcategories"), 0)),
				    "Other");
	assert_true(json_array_size(threads) > 0);
	for (size_t i = 0; i < json_array_size(threads); i++) {
		const json_t *thread = json_array_get(threads, i);

		assert_true(json_is_string(json_object_get(thread, "pid")));
		assert_int_equal(json_integer_value(json_object_get(thread, "tid")), i + 1);
		check_lengths(thread);
		check_indices(file, thread);
		check_order(thread);
		check_inlined(thread);
	}
}

/* --- tests ----------------------------------------------------------------------------------------------------------
 */

static double sum_of(const json_t *thread, const char *table)
{
	const json_t *weights = at(thread, table, "weight");
	double sum = 0;

	for (size_t i = 0; i < json_array_size(weights); i++)
		sum += json_number_value(json_array_get(weights, i));
	return sum;
}

static void looks_as_agreed(void **state)
{
	struct mew_model *m = fx_results();
	char *text = fx_report(&mew_report_firefox, &(struct mew_report_input){ .model = m }, NULL);

	(void)state;
	fx_golden("results.firefox.json", text);
	free(text);
	mew_model_free(m);
}

static void sums_are_kept(void **state)
{
	json_t *file = sample();

	(void)state;
	check_file(file);
	assert_int_equal(json_array_size(json_object_get(file, "threads")), 5);
	assert_true(fabs(sum_of(thread_of(file, 0), "samples") - 0.35) < 1e-12);
	assert_true(fabs(sum_of(thread_of(file, 1), "samples") - 0.200007) < 1e-12);
	assert_true(sum_of(thread_of(file, 2), "samples") == 4608);
	assert_true(sum_of(thread_of(file, 2), "nativeAllocations") == 9344);
	assert_true(sum_of(thread_of(file, 3), "samples") == 13);
	assert_true(sum_of(thread_of(file, 4), "samples") == 512);
	json_decref(file);
}

static void a_blocked_thread_uses_no_processor(void **state)
{
	json_t *file = sample();

	(void)state;
	assert_int_equal(item(thread_of(file, 1), "samples", "threadCPUDelta", 1), 100000);
	assert_int_equal(item(thread_of(file, 1), "samples", "threadCPUDelta", 2), 0);
	json_decref(file);
}

/* The first three fields of a GUID are numbers of the other byte order; what the build id lacks is 0. */
static void modules_have_the_ids_of_symbol_servers(void **state)
{
	struct mew_model *m = fx_results_open();
	const json_t *libs;
	json_t *file;

	(void)state;
	assert_int_equal(mew_model_module(m, "/lib/x.so", "00112233445566778899aabbccddeeff01234567", 1, false), 2);
	mew_model_seal(m);
	file = file_of(m);
	libs = json_object_get(file, "libs");
	assert_string_equal(json_string_value(json_object_get(json_array_get(libs, 2), "breakpadId")),
			    "33221100554477668899AABBCCDDEEFF0");
	assert_string_equal(json_string_value(json_object_get(json_array_get(libs, 2), "codeId")),
			    "00112233445566778899aabbccddeeff01234567");
	assert_string_equal(json_string_value(json_object_get(json_array_get(libs, 0), "breakpadId")),
			    "00BBAA000000000000000000000000000");
	assert_true(json_is_null(json_object_get(json_array_get(libs, 1), "codeId"))); /* a file without a build id */
	json_decref(file);
	mew_model_free(m);
}

/* Offsets that a double cannot hold are no addresses; a stack that is missing is shown as such. */
static void nothing_in_a_model_breaks_the_file(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "\xff\"\n", NULL);
	uint32_t module = mew_model_module(m, "\xc3", "0", 1, true), locations[3];
	struct mew_line lines[3];
	json_t *file;

	(void)state;
	mew_model_row(m, c, MEW_KIND_CPU);
	for (uint32_t i = 0; i < 3; i++)
		lines[i] = (struct mew_line){ mew_model_function(m, i == 0 ? "\xf0" : "f", "", i, module), UINT32_MAX };
	for (uint32_t i = 0; i < 3; i++) {
		locations[i] = mew_model_location(m, i == 2 ? MEW_NO_MODULE : module, UINT64_MAX - i);
		assert_int_equal(mew_model_set_lines(m, locations[i], lines, 3), 0);
		assert_int_equal(mew_model_stack(m, locations, i + 1), i);
		assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ i, i, UINT64_MAX, UINT64_MAX, false }), 0);
	}
	assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ MEW_NO_STACK, 2, 1, 1, true }), 0);
	assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ 77, 2, 0, 1, true }), 0);
	mew_model_seal(m);
	file = file_of(m);
	check_file(file);
	assert_int_equal(item(thread_of(file, 0), "frameTable", "address", 0), -1);
	json_decref(file);
	mew_model_free(m);
}

/* Stacks that begin alike share what they have in common. */
static void the_tree_has_each_stack_once(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "case", NULL);
	uint32_t all[8], leaf_first[8];
	json_t *file;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		all[i] = mew_model_location(m, MEW_NO_MODULE, i);
	for (uint32_t depth = 8; depth >= 1; depth--) { /* 0, 0;1, 0;1;2 and so on */
		for (uint32_t i = 0; i < depth; i++)
			leaf_first[i] = all[depth - 1 - i];
		assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){
					 mew_model_stack(m, leaf_first, depth), 0, depth, 1, false }), 0);
	}
	mew_model_seal(m);
	file = file_of(m);
	check_file(file);
	assert_int_equal(length_of(thread_of(file, 0), "stackTable"), 8);
	json_decref(file);
	mew_model_free(m);
}

static void no_stacks_is_no_file(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_error err = { .status = MEW_OK };
	struct mew_writer w;

	(void)state;
	mew_model_seal(m);
	mew_writer_memory(&w);
	assert_int_equal(mew_report_firefox.write(&(struct mew_report_input){ .model = m }, &w, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "--memory"));
	free(mew_writer_take(&w, NULL));
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_agreed),
		cmocka_unit_test(sums_are_kept),
		cmocka_unit_test(a_blocked_thread_uses_no_processor),
		cmocka_unit_test(modules_have_the_ids_of_symbol_servers),
		cmocka_unit_test(nothing_in_a_model_breaks_the_file),
		cmocka_unit_test(the_tree_has_each_stack_once),
		cmocka_unit_test(no_stacks_is_no_file),
	};

	return cmocka_run_group_tests_name("firefox", tests, NULL, NULL);
}
