/*
 * t_phases.c - hooks: the phases of a run in order, failures in each place, teardown once per phase on every way out.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mew.h"
#include "phases.h"

struct record {
	char text[4096];
	int begins[16], ends[16], teardowns[16];
	int fail_begin, fail_end; /* a phase, or 0 */
	const char *only;         /* fail for this key alone */
	uint64_t last_loops;
};

static void note(struct record *r, const char *call, const struct mew_phase_info *i)
{
	size_t used = strlen(r->text);

	(void)snprintf(r->text + used, sizeof r->text - used, "%s %s %s; ", call, i->key, mew_phase_name(i->phase));
}

static int begin(const struct mew_phase_info *info, void *data)
{
	struct record *r = data;

	note(r, "begin", info);
	r->begins[info->phase]++;
	r->last_loops = info->loops;
	return info->phase == r->fail_begin && (r->only == NULL || strcmp(r->only, info->key) == 0) ? 7 : 0;
}

static int end(const struct mew_phase_info *info, void *data)
{
	struct record *r = data;

	note(r, "end", info);
	r->ends[info->phase]++;
	return info->phase == r->fail_end ? 9 : 0;
}

static void teardown(const struct mew_phase_info *info, void *data)
{
	struct record *r = data;

	note(r, "teardown", info);
	r->teardowns[info->phase]++;
}

static void body(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		mew_clobber();
}

static void body_breaks(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		break;
}

static const struct mew_entry entries[] = {
	{ .name = "one", .run = body, .iterations = 10 },
	{ .name = "two", .run = body, .iterations = 10 },
	{ 0 },
};

static void test_a_whole_run(void **state)
{
	struct record r = { .text = "" };
	const struct mew_hook hook = { "rec", begin, end, teardown, &r };
	struct mew_results *results = mew_run(entries, .repetitions = 2, .hooks = &hook, .nhooks = 1, .filter = "one");

	(void)state;
	assert_non_null(results);
	assert_int_equal(mew_results_at(results, 0)->status, MEW_OK);
	assert_string_equal(r.text, "begin one measurement/warmup; end one measurement/warmup; "
				    "begin one measurement/value; end one measurement/value; "
				    "begin one measurement/warmup; end one measurement/warmup; "
				    "begin one measurement/value; end one measurement/value; "
				    "teardown one measurement/warmup; teardown one measurement/value; ");
	mew_results_free(results);
}

static void test_calibration_has_phases_of_its_own(void **state)
{
	static const struct mew_entry free_running[] = { { .name = "c", .run = body }, { 0 } };
	struct record r = { .text = "" };
	const struct mew_hook hook = { "rec", begin, end, teardown, &r };
	struct mew_results *results = mew_run(free_running, .hooks = &hook, .nhooks = 1, .max_time = 0.01);

	(void)state;
	assert_int_equal(r.begins[MEW_PHASE_CALIBRATION_WARMUP], 1);
	assert_int_equal(r.begins[MEW_PHASE_CALIBRATION_LOOPS], 1);
	assert_int_equal(r.begins[MEW_PHASE_MEASUREMENT_VALUE], 1);
	for (int phase = 1; phase < 16; phase++) {
		assert_int_equal(r.begins[phase], r.ends[phase]);
		assert_int_equal(r.teardowns[phase], r.begins[phase] > 0);
	}
	assert_true(r.last_loops > 1);
	mew_results_free(results);
}

/* A hook that fails in one phase fails that case alone; what was begun is torn down. */
static void check_failing(struct record *r, const char *where)
{
	const struct mew_hook hook = { "rec", begin, end, teardown, r };
	struct mew_results *results = mew_run(entries, .hooks = &hook, .nhooks = 1);
	const struct mew_result *one = mew_results_find(results, "one"), *two = mew_results_find(results, "two");

	assert_int_equal(one->status, MEW_E_BODY);
	assert_non_null(strstr(one->reason, "\"rec\""));
	assert_non_null(strstr(one->reason, where));
	if (r->only != NULL)
		assert_int_equal(two->status, MEW_OK);
	mew_results_free(results);
}

static void test_failure_in_begin(void **state)
{
	struct record r = { .fail_begin = MEW_PHASE_MEASUREMENT_VALUE, .only = "one" };

	(void)state;
	check_failing(&r, "begin of measurement/value");
	/* one's value block never began; two's did */
	assert_int_equal(r.ends[MEW_PHASE_MEASUREMENT_VALUE], 1);
	assert_int_equal(r.teardowns[MEW_PHASE_MEASUREMENT_VALUE], 1);
	assert_int_equal(r.teardowns[MEW_PHASE_MEASUREMENT_WARMUP], 2);
}

static void test_failure_in_end(void **state)
{
	struct record r = { .fail_end = MEW_PHASE_MEASUREMENT_WARMUP };

	(void)state;
	check_failing(&r, "end of measurement/warmup");
	assert_int_equal(r.begins[MEW_PHASE_MEASUREMENT_VALUE], 0);
	assert_int_equal(r.teardowns[MEW_PHASE_MEASUREMENT_WARMUP], 2);
}

static void test_second_hook_fails_and_the_first_is_ended(void **state)
{
	struct record first = { .text = "" }, second = { .fail_begin = MEW_PHASE_MEASUREMENT_WARMUP };
	const struct mew_hook hooks[] = { { "a", begin, end, teardown, &first }, { "b", begin, end, teardown, &second } };
	struct mew_results *results = mew_run(entries, .hooks = hooks, .nhooks = 2, .filter = "one");

	(void)state;
	assert_int_equal(mew_results_at(results, 0)->status, MEW_E_BODY);
	assert_int_equal(first.begins[MEW_PHASE_MEASUREMENT_WARMUP], 1);
	assert_int_equal(first.ends[MEW_PHASE_MEASUREMENT_WARMUP], 1);
	assert_int_equal(first.teardowns[MEW_PHASE_MEASUREMENT_WARMUP], 1);
	assert_int_equal(second.ends[MEW_PHASE_MEASUREMENT_WARMUP], 0);
	mew_results_free(results);
}

static void test_teardown_when_the_body_fails(void **state)
{
	static const struct mew_entry breaking[] = { { .name = "breaks", .run = body_breaks, .iterations = 10 }, { 0 } };
	struct record r = { .text = "" };
	const struct mew_hook hook = { "rec", begin, end, teardown, &r };
	struct mew_results *results = mew_run(breaking, .hooks = &hook, .nhooks = 1);

	(void)state;
	assert_int_equal(mew_results_at(results, 0)->status, MEW_E_LOOP);
	assert_int_equal(r.ends[MEW_PHASE_MEASUREMENT_WARMUP], 1);
	assert_int_equal(r.teardowns[MEW_PHASE_MEASUREMENT_WARMUP], 1);
	mew_results_free(results);
}

static int set_data(const struct mew_phase_info *info, void *data)
{
	(void)data;
	return mew_phase_set(info, "answer", "42") == MEW_OK ? 0 : 1;
}

static void test_data_of_hooks(void **state)
{
	const struct mew_hook hook = { .name = "data", .end = set_data };
	struct mew_results *results = mew_run(entries, .hooks = &hook, .nhooks = 1, .filter = "one");
	char path[] = "/tmp/mew-phases-XXXXXX", text[65536];
	int fd = mkstemp(path);
	FILE *f;
	size_t n;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(mew_results_at(results, 0)->status, MEW_OK);
	assert_int_equal(mew_write(results, "json", path), MEW_OK);
	f = fdopen(fd, "r"); /* the file was replaced: read the new one */
	(void)fclose(f);
	f = fopen(path, "r");
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	(void)remove(path);
	assert_non_null(strstr(text, "\"answer\""));
	assert_non_null(strstr(text, "\"42\""));
	assert_non_null(strstr(text, "measurement/value"));
	assert_int_equal(mew_phase_set(NULL, "a", "b"), MEW_E_INVALID);
	mew_results_free(results);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(mew_phase_name(MEW_PHASE_CPU_VALUE), "cpu/value");
	assert_null(mew_phase_name(0));
	assert_null(mew_phase_name(99)); /* a phase of a later version */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_run),
		cmocka_unit_test(test_calibration_has_phases_of_its_own),
		cmocka_unit_test(test_failure_in_begin),
		cmocka_unit_test(test_failure_in_end),
		cmocka_unit_test(test_second_hook_fails_and_the_first_is_ended),
		cmocka_unit_test(test_teardown_when_the_body_fails),
		cmocka_unit_test(test_data_of_hooks),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
