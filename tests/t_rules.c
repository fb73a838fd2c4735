/*
 * t_rules.c - limits as they are written, rules that change them for some cases, and rules that are not sound.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "verdict.h"

#define NONE ((double)NAN)

static struct mew_limit limit_of(const char *text)
{
	struct mew_limit limit;

	assert_true(mew_limit_parse(text, &limit));
	return limit;
}

/* --- limits ----------------------------------------------------------------------------------------------------- */

static void limits_are_parsed(void **state)
{
	static const struct {
		const char *text;
		bool units, percent;
		double of_units, of_percent;
	} good[] = {
		{ "0", true, false, 0, 0 },	  { "12", true, false, 12, 0 },	     { "5%", false, true, 0, 5 },
		{ "0|5%", true, true, 0, 5 },	  { "2.5%|1.5", true, true, 1.5, 2.5 }, { "0%", false, true, 0, 0 },
	};
	static const char *const bad[] = { "",	  "%",	 "-1",	 "5%%",	 "1|2",	 "1%|2%", "5 %",   "inf", "nan",
					   "0x1", "1e3", "1|",	 "|1",	 "5%|",	 "1|2%|", "1.2.3", "a",	  "5%x" };
	struct mew_limit limit;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(good); i++) {
		assert_true(mew_limit_parse(good[i].text, &limit));
		assert_true(limit.has_units == good[i].units && limit.has_percent == good[i].percent);
		assert_true(limit.units == good[i].of_units && limit.percent == good[i].of_percent);
	}
	for (size_t i = 0; i < MEW_COUNTOF(bad); i++)
		if (mew_limit_parse(bad[i], &limit))
			fail_msg("\"%s\" is no limit", bad[i]);
}

/* --- allow rules ------------------------------------------------------------------------------------------------ */

static enum mew_outcome with_allow(struct mew_allow *allow, const char *today, const char *key, double base, double head,
				   bool strict)
{
	struct mew_metric_limit general = { "allocs", limit_of("10%") };
	struct mew_rules rules = { .allows = allow, .nallows = 1, .today = today, .strict = strict, .limits = &general,
				   .nlimits = 1 };
	struct mew_verdict v;

	assert_int_equal(mew_rules_check(&rules, NULL), MEW_OK);
	mew_verdict_exact(&rules, key, mew_metric_find("allocs"), base, head, &v);
	assert_true(v.allow == NULL || v.allow == allow);
	return v.outcome;
}

static void allow_rules_loosen_and_tighten(void **state)
{
	struct mew_allow loose = { "zlib/*", "allocs", limit_of("50%"), "the new window needs it", "2027-01-31" };
	struct mew_allow tight = { "zlib/*", "allocs", limit_of("0"), "this one is hot", NULL };

	(void)state;
	assert_int_equal(with_allow(&loose, "2026-11-30", "zlib/inflate/case:1", 10, 15, false), MEW_OUTCOME_PASS);
	assert_int_equal(with_allow(&loose, "2026-11-30", "zlib/inflate", 10, 16, false), MEW_OUTCOME_REGRESSED);
	assert_int_equal(with_allow(&loose, "2026-11-30", "sqlite/insert", 10, 15, false), MEW_OUTCOME_REGRESSED);
	assert_int_equal(with_allow(&loose, "2026-11-30", "zlib/inflate", 10, 15, true), MEW_OUTCOME_PASS);
	assert_int_equal(with_allow(&tight, "2026-11-30", "zlib/inflate", 100, 101, false), MEW_OUTCOME_REGRESSED);
	assert_int_equal(with_allow(&tight, "2026-11-30", "sqlite/insert", 100, 101, false), MEW_OUTCOME_PASS);
	/* a figure that is gone stays invalid, whatever is allowed */
	assert_int_equal(with_allow(&loose, "2026-11-30", "zlib/inflate", 10, NONE, false), MEW_OUTCOME_INVALID);
}

static void allow_rules_expire(void **state)
{
	struct mew_allow loose = { "*", "allocs", limit_of("50%"), "until the fix", "2026-11-30" };

	(void)state;
	assert_int_equal(with_allow(&loose, "2026-11-30", "a", 10, 15, false), MEW_OUTCOME_PASS);
	assert_int_equal(with_allow(&loose, "2026-12-01", "a", 10, 15, false), MEW_OUTCOME_REGRESSED);
	assert_int_equal(with_allow(&loose, NULL, "a", 10, 15, false), MEW_OUTCOME_PASS);
}

static void an_allow_rule_sets_the_margin(void **state)
{
	struct mew_allow loose = { "a", "time", limit_of("60%"), "moved to the safe decoder", NULL };
	struct mew_rules rules = { .allows = &loose, .nallows = 1 };
	double x[6];
	struct mew_verdict v;

	(void)state;
	for (int i = 0; i < 6; i++)
		x[i] = log(1.5);
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ x, NULL, NULL, 6, 0 }, &v, NULL), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_PASS);
	assert_ptr_equal(v.allow, &loose);
	assert_int_equal(mew_verdict_time(&rules, "b", &(struct mew_observations){ x, NULL, NULL, 6, 0 }, &v, NULL), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_REGRESSED);
}

static void unsound_rules_are_refused(void **state)
{
	struct mew_limit five = limit_of("5%"), one = limit_of("1"), none = { 0 };
	struct mew_limit endless = { .percent = (double)INFINITY, .has_percent = true };
	const struct {
		struct mew_allow allow;
		const char *says;
	} bad[] = {
		{ { "a", "allocs", five, NULL, NULL }, "no reason" },
		{ { "a", "allocs", five, "  ", NULL }, "no reason" },
		{ { NULL, "allocs", five, "x", NULL }, "names no case" },
		{ { "a", "speed", five, "x", NULL }, "no metric" },
		{ { "a", NULL, five, "x", NULL }, "no metric" },
		{ { "a", "allocs", none, "x", NULL }, "empty" },
		{ { "a", "allocs", endless, "x", NULL }, "finite" },
		{ { "a", "time", one, "x", NULL }, "margin in percent" },
		{ { "a", "allocs", five, "x", "2027-13-01" }, "no day" },
		{ { "a", "allocs", five, "x", "2027-1-1" }, "no day" },
		{ { "a", "allocs", five, "x", "tomorrow" }, "no day" },
	};
	struct mew_error err;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(bad); i++) {
		struct mew_rules rules = { .allows = &bad[i].allow, .nallows = 1 };

		assert_int_equal(mew_rules_check(&rules, &err), MEW_E_INVALID);
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("row %zu: %s", i, err.text);
	}
	assert_int_equal(mew_rules_check(&(struct mew_rules){ .alpha = 1 }, NULL), MEW_E_INVALID);
	assert_int_equal(mew_rules_check(&(struct mew_rules){ .alpha = (double)NAN }, NULL), MEW_E_INVALID);
	assert_int_equal(mew_rules_check(&(struct mew_rules){ .today = "now" }, NULL), MEW_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_parsed),
		cmocka_unit_test(allow_rules_loosen_and_tighten),
		cmocka_unit_test(allow_rules_expire),
		cmocka_unit_test(an_allow_rule_sets_the_margin),
		cmocka_unit_test(unsound_rules_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
