/*
 * rank.c - midranks, the distribution of their sum, and Holm's correction.
 * Layer L2. Any thread, outside windows; no state.
 */
#include "config.h"

#include "rank.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct placed {
	double value;
	size_t at;      /* in the input */
	unsigned twice; /* the midrank, doubled: a whole number */
	bool of_a;
};

static int by_value(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

static bool place(struct placed *out, const double *x, size_t n, bool of_a)
{
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[i]))
			return false;
		out[i] = (struct placed){ .value = x[i], .at = i, .of_a = of_a };
	}
	return true;
}

/* Give ties the mean of their ranks; returns the sum of t^3 - t. */
static double rank_all(struct placed *all, size_t n)
{
	double ties = 0;

	qsort(all, n, sizeof *all, by_value);
	for (size_t i = 0, same; i < n; i += same) {
		for (same = 1; i + same < n && all[i + same].value == all[i].value;)
			same++;
		for (size_t k = 0; k < same; k++)
			all[i + k].twice = (unsigned)(2 * i + same + 1);
		ties += (double)same * (double)same * (double)same - (double)same;
	}
	return ties;
}

/*
 * How many choices of `na` of the n values have each doubled rank sum: row k holds the choices of k values. Exact in a
 * double, as C(40, 20) is below 2^53. NULL without memory; the caller frees it.
 */
static double *count_sums(const struct placed *all, size_t n, size_t na, size_t sums)
{
	double *ways = calloc((na + 1) * sums, sizeof *ways);

	if (ways == NULL)
		return NULL;
	ways[0] = 1;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1 < na ? i + 1 : na; k > 0; k--)
			for (size_t s = all[i].twice; s < sums; s++)
				ways[k * sums + s] += ways[(k - 1) * sums + s - all[i].twice];
	return ways;
}

static bool exact_p(const struct placed *all, size_t n, size_t na, size_t sum, double *p)
{
	size_t sums = n * (n + 1) + 1;
	double *ways = count_sums(all, n, na, sums), below = 0, above = 0, total = 0;

	if (ways == NULL)
		return false;
	for (size_t s = 0; s < sums; s++) {
		double w = ways[na * sums + s];

		total += w;
		below += s <= sum ? w : 0;
		above += s >= sum ? w : 0;
	}
	*p = fmin(1, 2 * fmin(below, above) / total);
	free(ways);
	return true;
}

static double normal_p(double u, double na, double nb, double ties)
{
	double n = na + nb, variance = na * nb / 12 * ((n + 1) - ties / (n * (n - 1)));
	double off = fmax(0, fabs(u - na * nb / 2) - 0.5);

	return variance > 0 ? erfc(off / sqrt(2 * variance)) : 1;
}

bool mew_rank_mann_whitney(const double *a, size_t na, const double *b, size_t nb, struct mew_mann_whitney *out)
{
	struct placed *all = na > 0 && nb > 0 ? calloc(na + nb, sizeof *all) : NULL;
	size_t n = na + nb, sum = 0;
	double ties;
	bool fine = all != NULL && place(all, a, na, true) && place(all + na, b, nb, false);

	*out = (struct mew_mann_whitney){ .p = 1 };
	if (fine) {
		ties = rank_all(all, n);
		for (size_t i = 0; i < n; i++)
			sum += all[i].of_a ? all[i].twice : 0;
		out->u = (double)sum / 2 - (double)na * ((double)na + 1) / 2;
		out->effect = out->u / ((double)na * (double)nb);
		out->ties = ties > 0;
		out->exact = na <= MEW_RANK_EXACT && nb <= MEW_RANK_EXACT;
		if (out->exact)
			fine = exact_p(all, n, na, sum, &out->p);
		else
			out->p = normal_p(out->u, (double)na, (double)nb, ties);
	}
	free(all);
	return fine;
}

bool mew_rank_holm(const double *p, size_t n, double *adjusted)
{
	struct placed *order = calloc(n + 1, sizeof *order);
	double largest = 0;

	if (order == NULL)
		return false;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct placed){ .value = isnan(p[i]) ? 1 : p[i], .at = i };
	qsort(order, n, sizeof *order, by_value);
	for (size_t i = 0; i < n; i++) {
		largest = fmax(largest, fmin(1, (double)(n - i) * order[i].value));
		adjusted[order[i].at] = largest;
	}
	free(order);
	return true;
}
