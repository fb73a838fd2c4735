/*
 * stats.h - the statistics of benchmark samples: pure functions on arrays, no I/O, no state.
 * Layer L2. Every function is tested against published values or scipy.
 *
 * Shapes   `x` holds n finite values; functions whose name ends in _sorted want them in ascending order
 * Errors   what does not exist (n too small, NaN in the input) is NAN; an interval that does not exist returns false
 * Context  any thread; nothing allocates
 */
#ifndef MEW_STATS_H
#define MEW_STATS_H

#include "base.h"

struct mew_interval {
	double low, high;
};

/* Sort ascending in place, in O(n log n) without the heap; NaN goes last. */
void mew_stats_sort(double *x, size_t n);

double mew_stats_mean(const double *x, size_t n);
/* Sample standard deviation (n - 1); NAN below two values. */
double mew_stats_stddev(const double *x, size_t n);
/* Mean of the two middle values for an even n. */
double mew_stats_median_sorted(const double *x, size_t n);
/* The same of values in any order, which are sorted in place. */
double mew_stats_median(double *x, size_t n);
/* Linear interpolation between order statistics, p in 0..1 (type 7 of Hyndman and Fan 1996, numpy's default). */
double mew_stats_quantile_sorted(const double *x, size_t n, double p);
/* Median of |x - center|, unscaled. `scratch` has room for n values. */
double mew_stats_mad(const double *x, size_t n, double center, double *scratch);

/*
 * Exact order-statistic (sign) interval of the median: [x_(k), x_(n+1-k)] with the largest k such that
 * P(Bin(n, 1/2) <= k-1) <= (1 - confidence) / 2. Needs n >= 6 at 95 %, 8 at 99 %.
 */
bool mew_stats_median_interval_sorted(const double *x, size_t n, double confidence, struct mew_interval *out);

/* Wilson score interval of the proportion hits/n, normal quantile z (1.959964 for 95 %); n > 0, 0 <= hits <= n. */
bool mew_stats_wilson(double hits, double n, double z, struct mew_interval *out);

/* Inverse of the standard normal distribution; p in (0, 1); NAN outside. */
double mew_stats_normal_quantile(double p);

#endif
