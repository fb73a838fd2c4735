/*
 * compare_cells.c - what the tables of a comparison have in common: cells, units, and what one side lacks.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "compare_cells.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "textual.h"

const char *const mew_cell_titles[MEW_COMPARE_METRICS] = {
	"time", "allocs/iter", "bytes/iter", "peak live", "leak/iter"
};

void mew_cell_title(const struct mew_cells *o, const char *text)
{
	mew_write_char(o->w, '\n');
	mew_write_styled(o->w, o->view, MEW_STYLE_BOLD, text);
	mew_write_char(o->w, '\n');
}

void mew_cell_paragraph(const struct mew_cells *o, enum mew_style style, const char *text)
{
	mew_write_wrapped(o->w, o->view, 0, 4, style, text);
}

void mew_cell_sentence(const struct mew_cells *o, enum mew_style style, const char *format, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		mew_write_no_memory(o->w);
		return;
	}
	mew_cell_paragraph(o, style, text);
	free(text);
}

void mew_cell_number(struct mew_grid *g, double value, double factor)
{
	char text[MEW_NUMBER_BYTES];

	text[0] = '\0';
	if (isfinite(value))
		mew_text_number(text, value / factor, MEW_CELL_DIGITS, factor == 1);
	mew_grid_cell(g, MEW_STYLE_PLAIN, text);
}

void mew_cell_ratio(struct mew_grid *g, const struct mew_verdict *v)
{
	char text[MEW_NUMBER_BYTES] = "";

	if (isfinite(v->ratio))
		mew_text_number(text, v->ratio, MEW_CELL_DIGITS, false);
	mew_grid_cell(g, MEW_STYLE_PLAIN, isinf(v->ratio) ? "from 0" : text);
}

enum mew_style mew_outcome_style(enum mew_outcome outcome)
{
	switch (outcome) {
	case MEW_OUTCOME_REGRESSED:
	case MEW_OUTCOME_INVALID:
		return MEW_STYLE_BAD;
	case MEW_OUTCOME_INCONCLUSIVE:
		return MEW_STYLE_WARN;
	case MEW_OUTCOME_IMPROVED:
		return MEW_STYLE_GOOD;
	case MEW_OUTCOME_ABSENT:
	case MEW_OUTCOME_PASS:
		break;
	}
	return MEW_STYLE_PLAIN;
}

void mew_cell_word(struct mew_grid *g, const struct mew_verdict *v)
{
	char word[MEW_COMPARE_WORD_BYTES];

	mew_compare_word(v, word);
	mew_grid_cell(g, mew_outcome_style(v->outcome), word);
}

/* The unit that suits most values of a metric in all files. NULL without memory. */
const struct mew_unit *mew_cell_unit(const struct mew_compare_set *set, size_t metric)
{
	static const enum mew_scale scales[MEW_COMPARE_METRICS] = { MEW_SCALE_TIME, MEW_SCALE_NONE, MEW_SCALE_BYTES,
								    MEW_SCALE_BYTES, MEW_SCALE_BYTES };
	const struct mew_unit *unit;
	size_t most = 0, n = 0;
	double *values;

	for (size_t i = 0; i < set->n; i++)
		most += 2 * set->list[i].ncases;
	values = calloc(most + 1, sizeof *values);
	if (values == NULL)
		return NULL;
	for (size_t i = 0; i < set->n; i++)
		for (size_t k = 0; k < set->list[i].ncases; k++) {
			values[n++] = set->list[i].cases[k].verdicts[metric].base;
			values[n++] = set->list[i].cases[k].verdicts[metric].head;
		}
	for (size_t i = 0; i < n; i++)
		if (!isfinite(values[i]))
			values[i] = 0;
	unit = mew_unit_pick(scales[metric], values, n);
	free(values);
	return unit;
}

const char *mew_cell_unit_name(const struct mew_cells *o, const struct mew_unit *unit)
{
	return o->view->utf8 ? unit->name : unit->ascii;
}

/* --- cases and facts that one side lacks ------------------------------------------------------------------------ */

void mew_cell_cases(const struct mew_cells *o, const char *what, const struct mew_model *m,
		    const struct mew_case *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *name = mew_case_title(m, list[i]);

		mew_cell_sentence(o, MEW_STYLE_WARN, "%s: %s", what, name != NULL ? name : list[i]->key);
		free(name);
	}
}

void mew_cell_differences(const struct mew_cells *o, const struct mew_comparison *c)
{
	for (size_t i = 0; i < c->ndifferences; i++) {
		const struct mew_fact_difference *d = &c->differences[i];

		mew_cell_sentence(o, MEW_STYLE_PLAIN, "differs: %s: %s, now %s", d->name,
				  d->base == NULL ? "not said" : d->base,
			 d->head == NULL ? "not said" : d->head);
	}
	if (c->other_machine)
		mew_cell_paragraph(o, MEW_STYLE_WARN,
			  "warning: another machine measured the base: its timings are context, not evidence; measure "
			  "both here");
}
