/*
 * compare_cells.h - what the tables of a comparison have in common.
 * Layer L6. Private to compare_table.c and compare_history.c. The command's thread; mew_outcome_style()
 * also serves gate_table.c.
 */
#ifndef MEW_COMPARE_CELLS_H
#define MEW_COMPARE_CELLS_H

#include "compare.h"
#include "grid.h"
#include "textual.h"

#define MEW_CELL_DIGITS 4u

struct mew_cells { /* where everything goes; all borrowed */
	const struct mew_compare_set *set;
	const struct mew_view *view;
	struct mew_writer *w;
};

/* Names of the metrics for people, in their order. */
extern const char *const mew_cell_titles[MEW_COMPARE_METRICS];

void mew_cell_title(const struct mew_cells *o, const char *text);
/* A text in lines that fit; the second also formats it. */
void mew_cell_paragraph(const struct mew_cells *o, enum mew_style style, const char *text);
void mew_cell_sentence(const struct mew_cells *o, enum mew_style style, const char *format, ...) MEW_PRINTF(3, 4);

/* The next cell: a value in a unit (empty when not finite), a ratio, a verdict. */
void mew_cell_number(struct mew_grid *g, double value, double factor);
void mew_cell_ratio(struct mew_grid *g, const struct mew_verdict *v);
void mew_cell_word(struct mew_grid *g, const struct mew_verdict *v);

/* The unit that suits most values of a metric, over all files. NULL without memory. */
const struct mew_unit *mew_cell_unit(const struct mew_compare_set *set, size_t metric);
const char *mew_cell_unit_name(const struct mew_cells *o, const struct mew_unit *unit);

/* How an outcome stands out. */
enum mew_style mew_outcome_style(enum mew_outcome outcome);

/* A line for each case that one side lacks; one for each fact that differs, and what follows from another machine. */
void mew_cell_cases(const struct mew_cells *o, const char *what, const struct mew_model *m,
		    const struct mew_case *const *list, size_t n);
void mew_cell_differences(const struct mew_cells *o, const struct mew_comparison *c);

/* The table of more than two files. Returns MEW_OK or MEW_E_NOMEM. */
int mew_cell_history(const struct mew_cells *o);

#endif
