/*
 * textual.c - display width by wcwidth(3) in a UTF-8 locale of its own, cuts, numbers without printf's locale, units.
 * Layer L5. Any thread; allocates; never inside a window.
 */
#include "config.h"

#include "textual.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "grid.h"
#include "stats.h"
#include "symbolise.h"

/* --- characters ------------------------------------------------------------------------------------------------- */

uint32_t mew_utf8_next(const char *text, size_t *bytes)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = (unsigned char)text[0];
	uint32_t code;
	size_t n;

	*bytes = 1;
	if (first < 0x80)
		return first;
	if (first < 0xc2 || first > 0xf4)
		return MEW_BAD_CHARACTER;
	n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	code = first & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		unsigned char next = (unsigned char)text[i];

		if ((next & 0xc0u) != 0x80u)
			return MEW_BAD_CHARACTER;
		code = code << 6 | (next & 0x3fu);
	}
	if (code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return MEW_BAD_CHARACTER;
	*bytes = n;
	return code;
}

/* Latin letters and the ellipsis take one column everywhere: most names never need the locale below. */
static bool plain(uint32_t code)
{
	return code < 0x300 || code == 0x2026 || code == MEW_BAD_CHARACTER;
}

static bool all_plain(const char *text)
{
	for (size_t bytes; *text != '\0'; text += bytes)
		if (!plain(mew_utf8_next(text, &bytes)))
			return false;
	return true;
}

/* wcwidth() answers for the thread's locale, so it is asked in a UTF-8 one; without such a locale all take one column.
 */
struct widths {
	locale_t own, saved;
};

static void widths_open(struct widths *s, const char *text)
{
	s->own = all_plain(text) ? (locale_t)0 : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	s->saved = s->own == (locale_t)0 ? (locale_t)0 : uselocale(s->own);
}

static void widths_close(struct widths *s)
{
	if (s->own == (locale_t)0)
		return;
	(void)uselocale(s->saved);
	freelocale(s->own);
}

static size_t code_width(const struct widths *s, uint32_t code)
{
	int columns;

	if (plain(code) || s->own == (locale_t)0)
		return 1;
	columns = wcwidth((wchar_t)code);
	return columns < 0 ? 1 : (size_t)columns;
}

static size_t width_of(const struct widths *s, const char *text)
{
	size_t columns = 0;

	for (size_t bytes; *text != '\0'; text += bytes)
		columns += code_width(s, mew_utf8_next(text, &bytes));
	return columns;
}

size_t mew_text_width(const char *text)
{
	struct widths s;
	size_t columns;

	widths_open(&s, text);
	columns = width_of(&s, text);
	widths_close(&s);
	return columns;
}

static bool harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == MEW_BAD_CHARACTER ||
	       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

char *mew_text_clean(const char *text)
{
	char *copy = malloc(strlen(text) + 1), *to = copy;

	if (copy == NULL)
		return NULL;
	for (size_t bytes; *text != '\0'; text += bytes) {
		uint32_t code = mew_utf8_next(text, &bytes);

		if (code == '\n' || code == '\r' || code == '\t') {
			*to++ = ' ';
		} else if (harmful(code)) {
			*to++ = '?';
		} else {
			memcpy(to, text, bytes);
			to += bytes;
		}
	}
	*to = '\0';
	return copy;
}

/* Bytes at the start of text that fill at most `columns`, with the marks that sit on the last character. */
static size_t head_bytes(const struct widths *s, const char *text, size_t columns)
{
	size_t used = 0, at = 0;

	for (size_t bytes, width; text[at] != '\0'; at += bytes) {
		width = code_width(s, mew_utf8_next(text + at, &bytes));
		if (used + width > columns)
			break;
		used += width;
	}
	return at;
}

/* Where the tail of at most `columns` begins; it never begins with a mark whose character was cut off. */
static const char *tail_of(const struct widths *s, const char *text, size_t whole, size_t columns)
{
	for (size_t bytes; *text != '\0'; text += bytes) {
		size_t width = code_width(s, mew_utf8_next(text, &bytes));

		if (whole <= columns && width > 0)
			break;
		whole -= width;
	}
	return text;
}

char *mew_text_cut(const char *text, size_t columns, bool utf8)
{
	const char *dots = utf8 ? "\xe2\x80\xa6" : "...", *tail;
	size_t dots_width = utf8 ? 1 : 3, whole, head, room;
	struct widths s;
	char *cut = malloc(strlen(text) + sizeof "...");

	if (cut == NULL)
		return NULL;
	widths_open(&s, text);
	whole = width_of(&s, text);
	if (whole <= columns || columns < dots_width) {
		(void)strcpy(cut, text);
		if (whole > columns)
			cut[head_bytes(&s, text, columns)] = '\0';
	} else {
		room = columns - dots_width;
		head = head_bytes(&s, text, room - room / 2);
		tail = tail_of(&s, text, whole, room / 2);
		memcpy(cut, text, head);
		(void)strcpy(cut + head, dots);
		(void)strcat(cut, tail);
	}
	widths_close(&s);
	return cut;
}

/* --- text in files ---------------------------------------------------------------------------------------------- */

void mew_text_markdown(struct mew_writer *w, const char *text)
{
	char *clean = mew_text_clean(text);

	if (clean == NULL)
		mew_write_no_memory(w);
	for (const char *p = clean; p != NULL && *p != '\0'; p++) {
		if (*p == '<')
			mew_write_text(w, "&lt;");
		else if (*p == '&')
			mew_write_text(w, "&amp;");
		else if (*p == '@') /* a backslash does not keep the name behind it from being told */
			mew_write_text(w, "@<!-- -->");
		else if (*p == '|') /* readers differ in whether one behind two backslashes ends a cell */
			mew_write_text(w, "&#124;");
		else if (strchr("\\`*_[]~#!$>", *p) != NULL)
			mew_writef(w, "\\%c", *p);
		else
			mew_write_char(w, *p);
	}
	free(clean);
}

void mew_text_csv(struct mew_writer *w, const char *prefix, const char *text)
{
	bool quoted;

	if (text == NULL)
		return;
	quoted = strpbrk(text, ",\"\r\n") != NULL || *text == ' ' || (*text != '\0' && text[strlen(text) - 1] == ' ');
	if (quoted)
		mew_write_char(w, '"');
	mew_write_text(w, prefix);
	for (size_t bytes; *text != '\0'; text += bytes) {
		if (mew_utf8_next(text, &bytes) == MEW_BAD_CHARACTER)
			mew_write_text(w, "\xef\xbf\xbd");
		else
			mew_write_bytes(w, text, bytes);
		if (*text == '"')
			mew_write_char(w, '"');
	}
	if (quoted)
		mew_write_char(w, '"');
}

/* --- names of cases --------------------------------------------------------------------------------------------- */

char *mew_case_title(const struct mew_model *m, const struct mew_case *c)
{
	bool is_shared = m != NULL && c->shares_key && c->program != NULL;
	const char *label = c->label, *program = is_shared ? mew_base_name(c->program) : NULL;
	const char *family = label == NULL ? NULL : strstr(c->key, "/case:");
	size_t name = family == NULL ? strlen(c->key) : (size_t)(family - c->key);
	char *title = malloc(name + (label == NULL ? 0 : strlen(label) + 3) +
			     (program == NULL ? 0 : strlen(program) + 3) +
			     (c->allocator == NULL ? 0 : strlen(c->allocator) + 4) + 1);
	char *to = title;

	if (title == NULL)
		return NULL;
	memcpy(to, c->key, name);
	to += name;
	if (label != NULL) {
		to = stpcpy(to, " [");
		to = stpcpy(to, label);
		to = stpcpy(to, "]");
	}
	if (program != NULL) {
		to = stpcpy(to, " (");
		to = stpcpy(to, program);
		to = stpcpy(to, ")");
	}
	if (c->allocator != NULL) {
		to = stpcpy(to, " on ");
		to = stpcpy(to, c->allocator);
	}
	*to = '\0';
	return title;
}

/* --- numbers ---------------------------------------------------------------------------------------------------- */

#define LARGEST 1e15  /* whole numbers below it are exact in a double */
#define SMALLEST 1e-6 /* more zeros after the point than this are counted, not read */
#define MOST_DECIMALS 9u

static char *put_digits(char *to, uint64_t value, unsigned least)
{
	char digits[24];
	unsigned n = 0;

	do {
		digits[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0 || n < least);
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

static char *put_fixed(char *to, double value, unsigned decimals)
{
	uint64_t scale = 1, scaled;

	for (unsigned i = 0; i < decimals; i++)
		scale *= 10;
	scaled = (uint64_t)llround(value * (double)scale);
	to = put_digits(to, scaled / scale, 1);
	if (decimals > 0) {
		*to++ = '.';
		to = put_digits(to, scaled % scale, decimals);
	}
	return to;
}

/* Decimals that leave so many significant digits after rounding: 9.9996 has one whole digit, and two when rounded. */
static unsigned decimals_of(double value, unsigned digits)
{
	int exponent = (int)floor(log10(value)), decimals;

	decimals = (int)digits - 1 - exponent;
	if (decimals > 0 && round(value * pow(10, decimals)) >= pow(10, digits))
		decimals--;
	return decimals < 0 ? 0 : decimals > (int)MOST_DECIMALS ? MOST_DECIMALS : (unsigned)decimals;
}

/* 1.234e17, 5.000e-9 */
static char *put_scientific(char *to, double value, unsigned digits)
{
	int exponent = (int)floor(log10(value));

	if (round(value / pow(10, exponent) * pow(10, digits - 1)) >= pow(10, digits))
		exponent++;
	to = put_fixed(to, value / pow(10, exponent), digits - 1);
	*to++ = 'e';
	if (exponent < 0)
		*to++ = '-';
	return put_digits(to, (uint64_t)(exponent < 0 ? -exponent : exponent), 1);
}

void mew_text_number(char *out, double value, unsigned digits, bool exact)
{
	unsigned small = digits > 3 ? 3 : digits; /* the zeros behind the point take room enough */
	char *to = out;

	if (!isfinite(value)) {
		(void)strcpy(out, "-");
		return;
	}
	if (value < 0) {
		*to++ = '-';
		value = -value;
	}
	if (value == 0) {
		(void)strcpy(out, "0");
		return;
	}
	if (value >= LARGEST || value < SMALLEST)
		to = put_scientific(to, value, digits);
	else
		to = put_fixed(to, value,
			       exact && value == floor(value) ? 0 : decimals_of(value, value < 1 ? small : digits));
	*to = '\0';
}

/* --- units ------------------------------------------------------------------------------------------------------ */

#define KIB 1024.0
#define MICRO "\xc2\xb5s"

static const struct mew_unit counts[] = { { "", "", 1, 0 }, { "M", "M", 1e6, 1e7 }, { "G", "G", 1e9, 1e10 } };
static const struct mew_unit times[] = {
	{ "ns", "ns", 1, 0 }, { MICRO, "us", 1e3, 1e3 }, { "ms", "ms", 1e6, 1e6 }, { "s", "s", 1e9, 1e9 },
};
/* Four digits of bytes are read as easily as KiB, and they are exact. */
static const struct mew_unit bytes_units[] = {
	{ "B", "B", 1, 0 },
	{ "KiB", "KiB", KIB, 10 * KIB },
	{ "MiB", "MiB", KIB * KIB, KIB * KIB },
	{ "GiB", "GiB", KIB * KIB * KIB, KIB * KIB * KIB },
};
static const struct mew_unit byte_rates[] = {
	{ "B/s", "B/s", 1, 0 },
	{ "KiB/s", "KiB/s", KIB, KIB },
	{ "MiB/s", "MiB/s", KIB * KIB, KIB * KIB },
	{ "GiB/s", "GiB/s", KIB * KIB * KIB, KIB * KIB * KIB },
};
static const struct mew_unit rates[] = {
	{ "/s", "/s", 1, 0 }, { "k/s", "k/s", 1e3, 1e3 }, { "M/s", "M/s", 1e6, 1e6 }, { "G/s", "G/s", 1e9, 1e9 },
};

static const struct {
	const struct mew_unit *units;
	size_t n;
} ladders[] = {
	[MEW_SCALE_NONE] = { counts, MEW_COUNTOF(counts) },
	[MEW_SCALE_TIME] = { times, MEW_COUNTOF(times) },
	[MEW_SCALE_BYTES] = { bytes_units, MEW_COUNTOF(bytes_units) },
	[MEW_SCALE_BYTE_RATE] = { byte_rates, MEW_COUNTOF(byte_rates) },
	[MEW_SCALE_RATE] = { rates, MEW_COUNTOF(rates) },
};

const struct mew_unit *mew_unit_pick(enum mew_scale scale, double *values, size_t n)
{
	const struct mew_unit *unit = ladders[scale].units;
	size_t kept = 0;
	double median;

	for (size_t i = 0; i < n; i++)
		if (isfinite(values[i]) && values[i] != 0)
			values[kept++] = fabs(values[i]);
	if (kept == 0)
		return unit;
	mew_stats_sort(values, kept);
	median = values[(kept - 1) / 2];
	for (size_t i = 1; i < ladders[scale].n; i++)
		if (median >= ladders[scale].units[i].from)
			unit = &ladders[scale].units[i];
	return unit;
}

bool mew_row_number(const struct mew_row_head *row, const struct mew_figure *figure, double *value)
{
	const char *at = (const char *)row + figure->offset;

	if ((figure->type != MEW_VALUE_U64 && figure->type != MEW_VALUE_F64) || !mew_row_has(row, figure->bit))
		return false;
	if (figure->type == MEW_VALUE_U64)
		*value = (double)*(const uint64_t *)(const void *)at;
	else
		*value = *(const double *)(const void *)at;
	return isfinite(*value);
}
