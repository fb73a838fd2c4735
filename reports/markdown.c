/*
 * markdown.c - the tables for people in GitHub's Markdown, for a pull request or a job's summary.
 * Layer L5. Reads a sealed model; cells, units and legends are those of the terminal (table_rows.c).
 *
 * A heading and a table for each kind, units in the head, numbers to the right; a failed case is a row with its reason.
 * Nothing that a program's names contain is taken for Markdown, HTML or a mention: names stand in code spans, or, where
 * a span cannot hold them, in <code> with character references; sentences are escaped. Long names lose their middle.
 * The first line is a comment by which a bot finds its own text again.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "grid.h"
#include "mew/report.h"
#include "model.h"
#include "table_rows.h"
#include "textual.h"
#include "writer.h"

#define LONGEST_NAME 120u
#define LONGEST_SENTENCE 400u
#define MARKER "<!-- mew:report -->\n"

/* --- escapes ---------------------------------------------------------------------------------------------------- */

static void put_reference(struct mew_writer *w, char c)
{
	mew_writef(w, "&#%d;", c);
}

/* Backslashes, pipes and backticks mean something to a span in a table, and blanks at both ends are lost. */
static bool fits_span(const char *text)
{
	return strpbrk(text, "`\\|") == NULL && *text != ' ' && text[strlen(text) - 1] != ' ';
}

static void put_code(struct mew_writer *w, const char *text)
{
	if (*text == '\0')
		return;
	if (fits_span(text)) {
		mew_writef(w, "`%s`", text);
		return;
	}
	mew_write_text(w, "<code>");
	for (; *text != '\0'; text++) {
		if (strchr("<>&|`\\*_[]~#!$@ ", *text) != NULL)
			put_reference(w, *text);
		else
			mew_write_char(w, *text);
	}
	mew_write_text(w, "</code>");
}

static void put_cut(struct mew_writer *w, const char *text, size_t columns,
		    void (*put)(struct mew_writer *, const char *))
{
	char *clean = mew_text_clean(text);
	char *cut = clean == NULL ? NULL : mew_text_cut(clean, columns, true);

	if (cut == NULL)
		mew_write_no_memory(w);
	else
		put(w, cut);
	free(cut);
	free(clean);
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static void put_head(struct mew_writer *w, const struct mew_grid *g)
{
	for (size_t k = 0; k < g->ncolumns; k++) {
		mew_write_text(w, k == 0 ? "| " : " | ");
		mew_text_markdown(w, g->columns[k].title);
		if (g->columns[k].unit[0] != '\0') {
			mew_write_text(w, " (");
			mew_text_markdown(w, g->columns[k].unit);
			mew_write_char(w, ')');
		}
	}
	mew_write_text(w, " |\n|");
	for (size_t k = 0; k < g->ncolumns; k++)
		mew_write_text(w, g->columns[k].align == MEW_ALIGN_TEXT ? " :--- |" : " ---: |");
	mew_write_char(w, '\n');
}

static void put_cell(struct mew_writer *w, const struct mew_grid *g, size_t row, size_t column)
{
	const char *text = mew_grid_text(g, row, column);

	if (text == NULL)
		return;
	if (g->columns[column].align == MEW_ALIGN_TEXT && strcmp(text, "-") != 0)
		put_cut(w, text, LONGEST_NAME, put_code);
	else
		mew_text_markdown(w, text);
}

/* A reason stands in the last column where that is for text, for it has the room; else in the first free one. */
static void put_row(struct mew_writer *w, const struct mew_grid *g, size_t row)
{
	const char *sentence = mew_grid_sentence_of(g, row);
	size_t last = g->ncolumns - 1, place = g->columns[last].align == MEW_ALIGN_TEXT ? last : 1;

	for (size_t k = 0; k < g->ncolumns; k++) {
		mew_write_text(w, k == 0 ? "| " : " | ");
		if (sentence != NULL && k == place)
			put_cut(w, sentence, LONGEST_SENTENCE, mew_text_markdown);
		else
			put_cell(w, g, row, k);
	}
	mew_write_text(w, " |\n");
}

static int put_grid(struct mew_writer *w, const struct mew_grid *g)
{
	if (g->failed)
		return MEW_E_NOMEM;
	put_head(w, g);
	for (size_t i = 0; i < g->nrows; i++)
		put_row(w, g, i);
	return MEW_OK;
}

static void put_legend(const struct mew_table *t, const struct mew_table_layout *layout, const struct mew_grid *g)
{
	char *legend = mew_table_legend(t, layout, g);

	if (legend == NULL) {
		mew_write_no_memory(t->w);
	} else if (*legend != '\0') {
		mew_write_char(t->w, '\n');
		mew_text_markdown(t->w, legend);
		mew_write_char(t->w, '\n');
	}
	free(legend);
	if (t->marked) {
		mew_write_char(t->w, '\n');
		mew_text_markdown(t->w, mew_table_mark);
		mew_write_char(t->w, '\n');
	}
}

static int put_tops(const struct mew_table *t)
{
	struct mew_grid grid;
	const char *title;
	int status;

	mew_grid_init(&grid);
	title = mew_table_fill_tops(t, &grid, false);
	if (grid.nrows > 0)
		mew_writef(t->w, "\n### %s\n\n", title);
	status = grid.nrows > 0 || grid.failed ? put_grid(t->w, &grid) : MEW_OK;
	mew_grid_fini(&grid);
	return status;
}

/* What was remarked of a case whose figures stand in the table. */
static void put_notes(const struct mew_table *t)
{
	size_t shown = 0;

	for (size_t i = 0; i < t->model->ncases; i++) {
		const struct mew_case *c = &t->model->cases[i];
		const struct mew_row_head *row = mew_rows_of(c, t->kind);
		char *title;

		if (row == NULL || row->status != MEW_OK || row->present == 0 || row->reason == NULL)
			continue;
		title = mew_case_title(t->model, c);
		mew_write_text(t->w, shown++ == 0 ? "\n- " : "- ");
		put_cut(t->w, title == NULL ? c->key : title, LONGEST_NAME, put_code);
		mew_write_text(t->w, ": ");
		put_cut(t->w, row->reason, LONGEST_SENTENCE, mew_text_markdown);
		mew_write_char(t->w, '\n');
		free(title);
	}
}

static bool any_row(const struct mew_table *t)
{
	for (size_t i = 0; i < t->model->ncases; i++)
		if (mew_rows_of(&t->model->cases[i], t->kind) != NULL)
			return true;
	return false;
}

static int put_kind(struct mew_table *t)
{
	struct mew_table_layout layout;
	struct mew_grid grid;
	int status;

	mew_grid_init(&grid);
	mew_writef(t->w, "\n### %s\n\n", mew_table_fill(t, &layout, &grid));
	status = put_grid(t->w, &grid);
	if (status == MEW_OK)
		put_legend(t, &layout, &grid);
	put_notes(t);
	mew_grid_fini(&grid);
	return status == MEW_OK ? put_tops(t) : status;
}

/* --- the report ------------------------------------------------------------------------------------------------- */

static int put_counters(struct mew_writer *w, const struct mew_model *m)
{
	struct mew_grid grid;
	int status;

	mew_grid_init(&grid);
	mew_table_fill_counters(m, &grid);
	if (grid.nrows > 0)
		mew_write_text(w, "\n### counters of the bodies\n\n");
	status = grid.nrows > 0 || grid.failed ? put_grid(w, &grid) : MEW_OK;
	mew_grid_fini(&grid);
	return status;
}

static void put_machine(struct mew_writer *w, const struct mew_model *m)
{
	char *line = mew_table_machine(m);

	if (line == NULL) {
		mew_write_no_memory(w);
	} else if (*line != '\0') {
		mew_write_char(w, '\n');
		put_cut(w, line, LONGEST_SENTENCE, mew_text_markdown);
		mew_write_char(w, '\n');
	}
	free(line);
	if (m->grade == 0)
		return;
	mew_writef(w, "\ngrade %c", m->grade);
	if (m->grade_reason != NULL && *m->grade_reason != '\0') {
		mew_write_text(w, ": ");
		put_cut(w, m->grade_reason, LONGEST_SENTENCE, mew_text_markdown);
	}
	mew_write_char(w, '\n');
}

static int write_markdown(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct mew_table t = { .model = in->model, .w = w, .view = { .utf8 = true } };
	int status = MEW_OK;
	size_t shown = 0;

	mew_write_text(w, MARKER);
	for (int kind = 0; kind < MEW_KINDS && status == MEW_OK; kind++) {
		t.kind = (enum mew_kind)kind;
		if (!any_row(&t))
			continue;
		shown++;
		status = put_kind(&t);
	}
	if (shown == 0)
		mew_write_text(w, "\nnothing was measured\n");
	if (status == MEW_OK)
		status = put_counters(w, in->model);
	if (status != MEW_OK)
		return mew_error_set(err, status, "the markdown report could not be written: out of memory");
	put_machine(w, in->model);
	return MEW_OK;
}

const struct mew_report mew_report_markdown = {
	.abi = MEW_REPORT_ABI,
	.name = "markdown",
	.help = "the tables as GitHub's Markdown",
	.suffix = ".md",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_markdown,
};
