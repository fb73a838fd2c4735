/*
 * entries.h - the catalogue: entries flattened into cases, every name checked.
 * Layer L4.
 */
#ifndef MEW_ENTRIES_H
#define MEW_ENTRIES_H

#include "base.h"
#include "mew.h"

struct mew_item { /* one case */
	const struct mew_entry *entry; /* borrowed */
	size_t case_index;
	const char *label;             /* NULL without cases; borrowed from the entry */
	char *key;                     /* owned */
};

struct mew_catalogue {
	struct mew_item *items;
	size_t n;
};

/*
 * Check all names of all entries, then list their cases; entries with `after` come behind what they name.
 *
 * entries  borrowed for the life of the catalogue; ended by {0}
 * Returns  MEW_OK; MEW_E_INVALID naming the entry and what is wrong with it; MEW_E_NOMEM. On failure *out is empty.
 */
int mew_catalogue_init(struct mew_catalogue *out, const struct mew_entry *entries, struct mew_error *err);
void mew_catalogue_fini(struct mew_catalogue *c);

/* The list that MEW_BENCHMARK made; NULL when it is empty. */
const struct mew_registration_ *mew_registrations(void);

/* Hooks that MEW_HOOK registered; NULL when there is none of that name. */
const struct mew_hook *mew_hook_find(const char *name);
/* Their names, comma-separated, into buffer. */
void mew_hook_names(char *buffer, size_t size);

#endif
