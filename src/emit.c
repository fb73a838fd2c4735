/*
 * emit.c - JSON: separators follow from a bit per depth, text is repaired and escaped on the way out.
 * Layer L5. Any thread, one at a time for each writer.
 */
#include "config.h"

#include "emit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define DEEPEST 63u /* bits of `first` */

void mew_json_init(struct mew_json *j, struct mew_writer *w, unsigned pretty_depth)
{
	*j = (struct mew_json){ .w = w, .first = 1, .pretty = pretty_depth > 0, .pretty_depth = pretty_depth };
}

static bool is_pretty(const struct mew_json *j)
{
	return j->pretty && j->depth >= 1 && j->depth <= j->pretty_depth;
}

static void new_line(struct mew_json *j, unsigned tabs)
{
	mew_write_char(j->w, '\n');
	while (tabs-- > 0)
		mew_write_char(j->w, '\t');
}

/* What stands between the previous value of this container and the next. At depth 0: one document a line. */
static void separate(struct mew_json *j)
{
	uint64_t bit = (uint64_t)1 << j->depth;
	bool first = (j->first & bit) != 0;

	if (j->after_key) {
		j->after_key = false;
		return;
	}
	j->first &= ~bit;
	if (!first)
		mew_write_char(j->w, j->depth == 0 ? '\n' : ',');
	if (is_pretty(j))
		new_line(j, j->depth);
}

static void open_container(struct mew_json *j, char bracket)
{
	separate(j);
	mew_write_char(j->w, bracket);
	if (j->depth == DEEPEST) { /* fail the whole document: half of it would not parse */
		if (j->w->error == 0)
			j->w->error = EOVERFLOW;
		return;
	}
	j->depth++;
	j->first |= (uint64_t)1 << j->depth;
}

static void close_container(struct mew_json *j, char bracket)
{
	bool empty = (j->first >> j->depth & 1) != 0, pretty = is_pretty(j);

	if (j->depth == 0 || j->after_key) { /* an end without its begin, or a key without its value */
		if (j->w->error == 0)
			j->w->error = EINVAL;
		return;
	}
	j->depth--;
	if (pretty && !empty)
		new_line(j, j->depth);
	mew_write_char(j->w, bracket);
}

void mew_json_object(struct mew_json *j)
{
	open_container(j, '{');
}

void mew_json_object_end(struct mew_json *j)
{
	close_container(j, '}');
}

void mew_json_array(struct mew_json *j)
{
	open_container(j, '[');
}

void mew_json_array_end(struct mew_json *j)
{
	close_container(j, ']');
}

/*
 * Length of the well-formed UTF-8 sequence at `s` (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF);
 * 0 when there is none. *skip is how many bytes one U+FFFD stands for then, as the Unicode standard recommends.
 */
static size_t utf8_length(const unsigned char *s, size_t *skip)
{
	unsigned lead = s[0], low = 0x80, high = 0xbf;
	size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	*skip = 1;
	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < length; i++) {
		if (s[i] < low || s[i] > high) { /* the end of the text is such a byte too */
			*skip = i;
			return 0;
		}
		low = 0x80;
		high = 0xbf;
	}
	return length;
}

/*
 * The escape for the character at `s`, or NULL. "</" and "<!" could end or change an HTML script element that carries
 * the document; JSON may write any character as an escape.
 */
static const char *escape(const unsigned char *s, char room[7])
{
	static const char digits[] = "0123456789abcdef";
	static const char *const names[0x20] = {
		['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"
	};

	if (*s == '"')
		return "\\\"";
	if (*s == '\\')
		return "\\\\";
	if (*s == '<')
		return s[1] == '/' || s[1] == '!' ? "\\u003c" : NULL;
	if (*s >= 0x20)
		return NULL;
	if (names[*s] != NULL)
		return names[*s];
	memcpy(room, "\\u00", 4);
	room[4] = digits[*s >> 4];
	room[5] = digits[*s & 15];
	room[6] = '\0';
	return room;
}

void mew_write_json_escaped(struct mew_writer *w, const char *text)
{
	const unsigned char *s = (const unsigned char *)text, *plain = s;
	char room[7];

	while (*s != '\0') {
		size_t skip, length = utf8_length(s, &skip);
		const char *instead = length == 0 ? "\xef\xbf\xbd" : escape(s, room);

		if (instead == NULL) {
			s += length;
			continue;
		}
		mew_write_bytes(w, plain, (size_t)(s - plain));
		mew_write_text(w, instead);
		s += skip;
		plain = s;
	}
	mew_write_bytes(w, plain, (size_t)(s - plain));
}

static void quote(struct mew_json *j, const char *text)
{
	mew_write_char(j->w, '"');
	mew_write_json_escaped(j->w, text);
	mew_write_char(j->w, '"');
}

void mew_json_key(struct mew_json *j, const char *key)
{
	separate(j);
	quote(j, key);
	mew_write_text(j->w, is_pretty(j) ? ": " : ":");
	j->after_key = true;
}

void mew_json_string(struct mew_json *j, const char *text)
{
	if (text == NULL) {
		mew_json_null(j);
		return;
	}
	separate(j);
	quote(j, text);
}

void mew_json_u64(struct mew_json *j, uint64_t value)
{
	separate(j);
	mew_write_u64(j->w, value);
}

void mew_json_i64(struct mew_json *j, int64_t value)
{
	separate(j);
	mew_write_i64(j->w, value);
}

void mew_json_f64(struct mew_json *j, double value)
{
	if (!isfinite(value)) {
		mew_json_null(j);
		return;
	}
	separate(j);
	mew_write_f64(j->w, value);
}

void mew_json_ms(struct mew_json *j, uint64_t ns)
{
	char digits[] = ".000000";
	size_t n = sizeof digits - 1;

	mew_json_u64(j, ns / 1000000);
	ns %= 1000000;
	for (size_t i = n; --i > 0; ns /= 10)
		digits[i] = (char)('0' + ns % 10);
	while (digits[n - 1] == '0')
		n--;
	if (n > 1)
		mew_write_bytes(j->w, digits, n);
}

void mew_json_bool(struct mew_json *j, bool value)
{
	separate(j);
	mew_write_text(j->w, value ? "true" : "false");
}

void mew_json_null(struct mew_json *j)
{
	separate(j);
	mew_write_text(j->w, "null");
}

void mew_json_put_text(struct mew_json *j, const char *key, const char *text)
{
	mew_json_key(j, key);
	mew_json_string(j, text);
}

void mew_json_put_some_text(struct mew_json *j, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		mew_json_put_text(j, key, text);
}

void mew_json_put_u64(struct mew_json *j, const char *key, uint64_t value)
{
	mew_json_key(j, key);
	mew_json_u64(j, value);
}

void mew_json_put_f64(struct mew_json *j, const char *key, double value)
{
	if (!isfinite(value))
		return;
	mew_json_key(j, key);
	mew_json_f64(j, value + 0.0); /* no -0 */
}

void mew_json_put_bool(struct mew_json *j, const char *key, bool value)
{
	mew_json_key(j, key);
	mew_json_bool(j, value);
}
