/*
 * t_resample.c - the generator against published numbers, the bootstrap against brute force and degenerate input.
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

#define RESAMPLING (&(struct mew_resampling){ .seed = 1 })

/* Reference outputs of splitmix64 for the seed 1234567, as the authors' C code prints them. */
static void splitmix_as_published(void **state)
{
	static const uint64_t want[] = { 6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
					 4593380528125082431u, 16408922859458223821u };
	uint64_t s = 1234567;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(want); i++)
		assert_true(mew_random_split(&s) == want[i]);
}

/* From the state 1, 2, 3, 4: the reference outputs that ports of xoshiro256** are checked with. */
static void xoshiro_as_published(void **state)
{
	static const uint64_t want[] = { 11520, 0, 1509978240, 1215971899390074240u };
	struct mew_random r = { { 1, 2, 3, 4 } };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(want); i++)
		assert_true(mew_random_next(&r) == want[i]);
}

static void numbers_below_are_even(void **state)
{
	unsigned seen[7] = { 0 };
	struct mew_random r;
	double sum = 0;

	(void)state;
	mew_random_seed(&r, 99);
	for (int i = 0; i < 70000; i++) {
		double u = mew_random_unit(&r);

		assert_true(u >= 0 && u < 1);
		sum += u;
		seen[mew_random_below(&r, 7)]++;
	}
	assert_true(fabs(sum / 70000 - 0.5) < 0.005);
	for (size_t i = 0; i < 7; i++)
		assert_in_range(seen[i], 9600, 10400);
	assert_true(mew_random_below(&r, 1) == 0);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A resample drawn value by value, for comparison. */
static double drawn_median(struct mew_random *r, const double *x, size_t n)
{
	double y[64];

	for (size_t i = 0; i < n; i++)
		y[i] = x[mew_random_below(r, n)];
	qsort(y, n, sizeof *y, by_value);
	return mew_stats_median_sorted(y, n);
}

/* Two-sample Kolmogorov-Smirnov distance of the two ways to draw, below its 0.1 % point. */
static void medians_are_those_of_resamples(void **state)
{
	enum { DRAWS = 20000 };
	static double a[DRAWS], b[DRAWS];
	double x[64];
	struct mew_random r;

	(void)state;
	mew_random_seed(&r, 4);
	for (size_t i = 0; i < MEW_COUNTOF(x); i++)
		x[i] = (double)(i * i);
	for (size_t n = 1; n <= MEW_COUNTOF(x); n = n < 8 ? n + 1 : n * 2 - n % 2) {
		double most = 0;
		size_t i = 0, j = 0;

		for (size_t k = 0; k < DRAWS; k++) {
			a[k] = mew_resample_median(&r, x, n);
			b[k] = drawn_median(&r, x, n);
		}
		mew_stats_sort(a, DRAWS);
		mew_stats_sort(b, DRAWS);
		while (i < DRAWS && j < DRAWS) {
			double at = fmin(a[i], b[j]);

			while (i < DRAWS && a[i] == at)
				i++;
			while (j < DRAWS && b[j] == at)
				j++;
			most = fmax(most, fabs((double)i - (double)j) / DRAWS);
		}
		if (most > 0.0195)
			fail_msg("%zu values: distance %g", n, most);
	}
}

static void a_seed_repeats_everything(void **state)
{
	double x[] = { 1, 2, 4, 8, 16, 32, 64 };
	struct mew_group g = { .x = x, .n = 7 };
	struct mew_estimate a, b, c;

	(void)state;
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ &g, 1 }, NULL, RESAMPLING, &a));
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ &g, 1 }, NULL, RESAMPLING, &b));
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ &g, 1 }, NULL,
					  &(struct mew_resampling){ .seed = 2, .resamples = 50 }, &c));
	assert_memory_equal(&a.interval, &b.interval, sizeof a.interval);
	assert_true(a.value == 8 && a.has_interval && a.interval.low <= 8 && a.interval.high >= 8);
	assert_true(a.interval.low < a.interval.high);
}

/* Spread between processes must show: the interval of 6 far apart groups is wide, however many samples each has. */
static void processes_are_resampled_first(void **state)
{
	static double tight[6][500];
	struct mew_group groups[6], one;
	struct mew_estimate apart, inside;

	(void)state;
	for (size_t g = 0; g < 6; g++) {
		for (size_t i = 0; i < 500; i++)
			tight[g][i] = (double)g * 10 + (double)i / 1000;
		groups[g] = (struct mew_group){ .x = tight[g], .n = 500 };
	}
	one = groups[2];
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ groups, 6 }, NULL, RESAMPLING, &apart));
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ &one, 1 }, NULL, RESAMPLING, &inside));
	assert_true(apart.interval.high - apart.interval.low > 10);
	assert_true(inside.interval.high - inside.interval.low < 0.1);
}

/* Two machines that disagree: as a level, either may be drawn alone; without it the interval would be far too narrow. */
static void machines_are_a_level(void **state)
{
	static double x[40];
	struct mew_group with[40], without[40];
	struct mew_estimate level, flat;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		x[i] = (i < 20 ? 0 : 1) + i % 20 / 100.0;
		with[i] = (struct mew_group){ .x = &x[i], .n = 1, .machine = i / 20 };
		without[i] = (struct mew_group){ .x = &x[i], .n = 1 };
	}
	for (unsigned i = 0; i < 5; i++) /* lets the flat one lean to one side */
		x[20 + i] = 0.1;
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ with, 40 }, NULL, RESAMPLING, &level));
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ without, 40 }, NULL, RESAMPLING, &flat));
	assert_true(level.interval.high >= 1.1);
	assert_true(level.interval.high - level.interval.low > flat.interval.high - flat.interval.low);
}

/* A p-value says what the interval says: both are counts of the same resamples. */
static void p_values_agree_with_the_interval(void **state)
{
	static double x[30];
	const struct mew_group g = { .x = x, .n = 30 };
	const double edges[] = { 0, 0.05, 0.1, 0.145, 0.15, 0.2, 0.3, 1 };

	(void)state;
	for (unsigned i = 0; i < 30; i++)
		x[i] = 0.01 * i;
	for (size_t i = 0; i < MEW_COUNTOF(edges); i++) {
		struct mew_estimate e;

		assert_true(mew_bootstrap_medians(&(struct mew_groups){ &g, 1 }, NULL,
						  &(struct mew_resampling){ .seed = 3, .edge = edges[i] }, &e));
		assert_true((e.p_above <= 0.025) == (e.interval.low > edges[i]));
		assert_true((e.p_below <= 0.025) == (e.interval.high < -edges[i]));
		assert_true(e.p_above > 0 && e.p_above <= 1 && e.p_below > 0 && e.p_below <= 1);
	}
}

static void differences_of_two_sides(void **state)
{
	double a[] = { 10, 11, 12 }, b[] = { 1, 2, 3, 4 };
	struct mew_group of = { .x = a, .n = 3 }, minus = { .x = b, .n = 4 };
	struct mew_estimate e;

	(void)state;
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ &of, 1 }, &(struct mew_groups){ &minus, 1 }, RESAMPLING, &e));
	assert_true(e.value == 8.5 && e.interval.low >= 6 && e.interval.high <= 11);
}

static void degenerate_input_has_no_interval(void **state)
{
	double one = 5, bad[] = { 1, (double)NAN }, far[] = { 1, (double)INFINITY };
	struct mew_group single = { .x = &one, .n = 1 }, empty = { .x = &one, .n = 0 };
	struct mew_group nan = { .x = bad, .n = 2 }, inf = { .x = far, .n = 2 };
	struct mew_estimate e;

	(void)state;
	assert_true(mew_bootstrap_medians(&(struct mew_groups){ &single, 1 }, NULL, RESAMPLING, &e));
	assert_true(e.value == 5 && !e.has_interval);
	assert_false(mew_bootstrap_medians(&(struct mew_groups){ &single, 0 }, NULL, RESAMPLING, &e));
	assert_false(mew_bootstrap_medians(&(struct mew_groups){ &empty, 1 }, NULL, RESAMPLING, &e));
	assert_false(mew_bootstrap_medians(&(struct mew_groups){ &nan, 1 }, NULL, RESAMPLING, &e));
	assert_false(mew_bootstrap_medians(&(struct mew_groups){ &inf, 1 }, NULL, RESAMPLING, &e));
	assert_false(mew_bootstrap_medians(&(struct mew_groups){ &single, 1 }, &(struct mew_groups){ &nan, 1 }, RESAMPLING, &e));
	assert_false(e.has_interval);
}

/* At 5 pairs the 250th of 10,000 medians from either end is the smallest and the largest change. */
static void classic_rule_of_five_pairs(void **state)
{
	double base[] = { 100, 100, 200, 100, 100 }, head[] = { 103, 110, 214, 105, 101 };
	struct mew_paired p;

	(void)state;
	assert_true(mew_bootstrap_paired(base, head, 5, RESAMPLING, &p));
	assert_true(fabs(p.percent - 5) < 1e-12 && p.difference == 5 && p.has_interval);
	assert_true(fabs(p.interval.low - 1) < 1e-12 && fabs(p.interval.high - 10) < 1e-12);
	assert_true(mew_bootstrap_paired(base, head, 4, RESAMPLING, &p));
	assert_false(p.has_interval);
	assert_true(fabs(p.percent - 6) < 1e-12);
}

static void classic_rule_refuses_what_is_no_time(void **state)
{
	double good[] = { 1, 1, 1, 1, 1 }, zero[] = { 1, 1, 0, 1, 1 }, nan[] = { 1, 1, (double)NAN, 1, 1 };
	struct mew_paired p;

	(void)state;
	assert_false(mew_bootstrap_paired(good, zero, 5, RESAMPLING, &p));
	assert_false(mew_bootstrap_paired(nan, good, 5, RESAMPLING, &p));
	assert_false(mew_bootstrap_paired(good, good, 0, RESAMPLING, &p));
	assert_true(mew_bootstrap_paired(good, good, 5, RESAMPLING, &p));
	assert_true(p.interval.low == 0 && p.interval.high == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splitmix_as_published),
		cmocka_unit_test(xoshiro_as_published),
		cmocka_unit_test(numbers_below_are_even),
		cmocka_unit_test(medians_are_those_of_resamples),
		cmocka_unit_test(a_seed_repeats_everything),
		cmocka_unit_test(processes_are_resampled_first),
		cmocka_unit_test(machines_are_a_level),
		cmocka_unit_test(p_values_agree_with_the_interval),
		cmocka_unit_test(differences_of_two_sides),
		cmocka_unit_test(degenerate_input_has_no_interval),
		cmocka_unit_test(classic_rule_of_five_pairs),
		cmocka_unit_test(classic_rule_refuses_what_is_no_time),
	};

	return cmocka_run_group_tests_name("resample", tests, NULL, NULL);
}
