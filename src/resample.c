/*
 * resample.c - random numbers, order statistics of resamples, and the bootstrap in levels.
 * Layer L2. Any thread, outside windows; no state but the caller's.
 */
#include "config.h"

#include "resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFIDENCE 0.95

/* --- random numbers --------------------------------------------------------------------------------------------- */

void mew_random_seed(struct mew_random *r, uint64_t seed)
{
	for (size_t i = 0; i < MEW_COUNTOF(r->s); i++)
		r->s[i] = mew_random_split(&seed);
}

static uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

uint64_t mew_random_next(struct mew_random *r)
{
	uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate(s[3], 45);
	return result;
}

double mew_random_unit(struct mew_random *r)
{
	return (double)(mew_random_next(r) >> 11) * 0x1p-53;
}

uint64_t mew_random_below(struct mew_random *r, uint64_t n)
{
	uint64_t surplus = (0 - n) % n, x; /* 2^64 mod n numbers too many: throw those away */

	do
		x = mew_random_next(r);
	while (x < surplus);
	return x % n;
}

/* Marsaglia's polar method, the second number thrown away. */
static double normal(struct mew_random *r)
{
	double x, y, square;

	do {
		x = 2 * mew_random_unit(r) - 1;
		y = 2 * mew_random_unit(r) - 1;
		square = x * x + y * y;
	} while (square >= 1 || square == 0);
	return x * sqrt(-2 * log(square) / square);
}

/* Gamma distributed with shape a >= 1 (Marsaglia and Tsang 2000). */
static double gamma_of(struct mew_random *r, double a)
{
	double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = normal(r), v = 1 + c * x, u;

		if (v <= 0)
			continue;
		v = v * v * v;
		u = 1 - mew_random_unit(r);
		if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
			return d * v;
	}
}

static double value_at(const double *x, size_t n, double place)
{
	size_t i = (size_t)(place * (double)n);

	return x[i < n ? i : n - 1];
}

double mew_resample_median(struct mew_random *r, const double *x, size_t n)
{
	size_t k = (n + 1) / 2;
	double lower, upper, before, after;

	if (n == 1)
		return x[0];
	before = gamma_of(r, (double)k);
	after = gamma_of(r, (double)(n + 1 - k));
	lower = before / (before + after);
	if (n % 2 != 0)
		return value_at(x, n, lower);
	/* the smallest of the n - k numbers that lie above the k-th */
	upper = lower + (1 - lower) * (1 - pow(mew_random_unit(r), 1 / (double)(n - k)));
	return (value_at(x, n, lower) + value_at(x, n, upper)) / 2;
}

/* --- levels ----------------------------------------------------------------------------------------------------- */

struct levels { /* one side, with what its resamples need */
	const struct mew_group *groups;
	size_t n;
	size_t *first; /* of each machine; first[machines] is n */
	size_t machines;
	double *medians; /* room for the most groups that a resample can have */
};

static bool all_finite(const struct mew_group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!isfinite(g->x[i]))
			return false;
	return g->n > 0;
}

static void levels_close(struct levels *l)
{
	free(l->first);
	free(l->medians);
}

static bool levels_open(struct levels *l, const struct mew_groups *of)
{
	size_t most = 0;

	*l = (struct levels){ .groups = of->list, .n = of->n, .first = calloc(of->n + 1, sizeof *l->first) };
	if (l->first == NULL || of->n == 0)
		return false;
	for (size_t i = 0; i < of->n; i++) {
		if (!all_finite(&of->list[i]))
			return false;
		if (i == 0 || of->list[i].machine != of->list[i - 1].machine)
			l->first[l->machines++] = i;
	}
	l->first[l->machines] = of->n;
	for (size_t i = 0; i < l->machines; i++)
		if (l->first[i + 1] - l->first[i] > most)
			most = l->first[i + 1] - l->first[i];
	l->medians = calloc(l->machines * most, sizeof *l->medians);
	return l->medians != NULL;
}

static double levels_estimate(const struct levels *l)
{
	for (size_t i = 0; i < l->n; i++)
		l->medians[i] = mew_stats_median_sorted(l->groups[i].x, l->groups[i].n);
	return mew_stats_median(l->medians, l->n);
}

static double levels_draw(const struct levels *l, struct mew_random *r)
{
	size_t n = 0;

	for (size_t m = 0; m < l->machines; m++) {
		size_t machine = l->machines > 1 ? (size_t)mew_random_below(r, l->machines) : 0;
		size_t first = l->first[machine], count = l->first[machine + 1] - first;

		for (size_t i = 0; i < count; i++) {
			const struct mew_group *g = &l->groups[first + (size_t)mew_random_below(r, count)];

			l->medians[n++] = mew_resample_median(r, g->x, g->n);
		}
	}
	return mew_stats_median(l->medians, n);
}

static bool is_single(const struct levels *l)
{
	return l->n == 1 && l->groups[0].n == 1;
}

/* --- the bootstrap ---------------------------------------------------------------------------------------------- */

static unsigned resamples_of(const struct mew_resampling *how)
{
	return how->resamples == 0 ? MEW_RESAMPLES : how->resamples;
}

/* Percentile interval of what was drawn; sorts it. Rounding must not move a rank: 0.025 times 10,000 is 250. */
static struct mew_interval percentiles(double *drawn, unsigned n, const struct mew_resampling *how)
{
	double tail = (1 - (how->confidence == 0 ? CONFIDENCE : how->confidence)) / 2;
	size_t rank = (size_t)(tail * n + 1e-6);

	mew_stats_sort(drawn, n);
	rank = rank > 0 ? rank - 1 : 0;
	return (struct mew_interval){ .low = drawn[rank], .high = drawn[n - 1 - rank] };
}

/* Of n sorted numbers those that are at most `at`. */
static size_t count_up_to(const double *x, size_t n, double at)
{
	size_t count = 0;

	while (count < n && x[count] <= at)
		count++;
	return count;
}

static size_t count_below(const double *x, size_t n, double at)
{
	size_t count = 0;

	while (count < n && x[count] < at)
		count++;
	return count;
}

static bool resample_levels(const struct levels *of, const struct levels *minus, const struct mew_resampling *how,
			    struct mew_estimate *out)
{
	unsigned n = resamples_of(how);
	double *drawn = calloc(n, sizeof *drawn);
	struct mew_random r;

	if (drawn == NULL)
		return false;
	mew_random_seed(&r, how->seed);
	for (unsigned i = 0; i < n; i++)
		drawn[i] = levels_draw(of, &r) - (minus != NULL ? levels_draw(minus, &r) : 0);
	out->interval = percentiles(drawn, n, how);
	out->has_interval = true;
	out->p_above = (1 + (double)count_up_to(drawn, n, how->edge)) / (1 + (double)n);
	out->p_below = (1 + (double)(n - count_below(drawn, n, -how->edge))) / (1 + (double)n);
	free(drawn);
	return true;
}

bool mew_bootstrap_medians(const struct mew_groups *of, const struct mew_groups *minus,
			   const struct mew_resampling *how, struct mew_estimate *out)
{
	struct levels a, b = { 0 };
	bool fine = levels_open(&a, of);

	*out = (struct mew_estimate){ .has_interval = false, .p_above = 1, .p_below = 1 };
	if (minus != NULL)
		fine = levels_open(&b, minus) && fine;
	if (fine) {
		out->value = levels_estimate(&a) - (minus != NULL ? levels_estimate(&b) : 0);
		if (!is_single(&a) && (minus == NULL || !is_single(&b)))
			fine = resample_levels(&a, minus != NULL ? &b : NULL, how, out);
	}
	levels_close(&a);
	levels_close(&b);
	return fine;
}

static bool positive(const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(isfinite(x[i]) && x[i] > 0))
			return false;
	return n > 0;
}

bool mew_bootstrap_paired(const double *base, const double *head, size_t n, const struct mew_resampling *how,
			  struct mew_paired *out)
{
	struct mew_estimate estimate;
	double *x;
	bool fine;

	*out = (struct mew_paired){ .has_interval = false };
	if (!positive(base, n) || !positive(head, n))
		return false;
	x = calloc(n, sizeof *x);
	if (x == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
		x[i] = head[i] - base[i];
	out->difference = mew_stats_median(x, n);
	for (size_t i = 0; i < n; i++)
		x[i] = 100 * ((head[i] - base[i]) / base[i]);
	mew_stats_sort(x, n);
	fine = mew_bootstrap_medians(&(struct mew_groups){ &(struct mew_group){ .x = x, .n = n }, 1 }, NULL, how,
				     &estimate);
	out->percent = estimate.value;
	out->interval = estimate.interval;
	out->has_interval = estimate.has_interval && n >= MEW_PAIRED_LEAST;
	free(x);
	return fine;
}
