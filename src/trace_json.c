/*
 * trace_json.c - see trace_json.h.
 * Layer L5. Any thread.
 */
#include "config.h"

#include "trace_json.h"

#include <string.h>

#define DEPTH_MAX 64

static void fault(struct mew_cursor *c)
{
	if (c->state == MEW_CURSOR_FINE)
		c->state = c->p >= c->end ? MEW_CURSOR_CUT : MEW_CURSOR_BAD;
}

char mew_cursor_peek(struct mew_cursor *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
		c->p++;
	return c->state == MEW_CURSOR_FINE && c->p < c->end ? *c->p : '\0';
}

bool mew_cursor_take(struct mew_cursor *c, char wanted)
{
	if (mew_cursor_peek(c) != wanted) {
		fault(c);
		return false;
	}
	c->p++;
	return true;
}

static bool is_digit(const struct mew_cursor *c)
{
	return c->p < c->end && *c->p >= '0' && *c->p <= '9';
}

static bool is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

static void take_escape(struct mew_cursor *c)
{
	unsigned digits = 0;

	if (c->p < c->end && *c->p == 'u') {
		for (c->p++; digits < 4 && c->p < c->end && is_one_of(*c->p, "0123456789abcdefABCDEF"); digits++)
			c->p++;
		if (digits < 4)
			fault(c);
	} else if (c->p < c->end && is_one_of(*c->p, "\"\\/bfnrt")) {
		c->p++;
	} else {
		fault(c);
	}
}

static void take_string(struct mew_cursor *c)
{
	for (c->p++; c->state == MEW_CURSOR_FINE; ) {
		if (c->p == c->end || (unsigned char)*c->p < 0x20) {
			fault(c);
		} else if (*c->p == '"') {
			c->p++;
			return;
		} else if (*c->p++ == '\\') {
			take_escape(c);
		}
	}
}

static void take_digits(struct mew_cursor *c)
{
	if (!is_digit(c))
		fault(c);
	while (is_digit(c))
		c->p++;
}

static void take_number(struct mew_cursor *c)
{
	if (*c->p == '-')
		c->p++;
	if (c->p < c->end && *c->p == '0')
		c->p++;
	else
		take_digits(c);
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		take_digits(c);
	}
	if (c->state == MEW_CURSOR_FINE && c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		take_digits(c);
	}
}

static void take_word(struct mew_cursor *c, const char *word)
{
	for (; *word != '\0' && c->state == MEW_CURSOR_FINE; word++) {
		if (c->p < c->end && *c->p == *word)
			c->p++;
		else
			fault(c);
	}
}

bool mew_cursor_next(struct mew_cursor *c, char closing, bool *first, struct mew_slice *key)
{
	const char *start;

	if (mew_cursor_peek(c) == closing) {
		c->p++;
		return false;
	}
	if (!*first && !mew_cursor_take(c, ','))
		return false;
	*first = false;
	if (key == NULL)
		return mew_cursor_peek(c) != '\0' || (fault(c), false);
	if (mew_cursor_peek(c) != '"') {
		fault(c);
		return false;
	}
	start = c->p;
	take_string(c);
	*key = (struct mew_slice){ start, (size_t)(c->p - start) };
	return mew_cursor_take(c, ':') && (mew_cursor_peek(c) != '\0' || (fault(c), false));
}

static void take(struct mew_cursor *c, unsigned depth);

static void take_inside(struct mew_cursor *c, char closing, unsigned depth)
{
	struct mew_slice key;
	bool first = true;

	c->p++;
	while (mew_cursor_next(c, closing, &first, closing == '}' ? &key : NULL))
		take(c, depth + 1);
}

static void take(struct mew_cursor *c, unsigned depth)
{
	char next = mew_cursor_peek(c);

	if (depth > DEPTH_MAX) {
		c->state = MEW_CURSOR_BAD;
	} else if (next == '{' || next == '[') {
		take_inside(c, next == '{' ? '}' : ']', depth);
	} else if (next == '"') {
		take_string(c);
	} else if (next == '-' || (next >= '0' && next <= '9')) {
		take_number(c);
	} else if (next == 't' || next == 'f' || next == 'n') {
		take_word(c, next == 't' ? "true" : next == 'f' ? "false" : "null");
	} else {
		fault(c);
	}
}

struct mew_slice mew_cursor_value(struct mew_cursor *c)
{
	const char *start;

	(void)mew_cursor_peek(c);
	start = c->p;
	take(c, 0);
	return c->state == MEW_CURSOR_FINE ? (struct mew_slice){ start, (size_t)(c->p - start) } :
	       (struct mew_slice){ NULL, 0 };
}

/* --- slices ----------------------------------------------------------------------------------------------------- */

bool mew_slice_is(struct mew_slice s, const char *text)
{
	size_t n = strlen(text);

	return s.n == n + 2 && s.p[0] == '"' && memcmp(s.p + 1, text, n) == 0;
}

struct mew_slice mew_slice_member(struct mew_slice object, const char *name)
{
	struct mew_cursor c = { object.p, object.p + object.n, MEW_CURSOR_FINE };
	struct mew_slice key, value, found = { NULL, 0 };
	bool first = true;

	if (object.n == 0 || !mew_cursor_take(&c, '{'))
		return found;
	while (mew_cursor_next(&c, '}', &first, &key)) {
		value = mew_cursor_value(&c);
		if (mew_slice_is(key, name))
			found = value;
	}
	return found;
}

bool mew_slice_is_number(struct mew_slice s)
{
	return s.n > 0 && (s.p[0] == '-' || (s.p[0] >= '0' && s.p[0] <= '9'));
}

/* Decimal digits and where their point is; false when the text is no number or its exponent is absurd. */
struct decimal {
	bool negative;
	int64_t digits;
	int scale; /* value = digits * 10^scale */
};

static bool read_exponent(const char *p, const char *end, int *scale)
{
	bool negative = p < end && *p == '-';
	int value = 0;

	if (p < end && (*p == '-' || *p == '+'))
		p++;
	for (; p < end; p++) {
		if (value > 999)
			return false;
		value = value * 10 + (*p - '0');
	}
	*scale += negative ? -value : value;
	return true;
}

static bool read_decimal(struct mew_slice s, struct decimal *d)
{
	struct mew_cursor check;
	const char *p, *end;
	bool point = false;

	if (s.n >= 2 && s.p[0] == '"')
		s = (struct mew_slice){ s.p + 1, s.n - 2 };
	if (!mew_slice_is_number(s))
		return false;
	check = (struct mew_cursor){ s.p, s.p + s.n, MEW_CURSOR_FINE };
	take_number(&check);
	if (check.state != MEW_CURSOR_FINE || check.p != check.end)
		return false;
	*d = (struct decimal){ .negative = s.p[0] == '-' };
	for (p = s.p + d->negative, end = s.p + s.n; p < end && *p != 'e' && *p != 'E'; p++) {
		if (*p == '.') {
			point = true;
		} else if (d->digits < INT64_MAX / 10) {
			d->digits = d->digits * 10 + (*p - '0');
			d->scale -= point;
		} else {
			d->scale += !point;
		}
	}
	return p == end || read_exponent(p + 1, end, &d->scale);
}

static bool scaled(struct decimal d, int64_t *value)
{
	for (; d.scale > 0 && d.digits != 0; d.scale--)
		if (__builtin_mul_overflow(d.digits, (int64_t)10, &d.digits))
			return false;
	for (; d.scale < -1 && d.digits != 0; d.scale++)
		d.digits /= 10;
	if (d.scale == -1)
		d.digits = (d.digits + 5) / 10;
	*value = d.negative ? -d.digits : d.digits;
	return true;
}

bool mew_slice_us(struct mew_slice s, int64_t *ns)
{
	struct decimal d;

	if (!read_decimal(s, &d))
		return false;
	d.scale += 3;
	return scaled(d, ns);
}

bool mew_slice_i64(struct mew_slice s, int64_t *value)
{
	struct decimal d;

	return read_decimal(s, &d) && d.scale >= 0 && scaled(d, value);
}
