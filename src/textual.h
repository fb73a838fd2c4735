/*
 * textual.h - text and numbers for people: display width, names cut in the middle, one unit for a whole column.
 * Layer L5. The process's locale is neither read nor changed.
 */
#ifndef MEW_TEXTUAL_H
#define MEW_TEXTUAL_H

#include "base.h"
#include "model.h"
#include "writer.h"

/*
 * The next character of UTF-8 text.
 *
 * text     NUL-ended, not at its end
 * bytes    returned: how many bytes it takes, 1 for a byte that belongs to no character
 * Returns  the code point; MEW_BAD_CHARACTER for a bad byte, an overlong form or a surrogate
 * Context  any thread
 */
uint32_t mew_utf8_next(const char *text, size_t *bytes);
#define MEW_BAD_CHARACTER UINT32_MAX

/* Terminal columns that text takes; bad bytes and control characters take one. Context: any thread; may allocate. */
size_t mew_text_width(const char *text);

/*
 * A copy without anything that could move a terminal's cursor: control characters, bad bytes and marks that change the
 * direction of writing become '?', line ends and tabs a blank.
 *
 * Returns  taken by the caller, who calls free(); NULL without memory
 */
char *mew_text_clean(const char *text);

/*
 * A copy that takes at most `columns` terminal columns; a longer text loses its middle, so that both ends stay
 * readable.
 *
 * columns  of the result, the ellipsis included
 * utf8     the ellipsis is one character instead of three full stops
 * Returns  taken by the caller, who calls free(); NULL without memory
 */
char *mew_text_cut(const char *text, size_t columns, bool utf8);

/* Text that Markdown shows as it is: cleaned as above, and escaped. */
void mew_text_markdown(struct mew_writer *w, const char *text);

/*
 * A field of RFC 4180, in quotes where it needs them; bad bytes become U+FFFD. The prefix needs none. NULL writes
 * nothing.
 */
void mew_text_csv(struct mew_writer *w, const char *prefix, const char *text);

/*
 * What people call a case: "zlib/inflate [64k]" for a family's case and for one with a note, otherwise the key.
 * Where another case of the model has the same key, the base name of its program follows in parentheses.
 *
 * m        borrowed; NULL: no look-out for equal keys
 * Returns  taken by the caller, who calls free(); NULL without memory
 */
char *mew_case_title(const struct mew_model *m, const struct mew_case *c);

/* --- numbers ---------------------------------------------------------------------------------------------------- */

#define MEW_NUMBER_BYTES 32

/*
 * A decimal with a '.' and so many significant digits; whole digits are never lost ("123456"), zero is "0".
 *
 * out      room for MEW_NUMBER_BYTES
 * digits   1 to 9; below one there are at most 3
 * exact    a value without a fraction is written without one: 12 instead of 12.00
 */
void mew_text_number(char *out, double value, unsigned digits, bool exact);

enum mew_scale {
	MEW_SCALE_NONE,      /* counts, as they are up to ten million */
	MEW_SCALE_TIME,      /* from nanoseconds */
	MEW_SCALE_BYTES,
	MEW_SCALE_BYTE_RATE, /* from bytes per second */
	MEW_SCALE_RATE       /* from one per second */
};

struct mew_unit {
	const char *name;  /* "µs", "KiB", "" */
	const char *ascii; /* the same without UTF-8 */
	double factor;     /* base units in one of it */
	double from;       /* the smallest median it is chosen for, in base units */
};

/*
 * The unit in which the median of the values is easy to read; zeros and what is not finite do not count.
 *
 * values   n base values, reordered
 * Returns  a constant, never NULL
 */
const struct mew_unit *mew_unit_pick(enum mew_scale scale, double *values, size_t n);

/* The figure of a row as a number; false when it is absent, not finite, a text or a list. */
bool mew_row_number(const struct mew_row_head *row, const struct mew_figure *figure, double *value);

#endif
