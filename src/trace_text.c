/*
 * trace_text.c - see trace_text.h.
 * Layer L2. Outside windows; names are interned under a lock.
 */
#include "config.h"

#include "trace_text.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mew/trace.h"
#include "trace_log.h"

#define STRING_MAX 1000u

void mew_trace_text_add(struct mew_trace_text *t, const char *format, ...)
{
	size_t room = sizeof t->data - t->used;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->data + t->used, room, format, ap);
	va_end(ap);
	if (n > 0)
		t->used += (size_t)n < room ? (size_t)n : room - 1;
}

size_t mew_trace_utf8(const unsigned char *p, size_t left)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 :
		   p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;

	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] >= 0x90))
		return 0; /* overlong, a surrogate, or beyond the last character */
	return n;
}

/* Writes the escaped text into `out`; returns its length, less than size. */
static size_t escape(char *out, size_t size, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t left = strlen(text), n = 0;

	while (left > 0 && n + 8 < size) {
		size_t length = mew_trace_utf8(p, left);

		if (length == 0) {
			n += (size_t)snprintf(out + n, size - n, "\\ufffd");
			length = 1;
		} else if (*p < 0x20 || *p == 0x7f) {
			n += (size_t)snprintf(out + n, size - n, "\\u%04x", *p);
		} else {
			if (*p == '"' || *p == '\\')
				out[n++] = '\\';
			memcpy(out + n, p, length);
			n += length;
		}
		p += length;
		left -= length;
	}
	out[n] = '\0';
	return n;
}

void mew_trace_text_string(struct mew_trace_text *t, const char *text)
{
	char escaped[STRING_MAX + 8];

	(void)escape(escaped, sizeof escaped, text);
	mew_trace_text_add(t, "\"%s\"", escaped);
}

/* --- arguments -------------------------------------------------------------------------------------------------- */

static void append(struct mew_trace_args *a, const char *key, const char *value, const char *quote)
{
	size_t room = sizeof a->text - a->used;
	int n = snprintf(a->text + a->used, room, "%s\"%s\":%s%s%s", a->used > 0 ? "," : "", key, quote, value, quote);

	if (n > 0 && (size_t)n < room)
		a->used += (size_t)n;
	a->text[a->used] = '\0';
}

void mew_trace_arg_text(struct mew_trace_args *a, const char *key, const char *value)
{
	char escaped[600];

	if (value == NULL)
		return;
	(void)escape(escaped, sizeof escaped, value);
	append(a, key, escaped, "\"");
}

void mew_trace_arg_number(struct mew_trace_args *a, const char *key, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
	append(a, key, digits, "");
}

void mew_trace_arg_ms(struct mew_trace_args *a, const char *key, uint64_t ns)
{
	char digits[32];

	(void)snprintf(digits, sizeof digits, "%llu.%03u", (unsigned long long)(ns / 1000000),
		       (unsigned)(ns / 1000 % 1000));
	append(a, key, digits, "");
}

/* --- names ------------------------------------------------------------------------------------------------------ */

struct name {
	struct name *next;
	char text[];
};

const char *mew_trace_name(const char *text)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct name *names[256];
	size_t n = strlen(text);
	unsigned hash = 2166136261u;
	struct name *found;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	(void)pthread_mutex_lock(&lock);
	for (found = names[hash % 256]; found != NULL && strcmp(found->text, text) != 0; found = found->next)
		;
	if (found == NULL && (found = malloc(sizeof *found + n + 1)) != NULL) {
		memcpy(found->text, text, n + 1);
		found->next = names[hash % 256];
		names[hash % 256] = found;
	}
	(void)pthread_mutex_unlock(&lock);
	return found != NULL ? found->text : "(no memory for its name)";
}
