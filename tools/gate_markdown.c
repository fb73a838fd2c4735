/*
 * gate_markdown.c - mew-gate.md: the verdict as a comment on a change, worst first.
 * Layer L6.
 *
 * A comment of a forge holds 65,536 characters. Here bytes are counted, of which there are no fewer: the parts behind
 * the table have bounds of their own, and rows beyond the room that is left are counted instead of shown.
 */
#include "config.h"

#include "gate_explain.h"
#include "gate_files.h"

#include "error.h"
#include "grid.h"
#include "textual.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 65000u
#define MOST_GROWTH 12000u /* of the parts behind the table */
#define MOST_CONTEXTS 4000u
#define MOST_RULES 8000u
#define MOST_FLOORS 3000u
#define MOST_COLUMNS 300u /* of a text that somebody else wrote: keys, names of functions, reasons */

void mew_gate_put_escaped(struct mew_writer *w, const char *text)
{
	char *cut = text != NULL ? mew_text_cut(text, MOST_COLUMNS, true) : NULL;

	if (cut != NULL)
		mew_text_markdown(w, cut);
	else if (text != NULL)
		mew_write_no_memory(w);
	free(cut);
}

bool mew_gate_put_piece(struct mew_writer *w, struct mew_writer *piece, uint64_t most)
{
	bool fits = w->total + piece->total <= most;
	size_t bytes;
	char *text = mew_writer_take(piece, &bytes);

	if (text == NULL)
		mew_write_no_memory(w);
	else if (fits)
		mew_write_bytes(w, text, bytes);
	free(text);
	return text != NULL && fits;
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

/* An exact figure that is the same on both sides is counted, not shown. */
static bool is_equal(const struct mew_verdict *v)
{
	return v->metric->exact && v->outcome == MEW_OUTCOME_PASS && !(v->base < v->head || v->base > v->head);
}

/* The verdicts that were reached, worst first. NULL without memory; the caller frees it. */
static struct place *sorted_rows(const struct mew_gate *g, size_t *n, size_t *equal)
{
	struct place *rows = calloc(g->ncases * MEW_GATE_METRICS + 1, sizeof *rows);

	*n = *equal = 0;
	for (size_t i = 0; rows != NULL && i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++) {
			const struct mew_verdict *v = &g->cases[i].verdicts[k];

			if (is_equal(v))
				++*equal;
			else if (v->outcome != MEW_OUTCOME_ABSENT)
				rows[(*n)++] = (struct place){ &g->cases[i], v };
		}
	if (rows != NULL)
		qsort(rows, *n, sizeof *rows, by_outcome);
	return rows;
}

#define ROOM_FOR_COUNTS 160u

static void put_rows(struct mew_writer *w, const struct place *rows, size_t n, size_t equal, uint64_t most)
{
	size_t shown = 0;

	if (n > 0)
		mew_write_text(w, "| case | metric | verdict | change | interval, or base → head | n | |\n"
				  "|---|---|---|---:|---|---:|---|\n");
	while (shown < n) {
		struct mew_writer row;

		mew_writer_memory(&row);
		put_row(&row, &rows[shown]);
		if (!mew_gate_put_piece(w, &row, most - ROOM_FOR_COUNTS))
			break;
		shown++;
	}
	if (shown < n)
		mew_writef(w, "\n%zu more rows, none of them worse, are in `summary.json`.\n", n - shown);
	if (equal > 0)
		mew_writef(w, "\n%zu exact figures are equal.\n", equal);
}

/* --- what stands behind them ------------------------------------------------------------------------------------ */

static void put_floors(struct mew_writer *w, const struct mew_gate *g)
{
	uint64_t most = w->total + MOST_FLOORS;
	char text[48];

	for (size_t i = 0, n = 0; i < g->ncases; i++) {
		struct mew_writer one;

		if (g->cases[i].noise_floor <= 0)
			continue;
		mew_writer_memory(&one);
		(void)snprintf(text, sizeof text, "%s %.2f %% for ", n++ > 0 ? "," : "; noise floor",
			       g->cases[i].noise_floor * 100);
		mew_write_text(&one, text);
		mew_gate_put_escaped(&one, g->cases[i].key);
		if (!mew_gate_put_piece(w, &one, most)) {
			mew_write_text(w, ", more are in `summary.json`");
			break;
		}
	}
}

static void put_calibration(struct mew_writer *w, const struct mew_gate *g)
{
	char text[160];

	if (g->machines > 0)
		return;
	if (g->calibration == NULL) {
		if (g->options->plan == NULL)
			mew_write_text(w, "- not calibrated: `mew calibrate` measures the noise floor and the rate of "
					  "false alarms here\n");
		return;
	}
	mew_calibration_words(g->calibration, text, sizeof text);
	mew_writef(w, "- calibration: %s", text);
	put_floors(w, g);
	mew_write_char(w, '\n');
}

static void put_facts(struct mew_writer *w, const struct mew_gate *g)
{
	static const char *const names[] = { "cpu_model", "cpu_count", "kernel", "compiler", "libc", "allocator" };

	for (size_t i = 0; i < MEW_COUNTOF(names); i++) {
		const char *base = mew_model_fact(g->models[MEW_BASE], names[i]),
			*head = mew_model_fact(g->models[MEW_HEAD], names[i]);

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
}

/* What a pair was, and how its times were judged. */
static void put_method(struct mew_writer *w, const struct mew_gate *g)
{
	unsigned long long seed = (unsigned long long)g->options->seed;

	if (g->machines > 0)
		mew_writef(w, "- %u pairs on %u machines; resampled by seed %llu\n", g->processes, g->machines, seed);
	else if (g->options->plan != NULL)
		mew_writef(w, "- %u pairs of runs, one after the other, order from seed %llu\n", g->processes, seed);
	else
		mew_writef(w, "- %u pairs of fresh processes, adjacent samples, order from seed %llu\n", g->processes,
			   seed);
	put_calibration(w, g);
	mew_write_text(w, "- data: `summary.json`, `samples.json`, `metrics.otlp.json`, `junit.xml`\n\n");
	if (g->machines > 0)
		mew_write_text(w, "Time: the median ratio of all pairs, resampled by machine and pair; a regression is "
				  "an interval beyond the limit, certain enough for so many cases.");
	else if (g->rules.time_rule == MEW_TIME_BOOTSTRAP)
		mew_write_text(w, "Time: the median change of the pairs; a regression is a 95 % interval of resamples "
				  "beyond the limit. It is not corrected for the number of cases.");
	else
		mew_write_text(w, "Time: a regression is a median ratio of pairs beyond the limit with at most 5 % "
				  "false alarms over all cases, found by two separate sets of pairs.");
	mew_write_text(w, g->options->plan != NULL ?
		       " Counts are exact: one that became worse beyond its limit in any pair fails.\n" :
		       " Allocations, bytes, peak and leak are exact: any rise beyond their limit fails.\n");
}

static void put_environment(struct mew_writer *w, const struct mew_gate *g)
{
	mew_write_text(w, "\n<details><summary>How it was measured</summary>\n\n");
	put_facts(w, g);
	put_method(w, g);
	mew_write_text(w, "</details>\n");
}

static void put_rule(struct mew_writer *w, const struct mew_gate *g, const struct mew_allow *a)
{
	mew_writef(w, "- %s of ", a->metric);
	mew_gate_put_escaped(w, a->cases);
	mew_write_text(w, ": ");
	mew_gate_put_escaped(w, a->reason);
	if (a->expires != NULL)
		mew_writef(w, " (until %s%s)", a->expires,
			   mew_allow_is_live(a, g->rules.today) ? "" : ", expired: not applied");
	if (!mew_gate_has_case_for(g, a))
		mew_write_text(w, " (no case has such a key)");
	mew_write_char(w, '\n');
}

static void put_rules(struct mew_writer *w, const struct mew_gate *g)
{
	uint64_t most = w->total + MOST_RULES;

	if (g->rules.nallows > 0)
		mew_write_text(w, "\nLimits for some cases:\n\n");
	for (size_t i = 0; i < g->rules.nallows; i++) {
		struct mew_writer one;

		mew_writer_memory(&one);
		put_rule(&one, g, &g->rules.allows[i]);
		if (mew_gate_put_piece(w, &one, most))
			continue;
		mew_writef(w, "- %zu more\n", g->rules.nallows - i);
		break;
	}
}

static void put_contexts(struct mew_writer *w, const struct mew_gate *g)
{
	uint64_t most = w->total + MOST_CONTEXTS;
	bool begun = false;
	size_t more = 0;

	for (size_t i = 0; i < g->ncases; i++)
		for (size_t k = 0; k < g->options->ncontexts; k++) {
			char text[MEW_GATE_CONTEXT_BYTES];
			struct mew_writer one;

			if (!mew_gate_context_words(g, &g->cases[i], k, text))
				continue;
			if (more > 0) {
				more++;
				continue;
			}
			mew_writer_memory(&one);
			mew_write_text(&one, begun ? "- " : "\nFor comparison, not judged:\n\n- ");
			mew_gate_put_escaped(&one, g->cases[i].key);
			mew_write_text(&one, ": ");
			mew_gate_put_escaped(&one, text);
			mew_write_char(&one, '\n');
			if (mew_gate_put_piece(w, &one, most))
				begun = true;
			else
				more = 1;
		}
	if (more > 0)
		mew_writef(w, "- %zu more\n", more);
}

/* --- what stands before them ------------------------------------------------------------------------------------ */

static void put_sides(struct mew_writer *w, const struct mew_gate *g)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		mew_writef(w, "%s%s ", side == MEW_BASE ? "" : " → ", mew_side_name(side));
		mew_gate_put_escaped(w, g->options->revisions[side] != NULL ? g->options->revisions[side] :
				     g->options->programs[side]);
	}
	mew_write_text(w, "\n\n");
}

static void put_paragraph(struct mew_writer *w, const char *text)
{
	if (text == NULL || text[0] == '\0')
		return;
	mew_gate_put_escaped(w, text);
	mew_write_text(w, "\n\n");
}

/* The worst row in a sentence: what a reader of the first lines must know. */
static void put_worst(struct mew_writer *w, const struct place *at)
{
	char words[200];

	mew_gate_words(at->v, words, sizeof words);
	mew_writef(w, "**%s of ", at->v->metric->name);
	mew_gate_put_escaped(w, at->c->key);
	mew_write_text(w, ": ");
	mew_gate_put_escaped(w, words);
	mew_write_text(w, "**");
	if (at->v->has_interval) {
		mew_write_text(w, " (");
		put_percent(w, at->v->interval.low);
		mew_write_text(w, " … ");
		put_percent(w, at->v->interval.high);
		mew_writef(w, ") in %zu pairs", at->v->n);
	}
	mew_write_text(w, "\n\n");
}

/* How much was measured, and how far it can be trusted. */
static void put_size(struct mew_writer *w, const struct mew_gate *g)
{
	char text[160], seconds[32] = "";
	size_t skipped = 0;

	for (size_t i = 0; i < g->ncases; i++)
		skipped += g->cases[i].is_skipped;
	if (g->machines == 0)
		(void)snprintf(seconds, sizeof seconds, " in %.1f s", g->seconds);
	mew_writef(w, "%zu case%s, %u %s%s", g->ncases, g->ncases == 1 ? "" : "s", g->processes, mew_gate_pairs(g),
		   seconds);
	if (skipped > 0)
		mew_writef(w, "; %zu skipped on both sides", skipped);
	if (g->calibration != NULL) {
		mew_calibration_words(g->calibration, text, sizeof text);
		mew_writef(w, "; %s", text);
	}
	mew_write_text(w, "\n\n");
}

static void put_head(struct mew_writer *w, const struct mew_gate *g, const struct place *worst)
{
	char text[280];

	mew_writef(w, "<!-- mew-gate -->\n## mew gate: %s\n\n", mew_gate_headline(g));
	if (worst != NULL)
		put_worst(w, worst);
	put_sides(w, g);
	put_size(w, g);
	put_paragraph(w, g->identity);
	put_paragraph(w, mew_gate_sameness(g));
	if (mew_gate_uncounted_words(g, text, sizeof text))
		put_paragraph(w, text);
	if (g->interrupted)
		put_paragraph(w, "It was interrupted: what was measured until then is shown.");
	else if (g->out_of_time)
		put_paragraph(w, "The time that --budget gives ended before every case was decided.");
}

static int write_markdown(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_gate *g = data;
	struct mew_writer tail;
	size_t n, equal;
	struct place *rows = sorted_rows(g, &n, &equal);

	if (rows == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the rows of mew-gate.md");
	mew_writer_memory(&tail);
	mew_gate_put_growth(&tail, g, MOST_GROWTH);
	put_contexts(&tail, g);
	put_rules(&tail, g);
	put_environment(&tail, g);
	put_head(w, g, n > 0 ? &rows[0] : NULL);
	put_rows(w, rows, n, equal, MOST_BYTES - tail.total);
	(void)mew_gate_put_piece(w, &tail, MOST_BYTES);
	free(rows);
	return MEW_OK;
}

int mew_gate_write_markdown(const struct mew_gate *g, struct mew_error *err)
{
	return mew_gate_file(g, "mew-gate.md", write_markdown, err);
}
