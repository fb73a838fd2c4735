/*
 * trend.c - the median of all pairwise slopes, and the ranks around it that bound it.
 * Layer L2. Any thread, outside windows; no state.
 */
#include "config.h"

#include "trend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

#define LEAST_FOR_SLOPE 3u
#define LEAST_FOR_INTERVAL 6u

/* What the ties among n values take from the variance; `scratch` holds n values. */
static double ties_of(const double *values, size_t n, double *scratch)
{
	double sum = 0;

	memcpy(scratch, values, n * sizeof *values);
	mew_stats_sort(scratch, n);
	for (size_t i = 0, same; i < n; i += same) {
		for (same = 1; i + same < n && scratch[i + same] == scratch[i];)
			same++;
		sum += (double)same * ((double)same - 1) * (2 * (double)same + 5);
	}
	return sum;
}

/* Standard deviation of Kendall's S. */
static double deviation_of(const double *x, const double *y, size_t n, double *scratch)
{
	double count = (double)n, all = count * (count - 1) * (2 * count + 5);

	return sqrt((all - ties_of(x, n, scratch) - ties_of(y, n, scratch)) / 18);
}

/* Sen's ranks into the sorted slopes; false where 95 % needs more slopes than there are. */
static bool bound(const double *slopes, size_t count, double deviation, struct mew_trend *out)
{
	double reach = mew_stats_normal_quantile(0.975) * deviation;
	double low = floor(((double)count - reach) / 2 + 0.5) - 1, high = floor(((double)count + reach) / 2 + 0.5);

	if (!(low >= 0 && high <= (double)(count - 1)))
		return false;
	out->low = slopes[(size_t)low];
	out->high = slopes[(size_t)high];
	return true;
}

static bool all_finite(const double *values, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(values[i]))
			return false;
	return true;
}

static size_t slopes_of(const double *x, const double *y, size_t n, double *slopes)
{
	size_t count = 0;

	for (size_t i = 0; i + 1 < n; i++)
		for (size_t j = i + 1; j < n; j++)
			if (x[j] != x[i])
				slopes[count++] = (y[j] - y[i]) / (x[j] - x[i]);
	return count;
}

bool mew_trend(const double *x, const double *y, size_t n, struct mew_trend *out)
{
	double *slopes, deviation = 0;
	size_t count;

	*out = (struct mew_trend){ .has_interval = false };
	if (n < LEAST_FOR_SLOPE || n > MEW_TREND_POINTS || !all_finite(x, n) || !all_finite(y, n))
		return false;
	slopes = malloc((n * (n - 1) / 2 + n) * sizeof *slopes);
	if (slopes == NULL)
		return false;
	if (n >= LEAST_FOR_INTERVAL)
		deviation = deviation_of(x, y, n, slopes);
	count = slopes_of(x, y, n, slopes);
	if (count > 0) {
		mew_stats_sort(slopes, count);
		out->slope = mew_stats_median_sorted(slopes, count);
		out->has_interval = n >= LEAST_FOR_INTERVAL && bound(slopes, count, deviation, out);
	}
	free(slopes);
	return count > 0 && isfinite(out->slope);
}
