/*
 * table_allocators.c - the cases side by side under each allocator: time, what was asked for, what that took.
 * Layer L5. Reads a sealed model.
 *
 * "fastest" stands where the exact sign interval of the log ratios to every other allocator, each of two processes that
 * ran next to each other, lies below zero at 95 % for all pairs of allocators together (Bonferroni): the one with the
 * best median was chosen by looking, so every pair is a comparison. Processes are the observations, since samples of
 * one process share its layout. Memory figures have no interval and no mark.
 */
#include "config.h"

#include "table_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "textual.h"

#define DIGITS 4u
#define ALPHA 0.05
#define PROCESSES_MAX 256u

static bool figure(const struct mew_case *c, enum mew_kind kind, int bit, double *value)
{
	const struct mew_row_head *row = mew_rows_of(c, kind);
	const struct mew_figure *figures;
	size_t n;

	figures = mew_figures(kind, &n);
	for (size_t i = 0; i < n && row != NULL; i++)
		if (figures[i].bit == bit)
			return mew_row_number(row, &figures[i], value);
	return false;
}

/* --- the fastest -------------------------------------------------------------------------------------------------- */

/* The median time of an iteration in one process; NAN for none. */
static double of_process(const struct mew_case *c, unsigned process)
{
	double *values, median;
	size_t n = 0;

	for (size_t i = 0; i < c->nruns; i++)
		n += c->runs[i].nsamples;
	values = malloc((n + 1) * sizeof *values);
	if (values == NULL)
		return NAN;
	n = 0;
	for (size_t i = 0; i < c->nruns; i++)
		for (size_t k = 0; k < c->runs[i].nsamples; k++)
			if (c->runs[i].phase == MEW_PHASE_MEASUREMENT_VALUE && c->runs[i].process == process)
				values[n++] = (double)c->runs[i].real_ns[k] / (double)c->runs[i].loops;
	mew_stats_sort(values, n);
	median = n > 0 ? mew_stats_median_sorted(values, n) : NAN;
	free(values);
	return median;
}

static bool is_surely_faster(const struct mew_case *c, const struct mew_case *than, size_t comparisons)
{
	double ratios[PROCESSES_MAX];
	struct mew_interval interval;
	size_t n = 0;

	for (unsigned process = 0; process < PROCESSES_MAX; process++) {
		double ratio = log(of_process(c, process) / of_process(than, process));

		if (isnan(ratio))
			break;
		ratios[n++] = ratio;
	}
	mew_stats_sort(ratios, n);
	return mew_stats_median_interval_sorted(ratios, n, 1 - ALPHA / (double)comparisons, &interval) &&
	       interval.high < 0;
}

static bool is_same_work(const struct mew_case *a, const struct mew_case *b)
{
	return strcmp(a->key, b->key) == 0 && (a->program == b->program || (a->program != NULL && b->program != NULL &&
									     strcmp(a->program, b->program) == 0));
}

static bool is_fastest(const struct mew_model *m, const struct mew_case *c)
{
	size_t n = 0;
	double median;

	for (size_t i = 0; i < m->ncases; i++)
		n += is_same_work(&m->cases[i], c) && figure(&m->cases[i], MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, &median);
	for (size_t i = 0; i < m->ncases && n > 1; i++)
		if (&m->cases[i] != c && is_same_work(&m->cases[i], c) &&
		    figure(&m->cases[i], MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, &median) &&
		    !is_surely_faster(c, &m->cases[i], n * (n - 1) / 2))
			return false;
	return n > 1 && figure(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, &median);
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

static const struct mew_unit *unit_of(const struct mew_table *t, enum mew_scale scale, enum mew_kind kind, int bit)
{
	double *values = malloc((t->model->ncases + 1) * sizeof *values);
	const struct mew_unit *unit;
	size_t n = 0;

	if (values == NULL)
		mew_write_no_memory(t->w);
	for (size_t i = 0; values != NULL && i < t->model->ncases; i++)
		n += figure(&t->model->cases[i], kind, bit, &values[n]);
	unit = mew_unit_pick(scale, values, n);
	free(values);
	return unit;
}

static void put_number(struct mew_grid *g, bool has, double value, double factor, bool percent)
{
	char text[MEW_NUMBER_BYTES];

	if (has && percent)
		mew_text_number(text, round(value * 10) / 10, fabs(value) >= 100 ? 4 : fabs(value) >= 10 ? 3 : 2,
				false);
	else if (has)
		mew_text_number(text, value / factor, DIGITS, factor == 1);
	mew_grid_cell(g, MEW_STYLE_PLAIN, has ? text : "-");
}

static void put_time(struct mew_grid *g, const struct mew_case *c, const struct mew_unit *unit)
{
	double median = 0, low = 0, high = 0;
	bool has = figure(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, &median);
	bool between = has && median > 0 && figure(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_LOW_NS, &low) &&
		       figure(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_HIGH_NS, &high);

	put_number(g, has, median, unit->factor, false);
	put_number(g, between, between ? (high - low) / 2 / median * 100 : 0, 1, true);
}

static void put_memory(struct mew_grid *g, const struct mew_case *c, const struct mew_unit *unit)
{
	double asked = 0, usable = 0, resident = 0;
	bool has = figure(c, MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES, &asked);
	bool has_usable = figure(c, MEW_KIND_MEMORY, MEW_FIG_PEAK_USABLE_BYTES, &usable);
	bool has_resident = figure(c, MEW_KIND_MEMORY, MEW_FIG_RSS_PEAK_DELTA_BYTES, &resident);

	put_number(g, has, asked, unit->factor, false);
	put_number(g, has_usable, usable, unit->factor, false);
	put_number(g, has_resident, resident, unit->factor, false);
	put_number(g, has && has_usable && usable > 0, usable > 0 ? (usable - asked) / usable * 100 : 0, 1, true);
	put_number(g, has_usable && has_resident && resident >= usable && resident > 0,
		   resident > 0 ? (resident - usable) / resident * 100 : 0, 1, true);
}

static bool has_failed(const struct mew_row_head *row)
{
	return row != NULL && (row->status != MEW_OK || row->present == 0);
}

static void put_row(const struct mew_table *t, struct mew_grid *g, const struct mew_case *c,
		    const struct mew_unit *time, const struct mew_unit *bytes)
{
	const struct mew_row_head *row = mew_rows_of(c, MEW_KIND_TIME);
	char *title = mew_case_title(t->model, c);

	mew_grid_row(g);
	mew_grid_cell(g, MEW_STYLE_PLAIN, title != NULL ? title : c->key);
	free(title);
	if (has_failed(row)) {
		mew_grid_sentence(g, MEW_STYLE_BAD, row->reason != NULL ? row->reason : mew_status_name(row->status));
		return;
	}
	put_time(g, c, time);
	put_memory(g, c, bytes);
	mew_grid_cell(g, MEW_STYLE_GOOD, is_fastest(t->model, c) ? "fastest" : "");
}

int mew_table_write_allocators(const struct mew_table *t)
{
	const struct mew_unit *time = unit_of(t, MEW_SCALE_TIME, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS);
	const struct mew_unit *bytes = unit_of(t, MEW_SCALE_BYTES, MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES);
	const char *byte_name = t->view.utf8 ? bytes->name : bytes->ascii;
	struct mew_grid g;
	int status;

	mew_grid_init(&g);
	mew_grid_column(&g, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&g, "median", t->view.utf8 ? time->name : time->ascii, MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, t->view.utf8 ? "\xc2\xb1" : "+/-", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "asked for", byte_name, MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "usable", byte_name, MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "resident", byte_name, MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "slack", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "fragm.", "%", MEW_ALIGN_NUMBER, false);
	mew_grid_column(&g, "", "", MEW_ALIGN_TEXT, false);
	for (size_t i = 0; i < t->model->ncases; i++)
		put_row(t, &g, &t->model->cases[i], time, bytes);
	mew_write_styled(t->w, &t->view, MEW_STYLE_BOLD, "allocators: one iteration, and the memory at its highest");
	mew_write_char(t->w, '\n');
	status = g.failed ? MEW_E_NOMEM : mew_grid_write(&g, t->w, &t->view);
	mew_grid_fini(&g);
	mew_write_wrapped(t->w, &t->view, 0, 2, MEW_STYLE_DIM,
			  "  slack: part of the usable bytes that nobody asked for; fragm.: part of the resident "
			  "growth that no block can use; fastest: than each other one, at 95 % for all together, by "
			  "processes");
	return status;
}
