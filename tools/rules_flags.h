/*
 * rules_flags.h - the flags that say what is judged and by which rules, for the commands that judge.
 * Layer L6. A command has a table of its own flags; this one's ids lie above them.
 */
#ifndef MEW_RULES_FLAGS_H
#define MEW_RULES_FLAGS_H

#include "read_allow.h"
#include "select.h"
#include "verdict.h"

#include <getopt.h>

#define MEW_RULES_LIST_MAX 32

struct mew_flag {
	int id;           /* its letter; from 256 on for one without, from 512 on for those of this file */
	const char *name; /* NULL: letter only */
	int argument;     /* as in struct option */
	const char *shown, *help;
};

struct mew_rules_flags {
	struct mew_rules rules; /* borrows from the rest of this */
	struct mew_metric_limit limits[MEW_RULES_LIST_MAX];
	struct mew_allow_list allows;
	const char *allow_path, *pattern, *literal;
	const char *tags[MEW_RULES_LIST_MAX];
	size_t ntags;
	bool seed_given;        /* rules.resampling.seed is the user's */
	struct mew_select select;
	bool selects;           /* select was filled */
	char today[16];
};

/* The table; *count is returned. */
const struct mew_flag *mew_rules_flags(size_t *count);

/* "  SHOWN   HELP" for each, on standard output; `width` of the first column. */
void mew_flags_help(const struct mew_flag *flags, size_t n, int width);

#define MEW_FLAGS_MAX 64

/*
 * Append the long flags of a table.
 *
 * out      room for MEW_FLAGS_MAX; the caller's zero entry ends it
 * used     entries before; the number after is returned
 */
size_t mew_flags_options(const struct mew_flag *flags, size_t n, struct option *out, size_t used);

/*
 * Take a flag that getopt_long() gave. A limit's text is cut at its equals sign.
 * Returns  MEW_EXIT_FINE; MEW_EXIT_USAGE after a line on standard error; -1: it is none of these flags
 */
int mew_rules_flags_apply(struct mew_rules_flags *f, int id, char *value);

/*
 * When all flags are read: read the allow rules, check the rules, make the selection.
 *
 * f        mew_rules_flags_fini() is due in any case
 * Returns  MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line on standard error that names the flag
 */
int mew_rules_flags_complete(struct mew_rules_flags *f);
void mew_rules_flags_fini(struct mew_rules_flags *f);

#endif
