/*
 * grid.c - lays out a table: measure, leave out optional columns, share what is left among the texts, write.
 * Layer L5. One thread at a time; allocates.
 */
#include "config.h"

#include "grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "textual.h"

#define GAP 2u         /* blanks between columns */
#define TEXT_WANTED 28u /* a text may cost optional columns up to this width */
#define TEXT_LEAST 12u
#define NARROWEST_SENTENCE 20u

struct cell {
	char *text; /* NULL: not given */
	enum mew_style style;
};

struct mew_grid_row {
	struct cell cells[MEW_GRID_COLUMNS];
	size_t ncells;
	char *sentence; /* stands where the cells end */
	enum mew_style style;
};

/* --- filling ---------------------------------------------------------------------------------------------------- */

void mew_grid_init(struct mew_grid *g)
{
	*g = (struct mew_grid){ .rows = NULL };
}

void mew_grid_fini(struct mew_grid *g)
{
	for (size_t i = 0; i < g->nrows; i++) {
		for (size_t k = 0; k < g->rows[i].ncells; k++)
			free(g->rows[i].cells[k].text);
		free(g->rows[i].sentence);
	}
	free(g->rows);
	mew_grid_init(g);
}

void mew_grid_column(struct mew_grid *g, const char *title, const char *unit, enum mew_align align, bool optional)
{
	if (g->ncolumns == MEW_GRID_COLUMNS)
		return;
	g->columns[g->ncolumns++] = (struct mew_grid_column){
		.title = title, .unit = unit, .align = align, .optional = optional,
	};
}

void mew_grid_row(struct mew_grid *g)
{
	struct mew_grid_row *rows;
	size_t bytes;

	if (g->failed)
		return;
	if ((g->nrows & (g->nrows - 1)) == 0) { /* full at each power of two */
		rows = mew_mul_size(g->nrows == 0 ? 1 : 2 * g->nrows, sizeof *rows, &bytes) ? realloc(g->rows, bytes)
											    : NULL;
		if (rows == NULL) {
			g->failed = true;
			return;
		}
		g->rows = rows;
	}
	g->rows[g->nrows++] = (struct mew_grid_row){ .ncells = 0 };
}

void mew_grid_cell(struct mew_grid *g, enum mew_style style, const char *text)
{
	struct mew_grid_row *row;
	char *copy;

	if (g->failed || g->nrows == 0 || g->rows[g->nrows - 1].ncells == g->ncolumns)
		return;
	row = &g->rows[g->nrows - 1];
	copy = mew_text_clean(text);
	if (copy == NULL)
		g->failed = true;
	else
		row->cells[row->ncells++] = (struct cell){ copy, style };
}

void mew_grid_sentence(struct mew_grid *g, enum mew_style style, const char *text)
{
	struct mew_grid_row *row;

	if (g->failed || g->nrows == 0)
		return;
	row = &g->rows[g->nrows - 1];
	free(row->sentence);
	row->sentence = mew_text_clean(text);
	row->style = style;
	g->failed = row->sentence == NULL;
}

const char *mew_grid_text(const struct mew_grid *g, size_t row, size_t column)
{
	return row < g->nrows && column < g->rows[row].ncells ? g->rows[row].cells[column].text : NULL;
}

const char *mew_grid_sentence_of(const struct mew_grid *g, size_t row)
{
	return row < g->nrows ? g->rows[row].sentence : NULL;
}

/* --- layout ----------------------------------------------------------------------------------------------------- */

/* How much of a number stands left of its decimal point. */
static size_t whole_part(const char *text)
{
	return strspn(text, "-+<>0123456789");
}

static void measure(const struct mew_grid *g, struct mew_grid_column *column, size_t k)
{
	size_t title = mew_text_width(column->title), unit = mew_text_width(column->unit);

	column->out = false;
	column->whole = column->fraction = column->columns = 0;
	for (size_t i = 0; i < g->nrows; i++) {
		size_t width, whole;

		if (k >= g->rows[i].ncells)
			continue;
		width = mew_text_width(g->rows[i].cells[k].text);
		whole = column->align == MEW_ALIGN_NUMBER ? whole_part(g->rows[i].cells[k].text) : width;
		column->whole = whole > column->whole ? whole : column->whole;
		column->fraction = width - whole > column->fraction ? width - whole : column->fraction;
	}
	column->columns = column->whole + column->fraction;
	if (column->columns < title)
		column->columns = title;
	if (column->columns < unit)
		column->columns = unit;
}

static size_t wanted(const struct mew_grid_column *column)
{
	return column->align == MEW_ALIGN_TEXT && column->columns > TEXT_WANTED ? TEXT_WANTED : column->columns;
}

static size_t total_wanted(const struct mew_grid *g)
{
	size_t total = 0;

	for (size_t k = 0; k < g->ncolumns; k++)
		if (!g->columns[k].out)
			total += wanted(&g->columns[k]) + (k > 0 ? GAP : 0);
	return total;
}

static void leave_out(struct mew_grid *g, size_t width)
{
	for (size_t k = g->ncolumns; k-- > 0 && total_wanted(g) > width;)
		g->columns[k].out = g->columns[k].optional;
}

/* Texts get what they want, then what is left over; where even that is too much, the last text gives way first. */
static void share(struct mew_grid *g, size_t width)
{
	size_t total = total_wanted(g);

	for (size_t k = 0; k < g->ncolumns; k++) {
		struct mew_grid_column *column = &g->columns[k];
		size_t want = wanted(column), more = column->columns - want;

		if (column->out || column->align != MEW_ALIGN_TEXT)
			continue;
		if (total < width && more > 0) {
			more = more < width - total ? more : width - total;
			total += more;
			want += more;
		}
		column->columns = want;
	}
	for (size_t k = g->ncolumns; k-- > 0 && total > width;) {
		struct mew_grid_column *column = &g->columns[k];
		size_t less = column->columns > TEXT_LEAST ? column->columns - TEXT_LEAST : 0;

		if (column->out || column->align != MEW_ALIGN_TEXT)
			continue;
		less = less < total - width ? less : total - width;
		column->columns -= less;
		total -= less;
	}
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static void put_span(struct mew_writer *w, const struct mew_view *view, enum mew_style style, const char *text,
		     size_t bytes)
{
	static const char *const codes[] = {
		[MEW_STYLE_BOLD] = "\033[1m",  [MEW_STYLE_DIM] = "\033[2m",   [MEW_STYLE_BAD] = "\033[31m",
		[MEW_STYLE_WARN] = "\033[33m", [MEW_STYLE_GOOD] = "\033[32m",
	};
	bool color = view->color && style != MEW_STYLE_PLAIN && bytes > 0;

	if (color)
		mew_write_text(w, codes[style]);
	mew_write_bytes(w, text, bytes);
	if (color)
		mew_write_text(w, "\033[0m");
}

void mew_write_styled(struct mew_writer *w, const struct mew_view *view, enum mew_style style, const char *text)
{
	put_span(w, view, style, text, strlen(text));
}

void mew_write_no_memory(struct mew_writer *w)
{
	if (w->error == 0)
		w->error = ENOMEM;
}

static void blanks(struct mew_writer *w, size_t n)
{
	while (n-- > 0)
		mew_write_char(w, ' ');
}

/* Bytes of the next line: as many whole words as fit, or as much of one word; *skip is what separates it from the next.
 */
static size_t line_bytes(const char *text, size_t room, size_t *skip)
{
	size_t used = 0, at = 0, word_end = 0, bytes;
	char piece[5];

	while (text[at] != '\0' && used < room) {
		(void)mew_utf8_next(text + at, &bytes);
		if (text[at] == ' ')
			word_end = at;
		memcpy(piece, text + at, bytes);
		piece[bytes] = '\0';
		used += mew_text_width(piece);
		at += bytes;
	}
	if (text[at] != '\0' && text[at] != ' ' && word_end > 0)
		at = word_end;
	*skip = strspn(text + at, " ");
	return at;
}

static size_t room_after(const struct mew_view *view, size_t column)
{
	return view->width > column + NARROWEST_SENTENCE ? view->width - column : NARROWEST_SENTENCE;
}

void mew_write_wrapped(struct mew_writer *w, const struct mew_view *view, size_t column, size_t indent,
		       enum mew_style style, const char *text)
{
	size_t room = room_after(view, column);
	char *clean = mew_text_clean(text), *line = clean;

	if (clean == NULL)
		mew_write_no_memory(w);
	for (size_t bytes, skip; line != NULL && *line != '\0'; line += bytes + skip) {
		char *end;

		bytes = line_bytes(line, room, &skip);
		end = line + bytes + skip;
		put_span(w, view, style, line, bytes);
		if (*end == '\0')
			break;
		mew_write_char(w, '\n');
		blanks(w, indent);
		room = room_after(view, indent);
	}
	mew_write_char(w, '\n');
	free(clean);
}

/* Blanks are owed until something follows them, so that no line ends in one. */
static void put_cell(struct mew_writer *w, const struct mew_view *view, const struct mew_grid_column *column,
		     enum mew_align align, enum mew_style style, const char *whole, size_t *owed)
{
	char *text = mew_text_cut(whole, column->columns, view->utf8);
	size_t width, before = 0, after;

	if (text == NULL) {
		mew_write_no_memory(w);
		return;
	}
	width = mew_text_width(text);
	if (align == MEW_ALIGN_NUMBER) {
		after = column->fraction - (width - whole_part(text));
		before = column->columns - width - after;
	} else if (align == MEW_ALIGN_RIGHT) {
		before = column->columns - width;
	}
	after = column->columns - width - before;
	if (width > 0) {
		blanks(w, *owed + before);
		mew_write_styled(w, view, style, text);
		*owed = after;
	} else {
		*owed += before + after;
	}
	free(text);
}

static void put_head(struct mew_writer *w, const struct mew_view *view, const struct mew_grid *g, bool units)
{
	size_t owed = g->indent;

	for (size_t k = 0; k < g->ncolumns; k++) {
		const struct mew_grid_column *column = &g->columns[k];

		if (column->out)
			continue;
		put_cell(w, view, column, column->align == MEW_ALIGN_TEXT ? MEW_ALIGN_TEXT : MEW_ALIGN_RIGHT,
			 units ? MEW_STYLE_DIM : MEW_STYLE_BOLD, units ? column->unit : column->title, &owed);
		owed += GAP;
	}
	mew_write_char(w, '\n');
}

static void put_row(struct mew_writer *w, const struct mew_view *view, const struct mew_grid *g,
		    const struct mew_grid_row *row)
{
	size_t owed = g->indent, at = owed;

	for (size_t k = 0; k < row->ncells; k++) {
		if (g->columns[k].out)
			continue;
		put_cell(w, view, &g->columns[k], g->columns[k].align, row->cells[k].style, row->cells[k].text, &owed);
		owed += GAP;
		at += g->columns[k].columns + GAP;
	}
	if (row->sentence != NULL) {
		blanks(w, owed);
		mew_write_wrapped(w, view, at, at, row->style, row->sentence);
	} else {
		mew_write_char(w, '\n');
	}
}

static bool has_units(const struct mew_grid *g)
{
	for (size_t k = 0; k < g->ncolumns; k++)
		if (!g->columns[k].out && g->columns[k].unit[0] != '\0')
			return true;
	return false;
}

int mew_grid_write(struct mew_grid *g, struct mew_writer *w, const struct mew_view *view)
{
	if (g->failed)
		return MEW_E_NOMEM;
	for (size_t k = 0; k < g->ncolumns; k++)
		measure(g, &g->columns[k], k);
	leave_out(g, view->width - g->indent);
	share(g, view->width - g->indent);
	put_head(w, view, g, false);
	if (has_units(g))
		put_head(w, view, g, true);
	for (size_t i = 0; i < g->nrows; i++)
		put_row(w, view, g, &g->rows[i]);
	return MEW_OK;
}
