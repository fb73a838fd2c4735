/*
 * read_case.h - one case out of a JSON tree.
 * Layer L6. Private to the reader of results.
 */
#ifndef MEW_READ_CASE_H
#define MEW_READ_CASE_H

#include "read_values.h"

/* Add the case that `of` describes to the model; the stacks must have been read. Returns false when r->status is set.
 */
bool mew_read_case(struct mew_reader *r, const json_t *of);

#endif
