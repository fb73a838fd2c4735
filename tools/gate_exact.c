/*
 * gate_exact.c - the exact figures of benchmark programs: counted once, counted again where the sides differ, judged.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "error.h"
#include "gate_time.h"
#include "textual.h"

#include <math.h>
#include <stdio.h>

static const struct mew_memory_case *row_of(const struct mew_model *m, const char *key)
{
	const struct mew_case *c = mew_model_find(m, key);

	return c != NULL && mew_case_has(c, MEW_KIND_MEMORY) ? &c->memory : NULL;
}

static void fail(struct mew_gate_case *c, const struct mew_case *from, enum mew_side side)
{
	struct mew_error err;

	(void)mew_error_set(&err, from->memory.status, "%s, counting allocations: %s", mew_side_name(side),
			    from->memory.reason);
	if (err.status != MEW_E_LOST)
		mew_error_add_printed(&err, from->output);
	mew_gate_fail(c, "%s", err.text);
}

void mew_gate_check_exact(struct mew_gate *g, const struct mew_model *m, enum mew_side side)
{
	for (size_t i = 0; i < g->ncases && !mew_gate_is_cancelled(g); i++) { /* an interrupt is no fault of a case */
		const struct mew_case *c = mew_model_find(m, g->cases[i].key);
		int status = c != NULL && mew_case_has(c, MEW_KIND_MEMORY) ? c->memory.status : MEW_OK;

		if (status == MEW_E_BODY || status == MEW_E_LOOP || status == MEW_E_LOST)
			fail(&g->cases[i], c, side);
	}
}

/* NaN: there is none. */
static double figure_of(const struct mew_model *m, const char *key, const struct mew_metric *metric)
{
	const struct mew_memory_case *row = row_of(m, key);
	const struct mew_figure *figures;
	double value;
	size_t n;

	if (row == NULL || row->status != MEW_OK)
		return (double)NAN;
	figures = mew_figures(metric->kind, &n);
	for (size_t i = 0; i < n; i++)
		if (figures[i].bit == metric->bit &&
		    mew_row_number((const struct mew_row_head *)row, &figures[i], &value))
			return value;
	return (double)NAN;
}

static bool is_ours(const struct mew_metric *metric)
{
	return metric->exact && metric->kind == MEW_KIND_MEMORY;
}

bool mew_gate_wants_recount(const struct mew_gate *g, const struct mew_gate_case *c)
{
	size_t n;
	const struct mew_metric *metrics = mew_metrics(&n);

	for (size_t i = 0; i < n && c->reason == NULL; i++) {
		double base = figure_of(g->models[MEW_BASE], c->key, &metrics[i]);
		double head = figure_of(g->models[MEW_HEAD], c->key, &metrics[i]);

		if (is_ours(&metrics[i]) && (base < head || base > head))
			return true;
	}
	return false;
}

static bool any_recount(const struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++)
		if (mew_gate_wants_recount(g, &g->cases[i]))
			return true;
	return false;
}

void mew_gate_exact_passes(struct mew_gate *g, mew_gate_exact_pass *pass, void *data)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && !mew_gate_is_cancelled(g); side++)
		pass(data, side, false);
	if (!any_recount(g))
		return;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && !mew_gate_is_cancelled(g); side++)
		pass(data, side, true);
}

/* --- judging ---------------------------------------------------------------------------------------------------- */

struct range { /* of what the passes counted on a side */
	double low, high;
};

static struct range range_of(const struct mew_gate *g, const struct mew_gate_case *c, enum mew_side side,
			     const struct mew_metric *metric)
{
	double first = figure_of(g->models[side], c->key, metric), again = figure_of(g->recounts[side], c->key, metric);

	/* of a NaN and a number these are the number */
	return (struct range){ fmin(first, again), fmax(first, again) };
}

static const char changes[] = "it changes from run to run by as much as the two differ: no exact figure";

/* Why one side alone has no figure, where that is known: it says more than that there is none. */
static void explain_missing(const struct mew_gate *g, const struct mew_gate_case *c, struct mew_verdict *out)
{
	const struct mew_memory_case *row;

	if (out->outcome != MEW_OUTCOME_INVALID || (!isnan(out->base) && !isnan(out->head)))
		return;
	row = row_of(g->models[isnan(out->base) ? MEW_BASE : MEW_HEAD], c->key);
	if (row != NULL && row->status != MEW_OK && row->reason != NULL)
		out->why = row->reason;
	else if (g->uncounted[0] != '\0')
		out->why = g->uncounted;
}

/*
 * A figure that changes by itself is judged by the kindest and the harshest pair of what was counted; where they
 * disagree nothing was shown. Less is better in all of these metrics.
 */
static void settle(const struct mew_gate *g, const struct mew_gate_case *c, const struct mew_metric *metric,
		   struct mew_verdict *out)
{
	struct range base = range_of(g, c, MEW_BASE, metric), head = range_of(g, c, MEW_HEAD, metric);
	struct mew_verdict kindest, harshest;

	mew_verdict_exact(&g->rules, c->key, metric, figure_of(g->models[MEW_BASE], c->key, metric),
			  figure_of(g->models[MEW_HEAD], c->key, metric), out);
	explain_missing(g, c, out);
	if (!(base.low < base.high || head.low < head.high) || !(head.high >= base.low) ||
	    out->outcome == MEW_OUTCOME_INVALID)
		return;
	mew_verdict_exact(&g->rules, c->key, metric, base.high, fmax(base.high, head.low), &kindest);
	mew_verdict_exact(&g->rules, c->key, metric, base.low, head.high, &harshest);
	if (harshest.outcome == MEW_OUTCOME_PASS && out->outcome != MEW_OUTCOME_PASS) { /* no fall was shown */
		out->outcome = out->outcome == MEW_OUTCOME_REGRESSED ? MEW_OUTCOME_INCONCLUSIVE : MEW_OUTCOME_PASS;
		out->why = changes;
		return;
	}
	if (kindest.outcome == MEW_OUTCOME_REGRESSED || harshest.outcome != MEW_OUTCOME_REGRESSED)
		return;
	out->outcome = MEW_OUTCOME_INCONCLUSIVE;
	out->why = changes;
}

/* Neither side was counted: time alone is judged, which must not go unsaid. */
static void note_uncounted(struct mew_gate *g, const struct mew_gate_case *c)
{
	const struct mew_memory_case *row = row_of(g->models[MEW_BASE], c->key);

	if (row == NULL || row->status == MEW_OK)
		row = row_of(g->models[MEW_HEAD], c->key);
	g->nuncounted++;
	if (g->uncounted[0] == '\0')
		(void)snprintf(g->uncounted, sizeof g->uncounted, "%.230s",
			       row != NULL && row->reason != NULL ? row->reason : "the memory pass gave no figures");
}

void mew_gate_settle_exact(struct mew_gate *g, struct mew_gate_case *c)
{
	size_t n, counted = 0;
	const struct mew_metric *metrics = mew_metrics(&n);

	for (size_t i = 0; i < n && c->nverdicts < MEW_GATE_METRICS; i++) {
		if (!is_ours(&metrics[i]))
			continue;
		settle(g, c, &metrics[i], &c->verdicts[c->nverdicts]);
		counted += c->verdicts[c->nverdicts++].outcome != MEW_OUTCOME_ABSENT;
	}
	if (counted == 0)
		note_uncounted(g, c);
}
