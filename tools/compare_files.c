/*
 * compare_files.c - a comparison as Markdown for a merge request and as CSV for a spreadsheet.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "textual.h"

#define DIGITS 4u

/* The k-th verdict of a comparison, and its case. */
static const struct mew_verdict *verdict_at(const struct mew_comparison *c, size_t k,
					    const struct mew_compare_case **of)
{
	*of = &c->cases[k / MEW_COMPARE_METRICS];
	return &(*of)->verdicts[k % MEW_COMPARE_METRICS];
}

/* --- Markdown ---------------------------------------------------------------------------------------------------
 *
 * GitHub's dialect. For each head a heading that names both files, the geometric mean, a table with a line for each
 * case and metric that was compared (equal exact figures only counted), then lists of missing and new cases and of
 * facts that differ. With --gate the verdict stands first and the allow rules last. The first line is a comment by
 * which a bot finds its own text again. Times are nanoseconds, sizes bytes, ratios head / base.
 */

static void put_number(struct mew_writer *w, double value)
{
	char text[MEW_NUMBER_BYTES];

	if (!isfinite(value))
		return;
	mew_text_number(text, value, DIGITS, true);
	mew_write_text(w, text);
}

static void put_ratio(struct mew_writer *w, const struct mew_verdict *v)
{
	char text[MEW_NUMBER_BYTES];

	if (isinf(v->ratio))
		mew_write_text(w, "from 0");
	if (!isfinite(v->ratio))
		return;
	mew_text_number(text, v->ratio, DIGITS, false);
	mew_write_text(w, text);
	if (!v->has_interval)
		return;
	mew_text_number(text, v->interval.low, DIGITS, false);
	mew_writef(w, " (%s..", text);
	mew_text_number(text, v->interval.high, DIGITS, false);
	mew_writef(w, "%s)", text);
}

static void markdown_row(struct mew_writer *w, const struct mew_compare_case *c, const struct mew_verdict *v)
{
	char word[MEW_COMPARE_WORD_BYTES];
	bool is_bad = v->outcome == MEW_OUTCOME_REGRESSED || v->outcome == MEW_OUTCOME_INVALID;

	mew_compare_word(v, word);
	mew_write_text(w, "| ");
	mew_text_markdown(w, c->title);
	mew_writef(w, " | %s | ", v->metric->name);
	put_number(w, v->base);
	mew_write_text(w, " | ");
	put_number(w, v->head);
	mew_write_text(w, " | ");
	put_ratio(w, v);
	mew_write_text(w, " | ");
	if (!v->metric->exact)
		mew_write_u64(w, v->n);
	mew_writef(w, " | %s%s%s", is_bad ? "**" : "", word, is_bad ? "**" : "");
	if (v->why != NULL) {
		mew_write_text(w, ": ");
		mew_text_markdown(w, v->why);
	}
	if (v->allow != NULL) {
		mew_write_text(w, "; rule: ");
		mew_text_markdown(w, v->allow->reason);
	}
	mew_write_text(w, " |\n");
}

static void markdown_table(struct mew_writer *w, const struct mew_compare_set *set, const struct mew_comparison *c)
{
	size_t equal = 0;

	mew_write_text(w, "| case | metric | base | head | ratio | pairs | verdict |\n|---|---|--:|--:|--:|--:|---|\n");
	for (size_t k = 0; k < c->ncases * MEW_COMPARE_METRICS; k++) {
		const struct mew_compare_case *of;
		const struct mew_verdict *v = verdict_at(c, k, &of);
		bool is_equal = v->metric->exact && v->outcome == MEW_OUTCOME_PASS && v->base == v->head;

		equal += is_equal;
		if (v->outcome != MEW_OUTCOME_ABSENT && (!is_equal || set->verbose))
			markdown_row(w, of, v);
	}
	mew_write_char(w, '\n');
	if (equal > 0)
		mew_writef(w, "%zu exact figures are equal.\n\n", equal);
}

static void markdown_cases(struct mew_writer *w, const char *what, const struct mew_case *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mew_writef(w, "- %s: ", what);
		mew_text_markdown(w, list[i]->key);
		mew_write_char(w, '\n');
	}
}

static void markdown_facts(struct mew_writer *w, const struct mew_comparison *c)
{
	for (size_t i = 0; i < c->ndifferences; i++) {
		const struct mew_fact_difference *d = &c->differences[i];

		mew_write_text(w, "- differs: ");
		mew_text_markdown(w, d->name);
		mew_write_text(w, ": ");
		mew_text_markdown(w, d->base == NULL ? "not said" : d->base);
		mew_write_text(w, ", now ");
		mew_text_markdown(w, d->head == NULL ? "not said" : d->head);
		mew_write_char(w, '\n');
	}
	if (c->other_machine)
		mew_write_text(w, "\nAnother machine measured the base: its timings are context, not evidence.\n");
}

/* Does any of the comparisons have a case for the rule? */
static bool has_case_for(const struct mew_compare_set *set, const struct mew_allow *a)
{
	for (size_t i = 0; i < set->n; i++)
		if (mew_compare_has_case_for(&set->list[i], a))
			return true;
	return false;
}

static void markdown_rules(struct mew_writer *w, const struct mew_compare_set *set)
{
	const struct mew_rules *rules = set->rules;

	for (size_t i = 0; i < rules->nallows; i++) {
		const struct mew_allow *a = &rules->allows[i];

		mew_write_text(w, "- rule for ");
		mew_text_markdown(w, a->cases);
		mew_writef(w, ", %s", a->metric);
		if (a->expires != NULL)
			mew_writef(w, ", %s %s", mew_allow_is_live(a, rules->today) ? "until" : "expired after",
				   a->expires);
		mew_write_text(w, has_case_for(set, a) ? ": " : ", no case has such a key: ");
		mew_text_markdown(w, a->reason);
		mew_write_char(w, '\n');
	}
}

static void markdown_comparison(struct mew_writer *w, const struct mew_compare_set *set, const struct mew_comparison *c)
{
	mew_write_text(w, "### ");
	mew_text_markdown(w, c->base_name);
	mew_write_text(w, " and ");
	mew_text_markdown(w, c->head_name);
	mew_write_text(w, "\n\n");
	if (set->gated)
		mew_writef(w, "**%s**%s\n\n", mew_compare_gate_word(c), mew_compare_misfit(c));
	if (c->nratios > 0) {
		mew_writef(w, "Geometric mean of the ratios of time of %zu cases: ", c->nratios);
		put_number(w, c->mean_ratio);
		mew_write_text(w, "\n\n");
	}
	markdown_table(w, set, c);
	markdown_cases(w, "missing from the head", c->missing, c->nmissing);
	markdown_cases(w, "new in the head", c->added, c->nadded);
	markdown_facts(w, c);
	mew_write_char(w, '\n');
}

int mew_compare_markdown(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_compare_set *set = data;

	(void)err;
	mew_write_text(w, "<!-- mew-compare -->\n");
	for (size_t i = 0; i < set->n; i++)
		markdown_comparison(w, set, &set->list[i]);
	markdown_rules(w, set);
	return MEW_OK;
}

/* --- CSV --------------------------------------------------------------------------------------------------------
 *
 * RFC 4180 with LF line ends, UTF-8, a head line, a '.' as decimal point. A line for each head, case and metric that
 * either side has: base_file, head_file, key, label, metric (the figure's name in mew(3)), base, head (base units),
 * ratio, ratio_low, ratio_high, range (decides, rough or empty), pairs, least_pairs, p_worse, p_better, verdict
 * (mew_outcome_name), reason, rule_reason. Then a line for each case that one side lacks, with "missing" or "new" as
 * verdict. What does not exist is an empty field.
 */

static void csv_number(struct mew_writer *w, bool exists, double value)
{
	mew_write_char(w, ',');
	if (exists && isfinite(value))
		mew_write_f64(w, value + 0.0); /* no -0 */
}

static void csv_begin(struct mew_writer *w, const struct mew_comparison *c, const struct mew_case *of,
		      const char *metric)
{
	const char *const fields[] = { c->base_name, c->head_name, of->key, of->label, metric };

	for (size_t i = 0; i < MEW_COUNTOF(fields); i++) {
		if (i > 0)
			mew_write_char(w, ',');
		mew_text_csv(w, "", fields[i]);
	}
}

static void csv_row(struct mew_writer *w, const struct mew_comparison *c, const struct mew_compare_case *of,
		    const struct mew_verdict *v)
{
	bool is_tested = !v->metric->exact && v->n > 0;

	csv_begin(w, c, of->base, v->metric->figure);
	csv_number(w, true, v->base);
	csv_number(w, true, v->head);
	csv_number(w, true, v->ratio);
	csv_number(w, v->has_interval, v->interval.low);
	csv_number(w, v->has_interval, v->interval.high);
	mew_writef(w, ",%s", !v->has_interval ? "" : of->is_rough ? "rough" : "decides");
	csv_number(w, is_tested, (double)v->n);
	csv_number(w, is_tested, (double)v->least);
	csv_number(w, is_tested, v->p_worse);
	csv_number(w, is_tested, v->p_better);
	mew_writef(w, ",%s,", mew_outcome_name(v->outcome));
	mew_text_csv(w, "", v->why);
	mew_write_char(w, ',');
	mew_text_csv(w, "", v->allow != NULL ? v->allow->reason : NULL);
	mew_write_char(w, '\n');
}

static void csv_lacking(struct mew_writer *w, const struct mew_comparison *c, const struct mew_case *const *list,
			size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++) {
		csv_begin(w, c, list[i], NULL);
		mew_writef(w, ",,,,,,,,,,,%s,,\n", word);
	}
}

int mew_compare_csv(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_compare_set *set = data;

	(void)err;
	mew_write_text(w, "base_file,head_file,key,label,metric,base,head,ratio,ratio_low,ratio_high,range,pairs,least_pairs,"
			  "p_worse,p_better,verdict,reason,rule_reason\n");
	for (size_t i = 0; i < set->n; i++) {
		const struct mew_comparison *c = &set->list[i];

		for (size_t k = 0; k < c->ncases * MEW_COMPARE_METRICS; k++) {
			const struct mew_compare_case *of;
			const struct mew_verdict *v = verdict_at(c, k, &of);

			if (v->outcome != MEW_OUTCOME_ABSENT)
				csv_row(w, c, of, v);
		}
		csv_lacking(w, c, c->missing, c->nmissing, "missing");
		csv_lacking(w, c, c->added, c->nadded, "new");
	}
	return MEW_OK;
}
