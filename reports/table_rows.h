/*
 * table_rows.h - the parts of the report for people: one table, the notes below it, all figures of its kind.
 * Layer L5. Private to reports/table*.c.
 */
#ifndef MEW_TABLE_ROWS_H
#define MEW_TABLE_ROWS_H

#include "grid.h"
#include "model.h"
#include "rows.h"
#include "writer.h"

struct mew_table {
	const struct mew_model *model; /* sealed; borrowed */
	struct mew_writer *w;          /* borrowed */
	struct mew_view view;
	enum mew_kind kind;
	bool marked; /* returned: a result is too short for the loop that measures it */
};

struct mew_table_layout { /* the columns that are shown */
	const struct mew_table_column *columns[MEW_GRID_COLUMNS];
	const struct mew_unit *units[MEW_GRID_COLUMNS];
	size_t n;
};

/*
 * The cells of t->kind, for a writer of its own: title, grid, and what its columns mean.
 *
 * grid     mew_grid_init() before, mew_grid_fini() after, also when it failed
 * Returns  the title, a constant
 */
const char *mew_table_fill(struct mew_table *t, struct mew_table_layout *layout, struct mew_grid *grid);
/* "title: meaning; ..." of the columns that are not left out. Taken by the caller; "" for none; NULL without memory. */
char *mew_table_legend(const struct mew_table *t, const struct mew_table_layout *layout, const struct mew_grid *grid);
extern const char mew_table_mark[]; /* what "!" means, where t->marked is set */

/* The counters that bodies set: case, counter, value. The grid as for mew_table_fill(); without rows for none. */
void mew_table_fill_counters(const struct mew_model *m, struct mew_grid *grid);

/*
 * The three functions of each case that take most time themselves, or that allocate most, by t->kind; without rows
 * where no case has any. The grid as for mew_table_fill().
 *
 * bars     shares are drawn as well
 * Returns  the title, a constant
 */
const char *mew_table_fill_tops(const struct mew_table *t, struct mew_grid *grid, bool bars);

/* What tells machines and builds apart most, in one line; "" for nothing. Taken by the caller; NULL without memory. */
char *mew_table_machine(const struct mew_model *m);

/* Write title, table and legend of t->kind. Returns MEW_OK or MEW_E_NOMEM; the writer keeps its own error. */
int mew_table_write_kind(struct mew_table *t);

/*
 * The table of a model whose cases ran under several allocators, in place of those of time and memory. Returns MEW_OK
 * or MEW_E_NOMEM; the writer keeps its own error.
 */
int mew_table_write_allocators(const struct mew_table *t);

/* "title of the case: text", wrapped, in lines of their own. */
void mew_table_note(const struct mew_table *t, const struct mew_case *c, enum mew_style style, const char *text);

/* Every figure of t->kind of every case that has figures, or why it is absent. The writer keeps its own error. */
void mew_table_write_figures(const struct mew_table *t);

#endif
