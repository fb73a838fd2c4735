/*
 * read_allow.h - allow rules out of a JSON file.
 * Layer L6.
 */
#ifndef MEW_READ_ALLOW_H
#define MEW_READ_ALLOW_H

#include <jansson.h>

#include "verdict.h"

struct mew_allow_list {
	struct mew_allow *list; /* its texts belong to the tree */
	size_t n;
	json_t *tree;
};

/*
 * Read a list of objects with cases, metric, limit, reason (all needed) and expires, all texts. A member of another
 * name is refused: "expire" would be a rule without an end.
 *
 * out      returned, freed by mew_allow_free() also after a failure; whether the rules are sound is mew_rules_check()'s
 * Returns  MEW_OK; MEW_E_IO, MEW_E_INVALID, MEW_E_NOMEM with a sentence that names the file and the rule
 */
int mew_allow_read(const char *path, struct mew_allow_list *out, struct mew_error *err);
void mew_allow_free(struct mew_allow_list *list);

#endif
