/*
 * stats.c - order statistics, moments and intervals on arrays of doubles.
 * Layer L2. Any thread; no state, no heap.
 */
#include "config.h"

#include "stats.h"

#include <math.h>

#define SMALL 16 /* below this, insertion beats partitioning */

static void swap(double *a, double *b)
{
	double t = *a;

	*a = *b;
	*b = t;
}

static void insertion(double *x, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		double v = x[i];
		size_t j = i;

		for (; j > 0 && v < x[j - 1]; j--)
			x[j] = x[j - 1];
		x[j] = v;
	}
}

static void sift(double *x, size_t root, size_t n)
{
	for (;;) {
		size_t child = 2 * root + 1;

		if (child >= n)
			return;
		if (child + 1 < n && x[child] < x[child + 1])
			child++;
		if (!(x[root] < x[child]))
			return;
		swap(&x[root], &x[child]);
		root = child;
	}
}

static void heap(double *x, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift(x, i, n);
	for (size_t end = n; end-- > 1;) {
		swap(&x[0], &x[end]);
		sift(x, 0, end);
	}
}

static double middle_of_three(double a, double b, double c)
{
	if (b < a)
		swap(&a, &b);
	if (c < b)
		b = c < a ? a : c;
	return b;
}

/* Hoare's partition: equal values spread over both sides, so that constant input stays O(n log n). */
static size_t partition(double *x, size_t n)
{
	double pivot = middle_of_three(x[0], x[n / 2], x[n - 1]);
	size_t i = 0, j = n - 1;

	for (;;) {
		while (x[i] < pivot)
			i++;
		while (pivot < x[j])
			j--;
		if (i >= j)
			return i;
		swap(&x[i++], &x[j--]);
	}
}

/* The smaller part recurses and the larger one loops: at most log2(n) frames. `depth` bounds bad pivots. */
static void sort(double *x, size_t n, unsigned depth)
{
	while (n > SMALL) {
		size_t left;

		if (depth-- == 0) {
			heap(x, n);
			return;
		}
		left = partition(x, n);
		if (left < n - left) {
			sort(x, left, depth);
			x += left;
			n -= left;
		} else {
			sort(x + left, n - left, depth);
			n = left;
		}
	}
	insertion(x, n);
}

void mew_stats_sort(double *x, size_t n)
{
	size_t numbers = 0;
	unsigned depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(x[i]))
			swap(&x[numbers++], &x[i]);
	}
	for (size_t i = numbers; i > 1; i /= 2)
		depth += 2;
	sort(x, numbers, depth);
}

/* Extended precision: a plain sum is then exact enough for values that differ in their last digits only. */
double mew_stats_mean(const double *x, size_t n)
{
	long double sum = 0;

	if (n == 0)
		return (double)NAN;
	for (size_t i = 0; i < n; i++)
		sum += (long double)x[i];
	return (double)(sum / (long double)n);
}

double mew_stats_stddev(const double *x, size_t n)
{
	long double mean = (long double)mew_stats_mean(x, n), squares = 0;

	if (n < 2)
		return (double)NAN;
	for (size_t i = 0; i < n; i++) {
		long double d = (long double)x[i] - mean;

		squares += d * d;
	}
	return (double)sqrtl(squares / (long double)(n - 1));
}

/* NaN sorts last, so one look finds any. */
static bool has_nan_sorted(const double *x, size_t n)
{
	return n > 0 && isnan(x[n - 1]);
}

double mew_stats_median_sorted(const double *x, size_t n)
{
	if (n == 0 || has_nan_sorted(x, n))
		return (double)NAN;
	return n % 2 != 0 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

double mew_stats_median(double *x, size_t n)
{
	mew_stats_sort(x, n);
	return mew_stats_median_sorted(x, n);
}

double mew_stats_quantile_sorted(const double *x, size_t n, double p)
{
	double position;
	size_t i;

	if (n == 0 || has_nan_sorted(x, n) || !(p >= 0 && p <= 1))
		return (double)NAN;
	position = (double)(n - 1) * p;
	i = (size_t)position;
	if (i + 1 >= n)
		return x[n - 1];
	return x[i] + (position - (double)i) * (x[i + 1] - x[i]);
}

double mew_stats_mad(const double *x, size_t n, double center, double *scratch)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = fabs(x[i] - center);
	mew_stats_sort(scratch, n);
	return mew_stats_median_sorted(scratch, n);
}

/*
 * Binomial weights C(n, i) for i = first .. n/2, in units of the first one. Where 2^-n would be too small for a double,
 * `first` lies 20 standard deviations below the middle: what is left out is 1e-87 of the whole, and the ratio of the
 * middle to the first still fits.
 */
struct binomial {
	size_t n, i;
	double weight;
};

static struct binomial binomial_begin(size_t n)
{
	double reach = 10 * sqrt((double)n);
	size_t half = n / 2;

	return (struct binomial){ .n = n, .i = reach < (double)half ? half - (size_t)reach : 0, .weight = 1 };
}

static void binomial_next(struct binomial *b)
{
	b->weight = b->weight * (double)(b->n - b->i) / (double)(b->i + 1);
	b->i++;
}

/* Twice the lower half and, for an even n, the middle once: the sum of all weights. */
static double binomial_total(size_t n)
{
	struct binomial b = binomial_begin(n);
	double below = 0;

	for (; b.i < (n + 1) / 2; binomial_next(&b))
		below += b.weight;
	return 2 * below + (n % 2 == 0 ? b.weight : 0);
}

/* The largest k of the sign interval, or 0 for none. */
static size_t sign_rank(size_t n, double tail)
{
	struct binomial b = binomial_begin(n);
	double allowed = tail * binomial_total(n), sum = 0;

	for (; b.i < (n + 1) / 2; binomial_next(&b)) {
		sum += b.weight;
		if (sum > allowed)
			return b.i;
	}
	return (n + 1) / 2;
}

bool mew_stats_median_interval_sorted(const double *x, size_t n, double confidence, struct mew_interval *out)
{
	size_t k;

	if (n == 0 || has_nan_sorted(x, n) || !(confidence > 0 && confidence < 1))
		return false;
	k = sign_rank(n, (1 - confidence) / 2);
	if (k == 0)
		return false;
	*out = (struct mew_interval){ .low = x[k - 1], .high = x[n - k] };
	return true;
}

bool mew_stats_wilson(double hits, double n, double z, struct mew_interval *out)
{
	double p, z2, center, half;

	if (!(n > 0) || !(hits >= 0 && hits <= n) || !(z >= 0) || isinf(n) || isinf(z))
		return false;
	p = hits / n;
	z2 = z * z;
	center = (p + z2 / (2 * n)) / (1 + z2 / n);
	half = z * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
	/* No hit and nothing but hits reach the ends exactly; rounding must not say otherwise. */
	out->low = hits > 0 ? fmax(0, center - half) : 0;
	out->high = hits < n ? fmin(1, center + half) : 1;
	return true;
}

/* Rational first guess for p <= 1/2, error below 4.5e-4 (Abramowitz and Stegun 1964, 26.2.23). */
static double quantile_guess(double p)
{
	double t = sqrt(-2 * log(p));

	return (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
}

double mew_stats_normal_quantile(double p)
{
	const double sqrt2 = 1.4142135623730951, sqrt2pi = 2.5066282746310002;
	double x;

	if (!(p > 0 && p < 1))
		return (double)NAN;
	if (p > 0.5)
		return -mew_stats_normal_quantile(1 - p);
	x = quantile_guess(p);
	/* Halley's step triples the correct digits; taken relative to p, so that far tails do not underflow. */
	for (int i = 0; i < 3; i++) {
		double off = (0.5 * erfc(-x / sqrt2) / p - 1) * sqrt2pi * exp(x * x / 2 + log(p));

		x -= off / (1 + x * off / 2);
	}
	return x;
}
