/*
 * grid.h - rows of cells as aligned text for people: fits a width, numbers stand on their decimal point.
 * Layer L5. One thread at a time; allocates.
 */
#ifndef MEW_GRID_H
#define MEW_GRID_H

#include "base.h"
#include "writer.h"

struct mew_view {
	size_t width; /* columns of the terminal */
	bool utf8;
	bool color;
};

/* Never the only bearer of a meaning: what is red also says "failed". */
enum mew_style { MEW_STYLE_PLAIN, MEW_STYLE_BOLD, MEW_STYLE_DIM, MEW_STYLE_BAD, MEW_STYLE_WARN, MEW_STYLE_GOOD };

enum mew_align {
	MEW_ALIGN_TEXT,   /* left; cut in the middle where room is short */
	MEW_ALIGN_NUMBER, /* on the decimal point */
	MEW_ALIGN_RIGHT
};

struct mew_grid_column {
	const char *title; /* borrowed */
	const char *unit;  /* borrowed; second line of the head, "" for none */
	enum mew_align align;
	bool optional;     /* left out when the grid is too wide; the rightmost goes first */
	size_t whole, fraction, columns; /* private: widths */
	bool out;
};
#define MEW_GRID_COLUMNS 24

struct mew_grid_row;

struct mew_grid {
	struct mew_grid_column columns[MEW_GRID_COLUMNS];
	size_t ncolumns;
	struct mew_grid_row *rows;
	size_t nrows;
	size_t indent; /* of every line; 0 until it is set */
	bool failed; /* memory ran out */
};

void mew_grid_init(struct mew_grid *g);
void mew_grid_fini(struct mew_grid *g);

/* Add a column; at most MEW_GRID_COLUMNS, all before the first row. */
void mew_grid_column(struct mew_grid *g, const char *title, const char *unit, enum mew_align align, bool optional);

/* Begin a row, then fill it from the left; cells that are not given stay empty. Texts are copied and cleaned. */
void mew_grid_row(struct mew_grid *g);
void mew_grid_cell(struct mew_grid *g, enum mew_style style, const char *text);

/* The rest of the row is one sentence, wrapped where it is too long. Ends the row. */
void mew_grid_sentence(struct mew_grid *g, enum mew_style style, const char *text);

/*
 * What a row holds, for a writer of another format than text: cells from the left, cleaned; NULL where none was given.
 * A row that ends in a sentence has it where its cells end. Borrowed from the grid.
 */
const char *mew_grid_text(const struct mew_grid *g, size_t row, size_t column);
const char *mew_grid_sentence_of(const struct mew_grid *g, size_t row);

/* Write head and rows. Returns MEW_OK, or MEW_E_NOMEM when a row could not be kept; the writer keeps its own error. */
int mew_grid_write(struct mew_grid *g, struct mew_writer *w, const struct mew_view *view);

/*
 * Write a text in lines that fit, broken at blanks; a longer word is broken anywhere.
 *
 * column   where the cursor stands now
 * indent   of the following lines
 */
void mew_write_wrapped(struct mew_writer *w, const struct mew_view *view, size_t column, size_t indent,
		       enum mew_style style, const char *text);

/* Write text in a style, when the view has colours. */
void mew_write_styled(struct mew_writer *w, const struct mew_view *view, enum mew_style style, const char *text);

/* A part could not be written for want of memory: the writer fails, so that nothing is missing without a word. */
void mew_write_no_memory(struct mew_writer *w);

#endif
