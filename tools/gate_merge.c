/*
 * gate_merge.c - samples that several machines took, joined into one verdict; the machine is a level of the bootstrap.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "cli.h"
#include "error.h"
#include "gate_resume.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- reading ---------------------------------------------------------------------------------------------------- */

static json_t *load(const char *directory, const char *name, struct mew_error *err)
{
	char path[PATH_MAX];
	json_error_t at;
	json_t *tree;

	(void)snprintf(path, sizeof path, "%.2000s/%s", directory, name);
	tree = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
	if (tree == NULL)
		(void)mew_error_set(err, MEW_E_INVALID,
				    "%.200s cannot be joined: %.80s; `mew gate --resume` ends an interrupted run", path,
				    at.text);
	else if (json_integer_value(json_object_get(tree, "schema_version")) != MEW_GATE_SCHEMA)
		(void)mew_error_set(err, MEW_E_INVALID, "%.200s cannot be joined: its schema_version is not %d", path,
				    MEW_GATE_SCHEMA);
	else
		return tree;
	json_decref(tree);
	return NULL;
}

static const char *text_of(const json_t *tree, const char *object, const char *member)
{
	return json_string_value(json_object_get(object != NULL ? json_object_get(tree, object) : tree, member));
}

static bool differs(const char *a, const char *b)
{
	return (a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0);
}

/* The same two builds of the same work: by revision where one is known, else by contents. */
static int check_same(struct mew_gate *g, const json_t *first, const json_t *other, const char *directory)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		const char *name = mew_side_name(side);
		const char *by = text_of(first, name, "revision") != NULL ? "revision" : "hash";

		if (differs(text_of(first, name, by), text_of(other, name, by)))
			(void)snprintf(g->identity, sizeof g->identity, "%.200s compared another %s: its %s differs",
				       directory, name, by);
	}
	if (differs(text_of(first, NULL, "workload_revision"), text_of(other, NULL, "workload_revision")))
		(void)snprintf(g->identity, sizeof g->identity,
			       "%.200s worked on another input: its workload_revision differs", directory);
	if (differs(text_of(first, NULL, "phases_hash"), text_of(other, NULL, "phases_hash")))
		(void)snprintf(g->identity, sizeof g->identity,
			       "%.200s ran other commands: its phases file said something else", directory);
	return g->identity[0] == '\0' ? 0 : -1;
}

/* --- joining ---------------------------------------------------------------------------------------------------- */

static struct mew_gate_case *case_of(struct mew_gate *g, const char *key, bool first)
{
	for (size_t i = 0; i < g->ncases; i++)
		if (strcmp(g->cases[i].key, key) == 0)
			return &g->cases[i];
	return first ? mew_gate_add(g, key, NULL) : NULL;
}

static int join_case(struct mew_gate *g, const json_t *from, unsigned machine, struct mew_error *err)
{
	const char *key = text_of(from, NULL, "key");
	struct mew_gate_case *c = key != NULL ? case_of(g, key, machine == 0) : NULL;
	const json_t *list = json_object_get(from, "observations");
	const char *skipped = text_of(from, NULL, "skipped");

	if (key == NULL)
		return mew_error_set(err, MEW_E_INVALID, "machine %u: a case has no \"key\"", machine + 1);
	if (c == NULL && (c = mew_gate_add(g, key, NULL)) != NULL)
		mew_gate_fail(c, "machine %u alone has it: measure the same cases everywhere", machine + 1);
	if (c == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the case \"%s\"", key);
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct mew_gate_observation o;

		if (mew_gate_read_observation(json_array_get(list, i), key, &o, err) != MEW_OK)
			return MEW_E_INVALID;
		o.machine = machine;
		if (mew_gate_observe(&c->series, &o) != 0)
			return mew_error_set(err, MEW_E_NOMEM, "no memory for the observations of \"%s\"", key);
		g->processes++;
	}
	c->is_skipped = skipped != NULL && (c->is_skipped || machine == 0); /* everywhere, or it was measured */
	if (c->is_skipped)
		(void)snprintf(c->why, sizeof c->why, "%s", skipped);
	return MEW_OK;
}

/* A metric by its name; a command's own count gets a place in the list. */
static const struct mew_metric *metric_of(struct mew_metric counts[MEW_PLAN_COUNTS], size_t *n, const json_t *from)
{
	const char *name = text_of(from, NULL, "metric"), *better = text_of(from, NULL, "better");
	const struct mew_metric *known = name != NULL ? mew_metric_find(name) : NULL;

	for (size_t i = 0; name != NULL && i < *n; i++)
		if (strcmp(counts[i].name, name) == 0)
			return &counts[i];
	if (known != NULL || name == NULL || *n == MEW_PLAN_COUNTS)
		return known;
	counts[*n] = (struct mew_metric){
		.name = name, .kind = MEW_KIND_MEMORY, .bit = -1, .exact = true,
		.direction = better != NULL && strcmp(better, "more") == 0 ? MEW_MORE_IS_BETTER : MEW_LESS_IS_BETTER,
	};
	return &counts[(*n)++];
}

int mew_gate_merge_counts(const char *directory, struct mew_command_plan *out)
{
	struct mew_error err;
	const json_t *cases;

	out->tree = load(directory, "summary.json", &err);
	if (out->tree == NULL) {
		mew_cli_complain("--merge: %s", err.text);
		return MEW_EXIT_INVALID;
	}
	cases = json_object_get(out->tree, "cases");
	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *verdicts = json_object_get(json_array_get(cases, i), "verdicts");

		for (size_t k = 0; k < json_array_size(verdicts); k++)
			(void)metric_of(out->counts, &out->ncounts, json_array_get(verdicts, k));
	}
	return MEW_EXIT_FINE;
}

static double number_of(const json_t *from, const char *member)
{
	const json_t *value = json_object_get(from, member);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* By the limits of now. Figures that showed nothing there, because they change by themselves, show nothing here. */
static void judge_exact(const struct mew_gate *g, const struct mew_gate_case *c, const struct mew_metric *metric,
			const json_t *from, struct mew_verdict *v)
{
	const char *was = text_of(from, NULL, "outcome");

	mew_verdict_exact(&g->rules, c->key, metric, number_of(from, "base"), number_of(from, "head"), v);
	if (was != NULL && strcmp(was, "inconclusive") == 0 && v->outcome == MEW_OUTCOME_REGRESSED)
		v->outcome = MEW_OUTCOME_INCONCLUSIVE;
	else if (was != NULL && strcmp(was, "pass") == 0 && v->outcome == MEW_OUTCOME_IMPROVED)
		v->outcome = MEW_OUTCOME_PASS;
	else
		return;
	v->why = text_of(from, NULL, "why");
}

/* Exact figures are judged on each machine; the worst one stands. */
static void join_exact(struct mew_gate *g, struct mew_gate_case *c, const json_t *verdicts)
{
	for (size_t i = 0; i < json_array_size(verdicts); i++) {
		const json_t *from = json_array_get(verdicts, i);
		const struct mew_metric *metric = metric_of(g->merged_metrics, &g->nmerged_metrics, from);
		struct mew_verdict v;
		size_t at = 0;

		if (metric == NULL || !metric->exact)
			continue;
		judge_exact(g, c, metric, from, &v);
		while (at < c->nexact && c->exact[at].metric != metric)
			at++;
		if (at == MEW_COUNTOF(c->exact))
			continue;
		if (at == c->nexact || v.outcome > c->exact[at].outcome)
			c->exact[at] = v;
		c->nexact += at == c->nexact;
	}
}

/* What a machine said of each case. Together they are held to what the noisiest of them can tell. */
static void join_summary(struct mew_gate *g, const json_t *samples, const json_t *summary, unsigned machine)
{
	for (size_t i = 0; i < g->ncases; i++) {
		struct mew_gate_case *c = &g->cases[i];
		const json_t *judged = mew_gate_find_case(summary, c->key);

		if (mew_gate_find_case(samples, c->key) == NULL)
			mew_gate_fail(c, "machine %u has no such case: measure the same cases everywhere", machine + 1);
		c->noise_floor = fmax(c->noise_floor, number_of(judged, "noise_floor")); /* NaN is no maximum */
		join_exact(g, c, json_object_get(judged, "verdicts"));
	}
}

static int join(struct mew_gate *g, const char *directory, unsigned machine, struct mew_error *err)
{
	json_t *samples = load(directory, "samples.json", err), *summary = NULL;
	const json_t *cases = json_object_get(samples, "cases");
	const char *verdict;

	if (samples == NULL)
		return MEW_E_INVALID;
	(void)json_array_append_new(g->merged, samples); /* the gate keeps it: texts belong to it */
	summary = load(directory, "summary.json", err);
	if (summary == NULL)
		return MEW_E_INVALID;
	(void)json_array_append_new(g->merged, summary);
	verdict = text_of(summary, NULL, "verdict");
	if (verdict == NULL || strcmp(verdict, "invalid") == 0)
		return mew_error_set(err, MEW_E_INVALID, "%.200s holds an invalid measurement: measure there again",
				     directory);
	for (size_t i = 0; i < 2 * (size_t)machine; i += 2)
		if (json_equal(json_array_get(g->merged, i), samples))
			return mew_error_set(err, MEW_E_INVALID,
					     "%.200s holds the samples of another directory: name each run once",
					     directory);
	if (check_same(g, json_array_get(g->merged, 0), samples, directory) != 0)
		return MEW_E_INVALID;
	for (size_t i = 0; i < json_array_size(cases); i++)
		if (join_case(g, json_array_get(cases, i), machine, err) != MEW_OK)
			return MEW_E_INVALID;
	join_summary(g, samples, summary, machine);
	return MEW_OK;
}

int mew_gate_merge(struct mew_gate *g, char *const *directories, int n)
{
	struct mew_error err = { 0 };
	const json_t *first;

	g->merged = json_array();
	for (int i = 0; i < n && g->merged != NULL; i++)
		if (join(g, directories[i], (unsigned)i, &err) != MEW_OK && g->identity[0] == '\0') {
			mew_cli_complain("--merge: %s", err.text);
			return MEW_EXIT_INVALID;
		}
	g->machines = (unsigned)n;
	g->rules.time_rule = MEW_TIME_SIGNS; /* Holm's correction takes p-values, also those of resamples */
	g->rules.sequential = false;
	first = json_array_get(g->merged, 0);
	g->merged_options = *g->options;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		const char *program = text_of(first, mew_side_name(side), "program");

		g->merged_options.programs[side] = program != NULL ? program : mew_side_name(side);
		g->merged_options.revisions[side] = text_of(first, mew_side_name(side), "revision");
	}
	g->merged_options.workload_revision = text_of(first, NULL, "workload_revision");
	g->options = &g->merged_options;
	if (g->ncases > 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("--merge: there is no case in %s", directories[0]);
	return MEW_EXIT_INVALID;
}

/* --- judging ---------------------------------------------------------------------------------------------------- */

/*
 * How many resamples it takes to be certain among all cases. The p-value of n is 1 / (n + 1) at least, and is
 * multiplied by the number of cases (Holm): where that alone keeps a difference from counting, there must be more.
 * Whether the pairs are enough to be that certain, their signs say: of five pairs beyond the margin every resample is,
 * and proves no more.
 * Returns 0: no more are wanted.
 */
static unsigned resamples_wanted(const struct mew_gate *g, double p_by_signs, const struct mew_estimate *e)
{
	double side = (g->rules.alpha == 0 ? 0.05 : g->rules.alpha) / 2, cases = (double)g->ncases;
	double p = fmin(e->p_above, e->p_below), wanted = ceil(2 * cases / side);

	if (p > side || p * cases <= side || p_by_signs * cases > side || wanted <= MEW_RESAMPLES)
		return 0;
	return (unsigned)fmin(wanted, UINT_MAX);
}

/* Each pair is a group of one; groups of a machine stand together because they were read so. */
static bool estimate(const struct mew_gate *g, const struct mew_gate_case *c, double margin, double p_by_signs,
		     struct mew_estimate *out)
{
	struct mew_resampling how = g->rules.resampling;
	size_t n = c->series.n;
	struct mew_group *groups = calloc(n + 1, sizeof *groups);
	struct mew_groups all = { groups, n };
	bool fine = groups != NULL;

	for (size_t i = 0; i < n && fine; i++)
		groups[i] = (struct mew_group){ &c->series.list[i].log_ratio, 1, c->series.list[i].machine };
	how.edge = margin;
	fine = fine && mew_bootstrap_medians(&all, NULL, &how, out);
	how.resamples = fine ? resamples_wanted(g, p_by_signs, out) : 0;
	if (how.resamples > 0)
		fine = mew_bootstrap_medians(&all, NULL, &how, out);
	free(groups);
	return fine;
}

static void decide(struct mew_verdict *v, double margin, const struct mew_estimate *e)
{
	v->ratio = exp(e->value);
	v->has_interval = e->has_interval && v->n >= MEW_PAIRED_LEAST;
	v->least = MEW_PAIRED_LEAST;
	v->interval = (struct mew_interval){ exp(e->interval.low), exp(e->interval.high) };
	v->p_worse = v->has_interval ? e->p_above : 1;
	v->p_better = v->has_interval ? e->p_below : 1;
	v->outcome = MEW_OUTCOME_INCONCLUSIVE;
	v->why = v->has_interval ? "the interval over machines is on both sides of the margin" :
		 "too few pairs to decide";
	if (!v->has_interval)
		return;
	if (e->interval.low > margin)
		v->outcome = MEW_OUTCOME_REGRESSED;
	else if (e->interval.high < -margin)
		v->outcome = MEW_OUTCOME_IMPROVED;
	else if (e->interval.high < margin)
		v->outcome = MEW_OUTCOME_PASS;
	if (v->outcome != MEW_OUTCOME_INCONCLUSIVE)
		v->why = NULL;
}

int mew_gate_merged_time(const struct mew_gate *g, const struct mew_gate_case *c, struct mew_verdict *v,
			 struct mew_error *err)
{
	struct mew_rules rules = g->rules;
	double *x = calloc(c->series.n + 1, sizeof *x);
	struct mew_observations of = { .log_ratios = x, .n = c->series.n, .noise_floor = c->noise_floor };
	struct mew_estimate e;
	double margin;
	int status;

	if (x == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the observations of \"%s\"", c->key);
	for (size_t i = 0; i < c->series.n; i++)
		x[i] = c->series.list[i].log_ratio;
	rules.time_rule = MEW_TIME_SIGNS; /* its margin, checks and p-values are wanted, not its decision */
	rules.sequential = false;
	status = mew_verdict_time(&rules, c->key, &of, v, err);
	free(x);
	if (status != MEW_OK || v->outcome == MEW_OUTCOME_ABSENT || v->outcome == MEW_OUTCOME_INVALID)
		return status;
	margin = log1p(v->limit.percent / 100);
	if (!estimate(g, c, margin, fmin(v->p_worse, v->p_better), &e))
		return mew_error_set(err, MEW_E_NOMEM, "no memory to resample \"%s\"", c->key);
	decide(v, margin, &e);
	return MEW_OK;
}
