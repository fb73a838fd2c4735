/*
 * bmf.c - results in the Bencher Metric Format, for `bencher run --adapter json`.
 * Layer L5. Reads a sealed model.
 *
 * One object: { name of a benchmark: { measure: { value, lower_value, upper_value } } }; the two ends stand where the
 * figure has an interval. A name is the case's key. Bencher's own measures come first:
 *
 *   latency      nanoseconds of an iteration, the median
 *   throughput   items, or else bytes, per second; its interval is that of the latency, turned over
 *
 * then every other number of the catalogue as KIND-FIGURE in base units ("memory-peak-bytes"), and the counters that
 * bodies set as counter-NAME. What is absent, and a row that failed, is left out.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "error.h"
#include "grid.h"
#include "mew/report.h"
#include "model.h"
#include "rows.h"
#include "textual.h"
#include "writer.h"

#define PRETTY 2u /* a measure a line */
#define MEASURE_BYTES 96

/* --- measures --------------------------------------------------------------------------------------------------- */

static const char *measure_of(char *out, enum mew_kind kind, const struct mew_figure *figure)
{
	if (kind == MEW_KIND_TIME && figure->bit == MEW_FIG_MEDIAN_NS)
		return "latency";
	(void)snprintf(out, MEASURE_BYTES, "%s-%s", mew_kind_name(kind), figure->name);
	for (char *p = out; *p != '\0'; p++)
		if (*p == '_')
			*p = '-';
	return out;
}

static void put_throughput(struct mew_json *j, const struct mew_case *c)
{
	const struct mew_row_head *row = mew_rows_of(c, MEW_KIND_TIME);
	const struct mew_result *t = &c->time;
	bool items = mew_row_has(row, MEW_FIG_ITEMS_PER_SECOND);
	double rate = items ? t->items_per_second : t->bytes_per_second;

	if ((!items && !mew_row_has(row, MEW_FIG_BYTES_PER_SECOND)) || !isfinite(rate))
		return;
	mew_json_key(j, "throughput");
	mew_json_object(j);
	mew_json_put_f64(j, "value", rate);
	if (mew_row_has(row, MEW_FIG_MEDIAN_LOW_NS) && mew_row_has(row, MEW_FIG_MEDIAN_HIGH_NS) &&
	    t->median_low_ns > 0 && t->median_high_ns > 0) {
		mew_json_put_f64(j, "lower_value", rate * t->median_ns / t->median_high_ns);
		mew_json_put_f64(j, "upper_value", rate * t->median_ns / t->median_low_ns);
	}
	mew_json_object_end(j);
}

static void put_measure(struct mew_json *j, enum mew_kind kind, const struct mew_row_head *row,
			const struct mew_figure *figure)
{
	char name[MEASURE_BYTES];
	double value, low, high;

	if (!mew_row_number(row, figure, &value) || mew_rows_is_end(kind, figure))
		return;
	mew_json_key(j, measure_of(name, kind, figure));
	mew_json_object(j);
	mew_json_key(j, "value");
	(void)mew_rows_put_number(j, row, figure);
	if (mew_rows_interval(kind, row, figure, &low, &high)) {
		mew_json_put_f64(j, "lower_value", low);
		mew_json_put_f64(j, "upper_value", high);
	}
	mew_json_object_end(j);
}

static void put_kind(struct mew_json *j, enum mew_kind kind, const struct mew_case *c)
{
	const struct mew_row_head *row = mew_rows_of(c, kind);
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);

	if (row == NULL || row->status != MEW_OK)
		return;
	for (size_t i = 0; i < n; i++) {
		put_measure(j, kind, row, &figures[i]);
		if (kind == MEW_KIND_TIME && figures[i].bit == MEW_FIG_MEDIAN_NS)
			put_throughput(j, c);
	}
}

static void put_counters(struct mew_json *j, const struct mew_case *c)
{
	char *name;

	for (size_t i = 0; i < c->ncounters; i++) {
		if (!isfinite(c->counters[i].value))
			continue;
		if (asprintf(&name, "counter-%s", c->counters[i].name) < 0) {
			mew_write_no_memory(j->w);
			return;
		}
		mew_json_key(j, name);
		mew_json_object(j);
		mew_json_put_f64(j, "value", c->counters[i].value);
		mew_json_object_end(j);
		free(name);
	}
}

/* Bencher refuses a benchmark without measures. */
static bool has_any(const struct mew_case *c)
{
	for (int kind = 0; kind < MEW_KINDS; kind++) {
		const struct mew_row_head *row = mew_rows_of(c, (enum mew_kind)kind);

		if (row != NULL && row->status == MEW_OK && row->present != 0)
			return true;
	}
	return c->ncounters > 0;
}

static int write_bmf(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	const struct mew_model *m = in->model;
	struct mew_json j;

	mew_json_init(&j, w, PRETTY);
	mew_json_object(&j);
	for (size_t i = 0; i < m->ncases; i++) {
		char *name;

		if (!has_any(&m->cases[i]))
			continue;
		name = mew_rows_name(&m->cases[i]);
		if (name == NULL)
			return mew_error_set(err, MEW_E_NOMEM, "the bmf report could not be written: out of memory");
		mew_json_key(&j, name);
		free(name);
		mew_json_object(&j);
		for (int kind = 0; kind < MEW_KINDS; kind++)
			put_kind(&j, (enum mew_kind)kind, &m->cases[i]);
		put_counters(&j, &m->cases[i]);
		mew_json_object_end(&j);
	}
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

const struct mew_report mew_report_bmf = {
	.abi = MEW_REPORT_ABI,
	.name = "bmf",
	.help = "Bencher Metric Format",
	.suffix = ".bmf.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_bmf,
};
