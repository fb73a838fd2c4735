/*
 * signs.c - the binomial distribution with 1/2, and the evidence that follows from it.
 * Layer L2. Any thread; no state, no heap.
 */
#include "config.h"

#include "signs.h"

#include <math.h>

#define LN2 0.69314718055994530942

struct mew_signs mew_signs_count(const double *x, size_t n, double at)
{
	struct mew_signs s = { 0 };

	for (size_t i = 0; i < n; i++) {
		s.above += x[i] > at;
		s.below += x[i] < at;
	}
	s.ties = n - s.above - s.below;
	return s;
}

/* lgamma() proper writes to a global. */
static double log_factorial(uint64_t n)
{
	int sign;

	return lgamma_r((double)n + 1, &sign);
}

static double log_choose(uint64_t n, uint64_t k)
{
	return k == 0 || k == n ? 0 : log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

/* ln P(Bin(n, 1/2) >= k) for k above the middle: the terms fall, the first is the largest. */
static double log_upper(uint64_t n, uint64_t k)
{
	double sum = 1, term = 1;

	for (uint64_t i = k; i < n && term > sum * 1e-18; i++) {
		term = term * (double)(n - i) / (double)(i + 1);
		sum += term;
	}
	return log_choose(n, k) + log(sum) - (double)n * LN2;
}

static double log_tail(uint64_t n, uint64_t k)
{
	if (k == 0)
		return 0;
	if (k > n)
		return -(double)INFINITY;
	return 2 * k > n ? log_upper(n, k) : log1p(-exp(log_upper(n, n - k + 1)));
}

double mew_signs_tail(uint64_t n, uint64_t k)
{
	return exp(log_tail(n, k));
}

double mew_signs_p_above(const struct mew_signs *s)
{
	return mew_signs_tail(s->above + s->below + s->ties, s->above);
}

double mew_signs_evidence(const struct mew_signs *s)
{
	uint64_t n = s->above + s->below;

	return (double)n * LN2 - log((double)n + 1) - log_choose(n, s->above);
}

double mew_signs_evidence_above(const struct mew_signs *s)
{
	uint64_t n = s->above + s->below + s->ties;

	/* P(Bin(n + 1) <= S) is P(Bin(n + 1) >= n + 1 - S), turned round */
	return (double)(n + 1) * LN2 + log_tail(n + 1, n + 1 - s->above) - log((double)n + 1) - log_choose(n, s->above);
}

double mew_signs_peak(const double *x, size_t n, double at, int sign)
{
	struct mew_signs s = { 0 };
	double peak = 0;

	for (size_t i = 0; i < n; i++) {
		double off = sign < 0 ? at - x[i] : x[i] - at, evidence;

		if (!isfinite(x[i]))
			return 0;
		s.above += off > 0;
		s.below += off < 0;
		s.ties += off == 0;
		evidence = mew_signs_evidence_above(&s);
		if (evidence > peak)
			peak = evidence;
	}
	return peak;
}

bool mew_signs_interval_sorted(const double *x, size_t n, double confidence, struct mew_interval *out)
{
	struct mew_signs s = { 0 };

	if (n == 0 || isnan(x[n - 1]) || !(confidence > 0 && confidence < 1))
		return false;
	/* below values are enough evidence that the median is larger, as long as few are */
	for (s.below = 0; s.below <= n / 2; s.below++) {
		s.above = n - s.below;
		if (mew_signs_evidence(&s) < -log(1 - confidence))
			break;
	}
	if (s.below == 0 || s.below > n / 2)
		return false;
	*out = (struct mew_interval){ .low = x[s.below - 1], .high = x[n - s.below] };
	return true;
}

size_t mew_signs_least(enum mew_signs_test test, double alpha)
{
	struct mew_signs s = { .above = 1 };

	if (!(alpha > 0 && alpha < 1))
		return 0;
	for (;; s.above++) {
		if ((test == MEW_SIGNS_EXACT && mew_signs_p_above(&s) <= alpha / 2) ||
		    (test == MEW_SIGNS_ONE_SIDED && mew_signs_evidence_above(&s) >= -log(alpha)) ||
		    (test == MEW_SIGNS_TWO_SIDED && mew_signs_evidence(&s) >= -log(alpha)))
			return s.above;
	}
}
