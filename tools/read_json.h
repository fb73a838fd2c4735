/*
 * read_json.h - read results that the json report wrote back into a model.
 * Layer L6. The command alone reads JSON (by jansson); the library only writes it.
 */
#ifndef MEW_READ_JSON_H
#define MEW_READ_JSON_H

#include "base.h"
#include "model.h"

/*
 * Read a .mew.json file. Nothing in it is trusted: types, ranges, lengths and every number that points into another
 * list are checked, so that a sealed model never points outside itself. Members that are not known are passed over.
 *
 * path     borrowed
 * Returns  a sealed model, taken by the caller who calls mew_model_free(); NULL with err filled
 * Errors   MEW_E_IO (cannot be read), MEW_E_INVALID (no JSON, no mew result, a newer schema, damaged), MEW_E_NOMEM;
 *          the text names the file, the place in it and the remedy
 * Context  any thread
 */
struct mew_model *mew_read_json(const char *path, struct mew_error *err);

/* The same from memory; `name` stands for the file in messages. */
struct mew_model *mew_read_json_text(const char *name, const char *text, size_t bytes, struct mew_error *err);

#endif
