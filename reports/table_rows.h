/*
 * table_rows.h - one table of the report for people.
 * Layer L5. Private to reports/table.c.
 */
#ifndef MEW_TABLE_ROWS_H
#define MEW_TABLE_ROWS_H

#include "grid.h"
#include "model.h"
#include "writer.h"

struct mew_table {
	const struct mew_model *model; /* sealed; borrowed */
	struct mew_writer *w;          /* borrowed */
	struct mew_view view;
	enum mew_kind kind;
	bool marked; /* returned: a result is too short for the loop that measures it */
};

/* The row of a kind, or NULL when the case has none. */
const struct mew_row_head *mew_table_row(const struct mew_case *c, enum mew_kind kind);

/* Write title, table and legend of t->kind. Returns MEW_OK or MEW_E_NOMEM; the writer keeps its own error. */
int mew_table_write_kind(struct mew_table *t);

#endif
