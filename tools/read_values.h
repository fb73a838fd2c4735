/*
 * read_values.h - single values out of a JSON tree, checked.
 * Layer L6. Private to the reader of results (read_json.c, read_case.c).
 *
 * Every function that returns bool returns false when the value is not what it must be, or when memory ran out; then
 * the reader's status and error are set, once, and nothing more is to be read. Texts belong to the tree.
 */
#ifndef MEW_READ_VALUES_H
#define MEW_READ_VALUES_H

#include <jansson.h>

#include "base.h"
#include "model.h"

struct mew_numbers { /* of a list in the file, as the model numbers its things: equal things share a number there */
	uint32_t *list;
	size_t n;
};

struct mew_reader {
	const char *name; /* of the file, borrowed */
	char where[96];   /* the place in it: "case zlib/inflate", "location 17" */
	struct mew_model *model;
	struct mew_error *err; /* borrowed; may be NULL */
	int status;            /* of the first thing that went wrong */
	struct mew_numbers modules, functions, locations, stacks;
};

/* Say what is wrong at r->where; return false, so that `return mew_read_damaged(...)` ends a step. */
bool mew_read_damaged(struct mew_reader *r, const char *what, const char *must);
bool mew_read_no_memory(struct mew_reader *r);

/* Missing or null. */
bool mew_read_none(const json_t *value);

/* A whole number, as a number or as a text of digits; `what` names it in the error. */
bool mew_read_u64(struct mew_reader *r, const json_t *value, const char *what, uint64_t *out);
bool mew_read_u32(struct mew_reader *r, const json_t *value, const char *what, uint32_t *out);

/* The model's number of the thing that value points to in another list of the file; UINT32_MAX for null, where allowed.
 */
bool mew_read_index(struct mew_reader *r, const json_t *value, const char *what, const struct mew_numbers *into,
		    bool none_allowed, uint32_t *out);

/* Members that must be there. */
bool mew_read_member_u64(struct mew_reader *r, const json_t *object, const char *key, uint64_t *out);
bool mew_read_member_u32(struct mew_reader *r, const json_t *object, const char *key, uint32_t *out);
bool mew_read_member_f64(struct mew_reader *r, const json_t *object, const char *key, double *out);
bool mew_read_needed_text(struct mew_reader *r, const json_t *object, const char *key, const char **out);
bool mew_read_phase(struct mew_reader *r, const json_t *object, int *out);  /* "phase" */
bool mew_read_status(struct mew_reader *r, const json_t *object, int *out); /* "status" */

/* Members that may be missing or null: *out is NULL then. The copied text is the model's. */
bool mew_read_member_text(struct mew_reader *r, const json_t *object, const char *key, const char **out);
bool mew_read_copied_text(struct mew_reader *r, const json_t *object, const char *key, const char **out);
bool mew_read_member_list(struct mew_reader *r, const json_t *object, const char *key, const json_t **out);
bool mew_read_member_object(struct mew_reader *r, const json_t *object, const char *key, json_t **out);

#endif
