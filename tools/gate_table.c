/*
 * gate_table.c - a gate's result for people: the verdict, then a row for each metric that says something.
 * Layer L6.
 */
#include "config.h"

#include "gate.h"

#include "compare_cells.h"
#include "error.h"
#include "grid.h"
#include "terminal.h"
#include "textual.h"
#include "writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put_percent(struct mew_grid *t, double ratio)
{
	char text[32] = "";

	if (isfinite(ratio))
		(void)snprintf(text, sizeof text, "%+.2f", (ratio - 1) * 100);
	mew_grid_cell(t, MEW_STYLE_PLAIN, text);
}

static void put_value(struct mew_grid *t, const struct mew_metric *metric, double value)
{
	char number[MEW_NUMBER_BYTES], text[MEW_NUMBER_BYTES + 8] = "";

	if (isfinite(value)) {
		mew_text_number(number, value, 4, true);
		(void)snprintf(text, sizeof text, "%s%s", number,
			       metric->kind == MEW_KIND_TIME && !metric->exact ? " ns" : "");
	}
	mew_grid_cell(t, MEW_STYLE_PLAIN, text);
}

static void put_row(struct mew_grid *t, const struct mew_gate_case *c, const struct mew_verdict *v, bool first)
{
	char count[24] = "";

	mew_grid_row(t);
	mew_grid_cell(t, MEW_STYLE_PLAIN, first ? c->key : "");
	mew_grid_cell(t, MEW_STYLE_PLAIN, v->metric->name);
	mew_grid_cell(t, mew_outcome_style(v->outcome), mew_outcome_name(v->outcome));
	if (v->outcome == MEW_OUTCOME_INVALID) {
		mew_grid_sentence(t, MEW_STYLE_BAD, v->why != NULL ? v->why : "");
		return;
	}
	put_percent(t, v->ratio);
	put_percent(t, v->has_interval ? v->interval.low : (double)NAN);
	put_percent(t, v->has_interval ? v->interval.high : (double)NAN);
	if (!v->metric->exact)
		(void)snprintf(count, sizeof count, "%zu", v->n);
	mew_grid_cell(t, MEW_STYLE_PLAIN, count);
	put_value(t, v->metric, v->base);
	put_value(t, v->metric, v->head);
}

/* Equal exact figures are the rule: they are shown with -v alone. */
static bool is_told(const struct mew_gate *g, const struct mew_verdict *v)
{
	if (v->outcome == MEW_OUTCOME_ABSENT)
		return false;
	return g->options->verbose || !v->metric->exact || v->outcome != MEW_OUTCOME_PASS || v->base != v->head;
}

static void put_reason(struct mew_writer *w, const struct mew_view *view, const struct mew_gate_case *c,
		       const char *metric, const char *why)
{
	size_t column = strlen(c->key) + 4;

	mew_writef(w, "  %s: ", c->key);
	if (metric != NULL) {
		mew_writef(w, "%s: ", metric);
		column += strlen(metric) + 2;
	}
	mew_write_wrapped(w, view, column, 4, MEW_STYLE_PLAIN, why);
}

/* Numbers that do not speak for themselves: an exact figure that is not, one that fell and may not, no pair at all. */
static bool needs_reason(const struct mew_verdict *v)
{
	bool is_doubtful = v->outcome == MEW_OUTCOME_INCONCLUSIVE || v->outcome == MEW_OUTCOME_REGRESSED;

	return v->why != NULL && is_doubtful && (v->metric->exact || v->n == 0);
}

static void put_notes(struct mew_writer *w, const struct mew_view *view, const struct mew_gate_case *c)
{
	char text[80];

	if (c->noise_floor > 0) {
		(void)snprintf(text, sizeof text, "noise floor %.2f %%", c->noise_floor * 100);
		mew_writef(w, "  %s: %s\n", c->key, text);
	} else if (c->is_uncalibrated && c->reason == NULL) {
		mew_writef(w, "  %s: the calibration does not have it\n", c->key);
	}
	for (size_t k = 0; k < c->nverdicts; k++)
		if (needs_reason(&c->verdicts[k]))
			put_reason(w, view, c, c->verdicts[k].metric->name, c->verdicts[k].why);
	if (c->why[0] != '\0')
		put_reason(w, view, c, NULL, c->why);
}

static void put_context(struct mew_writer *w, const struct mew_gate *g, const struct mew_gate_case *c, size_t k)
{
	char text[MEW_GATE_CONTEXT_BYTES];

	if (mew_gate_context_words(g, c, k, text))
		mew_writef(w, "  %s: %s\n", c->key, text);
}

static void put_sentence(struct mew_writer *w, const struct mew_view *view, const char *text)
{
	if (text == NULL || text[0] == '\0')
		return;
	mew_write_wrapped(w, view, 0, 2, MEW_STYLE_WARN, text);
}

/* The rules behind limits of some cases, with what keeps one from counting. */
static void put_rules(struct mew_writer *w, const struct mew_view *view, const struct mew_gate *g)
{
	for (size_t i = 0; i < g->rules.nallows; i++) {
		const struct mew_allow *a = &g->rules.allows[i];
		char *text;

		if (asprintf(&text, "rule for %s of %s%s%s%s: %s", a->metric, a->cases, a->expires == NULL ? "" :
			     mew_allow_is_live(a, g->rules.today) ? ", until " : ", expired after ",
			     a->expires != NULL ? a->expires : "",
			     mew_gate_has_case_for(g, a) ? "" : ", no case has such a key", a->reason) < 0) {
			mew_write_no_memory(w);
			continue;
		}
		mew_write_wrapped(w, view, 0, 2, MEW_STYLE_PLAIN, text);
		free(text);
	}
}

static void put_headline(struct mew_writer *w, const struct mew_view *view, const struct mew_gate *g)
{
	char text[280], seconds[32] = "";

	if (g->machines == 0) /* joining took none of its own */
		(void)snprintf(seconds, sizeof seconds, ", %.1f s", g->seconds);
	mew_write_text(w, "verdict: ");
	mew_write_styled(w, view, g->outcome == MEW_OUTCOME_PASS ? MEW_STYLE_BOLD : mew_outcome_style(g->outcome),
			 mew_gate_headline(g));
	(void)snprintf(text, sizeof text, "   (%zu case%s, %u %s%s)\n", g->ncases, g->ncases == 1 ? "" : "s",
		       g->processes, mew_gate_pairs(g), seconds);
	mew_write_text(w, text);
	if (g->calibration != NULL) {
		mew_calibration_words(g->calibration, text, sizeof text);
		mew_writef(w, "calibrated: %s\n", text);
	}
	put_sentence(w, view, g->identity);
	put_sentence(w, view, mew_gate_sameness(g));
	if (mew_gate_uncounted_words(g, text, sizeof text))
		put_sentence(w, view, text);
	if (g->out_of_time)
		put_sentence(w, view, "the --budget ended before every case was decided");
}

static int put_table(struct mew_writer *w, const struct mew_view *view, const struct mew_gate *g)
{
	struct mew_grid t;
	int status;

	mew_grid_init(&t);
	mew_grid_column(&t, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&t, "metric", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&t, "verdict", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&t, "change", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&t, "from", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&t, "to", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&t, "n", "", MEW_ALIGN_RIGHT, true);
	mew_grid_column(&t, "base", "", MEW_ALIGN_NUMBER, true);
	mew_grid_column(&t, "head", "", MEW_ALIGN_NUMBER, true);
	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_gate_case *c = &g->cases[i];
		bool first = true;

		for (size_t k = 0; k < c->nverdicts; k++) {
			if (!is_told(g, &c->verdicts[k]))
				continue;
			put_row(&t, c, &c->verdicts[k], first);
			first = false;
		}
	}
	status = mew_grid_write(&t, w, view);
	mew_grid_fini(&t);
	return status;
}

int mew_gate_print(const struct mew_gate *g, struct mew_error *err)
{
	struct mew_view view = {
		.width = (size_t)mew_terminal_width(STDOUT_FILENO),
		.color = mew_terminal_color(g->options->color, STDOUT_FILENO),
		.utf8 = mew_terminal_utf8(),
	};
	struct mew_writer w;
	int status;

	mew_writer_fd(&w, STDOUT_FILENO);
	put_headline(&w, &view, g);
	status = put_table(&w, &view, g);
	for (size_t i = 0; i < g->ncases; i++)
		put_notes(&w, &view, &g->cases[i]);
	for (size_t k = 0; k < g->options->ncontexts; k++)
		for (size_t i = 0; i < g->ncases; i++)
			put_context(&w, g, &g->cases[i], k);
	put_rules(&w, &view, g);
	if (mew_writer_finish(&w) != 0)
		return mew_error_set(err, MEW_E_IO, "standard output: %s", strerror(w.error));
	return status == MEW_OK ? MEW_OK : mew_error_set(err, status, "no memory for the table");
}
