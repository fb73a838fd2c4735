/*
 * json_list.c - brackets, quotes and commas of a JSON text, in one pass and without memory.
 * Layer L6, in the command only. Any thread.
 */
#include "config.h"

#include "json_list.h"

#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_blanks(const char *text, size_t at, size_t end)
{
	while (at < end && is_blank(text[at]))
		at++;
	return at;
}

/* From an opening quote to behind the closing one, or to the end. */
static size_t skip_text(const char *text, size_t at, size_t end)
{
	for (at++; at < end && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at < end ? at + 1 : end;
}

/* To the comma or bracket that ends a value, or to the end. */
static size_t skip_value(const char *text, size_t at, size_t end)
{
	size_t depth = 0;

	while (at < end) {
		char c = text[at];

		if (depth == 0 && (c == ',' || c == ']' || c == '}'))
			return at;
		if (c == '"') {
			at = skip_text(text, at, end);
			continue;
		}
		depth += c == '[' || c == '{';
		depth -= c == ']' || c == '}'; /* never below zero: that returned */
		at++;
	}
	return end;
}

/* Without the blanks at its end. */
static size_t trimmed(const char *text, size_t from, size_t to)
{
	while (to > from && is_blank(text[to - 1]))
		to--;
	return to;
}

bool mew_json_find_list(const char *text, size_t bytes, const char *key, struct mew_json_span *list)
{
	size_t at = skip_blanks(text, 0, bytes), length = strlen(key);
	bool found = false;

	if (at == bytes || text[at] != '{')
		return false;
	do {
		size_t name = skip_blanks(text, at + 1, bytes), value, to;
		bool is_it;

		if (name == bytes || text[name] != '"')
			return false;
		at = skip_text(text, name, bytes);
		is_it = at - name == length + 2 && memcmp(text + name + 1, key, length) == 0;
		at = skip_blanks(text, at, bytes);
		if (at == bytes || text[at] != ':')
			return false;
		value = skip_blanks(text, at + 1, bytes);
		at = skip_value(text, value, bytes);
		to = trimmed(text, value, at);
		if (is_it) {
			*list = (struct mew_json_span){ value, to };
			found = to - value >= 2 && text[value] == '[' && text[to - 1] == ']';
		}
	} while (at < bytes && text[at] == ',');
	return found && at < bytes && text[at] == '}';
}

bool mew_json_next_item(const char *text, const struct mew_json_span *list, size_t *at, struct mew_json_span *item)
{
	size_t end = list->to - 1;

	if (*at >= end || (*at == list->from && skip_blanks(text, *at + 1, end) == end))
		return false;
	item->from = *at + 1;
	item->to = skip_value(text, item->from, end);
	*at = item->to;
	return true;
}
