/*
 * rank.h - two samples that were not paired, by ranks; and p-values of many tests at once.
 * Layer L2. Pure; the exact test allocates.
 */
#ifndef MEW_RANK_H
#define MEW_RANK_H

#include "base.h"

#define MEW_RANK_EXACT 20u /* up to so many values on each side the distribution is exact */

struct mew_mann_whitney {
	double u;      /* pairs in which the value of `a` is the larger one; ties count one half */
	double effect; /* u / (na nb): chance that a value of `a` is larger than one of `b` */
	double p;      /* two-sided */
	bool exact, ties;
};

/*
 * Mann-Whitney's U test. With at most MEW_RANK_EXACT values on each side, p is exact also with ties: twice the smaller
 * tail of U over all divisions of the values seen. Beyond, p is normal with U's variance corrected for ties,
 * na nb / 12 ((N + 1) - sum(t^3 - t) / (N (N - 1))), and continuity 1/2 (Mann and Whitney 1947; Lehmann 1975, 1.4).
 * It is about two blocks of measurements only where both saw the same state of the machine.
 *
 * a, b     na and nb finite values, in any order
 * Returns  false, and no figures: an empty side, a value that is not finite, or no memory. All values equal: p = 1
 * Context  any thread, outside windows
 */
bool mew_rank_mann_whitney(const double *a, size_t na, const double *b, size_t nb, struct mew_mann_whitney *out);

/*
 * Holm's correction (1979): adjusted[i] <= alpha rejects test i so that any false rejection among all n has a chance of
 * at most alpha. A p that is NaN counts as 1.
 *
 * adjusted  returned, n values; may be p itself
 * Returns   false without memory
 */
bool mew_rank_holm(const double *p, size_t n, double *adjusted);

#endif
