/*
 * gate_markdown.c - mew-gate.md: the verdict as a comment on a change, worst first.
 * Layer L6.
 *
 * A comment of a forge holds 65,536 characters: rows beyond the room are counted instead of shown.
 */
#include "config.h"

#include "gate_explain.h"
#include "gate_files.h"

#include "environment.h"
#include "error.h"
#include "textual.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 65000u
#define ROOM_FOR_THE_END 6000u

void mew_gate_put_escaped(struct mew_writer *w, const char *text)
{
	char *clean = text != NULL ? mew_text_clean(text) : NULL;

	for (const char *s = clean != NULL ? clean : ""; *s != '\0'; s++) {
		if (*s == '<')
			mew_write_text(w, "&lt;");
		else if (*s == '&')
			mew_write_text(w, "&amp;");
		else {
			if (strchr("|\\`*_[]~#@", *s) != NULL)
				mew_write_char(w, '\\');
			mew_write_char(w, *s);
		}
	}
	free(clean);
}

static void put_percent(struct mew_writer *w, double ratio)
{
	char text[32];

	if (!isfinite(ratio)) {
		mew_write_text(w, "–");
		return;
	}
	(void)snprintf(text, sizeof text, "%+.2f %%", (ratio - 1) * 100);
	mew_write_text(w, text);
}

static void put_value(struct mew_writer *w, double value)
{
	char text[MEW_NUMBER_BYTES];

	if (!isfinite(value)) {
		mew_write_text(w, "–");
		return;
	}
	mew_text_number(text, value, 4, true);
	mew_write_text(w, text);
}

/* --- the rows --------------------------------------------------------------------------------------------------- */

struct place { /* a verdict and its case, for sorting */
	const struct mew_gate_case *c;
	const struct mew_verdict *v;
};

static int by_outcome(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->v->outcome != y->v->outcome)
		return x->v->outcome > y->v->outcome ? -1 : 1;
	return x->c != y->c ? (x->c > y->c ? 1 : -1) : (x->v > y->v) - (x->v < y->v);
}

static const char *mark_of(enum mew_outcome outcome)
{
	switch (outcome) {
	case MEW_OUTCOME_REGRESSED:
		return "❌ regression";
	case MEW_OUTCOME_INVALID:
		return "❌ invalid";
	case MEW_OUTCOME_INCONCLUSIVE:
		return "❔ inconclusive";
	case MEW_OUTCOME_IMPROVED:
		return "✅ improvement";
	default:
		return "✅ pass";
	}
}

static void put_row(struct mew_writer *w, const struct place *at)
{
	const struct mew_verdict *v = at->v;
	char words[200];

	mew_gate_words(v, words, sizeof words);
	mew_write_text(w, "| ");
	mew_gate_put_escaped(w, at->c->key);
	mew_writef(w, " | %s | %s | ", v->metric->name, mark_of(v->outcome));
	put_percent(w, v->ratio);
	mew_write_text(w, " | ");
	if (v->has_interval) {
		put_percent(w, v->interval.low);
		mew_write_text(w, " … ");
		put_percent(w, v->interval.high);
	} else if (v->metric->exact) {
		put_value(w, v->base);
		mew_write_text(w, " → ");
		put_value(w, v->head);
	}
	mew_write_text(w, " | ");
	if (!v->metric->exact)
		mew_write_u64(w, v->n);
	mew_write_text(w, " | ");
	mew_gate_put_escaped(w, words);
	if (v == mew_gate_time(at->c) && at->c->why[0] != '\0') {
		mew_write_text(w, "; ");
		mew_gate_put_escaped(w, at->c->why);
	}
	mew_write_text(w, " |\n");
}

static void put_rows(struct mew_writer *w, const struct mew_gate *g, struct place *rows, size_t n)
{
	size_t shown = 0;

	mew_write_text(w, "| case | metric | verdict | change | interval, or base → head | n | |\n"
			  "|---|---|---|---:|---|---:|---|\n");
	while (shown < n && w->total < MOST_BYTES - ROOM_FOR_THE_END)
		put_row(w, &rows[shown++]);
	if (shown < n)
		mew_writef(w, "\n%zu more rows, none of them worse, are in `summary.json`.\n", n - shown);
	(void)g;
}

/* --- what stands around them ------------------------------------------------------------------------------------ */

static void put_calibration(struct mew_writer *w, const struct mew_gate *g)
{
	char text[160];

	if (g->calibration == NULL) {
		mew_write_text(w, "- not calibrated: `mew calibrate` measures the noise floor and the rate of false alarms here\n");
		return;
	}
	mew_calibration_words(g->calibration, text, sizeof text);
	mew_writef(w, "- calibration: %s; noise floor", text);
	for (size_t i = 0, n = 0; i < g->ncases && n < 20; i++) {
		if (g->cases[i].noise_floor <= 0)
			continue;
		(void)snprintf(text, sizeof text, "%s %.2f %% for ", n++ > 0 ? "," : "", g->cases[i].noise_floor * 100);
		mew_write_text(w, text);
		mew_gate_put_escaped(w, g->cases[i].key);
	}
	mew_write_char(w, '\n');
}

static void put_environment(struct mew_writer *w, const struct mew_gate *g)
{
	static const char *const names[] = { "cpu_model", "cpu_count", "kernel", "compiler", "libc", "allocator" };

	mew_write_text(w, "\n<details><summary>How it was measured</summary>\n\n");
	for (size_t i = 0; i < MEW_COUNTOF(names); i++) {
		const char *base = mew_model_fact(g->models[MEW_BASE], names[i]), *head = mew_model_fact(g->models[MEW_HEAD], names[i]);

		if (base == NULL && head == NULL)
			continue;
		mew_writef(w, "- %s: ", names[i]);
		mew_gate_put_escaped(w, head != NULL ? head : "unknown");
		if (base == NULL || head == NULL || strcmp(base, head) != 0) {
			mew_write_text(w, " (base: ");
			mew_gate_put_escaped(w, base != NULL ? base : "unknown");
			mew_write_text(w, ")");
		}
		mew_write_char(w, '\n');
	}
	mew_writef(w, "- %u pairs of fresh processes, adjacent samples, order from seed %llu\n", g->processes,
		   (unsigned long long)g->options->seed);
	put_calibration(w, g);
	mew_write_text(w, "- data: `summary.json`, `samples.json`, `metrics.otlp.json`, `junit.xml`\n\n"
			  "Time: a regression is a median ratio of pairs beyond the limit with at most 5 % false alarms over all cases, found "
			  "by two separate sets of processes. Allocations, bytes, peak and leak are exact: any rise beyond their limit fails.\n"
			  "</details>\n");
}

static void put_allowed(struct mew_writer *w, const struct mew_gate *g)
{
	bool any = false;

	for (size_t i = 0; i < g->rules.nallows; i++) {
		const struct mew_allow *a = &g->rules.allows[i];

		mew_write_text(w, any ? "" : "\nLimits for some cases:\n\n");
		any = true;
		mew_writef(w, "- %s of `%s`: ", a->metric, a->cases);
		mew_gate_put_escaped(w, a->reason);
		if (a->expires != NULL)
			mew_writef(w, " (until %s%s)", a->expires, mew_allow_is_live(a, g->rules.today) ? "" : ", expired: not applied");
		mew_write_char(w, '\n');
	}
}

static void put_headline(struct mew_writer *w, const struct mew_gate *g)
{
	mew_writef(w, "<!-- mew-gate -->\n## mew gate: %s\n\n", mew_gate_headline(g));
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		mew_writef(w, "%s%s ", side == MEW_BASE ? "" : " → ", mew_side_name(side));
		mew_gate_put_escaped(w, g->options->revisions[side] != NULL ? g->options->revisions[side] : g->options->programs[side]);
	}
	mew_write_text(w, "\n\n");
	if (g->identity[0] != '\0') {
		mew_gate_put_escaped(w, g->identity);
		mew_write_text(w, "\n\n");
	}
	if (g->interrupted)
		mew_write_text(w, "It was interrupted: what was measured until then is shown.\n\n");
	else if (g->out_of_time)
		mew_writef(w, "The time that `--budget` gives ended before every case was decided.\n\n");
}

static int write_markdown(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_gate *g = data;
	struct place *rows = calloc(g->ncases * MEW_GATE_METRICS + 1, sizeof *rows);
	size_t n = 0;

	if (rows == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the rows of mew-gate.md");
	for (size_t i = 0; i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++)
			if (g->cases[i].verdicts[k].outcome != MEW_OUTCOME_ABSENT)
				rows[n++] = (struct place){ &g->cases[i], &g->cases[i].verdicts[k] };
	qsort(rows, n, sizeof *rows, by_outcome);
	put_headline(w, g);
	put_rows(w, g, rows, n);
	mew_gate_put_growth(w, g);
	put_allowed(w, g);
	put_environment(w, g);
	free(rows);
	return MEW_OK;
}

int mew_gate_write_markdown(const struct mew_gate *g, struct mew_error *err)
{
	return mew_gate_file(g, "mew-gate.md", write_markdown, err);
}
