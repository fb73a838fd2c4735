/*
 * t_calibration.c - the file of a calibration: what is written comes back, in every locale; what is cut, damaged or of
 * another machine is refused.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibration.h"
#include "fx_comma.h"

static char folder[64], path[96];

static int enter(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof folder, "/tmp/mew-calibration-XXXXXX");
	if (mkdtemp(folder) == NULL)
		return -1;
	(void)snprintf(path, sizeof path, "%s/a/b.json", folder);
	return 0;
}

static int leave(void **state)
{
	char name[96];

	(void)state;
	(void)unlink(path);
	(void)snprintf(name, sizeof name, "%s/a", folder);
	(void)rmdir(name);
	return rmdir(folder);
}

static struct mew_model *facts(const char *kernel)
{
	struct mew_model *m = mew_model_new();

	assert_non_null(m);
	(void)mew_model_add_fact(m, "cpu_model", "A \"quoted\" CPU");
	(void)mew_model_add_fact(m, "cpu_count", "2");
	(void)mew_model_add_fact(m, "kernel", kernel);
	return m;
}

static struct mew_calibration *example(void)
{
	struct mew_calibration *c = calloc(1, sizeof *c);
	struct mew_model *m = facts("Linux 6.1");
	struct mew_calibration_case *k;

	assert_non_null(c);
	assert_int_equal(mew_calibration_identify(c, "/some/where/bench", m), 0);
	mew_model_free(m);
	c->seed = UINT64_MAX;
	c->samples = 40;
	c->rounds = 15;
	c->trials = 20;
	c->false_positives = 1;
	c->load = (double)NAN;
	k = mew_calibration_case(c, "zlib/inflate/case:0");
	assert_non_null(k);
	k->trials = 20;
	k->noise_floor = 0.0125;
	k->smallest_effect = (double)NAN;
	assert_ptr_equal(mew_calibration_case(c, "zlib/inflate/case:0"), k);
	return c;
}

static void store(void)
{
	struct mew_calibration *c = example();
	struct mew_error err;

	if (mew_calibration_write(c, path, &err) != MEW_OK)
		fail_msg("%s", err.text);
	mew_calibration_free(c);
}

static void check_example(void)
{
	struct mew_error err;
	struct mew_calibration *c = mew_calibration_read(path, &err);
	struct mew_model *same = facts("Linux 6.1");

	if (c == NULL)
		fail_msg("%s", err.text);
	assert_string_equal(c->program, "bench");
	assert_int_equal(c->trials, 20);
	assert_int_equal(c->false_positives, 1);
	assert_int_equal(c->samples, 40);
	assert_int_equal(c->ncases, 1);
	assert_true(mew_calibration_find(c, "zlib/inflate/case:0")->noise_floor == 0.0125);
	assert_null(mew_calibration_find(c, "zlib"));
	assert_null(mew_calibration_misfit(c, same));
	mew_model_free(same);
	mew_calibration_free(c);
}

static void what_is_written_comes_back(void **state)
{
	(void)state;
	store();
	check_example();
}

static void a_comma_for_a_point_changes_nothing(void **state)
{
	(void)state;
	if (!fx_set_comma())
		skip();
	store();
	check_example();
	(void)setlocale(LC_ALL, "C");
}

static void another_machine_is_told_apart(void **state)
{
	struct mew_calibration *c = example(), *other = example();
	struct mew_model *kernel = facts("Linux 6.2"), *more = facts("Linux 6.1");
	char *a, *b;

	(void)state;
	assert_string_equal(mew_calibration_misfit(c, kernel), "kernel");
	(void)mew_model_add_fact(more, "compiler", "gcc");
	assert_string_equal(mew_calibration_misfit(c, more), "compiler");
	assert_int_equal(setenv("XDG_STATE_HOME", folder, 1), 0);
	assert_int_equal(mew_calibration_identify(other, "bench", kernel), 0);
	a = mew_calibration_path(c);
	b = mew_calibration_path(other);
	assert_non_null(a);
	assert_non_null(b);
	assert_string_not_equal(a, b);
	free(a);
	free(b);
	mew_model_free(kernel);
	mew_model_free(more);
	mew_calibration_free(c);
	mew_calibration_free(other);
}

static size_t load(char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, size - 1, f);
	(void)fclose(f);
	text[n] = '\0';
	return n;
}

static void put(const char *text, size_t n)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void each_cut_is_refused(void **state)
{
	char text[8192];
	size_t n;

	(void)state;
	store();
	n = load(text, sizeof text);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	for (size_t i = 0; i < n; i += i < n - 20 ? 7 : 1) {
		struct mew_error err;

		put(text, i);
		assert_null(mew_calibration_read(path, &err));
		assert_int_equal(err.status, MEW_E_INVALID);
		assert_non_null(strstr(err.text, path));
	}
}

static void damage_is_refused(void **state)
{
	static const char *const wrong[][2] = {
		{ "\"schema_version\": 1", "\"schema_version\": 2" },	{ "\"schema_version\": 1", "\"schema_version\": \"1\"" },
		{ "\"trials\": 20", "\"trials\": 0" },			{ "\"trials\": 20", "\"trials\": -1" },
		{ "\"trials\": 20", "\"trials\": 1e3" },		{ "\"false_positives\": 1", "\"false_positives\": 21" },
		{ "\"noise_floor\": 0.0125", "\"noise_floor\": -0.1" }, { "\"noise_floor\": 0.0125", "\"noise_floor\": 1e300" },
		{ "\"noise_floor\": 0.0125", "\"noise_floor\": null" }, { "\"noise_floor\": 0.0125", "\"noise_floor\": \"0\"" },
		{ "\"key\": ", "\"kez\": " },				{ "\"identity\": {", "\"identity\": 1, \"x\": {" },
		{ "\"program\": ", "\"program\": \"a\", \"program\": " },
	};
	char text[8192], damaged[8400];
	struct mew_error err;

	(void)state;
	store();
	(void)load(text, sizeof text);
	for (size_t i = 0; i < MEW_COUNTOF(wrong); i++) {
		const char *at = strstr(text, wrong[i][0]);

		if (at == NULL)
			fail_msg("row %zu: the file has no %s: %s", i, wrong[i][0], text);
		(void)snprintf(damaged, sizeof damaged, "%.*s%s%s", (int)(at - text), text, wrong[i][1], at + strlen(wrong[i][0]));
		put(damaged, strlen(damaged));
		if (mew_calibration_read(path, &err) != NULL)
			fail_msg("row %zu was read", i);
		assert_int_equal(err.status, MEW_E_INVALID);
	}
}

static void no_file_and_no_place_are_named(void **state)
{
	struct mew_calibration *c = example();
	struct mew_error err;

	(void)state;
	assert_null(mew_calibration_read("/nowhere/at/all.json", &err));
	assert_int_equal(err.status, MEW_E_IO);
	assert_int_equal(mew_calibration_write(c, "/proc/nowhere/c.json", &err), MEW_E_IO);
	assert_non_null(strstr(err.text, "/proc/nowhere"));
	mew_calibration_free(c);
	mew_calibration_free(NULL);
}

static void no_trials_are_no_rate(void **state)
{
	struct mew_calibration c = { .trials = 0 };
	char text[160];

	(void)state;
	mew_calibration_words(&c, text, sizeof text);
	assert_non_null(strstr(text, "0.0 to 100.0 %"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_comes_back),
		cmocka_unit_test(a_comma_for_a_point_changes_nothing),
		cmocka_unit_test(another_machine_is_told_apart),
		cmocka_unit_test(each_cut_is_refused),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(no_file_and_no_place_are_named),
		cmocka_unit_test(no_trials_are_no_rate),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
