/*
 * t_entries.c - names are checked before anything runs; cases come in the order that `after` asks for.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "entries.h"
#include "select.h"

static int ran;

static void body(struct mew_state *st, void *arg)
{
	(void)arg;
	ran++;
	MEW_LOOP(st)
		mew_clobber();
}

static const char *const labels[] = { "a", "b", NULL };
static const char *const twice[] = { "a", "b", "a", NULL };
static const char *const blank[] = { "a", "  ", NULL };
static const char *const empty[] = { NULL };

/* Nothing may run, and the sentence must name what is wrong. */
static void check_refused(const struct mew_entry *entries, const char *part)
{
	ran = 0;
	assert_null(mew_run(entries));
	assert_int_equal(mew_last_error()->status, MEW_E_INVALID);
	if (strstr(mew_last_error()->text, part) == NULL)
		fail_msg("\"%s\" does not speak of \"%s\"", mew_last_error()->text, part);
	assert_int_equal(ran, 0);
}

#define REFUSED(part, ...) check_refused((const struct mew_entry[]){ __VA_ARGS__, { 0 } }, part)

static void test_bad_names(void **state)
{
	(void)state;
	REFUSED("blank", { .name = "", .run = body });
	REFUSED("blank", { .name = "   ", .run = body });
	REFUSED("control character", { .name = "a\tb", .run = body });
	REFUSED("control character", { .name = "a\x7f", .run = body });
	REFUSED("/case:", { .name = "a/case:0", .run = body });
	REFUSED("\"same\" is there twice", { .name = "same", .run = body }, { .name = "other", .run = body },
		{ .name = "same", .run = body });
	REFUSED("no name", { .run = body });
	REFUSED("\"idle\" has no body", { .name = "idle" });
}

static void test_bad_families(void **state)
{
	(void)state;
	REFUSED("\"f\": its family has no cases", { .name = "f", .run = body, .cases = empty });
	REFUSED("label \"a\" stands twice", { .name = "f", .run = body, .cases = twice });
	REFUSED("label 1 is blank", { .name = "f", .run = body, .cases = blank });
}

static void test_bad_numbers(void **state)
{
	(void)state;
	REFUSED("min_time", { .name = "f", .run = body, .min_time = -1 });
	REFUSED("not both", { .name = "f", .run = body, .min_time = 1, .iterations = 5 });
	REFUSED("threads", { .name = "f", .run = body, .threads = 100000 });
	REFUSED("does not know", { .name = "f", .run = body, .reserved_ = { 0, 1 } });
}

static void test_empty_and_null(void **state)
{
	const struct mew_entry none[] = { { 0 } };

	(void)state;
	check_refused(none, "no entries");
	check_refused(NULL, "no entries");
}

static void test_bad_options(void **state)
{
	const struct mew_entry entries[] = { { .name = "f", .run = body }, { 0 } };
	struct {
		struct mew_run_options known;
		uint64_t unknown;
	} newer = { .known = { .size = sizeof newer }, .unknown = 1 };

	(void)state;
	ran = 0;
	assert_null(mew_run(entries, .min_time = -1));
	assert_non_null(strstr(mew_last_error()->text, "min_time"));
	assert_null(mew_run(entries, .filter = "("));
	assert_non_null(strstr(mew_last_error()->text, "regular expression"));
	assert_null(mew_run(entries, .filter = "nothing"));
	assert_non_null(strstr(mew_last_error()->text, "nothing"));
	assert_null(mew_run_with(entries, &newer.known));
	assert_non_null(strstr(mew_last_error()->text, "newer libmew"));
	newer.unknown = 0;
	newer.known.iterations = 1;
	mew_results_free(mew_run_with(entries, &newer.known));
	assert_true(ran > 0);
}

static void check_order(const struct mew_entry *entries, const char *const *keys)
{
	struct mew_catalogue c;
	struct mew_error err;
	size_t n = 0;

	assert_int_equal(mew_catalogue_init(&c, entries, &err), MEW_OK);
	for (; keys[n] != NULL; n++) {
		assert_true(n < c.n);
		assert_string_equal(c.items[n].key, keys[n]);
	}
	assert_int_equal(c.n, n);
	mew_catalogue_fini(&c);
}

static void test_keys_and_order(void **state)
{
	const struct mew_entry entries[] = {
		{ .name = "last", .run = body, .after = "family/case:1" },
		{ .name = "family", .run = body, .cases = labels, .after = "first" },
		{ .name = "first", .run = body },
		{ 0 },
	};
	static const char *const keys[] = { "first", "family/case:0", "family/case:1", "last", NULL };
	const struct mew_entry circle[] = {
		{ .name = "x", .run = body, .after = "y" },
		{ .name = "y", .run = body, .after = "x" },
		{ 0 },
	};

	(void)state;
	check_order(entries, keys);
	check_refused(circle, "circle");
	REFUSED("which is not there", { .name = "x", .run = body, .after = "nobody" });
	REFUSED("which is not there", { .name = "f", .run = body, .cases = labels },
		{ .name = "x", .run = body, .after = "f/case:3" });
	REFUSED("which is not there", { .name = "f", .run = body, .cases = labels },
		{ .name = "x", .run = body, .after = "f/case:01" });
}

static bool selects(const char *pattern, const char *literal, const char *tag, const char *key, const char *label,
		    const char *tags)
{
	struct mew_select s;
	struct mew_error err;
	bool got;

	assert_int_equal(mew_select_init(&s, pattern, literal, tag != NULL ? &tag : NULL, tag != NULL, &err), MEW_OK);
	got = mew_select_matches(&s, key, label, tags);
	mew_select_fini(&s);
	return got;
}

static void test_selection(void **state)
{
	(void)state;
	assert_true(selects(NULL, NULL, NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_true(selects("^zlib", NULL, NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_true(selects("inflate\\[64k\\]", NULL, NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_true(selects("^64k$", NULL, NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_false(selects("^inflate", NULL, NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_true(selects(NULL, "inflate[64", NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_false(selects(NULL, "^zlib", NULL, "zlib/inflate/case:1", "64k", NULL));
	assert_true(selects(NULL, NULL, "io", "a", NULL, "fast io"));
	assert_false(selects(NULL, NULL, "i", "a", NULL, "fast io"));
	assert_false(selects(NULL, NULL, "io", "a", NULL, NULL));
	assert_false(selects("b", NULL, "io", "a", NULL, "io"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_names),     cmocka_unit_test(test_bad_families),
		cmocka_unit_test(test_bad_numbers),   cmocka_unit_test(test_empty_and_null),
		cmocka_unit_test(test_bad_options),   cmocka_unit_test(test_keys_and_order),
		cmocka_unit_test(test_selection),
	};

	return cmocka_run_group_tests_name("entries", tests, NULL, NULL);
}
