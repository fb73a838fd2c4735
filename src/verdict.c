/*
 * verdict.c - exact figures by comparison, time by evidence against a margin, and what both mean for the exit code.
 * Layer L2. Any thread, outside windows; no state, no I/O, no clock.
 */
#include "config.h"

#include "verdict.h"
#include "verdict_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "rank.h"
#include "signs.h"

#define ALPHA 0.05

const char *mew_outcome_name(enum mew_outcome outcome)
{
	static const char *const names[] = { "absent", "pass", "improvement", "inconclusive", "regression", "invalid" };

	return (unsigned)outcome < MEW_COUNTOF(names) ? names[outcome] : "unknown";
}

static double alpha_of(const struct mew_rules *rules)
{
	return rules->alpha == 0 ? ALPHA : rules->alpha;
}

static void begin(const struct mew_metric *metric, struct mew_verdict *out)
{
	*out = (struct mew_verdict){
		.metric = metric, .base = (double)NAN, .head = (double)NAN, .ratio = (double)NAN, .p_worse = 1,
		.p_better = 1,
	};
}

static void decide(struct mew_verdict *out, enum mew_outcome outcome, const char *why)
{
	out->outcome = outcome;
	out->why = why;
}

void mew_verdict_invalid(const struct mew_metric *metric, const char *why, struct mew_verdict *out)
{
	begin(metric, out);
	decide(out, MEW_OUTCOME_INVALID, why);
}

/* --- exact metrics ---------------------------------------------------------------------------------------------- */

/* Multiplied before it is divided: 5 % of 100 is then 5 and not a little more. */
static double allowed(const struct mew_limit *limit, double base)
{
	return fmax(limit->has_units ? limit->units : 0, limit->has_percent ? limit->percent * fabs(base) / 100 : 0);
}

static void judge_exact(const struct mew_rules *rules, struct mew_verdict *out)
{
	double worse = (out->head - out->base) * (int)out->metric->direction;

	if (worse == 0)
		decide(out, MEW_OUTCOME_PASS, NULL);
	else if (rules->strict && out->allow == NULL)
		decide(out, MEW_OUTCOME_REGRESSED,
		       worse > 0 ? NULL : "better, but the rules want it equal: renew the base");
	else if (worse < 0)
		decide(out, MEW_OUTCOME_IMPROVED, NULL);
	else if (worse <= allowed(&out->limit, out->base))
		decide(out, MEW_OUTCOME_PASS, "worse, within its limit");
	else
		decide(out, MEW_OUTCOME_REGRESSED, NULL);
}

void mew_verdict_exact(const struct mew_rules *rules, const char *key, const struct mew_metric *metric, double base,
		       double head, struct mew_verdict *out)
{
	begin(metric, out);
	out->base = base;
	out->head = head;
	out->limit = mew_rules_limit(rules, key, metric->name, &out->allow);
	if (isnan(base) && isnan(head)) {
		decide(out, MEW_OUTCOME_ABSENT, "neither side has it");
		return;
	}
	if (!isfinite(base) || !isfinite(head)) {
		decide(out, MEW_OUTCOME_INVALID, isnan(base) ? "the base has no such figure" :
						 isnan(head) ? "the head has no such figure" :
						 "a figure is not finite");
		return;
	}
	out->n = out->least = 1;
	out->ratio = base == head ? 1 : head / base;
	judge_exact(rules, out);
}

/* --- time ------------------------------------------------------------------------------------------------------- */

/* The margin as a limit. Returns false: what was asked for is below the noise floor. */
static bool take_margin(const struct mew_rules *rules, const char *key, double noise_floor, struct mew_verdict *out)
{
	out->limit = mew_rules_limit(rules, key, out->metric->name, &out->allow);
	if (out->limit.has_percent)
		return !(out->limit.percent < 100 * noise_floor);
	out->limit.percent = 100 * fmax(MEW_DEFAULT_MARGIN, noise_floor);
	out->limit.has_percent = true;
	return true;
}

static const char too_few[] = "too few pairs of processes to decide";

/* The p-values of worse, better and "below the margin": exact for a fixed number, else by the evidence that stood. */
static double weigh(const struct mew_rules *rules, const struct mew_observations *of, double edge,
		    struct mew_verdict *out)
{
	struct mew_signs high = mew_signs_count(of->log_ratios, of->n, edge);
	struct mew_signs low = mew_signs_count(of->log_ratios, of->n, -edge);

	if (rules->sequential) {
		out->p_worse = exp(-mew_signs_peak(of->log_ratios, of->n, edge, 1));
		out->p_better = exp(-mew_signs_peak(of->log_ratios, of->n, -edge, -1));
		return exp(-mew_signs_peak(of->log_ratios, of->n, edge, -1));
	}
	out->p_worse = mew_signs_tail(of->n, high.above);
	out->p_better = mew_signs_tail(of->n, low.below);
	return mew_signs_tail(of->n, high.below);
}

static void take_interval(const struct mew_rules *rules, const double *sorted, size_t n, struct mew_verdict *out)
{
	double confidence = 1 - alpha_of(rules);

	out->ratio = exp(mew_stats_median_sorted(sorted, n));
	out->has_interval = rules->sequential ? mew_signs_interval_sorted(sorted, n, confidence, &out->interval)
					      : mew_stats_median_interval_sorted(sorted, n, confidence, &out->interval);
	if (!out->has_interval)
		return;
	out->interval.low = exp(out->interval.low);
	out->interval.high = exp(out->interval.high);
}

static void judge_by_signs(const struct mew_rules *rules, const struct mew_observations *of, struct mew_verdict *out)
{
	double side = alpha_of(rules) / 2;
	double p_pass = weigh(rules, of, log1p(out->limit.percent / 100), out);

	out->least = rules->sequential ? mew_signs_least(MEW_SIGNS_ONE_SIDED, side)
				       : mew_signs_least(MEW_SIGNS_EXACT, alpha_of(rules));
	if (of->n < out->least)
		decide(out, MEW_OUTCOME_INCONCLUSIVE, too_few);
	else if (out->p_worse <= side)
		decide(out, MEW_OUTCOME_REGRESSED, NULL);
	else if (out->p_better <= side)
		decide(out, MEW_OUTCOME_IMPROVED, NULL);
	else if (p_pass <= side)
		decide(out, MEW_OUTCOME_PASS, NULL);
	else
		decide(out, MEW_OUTCOME_INCONCLUSIVE, "the interval is on both sides of the margin");
}

static void judge_by_bootstrap(const struct mew_rules *rules, const struct mew_paired *p, struct mew_verdict *out)
{
	double threshold = out->limit.percent;
	bool slower = p->interval.low > threshold, faster = p->interval.high < -threshold;

	out->ratio = 1 + p->percent / 100;
	out->interval = (struct mew_interval){ .low = 1 + p->interval.low / 100, .high = 1 + p->interval.high / 100 };
	out->has_interval = p->has_interval;
	out->least = MEW_PAIRED_LEAST;
	if (!p->has_interval)
		decide(out, MEW_OUTCOME_INCONCLUSIVE, too_few);
	else if ((slower || faster) && !(fabs(p->difference) > rules->least_difference_ns))
		decide(out, MEW_OUTCOME_INCONCLUSIVE, "beyond the margin, but no more than the least difference");
	else if (slower && p->difference > 0)
		decide(out, MEW_OUTCOME_REGRESSED, NULL);
	else if (faster && p->difference < 0)
		decide(out, MEW_OUTCOME_IMPROVED, NULL);
	else if (!slower && p->interval.high < threshold)
		decide(out, MEW_OUTCOME_PASS, NULL);
	else
		decide(out, MEW_OUTCOME_INCONCLUSIVE, "the interval is on both sides of the margin");
}

static bool all_finite(const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

static int judge_time(const struct mew_rules *rules, const struct mew_observations *of, struct mew_verdict *out,
		      struct mew_error *err)
{
	struct mew_paired paired;
	double *sorted;

	if (rules->time_rule == MEW_TIME_BOOTSTRAP) {
		if (!mew_bootstrap_paired(of->base_ns, of->head_ns, of->n, &rules->resampling, &paired))
			return mew_error_set(err, MEW_E_NOMEM, "no memory to resample %zu pairs", of->n);
		judge_by_bootstrap(rules, &paired, out);
		return MEW_OK;
	}
	sorted = malloc(of->n * sizeof *sorted);
	if (sorted == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu pairs", of->n);
	memcpy(sorted, of->log_ratios, of->n * sizeof *sorted);
	mew_stats_sort(sorted, of->n);
	take_interval(rules, sorted, of->n, out);
	judge_by_signs(rules, of, out);
	free(sorted);
	return MEW_OK;
}

/* The bootstrap rule needs the times themselves. */
static bool has_times(const struct mew_observations *of)
{
	if (of->base_ns == NULL || of->head_ns == NULL)
		return false;
	for (size_t i = 0; i < of->n; i++)
		if (!(isfinite(of->base_ns[i]) && of->base_ns[i] > 0 && isfinite(of->head_ns[i]) && of->head_ns[i] > 0))
			return false;
	return true;
}

int mew_verdict_time(const struct mew_rules *rules, const char *key, const struct mew_observations *of,
		     struct mew_verdict *out, struct mew_error *err)
{
	begin(mew_metric_find("time"), out);
	out->n = of->n;
	if (!take_margin(rules, key, of->noise_floor, out))
		return mew_error_set(err, MEW_E_INVALID,
				     "%.80s: the margin asked for is below the noise floor measured here; ask for a "
				     "larger one or quieten the machine and calibrate again", key);
	if (of->n == 0) {
		decide(out, MEW_OUTCOME_ABSENT, "there is no pair of times");
		return MEW_OK;
	}
	if (!all_finite(of->log_ratios, of->n) || (rules->time_rule == MEW_TIME_BOOTSTRAP && !has_times(of))) {
		decide(out, MEW_OUTCOME_INVALID, "a time is not a finite number above 0");
		return MEW_OK;
	}
	return judge_time(rules, of, out, err);
}

/* --- all of them together --------------------------------------------------------------------------------------- */

/* Was it decided by p-values? Those alone can be corrected. */
static bool is_tested(const struct mew_rules *rules, const struct mew_verdict *v)
{
	return rules->time_rule == MEW_TIME_SIGNS && !v->metric->exact && v->n > 0 && v->outcome != MEW_OUTCOME_INVALID;
}

static void settle(double side, struct mew_verdict *v, double worse, double better)
{
	bool doubtful = (v->outcome == MEW_OUTCOME_REGRESSED && worse > side) ||
			(v->outcome == MEW_OUTCOME_IMPROVED && better > side);

	v->p_worse = worse;
	v->p_better = better;
	if (doubtful)
		decide(v, mew_outcome_unproven(v->outcome),
		       "a difference, but not certain enough among so many cases");
}

int mew_verdicts_settle(const struct mew_rules *rules, struct mew_verdict *const *verdicts, size_t n,
			struct mew_error *err)
{
	double *p = calloc(2 * n + 1, sizeof *p), *better;
	size_t tested = 0;
	bool fine = p != NULL;

	better = p != NULL ? p + n : NULL;
	for (size_t i = 0; fine && i < n; i++) {
		if (!is_tested(rules, verdicts[i]))
			continue;
		p[tested] = verdicts[i]->p_worse;
		better[tested++] = verdicts[i]->p_better;
	}
	fine = fine && mew_rank_holm(p, tested, p) && mew_rank_holm(better, tested, better);
	for (size_t i = 0, k = 0; fine && i < n; i++) {
		if (!is_tested(rules, verdicts[i]))
			continue;
		settle(alpha_of(rules) / 2, verdicts[i], p[k], better[k]);
		k++;
	}
	free(p);
	return fine ? MEW_OK : mew_error_set(err, MEW_E_NOMEM, "no memory for %zu verdicts", n);
}

enum mew_outcome mew_verdicts_worst(struct mew_verdict *const *verdicts, size_t n)
{
	enum mew_outcome worst = MEW_OUTCOME_ABSENT;

	for (size_t i = 0; i < n; i++)
		if (verdicts[i]->outcome > worst)
			worst = verdicts[i]->outcome;
	return worst;
}

int mew_verdicts_exit(const struct mew_rules *rules, struct mew_verdict *const *verdicts, size_t n)
{
	switch (mew_verdicts_worst(verdicts, n)) {
	case MEW_OUTCOME_PASS:
	case MEW_OUTCOME_IMPROVED:
		return 0;
	case MEW_OUTCOME_REGRESSED:
		return 1;
	case MEW_OUTCOME_INCONCLUSIVE:
		return rules->unsure == MEW_UNSURE_PASS ? 0 : rules->unsure == MEW_UNSURE_FAIL ? 1 : 3;
	case MEW_OUTCOME_ABSENT:
	case MEW_OUTCOME_INVALID:
		break;
	}
	return 4;
}
