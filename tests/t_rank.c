/*
 * t_rank.c - Mann-Whitney and Holm against published examples, brute force and degenerate input; tests/judge_stats.sh has
 * random ones.
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

#include "rank.h"
#include "resample.h"

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-12 * fabs(want)))
		fail_msg("got %.17g, want %.17g", got, want);
}

/* The example of scipy.stats.mannwhitneyu: U = 17, p = 1/9. */
static void known_example(void **state)
{
	double males[] = { 19, 22, 16, 29, 24 }, females[] = { 20, 11, 17, 12 };
	struct mew_mann_whitney m;

	(void)state;
	assert_true(mew_rank_mann_whitney(males, 5, females, 4, &m));
	near(m.u, 17);
	near(m.p, 1 / 9.0);
	near(m.effect, 0.85);
	assert_true(m.exact && !m.ties);
}

/* All ways to deal out the values seen, counted: the definition of the exact test, ties included. */
static double dealt(const double *all, size_t n, size_t na, double u_seen)
{
	double below = 0, above = 0, total = 0;

	for (unsigned deal = 0; deal < 1u << n; deal++) {
		double u = 0;

		if ((size_t)__builtin_popcount(deal) != na)
			continue;
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < n; j++)
				if ((deal >> i & 1) != 0 && (deal >> j & 1) == 0)
					u += all[i] > all[j] ? 1 : all[i] == all[j] ? 0.5 : 0;
		total++;
		below += u <= u_seen;
		above += u >= u_seen;
	}
	return fmin(1, 2 * fmin(below, above) / total);
}

static void exact_with_and_without_ties(void **state)
{
	struct mew_mann_whitney m;
	struct mew_random r;
	double all[10];

	(void)state;
	mew_random_seed(&r, 8);
	for (int trial = 0; trial < 120; trial++) {
		size_t n = 2 + (size_t)mew_random_below(&r, 8), na = 1 + (size_t)mew_random_below(&r, n - 1);

		for (size_t i = 0; i < n; i++)
			all[i] = trial % 2 != 0 ? mew_random_unit(&r) : (double)mew_random_below(&r, 4);
		assert_true(mew_rank_mann_whitney(all, na, all + na, n - na, &m));
		near(m.p, dealt(all, n, na, m.u));
	}
}

/* 4 against 4 cannot be significant at 2 %, 20 against 20 can; unequal counts are fine. */
static void counts_limit_what_can_be_said(void **state)
{
	struct mew_mann_whitney m;
	double x[41];

	(void)state;
	for (int i = 0; i < 41; i++)
		x[i] = i;
	assert_true(mew_rank_mann_whitney(x, 4, x + 4, 4, &m));
	near(m.p, 2 / 70.0);
	assert_true(mew_rank_mann_whitney(x, 20, x + 20, 20, &m));
	assert_true(m.exact && m.p < 1e-10 && m.u == 0);
	assert_true(mew_rank_mann_whitney(x, 20, x + 20, 21, &m));
	assert_true(!m.exact && m.p < 1e-6 && m.p > 0);
	assert_true(mew_rank_mann_whitney(x, 1, x + 1, 40, &m));
	assert_true(m.p > 0.05);
}

static void degenerate_input_is_not_significant(void **state)
{
	double same[50] = { 0 }, nan[] = { 1, (double)NAN }, inf[] = { 1, (double)INFINITY };
	struct mew_mann_whitney m;

	(void)state;
	assert_true(mew_rank_mann_whitney(same, 20, same, 21, &m));
	assert_true(m.p == 1 && m.ties && m.effect == 0.5);
	assert_true(mew_rank_mann_whitney(same, 7, same, 9, &m));
	assert_true(m.p == 1);
	assert_true(mew_rank_mann_whitney(same, 1, same, 1, &m));
	assert_true(m.p == 1);
	assert_false(mew_rank_mann_whitney(nan, 2, same, 5, &m));
	assert_true(m.p == 1);
	assert_false(mew_rank_mann_whitney(same, 5, inf, 2, &m));
	assert_false(mew_rank_mann_whitney(same, 0, same, 5, &m));
	assert_false(mew_rank_mann_whitney(same, 5, same, 0, &m));
}

/* Unlike a pooled t test on all values, p keeps its promise for skewed values and unequal counts. */
static void false_alarms_stay_below_alpha(void **state)
{
	enum { TRIALS = 2000 };
	struct mew_mann_whitney m;
	struct mew_random r;
	double a[21], b[30];
	int alarms = 0;

	(void)state;
	mew_random_seed(&r, 17);
	for (int trial = 0; trial < TRIALS; trial++) {
		for (size_t i = 0; i < MEW_COUNTOF(a); i++)
			a[i] = floor(-10 * log(1 - mew_random_unit(&r)));
		for (size_t i = 0; i < MEW_COUNTOF(b); i++)
			b[i] = floor(-10 * log(1 - mew_random_unit(&r)));
		assert_true(mew_rank_mann_whitney(a, MEW_COUNTOF(a), b, MEW_COUNTOF(b), &m));
		alarms += m.p <= 0.05;
	}
	assert_in_range(alarms, TRIALS / 50, TRIALS * 6 / 100);
}

/* Worked by hand: steps of n, n - 1, ..., never falling, never above 1. */
static void holm_by_hand(void **state)
{
	double p[] = { 0.01, 0.04, 0.03, 0.005 }, adjusted[4], with_nan[] = { (double)NAN, 0.01 };

	(void)state;
	assert_true(mew_rank_holm(p, 4, adjusted));
	near(adjusted[3], 0.02);
	near(adjusted[0], 0.03);
	near(adjusted[2], 0.06);
	near(adjusted[1], 0.06);
	assert_true(mew_rank_holm(with_nan, 2, with_nan));
	near(with_nan[1], 0.02);
	assert_true(with_nan[0] == 1);
	assert_true(mew_rank_holm(p, 0, adjusted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_example),
		cmocka_unit_test(exact_with_and_without_ties),
		cmocka_unit_test(counts_limit_what_can_be_said),
		cmocka_unit_test(degenerate_input_is_not_significant),
		cmocka_unit_test(false_alarms_stay_below_alpha),
		cmocka_unit_test(holm_by_hand),
	};

	return cmocka_run_group_tests_name("rank", tests, NULL, NULL);
}
