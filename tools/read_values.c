/*
 * read_values.c - single values out of a JSON tree, checked; the first that is wrong is described and ends the reading.
 * Layer L6, in the command only. One thread.
 */
#include "config.h"

#include "read_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define MOST_PHASES 64 /* more than there will be */

/* Returns false, so that `return mew_read_damaged(...)` ends a step. */
bool mew_read_damaged(struct mew_reader *r, const char *what, const char *must)
{
	if (r->status == MEW_OK)
		r->status = mew_error_set(r->err, MEW_E_INVALID,
					  "%.80s is damaged: %s: '%.40s' must be %s; measure again or "
					  "use another file",
					  r->name, r->where, what, must);
	return false;
}

bool mew_read_no_memory(struct mew_reader *r)
{
	if (r->status == MEW_OK)
		r->status = mew_error_set(r->err, MEW_E_NOMEM, "%.80s cannot be read: out of memory", r->name);
	return false;
}

/* --- single values ---------------------------------------------------------------------------------------------- */

bool mew_read_none(const json_t *value)
{
	return value == NULL || json_is_null(value);
}

bool mew_read_u64(struct mew_reader *r, const json_t *value, const char *what, uint64_t *out)
{
	const char *text;
	char *end;

	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*out = (uint64_t)json_integer_value(value);
		return true;
	}
	text = json_string_value(value);
	if (text == NULL || *text < '0' || *text > '9')
		return mew_read_damaged(r, what, "a whole number");
	errno = 0;
	*out = strtoull(text, &end, 10);
	return (*end == '\0' && errno == 0) || mew_read_damaged(r, what, "a whole number below 2^64");
}

bool mew_read_u32(struct mew_reader *r, const json_t *value, const char *what, uint32_t *out)
{
	uint64_t wide;

	if (!mew_read_u64(r, value, what, &wide))
		return false;
	*out = (uint32_t)wide;
	return wide <= UINT32_MAX || mew_read_damaged(r, what, "a whole number below 2^32");
}

bool mew_read_index(struct mew_reader *r, const json_t *value, const char *what, const struct mew_numbers *into,
		    bool none_allowed, uint32_t *out)
{
	uint64_t i;

	if (none_allowed && mew_read_none(value)) {
		*out = UINT32_MAX;
		return true;
	}
	if (!mew_read_u64(r, value, what, &i))
		return false;
	if (i >= into->n)
		return mew_read_damaged(r, what, "a number in its list");
	*out = into->list[i];
	return true;
}

bool mew_read_member_u64(struct mew_reader *r, const json_t *object, const char *key, uint64_t *out)
{
	return mew_read_u64(r, json_object_get(object, key), key, out);
}

bool mew_read_member_u32(struct mew_reader *r, const json_t *object, const char *key, uint32_t *out)
{
	return mew_read_u32(r, json_object_get(object, key), key, out);
}

bool mew_read_member_f64(struct mew_reader *r, const json_t *object, const char *key, double *out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_number_value(value);
	return json_is_number(value) || mew_read_damaged(r, key, "a number");
}

bool mew_read_member_text(struct mew_reader *r, const json_t *object, const char *key, const char **out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_string_value(value);
	return mew_read_none(value) || json_is_string(value) || mew_read_damaged(r, key, "a text or null");
}

bool mew_read_needed_text(struct mew_reader *r, const json_t *object, const char *key, const char **out)
{
	return mew_read_member_text(r, object, key, out) && (*out != NULL || mew_read_damaged(r, key, "a text"));
}

bool mew_read_copied_text(struct mew_reader *r, const json_t *object, const char *key, const char **out)
{
	const char *text;

	if (!mew_read_member_text(r, object, key, &text))
		return false;
	*out = mew_model_string(r->model, text);
	return text == NULL || *out != NULL || mew_read_no_memory(r);
}

bool mew_read_member_list(struct mew_reader *r, const json_t *object, const char *key, const json_t **out)
{
	*out = json_object_get(object, key);
	if (mew_read_none(*out))
		*out = NULL;
	return *out == NULL || json_is_array(*out) || mew_read_damaged(r, key, "a list");
}

bool mew_read_member_object(struct mew_reader *r, const json_t *object, const char *key, json_t **out)
{
	*out = json_object_get(object, key);
	if (mew_read_none(*out))
		*out = NULL;
	return *out == NULL || json_is_object(*out) || mew_read_damaged(r, key, "an object");
}

bool mew_read_phase(struct mew_reader *r, const json_t *object, int *out)
{
	const json_t *value = json_object_get(object, "phase");
	const char *text = json_string_value(value);

	if (json_is_integer(value)) {
		*out = (int)json_integer_value(value);
		return *out == json_integer_value(value) || mew_read_damaged(r, "phase", "a small number");
	}
	for (int phase = 1; text != NULL && phase < MOST_PHASES; phase++)
		if (mew_phase_name(phase) != NULL && strcmp(mew_phase_name(phase), text) == 0) {
			*out = phase;
			return true;
		}
	return mew_read_damaged(r, "phase", "a phase this mew knows");
}

bool mew_read_status(struct mew_reader *r, const json_t *object, int *out)
{
	const char *text;

	if (!mew_read_needed_text(r, object, "status", &text))
		return false;
	for (int status = MEW_OK; status >= MEW_E_BODY; status--)
		if (strcmp(mew_status_name(status), text) == 0) {
			*out = status;
			return true;
		}
	return mew_read_damaged(r, "status", "a status this mew knows");
}
