/*
 * read_json.c - from a file of JSON to a sealed model, trusting nothing: what is wrong ends the reading.
 * Layer L6, in the command only. One thread; the format is described above its writer, reports/json.c.
 */
#include "config.h"

#include "read_json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json_list.h"
#include "read_case.h"
#include "read_values.h"

#define SCHEMA 1
#define MOST_BYTES ((size_t)4 << 30) /* held in memory whole */
#define FIRST_READ ((size_t)1 << 16)

/* --- modules, functions, locations, stacks ---------------------------------------------------------------------- */

static void here(struct mew_reader *r, const char *what, size_t i)
{
	(void)snprintf(r->where, sizeof r->where, "%s %zu", what, i);
}


typedef bool read_item_fn(struct mew_reader *r, const json_t *item, uint32_t *number);

/* Read a list of things that others point to, and remember the model's number of each. */
static bool read_list(struct mew_reader *r, const json_t *top, const char *key, const char *what,
		      struct mew_numbers *numbers, read_item_fn *read_item)
{
	const json_t *list;
	size_t n;

	(void)snprintf(r->where, sizeof r->where, "the file");
	if (!mew_read_member_list(r, top, key, &list))
		return false;
	n = json_array_size(list);
	numbers->list = calloc(n + 1, sizeof *numbers->list);
	if (numbers->list == NULL)
		return mew_read_no_memory(r);
	for (size_t i = 0; i < n; i++) {
		here(r, what, i);
		if (!read_item(r, json_array_get(list, i), &numbers->list[i]))
			return false;
		if (numbers->list[i] == UINT32_MAX)
			return mew_read_no_memory(r);
	}
	numbers->n = n;
	return true;
}

static bool read_module(struct mew_reader *r, const json_t *item, uint32_t *number)
{
	const char *path, *build_id;
	uint64_t size;

	if (!mew_read_needed_text(r, item, "path", &path) || !mew_read_needed_text(r, item, "build_id", &build_id) ||
	    !mew_read_member_u64(r, item, "size", &size))
		return false;
	*number = mew_model_module(r->model, path, build_id, size, json_is_true(json_object_get(item, "gone")));
	return true;
}

static bool read_function(struct mew_reader *r, const json_t *item, uint32_t *number)
{
	const char *name, *file;
	uint32_t line, module;

	if (!mew_read_needed_text(r, item, "name", &name) || !mew_read_needed_text(r, item, "file", &file) ||
	    !mew_read_member_u32(r, item, "line", &line) ||
	    !mew_read_index(r, json_object_get(item, "module"), "module", &r->modules, true, &module))
		return false;
	*number = mew_model_function(r->model, name, file, line, module);
	return true;
}

static bool read_lines(struct mew_reader *r, const json_t *list, uint32_t location)
{
	size_t n = json_array_size(list);
	struct mew_line *lines = calloc(n + 1, sizeof *lines);
	bool fine = lines != NULL;

	for (size_t i = 0; fine && i < n; i++) {
		const json_t *pair = json_array_get(list, i);

		fine = mew_read_index(r, json_array_get(pair, 0), "lines", &r->functions, false, &lines[i].function) &&
		       mew_read_u32(r, json_array_get(pair, 1), "lines", &lines[i].line);
	}
	if (lines == NULL || (fine && n > 0 && mew_model_set_lines(r->model, location, lines, n) != 0))
		fine = mew_read_no_memory(r);
	free(lines);
	return fine;
}

static bool read_address(struct mew_reader *r, const char *member, const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 16);
	if (strncmp(text, "0x", 2) != 0 || end == text + 2 || *end != '\0' || errno != 0)
		return mew_read_damaged(r, member, "a number like \"0x12ab\"");
	return true;
}

static bool read_location(struct mew_reader *r, const json_t *item, uint32_t *number)
{
	const char *text, *why;
	const json_t *lines;
	uint64_t offset, start = 0;
	uint32_t module;

	if (!mew_read_index(r, json_object_get(item, "module"), "module", &r->modules, true, &module) ||
	    !mew_read_needed_text(r, item, "offset", &text) || !mew_read_member_list(r, item, "lines", &lines) ||
	    !mew_read_copied_text(r, item, "why", &why))
		return false;
	if (!read_address(r, "offset", text, &offset) || !mew_read_copied_text(r, item, "start", &text) ||
	    (text != NULL && !read_address(r, "start", text, &start)))
		return false;
	*number = mew_model_location(r->model, module, offset);
	if (*number == UINT32_MAX)
		return true;
	r->model->locations[*number].why = why;
	r->model->locations[*number].start = start;
	return read_lines(r, lines, *number);
}

static bool read_stack(struct mew_reader *r, const json_t *item, uint32_t *number)
{
	size_t n = json_array_size(item);
	uint32_t *frames;
	bool fine = json_is_array(item);

	if (!fine)
		return mew_read_damaged(r, "stacks", "a list of lists");
	frames = calloc(n + 1, sizeof *frames);
	for (size_t i = 0; frames != NULL && fine && i < n; i++)
		fine = mew_read_index(r, json_array_get(item, i), "stacks", &r->locations, false, &frames[i]);
	if (frames == NULL)
		fine = mew_read_no_memory(r);
	else if (fine)
		*number = mew_model_stack(r->model, frames, n);
	free(frames);
	return fine;
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

static bool read_environment(struct mew_reader *r, const json_t *top)
{
	json_t *facts, *value;
	const char *name;

	if (!mew_read_member_object(r, top, "environment", &facts))
		return false;
	json_object_foreach(facts, name, value) {
		if (!json_is_string(value))
			return mew_read_damaged(r, name, "a text");
		if (mew_model_add_fact(r->model, name, json_string_value(value)) != 0)
			return mew_read_no_memory(r);
	}
	return true;
}

static bool read_grade(struct mew_reader *r, const json_t *top)
{
	const char *letter;
	json_t *grade;

	if (!mew_read_member_object(r, top, "grade", &grade) || grade == NULL)
		return r->status == MEW_OK;
	if (!mew_read_needed_text(r, grade, "letter", &letter))
		return false;
	if (letter[0] < 'A' || letter[0] > 'D' || letter[1] != '\0')
		return mew_read_damaged(r, "letter", "one of A, B, C, D");
	r->model->grade = letter[0];
	return mew_read_copied_text(r, grade, "reason", &r->model->grade_reason);
}

/* Ours, and not from the future? */
static bool read_schema(struct mew_reader *r, const json_t *top)
{
	const json_t *schema = json_object_get(top, "schema");

	if (json_is_integer(schema) && json_integer_value(schema) > SCHEMA && json_object_get(top, "mew") != NULL)
		r->status = mew_error_set(r->err, MEW_E_INVALID,
					  "%.80s was written by schema %lld, this mew reads up to %d: use a newer mew",
					  r->name, (long long)json_integer_value(schema), SCHEMA);
	else if (!json_is_integer(schema) || json_integer_value(schema) != SCHEMA ||
		 !json_is_array(json_object_get(top, "cases")))
		r->status = mew_error_set(r->err, MEW_E_INVALID,
					  "%.80s is not a mew result: it has no \"schema\" of mew's and no \"cases\"; "
					  "write one with --json", r->name);
	return r->status == MEW_OK;
}

static bool read_top(struct mew_reader *r, const json_t *top)
{
	const char *hooks;

	if (!read_schema(r, top))
		return false;
	(void)snprintf(r->where, sizeof r->where, "the file");
	if (!read_environment(r, top) || !read_grade(r, top) || !mew_read_copied_text(r, top, "hooks", &hooks))
		return false;
	if (hooks != NULL)
		r->model->hooks = hooks;
	return read_list(r, top, "modules", "module", &r->modules, read_module) &&
	       read_list(r, top, "functions", "function", &r->functions, read_function) &&
	       read_list(r, top, "locations", "location", &r->locations, read_location) &&
	       read_list(r, top, "stacks", "stack", &r->stacks, read_stack);
}

/* --- the text ---------------------------------------------------------------------------------------------------- */

static int lines_in(const char *text, size_t bytes)
{
	size_t n = 0;

	for (const char *p = text, *end = text + bytes; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		n++;
	return n < INT_MAX ? (int)n : INT_MAX;
}

/* A tree of a part of the text; `before`: the lines in front of it, for the error. */
static json_t *parse(struct mew_reader *r, const char *text, size_t bytes, int before)
{
	json_error_t where;
	json_t *top = json_loadb(text, bytes, JSON_DECODE_ANY, &where);

	if (top == NULL && (json_error_code(&where) == json_error_out_of_memory || where.text[0] == '\0'))
		(void)mew_read_no_memory(r);
	else if (top == NULL)
		r->status = mew_error_set(r->err, MEW_E_INVALID,
					  "%.80s is not sound JSON: line %d, column %d: %.60s; "
					  "was it cut short? measure again",
					  r->name, before + where.line, where.column, where.text);
	return top;
}

/* Everything but the cases, which point into it: the list is left empty, its line ends stay for the sake of errors. */
static json_t *parse_around(struct mew_reader *r, const char *text, size_t bytes, const struct mew_json_span *cases)
{
	size_t gap = (size_t)lines_in(text + cases->from, cases->to - cases->from);
	size_t used = cases->from + 1, rest = bytes - cases->to;
	char *around = malloc(used + gap + 1 + rest);
	json_t *top;

	if (around == NULL) {
		(void)mew_read_no_memory(r);
		return NULL;
	}
	memcpy(around, text, used);
	memset(around + used, '\n', gap);
	around[used + gap] = ']';
	memcpy(around + used + gap + 1, text + cases->to, rest);
	top = parse(r, around, used + gap + 1 + rest, 0);
	free(around);
	return top;
}

/* A tree of one case at a time: a tree of all would take twenty times the file. */
static bool read_cases(struct mew_reader *r, const char *text, const struct mew_json_span *cases)
{
	int lines = lines_in(text, cases->from);
	size_t at = cases->from, counted = at;
	struct mew_json_span item;
	bool fine = true;

	for (size_t i = 0; fine && mew_json_next_item(text, cases, &at, &item); i++) {
		json_t *one;

		lines += lines_in(text + counted, item.from - counted);
		counted = item.from;
		here(r, "case", i);
		one = parse(r, text + item.from, item.to - item.from, lines);
		fine = one != NULL && mew_read_case(r, one);
		json_decref(one);
	}
	return fine;
}

static void read_text(struct mew_reader *r, const char *text, size_t bytes)
{
	struct mew_json_span cases = { 0 };
	bool found = mew_json_find_list(text, bytes, "cases", &cases);
	json_t *top = found ? parse_around(r, text, bytes, &cases) : parse(r, text, bytes, 0);

	if (top != NULL && read_top(r, top) && !found)
		(void)mew_read_damaged(r, "cases", "a list under a name without escapes"); /* sound, but not found */
	else if (r->status == MEW_OK && read_cases(r, text, &cases))
		mew_model_seal(r->model);
	json_decref(top);
}

struct mew_model *mew_read_json_text(const char *name, const char *text, size_t bytes, struct mew_error *err)
{
	struct mew_reader r = { .name = name, .err = err, .status = MEW_OK, .model = mew_model_new() };

	if (r.model == NULL)
		(void)mew_read_no_memory(&r);
	else
		read_text(&r, text, bytes);
	if (r.status != MEW_OK) {
		mew_model_free(r.model);
		r.model = NULL;
	}
	free(r.modules.list);
	free(r.functions.list);
	free(r.locations.list);
	free(r.stacks.list);
	return r.model;
}

/* --- the file --------------------------------------------------------------------------------------------------- */

/* All of a stream. Taken by the caller; NULL with errno set. */
static char *slurp(FILE *from, size_t *bytes)
{
	size_t size = 0, used = 0;
	char *text = NULL;

	for (;;) {
		char *more;

		if (used == size) {
			size = size == 0 ? FIRST_READ : 2 * size;
			more = size > 2 * MOST_BYTES ? NULL : realloc(text, size);
			if (more == NULL) {
				free(text);
				errno = size > 2 * MOST_BYTES ? EFBIG : ENOMEM;
				return NULL;
			}
			text = more;
		}
		used += fread(text + used, 1, size - used, from);
		if (ferror(from) != 0) {
			free(text);
			return NULL;
		}
		if (feof(from) != 0)
			break;
	}
	*bytes = used;
	return text;
}

struct mew_model *mew_read_json(const char *path, struct mew_error *err)
{
	struct mew_model *m = NULL;
	char *text = NULL;
	size_t bytes = 0;
	FILE *from = fopen(path, "re");

	if (from != NULL) {
		text = slurp(from, &bytes);
		if (text == NULL && errno == 0)
			errno = EIO;
	}
	if (text == NULL)
		(void)mew_error_errno(err, MEW_E_IO,
				      "cannot read %.80s; check the name and that it is a file you may read", path);
	else
		m = mew_read_json_text(path, text, bytes, err);
	free(text);
	if (from != NULL)
		(void)fclose(from);
	return m;
}
