/*
 * blame.h - what the places of a program add up to per function, and how such a function is called.
 * Layer L3. Shared by the analyses of samples and of the heap.
 */
#ifndef MEW_BLAME_H
#define MEW_BLAME_H

#include "model.h"

#define MEW_BLAME_SUMS 4

struct mew_blame { /* one (function, file) with what is blamed on it; strings are the model's */
	const char *name, *file; /* file "": told apart by module */
	uint32_t module, line;   /* line 0: unknown */
	uint64_t start;          /* of a function without a name; 0 for one with a name, or unknown */
	uint64_t sums[MEW_BLAME_SUMS];
};

/*
 * The function at a location, without sums.
 *
 * location  number into m->locations; m->nlocations or more: "unknown"
 * line      which of the functions that are inlined there, 0 the innermost; a location without any has but its module
 */
struct mew_blame mew_blame_at(const struct mew_model *m, size_t location, uint32_t line);

/* Order by name, file, module where there is no file, and start: 0 is the same function. For qsort(). */
int mew_blame_order(const void *a, const void *b);

/*
 * Sort by mew_blame_order() and add up what is equal in it. Of several definitions in one file (statics that a macro
 * makes) the one with the largest sums[0] lends its line.
 *
 * Returns  how many are left
 */
size_t mew_blame_merge(struct mew_blame *all, size_t n);

/*
 * "function (file.c:12)", "function (libfoo.so)", "libfoo.so+0x1234" or "function".
 *
 * longest  bytes of the function's name that are shown; INT_MAX for all
 * Returns  taken by the caller, who calls free(); NULL without memory
 */
char *mew_blame_label(const struct mew_model *m, const struct mew_blame *b, int longest);

#endif
