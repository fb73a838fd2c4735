/*
 * t_trend.c - slopes and intervals against scipy.stats.theilslopes; steps, leaks and noise; how often it covers.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "trend.h"

static double x[MEW_TREND_POINTS + 1], y[MEW_TREND_POINTS + 1];

static void count_up(size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (double)i;
}

static void near(double has, double want)
{
	if (!(fabs(has - want) <= 1e-13 * (1 + fabs(want))))
		fail_msg("%.17g instead of %.17g", has, want);
}

static void check(const double *values, size_t n, double slope, double low, double high)
{
	struct mew_trend t;

	count_up(n);
	assert_true(mew_trend(x, values, n, &t));
	assert_true(t.has_interval);
	near(t.slope, slope);
	near(t.low, low);
	near(t.high, high);
}

/* scipy.stats.theilslopes(y, x) */
static void test_published(void **state)
{
	static const double rising[] = { 1, 3, 2, 5, 4, 6, 8, 7, 9, 12 };
	static const double tied[] = { 0, 0, 1, 1, 2, 2, 2, 3, 3, 5, 5, 5.5 };
	static const double zeros[] = { 39, 49, 25, 0, 0, 0, 28, 0 };
	double noisy[30];

	(void)state;
	for (int i = 0; i < 30; i++)
		noisy[i] = 10 * i + i * 37 % 11;
	check(rising, 10, 1, 0.75, 1.4285714285714286);
	check(tied, 12, 0.5, 0.4, 0.5833333333333334);
	check(noisy, 30, 10.04, 9.875, 10.333333333333334);
	check(zeros, 8, -5.285714285714286, -12.5, 0); /* -13 if ties went uncounted */
}

static void test_exact_lines(void **state)
{
	static const double slopes[] = { 0, 48, -0.5, 1e12 };
	struct mew_trend t;

	(void)state;
	for (size_t k = 0; k < MEW_COUNTOF(slopes); k++) {
		for (size_t i = 0; i < MEW_TREND_POINTS; i++) {
			x[i] = 1 + 8 * (double)i; /* iterations that stand eight apart */
			y[i] = 4096 + slopes[k] * x[i];
		}
		assert_true(mew_trend(x, y, MEW_TREND_POINTS, &t) && t.has_interval);
		near(t.slope, slopes[k]);
		near(t.low, slopes[k]);
		near(t.high, slopes[k]);
	}
}

/* What rises once and stays does not leak, wherever it rises in the first quarter. */
static void test_step(void **state)
{
	struct mew_trend t;

	(void)state;
	count_up(100);
	for (size_t at = 1; at < 25; at++) {
		for (size_t i = 0; i < 100; i++)
			y[i] = i < at ? 100 : 8192;
		assert_true(mew_trend(x, y, 100, &t) && t.has_interval);
		assert_true(t.slope == 0 && t.low == 0);
	}
}

static uint64_t random_state;

static double uniform(void) /* -1 .. 1 */
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (double)(int64_t)random_state / 0x1p63;
}

/* 24 bytes an iteration under noise of 500: found, and 0 excluded; the interval holds the truth about as often as 95 %. */
static void test_leak_under_noise(void **state)
{
	enum { TIMES = 400 };
	int covers = 0, excludes = 0;

	(void)state;
	random_state = 1;
	count_up(100);
	for (int turn = 0; turn < TIMES; turn++) {
		struct mew_trend t;

		for (size_t i = 0; i < 100; i++)
			y[i] = 24 * x[i] + 500 * uniform() + (i % 17 == 0 ? 20000 : 0); /* now and then a buffer is alive */
		assert_true(mew_trend(x, y, 100, &t) && t.has_interval);
		assert_true(fabs(t.slope - 24) < 8);
		covers += t.low <= 24 && 24 <= t.high;
		excludes += t.low > 0;
	}
	assert_int_equal(excludes, TIMES);
	assert_in_range(covers, TIMES * 92 / 100, TIMES * 985 / 1000);
}

/* Noise alone is rarely called a leak. */
static void test_noise_alone(void **state)
{
	enum { TIMES = 400 };
	int wrong = 0;

	(void)state;
	random_state = 2;
	count_up(60);
	for (int turn = 0; turn < TIMES; turn++) {
		struct mew_trend t;

		for (size_t i = 0; i < 60; i++)
			y[i] = floor(8 * uniform()); /* with many ties */
		assert_true(mew_trend(x, y, 60, &t) && t.has_interval);
		wrong += t.low > 0 || t.high < 0;
	}
	assert_in_range(wrong, 0, TIMES * 8 / 100);
}

static void test_order_and_equal_x(void **state)
{
	static const double a[] = { 5, 1, 3, 3, 2, 4, 0, 6 }, b[] = { 10, 2, 6, 6, 4, 8, 0, 12 };
	static const double same[] = { 7, 7, 7, 7, 7, 7, 7, 7 };
	struct mew_trend t;

	(void)state;
	assert_true(mew_trend(a, b, 8, &t) && t.has_interval);
	assert_true(t.slope == 2 && t.low == 2 && t.high == 2);
	assert_false(mew_trend(same, b, 8, &t));
	assert_true(mew_trend(a, same, 8, &t));
	assert_true(t.slope == 0);
}

static void test_too_few_and_too_many(void **state)
{
	struct mew_trend t;

	(void)state;
	count_up(MEW_TREND_POINTS + 1);
	for (size_t n = 0; n <= MEW_TREND_POINTS + 1; n = n < 8 ? n + 1 : n * 2 - 7) {
		assert_int_equal(mew_trend(x, x, n, &t), n >= 3 && n <= MEW_TREND_POINTS);
		assert_int_equal(t.has_interval, n >= 6 && n <= MEW_TREND_POINTS);
	}
	assert_false(mew_trend(x, x, MEW_TREND_POINTS + 1, &t));
	x[2] = (double)NAN;
	assert_false(mew_trend(x, y, 8, &t));
	assert_false(mew_trend(y, x, 8, &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_exact_lines),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_leak_under_noise),
		cmocka_unit_test(test_noise_alone),
		cmocka_unit_test(test_order_and_equal_x),
		cmocka_unit_test(test_too_few_and_too_many),
	};

	return cmocka_run_group_tests_name("trend", tests, NULL, NULL);
}
