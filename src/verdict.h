/*
 * verdict.h - is the head worse than the base: rules on figures that were measured elsewhere.
 * Layer L2. No I/O and no clock: the day, the figures and the noise floor come from the caller, texts are borrowed.
 *
 * The order of use: mew_rules_check() once; mew_verdict_exact() and mew_verdict_time() for each metric of each case;
 * mew_verdicts_settle() over all of them, because many cases need stronger evidence than one; mew_verdicts_exit().
 * What could not be compared at all (a case that failed, other work, a lost record) is said by mew_verdict_invalid().
 *
 * Exact metrics have no statistics: worse by any amount, or beyond its limit, is a regression, whatever the time says
 * and however often it was measured. Time is decided from observations that are independent of each other: the log
 * ratio ln(head / base) of one pair of fresh processes each.
 *
 * Context  any thread, outside windows: the bootstrap rule and the correction for many cases allocate
 */
#ifndef MEW_VERDICT_H
#define MEW_VERDICT_H

#include "base.h"
#include "model.h"
#include "mew.h"
#include "resample.h"
#include "stats.h"

/* --- metrics and limits ----------------------------------------------------------------------------------------- */

enum mew_direction { MEW_LESS_IS_BETTER = 1, MEW_MORE_IS_BETTER = -1 };

struct mew_metric {
	const char *name;   /* as in limits: "time", "allocs", "bytes", "peak", "leak"; or a command's own count */
	const char *figure; /* its member, as in the catalogue of figures; NULL for a command's count */
	enum mew_kind kind;
	int bit;
	enum mew_direction direction;
	bool exact;
};

/* The metrics of mew's own rows, time first; *count is returned. */
const struct mew_metric *mew_metrics(size_t *count);
const struct mew_metric *mew_metric_find(const char *name); /* NULL: not one of them */

/*
 * How much worse a metric may become: so many units, or so many percent of the base, whichever is more. For time the
 * percent are the margin. "0", "5%", "1|5%" (also the other way round).
 */
struct mew_limit {
	double units, percent;
	bool has_units, has_percent;
};

/* Returns false, and no limit, for anything else: negative numbers, infinity, a unit, two of a kind. */
bool mew_limit_parse(const char *text, struct mew_limit *out);

/*
 * A limit for some cases, tighter or looser than the general one. It always has a reason, and it never takes a metric
 * out of the comparison. Of several that fit, the last one counts.
 */
struct mew_allow {
	const char *cases;   /* pattern of keys, as in the shell: * and ? also match a slash */
	const char *metric;  /* mew_metric.name */
	struct mew_limit limit;
	const char *reason;
	const char *expires; /* "2027-01-31", the last day it counts; NULL: no end */
};

/* --- rules ------------------------------------------------------------------------------------------------------ */

enum mew_time_rule {
	MEW_TIME_SIGNS,    /* exact sign interval, or e-processes when sequential */
	MEW_TIME_BOOTSTRAP /* the classic rule: paired percent changes, resampled */
};

enum mew_unsure { MEW_UNSURE_SAY, MEW_UNSURE_PASS, MEW_UNSURE_FAIL }; /* what "inconclusive" does to the exit code */

struct mew_metric_limit {
	const char *metric;
	struct mew_limit limit;
};

struct mew_rules { /* zeros are the defaults */
	double alpha; /* 0: 0.05. Chance of any false difference of time, half of it on each side */
	enum mew_time_rule time_rule;
	/*
	 * The number of observations was not fixed before: they were looked at while they came. Then e-processes decide
	 * and the interval is theirs (at least 8 observations at 5 %); otherwise the exact sign interval does (6).
	 */
	bool sequential;
	bool strict; /* exact metrics must be equal: better is not accepted either, unless an allow rule has the case */
	double least_difference_ns;       /* bootstrap rule: a median difference up to this is never a verdict */
	struct mew_resampling resampling; /* bootstrap rule; the seed is the caller's to record */
	const struct mew_metric_limit *limits; /* borrowed; the last one for a metric counts */
	size_t nlimits;
	const struct mew_allow *allows; /* borrowed */
	size_t nallows;
	const struct mew_metric *counts; /* borrowed: further exact metrics that limits may name, a command's own counts */
	size_t ncounts;
	const char *today; /* "2026-11-30"; NULL: nothing has expired */
	enum mew_unsure unsure;
};

#define MEW_DEFAULT_MARGIN 0.02

/*
 * Are the rules themselves sound? Refuses an alpha outside (0, 1), an unknown metric, units for time, a rule without a
 * pattern, a reason or a limit, and a day that is none.
 * Returns MEW_OK, or MEW_E_INVALID with a sentence that names the rule
 */
int mew_rules_check(const struct mew_rules *rules, struct mew_error *err);

/* Does it count on the rules' day? */
bool mew_allow_is_live(const struct mew_allow *allow, const char *today);
/* Is the case of that key one of those that it is for? */
bool mew_allow_matches(const struct mew_allow *allow, const char *key);

/* --- verdicts --------------------------------------------------------------------------------------------------- */

enum mew_outcome { /* from good to bad: of several, the largest stands */
	MEW_OUTCOME_ABSENT, /* neither side has the figure: not compared */
	MEW_OUTCOME_PASS,
	MEW_OUTCOME_IMPROVED,
	MEW_OUTCOME_INCONCLUSIVE,
	MEW_OUTCOME_REGRESSED,
	MEW_OUTCOME_INVALID
};

/* "absent", "pass", "improvement", "inconclusive", "regression", "invalid". */
const char *mew_outcome_name(enum mew_outcome outcome);

/*
 * What is left of a verdict of time that is not certain enough, or was not found twice: a regression is inconclusive
 * then. An improvement passes: what is below the margin on the far side is below it on the near one at the same level.
 */
static inline enum mew_outcome mew_outcome_unproven(enum mew_outcome outcome)
{
	return outcome == MEW_OUTCOME_IMPROVED ? MEW_OUTCOME_PASS : MEW_OUTCOME_INCONCLUSIVE;
}

struct mew_verdict {
	const struct mew_metric *metric; /* borrowed */
	enum mew_outcome outcome;
	double base, head; /* exact metrics: the figures; time: what the caller puts there. NaN: absent */
	double ratio;      /* head / base, for time the median's; 1 for 0 / 0; infinite from 0; NaN: unknown */
	struct mew_interval interval; /* of the ratio, time alone */
	bool has_interval;
	size_t n, least;         /* observations; the fewest that can decide */
	struct mew_limit limit;  /* that was applied; of time has_percent and percent are always set */
	const struct mew_allow *allow; /* the rule it comes from, borrowed; NULL: the general limit */
	/*
	 * Time by signs: p-values of "not slower than the margin" and "not faster than it", then after
	 * mew_verdicts_settle() the same corrected for all cases. 1 elsewhere.
	 */
	double p_worse, p_better;
	const char *why; /* a sentence, constant; NULL: nothing to add */
};

/*
 * Judge a figure that is the same in every run of the same code. NaN stands for a figure that a side does not have:
 * absent on both is not compared, on one alone it is invalid, never zero.
 *
 * rules    checked
 * key      of the case, for allow rules
 */
void mew_verdict_exact(const struct mew_rules *rules, const char *key, const struct mew_metric *metric, double base,
		       double head, struct mew_verdict *out);

struct mew_observations {
	const double *log_ratios;        /* in the order in which they were taken */
	const double *base_ns, *head_ns; /* of the same pairs, for the bootstrap rule; NULL under the other */
	size_t n;
	double noise_floor; /* measured by A/A runs, as a fraction; 0: not known */
};

/*
 * Judge time against a margin d: the case's allow rule, else the limit of "time", else the larger of 2 % and the noise
 * floor. By signs a regression is a median above ln(1 + d), an improvement one below -ln(1 + d), each with a
 * false-alarm chance of at most alpha / 2; a pass is a median below ln(1 + d), shown with the same certainty. All else
 * is inconclusive, as are too few observations. By the bootstrap, 95 % intervals of the percent change are compared
 * with d, and a median difference not above rules->least_difference_ns is inconclusive. A value that is not finite is
 * invalid; no observation at all is absent.
 *
 * Returns  MEW_OK; MEW_E_INVALID (a margin below the noise floor was asked for); MEW_E_NOMEM
 */
int mew_verdict_time(const struct mew_rules *rules, const char *key, const struct mew_observations *of,
		     struct mew_verdict *out, struct mew_error *err);

/* The comparison of this metric is void; `why` is borrowed. */
void mew_verdict_invalid(const struct mew_metric *metric, const char *why, struct mew_verdict *out);

/*
 * Correct time verdicts by signs for the number of cases (Holm): a regression that is not certain enough among all of
 * them becomes inconclusive, an improvement a pass. Exact metrics and the bootstrap rule are not touched.
 *
 * verdicts  n of them, in any order
 * Returns   MEW_OK, or MEW_E_NOMEM
 */
int mew_verdicts_settle(const struct mew_rules *rules, struct mew_verdict *const *verdicts, size_t n,
			struct mew_error *err);

/* The worst outcome: MEW_OUTCOME_ABSENT when nothing was compared. */
enum mew_outcome mew_verdicts_worst(struct mew_verdict *const *verdicts, size_t n);

/*
 * The exit code of a gate: 0 pass or improvement; 1 a regression; 3 inconclusive (0 or 1 where rules->unsure says so);
 * 4 invalid, or nothing compared.
 */
int mew_verdicts_exit(const struct mew_rules *rules, struct mew_verdict *const *verdicts, size_t n);

#endif
