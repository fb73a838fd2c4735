/*
 * emit.h - JSON on a writer: commas, nesting and escaping are right by construction.
 * Layer L5. Output is valid UTF-8 (bad bytes become U+FFFD); numbers that are not finite become null.
 */
#ifndef MEW_EMIT_H
#define MEW_EMIT_H

#include "writer.h"

struct mew_json {
	struct mew_writer *w; /* borrowed */
	unsigned depth;
	uint64_t first;   /* bit per depth: nothing was written there yet */
	bool after_key;
	bool pretty;      /* one member a line, tabs, for the outer `pretty_depth` levels */
	unsigned pretty_depth;
};

void mew_json_init(struct mew_json *j, struct mew_writer *w, unsigned pretty_depth);
void mew_json_object(struct mew_json *j);
void mew_json_object_end(struct mew_json *j);
void mew_json_array(struct mew_json *j);
void mew_json_array_end(struct mew_json *j);
void mew_json_key(struct mew_json *j, const char *key);
void mew_json_string(struct mew_json *j, const char *text); /* NULL writes null */
void mew_json_u64(struct mew_json *j, uint64_t value);
void mew_json_i64(struct mew_json *j, int64_t value);
void mew_json_f64(struct mew_json *j, double value);
void mew_json_ms(struct mew_json *j, uint64_t ns); /* nanoseconds as exact decimal milliseconds, 12.345678 */
void mew_json_bool(struct mew_json *j, bool value);
void mew_json_null(struct mew_json *j);

/* A member of an object. A number that is not finite is left out; -0, which readers take for a whole number, is 0. */
void mew_json_put_text(struct mew_json *j, const char *key, const char *text);
void mew_json_put_some_text(struct mew_json *j, const char *key, const char *text); /* NULL and "" are left out */
void mew_json_put_u64(struct mew_json *j, const char *key, uint64_t value);
void mew_json_put_f64(struct mew_json *j, const char *key, double value);
void mew_json_put_bool(struct mew_json *j, const char *key, bool value);

/* Write text with JSON escapes and UTF-8 repair, without quotes. */
void mew_write_json_escaped(struct mew_writer *w, const char *text);

#endif
