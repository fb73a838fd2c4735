/*
 * trend.h - does a series grow, and by how much a step: a slope that outliers and a first step do not move.
 * Layer L2. Pure; outside windows: allocates.
 */
#ifndef MEW_TREND_H
#define MEW_TREND_H

#include "base.h"

#define MEW_TREND_POINTS 512u /* the most points: the pairs of them take 1 MiB */

struct mew_trend {
	double slope;     /* of y per unit of x */
	double low, high; /* its 95 % interval */
	bool has_interval;
};

/*
 * Theil-Sen slope: the median of the slopes of all pairs of points with different x, and Sen's interval of it by the
 * normal approximation of Kendall's S, corrected for ties (Theil 1950, Sen 1968, Kendall 1970 section 4.9). A series
 * that rises once and stays has the slope 0.
 *
 * x, y     n values each, in any order of x
 * out      returned; has_interval is false below 6 points and where too few pairs are left for 95 %
 * Returns  false, and no slope: fewer than 3 or more than MEW_TREND_POINTS points, a value that is not finite, all x
 *          equal, or no memory
 * Context  any thread, outside windows
 */
bool mew_trend(const double *x, const double *y, size_t n, struct mew_trend *out);

#endif
