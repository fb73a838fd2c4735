/*
 * t_signs.c - sign tests and e-processes: published values, scipy's, and how often they cry wolf.
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

#include "resample.h"
#include "signs.h"

#define near(a, b, relative) near_at((a), (b), (relative), __LINE__)

static void near_at(double got, double want, double relative, int line)
{
	if (!(fabs(got - want) <= relative * fabs(want)))
		fail_msg("line %d: got %.17g, want %.17g", line, got, want);
}

static void tail_is_the_binomial_one(void **state)
{
	(void)state;
	near(mew_signs_tail(10, 0), 1, 0);
	near(mew_signs_tail(10, 8), 56 / 1024.0, 1e-13);
	near(mew_signs_tail(10, 3), 968 / 1024.0, 1e-13);
	/* scipy.stats.binom.sf(k - 1, n, 0.5) */
	near(mew_signs_tail(1000, 560), 8.252493527522643e-05, 1e-9);
	near(mew_signs_tail(1000, 1000), exp2(-1000), 1e-10);
	near(mew_signs_tail(100000, 50000), 0.501261563107098, 1e-9);
	assert_true(mew_signs_tail(10, 11) == 0);
}

/* Binomial test of 60 heads in 100 throws: a textbook's one-sided 0.0284. */
static void p_counts_ties_against_a_difference(void **state)
{
	(void)state;
	near(mew_signs_p_above(&(struct mew_signs){ .above = 60, .below = 40 }), 0.028443966820490, 1e-10);
	near(mew_signs_p_above(&(struct mew_signs){ .above = 60, .ties = 40 }), 0.028443966820490, 1e-10);
	assert_true(mew_signs_p_above(&(struct mew_signs){ 0 }) == 1);
	near(mew_signs_p_above(&(struct mew_signs){ .ties = 50 }), 1, 0);
}

/* The p-value and the exact interval must never contradict each other. */
static void p_agrees_with_the_interval(void **state)
{
	struct mew_random r;
	struct mew_interval in;
	double x[60];
	int lows = 0;

	(void)state;
	mew_random_seed(&r, 7);
	for (int trial = 0; trial < 4000; trial++) {
		size_t n = 1 + (size_t)mew_random_below(&r, MEW_COUNTOF(x));
		double at = (double)mew_random_below(&r, 5);
		struct mew_signs s;
		bool is_above;

		for (size_t i = 0; i < n; i++)
			x[i] = (double)mew_random_below(&r, 9);
		s = mew_signs_count(x, n, at);
		mew_stats_sort(x, n);
		is_above = mew_stats_median_interval_sorted(x, n, 0.95, &in) && in.low > at;
		assert_int_equal(is_above, mew_signs_p_above(&s) <= 0.025);
		lows += is_above;
	}
	assert_in_range(lows, 100, 3900);
}

static double choose(unsigned n, unsigned k)
{
	double ways = 1;

	for (unsigned i = 0; i < k; i++)
		ways = ways * (n - i) / (i + 1);
	return ways;
}

/* The mixtures by Simpson's rule over the probability of "above". */
static double mixture(unsigned n, unsigned above, double from)
{
	const unsigned steps = 20000;
	double sum = 0, width = (1 - from) / steps;

	for (unsigned i = 0; i <= steps; i++) {
		double p = from + i * width, weight = i == 0 || i == steps ? 1 : i % 2 != 0 ? 4 : 2;

		sum += weight * pow(2 * p, above) * pow(2 * (1 - p), n - above);
	}
	return sum * width / 3 / (1 - from);
}

static void evidence_is_the_mixture(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 40; n++) {
		for (unsigned above = 0; above <= n; above++) {
			struct mew_signs s = { .above = above, .below = n - above };

			near(exp(mew_signs_evidence(&s)), exp2(n) / ((n + 1) * choose(n, above)), 1e-9);
			near(exp(mew_signs_evidence(&s)), mixture(n, above, 0), 1e-6);
			near(exp(mew_signs_evidence_above(&s)), mixture(n, above, 0.5), 1e-6);
		}
	}
}

static void smallest_numbers_that_decide(void **state)
{
	(void)state;
	assert_int_equal(mew_signs_least(MEW_SIGNS_EXACT, 0.05), 6);
	assert_int_equal(mew_signs_least(MEW_SIGNS_EXACT, 0.01), 8);
	assert_int_equal(mew_signs_least(MEW_SIGNS_ONE_SIDED, 0.05), 7);
	assert_int_equal(mew_signs_least(MEW_SIGNS_TWO_SIDED, 0.05), 8);
	assert_int_equal(mew_signs_least(MEW_SIGNS_EXACT, 0), 0);
	assert_int_equal(mew_signs_least(MEW_SIGNS_EXACT, (double)NAN), 0);
}

static void ties_are_no_evidence(void **state)
{
	struct mew_signs ties = { .ties = 1000 }, mixed = { .above = 20, .below = 20, .ties = 40 };
	double same[50] = { 0 };

	(void)state;
	assert_true(mew_signs_evidence(&ties) == 0);
	assert_true(mew_signs_evidence_above(&ties) <= 0);
	assert_true(mew_signs_evidence_above(&mixed) < 0);
	assert_true(mew_signs_peak(same, 50, 0, 1) == 0);
	assert_true(mew_signs_peak(same, 50, 0, -1) == 0);
	assert_true(mew_signs_peak(same, 0, 0, 1) == 0);
}

static void what_is_not_finite_is_no_evidence(void **state)
{
	double x[20];

	(void)state;
	for (int i = 0; i < 20; i++)
		x[i] = 1;
	assert_true(mew_signs_peak(x, 20, 0, 1) > log(20));
	x[19] = (double)NAN;
	assert_true(mew_signs_peak(x, 20, 0, 1) == 0);
	x[19] = (double)INFINITY;
	assert_true(mew_signs_peak(x, 20, 0, 1) == 0);
	assert_int_equal(mew_signs_count((double[]){ (double)NAN, 1 }, 2, 0).ties, 1);
}

/* What stood once stays: evidence is judged at the moment it was there. */
static void a_peak_is_kept(void **state)
{
	double x[40];

	(void)state;
	for (int i = 0; i < 40; i++)
		x[i] = i < 12 ? 1 : -1;
	assert_true(mew_signs_peak(x, 40, 0, 1) == mew_signs_peak(x, 12, 0, 1));
	assert_true(mew_signs_peak(x, 40, 0, 1) > log(20));
}

/*
 * Ville's inequality in practice: symmetric observations, looked at after each of 400. A fixed seed makes the count the
 * same every time; it may be anything up to alpha and, since the bound is not reached, well below it.
 */
static void false_alarms_stay_below_alpha(void **state)
{
	enum { TRIALS = 4000, LOOKS = 400 };
	int above = 0, either = 0;
	struct mew_random r;
	double x[LOOKS];

	(void)state;
	mew_random_seed(&r, 20261130);
	for (int trial = 0; trial < TRIALS; trial++) {
		struct mew_signs s = { 0 };
		double most = 0;

		for (int i = 0; i < LOOKS; i++) {
			x[i] = mew_random_unit(&r) - 0.5;
			s.above += x[i] > 0;
			s.below += x[i] < 0;
			most = fmax(most, mew_signs_evidence(&s));
		}
		either += most >= log(20);
		above += mew_signs_peak(x, LOOKS, 0, 1) >= log(20);
	}
	print_message("alarms among %d series of %d: one-sided %d, two-sided %d\n", TRIALS, LOOKS, above, either);
	assert_in_range(above, TRIALS / 100, TRIALS / 20);
	assert_in_range(either, TRIALS / 100, TRIALS / 20);
}

/* A median exactly at the margin, with ties that a drop would turn into a bias: 40 % above, 10 % below, 50 % at it. */
static void false_alarms_with_ties_stay_below_alpha(void **state)
{
	enum { TRIALS = 2000, LOOKS = 200 };
	struct mew_random r;
	double x[LOOKS];
	int alarms = 0;

	(void)state;
	mew_random_seed(&r, 5);
	for (int trial = 0; trial < TRIALS; trial++) {
		for (int i = 0; i < LOOKS; i++) {
			double u = mew_random_unit(&r);

			x[i] = u < 0.4 ? 1 : u < 0.5 ? -1 : 0;
		}
		alarms += mew_signs_peak(x, LOOKS, 0, 1) >= log(20);
	}
	assert_true(alarms <= TRIALS / 20);
}

static void finds_what_is_there(void **state)
{
	enum { TRIALS = 500, LOOKS = 60 };
	struct mew_random r;
	double x[LOOKS];
	int found = 0;

	(void)state;
	mew_random_seed(&r, 11);
	for (int trial = 0; trial < TRIALS; trial++) {
		for (int i = 0; i < LOOKS; i++)
			x[i] = mew_random_unit(&r) - 0.2; /* above in 4 of 5 */
		found += mew_signs_peak(x, LOOKS, 0, 1) >= log(20);
	}
	assert_true(found > TRIALS * 95 / 100);
}

/* The interval is what the e-process does not reject, tried value by value. */
static void interval_inverts_the_test(void **state)
{
	struct mew_interval in;
	struct mew_random r;
	double x[50];

	(void)state;
	mew_random_seed(&r, 3);
	for (size_t n = 1; n <= MEW_COUNTOF(x); n++) {
		for (size_t i = 0; i < n; i++)
			x[i] = mew_random_unit(&r);
		mew_stats_sort(x, n);
		if (!mew_signs_interval_sorted(x, n, 0.95, &in)) {
			assert_true(n < 8);
			continue;
		}
		assert_true(n >= 8);
		for (size_t i = 0; i + 1 < n; i++) {
			double at = (x[i] + x[i + 1]) / 2;
			struct mew_signs s = mew_signs_count(x, n, at);

			assert_int_equal(at >= in.low && at <= in.high, mew_signs_evidence(&s) < log(20));
		}
	}
	x[3] = (double)NAN;
	assert_false(mew_signs_interval_sorted(x, 4, 0.95, &in));
	assert_false(mew_signs_interval_sorted(x, 0, 0.95, &in));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tail_is_the_binomial_one),
		cmocka_unit_test(p_counts_ties_against_a_difference),
		cmocka_unit_test(p_agrees_with_the_interval),
		cmocka_unit_test(evidence_is_the_mixture),
		cmocka_unit_test(smallest_numbers_that_decide),
		cmocka_unit_test(ties_are_no_evidence),
		cmocka_unit_test(what_is_not_finite_is_no_evidence),
		cmocka_unit_test(a_peak_is_kept),
		cmocka_unit_test(false_alarms_stay_below_alpha),
		cmocka_unit_test(false_alarms_with_ties_stay_below_alpha),
		cmocka_unit_test(finds_what_is_there),
		cmocka_unit_test(interval_inverts_the_test),
	};

	return cmocka_run_group_tests_name("signs", tests, NULL, NULL);
}
