/*
 * gate_counts.c - what a command counted of itself: read, kept pair by pair, judged exactly.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "emit.h"
#include "error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Add a member to a sum; a first one replaces NaN. Returns false: it is there and no count. */
static bool add_member(const json_t *from, const char *name, double *sum)
{
	const json_t *value = json_object_get(from, name);
	double x = json_number_value(value);

	if (value == NULL)
		return true;
	if (!json_is_number(value) || !isfinite(x) || x < 0)
		return false;
	*sum = isnan(*sum) ? x : *sum + x;
	return true;
}

int mew_gate_read_counts(const char *path, const struct mew_command_plan *plan, const struct mew_command_phase *phase,
			 double *values, double *required, struct mew_error *err)
{
	json_error_t at;
	json_t *from = json_load_file(path, JSON_REJECT_DUPLICATES, &at);
	const char *bad = NULL;

	if (from == NULL)
		return mew_error_set(err, MEW_E_INVALID,
				     "left no counts in the file that MEW_COUNTS names, or no sound JSON: %.60s",
				     at.text);
	if (!json_is_object(from)) {
		json_decref(from);
		return mew_error_set(err, MEW_E_INVALID, "left counts that are no JSON object");
	}
	for (size_t i = 0; i < phase->ncounts && bad == NULL; i++)
		if (!add_member(from, plan->counts[phase->counts[i]].name, &values[i]))
			bad = plan->counts[phase->counts[i]].name;
	for (size_t i = 0; i < phase->nrequire && bad == NULL; i++)
		if (!add_member(from, phase->require[i].name, &required[i]))
			bad = phase->require[i].name;
	json_decref(from);
	return bad == NULL ? MEW_OK :
	       mew_error_set(err, MEW_E_INVALID, "left a count \"%.40s\" that is not a number of 0 or more", bad);
}

int mew_gate_count_pair(struct mew_gate_case *c, const double *base, const double *head)
{
	size_t n = c->phase->ncounts;
	double *grown;

	if (n == 0)
		return 0;
	grown = realloc(c->counts, (c->npairs + 1) * n * MEW_SIDES * sizeof *grown);
	if (grown == NULL)
		return -1;
	c->counts = grown;
	for (size_t i = 0; i < n; i++) {
		grown[(c->npairs * n + i) * MEW_SIDES + MEW_BASE] = base[i];
		grown[(c->npairs * n + i) * MEW_SIDES + MEW_HEAD] = head[i];
	}
	c->npairs++;
	return 0;
}

/* One count over all pairs. Every pair must have it: what is absent was not shown to be equal. */
static void settle_count(struct mew_gate *g, struct mew_gate_case *c, size_t i, struct mew_verdict *out)
{
	const struct mew_metric *metric = &g->options->plan->counts[c->phase->counts[i]];

	for (size_t pair = 0; pair < c->npairs; pair++) {
		const double *at = &c->counts[(pair * c->phase->ncounts + i) * MEW_SIDES];
		struct mew_verdict v;

		mew_verdict_exact(&g->rules, c->key, metric, at[MEW_BASE], at[MEW_HEAD], &v);
		if (v.outcome == MEW_OUTCOME_ABSENT)
			mew_verdict_invalid(metric, "neither side counted it: it is missing, not zero", &v);
		if (pair == 0 || v.outcome > out->outcome)
			*out = v;
	}
	out->n = c->npairs;
}

void mew_gate_settle_counts(struct mew_gate *g, struct mew_gate_case *c)
{
	for (size_t i = 0; i < c->nexact; i++)
		c->verdicts[c->nverdicts++] = c->exact[i];
	if (c->phase == NULL || c->npairs == 0)
		return;
	for (size_t i = 0; i < c->phase->ncounts && c->nverdicts < MEW_GATE_METRICS; i++)
		settle_count(g, c, i, &c->verdicts[c->nverdicts++]);
}

void mew_gate_put_counts(struct mew_json *j, const struct mew_gate *g, const struct mew_gate_case *c)
{
	if (c->phase == NULL)
		return;
	mew_json_key(j, "reused");
	mew_json_u64(j, c->reused);
	mew_json_key(j, "counts");
	mew_json_object(j);
	for (size_t i = 0; i < c->phase->ncounts; i++) {
		mew_json_key(j, g->options->plan->counts[c->phase->counts[i]].name);
		mew_json_array(j);
		for (size_t pair = 0; pair < c->npairs; pair++) {
			const double *at = &c->counts[(pair * c->phase->ncounts + i) * MEW_SIDES];

			mew_json_array(j);
			mew_json_f64(j, at[MEW_BASE]);
			mew_json_f64(j, at[MEW_HEAD]);
			mew_json_array_end(j);
		}
		mew_json_array_end(j);
	}
	mew_json_object_end(j);
}
