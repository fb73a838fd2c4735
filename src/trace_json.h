/*
 * trace_json.h - a strict reader of JSON text in memory that builds nothing: values are slices of the text.
 * Layer L5. A trace is read event by event, and one that was cut off is read up to there; no tree reader does that. It
 * also keeps numbers as text, so that times stay exact.
 */
#ifndef MEW_TRACE_JSON_H
#define MEW_TRACE_JSON_H

#include "base.h"

struct mew_slice { /* of the text; .n is 0 where there is none */
	const char *p;
	size_t n;
};

enum mew_cursor_state { MEW_CURSOR_FINE, MEW_CURSOR_CUT, MEW_CURSOR_BAD };

struct mew_cursor {
	const char *p, *end;
	enum mew_cursor_state state; /* CUT: the text ends inside a value; BAD: it is no JSON at p */
};

/* The next character that is no blank, not taken; 0 at the end or after a fault. */
char mew_cursor_peek(struct mew_cursor *c);

/* Take this character; false, with the state set, when it is another one. */
bool mew_cursor_take(struct mew_cursor *c, char wanted);

/* Take one value of any kind, checked to its end; at most 64 deep. Returns its text, empty after a fault. */
struct mew_slice mew_cursor_value(struct mew_cursor *c);

/*
 * Walk over the members of an object, or the elements of an array: call before each one.
 *
 * first    true for the first call; cleared
 * key      returned: the name with its quotes; NULL for an array
 * Returns  true with the cursor at the value; false at the end (taken) or after a fault
 */
bool mew_cursor_next(struct mew_cursor *c, char closing, bool *first, struct mew_slice *key);

/* A member of an object, by name; empty when there is none, or when it is no object. */
struct mew_slice mew_slice_member(struct mew_slice object, const char *name);
/* Is the slice the string `text`? It must be written without escapes. */
bool mew_slice_is(struct mew_slice s, const char *text);
/* Nanoseconds of a number (or a string with one in it) of microseconds, rounded to the nearest. */
bool mew_slice_us(struct mew_slice s, int64_t *ns);
/* A whole number, or a string with one in it. */
bool mew_slice_i64(struct mew_slice s, int64_t *value);
bool mew_slice_is_number(struct mew_slice s);

#endif
