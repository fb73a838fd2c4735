/*
 * allocator_list.h - the allocators that --allocator names, and the files they are in.
 * Layer L4. The command's thread.
 */
#ifndef MEW_ALLOCATOR_LIST_H
#define MEW_ALLOCATOR_LIST_H

#include "base.h"
#include "error.h"

#define MEW_ALLOCATORS_MAX 16

struct mew_allocators {
	struct mew_named_allocator {
		char *name; /* as asked for; of a path the file's name */
		char *path; /* absolute */
	} list[MEW_ALLOCATORS_MAX];
	size_t n;
};

/*
 * Find the files. "system" is the C library's; a word with a slash is the path of a shared library.
 *
 * list     names and paths, separated by commas
 * Returns  MEW_OK; MEW_E_INVALID for an unknown, repeated or empty name; MEW_E_UNSUPPORTED, with the package to install,
 *          for one that is not here; MEW_E_NOMEM. mew_allocators_fini() is due in any case
 */
int mew_allocators_find(struct mew_allocators *a, const char *list, struct mew_error *err);
void mew_allocators_fini(struct mew_allocators *a);

#endif
