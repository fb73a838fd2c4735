/*
 * t_verdict.c - each rule of a gate, in tables: both sides of every threshold, too few observations, figures that are
 * missing, many cases, and what all of it does to the exit code. t_rules.c has the limits and what changes them.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verdict.h"

#define NONE ((double)NAN)
#define MOST 64

static struct mew_limit limit_of(const char *text)
{
	struct mew_limit limit;

	assert_true(mew_limit_parse(text, &limit));
	return limit;
}

/* --- exact metrics ---------------------------------------------------------------------------------------------- */

static const struct exact_row {
	const char *metric, *limit;
	bool strict;
	double base, head;
	enum mew_outcome want;
} exact_rows[] = {
	{ "allocs", NULL, false, 5, 5, MEW_OUTCOME_PASS },
	{ "allocs", NULL, false, 5, 5.01, MEW_OUTCOME_REGRESSED },
	{ "allocs", NULL, false, 5, 4, MEW_OUTCOME_IMPROVED },
	{ "allocs", NULL, false, 0, 0, MEW_OUTCOME_PASS },
	{ "allocs", NULL, false, 0, 1, MEW_OUTCOME_REGRESSED },
	{ "allocs", NULL, true, 5, 5, MEW_OUTCOME_PASS },
	{ "allocs", NULL, true, 5, 4, MEW_OUTCOME_REGRESSED },
	{ "allocs", NULL, true, 5, 6, MEW_OUTCOME_REGRESSED },
	{ "allocs", "0", false, 5, 6, MEW_OUTCOME_REGRESSED },
	{ "allocs", "1", false, 5, 6, MEW_OUTCOME_PASS },
	{ "allocs", "1", false, 5, 6.5, MEW_OUTCOME_REGRESSED },
	{ "allocs", "5%", false, 100, 105, MEW_OUTCOME_PASS },
	{ "allocs", "5%", false, 100, 105.01, MEW_OUTCOME_REGRESSED },
	{ "allocs", "0|5%", false, 100, 105, MEW_OUTCOME_PASS },
	{ "allocs", "1|5%", false, 2, 3, MEW_OUTCOME_PASS },
	{ "allocs", "1|5%", false, 0, 1, MEW_OUTCOME_PASS },
	{ "allocs", "5%", false, 0, 1, MEW_OUTCOME_REGRESSED },
	{ "peak", "10%", false, 1000, 1100, MEW_OUTCOME_PASS },
	{ "peak", "10%", false, 1000, 1101, MEW_OUTCOME_REGRESSED },
	{ "leak", NULL, false, 0, 0.5, MEW_OUTCOME_REGRESSED },
	{ "leak", NULL, false, -8, -16, MEW_OUTCOME_IMPROVED },
	{ "allocs", NULL, false, NONE, NONE, MEW_OUTCOME_ABSENT },
	{ "allocs", NULL, false, 5, NONE, MEW_OUTCOME_INVALID },
	{ "allocs", NULL, false, NONE, 5, MEW_OUTCOME_INVALID },
	{ "allocs", "100%", false, NONE, 5, MEW_OUTCOME_INVALID },
	{ "allocs", NULL, false, 5, (double)INFINITY, MEW_OUTCOME_INVALID },
};

static void exact_metrics(void **state)
{
	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(exact_rows); i++) {
		const struct exact_row *row = &exact_rows[i];
		struct mew_metric_limit limit = { .metric = row->metric };
		struct mew_rules rules = { .strict = row->strict, .limits = &limit, .nlimits = row->limit != NULL };
		struct mew_verdict v;

		if (row->limit != NULL)
			limit.limit = limit_of(row->limit);
		assert_int_equal(mew_rules_check(&rules, NULL), MEW_OK);
		mew_verdict_exact(&rules, "a", mew_metric_find(row->metric), row->base, row->head, &v);
		if (v.outcome != row->want)
			fail_msg("row %zu: %s, not %s", i, mew_outcome_name(v.outcome), mew_outcome_name(row->want));
	}
}

static void more_can_be_better(void **state)
{
	struct mew_metric hits = { .name = "hits", .direction = MEW_MORE_IS_BETTER, .exact = true };
	struct mew_metric_limit limit = { "hits", limit_of("1") };
	struct mew_rules rules = { .counts = &hits, .ncounts = 1, .limits = &limit, .nlimits = 1 };
	struct mew_verdict v;

	(void)state;
	assert_int_equal(mew_rules_check(&rules, NULL), MEW_OK);
	mew_verdict_exact(&rules, "a", &hits, 10, 11, &v);
	assert_int_equal(v.outcome, MEW_OUTCOME_IMPROVED);
	mew_verdict_exact(&rules, "a", &hits, 10, 9, &v);
	assert_int_equal(v.outcome, MEW_OUTCOME_PASS);
	mew_verdict_exact(&rules, "a", &hits, 10, 8, &v);
	assert_int_equal(v.outcome, MEW_OUTCOME_REGRESSED);
}

/* --- time by signs ---------------------------------------------------------------------------------------------- */

struct time_row {
	const char *name;
	bool sequential;
	const char *margin; /* NULL: the default of 2 % */
	size_t n;           /* observations, of which `away` have the ratio `ratio` and the others `rest` */
	size_t away;
	double ratio, rest;
	enum mew_outcome want;
};

static const struct time_row time_rows[] = {
	{ "5 pairs cannot decide", false, NULL, 5, 5, 1.5, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "6 pairs can", false, NULL, 6, 6, 1.5, 1, MEW_OUTCOME_REGRESSED },
	{ "6 pairs of which one is fast cannot", false, NULL, 6, 5, 1.5, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "6 pairs can say faster", false, NULL, 6, 6, 0.5, 1, MEW_OUTCOME_IMPROVED },
	{ "6 pairs can say equal", false, NULL, 6, 6, 1.0, 1, MEW_OUTCOME_PASS },
	{ "5 pairs cannot say equal", false, NULL, 5, 5, 1.0, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "above the margin", false, "2%", 10, 10, 1.0201, 1, MEW_OUTCOME_REGRESSED },
	{ "below the margin", false, "2%", 10, 10, 1.0199, 1, MEW_OUTCOME_PASS },
	{ "on either side of the margin", false, "2%", 10, 5, 1.03, 1.01, MEW_OUTCOME_INCONCLUSIVE },
	{ "faster than the margin", false, "2%", 10, 10, 1 / 1.0201, 1, MEW_OUTCOME_IMPROVED },
	{ "faster, within the margin", false, "2%", 10, 10, 1 / 1.0199, 1, MEW_OUTCOME_PASS },
	{ "no margin, all equal", false, "0%", 50, 50, 1, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "no margin, all a little slower", false, "0%", 10, 10, 1.0001, 1, MEW_OUTCOME_REGRESSED },
	{ "one pair", false, NULL, 1, 1, 3, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "7 looked-at pairs cannot decide", true, NULL, 7, 7, 1.5, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "8 looked-at pairs can", true, NULL, 8, 8, 1.5, 1, MEW_OUTCOME_REGRESSED },
	{ "8 looked-at pairs can say faster", true, NULL, 8, 8, 0.5, 1, MEW_OUTCOME_IMPROVED },
	{ "8 looked-at pairs can say equal", true, NULL, 8, 8, 1, 1, MEW_OUTCOME_PASS },
	{ "looked-at pairs on either side", true, NULL, 12, 6, 1.5, 1, MEW_OUTCOME_INCONCLUSIVE },
	{ "looked-at ties", true, "0%", 60, 60, 1, 1, MEW_OUTCOME_INCONCLUSIVE },
};

static void judge_row(const struct time_row *row, struct mew_verdict *v)
{
	struct mew_metric_limit limit = { .metric = "time" };
	struct mew_rules rules = { .sequential = row->sequential, .limits = &limit, .nlimits = row->margin != NULL };
	double x[MOST];

	if (row->margin != NULL)
		limit.limit = limit_of(row->margin);
	assert_int_equal(mew_rules_check(&rules, NULL), MEW_OK);
	for (size_t i = 0; i < row->n; i++) /* turn by turn, as long as there are both */
		x[i] = log(i < row->away * 2 && (i % 2 == 0 || i >= 2 * (row->n - row->away)) ? row->ratio : row->rest);
	if (row->away == row->n)
		for (size_t i = 0; i < row->n; i++)
			x[i] = log(row->ratio);
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ .log_ratios = x, .n = row->n }, v, NULL), MEW_OK);
}

static void time_by_signs(void **state)
{
	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(time_rows); i++) {
		struct mew_verdict v;

		judge_row(&time_rows[i], &v);
		if (v.outcome != time_rows[i].want)
			fail_msg("%s: %s, not %s", time_rows[i].name, mew_outcome_name(v.outcome),
				 mew_outcome_name(time_rows[i].want));
		assert_int_equal(v.n, time_rows[i].n);
		assert_int_equal(v.least, time_rows[i].sequential ? 8 : 6);
		/* what is said must not contradict the interval that is shown beside it */
		if (v.outcome == MEW_OUTCOME_REGRESSED)
			assert_true(v.has_interval && v.interval.low > 1 + v.limit.percent / 100);
		if (v.outcome == MEW_OUTCOME_IMPROVED)
			assert_true(v.has_interval && v.interval.high < 1 / (1 + v.limit.percent / 100));
	}
}

static void times_that_are_none(void **state)
{
	double bad[] = { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, (double)NAN };
	struct mew_rules rules = { .alpha = 0 }, classic = { .time_rule = MEW_TIME_BOOTSTRAP };
	struct mew_verdict v;

	(void)state;
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ bad, NULL, NULL, 9, 0 }, &v, NULL), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_INVALID);
	bad[8] = (double)INFINITY;
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ bad, NULL, NULL, 9, 0 }, &v, NULL), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_INVALID);
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ bad, NULL, NULL, 0, 0 }, &v, NULL), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_ABSENT);
	assert_int_equal(mew_verdict_time(&classic, "a", &(struct mew_observations){ bad, NULL, NULL, 8, 0 }, &v, NULL), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_INVALID);
}

static void the_noise_floor_bounds_the_margin(void **state)
{
	double x[10];
	struct mew_observations of = { .log_ratios = x, .n = 10, .noise_floor = 0.05 };
	struct mew_metric_limit limit = { "time", limit_of("4%") };
	struct mew_rules rules = { .limits = &limit, .nlimits = 0 };
	struct mew_error err;
	struct mew_verdict v;

	(void)state;
	for (int i = 0; i < 10; i++)
		x[i] = log(1.04);
	assert_int_equal(mew_verdict_time(&rules, "a", &of, &v, &err), MEW_OK);
	assert_int_equal(v.outcome, MEW_OUTCOME_PASS); /* 4 % is noise here */
	assert_true(v.limit.percent == 5);
	rules.nlimits = 1;
	assert_int_equal(mew_verdict_time(&rules, "a", &of, &v, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "below the noise floor"));
	limit.limit = limit_of("5%");
	assert_int_equal(mew_verdict_time(&rules, "a", &of, &v, &err), MEW_OK);
}

/*
 * Identical code without a margin: processes differ by skewed amounts, the sides by nothing. Any difference claimed is
 * a false alarm, of which alpha allows 5 % in both directions together: for a fixed number of pairs, and for a gate that
 * looks after each pair and stops at the first difference.
 */
static int false_alarms(bool sequential, int trials, size_t most)
{
	struct mew_metric_limit limit = { "time", limit_of("0%") };
	struct mew_rules rules = { .sequential = sequential, .limits = &limit, .nlimits = 1 };
	struct mew_random r;
	double x[MOST];
	int alarms = 0;

	mew_random_seed(&r, 42);
	for (int trial = 0; trial < trials; trial++) {
		for (size_t n = 1; n <= most; n++) {
			struct mew_observations of = { .log_ratios = x, .n = n };
			struct mew_verdict v;

			x[n - 1] = log(1 - log(1 - mew_random_unit(&r))) - log(1 - log(1 - mew_random_unit(&r)));
			if (!sequential && n < most)
				continue;
			assert_int_equal(mew_verdict_time(&rules, "a", &of, &v, NULL), MEW_OK);
			if (v.outcome == MEW_OUTCOME_REGRESSED || v.outcome == MEW_OUTCOME_IMPROVED) {
				alarms++;
				break;
			}
		}
	}
	return alarms;
}

static void false_alarms_stay_below_alpha(void **state)
{
	int fixed = false_alarms(false, 4000, 20), looked = false_alarms(true, 2000, 60);

	(void)state;
	print_message("false alarms: %d of 4000 fixed, %d of 2000 looked at\n", fixed, looked);
	assert_in_range(fixed, 40, 200);
	assert_in_range(looked, 10, 100);
}

/* --- time by the classic rule ----------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t n;
	double change, scatter; /* percent */
	double least_ns;
	enum mew_outcome want;
} classic_rows[] = {
	{ "4 pairs cannot decide", 4, 20, 0, 0, MEW_OUTCOME_INCONCLUSIVE },
	{ "5 pairs can", 5, 20, 0, 0, MEW_OUTCOME_REGRESSED },
	{ "5 pairs, faster", 5, -20, 0, 0, MEW_OUTCOME_IMPROVED },
	{ "5 pairs, equal", 5, 0, 0.5, 0, MEW_OUTCOME_PASS },
	{ "just above the threshold", 7, 5.01, 0, 0, MEW_OUTCOME_REGRESSED },
	{ "just below it", 7, 4.99, 0, 0, MEW_OUTCOME_PASS },
	{ "around it", 7, 5, 2, 0, MEW_OUTCOME_INCONCLUSIVE },
	{ "beyond it, above the least difference", 7, 20, 0, 199, MEW_OUTCOME_REGRESSED },
	{ "beyond it, below the least difference", 7, 20, 0, 201, MEW_OUTCOME_INCONCLUSIVE },
	{ "faster, below the least difference", 7, -20, 0, 201, MEW_OUTCOME_INCONCLUSIVE },
	{ "faster, just above the threshold", 7, -5.01, 0, 0, MEW_OUTCOME_IMPROVED },
	{ "faster, just below it", 7, -4.99, 0, 0, MEW_OUTCOME_PASS },
};

static void time_by_the_classic_rule(void **state)
{
	struct mew_metric_limit limit = { "time", limit_of("5%") };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(classic_rows); i++) {
		struct mew_rules rules = { .time_rule = MEW_TIME_BOOTSTRAP, .limits = &limit, .nlimits = 1,
					   .least_difference_ns = classic_rows[i].least_ns };
		double base[MOST], head[MOST], x[MOST];
		struct mew_observations of = { x, base, head, classic_rows[i].n, 0 };
		struct mew_verdict v;

		for (size_t k = 0; k < of.n; k++) {
			double off = classic_rows[i].scatter * ((double)k / (double)(of.n - 1) * 2 - 1);

			base[k] = 1000;
			head[k] = 1000 + 10 * (classic_rows[i].change + off);
			x[k] = log(head[k] / base[k]);
		}
		assert_int_equal(mew_verdict_time(&rules, "a", &of, &v, NULL), MEW_OK);
		if (v.outcome != classic_rows[i].want)
			fail_msg("%s: %s", classic_rows[i].name, mew_outcome_name(v.outcome));
	}
}

/* --- many cases ------------------------------------------------------------------------------------------------- */

/* n cases, all of them slower or faster: with 6 observations p = 1/64 is enough for one case and not for two. */
static size_t differences_among(size_t n, size_t observations, double ratio, enum mew_outcome want,
				enum mew_outcome otherwise)
{
	struct mew_rules rules = { .alpha = 0 };
	struct mew_verdict list[MOST], *all[MOST];
	double x[MOST];
	size_t count = 0;

	for (size_t i = 0; i < observations; i++)
		x[i] = log(ratio);
	for (size_t i = 0; i < n; i++) {
		struct mew_observations of = { .log_ratios = x, .n = observations };

		all[i] = &list[i];
		assert_int_equal(mew_verdict_time(&rules, "a", &of, &list[i], NULL), MEW_OK);
	}
	assert_int_equal(mew_verdicts_settle(&rules, all, n, NULL), MEW_OK);
	for (size_t i = 0; i < n; i++) {
		count += list[i].outcome == want;
		assert_true(list[i].outcome == want || list[i].outcome == otherwise);
	}
	return count;
}

static size_t regressions_among(size_t n, size_t observations)
{
	return differences_among(n, observations, 1.5, MEW_OUTCOME_REGRESSED, MEW_OUTCOME_INCONCLUSIVE);
}

static size_t improvements_among(size_t n, size_t observations)
{
	return differences_among(n, observations, 0.5, MEW_OUTCOME_IMPROVED, MEW_OUTCOME_PASS);
}

static void many_cases_need_more(void **state)
{
	(void)state;
	assert_int_equal(regressions_among(1, 6), 1);
	assert_int_equal(regressions_among(2, 6), 0);
	assert_int_equal(regressions_among(2, 7), 2);
	assert_int_equal(regressions_among(40, 7), 0);
	assert_int_equal(regressions_among(40, 11), 40);
}

/* Too few to say that it is faster are enough to say that it is not slower. */
static void a_doubtful_improvement_is_a_pass(void **state)
{
	(void)state;
	assert_int_equal(improvements_among(1, 6), 1);
	assert_int_equal(improvements_among(2, 6), 0);
	assert_int_equal(improvements_among(2, 7), 2);
}

/* An exact rise needs no certainty and costs the timed cases none. */
static void exact_metrics_are_not_corrected(void **state)
{
	struct mew_rules rules = { .alpha = 0 };
	struct mew_verdict list[MOST], *all[MOST];
	double x[] = { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 };

	(void)state;
	for (size_t i = 0; i < MOST; i++) {
		all[i] = &list[i];
		mew_verdict_exact(&rules, "a", mew_metric_find("allocs"), 5, 6, &list[i]);
	}
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ x, NULL, NULL, 6, 0 }, &list[7], NULL), MEW_OK);
	assert_int_equal(mew_verdicts_settle(&rules, all, MOST, NULL), MEW_OK);
	for (size_t i = 0; i < MOST; i++)
		assert_int_equal(list[i].outcome, MEW_OUTCOME_REGRESSED);
}

/* --- exit codes ------------------------------------------------------------------------------------------------- */

static void exit_codes(void **state)
{
	static const struct {
		enum mew_outcome list[3];
		enum mew_unsure unsure;
		int want;
	} rows[] = {
		{ { MEW_OUTCOME_PASS, MEW_OUTCOME_IMPROVED, MEW_OUTCOME_ABSENT }, MEW_UNSURE_SAY, 0 },
		{ { MEW_OUTCOME_PASS, MEW_OUTCOME_REGRESSED, MEW_OUTCOME_INCONCLUSIVE }, MEW_UNSURE_SAY, 1 },
		{ { MEW_OUTCOME_IMPROVED, MEW_OUTCOME_REGRESSED, MEW_OUTCOME_PASS }, MEW_UNSURE_PASS, 1 },
		{ { MEW_OUTCOME_PASS, MEW_OUTCOME_INCONCLUSIVE, MEW_OUTCOME_IMPROVED }, MEW_UNSURE_SAY, 3 },
		{ { MEW_OUTCOME_PASS, MEW_OUTCOME_INCONCLUSIVE, MEW_OUTCOME_PASS }, MEW_UNSURE_PASS, 0 },
		{ { MEW_OUTCOME_PASS, MEW_OUTCOME_INCONCLUSIVE, MEW_OUTCOME_PASS }, MEW_UNSURE_FAIL, 1 },
		{ { MEW_OUTCOME_INVALID, MEW_OUTCOME_REGRESSED, MEW_OUTCOME_PASS }, MEW_UNSURE_PASS, 4 },
		{ { MEW_OUTCOME_ABSENT, MEW_OUTCOME_ABSENT, MEW_OUTCOME_ABSENT }, MEW_UNSURE_PASS, 4 },
	};

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(rows); i++) {
		struct mew_rules rules = { .unsure = rows[i].unsure };
		struct mew_verdict list[3] = { { .outcome = rows[i].list[0] }, { .outcome = rows[i].list[1] },
					       { .outcome = rows[i].list[2] } };
		struct mew_verdict *all[] = { &list[0], &list[1], &list[2] };

		if (mew_verdicts_exit(&rules, all, 3) != rows[i].want)
			fail_msg("row %zu", i);
	}
	assert_int_equal(mew_verdicts_exit(&(struct mew_rules){ .unsure = MEW_UNSURE_PASS }, NULL, 0), 4);
}

/* One more allocation is a regression although the time fell by half. */
static void more_allocations_are_not_outweighed(void **state)
{
	struct mew_rules rules = { .alpha = 0 };
	double x[] = { -0.7, -0.7, -0.7, -0.7, -0.7, -0.7 };
	struct mew_verdict time, allocs, *all[] = { &time, &allocs };

	(void)state;
	assert_int_equal(mew_verdict_time(&rules, "a", &(struct mew_observations){ x, NULL, NULL, 6, 0 }, &time, NULL), MEW_OK);
	mew_verdict_exact(&rules, "a", mew_metric_find("allocs"), 5, 6, &allocs);
	assert_int_equal(time.outcome, MEW_OUTCOME_IMPROVED);
	assert_int_equal(mew_verdicts_exit(&rules, all, 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_metrics),
		cmocka_unit_test(more_can_be_better),
		cmocka_unit_test(time_by_signs),
		cmocka_unit_test(times_that_are_none),
		cmocka_unit_test(the_noise_floor_bounds_the_margin),
		cmocka_unit_test(false_alarms_stay_below_alpha),
		cmocka_unit_test(time_by_the_classic_rule),
		cmocka_unit_test(many_cases_need_more),
		cmocka_unit_test(a_doubtful_improvement_is_a_pass),
		cmocka_unit_test(exact_metrics_are_not_corrected),
		cmocka_unit_test(exit_codes),
		cmocka_unit_test(more_allocations_are_not_outweighed),
	};

	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
