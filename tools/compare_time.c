/*
 * compare_time.c - from the saved samples of both sides to one observation for each pair of processes, and a verdict.
 * Layer L6. The command's thread.
 *
 * Saved results were not taken in turn, so the i-th process of one file has no more to do with the i-th of the other
 * than with any. Pairing them is still right: processes are independent, and a sign test of their differences asks no
 * more. What it cannot do is take out a drift of the machine between the two runs.
 */
#include "config.h"

#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "resample.h"

struct side {
	double *values; /* ln of ns per iteration, sorted within each group */
	struct mew_group *groups; /* a process each, in order */
	double *medians_ns;
	size_t ngroups;
};

static int by_process(const void *a, const void *b)
{
	const struct mew_run *const *x = a, *const *y = b;

	if ((*x)->process != (*y)->process)
		return (*x)->process > (*y)->process ? 1 : -1;
	return (*x > *y) - (*x < *y);
}

/* The runs that count, ordered by process. NULL without memory; the caller frees it. */
static const struct mew_run **runs_of(const struct mew_case *c, size_t *n, size_t *samples)
{
	const struct mew_run **runs = calloc(c->nruns + 1, sizeof *runs);

	*n = *samples = 0;
	for (size_t i = 0; runs != NULL && i < c->nruns; i++) {
		const struct mew_run *r = &c->runs[i];

		if (r->phase != MEW_PHASE_MEASUREMENT_VALUE || r->nsamples == 0 || r->loops == 0)
			continue;
		runs[(*n)++] = r;
		*samples += r->nsamples;
	}
	if (runs != NULL)
		qsort(runs, *n, sizeof *runs, by_process);
	return runs;
}

static void take_groups(struct side *s, const struct mew_run *const *runs, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n;) {
		struct mew_group *g = &s->groups[s->ngroups];
		double *first = s->values + used;
		unsigned process = runs[i]->process;

		for (; i < n && runs[i]->process == process; i++)
			for (size_t k = 0; k < runs[i]->nsamples; k++)
				s->values[used++] = log((double)runs[i]->real_ns[k] / (double)runs[i]->loops);
		*g = (struct mew_group){ .x = first, .n = (size_t)(s->values + used - first) };
		mew_stats_sort(first, g->n);
		s->medians_ns[s->ngroups++] = exp(mew_stats_median_sorted(first, g->n));
	}
}

static void side_close(struct side *s)
{
	free(s->values);
	free(s->groups);
	free(s->medians_ns);
}

static bool side_open(struct side *s, const struct mew_case *c)
{
	size_t n, samples;
	const struct mew_run **runs = runs_of(c, &n, &samples);

	*s = (struct side){ .values = calloc(samples + 1, sizeof *s->values),
			    .groups = calloc(n + 1, sizeof *s->groups),
			    .medians_ns = calloc(n + 1, sizeof *s->medians_ns) };
	if (runs != NULL && s->values != NULL && s->groups != NULL && s->medians_ns != NULL)
		take_groups(s, runs, n);
	free(runs);
	return runs != NULL && s->values != NULL && s->groups != NULL && s->medians_ns != NULL;
}

static int judge_pairs(const struct mew_rules *rules, const struct side *base, const struct side *head,
		       struct mew_compare_case *c, struct mew_error *err)
{
	size_t n = base->ngroups < head->ngroups ? base->ngroups : head->ngroups;
	double *ratios = calloc(n + 1, sizeof *ratios);
	struct mew_observations of = { ratios, base->medians_ns, head->medians_ns, n, 0 };
	int status;

	if (ratios == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the processes of %.80s", c->base->key);
	for (size_t i = 0; i < n; i++)
		ratios[i] = log(head->medians_ns[i] / base->medians_ns[i]);
	status = mew_verdict_time(rules, c->base->key, &of, &c->verdicts[0], err);
	free(ratios);
	return status;
}

/* Where pairs are too few to decide, the ratio and a rough interval by levels still say how large it may be. */
static void estimate(const struct mew_rules *rules, const struct side *base, const struct side *head,
		     struct mew_compare_case *c)
{
	struct mew_verdict *v = &c->verdicts[0];
	struct mew_estimate e;

	if (v->outcome == MEW_OUTCOME_INVALID || v->outcome == MEW_OUTCOME_ABSENT || v->n >= v->least)
		return;
	c->is_rough = true;
	if (!mew_bootstrap_medians(&(struct mew_groups){ head->groups, head->ngroups },
				   &(struct mew_groups){ base->groups, base->ngroups }, &rules->resampling, &e))
		return;
	v->ratio = exp(e.value);
	v->has_interval = e.has_interval;
	v->interval = (struct mew_interval){ .low = exp(e.interval.low), .high = exp(e.interval.high) };
}

static const char elsewhere[] = "measured on another machine: context, not evidence";

int mew_compare_time(const struct mew_rules *rules, bool other_machine, struct mew_compare_case *c,
		     struct mew_error *err)
{
	struct mew_verdict *v = &c->verdicts[0];
	struct side base, head;
	bool opened = side_open(&base, c->base);
	int status;

	opened = side_open(&head, c->head) && opened;
	status = opened ? judge_pairs(rules, &base, &head, c, err)
			: mew_error_set(err, MEW_E_NOMEM, "no memory for the samples of %.80s", c->base->key);
	if (status == MEW_OK) {
		c->base_processes = base.ngroups;
		c->head_processes = head.ngroups;
		v->base = mew_row_has((const struct mew_row_head *)&c->base->time, MEW_FIG_MEDIAN_NS) ?
			  c->base->time.median_ns : (double)NAN;
		v->head = mew_row_has((const struct mew_row_head *)&c->head->time, MEW_FIG_MEDIAN_NS) ?
			  c->head->time.median_ns : (double)NAN;
		estimate(rules, &base, &head, c);
		c->has_ranks = mew_rank_mann_whitney(head.medians_ns, head.ngroups, base.medians_ns, base.ngroups,
						     &c->ranks);
		if (other_machine && v->outcome != MEW_OUTCOME_INVALID && v->outcome != MEW_OUTCOME_ABSENT) {
			v->outcome = MEW_OUTCOME_INCONCLUSIVE;
			v->why = elsewhere;
		}
	}
	side_close(&base);
	side_close(&head);
	return status;
}
