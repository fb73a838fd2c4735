/*
 * table_figures.c - every figure of a kind, unrounded, for -v: numbers and texts a line each, lists as small tables.
 * Layer L5. Reads a sealed model; follows the catalogue of figures.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "model.h"
#include "table_rows.h"
#include "textual.h"
#include "writer.h"

#define FIGURE_INDENT 35u /* where the values stand */
#define NOTE_INDENT 4u
#define LIST_INDENT 6u
#define LIST_KEPT 2u /* columns of a list that stay however narrow it is */
#define TITLE_BYTES 32
#define DIGITS 6u

void mew_table_note(const struct mew_table *t, const struct mew_case *c, enum mew_style style, const char *text)
{
	char *title = mew_case_title(t->model, c), *note = NULL;

	if (title != NULL && asprintf(&note, "  %s: %s", title, text) >= 0) {
		mew_write_wrapped(t->w, &t->view, 0, NOTE_INDENT, style, note);
		free(note);
	} else {
		mew_write_no_memory(t->w);
	}
	free(title);
}

static void put_line(const struct mew_table *t, const char *name, enum mew_style style, const char *text)
{
	mew_writef(t->w, "    %-29s  ", name);
	mew_write_wrapped(t->w, &t->view, FIGURE_INDENT, FIGURE_INDENT, style, text);
}

/* --- lists ------------------------------------------------------------------------------------------------------ */

/* 1,234,567 */
static void group_digits(char *out, uint64_t value)
{
	char digits[24];
	size_t n = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[i];
		if ((n - i) % 3 == 1 && i + 1 < n)
			*out++ = ',';
	}
	*out = '\0';
}

/* The text of a list's cell: its own, or the number in `out`. */
static const char *cell_of(const char *row, const struct mew_figure *column, char *out)
{
	const void *at = row + column->offset;

	if (column->type == MEW_VALUE_TEXT)
		return *(const char *const *)at;
	if (column->type == MEW_VALUE_U64)
		group_digits(out, *(const uint64_t *)at);
	else
		mew_text_number(out, *(const double *)at, DIGITS, true);
	return out;
}

/* Rows with both ends of a class of values show them as one: "64-127". */
static bool is_of_classes(const struct mew_list_type *list)
{
	return list->ncolumns > 2 && strcmp(list->columns[0].name, "low") == 0 &&
	       strcmp(list->columns[1].name, "high") == 0;
}

static void put_class(struct mew_grid *g, const char *row, const struct mew_list_type *list)
{
	char low[MEW_NUMBER_BYTES], high[MEW_NUMBER_BYTES], both[2 * MEW_NUMBER_BYTES];

	(void)cell_of(row, &list->columns[0], low);
	(void)cell_of(row, &list->columns[1], high);
	if (strcmp(low, high) == 0)
		(void)strcpy(both, low);
	else
		(void)snprintf(both, sizeof both, "%s-%s", low, high);
	mew_grid_cell(g, MEW_STYLE_PLAIN, both);
}

/* "peak" over "B" for peak_bytes. */
static void add_column(struct mew_grid *g, size_t k, const struct mew_figure *column, char *title)
{
	bool of_bytes = strcmp(column->unit, "By") == 0;
	size_t n = strlen(column->name), end = strlen("_bytes");

	if (of_bytes && n > end && strcmp(column->name + n - end, "_bytes") == 0)
		n -= end;
	(void)snprintf(title, TITLE_BYTES, "%.*s", (int)n, column->name);
	mew_grid_column(g, title, of_bytes ? "B" : "",
			column->type == MEW_VALUE_TEXT ? MEW_ALIGN_TEXT : MEW_ALIGN_RIGHT, k >= LIST_KEPT);
}

static void put_list(const struct mew_table *t, const struct mew_row_head *row, const struct mew_figure *figure)
{
	const struct mew_list_type *list = figure->list;
	char titles[MEW_GRID_COLUMNS][TITLE_BYTES], text[MEW_NUMBER_BYTES];
	size_t first = is_of_classes(list) ? 2 : 0, n;
	const char *at = mew_row_list(row, figure, &n);
	struct mew_grid grid;

	put_line(t, figure->name, MEW_STYLE_DIM, n == 0 ? "none" : figure->help);
	if (n == 0)
		return;
	mew_grid_init(&grid);
	grid.indent = LIST_INDENT;
	if (first > 0)
		mew_grid_column(&grid, "size", strcmp(list->columns[0].unit, "By") == 0 ? "B" : "", MEW_ALIGN_RIGHT,
				false);
	for (size_t k = first; k < list->ncolumns; k++)
		add_column(&grid, k - first, &list->columns[k], titles[k]);
	for (size_t i = 0; i < n; i++, at += list->row_bytes) {
		mew_grid_row(&grid);
		if (first > 0)
			put_class(&grid, at, list);
		for (size_t k = first; k < list->ncolumns; k++)
			mew_grid_cell(&grid, MEW_STYLE_PLAIN, cell_of(at, &list->columns[k], text));
	}
	if (mew_grid_write(&grid, t->w, &t->view) != MEW_OK)
		mew_write_no_memory(t->w);
	mew_grid_fini(&grid);
}

/* --- numbers and texts ------------------------------------------------------------------------------------------ */

static void put_number(struct mew_writer *w, const struct mew_row_head *row, const struct mew_figure *figure)
{
	const void *at = (const char *)row + figure->offset;

	if (figure->type == MEW_VALUE_U64)
		mew_write_u64(w, *(const uint64_t *)at);
	else
		mew_write_f64(w, *(const double *)at);
	if (strncmp(figure->unit, "By", 2) == 0) /* UCUM's byte */
		mew_writef(w, " B%s", figure->unit + 2);
	else if (strcmp(figure->unit, "1") != 0)
		mew_writef(w, " %s", figure->unit);
	mew_write_char(w, '\n');
}

static void put_figure(const struct mew_table *t, const struct mew_row_head *row, const struct mew_figure *figure)
{
	const char *why = mew_row_why(row, figure->bit);
	const char *const *text = (const void *)((const char *)row + figure->offset);
	double value;

	if (why != NULL && figure->special)
		return;
	if (why != NULL) {
		mew_writef(t->w, "    %-29s  -  ", figure->name);
		mew_write_wrapped(t->w, &t->view, FIGURE_INDENT + 3, FIGURE_INDENT + 3, MEW_STYLE_DIM, why);
	} else if (figure->type == MEW_VALUE_LIST) {
		put_list(t, row, figure);
	} else if (figure->type == MEW_VALUE_TEXT) {
		put_line(t, figure->name, MEW_STYLE_PLAIN, *text == NULL ? "-" : *text);
	} else if (mew_row_number(row, figure, &value)) {
		mew_writef(t->w, "    %-29s  ", figure->name);
		put_number(t->w, row, figure);
	}
}

/* A body that allocates and shows nothing is a surprise, and the compiler is mostly its cause. */
static void put_why_none(const struct mew_table *t, const struct mew_row_head *row, int bit)
{
	const struct mew_memory_case *memory = (const void *)row;
	const char *optimized = mew_model_fact(t->model, "optimized");

	if (t->kind != MEW_KIND_MEMORY || bit != MEW_FIG_TOTAL_ALLOCATIONS || !mew_row_has(row, bit) ||
	    memory->total_allocations != 0 || (optimized != NULL && strcmp(optimized, "no") == 0))
		return;
	mew_writef(t->w, "    %-29s  ", "");
	mew_write_wrapped(t->w, &t->view, FIGURE_INDENT, FIGURE_INDENT, MEW_STYLE_DIM,
			  "if the body calls malloc: an optimising compiler removes pairs of malloc and free whose "
			  "block is not used; mew_keep(pointer) keeps them");
}

static void put_case(const struct mew_table *t, const struct mew_case *c, const struct mew_row_head *row)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(t->kind, &n);
	char what[64];

	mew_write_char(t->w, '\n');
	(void)snprintf(what, sizeof what, "all figures of %s", mew_kind_name(t->kind));
	mew_table_note(t, c, MEW_STYLE_BOLD, what);
	put_line(t, "key", MEW_STYLE_PLAIN, c->key);
	if (row->profiler != NULL)
		put_line(t, "profiler", MEW_STYLE_PLAIN, row->profiler);
	for (size_t i = 0; i < n; i++) {
		put_figure(t, row, &figures[i]);
		put_why_none(t, row, figures[i].bit);
	}
}

void mew_table_write_figures(const struct mew_table *t)
{
	for (size_t i = 0; i < t->model->ncases; i++) {
		const struct mew_row_head *row = mew_rows_of(&t->model->cases[i], t->kind);

		if (row != NULL && row->status == MEW_OK)
			put_case(t, &t->model->cases[i], row);
	}
}
