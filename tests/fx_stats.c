/*
 * fx_stats.c - answers questions about statistics, one a line, for tests/judge_stats.py to compare: a name and numbers in,
 * numbers or "none" out.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank.h"
#include "resample.h"
#include "signs.h"
#include "stats.h"
#include "trend.h"

static void print_interval(bool fine, double low, double high)
{
	if (fine)
		(void)printf("%.17g %.17g\n", low, high);
	else
		(void)printf("none\n");
}

static void print_location(double *x, size_t n)
{
	double *scratch = malloc((n + 1) * sizeof *scratch), median;

	if (scratch == NULL)
		exit(99);
	mew_stats_sort(x, n);
	median = mew_stats_median_sorted(x, n);
	(void)printf("%.17g %.17g\n", median, mew_stats_mad(x, n, median, scratch));
	free(scratch);
}

static void print_ranks(const double *x, size_t n)
{
	size_t na = n > 0 ? (size_t)x[0] : 0;
	struct mew_mann_whitney m;

	if (na + 1 < n && mew_rank_mann_whitney(x + 1, na, x + 1 + na, n - 1 - na, &m))
		(void)printf("%.17g %.17g\n", m.u, m.p);
	else
		(void)printf("none\n");
}

static void print_holm(double *p, size_t n)
{
	if (!mew_rank_holm(p, n, p))
		exit(99);
	for (size_t i = 0; i < n; i++)
		(void)printf("%.17g%c", p[i], i + 1 < n ? ' ' : '\n');
}

static void print_bootstrap(double *x, size_t n)
{
	struct mew_group g = { .x = x, .n = n };
	struct mew_estimate e;
	bool fine;

	mew_stats_sort(x, n);
	fine = mew_bootstrap_medians(&(struct mew_groups){ &g, 1 }, NULL, &(struct mew_resampling){ .seed = 1 }, &e);
	print_interval(fine && e.has_interval, e.interval.low, e.interval.high);
}

static void print_trend(const double *x, size_t n)
{
	struct mew_trend t;

	if (mew_trend(x, x + n / 2, n / 2, &t) && t.has_interval)
		(void)printf("%.17g %.17g %.17g\n", t.slope, t.low, t.high);
	else
		(void)printf("none\n");
}

static void print_evidence(const double *x)
{
	struct mew_signs s = { .above = (uint64_t)x[0], .below = (uint64_t)x[1] };

	(void)printf("%.17g %.17g\n", mew_signs_evidence(&s), mew_signs_evidence_above(&s));
}

static bool answer(const char *name, double *x, size_t n)
{
	struct mew_interval in = { 0, 0 };
	bool fine;

	if (strcmp(name, "location") == 0) {
		print_location(x, n);
	} else if (strcmp(name, "interval") == 0) {
		mew_stats_sort(x, n);
		fine = mew_stats_median_interval_sorted(x, n, 0.95, &in);
		print_interval(fine, in.low, in.high);
	} else if (strcmp(name, "ranks") == 0) {
		print_ranks(x, n);
	} else if (strcmp(name, "holm") == 0) {
		print_holm(x, n);
	} else if (strcmp(name, "bootstrap") == 0) {
		print_bootstrap(x, n);
	} else if (strcmp(name, "trend") == 0) {
		print_trend(x, n);
	} else if (strcmp(name, "evidence") == 0 && n == 2) {
		print_evidence(x);
	} else if (strcmp(name, "tail") == 0 && n == 2) {
		(void)printf("%.17g\n", mew_signs_tail((uint64_t)x[0], (uint64_t)x[1]));
	} else if (strcmp(name, "wilson") == 0 && n == 2) {
		fine = mew_stats_wilson(x[0], x[1], mew_stats_normal_quantile(0.975), &in);
		print_interval(fine, in.low, in.high);
	} else {
		return false;
	}
	return true;
}

int main(void)
{
	static char line[65536];
	static double x[4096];

	while (fgets(line, sizeof line, stdin) != NULL) {
		char *name = strtok(line, " \n"), *word;
		size_t n = 0;

		while ((word = strtok(NULL, " \n")) != NULL && n < MEW_COUNTOF(x))
			x[n++] = strtod(word, NULL);
		if (name == NULL || !answer(name, x, n))
			return 2;
	}
	return 0;
}
