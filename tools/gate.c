/*
 * gate.c - see gate.h: the observations of a gate and the rules that end it.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "cli.h"
#include "error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int mew_gate_init(struct mew_gate *g, const struct mew_gate_options *o, const struct mew_rules *rules)
{
	*g = (struct mew_gate){ .options = o, .rules = *rules, .started_s = (uint64_t)time(NULL) };
	g->rules.sequential = !o->fixed && rules->time_rule == MEW_TIME_SIGNS;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		g->models[side] = mew_model_new();
		g->recounts[side] = mew_model_new();
		if (g->models[side] == NULL || g->recounts[side] == NULL)
			return -1;
	}
	return 0;
}

void mew_gate_fini(struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++) {
		struct mew_gate_case *c = &g->cases[i];

		free(c->key);
		free(c->label);
		free(c->reason);
		free(c->series.list);
		free(c->counts);
		for (size_t k = 0; k < MEW_GATE_CONTEXTS; k++)
			free(c->contexts[k].list);
	}
	free(g->cases);
	json_decref(g->merged);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		mew_model_free(g->models[side]);
		mew_model_free(g->recounts[side]);
		mew_model_free(g->profiles[side]);
	}
	mew_calibration_free(g->calibration);
	*g = (struct mew_gate){ 0 };
}

struct mew_gate_case *mew_gate_add(struct mew_gate *g, const char *key, const char *label)
{
	struct mew_gate_case *grown = realloc(g->cases, (g->ncases + 1) * sizeof *grown), *c;

	if (grown == NULL)
		return NULL;
	g->cases = grown;
	c = &grown[g->ncases];
	*c = (struct mew_gate_case){ .key = strdup(key), .label = label != NULL ? strdup(label) : NULL };
	if (c->key == NULL || (label != NULL && c->label == NULL)) {
		free(c->key);
		free(c->label);
		return NULL;
	}
	g->ncases++;
	return c;
}

void mew_gate_fail(struct mew_gate_case *c, const char *format, ...)
{
	va_list ap;

	if (c->reason != NULL)
		return;
	va_start(ap, format);
	if (vasprintf(&c->reason, format, ap) < 0)
		c->reason = NULL;
	va_end(ap);
	c->stage = MEW_GATE_DECIDED;
}

struct mew_gate_observation mew_gate_observation_of(const struct mew_pair_observation *o)
{
	return (struct mew_gate_observation){
		.log_ratio = o->log_ratio,
		.ns = { o->ns[MEW_BASE], o->ns[MEW_HEAD] },
		.loops = o->loops,
		.rounds = o->nrounds,
		.disturbed = o->disturbed,
		.ties = o->ties,
		.cpu = o->cpu,
	};
}

int mew_gate_observe(struct mew_gate_series *s, const struct mew_gate_observation *o)
{
	if (s->n == s->capacity) {
		size_t capacity = s->capacity == 0 ? 32 : s->capacity * 2;
		struct mew_gate_observation *grown = realloc(s->list, capacity * sizeof *grown);

		if (grown == NULL)
			return -1;
		s->list = grown;
		s->capacity = capacity;
	}
	s->list[s->n++] = *o;
	return 0;
}

/* --- time ------------------------------------------------------------------------------------------------------- */

/* The verdict of the observations from `from` on. The numbers live as long as the call. */
static int judge_time(const struct mew_rules *rules, const struct mew_gate_case *c, size_t from,
		      struct mew_verdict *out, struct mew_error *err)
{
	size_t n = c->series.n - from;
	double *x = calloc(3 * n + 1, sizeof *x);
	struct mew_observations of = { .log_ratios = x, .n = n, .noise_floor = c->noise_floor };
	int status;

	if (x == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the observations of \"%s\"", c->key);
	of.base_ns = x + n;
	of.head_ns = x + 2 * n;
	for (size_t i = 0; i < n; i++) {
		const struct mew_gate_observation *o = &c->series.list[from + i];

		x[i] = o->log_ratio;
		x[n + i] = o->ns[MEW_BASE];
		x[2 * n + i] = o->ns[MEW_HEAD];
	}
	status = mew_verdict_time(rules, c->key, &of, out, err);
	free(x);
	return status;
}

static bool is_difference(enum mew_outcome outcome)
{
	return outcome == MEW_OUTCOME_REGRESSED || outcome == MEW_OUTCOME_IMPROVED;
}

int mew_gate_look(const struct mew_gate *g, struct mew_gate_case *c, size_t cases, struct mew_error *err)
{
	struct mew_rules rules = g->rules;
	struct mew_verdict v;
	int status;

	if (!rules.sequential || c->stage == MEW_GATE_DECIDED)
		return MEW_OK;
	rules.alpha = rules.alpha == 0 ? 0.05 : rules.alpha;
	if (c->stage == MEW_GATE_LOOKING) /* what Holm's correction will ask at worst */
		rules.alpha /= (double)(cases == 0 ? 1 : cases);
	else /* the direction is known: the other side needs no half of it */
		rules.alpha *= 2;
	status = judge_time(&rules, c, c->confirmed_from, &v, err);
	if (status != MEW_OK || v.outcome == MEW_OUTCOME_INCONCLUSIVE || v.outcome == MEW_OUTCOME_ABSENT)
		return status;
	if (c->stage == MEW_GATE_LOOKING && is_difference(v.outcome)) {
		c->stage = MEW_GATE_CONFIRMING;
		c->flagged = v.outcome;
		c->confirmed_from = c->series.n;
		return MEW_OK;
	}
	if (c->stage == MEW_GATE_CONFIRMING && v.outcome != c->flagged)
		c->confirmed_from = SIZE_MAX;
	c->stage = MEW_GATE_DECIDED;
	return MEW_OK;
}

/* What one iteration took, for people: the medians over all observations. */
static void put_medians(const struct mew_gate_case *c, struct mew_verdict *v)
{
	double *x = calloc(c->series.n + 1, sizeof *x);

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && x != NULL; side++) {
		for (size_t i = 0; i < c->series.n; i++)
			x[i] = c->series.list[i].ns[side];
		*(side == MEW_BASE ? &v->base : &v->head) = mew_stats_median(x, c->series.n);
	}
	free(x);
}

static const char *unconfirmed(const struct mew_gate *g, const struct mew_gate_case *c)
{
	if (c->flagged != MEW_OUTCOME_ABSENT && c->stage == MEW_GATE_DECIDED)
		return "a difference was seen once; fresh processes did not confirm it";
	if (g->out_of_time)
		return "a difference was seen, the time to confirm it by fresh processes ran out";
	return c->phase != NULL && c->phase->contended ?
	       "a difference was seen, but too few pairs were left to confirm it: raise --contention-samples" :
	       "a difference was seen, but too few pairs were left to confirm it by fresh processes: raise --samples";
}

/* The final verdict of time: of all observations, but a difference that was not found twice is not proven. */
static int settle_time(struct mew_gate *g, struct mew_gate_case *c, struct mew_verdict *v, struct mew_error *err)
{
	int status = g->machines > 0 ? mew_gate_merged_time(g, c, v, err) : judge_time(&g->rules, c, 0, v, err);

	if (status != MEW_OK)
		return status;
	if (v->outcome == MEW_OUTCOME_ABSENT) { /* what was not measured has not passed */
		v->outcome = MEW_OUTCOME_INCONCLUSIVE;
		v->why = g->out_of_time ? "the time ran out before its first pair" : "it has no pair of times";
	}
	put_medians(c, v);
	if (!is_difference(v->outcome) || !g->rules.sequential || g->machines > 0)
		return MEW_OK;
	if (c->stage == MEW_GATE_DECIDED && c->confirmed_from != SIZE_MAX && c->flagged == v->outcome)
		return MEW_OK;
	v->outcome = mew_outcome_unproven(v->outcome);
	(void)snprintf(c->why, sizeof c->why, "%s", unconfirmed(g, c));
	return MEW_OK;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static int settle_case(struct mew_gate *g, struct mew_gate_case *c, struct mew_error *err)
{
	const struct mew_metric *time = mew_metric_find("time");
	int status;

	c->nverdicts = 0;
	if (c->is_skipped && c->reason == NULL) {
		mew_verdict_exact(&g->rules, c->key, time, (double)NAN, (double)NAN, &c->verdicts[0]);
		c->verdicts[c->nverdicts++].why = c->why;
		return MEW_OK;
	}
	c->why[0] = '\0';
	if (c->reason != NULL) {
		mew_verdict_invalid(time, c->reason, &c->verdicts[c->nverdicts++]);
		return MEW_OK;
	}
	status = settle_time(g, c, &c->verdicts[c->nverdicts++], err);
	if (status == MEW_OK && (c->phase != NULL || g->machines > 0))
		mew_gate_settle_counts(g, c);
	else if (status == MEW_OK && g->options->memory_iterations > 0)
		mew_gate_settle_exact(g, c);
	return status;
}

static struct mew_verdict **all_verdicts(struct mew_gate *g, size_t *count)
{
	struct mew_verdict **list = calloc(g->ncases * MEW_GATE_METRICS + 1, sizeof(*list));

	*count = 0;
	for (size_t i = 0; list != NULL && i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++)
			list[(*count)++] = &g->cases[i].verdicts[k];
	return list;
}

int mew_gate_settle(struct mew_gate *g, struct mew_error *err)
{
	struct mew_verdict **list;
	int status = MEW_OK;
	size_t n;

	g->nuncounted = 0;
	for (size_t i = 0; i < g->ncases && status == MEW_OK; i++)
		status = settle_case(g, &g->cases[i], err);
	if (status != MEW_OK)
		return status;
	list = all_verdicts(g, &n);
	if (list == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu verdicts", g->ncases);
	status = mew_verdicts_settle(&g->rules, list, n, err);
	g->outcome = mew_verdicts_worst(list, n);
	g->exit_code = mew_verdicts_exit(&g->rules, list, n);
	free(list);
	if (g->outcome == MEW_OUTCOME_ABSENT) /* nothing was compared, which is no verdict to join with others */
		g->outcome = MEW_OUTCOME_INVALID;
	if (g->identity[0] != '\0' || g->interrupted) {
		g->outcome = MEW_OUTCOME_INVALID;
		g->exit_code = MEW_EXIT_INVALID;
	}
	return status;
}

const struct mew_verdict *mew_gate_time(const struct mew_gate_case *c)
{
	return c->nverdicts > 0 && strcmp(c->verdicts[0].metric->name, "time") == 0 ? &c->verdicts[0] : NULL;
}

/* --- words ------------------------------------------------------------------------------------------------------ */

const char *mew_gate_headline(const struct mew_gate *g)
{
	switch (g->outcome) {
	case MEW_OUTCOME_PASS:
		return "PASS";
	case MEW_OUTCOME_IMPROVED:
		return "PASS, improved";
	case MEW_OUTCOME_INCONCLUSIVE:
		return "INCONCLUSIVE";
	case MEW_OUTCOME_REGRESSED:
		return "REGRESSION";
	default:
		return "INVALID MEASUREMENT";
	}
}

void mew_gate_words(const struct mew_verdict *v, char *text, size_t size)
{
	double percent = (v->ratio - 1) * 100;

	if (v->outcome == MEW_OUTCOME_REGRESSED && isinf(v->ratio))
		(void)snprintf(text, size, "more, from none");
	else if (v->metric->exact && v->outcome == MEW_OUTCOME_INCONCLUSIVE && v->why != NULL)
		(void)snprintf(text, size, "%s", v->why);
	else if (v->outcome == MEW_OUTCOME_INVALID || v->outcome == MEW_OUTCOME_ABSENT || !isfinite(v->ratio))
		(void)snprintf(text, size, "%s",
			       v->why != NULL ? v->why : v->outcome == MEW_OUTCOME_ABSENT ? "not measured" : "");
	else if (v->outcome == MEW_OUTCOME_REGRESSED || v->outcome == MEW_OUTCOME_IMPROVED)
		(void)snprintf(text, size, "%s by %.2f %%", v->metric->exact ? percent > 0 ? "more" : "less" :
			       percent > 0 ? "slower" : "faster", fabs(percent));
	else if (v->outcome == MEW_OUTCOME_PASS && v->metric->exact)
		(void)snprintf(text, size, "%s", percent == 0 ? "equal" : v->why != NULL ? v->why : "within its limit");
	else if (v->outcome == MEW_OUTCOME_PASS)
		(void)snprintf(text, size, "not slower by more than %.3g %%", v->limit.percent);
	else
		(void)snprintf(text, size, v->n < v->least ? "%zu of at least %zu observations" :
			       "no difference resolved", v->n, v->least);
}

const char *mew_gate_pairs(const struct mew_gate *g)
{
	bool is_one = g->processes == 1;

	if (g->machines > 0)
		return is_one ? "pair" : "pairs";
	if (g->options->plan != NULL)
		return is_one ? "pair of runs" : "pairs of runs";
	return is_one ? "pair of processes" : "pairs of processes";
}

bool mew_gate_context_words(const struct mew_gate *g, const struct mew_gate_case *c, size_t k,
			    char text[MEW_GATE_CONTEXT_BYTES])
{
	const struct mew_gate_series *s = &c->contexts[k];
	double *x = s->n > 0 ? calloc(s->n, sizeof *x) : NULL;
	struct mew_interval in;
	size_t used;

	if (x == NULL)
		return false;
	for (size_t i = 0; i < s->n; i++)
		x[i] = s->list[i].log_ratio;
	(void)snprintf(text, MEW_GATE_CONTEXT_BYTES, "%s %+.2f %% of the base", g->options->contexts[k].name,
		       (exp(mew_stats_median(x, s->n)) - 1) * 100);
	used = strlen(text);
	if (mew_stats_median_interval_sorted(x, s->n, 0.95, &in))
		(void)snprintf(text + used, MEW_GATE_CONTEXT_BYTES - used, " (%+.2f to %+.2f)", (exp(in.low) - 1) * 100,
			       (exp(in.high) - 1) * 100);
	free(x);
	return true;
}

bool mew_gate_uncounted_words(const struct mew_gate *g, char *text, size_t size)
{
	if (g->nuncounted == 0)
		return false;
	(void)snprintf(text, size, "time alone was judged in %zu of %zu cases: %s", g->nuncounted, g->ncases,
		       g->uncounted);
	return true;
}

bool mew_gate_has_case_for(const struct mew_gate *g, const struct mew_allow *allow)
{
	for (size_t i = 0; i < g->ncases; i++)
		if (mew_allow_matches(allow, g->cases[i].key))
			return true;
	return false;
}
