/*
 * rows.h - what the formats of one line or object per figure have in common: rows, names, intervals, a figure's role.
 * Layer L5. Reads a sealed model; follows the catalogue, so that a further figure needs no change.
 */
#ifndef MEW_ROWS_H
#define MEW_ROWS_H

#include "emit.h"
#include "model.h"

/* The row of a kind, whatever its status; NULL when the case has none. Context: any thread. */
const struct mew_row_head *mew_rows_of(const struct mew_case *c, enum mew_kind kind);

/*
 * The name under which other tools follow a case from run to run: its key, never the label. Where another program has
 * the same key, the program follows in parentheses.
 *
 * Returns  taken by the caller, who calls free(); NULL without memory
 */
char *mew_rows_name(const struct mew_case *c);

/*
 * The ends of a figure's interval where the catalogue has them: x_low and x_high for x, y_low_ns and y_high_ns for
 * y_ns. False where there are none, or the row has not both.
 */
bool mew_rows_interval(enum mew_kind kind, const struct mew_row_head *row, const struct mew_figure *figure, double *low,
		       double *high);

/* Is this figure the end of another one's interval? Such are written with it, not as figures of their own. */
bool mew_rows_is_end(enum mew_kind kind, const struct mew_figure *figure);

/* A number of the row: whole where the figure is. False, and nothing written, where it is absent, a text or a list. */
bool mew_rows_put_number(struct mew_json *j, const struct mew_row_head *row, const struct mew_figure *figure);

/* For which direction of a figure somebody should be told; NONE for one that only describes the measurement. */
enum mew_better { MEW_BETTER_NONE, MEW_BETTER_LOWER, MEW_BETTER_HIGHER };
enum mew_better mew_rows_better(enum mew_kind kind, const struct mew_figure *figure);

/* Does it count events over the whole window, so that two of them may be added? Context: any thread. */
bool mew_rows_is_sum(enum mew_kind kind, const struct mew_figure *figure);

#endif
