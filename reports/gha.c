/*
 * gha.c - results for github-action-benchmark, tool customSmallerIsBetter.
 * Layer L5. Reads a sealed model.
 *
 * A list of { name: "KEY: KIND FIGURE", unit, value, range, extra }, one for each figure of which less is better: time,
 * memory an iteration, peaks. The action alarms on any entry that grows, so figures that describe the measurement, and
 * those of which more is better, are not here. `range` is half of the interval, where the figure has one; `extra` tells
 * what the case is called, and how the time was measured. What is absent, below zero or of a failed row is left out.
 */
#include "config.h"

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

#define PRETTY 1u /* an entry a line */
#define DIGITS 4u

static const char *unit_of(const struct mew_figure *figure)
{
	if (strcmp(figure->unit, "By") == 0)
		return "bytes";
	return strcmp(figure->unit, "1") == 0 ? "count" : figure->unit;
}

static void put_range(struct mew_json *j, enum mew_kind kind, const struct mew_row_head *row,
		      const struct mew_figure *figure)
{
	char text[MEW_NUMBER_BYTES + 4] = "\xc2\xb1 "; /* plus or minus */
	double low, high;

	if (!mew_rows_interval(kind, row, figure, &low, &high))
		return;
	mew_text_number(text + strlen(text), (high - low) / 2, DIGITS, true);
	mew_json_put_text(j, "range", text);
}

/* "zlib/inflate [64k]\n120 samples of 64 iterations"; taken by the caller, NULL without memory. */
static char *extra_of(const struct mew_model *m, const struct mew_case *c)
{
	char *title = mew_case_title(m, c), *extra = NULL;
	const struct mew_row_head *row = mew_rows_of(c, MEW_KIND_TIME);

	if (title == NULL || row == NULL || !mew_row_has(row, MEW_FIG_SAMPLES) || !mew_row_has(row, MEW_FIG_LOOPS))
		return title;
	if (asprintf(&extra, "%s\n%llu samples of %llu iterations", title, (unsigned long long)c->time.samples,
		     (unsigned long long)c->time.loops) < 0)
		extra = NULL;
	free(title);
	return extra;
}

static void put_entry(struct mew_json *j, const char *case_name, const char *extra, enum mew_kind kind,
		      const struct mew_row_head *row, const struct mew_figure *figure)
{
	double value;
	char *name;

	if (mew_rows_better(kind, figure) != MEW_BETTER_LOWER || !mew_row_number(row, figure, &value) || value < 0)
		return;
	if (asprintf(&name, "%s: %s %s", case_name, mew_kind_name(kind), figure->name) < 0) {
		mew_write_no_memory(j->w);
		return;
	}
	mew_json_object(j);
	mew_json_put_text(j, "name", name);
	mew_json_put_text(j, "unit", unit_of(figure));
	mew_json_key(j, "value");
	(void)mew_rows_put_number(j, row, figure);
	put_range(j, kind, row, figure);
	mew_json_put_text(j, "extra", extra);
	mew_json_object_end(j);
	free(name);
}

static int put_case(struct mew_json *j, const struct mew_model *m, const struct mew_case *c)
{
	char *name = mew_rows_name(c), *extra = extra_of(m, c);
	int status = name == NULL || extra == NULL ? MEW_E_NOMEM : MEW_OK;

	for (int kind = 0; kind < MEW_KINDS && status == MEW_OK; kind++) {
		const struct mew_row_head *row = mew_rows_of(c, (enum mew_kind)kind);
		size_t n;
		const struct mew_figure *figures = mew_figures((enum mew_kind)kind, &n);

		for (size_t i = 0; row != NULL && i < n; i++)
			put_entry(j, name, extra, (enum mew_kind)kind, row, &figures[i]);
	}
	free(extra);
	free(name);
	return status;
}

static int write_gha(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct mew_json j;

	mew_json_init(&j, w, PRETTY);
	mew_json_array(&j);
	for (size_t i = 0; i < in->model->ncases; i++)
		if (put_case(&j, in->model, &in->model->cases[i]) != MEW_OK)
			return mew_error_set(err, MEW_E_NOMEM, "the gha report could not be written: out of memory");
	mew_json_array_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

const struct mew_report mew_report_gha = {
	.abi = MEW_REPORT_ABI,
	.name = "gha",
	.help = "github-action-benchmark, customSmallerIsBetter",
	.suffix = ".gha.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_gha,
};
