/*
 * select.h - which cases a user asked for: -k, -F, -t.
 * Layer L4.
 */
#ifndef MEW_SELECT_H
#define MEW_SELECT_H

#include "base.h"
#include "mew.h"

#include <regex.h>

struct mew_select {
	bool has_pattern;
	regex_t pattern;         /* extended, on the key, on the label and on "name[label]" */
	const char *literal;     /* borrowed; part of the same three; NULL for any */
	const char *const *tags; /* borrowed; one of them; none means any */
	size_t ntags;
};

/* pattern and literal may be NULL. Returns MEW_OK, or MEW_E_INVALID with the pattern's fault. */
int mew_select_init(struct mew_select *s, const char *pattern, const char *literal, const char *const *tags,
		    size_t ntags, struct mew_error *err);
void mew_select_fini(struct mew_select *s);
/* label and tags may be NULL. A case without tags never matches a tag. */
bool mew_select_matches(const struct mew_select *s, const char *key, const char *label, const char *tags);

#endif
