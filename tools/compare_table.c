/*
 * compare_table.c - a comparison for people: a table of time, one of exact figures, what differs and what it means.
 * Layer L6. The command's thread.
 *
 * More than two files become a history: for each case a row per file. Figures that are equal are counted and left out,
 * unless -v asks for them.
 */
#include "config.h"

#include "compare_cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_SHOWN 5u

static int finish(const struct mew_cells *o, struct mew_grid *g)
{
	int status = mew_grid_write(g, o->w, o->view);

	mew_grid_fini(g);
	return status;
}

/* --- two files -------------------------------------------------------------------------------------------------- */

/* The mark stands at the range: a narrow table has no column for the pairs. */
static void range_cell(struct mew_grid *g, const struct mew_verdict *v, bool is_rough)
{
	char low[MEW_NUMBER_BYTES], high[MEW_NUMBER_BYTES], text[2 * MEW_NUMBER_BYTES + 4] = "";

	if (v->has_interval) {
		mew_text_number(low, v->interval.low, MEW_CELL_DIGITS, false);
		mew_text_number(high, v->interval.high, MEW_CELL_DIGITS, false);
		(void)snprintf(text, sizeof text, "%s..%s%s", low, high, is_rough ? "!" : "");
	}
	mew_grid_cell(g, MEW_STYLE_PLAIN, text);
}

static void time_row(struct mew_grid *g, const struct mew_compare_case *c, double factor)
{
	const struct mew_verdict *v = &c->verdicts[0];
	char pairs[24];

	mew_grid_row(g);
	mew_grid_cell(g, MEW_STYLE_PLAIN, c->title);
	mew_cell_number(g, v->base, factor);
	mew_cell_number(g, v->head, factor);
	mew_cell_ratio(g, v);
	range_cell(g, v, c->is_rough);
	(void)snprintf(pairs, sizeof pairs, "%zu", v->n);
	mew_grid_cell(g, MEW_STYLE_PLAIN, v->n > 0 ? pairs : "");
	mew_cell_word(g, v);
}

static bool any_rough(const struct mew_comparison *c)
{
	for (size_t i = 0; i < c->ncases; i++)
		if (c->cases[i].is_rough)
			return true;
	return false;
}

static void put_mean(const struct mew_cells *o, const struct mew_comparison *c)
{
	char ratio[MEW_NUMBER_BYTES];

	if (c->nratios == 0)
		return;
	mew_text_number(ratio, c->mean_ratio, MEW_CELL_DIGITS, false);
	mew_cell_sentence(o, MEW_STYLE_PLAIN, "geometric mean of the ratios of %zu case%s: %s", c->nratios,
			  c->nratios == 1 ? "" : "s",
		 ratio);
}

static int put_time(const struct mew_cells *o, const struct mew_comparison *c)
{
	const struct mew_unit *unit = mew_cell_unit(o->set, 0);
	struct mew_grid g;
	int status;

	if (unit == NULL)
		return MEW_E_NOMEM;
	mew_grid_init(&g);
	mew_grid_column(&g, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&g, "base", mew_cell_unit_name(o, unit), MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "head", mew_cell_unit_name(o, unit), MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "ratio", "", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "95 % range", "", MEW_ALIGN_RIGHT, false);
	mew_grid_column(&g, "pairs", "", MEW_ALIGN_RIGHT, true);
	mew_grid_column(&g, "verdict", "", MEW_ALIGN_TEXT, false);
	for (size_t i = 0; i < c->ncases; i++)
		if (c->cases[i].verdicts[0].outcome != MEW_OUTCOME_ABSENT)
			time_row(&g, &c->cases[i], unit->factor);
	if (g.nrows == 0) {
		mew_grid_fini(&g);
		return MEW_OK;
	}
	mew_cell_title(o, "time: one iteration of the loop");
	status = finish(o, &g);
	put_mean(o, c);
	mew_cell_paragraph(o, MEW_STYLE_DIM, "  ratio: head / base; pairs: of processes, each one observation; "
					     "verdict: against the margin");
	if (any_rough(c))
		mew_cell_paragraph(o, MEW_STYLE_DIM, "  !: too few pairs for a verdict; the range is of the samples in "
						     "hand and does not know "
			  "how processes differ");
	return status;
}

static void figure_row(struct mew_grid *g, const struct mew_cells *o, const struct mew_compare_case *c, size_t metric,
		       const struct mew_unit *unit)
{
	const struct mew_verdict *v = &c->verdicts[metric];

	mew_grid_row(g);
	mew_grid_cell(g, MEW_STYLE_PLAIN, c->title);
	mew_grid_cell(g, MEW_STYLE_PLAIN, mew_cell_titles[metric]);
	mew_grid_cell(g, MEW_STYLE_PLAIN, mew_cell_unit_name(o, unit));
	mew_cell_number(g, v->base, unit->factor);
	mew_cell_number(g, v->head, unit->factor);
	mew_cell_ratio(g, v);
	mew_cell_word(g, v);
}

static int put_figures(const struct mew_cells *o, const struct mew_comparison *c)
{
	size_t equal = 0, all = 0;
	struct mew_grid g;
	int status = MEW_OK;

	mew_grid_init(&g);
	mew_grid_column(&g, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&g, "figure", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&g, "unit", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&g, "base", "", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "head", "", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "ratio", "", MEW_ALIGN_NUMBER, true);
	mew_grid_column(&g, "verdict", "", MEW_ALIGN_TEXT, false);
	for (size_t i = 0; i < c->ncases; i++)
		for (size_t k = 1; k < MEW_COMPARE_METRICS; k++) {
			const struct mew_verdict *v = &c->cases[i].verdicts[k];
			double pair[2] = { isfinite(v->base) ? v->base : 0, isfinite(v->head) ? v->head : 0 };

			all += v->outcome != MEW_OUTCOME_ABSENT;
			equal += v->outcome == MEW_OUTCOME_PASS && v->base == v->head;
			if (v->outcome == MEW_OUTCOME_ABSENT || (!o->set->verbose && v->base == v->head))
				continue;
			figure_row(&g, o, &c->cases[i], k,
				   mew_unit_pick(k == 1 ? MEW_SCALE_NONE : MEW_SCALE_BYTES, pair, 2));
		}
	if (all > 0)
		mew_cell_title(o, "memory: heap blocks that the loop allocated");
	if (g.nrows > 0)
		status = mew_grid_write(&g, o->w, o->view);
	mew_grid_fini(&g);
	if (all > 0)
		mew_cell_sentence(o, MEW_STYLE_PLAIN, "%zu of %zu figures are equal%s", equal, all,
			 equal > 0 && !o->set->verbose ? "; -v lists them" : "");
	return status;
}

/* --- reasons ---------------------------------------------------------------------------------------------------- */

struct reason { /* why some verdicts are what they are; for one rule of the gate or none */
	const char *why;
	const struct mew_allow *allow;
};

static bool same_reason(const struct mew_verdict *v, const struct reason *r)
{
	return v->allow == r->allow &&
	       (v->why == r->why || (v->why != NULL && r->why != NULL && strcmp(v->why, r->why) == 0));
}

static bool has_reason(const struct mew_verdict *v)
{
	return v->outcome != MEW_OUTCOME_ABSENT && (v->why != NULL || v->allow != NULL);
}

/* The case and its metrics that the reason is for. Returns false when it is for none of them. */
static bool put_metrics(struct mew_writer *w, const struct mew_compare_case *c, const struct reason *r,
			const char *before, bool is_shown)
{
	bool begun = false;

	for (size_t k = 0; k < MEW_COMPARE_METRICS; k++) {
		const struct mew_verdict *v = &c->verdicts[k];

		if (!has_reason(v) || !same_reason(v, r))
			continue;
		if (is_shown)
			mew_writef(w, "%s%s%s%s", begun ? ", " : before, begun ? "" : c->title, begun ? "" : " ",
				   v->metric->name);
		begun = true;
	}
	return begun;
}

/* "case a time, case b time, peak and 7 more", into growing memory. */
static void put_reason(const struct mew_cells *o, const struct mew_comparison *c, const struct reason *r)
{
	struct mew_writer text;
	size_t shown = 0, more = 0;
	char *done;

	mew_writer_memory(&text);
	for (size_t i = 0; i < c->ncases; i++) {
		bool is_shown = shown < NAMES_SHOWN || o->set->verbose;

		if (put_metrics(&text, &c->cases[i], r, shown > 0 ? ", " : "", is_shown))
			*(is_shown ? &shown : &more) += 1;
	}
	if (more > 0)
		mew_writef(&text, " and %zu more", more);
	mew_write_text(&text, ":");
	if (r->why != NULL)
		mew_writef(&text, " %s", r->why);
	if (r->allow != NULL)
		mew_writef(&text, "%s allowed by a rule: %s", r->why != NULL ? ";" : "", r->allow->reason);
	done = mew_writer_take(&text, NULL);
	if (done != NULL)
		mew_cell_paragraph(o, MEW_STYLE_PLAIN, done);
	else
		mew_write_no_memory(o->w);
	free(done);
}

/* Each reason once, where it first occurs. */
static void put_reasons(const struct mew_cells *o, const struct mew_comparison *c)
{
	size_t n = c->ncases * MEW_COMPARE_METRICS;
	bool begun = false;

	for (size_t i = 0; i < n; i++) {
		const struct mew_verdict *v = &c->cases[i / MEW_COMPARE_METRICS].verdicts[i % MEW_COMPARE_METRICS];
		struct reason r = { v->why, v->allow };
		bool seen = !has_reason(v);

		for (size_t k = 0; !seen && k < i; k++) {
			const struct mew_verdict *before =
				&c->cases[k / MEW_COMPARE_METRICS].verdicts[k % MEW_COMPARE_METRICS];

			seen = has_reason(before) && same_reason(before, &r);
		}
		if (seen)
			continue;
		if (!begun)
			mew_write_char(o->w, '\n');
		begun = true;
		put_reason(o, c, &r);
	}
}

/* --- the gate --------------------------------------------------------------------------------------------------- */

static void put_allows(const struct mew_cells *o)
{
	const struct mew_rules *rules = o->set->rules;
	const struct mew_comparison *c = o->set->list;

	for (size_t i = 0; i < rules->nallows; i++) {
		const struct mew_allow *a = &rules->allows[i];

		mew_cell_sentence(o, MEW_STYLE_PLAIN, "rule: %s of %s may differ from the general limit%s%s%s: %s",
			 a->metric, a->cases,
			 a->expires == NULL ? "" : mew_allow_is_live(a, rules->today) ? " until " :
			 ", but expired after ",
			 a->expires == NULL ? "" : a->expires,
			 mew_compare_has_case_for(c, a) ? "" : ", but no case has such a key", a->reason);
	}
}

static void put_gate(const struct mew_cells *o, const struct mew_comparison *c)
{
	enum mew_style style = c->outcome == MEW_OUTCOME_PASS ? MEW_STYLE_GOOD : mew_outcome_style(c->outcome);

	put_allows(o);
	mew_write_char(o->w, '\n');
	mew_cell_sentence(o, style, "gate: %s%s", mew_compare_gate_word(c), mew_compare_misfit(c));
}

static int put_pair(const struct mew_cells *o)
{
	const struct mew_comparison *c = o->set->list;
	int status;

	mew_cell_sentence(o, MEW_STYLE_PLAIN, "base  %s", c->base_name);
	mew_cell_sentence(o, MEW_STYLE_PLAIN, "head  %s", c->head_name);
	status = put_time(o, c);
	if (status == MEW_OK)
		status = put_figures(o, c);
	put_reasons(o, c);
	if (c->nmissing + c->nadded + c->ndifferences > 0)
		mew_write_char(o->w, '\n');
	mew_cell_cases(o, "missing from the head", c->base, c->missing, c->nmissing);
	mew_cell_cases(o, "new in the head", c->head, c->added, c->nadded);
	mew_cell_differences(o, c);
	if (o->set->gated)
		put_gate(o, c);
	return status;
}

int mew_compare_table(const struct mew_compare_set *set, const struct mew_view *view, struct mew_writer *w)
{
	struct mew_cells o = { set, view, w };

	return set->n == 1 ? put_pair(&o) : mew_cell_history(&o);
}
