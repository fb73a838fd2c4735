/*
 * analyse.c - self time per function by the leaf of each sample, the largest one, and its interval.
 * Layer L3. One thread, after symbolising.
 */
#include "config.h"

#include "analyse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blame.h"
#include "stats.h"

#define KIND MEW_KIND_CPU
#define Z95 1.959964
#define NAME_SHOWN 80 /* bytes of a function's name in a remark */

struct tally {
	struct mew_blame *all; /* self time of each function in sums[0], ns */
	size_t n;
	uint64_t samples, unresolved, weight_ns;
	double squares;  /* sum of squared weights */
	const char *why; /* of the first sample without a name */
};

/* --- collecting -------------------------------------------------------------------------------------------------- */

/* The number of a sample's leaf location; nlocations when unwinding lost it. */
static size_t leaf_of(const struct mew_model *m, const struct mew_cpu_sample *s)
{
	if (s->stack >= m->nstacks || m->stacks[s->stack].depth == 0)
		return m->nlocations;
	return m->frames[m->stacks[s->stack].first];
}

static int by_weight(const void *a, const void *b)
{
	const struct mew_blame *x = a, *y = b;

	if (x->sums[0] != y->sums[0])
		return x->sums[0] > y->sums[0] ? -1 : 1;
	return mew_blame_order(a, b);
}

static void weigh(const struct mew_model *m, const struct mew_case *c, struct tally *t, uint64_t *weights)
{
	for (size_t i = 0; i < c->nsamples; i++) {
		const struct mew_cpu_sample *s = &c->samples[i];
		size_t leaf = leaf_of(m, s);

		weights[leaf] += s->weight_ns;
		t->weight_ns += s->weight_ns;
		t->squares += (double)s->weight_ns * (double)s->weight_ns;
		t->samples++;
		if (leaf == m->nlocations || m->locations[leaf].nlines > 0)
			continue;
		t->unresolved++;
		if (t->why == NULL)
			t->why = m->locations[leaf].why;
	}
}

/* Self times, largest first. Returns false without memory. */
static bool collect(const struct mew_model *m, const struct mew_case *c, struct tally *t)
{
	uint64_t *weights = calloc(m->nlocations + 1, sizeof *weights);

	t->all = calloc(m->nlocations + 1, sizeof *t->all);
	if (weights == NULL || t->all == NULL) {
		free(weights);
		return false;
	}
	weigh(m, c, t, weights);
	for (size_t i = 0; i <= m->nlocations; i++) {
		if (weights[i] == 0)
			continue;
		t->all[t->n] = mew_blame_at(m, i, 0);
		t->all[t->n++].sums[0] = weights[i];
	}
	free(weights);
	t->n = mew_blame_merge(t->all, t->n);
	qsort(t->all, t->n, sizeof *t->all, by_weight);
	return true;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

static void share_of(const struct tally *t, const struct mew_blame *s, double *share, struct mew_interval *interval)
{
	double total = (double)t->weight_ns, n = total * total / t->squares;

	*share = (double)s->sums[0] / total;
	if (!mew_stats_wilson(*share * n, n, Z95, interval))
		*interval = (struct mew_interval){ 0.0, 1.0 };
}

/* Add a sentence to the row's reason, once. Returns false without memory. */
static bool remark(struct mew_model *m, struct mew_case *c, const char *text)
{
	char *joined;

	if (c->cpu.reason == NULL) {
		c->cpu.reason = mew_model_string(m, text);
		return c->cpu.reason != NULL;
	}
	if (strstr(c->cpu.reason, text) != NULL)
		return true;
	if (asprintf(&joined, "%s; %s", c->cpu.reason, text) < 0)
		return false;
	c->cpu.reason = mew_model_string(m, joined);
	free(joined);
	return c->cpu.reason != NULL;
}

/* Names that came later make a remark untrue: take out what lies from the word before `head`'s up to `tail`. */
static bool forget(struct mew_model *m, struct mew_case *c, const char *head, const char *tail)
{
	const char *reason = c->cpu.reason, *from = reason == NULL ? NULL : strstr(reason, head), *to;
	char *text;

	to = from == NULL ? NULL : strstr(from, tail);
	if (to == NULL)
		return true;
	to += strlen(tail);
	while (from > reason && strchr("0123456789 of", from[-1]) != NULL)
		from--; /* "12 of 34" */
	if (from > reason && from[-1] == ';')
		from--;
	else if (strncmp(to, "; ", 2) == 0)
		to += 2;
	if (asprintf(&text, "%.*s%s", (int)(from - reason), reason, to) < 0)
		return false;
	c->cpu.reason = text[0] == '\0' ? NULL : mew_model_string(m, text);
	free(text);
	return true;
}

static unsigned per_mille(double share)
{
	return (unsigned)(share * 1000.0 + 0.5);
}

static bool remark_close(struct mew_model *m, struct mew_case *c, const struct tally *t, const struct mew_blame *next,
			 double share)
{
	unsigned first = per_mille(c->cpu.top_function_share), second = per_mille(share);
	char *top = mew_blame_label(m, &t->all[0], NAME_SHOWN), *other = mew_blame_label(m, next, NAME_SHOWN),
		*text = NULL;
	bool is_done = false;

	if (top != NULL && other != NULL &&
	    asprintf(&text, "too close to call: %s has %u.%u %% of the time and %s has %u.%u %%: take more samples",
		     top, first / 10, first % 10, other, second / 10, second % 10) >= 0) {
		is_done = remark(m, c, text);
		free(text);
	}
	free(top);
	free(other);
	return is_done;
}

static bool remark_few(struct mew_model *m, struct mew_case *c, const struct tally *t)
{
	char text[160];

	if (t->samples >= MEW_SAMPLES_ENOUGH)
		return true;
	(void)snprintf(text, sizeof text,
		       "fewer than %u samples: %llu; %sshorten the interval", MEW_SAMPLES_ENOUGH,
		       (unsigned long long)t->samples,
		       mew_model_fact(m, MEW_FACT_RECORDED) != NULL ? "" : "raise the inner iterations or ");
	return remark(m, c, text);
}

static bool remark_unresolved(struct mew_model *m, struct mew_case *c, const struct tally *t)
{
	char text[512];

	if (t->unresolved == 0 || t->unresolved * 20 < t->samples)
		return true;
	(void)snprintf(text, sizeof text, "%llu of %llu samples have no function name (%s)",
		       (unsigned long long)t->unresolved, (unsigned long long)t->samples,
		       t->why != NULL ? t->why : "names were not looked up");
	return remark(m, c, text);
}

static bool set_top(struct mew_model *m, struct mew_case *c, const struct tally *t)
{
	struct mew_interval top, next;
	double share, next_share;
	char *label = mew_blame_label(m, &t->all[0], INT32_MAX);

	if (label == NULL)
		return false;
	share_of(t, &t->all[0], &share, &top);
	mew_model_text(m, c, KIND, MEW_FIG_TOP_FUNCTION, label);
	free(label);
	mew_model_f64(c, KIND, MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, (double)t->all[0].sums[0] / 1e9);
	mew_model_f64(c, KIND, MEW_FIG_TOP_FUNCTION_SHARE, share);
	mew_model_f64(c, KIND, MEW_FIG_TOP_FUNCTION_SHARE_LOW, top.low);
	mew_model_f64(c, KIND, MEW_FIG_TOP_FUNCTION_SHARE_HIGH, top.high);
	if (!remark_few(m, c, t))
		return false;
	if (t->n < 2)
		return true;
	share_of(t, &t->all[1], &next_share, &next);
	return next.high < top.low || remark_close(m, c, t, &t->all[1], next_share);
}

/* As many as memory figures have; the rest is in the samples. Returns false without memory. */
static bool set_functions(struct mew_model *m, struct mew_case *c, const struct tally *t)
{
	struct mew_cpu_function rows[MEW_MOST_BY_FUNCTION] = { { .function = NULL } };
	char *labels[MEW_MOST_BY_FUNCTION];
	size_t n = t->n < MEW_MOST_BY_FUNCTION ? t->n : MEW_MOST_BY_FUNCTION, made = 0;
	struct mew_interval interval;

	for (; made < n; made++) {
		labels[made] = mew_blame_label(m, &t->all[made], INT32_MAX);
		if (labels[made] == NULL)
			break;
		rows[made] = (struct mew_cpu_function){ .function = labels[made],
							.self_time = (double)t->all[made].sums[0] / 1e9 };
		share_of(t, &t->all[made], &rows[made].share, &interval);
		rows[made].share_low = interval.low;
		rows[made].share_high = interval.high;
	}
	if (made == n)
		mew_model_list(m, c, KIND, MEW_FIG_CPU_BY_FUNCTION, rows, n);
	for (size_t i = 0; i < made; i++)
		free(labels[i]);
	return made == n && mew_row_has(mew_case_row(c, KIND), MEW_FIG_CPU_BY_FUNCTION);
}

static void set_absent(struct mew_model *m, struct mew_case *c, const char *why)
{
	static const int figures[] = { MEW_FIG_TOP_FUNCTION, MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME,
				       MEW_FIG_TOP_FUNCTION_SHARE, MEW_FIG_TOP_FUNCTION_SHARE_LOW,
				       MEW_FIG_TOP_FUNCTION_SHARE_HIGH, MEW_FIG_CPU_BY_FUNCTION };

	for (size_t i = 0; i < MEW_COUNTOF(figures); i++)
		mew_model_absent(m, c, KIND, figures[i], why);
}

static const char no_samples[] = "no samples: the loop ended before the first one was due; raise the inner iterations "
				 "or "
				  "shorten the interval",
		  no_samples_of_program[] = "no samples: the program ended before the first one was due; shorten the "
					    "interval";

static bool analyse_case(struct mew_model *m, struct mew_case *c)
{
	struct tally t = { .n = 0 };
	bool is_done = collect(m, c, &t);

	if (is_done) {
		mew_model_u64(c, KIND, MEW_FIG_SAMPLE_COUNT, t.samples);
		mew_model_f64(c, KIND, MEW_FIG_SAMPLE_WEIGHT, (double)t.weight_ns / 1e9);
		mew_model_u64(c, KIND, MEW_FIG_UNRESOLVED, t.unresolved);
		is_done = forget(m, c, "too close to call: ", ": take more samples") &&
			  forget(m, c, " samples have no function name (", ")");
		if (t.n > 0)
			is_done = is_done && set_top(m, c, &t) && set_functions(m, c, &t) &&
				  remark_unresolved(m, c, &t);
		else
			set_absent(m, c, mew_model_fact(m, MEW_FACT_RECORDED) != NULL ? no_samples_of_program :
				   no_samples);
	}
	free(t.all);
	return is_done;
}

int mew_analyse(struct mew_model *m, struct mew_error *err)
{
	for (size_t i = 0; i < m->ncases; i++) {
		struct mew_case *c = &m->cases[i];

		if ((c->kinds & 1u << KIND) == 0 || c->cpu.status != MEW_OK)
			continue;
		if (!analyse_case(m, c))
			return mew_error_set(err, MEW_E_NOMEM, "no memory to analyse the samples of %s", c->key);
	}
	return mew_analyse_heap(m, err);
}
