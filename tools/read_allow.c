/*
 * read_allow.c - allow rules out of a JSON file, trusting nothing.
 * Layer L6, in the command only.
 */
#include "config.h"

#include "read_allow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define MOST_BYTES ((size_t)1 << 20)

static int damaged(struct mew_error *err, const char *path, size_t i, const char *what)
{
	return mew_error_set(err, MEW_E_INVALID, "%.80s: rule %zu: %.120s", path, i + 1, what);
}

/* A text under `key`, or NULL; false when it is something else. */
static bool take(const json_t *rule, const char *key, const char **out)
{
	const json_t *value = json_object_get(rule, key);

	*out = json_string_value(value);
	return value == NULL || json_is_string(value);
}

static int read_rule(const char *path, size_t i, json_t *rule, struct mew_allow *out, struct mew_error *err)
{
	static const char *const known[] = { "cases", "metric", "limit", "reason", "expires" };
	const char *limit, *key;
	json_t *value;

	if (!json_is_object(rule))
		return damaged(err, path, i, "it is no object");
	json_object_foreach(rule, key, value) {
		bool is_known = false;

		for (size_t k = 0; k < MEW_COUNTOF(known); k++)
			is_known |= strcmp(key, known[k]) == 0;
		if (!is_known)
			return damaged(err, path, i,
				       "a rule has cases, metric, limit, reason and expires, nothing else");
	}
	if (!take(rule, "cases", &out->cases) || !take(rule, "metric", &out->metric) || !take(rule, "limit", &limit) ||
	    !take(rule, "reason", &out->reason) || !take(rule, "expires", &out->expires))
		return damaged(err, path, i, "all its members are texts");
	if (limit == NULL || !mew_limit_parse(limit, &out->limit))
		return damaged(err, path, i, "\"limit\" is not like \"0\", \"5%\" or \"1|5%\"");
	return MEW_OK;
}

/* An empty or too large file is as wrong as one that is not there. */
static json_t *parse(const char *path, struct mew_error *err)
{
	FILE *from = fopen(path, "re");
	char *text = malloc(MOST_BYTES);
	json_error_t where;
	json_t *tree = NULL;
	size_t bytes;

	if (from == NULL || text == NULL) {
		(void)mew_error_errno(err, from == NULL ? MEW_E_IO : MEW_E_NOMEM,
				      "cannot read %.80s; check the name and that you may read it", path);
	} else {
		bytes = fread(text, 1, MOST_BYTES, from);
		if (ferror(from) != 0)
			(void)mew_error_errno(err, MEW_E_IO, "cannot read %.80s; check that it is a file you may read",
					      path);
		else if (bytes == MOST_BYTES)
			(void)mew_error_set(err, MEW_E_INVALID, "%.80s is too large for a list of allow rules", path);
		else if ((tree = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where)) == NULL)
			(void)mew_error_set(err, MEW_E_INVALID,
					    "%.80s is not sound JSON: line %d, column %d: %.60s; mend it there",
					    path, where.line, where.column, where.text);
	}
	free(text);
	if (from != NULL)
		(void)fclose(from);
	return tree;
}

int mew_allow_read(const char *path, struct mew_allow_list *out, struct mew_error *err)
{
	struct mew_error cause = { 0 };
	int status = MEW_OK;

	*out = (struct mew_allow_list){ .tree = parse(path, &cause) };
	if (out->tree == NULL) {
		*err = cause;
		return cause.status;
	}
	if (!json_is_array(out->tree))
		return mew_error_set(err, MEW_E_INVALID,
				     "%.80s is not a list of allow rules: begin it with [ and a rule in { }", path);
	out->list = calloc(json_array_size(out->tree) + 1, sizeof *out->list);
	if (out->list == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "%.80s: no memory for its rules", path);
	for (; status == MEW_OK && out->n < json_array_size(out->tree); out->n++)
		status = read_rule(path, out->n, json_array_get(out->tree, out->n), &out->list[out->n], err);
	return status;
}

void mew_allow_free(struct mew_allow_list *list)
{
	free(list->list);
	json_decref(list->tree);
}
