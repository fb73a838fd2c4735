/*
 * table_tops.c - the functions behind the figures of a case: which take its time, which allocate.
 * Layer L5. Reads a sealed model.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "model.h"
#include "table_rows.h"
#include "textual.h"

#define TOPS 3u
#define DIGITS 4u
#define BAR_COLUMNS 10u
#define EIGHTHS 8u
#define PERCENT 100.0

/* A column is full, or shows how many eighths of it are; what is not zero shows at least one. */
static void draw_bar(char *out, double share, bool utf8)
{
	double full = share < 0 ? 0 : share > 1 ? 1 : share;
	unsigned eighths = (unsigned)lround(full * BAR_COLUMNS * EIGHTHS);

	if (eighths == 0 && full > 0)
		eighths = 1;
	if (!utf8) {
		size_t n = (eighths + EIGHTHS / 2) / EIGHTHS;

		memset(out, '#', n);
		out[n] = '\0';
		return;
	}
	for (; eighths >= EIGHTHS; eighths -= EIGHTHS)
		out = stpcpy(out, "\xe2\x96\x88"); /* U+2588, the full block; the others follow it */
	if (eighths > 0)
		(void)sprintf(out, "\xe2\x96%c", (char)(0x90 - eighths));
	else
		*out = '\0';
}

/* Is there a row to be shown, and has it this figure? */
static const struct mew_row_head *row_with(const struct mew_case *c, enum mew_kind kind, int bit)
{
	const struct mew_row_head *row = mew_rows_of(c, kind);

	return row != NULL && mew_row_has(row, bit) ? row : NULL;
}

/* Only the first row of a case says which one it is. */
static void begin_row(const struct mew_table *t, struct mew_grid *g, const struct mew_case *c, bool first)
{
	char *title = first ? mew_case_title(t->model, c) : NULL;

	mew_grid_row(g);
	if (first && title == NULL)
		g->failed = true;
	else
		mew_grid_cell(g, MEW_STYLE_PLAIN, first ? title : "");
	free(title);
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static void put_share(struct mew_grid *g, double share)
{
	char text[MEW_NUMBER_BYTES] = "<0.1";
	double percent = round(share * PERCENT * 10) / 10;

	if (percent > 0 || share <= 0)
		mew_text_number(text, percent, percent >= 100 ? 4 : percent >= 10 ? 3 : percent >= 1 ? 2 : 1, false);
	mew_grid_cell(g, MEW_STYLE_PLAIN, text);
}

static void fill_times(const struct mew_table *t, struct mew_grid *g, bool bars)
{
	char bar[BAR_COLUMNS * 3 + 4];

	mew_grid_column(g, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(g, "self", "%", MEW_ALIGN_NUMBER, false);
	if (bars)
		mew_grid_column(g, "", "", MEW_ALIGN_TEXT, true);
	mew_grid_column(g, "function", "", MEW_ALIGN_TEXT, false);
	for (size_t i = 0; i < t->model->ncases; i++) {
		const struct mew_case *c = &t->model->cases[i];

		if (row_with(c, MEW_KIND_CPU, MEW_FIG_CPU_BY_FUNCTION) == NULL)
			continue;
		for (size_t k = 0; k < TOPS && k < c->cpu.nby_function; k++) {
			begin_row(t, g, c, k == 0);
			put_share(g, c->cpu.by_function[k].share);
			draw_bar(bar, c->cpu.by_function[k].share, t->view.utf8);
			if (bars)
				mew_grid_cell(g, MEW_STYLE_PLAIN, bar);
			mew_grid_cell(g, MEW_STYLE_PLAIN, c->cpu.by_function[k].function);
		}
	}
}

/* --- allocations ------------------------------------------------------------------------------------------------ */

/* The unit of one column over the rows that are shown. */
static const struct mew_unit *bytes_unit(const struct mew_table *t, bool peak)
{
	double *values = calloc(t->model->ncases * TOPS + 1, sizeof *values);
	const struct mew_unit *unit;
	size_t n = 0;

	for (size_t i = 0; values != NULL && i < t->model->ncases; i++) {
		const struct mew_memory_case *memory = &t->model->cases[i].memory;

		if (row_with(&t->model->cases[i], MEW_KIND_MEMORY, MEW_FIG_BY_FUNCTION) == NULL)
			continue;
		for (size_t k = 0; k < TOPS && k < memory->nby_function; k++)
			values[n++] = (double)(peak ? memory->by_function[k].peak_bytes :
						      memory->by_function[k].cumulative_bytes);
	}
	unit = mew_unit_pick(MEW_SCALE_BYTES, values, n);
	free(values);
	return unit;
}

static void put_bytes(struct mew_grid *g, uint64_t bytes, const struct mew_unit *unit)
{
	char text[MEW_NUMBER_BYTES];

	mew_text_number(text, (double)bytes / unit->factor, DIGITS, unit->factor == 1);
	mew_grid_cell(g, MEW_STYLE_PLAIN, text);
}

static void fill_allocations(const struct mew_table *t, struct mew_grid *g)
{
	const struct mew_unit *peak = bytes_unit(t, true), *all = bytes_unit(t, false);
	char text[MEW_NUMBER_BYTES];

	mew_grid_column(g, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(g, "at peak", t->view.utf8 ? peak->name : peak->ascii, MEW_ALIGN_NUMBER, false);
	mew_grid_column(g, "in all", t->view.utf8 ? all->name : all->ascii, MEW_ALIGN_NUMBER, true);
	mew_grid_column(g, "allocs", "", MEW_ALIGN_NUMBER, false);
	mew_grid_column(g, "function", "", MEW_ALIGN_TEXT, false);
	for (size_t i = 0; i < t->model->ncases; i++) {
		const struct mew_case *c = &t->model->cases[i];

		if (row_with(c, MEW_KIND_MEMORY, MEW_FIG_BY_FUNCTION) == NULL)
			continue;
		for (size_t k = 0; k < TOPS && k < c->memory.nby_function; k++) {
			const struct mew_memory_function *f = &c->memory.by_function[k];

			begin_row(t, g, c, k == 0);
			put_bytes(g, f->peak_bytes, peak);
			put_bytes(g, f->cumulative_bytes, all);
			mew_text_number(text, (double)f->allocations, DIGITS, true);
			mew_grid_cell(g, MEW_STYLE_PLAIN, text);
			mew_grid_cell(g, MEW_STYLE_PLAIN, f->function);
		}
	}
}

const char *mew_table_fill_tops(const struct mew_table *t, struct mew_grid *grid, bool bars)
{
	if (t->kind == MEW_KIND_CPU)
		fill_times(t, grid, bars);
	else if (t->kind == MEW_KIND_MEMORY)
		fill_allocations(t, grid);
	return t->kind == MEW_KIND_CPU ? "cpu: functions by the time in themselves" : "memory: functions that allocate";
}
