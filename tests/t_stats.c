/*
 * t_stats.c - statistics against published values and against scipy 1.10.1 / numpy 1.24.2.
 * The line above a table says where its numbers come from; `%r` of the Python result was copied.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stats.h"

#define near(a, b, relative) near_at((a), (b), (relative), __LINE__)

static void near_at(double got, double want, double relative, int line)
{
	double off = fabs(got - want), allowed = relative * fmax(fabs(want), 1e-300);

	if (want == 0)
		allowed = relative;
	if (!(off <= allowed))
		fail_msg("line %d: got %.17g, want %.17g", line, got, want);
}

/* [((i * 7919 + 13) % 101) / 7.0 for i in range(37)] */
static void sample(double x[37])
{
	for (int i = 0; i < 37; i++)
		x[i] = (i * 7919 + 13) % 101 / 7.0;
}

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sorts_like_qsort(double *x, size_t n)
{
	double *want = malloc((n + 1) * sizeof *want);

	assert_non_null(want);
	memcpy(want, x, n * sizeof *x);
	qsort(want, n, sizeof *want, by_value);
	mew_stats_sort(x, n);
	for (size_t i = 0; i < n; i++)
		assert_true(x[i] == want[i]);
	free(want);
}

static void test_sort_patterns(void **state)
{
	static double x[5000];

	(void)state;
	for (size_t n = 0; n <= MEW_COUNTOF(x); n = n < 70 ? n + 1 : n * 3 + 1) {
		for (size_t i = 0; i < n; i++)
			x[i] = (double)(next_random() % 1000);
		sorts_like_qsort(x, n);
		sorts_like_qsort(x, n);
		for (size_t i = 0; i < n; i++)
			x[i] = -(double)i;
		sorts_like_qsort(x, n);
		for (size_t i = 0; i < n; i++)
			x[i] = 4.5;
		sorts_like_qsort(x, n);
		for (size_t i = 0; i < n; i++)
			x[i] = (double)(i < n / 2 ? i : n - i);
		sorts_like_qsort(x, n);
		for (size_t i = 0; i < n; i++)
			x[i] = i % 2 != 0 ? (double)INFINITY : -(double)i;
		sorts_like_qsort(x, n);
	}
}

/*
 * Input that spoils medians of three, made from the inside out: at each step the two largest values lie in the middle
 * and at the end, so that the pivot is the second largest and a partition takes two values off. Sorting it is quadratic
 * where nothing is done about it: 100 times the time of random input of this length, instead of about two.
 */
static void spoil_median_of_three(double *x, size_t n)
{
	for (size_t i = 0; i < 16; i++)
		x[i] = (double)i;
	for (size_t m = 18; m <= n; m += 2) {
		x[m - 2] = x[m / 2];
		x[m / 2] = (double)(m - 2);
		x[m - 1] = (double)(m - 1);
	}
}

static double seconds_to_sort(double *x, size_t n)
{
	struct timespec before, after;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	mew_stats_sort(x, n);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	for (size_t i = 1; i < n; i++)
		assert_true(x[i - 1] <= x[i]);
	return (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

static void test_sort_spoiled(void **state)
{
	enum { N = 50000 };
	double *x = malloc(N * sizeof *x), ratio = 1000;

	(void)state;
	assert_non_null(x);
	for (int attempt = 0; attempt < 5 && ratio > 20; attempt++) {
		double usual;

		for (size_t i = 0; i < N; i++)
			x[i] = (double)(next_random() >> 12);
		usual = seconds_to_sort(x, N);
		spoil_median_of_three(x, N);
		ratio = seconds_to_sort(x, N) / usual;
		for (size_t i = 0; i < N; i++)
			assert_true(x[i] == (double)i);
	}
	free(x);
	assert_true(ratio <= 20);
}

static void test_sort_nan(void **state)
{
	double nan = (double)NAN, x[] = { nan, 3, nan, -1, 2, nan, 0 }, all[] = { nan, nan };

	(void)state;
	mew_stats_sort(x, MEW_COUNTOF(x));
	assert_true(x[0] == -1 && x[1] == 0 && x[2] == 2 && x[3] == 3);
	assert_true(isnan(x[4]) && isnan(x[5]) && isnan(x[6]));
	mew_stats_sort(all, 2);
	assert_true(isnan(all[0]) && isnan(all[1]));
	mew_stats_sort(NULL, 0);
}

/* NIST StRD, data sets NumAcc3 and NumAcc4: certified mean x.2 and standard deviation 0.1. */
static void test_nist(void **state)
{
	double x[1001];

	(void)state;
	for (int set = 0; set < 2; set++) {
		double base = set == 0 ? 1000000.0 : 10000000.0;

		x[0] = base + 0.2;
		for (int i = 1; i < 1001; i++)
			x[i] = base + (i % 2 != 0 ? 0.1 : 0.3);
		near(mew_stats_mean(x, 1001), base + 0.2, 1e-16);
		near(mew_stats_stddev(x, 1001), 0.1, 1e-8);
	}
}

/* numpy.mean, std(ddof=1), median, quantile; scipy.stats.median_abs_deviation */
static void test_numpy(void **state)
{
	static const double want[][2] = { { 0, 0 },
					  { 0.1, 1.542857142857143 },
					  { 0.25, 3.5714285714285716 },
					  { 0.5, 7.142857142857143 },
					  { 0.9, 12.742857142857142 },
					  { 0.99, 13.845714285714285 },
					  { 1, 14 } };
	double x[37], scratch[37], mean;

	(void)state;
	sample(x);
	mean = mew_stats_mean(x, 37);
	near(mean, 7.065637065637064, 1e-15);
	near(mew_stats_stddev(x, 37), 4.224106742454456, 1e-15);
	near(mew_stats_mad(x, 37, mean, scratch), 3.648648648648649, 1e-14);
	mew_stats_sort(x, 37);
	near(mew_stats_median_sorted(x, 37), 7.142857142857143, 1e-15);
	near(mew_stats_mad(x, 37, 7.142857142857143, scratch), 3.5714285714285716, 1e-15);
	for (size_t i = 0; i < MEW_COUNTOF(want); i++)
		near(mew_stats_quantile_sorted(x, 37, want[i][0]), want[i][1], 1e-14);
}

static void test_degenerate(void **state)
{
	double one[] = { 7 }, two[] = { 1, 4 }, same[] = { 3, 3, 3, 3 }, scratch[4], bad[] = { 1, 2, (double)NAN };

	(void)state;
	assert_true(isnan(mew_stats_mean(one, 0)) && isnan(mew_stats_median_sorted(one, 0)));
	assert_true(isnan(mew_stats_quantile_sorted(one, 0, 0.5)) && isnan(mew_stats_mad(one, 0, 0, scratch)));
	assert_true(isnan(mew_stats_stddev(one, 0)) && isnan(mew_stats_stddev(one, 1)));
	assert_true(mew_stats_mean(one, 1) == 7 && mew_stats_median_sorted(one, 1) == 7);
	assert_true(mew_stats_quantile_sorted(one, 1, 0) == 7 && mew_stats_quantile_sorted(one, 1, 1) == 7);
	assert_true(mew_stats_mad(one, 1, 7, scratch) == 0);
	assert_true(mew_stats_median_sorted(two, 2) == 2.5);
	assert_true(mew_stats_median((double[]){ 9, 1, 5, 3 }, 4) == 4 && isnan(mew_stats_median((double[]){ (double)NAN, 1 }, 2)));
	assert_true(mew_stats_stddev(same, 4) == 0 && mew_stats_mad(same, 4, 3, scratch) == 0);
	assert_true(mew_stats_quantile_sorted(same, 4, 0.37) == 3);
	assert_true(isnan(mew_stats_quantile_sorted(two, 2, -0.1)) && isnan(mew_stats_quantile_sorted(two, 2, 1.1)));
	assert_true(isnan(mew_stats_quantile_sorted(two, 2, (double)NAN)));
	assert_true(isnan(mew_stats_mean(bad, 3)) && isnan(mew_stats_stddev(bad, 3)));
	assert_true(isnan(mew_stats_median_sorted(bad, 3)) && isnan(mew_stats_quantile_sorted(bad, 3, 0.1)));
	assert_true(isnan(mew_stats_mad(bad, 3, 1, scratch)));
}

/* The largest k with scipy.stats.binom.cdf(k - 1, n, 0.5) <= (1 - confidence) / 2; 0 is "no interval". */
static void test_median_interval_ranks(void **state)
{
	static const size_t n[] = { 1, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 50, 100, 401, 1000, 10000, 1000000 };
	static const struct {
		double confidence;
		size_t k[MEW_COUNTOF(n)];
	} want[] = {
		{ 0.5, { 0, 1, 2, 2, 3, 3, 3, 4, 6, 8, 11, 13, 23, 47, 194, 489, 4966, 499663 } },
		{ 0.9, { 0, 0, 1, 1, 1, 2, 2, 2, 4, 6, 8, 11, 19, 42, 184, 474, 4918, 499178 } },
		{ 0.95, { 0, 0, 0, 1, 1, 1, 2, 2, 4, 6, 8, 10, 18, 40, 181, 469, 4902, 499020 } },
		{ 0.99, { 0, 0, 0, 0, 0, 1, 1, 1, 3, 4, 6, 8, 16, 37, 175, 459, 4871, 498712 } },
	};
	double *x = malloc(1000000 * sizeof *x);

	(void)state;
	assert_non_null(x);
	for (size_t i = 0; i < 1000000; i++)
		x[i] = (double)(i + 1); /* its own rank */
	for (size_t c = 0; c < MEW_COUNTOF(want); c++) {
		for (size_t i = 0; i < MEW_COUNTOF(n); i++) {
			struct mew_interval at = { -1, -1 };
			size_t k = want[c].k[i];
			bool has = mew_stats_median_interval_sorted(x, n[i], want[c].confidence, &at);

			if (has != (k != 0) || (has && (at.low != (double)k || at.high != (double)(n[i] + 1 - k))))
				fail_msg("n %zu at %g: got rank %g .. %g, want %zu", n[i], want[c].confidence, at.low,
					 at.high, k);
		}
	}
	free(x);
}

static void test_median_interval_edges(void **state)
{
	double x[] = { 1, 2, 3, 4, 5, 6 }, ties[] = { 2, 2, 2, 2, 2, 2, 2 };
	double bad[] = { 1, 2, 3, 4, 5, 6, (double)NAN };
	struct mew_interval at;

	(void)state;
	assert_true(mew_stats_median_interval_sorted(x, 6, 0.95, &at));
	assert_true(at.low == 1 && at.high == 6);
	assert_false(mew_stats_median_interval_sorted(x, 5, 0.95, &at));
	assert_true(mew_stats_median_interval_sorted(x, 5, 0.9375, &at)); /* exactly 1 - 2 / 32 */
	assert_false(mew_stats_median_interval_sorted(x, 0, 0.95, &at));
	assert_true(mew_stats_median_interval_sorted(ties, 7, 0.95, &at));
	assert_true(at.low == 2 && at.high == 2);
	assert_false(mew_stats_median_interval_sorted(bad, 7, 0.95, &at));
	assert_false(mew_stats_median_interval_sorted(x, 6, 1, &at));
	assert_false(mew_stats_median_interval_sorted(x, 6, 0, &at));
	assert_false(mew_stats_median_interval_sorted(x, 6, (double)NAN, &at));
}

/* Newcombe 1998, method 3 (four decimals), then scipy.stats.binomtest().proportion_ci(method="wilson") */
static void test_wilson(void **state)
{
	static const double newcombe[][4] = {
		{ 81, 263, 0.2553, 0.3662 },
		{ 15, 148, 0.0624, 0.1605 },
		{ 0, 20, 0, 0.1611 },
		{ 1, 29, 0.0061, 0.1718 },
	};
	static const double scipy[][4] = {
		{ 0, 10, 0, 0.27753279986288926 },
		{ 10, 10, 0.7224672001371109, 1 },
		{ 1, 10, 0.017876213095072896, 0.4041500267952385 },
		{ 500, 1000, 0.4690696003681042, 0.5309303996318958 },
		{ 1, 1000000, 1.765245767453709e-07, 5.664911804311442e-06 },
	};
	double z = mew_stats_normal_quantile(0.975);
	struct mew_interval at;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(newcombe); i++) {
		assert_true(mew_stats_wilson(newcombe[i][0], newcombe[i][1], z, &at));
		assert_true(fabs(at.low - newcombe[i][2]) < 5.1e-5 && fabs(at.high - newcombe[i][3]) < 5.1e-5);
	}
	for (size_t i = 0; i < MEW_COUNTOF(scipy); i++) {
		assert_true(mew_stats_wilson(scipy[i][0], scipy[i][1], z, &at));
		near(at.low, scipy[i][2], 1e-10);
		near(at.high, scipy[i][3], 1e-12);
	}
	for (int n = 1; n < 1000; n++) { /* the ends are exact, whatever the rounding */
		assert_true(mew_stats_wilson(0, n, z, &at) && at.low == 0 && at.high > 0);
		assert_true(mew_stats_wilson(n, n, z, &at) && at.high == 1 && at.low < 1);
	}
	assert_false(mew_stats_wilson(0, 0, z, &at));
	assert_false(mew_stats_wilson(3, 2, z, &at));
	assert_false(mew_stats_wilson(-1, 2, z, &at));
	assert_false(mew_stats_wilson((double)NAN, 2, z, &at));
	assert_false(mew_stats_wilson(1, (double)INFINITY, z, &at));
}

/* Check values printed with algorithm AS 241 (Wichura 1988), then scipy.stats.norm.ppf */
static void test_normal_quantile(void **state)
{
	static const double want[][2] = {
		{ 0.25, -0.6744897501960817 },	{ 0.001, -3.090232306167814 },	{ 1e-20, -9.262340089798408 },
		{ 1e-300, -37.0470962993612 },	{ 1e-10, -6.361340902404056 },
		{ 0.005, -2.575829303548901 },	{ 0.025, -1.9599639845400545 }, { 0.1, -1.2815515655446004 },
		{ 0.3, -0.5244005127080409 },	{ 0.75, 0.6744897501960817 },	{ 0.975, 1.959963984540054 },
		{ 0.995, 2.5758293035489004 },	{ 0.999, 3.090232306167813 },	{ 0.9999999999, 6.361340889697422 },
	};

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(want); i++)
		near(mew_stats_normal_quantile(want[i][0]), want[i][1], 1e-14);
	near(mew_stats_normal_quantile(0.5), 0, 1e-15);
	assert_true(isnan(mew_stats_normal_quantile(0)) && isnan(mew_stats_normal_quantile(1)));
	assert_true(isnan(mew_stats_normal_quantile(-1)) && isnan(mew_stats_normal_quantile((double)NAN)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort_patterns),
		cmocka_unit_test(test_sort_spoiled),
		cmocka_unit_test(test_sort_nan),
		cmocka_unit_test(test_nist),
		cmocka_unit_test(test_numpy),
		cmocka_unit_test(test_degenerate),
		cmocka_unit_test(test_median_interval_ranks),
		cmocka_unit_test(test_median_interval_edges),
		cmocka_unit_test(test_wilson),
		cmocka_unit_test(test_normal_quantile),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
