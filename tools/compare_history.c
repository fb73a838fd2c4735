/*
 * compare_history.c - more than two saved results as a history: for each case of the first file a row per file.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "compare_cells.h"

#include <stdio.h>

static const struct mew_compare_case *find_case(const struct mew_comparison *c, const struct mew_case *base)
{
	for (size_t i = 0; i < c->ncases; i++)
		if (c->cases[i].base == base)
			return &c->cases[i];
	return NULL;
}

static void history_row(struct mew_grid *g, const struct mew_compare_case *c, bool is_base, const char *name,
			size_t number, const struct mew_unit *const *units)
{
	char text[24];

	mew_grid_row(g);
	mew_grid_cell(g, MEW_STYLE_PLAIN, name);
	(void)snprintf(text, sizeof text, "%zu", number);
	mew_grid_cell(g, MEW_STYLE_PLAIN, text);
	if (c == NULL) {
		mew_grid_cell(g, MEW_STYLE_WARN, "missing");
		return;
	}
	for (size_t k = 0; k < MEW_COMPARE_METRICS; k++) {
		const struct mew_verdict *v = &c->verdicts[k];

		mew_cell_number(g, is_base ? v->base : v->head, units[k]->factor);
		if (k == 0 && !is_base)
			mew_cell_ratio(g, v);
		else if (k == 0)
			mew_grid_cell(g, MEW_STYLE_PLAIN, "");
	}
}

static void history_case(struct mew_grid *g, const struct mew_cells *o, const struct mew_case *base,
			 const struct mew_unit *const *units)
{
	const struct mew_compare_case *first = NULL;

	for (size_t i = 0; first == NULL && i < o->set->n; i++)
		first = find_case(&o->set->list[i], base);
	if (first == NULL)
		return;
	history_row(g, first, true, first->title, 1, units);
	for (size_t i = 0; i < o->set->n; i++)
		history_row(g, find_case(&o->set->list[i], base), false, "", i + 2, units);
}

static int put_history_table(const struct mew_cells *o)
{
	const struct mew_model *base = o->set->list[0].base;
	const struct mew_unit *units[MEW_COMPARE_METRICS];
	struct mew_grid g;
	int status;

	mew_grid_init(&g);
	mew_grid_column(&g, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(&g, "file", "", MEW_ALIGN_RIGHT, false);
	for (size_t k = 0; k < MEW_COMPARE_METRICS; k++) {
		units[k] = mew_cell_unit(o->set, k);
		if (units[k] == NULL) {
			mew_grid_fini(&g);
			return MEW_E_NOMEM;
		}
		mew_grid_column(&g, mew_cell_titles[k], mew_cell_unit_name(o, units[k]), MEW_ALIGN_NUMBER, k > 0);
		if (k == 0)
			mew_grid_column(&g, "ratio", "", MEW_ALIGN_NUMBER, false);
	}
	for (size_t i = 0; i < base->ncases; i++)
		history_case(&g, o, &base->cases[i], units);
	if (g.nrows > 0)
		mew_cell_title(o, "history: time and heap of one iteration; ratio of time to the first file");
	status = mew_grid_write(&g, o->w, o->view);
	mew_grid_fini(&g);
	return status;
}

int mew_cell_history(const struct mew_cells *o)
{
	int status;

	mew_cell_sentence(o, MEW_STYLE_PLAIN, "1  %s", o->set->list[0].base_name);
	for (size_t i = 0; i < o->set->n; i++)
		mew_cell_sentence(o, MEW_STYLE_PLAIN, "%zu  %s", i + 2, o->set->list[i].head_name);
	status = put_history_table(o);
	for (size_t i = 0; i < o->set->n; i++) {
		const struct mew_comparison *c = &o->set->list[i];

		if (c->nadded + c->ndifferences == 0)
			continue;
		mew_write_char(o->w, '\n');
		mew_cell_sentence(o, MEW_STYLE_PLAIN, "%s against the first:", c->head_name);
		mew_cell_cases(o, "new", c->head, c->added, c->nadded);
		mew_cell_differences(o, c);
	}
	return status;
}
