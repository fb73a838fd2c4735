/*
 * signs.h - how many observations lie above a value: the exact sign test and sign e-processes, which may be looked at
 * after every observation.
 * Layer L2. Pure; nothing but mew_signs_interval_sorted() and the peaks looks at values.
 *
 * An e-process M starts at 1 and, where its null hypothesis holds, ever reaches 1/alpha with a probability of at most
 * alpha (Ville 1939): to reject as soon as it does so is right at any moment, however often one looks. Here all are
 * logarithms, because M of some thousand observations is larger than a double.
 *
 * Context  any thread; no state, no heap
 */
#ifndef MEW_SIGNS_H
#define MEW_SIGNS_H

#include "base.h"
#include "stats.h"

struct mew_signs {
	uint64_t above, below, ties; /* of the value compared with; what is not a number is a tie */
};

enum mew_signs_test {
	MEW_SIGNS_EXACT,     /* the sign interval of a number of observations that was fixed before */
	MEW_SIGNS_ONE_SIDED, /* mew_signs_evidence_above() */
	MEW_SIGNS_TWO_SIDED  /* mew_signs_evidence() */
};

/* Count n values against `at`. */
struct mew_signs mew_signs_count(const double *x, size_t n, double at);

/* P(Bin(n, 1/2) >= k), to full precision also where it is tiny. */
double mew_signs_tail(uint64_t n, uint64_t k);

/*
 * Exact p-value of "the median is at most `at`", for a number of observations that was fixed before: P(Bin(n, 1/2) >=
 * above) over all n, so that ties speak against a difference. It is at most alpha/2 exactly where the lower end of
 * mew_stats_median_interval_sorted() lies above `at`. 1 for no observations.
 */
double mew_signs_p_above(const struct mew_signs *s);

/*
 * Two-sided evidence that above and below are not equally likely, with S above of n untied observations:
 * M = 2^n / ((n + 1) C(n, S)), the uniform mixture over the probability of "above" (Robbins 1970). Ties are left out.
 *
 * Returns  ln M; reject at ln(1/alpha). 0 for no observations
 */
double mew_signs_evidence(const struct mew_signs *s);

/*
 * One-sided evidence that the median is above `at`: the mixture over probabilities from 1/2 to 1 alone,
 * M = 2^(n+1) P(Bin(n+1, 1/2) <= S) / ((n + 1) C(n, S)). A tie counts as not above, which keeps it an e-process for
 * every distribution whose median is at most `at`.
 */
double mew_signs_evidence_above(const struct mew_signs *s);

/*
 * The largest one-sided evidence that stood after any of the first 1 .. n observations, in the order in which they were
 * taken: min(1, exp(-peak)) is a p-value however the end of the series was chosen.
 *
 * sign     +1: that the median is above `at`; -1: below
 * Returns  ln M, at least 0; 0 (no evidence) when a value is not finite
 */
double mew_signs_peak(const double *x, size_t n, double at, int sign);

/*
 * Interval of the median that stays valid after early stopping: all values that the two-sided e-process does not
 * reject.
 * Returns  false: too few observations, or a NaN
 */
bool mew_signs_interval_sorted(const double *x, size_t n, double confidence, struct mew_interval *out);

/*
 * The smallest number of observations that can decide at all, all on one side: at 5 %, 6 for the exact interval, 7 and
 * 8 for the one-sided and the two-sided e-process.
 * Returns  0 when alpha is not in (0, 1)
 */
size_t mew_signs_least(enum mew_signs_test test, double alpha);

#endif
