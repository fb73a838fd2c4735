/*
 * resample.h - a generator of random numbers with a seed that is written down, and the bootstrap on it.
 * Layer L2. The same seed gives the same result on every machine with the same C library.
 *
 * Shapes   values are finite; groups hold theirs in ascending order
 * Context  any thread, outside windows: the bootstrap allocates
 */
#ifndef MEW_RESAMPLE_H
#define MEW_RESAMPLE_H

#include "base.h"
#include "splitmix.h"
#include "stats.h"

/* xoshiro256** by Blackman and Vigna (2018), its state filled by splitmix64 from the seed. */
struct mew_random {
	uint64_t s[4];
};

void mew_random_seed(struct mew_random *r, uint64_t seed);
uint64_t mew_random_next(struct mew_random *r);
/* In [0, 1), a multiple of 2^-53. */
double mew_random_unit(struct mew_random *r);
/* In 0 .. n-1, each equally likely; n > 0. */
uint64_t mew_random_below(struct mew_random *r, uint64_t n);

/*
 * The median of a bootstrap resample of n values without drawing it: the middle order statistic of n uniform numbers is
 * Beta distributed, and the value at that place of the sorted sample is what n draws would have had in their middle.
 * x  ascending, n > 0
 */
double mew_resample_median(struct mew_random *r, const double *x, size_t n);

struct mew_group { /* observations that share one process */
	const double *x; /* ascending, borrowed */
	size_t n;
	unsigned machine; /* groups of a machine stand together */
};

struct mew_groups {
	const struct mew_group *list;
	size_t n;
};

#define MEW_RESAMPLES 10000u

struct mew_resampling {
	uint64_t seed;
	unsigned resamples; /* 0: MEW_RESAMPLES */
	double confidence;  /* 0: 0.95 */
	double edge;        /* that p_above and p_below are about, 0 or more */
};

struct mew_estimate {
	double value;
	struct mew_interval interval;
	bool has_interval;
	/*
	 * One-sided p-values of "not above edge" and "not below -edge": one more than the resamples that are so, of one
	 * more than all. At most 0.025 exactly where a 95 % interval lies beyond the edge. 1 without an interval.
	 */
	double p_above, p_below;
};

/*
 * Median of the groups' medians, with its percentile interval by a bootstrap in levels: machines (when there is more
 * than one), then the groups of each, then the observations inside (Davison and Hinkley 1997, section 3.8).
 *
 * minus    NULL, or groups to subtract: each side is resampled by itself, for samples that were not paired
 * out      returned; has_interval is false where a side is a single observation
 * Returns  false: no groups, an empty one, a value that is not finite, or no memory
 */
bool mew_bootstrap_medians(const struct mew_groups *of, const struct mew_groups *minus,
			   const struct mew_resampling *how, struct mew_estimate *out);

#define MEW_PAIRED_LEAST 5u

struct mew_paired {
	double percent;               /* median of the changes, in percent of the base */
	double difference;            /* median of head - base */
	struct mew_interval interval; /* of percent */
	bool has_interval;            /* false below MEW_PAIRED_LEAST pairs */
};

/*
 * The classic rule's figures: changes 100 (head - base) / base of n pairs, their median, and its percentile interval
 * from resampled pairs. Of 10,000 sorted medians the 250th from either end bounds 95 %.
 *
 * base, head  n positive values each, pair by pair
 * Returns     false: no pairs, a value that is not finite or not above 0, or no memory
 */
bool mew_bootstrap_paired(const double *base, const double *head, size_t n, const struct mew_resampling *how,
			  struct mew_paired *out);

#endif
