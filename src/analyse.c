/*
 * analyse.c - self time per function by the leaf of each sample, the largest one, and its interval.
 * Layer L3. One thread, after symbolising.
 */
#include "config.h"

#include "analyse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "symbolise.h"

#define KIND MEW_KIND_CPU
#define Z95 1.959964
#define NAME_SHOWN 80 /* bytes of a function's name in a remark */

struct self { /* self time of one (function, file) */
	const char *name, *file; /* file "": told apart by module */
	uint32_t module, line;
	uint64_t start; /* of a function without a name; 0 for one with a name, or unknown */
	uint64_t weight_ns;
};

struct tally {
	struct self *all;
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

static struct self self_of(const struct mew_model *m, size_t leaf, uint64_t weight_ns)
{
	struct self s = { .name = "unknown", .file = "", .module = MEW_NO_MODULE, .weight_ns = weight_ns };
	const struct mew_function *f;

	if (leaf == m->nlocations)
		return s;
	s.module = m->locations[leaf].module;
	if (m->locations[leaf].nlines == 0) {
		s.start = m->locations[leaf].start;
		return s;
	}
	f = &m->functions[m->lines[m->locations[leaf].first_line].function];
	return (struct self){ .name = f->name, .file = f->file, .module = f->module, .line = f->line,
			      .weight_ns = weight_ns };
}

static int by_function(const void *a, const void *b)
{
	const struct self *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order == 0)
		order = strcmp(x->file, y->file);
	if (order == 0 && x->file[0] == '\0' && x->module != y->module)
		order = x->module < y->module ? -1 : 1;
	if (order == 0 && x->start != y->start)
		order = x->start < y->start ? -1 : 1;
	return order;
}

static int by_definition(const void *a, const void *b)
{
	const struct self *x = a, *y = b;
	int order = by_function(a, b);

	return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static int by_weight(const void *a, const void *b)
{
	const struct self *x = a, *y = b;

	if (x->weight_ns != y->weight_ns)
		return x->weight_ns > y->weight_ns ? -1 : 1;
	return by_function(a, b);
}

/* Merge what is equal in `order`, which it is sorted by; the heaviest of the equal ones lends its line. */
static void merge(struct tally *t, int (*order)(const void *, const void *))
{
	size_t kept = 0;

	for (size_t i = 0, end; i < t->n; i = end) {
		struct self best = t->all[i];
		uint64_t sum = 0;

		for (end = i; end < t->n && order(&t->all[i], &t->all[end]) == 0; end++) {
			sum += t->all[end].weight_ns;
			if (t->all[end].weight_ns > best.weight_ns)
				best = t->all[end];
		}
		best.weight_ns = sum;
		t->all[kept++] = best;
	}
	t->n = kept;
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
	for (size_t i = 0; i <= m->nlocations; i++)
		if (weights[i] > 0)
			t->all[t->n++] = self_of(m, i, weights[i]);
	free(weights);
	qsort(t->all, t->n, sizeof *t->all, by_definition);
	merge(t, by_definition);
	merge(t, by_function);
	qsort(t->all, t->n, sizeof *t->all, by_weight);
	return true;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

/* "function (file.c:12)", "function (libfoo.so)" or "function". Returns a string to be freed; NULL without memory. */
static char *label_of(const struct mew_model *m, const struct self *s, int longest)
{
	const char *place = s->file[0] != '\0' ? mew_base_name(s->file) : mew_module_name(m, s->module);
	char *text;
	int n;

	if (s->start != 0)
		n = asprintf(&text, "%s+0x%llx", place, (unsigned long long)s->start);
	else if (s->file[0] != '\0' && s->line != 0)
		n = asprintf(&text, "%.*s (%s:%u)", longest, s->name, place, s->line);
	else if (place[0] != '\0')
		n = asprintf(&text, "%.*s (%s)", longest, s->name, place);
	else
		n = asprintf(&text, "%.*s", longest, s->name);
	return n < 0 ? NULL : text;
}

static void share_of(const struct tally *t, const struct self *s, double *share, struct mew_interval *interval)
{
	double total = (double)t->weight_ns, n = total * total / t->squares;

	*share = (double)s->weight_ns / total;
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

static unsigned per_mille(double share)
{
	return (unsigned)(share * 1000.0 + 0.5);
}

static bool remark_close(struct mew_model *m, struct mew_case *c, const struct tally *t, const struct self *next,
			 double share)
{
	unsigned first = per_mille(c->cpu.top_function_share), second = per_mille(share);
	char *top = label_of(m, &t->all[0], NAME_SHOWN), *other = label_of(m, next, NAME_SHOWN), *text = NULL;
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
		       "fewer than %u samples: %llu; raise the inner iterations or shorten the interval",
		       MEW_SAMPLES_ENOUGH, (unsigned long long)t->samples);
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
	char *label = label_of(m, &t->all[0], INT32_MAX);

	if (label == NULL)
		return false;
	share_of(t, &t->all[0], &share, &top);
	mew_model_text(m, c, KIND, MEW_FIG_TOP_FUNCTION, label);
	free(label);
	mew_model_f64(c, KIND, MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, (double)t->all[0].weight_ns / 1e9);
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

static void set_absent(struct mew_model *m, struct mew_case *c, const char *why)
{
	static const int figures[] = { MEW_FIG_TOP_FUNCTION, MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME,
				       MEW_FIG_TOP_FUNCTION_SHARE, MEW_FIG_TOP_FUNCTION_SHARE_LOW,
				       MEW_FIG_TOP_FUNCTION_SHARE_HIGH };

	for (size_t i = 0; i < MEW_COUNTOF(figures); i++)
		mew_model_absent(m, c, KIND, figures[i], why);
}

static bool analyse_case(struct mew_model *m, struct mew_case *c)
{
	struct tally t = { .n = 0 };
	bool is_done = collect(m, c, &t);

	if (is_done) {
		mew_model_u64(c, KIND, MEW_FIG_SAMPLE_COUNT, t.samples);
		mew_model_f64(c, KIND, MEW_FIG_SAMPLE_WEIGHT, (double)t.weight_ns / 1e9);
		mew_model_u64(c, KIND, MEW_FIG_UNRESOLVED, t.unresolved);
		if (t.n > 0)
			is_done = set_top(m, c, &t) && remark_unresolved(m, c, &t);
		else
			set_absent(m, c, "no samples: the loop ended before the first one was due; raise the inner "
					 "iterations or shorten the interval");
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
	return MEW_OK;
}
