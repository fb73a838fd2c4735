/*
 * compare.c - find the cases that belong together, judge each metric, and name what else differs between two files.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "symbolise.h"
#include "textual.h"

/* --- which cases belong together -------------------------------------------------------------------------------- */

static const char *text_of(const char *text)
{
	return text != NULL ? text : "";
}

/*
 * The case of `in` with the same key and allocator that no other has taken: of several the one whose program has the
 * same name, since two builds of a program lie in different folders. Returns its number, or in->ncases.
 */
static size_t partner(const struct mew_case *c, const struct mew_model *in, const bool *taken)
{
	size_t found = in->ncases;

	for (size_t i = 0; i < in->ncases; i++) {
		if (taken[i] || strcmp(in->cases[i].key, c->key) != 0 ||
		    strcmp(text_of(in->cases[i].allocator), text_of(c->allocator)) != 0)
			continue;
		if (strcmp(mew_base_name(text_of(in->cases[i].program)), mew_base_name(text_of(c->program))) == 0)
			return i;
		if (found == in->ncases)
			found = i;
	}
	return found;
}

static bool is_selected(const struct mew_select *select, const struct mew_case *c)
{
	return mew_select_matches(select, c->key, c->label, c->tags);
}

static int match(const struct mew_select *select, struct mew_comparison *out)
{
	bool *taken = calloc(out->head->ncases + 1, sizeof *taken);

	out->cases = calloc(out->base->ncases + 1, sizeof *out->cases);
	out->missing = calloc(out->base->ncases + 1, sizeof *out->missing);
	out->added = calloc(out->head->ncases + 1, sizeof *out->added);
	if (taken == NULL || out->cases == NULL || out->missing == NULL || out->added == NULL) {
		free(taken);
		return MEW_E_NOMEM;
	}
	for (size_t i = 0; i < out->base->ncases; i++) {
		const struct mew_case *c = &out->base->cases[i];
		size_t other = partner(c, out->head, taken);

		if (other < out->head->ncases)
			taken[other] = true;
		if (!is_selected(select, c))
			continue;
		if (other < out->head->ncases)
			out->cases[out->ncases++] =
				(struct mew_compare_case){ .base = c, .head = &out->head->cases[other] };
		else
			out->missing[out->nmissing++] = c;
	}
	for (size_t i = 0; i < out->head->ncases; i++)
		if (!taken[i] && is_selected(select, &out->head->cases[i]))
			out->added[out->nadded++] = &out->head->cases[i];
	free(taken);
	return MEW_OK;
}

/* --- verdicts --------------------------------------------------------------------------------------------------- */

/* Why the two are not the same work; NULL when nothing says so. */
static const char *other_work(const struct mew_case *a, const struct mew_case *b)
{
	if ((a->label == NULL) != (b->label == NULL) || (a->label != NULL && strcmp(a->label, b->label) != 0))
		return "its label differs: not the same work";
	if (a->threads != b->threads)
		return "its number of threads differs";
	if (a->bytes_per_iteration != b->bytes_per_iteration || a->items_per_iteration != b->items_per_iteration)
		return "its body declares another amount of work";
	return NULL;
}

enum row_state { ROW_NONE, ROW_FINE, ROW_SKIPPED, ROW_FAILED };

static enum row_state state_of(const struct mew_case *c, enum mew_kind kind, const struct mew_row_head *row)
{
	if (!mew_case_has(c, kind))
		return ROW_NONE;
	if (row->status == MEW_OK)
		return ROW_FINE;
	return row->status == MEW_E_UNSUPPORTED && row->reason != NULL && strncmp(row->reason, "skipped: ", 9) == 0
		       ? ROW_SKIPPED
		       : ROW_FAILED;
}

/* What makes a comparison of this kind void; NULL: nothing. *absent is returned: there is nothing to compare. */
static const char *obstacle(const struct mew_compare_case *c, enum mew_kind kind, const struct mew_row_head *rows[2],
			    bool *absent)
{
	enum row_state base = state_of(c->base, kind, rows[0]), head = state_of(c->head, kind, rows[1]);

	*absent = (base == ROW_NONE && head == ROW_NONE) || (base == ROW_SKIPPED && head == ROW_SKIPPED);
	if (*absent)
		return NULL;
	if (head == ROW_FAILED)
		return "it failed in the head";
	if (base == ROW_FAILED)
		return "it failed in the base";
	if (head != ROW_FINE)
		return "measured in the base alone";
	if (base != ROW_FINE)
		return "measured in the head alone";
	if (kind == MEW_KIND_MEMORY && c->base->memory.iterations != c->head->memory.iterations)
		return "other numbers of iterations were counted: give both the same --memory=N";
	if (kind == MEW_KIND_TIME && strcmp(text_of(rows[0]->profiler), text_of(rows[1]->profiler)) != 0)
		return "timed in another way: loops, single calls and Google Benchmark's own do not compare";
	return other_work(c->base, c->head);
}

static double number_of(const struct mew_row_head *row, const struct mew_metric *metric)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(metric->kind, &n);
	double value;

	for (size_t i = 0; i < n; i++)
		if (figures[i].bit == metric->bit && mew_row_number(row, &figures[i], &value))
			return value;
	return (double)NAN;
}

static int judge_pair(const struct mew_rules *rules, bool other_machine, struct mew_compare_case *c,
		      const struct mew_metric *metric, size_t i, struct mew_error *err)
{
	/* a model hands out rows of its cases only where these may change */
	const struct mew_row_head *rows[2] = {
		metric->kind == MEW_KIND_TIME ? (const void *)&c->base->time : (const void *)&c->base->memory,
		metric->kind == MEW_KIND_TIME ? (const void *)&c->head->time : (const void *)&c->head->memory,
	};
	bool absent;
	const char *why = obstacle(c, metric->kind, rows, &absent);

	if (absent) {
		mew_verdict_exact(rules, c->base->key, metric, (double)NAN, (double)NAN, &c->verdicts[i]);
		return MEW_OK;
	}
	if (why != NULL) {
		mew_verdict_invalid(metric, why, &c->verdicts[i]);
		return MEW_OK;
	}
	if (!metric->exact)
		return mew_compare_time(rules, other_machine, c, err);
	mew_verdict_exact(rules, c->base->key, metric, number_of(rows[0], metric), number_of(rows[1], metric),
			  &c->verdicts[i]);
	return MEW_OK;
}

static int judge_metric(const struct mew_rules *rules, bool other_machine, struct mew_compare_case *c, size_t i,
			struct mew_error *err)
{
	size_t count;
	const struct mew_metric *metric = &mew_metrics(&count)[i];

	if (c->base == NULL || c->head == NULL) /* pairs have both */
		return MEW_OK;
	return judge_pair(rules, other_machine, c, metric, i, err);
}

static int settle(const struct mew_rules *rules, struct mew_comparison *out, struct mew_error *err)
{
	size_t n = out->ncases * MEW_COMPARE_METRICS;
	struct mew_verdict **all = calloc(n + 1, sizeof(struct mew_verdict *));
	int status;

	if (all == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu verdicts", n);
	for (size_t i = 0; i < n; i++)
		all[i] = &out->cases[i / MEW_COMPARE_METRICS].verdicts[i % MEW_COMPARE_METRICS];
	status = mew_verdicts_settle(rules, all, n, err);
	out->outcome = mew_verdicts_worst(all, n);
	out->exit_code = mew_verdicts_exit(rules, all, n);
	free(all);
	if (out->nmissing > 0 || out->nadded > 0 || out->outcome == MEW_OUTCOME_ABSENT) {
		out->outcome = MEW_OUTCOME_INVALID;
		out->exit_code = 4;
	}
	return status;
}

static void take_mean(struct mew_comparison *out)
{
	double sum = 0;

	for (size_t i = 0; i < out->ncases; i++) {
		const struct mew_verdict *v = &out->cases[i].verdicts[0];

		if (isfinite(v->ratio) && v->ratio > 0) {
			sum += log(v->ratio);
			out->nratios++;
		}
	}
	out->mean_ratio = out->nratios > 0 ? exp(sum / (double)out->nratios) : (double)NAN;
}

/* --- what else differs ------------------------------------------------------------------------------------------ */

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

static void note_fact(struct mew_comparison *out, const char *name, const char *base, const char *head)
{
	static const char *const changing[] = { "date", "load_1min", NULL };
	static const char *const machine[] = { "cpu_model", "cpu_count", "virtual_machine", "machine", "kernel", NULL };

	if (is_one_of(name, changing) || (base != NULL && head != NULL && strcmp(base, head) == 0))
		return;
	out->differences[out->ndifferences] =
		(struct mew_fact_difference){ name, base, head, is_one_of(name, machine) };
	out->other_machine |= out->differences[out->ndifferences++].machine;
}

static int find_differences(struct mew_comparison *out)
{
	out->differences = calloc(out->base->nfacts + out->head->nfacts + 1, sizeof *out->differences);
	if (out->differences == NULL)
		return MEW_E_NOMEM;
	for (size_t i = 0; i < out->base->nfacts; i++)
		note_fact(out, out->base->facts[i].name, out->base->facts[i].value,
			  mew_model_fact(out->head, out->base->facts[i].name));
	for (size_t i = 0; i < out->head->nfacts; i++)
		if (mew_model_fact(out->base, out->head->facts[i].name) == NULL)
			note_fact(out, out->head->facts[i].name, NULL, out->head->facts[i].value);
	return MEW_OK;
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

int mew_compare(const struct mew_rules *rules, const struct mew_select *select, struct mew_comparison *out,
		struct mew_error *err)
{
	int status = match(select, out);

	if (status == MEW_OK)
		status = find_differences(out);
	for (size_t i = 0; status == MEW_OK && i < out->ncases; i++) {
		out->cases[i].title = mew_case_title(out->base, out->cases[i].base);
		if (out->cases[i].title == NULL)
			status = MEW_E_NOMEM;
	}
	if (status != MEW_OK)
		return mew_error_set(err, status, "no memory to compare %.80s", out->head_name);
	for (size_t i = 0; status == MEW_OK && i < out->ncases; i++)
		for (size_t k = 0; status == MEW_OK && k < MEW_COMPARE_METRICS; k++)
			status = judge_metric(rules, out->other_machine, &out->cases[i], k, err);
	if (status == MEW_OK)
		status = settle(rules, out, err);
	take_mean(out);
	return status;
}

void mew_compare_free(struct mew_comparison *c)
{
	for (size_t i = 0; i < c->ncases; i++)
		free(c->cases[i].title);
	free(c->cases);
	free(c->missing);
	free(c->added);
	free(c->differences);
}

const char *mew_compare_gate_word(const struct mew_comparison *c)
{
	return mew_outcome_name(c->outcome == MEW_OUTCOME_IMPROVED ? MEW_OUTCOME_PASS : c->outcome);
}

const char *mew_compare_misfit(const struct mew_comparison *c)
{
	if (c->ncases == 0)
		return ": no case is in both files";
	if (c->nmissing > 0)
		return c->nadded > 0 ? ": cases are missing from the head, and it has others" :
		       ": cases are missing from the head";
	return c->nadded > 0 ? ": the head has cases that the base lacks" : "";
}

bool mew_compare_has_case_for(const struct mew_comparison *c, const struct mew_allow *allow)
{
	for (size_t i = 0; i < c->ncases; i++)
		if (mew_allow_matches(allow, c->cases[i].base->key))
			return true;
	return false;
}

/* A pass says that the head is not slower than the margin; whether it is also not faster, the interval tells. */
static bool is_near(const struct mew_verdict *v)
{
	return v->has_interval && v->interval.low >= 1 / (1 + v->limit.percent / 100);
}

void mew_compare_word(const struct mew_verdict *v, char *out)
{
	static const char *const of_time[] = { "not measured", "", "faster", "not resolved", "slower", "invalid" };
	static const char *const of_counts[] = { "not measured", "", "less", "not resolved", "more", "invalid" };
	char margin[MEW_NUMBER_BYTES];
	const char *word = v->metric->exact ? of_counts[v->outcome] : of_time[v->outcome];

	if (v->outcome == MEW_OUTCOME_PASS && !v->metric->exact) {
		mew_text_number(margin, v->limit.percent, 3, true);
		(void)snprintf(out, MEW_COMPARE_WORD_BYTES, is_near(v) ? "within %s %%" : "at most %s %% slower",
			       margin);
		return;
	}
	if (v->outcome == MEW_OUTCOME_PASS)
		word = v->base == v->head ? "equal" : "more, allowed";
	else if (v->outcome == MEW_OUTCOME_REGRESSED && v->metric->exact && v->head < v->base)
		word = "less, not allowed";
	(void)snprintf(out, MEW_COMPARE_WORD_BYTES, "%s", word);
}
