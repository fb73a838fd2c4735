/*
 * functions.h - the functions of a report, each once and in an order of their own.
 * Layer L5. Reads a sealed model.
 */
#ifndef MEW_FUNCTIONS_H
#define MEW_FUNCTIONS_H

#include "model.h"

struct mew_shown_function { /* one name in a report; texts are borrowed from the model or from the table */
	const char *name, *file;
	uint32_t line;   /* of the definition; 0 unknown */
	uint32_t module; /* MEW_NO_MODULE: none */
	const char *why; /* reason for a missing name; NULL for a real one */
};

struct mew_shown_functions { /* ascending by name, file, line and module, so that two reports are easy to compare */
	struct mew_shown_function *all;
	size_t n;
	uint32_t *of_function; /* place in `all` of a model's function; UINT32_MAX: not on any stack */
	uint32_t *of_location; /* the same for locations without lines */
	uint32_t missing;      /* place in `all` of "[no stack]" */
	char *names;           /* memory of the names made here */
};

/*
 * Collect the functions on all stacks of a case, or of all cases.
 *
 * f        filled; given back by mew_shown_functions_fini(), after a failure too
 * only     borrowed; NULL: all cases
 * Returns  0, or -1 without memory
 */
int mew_shown_functions_init(struct mew_shown_functions *f, const struct mew_model *m, const struct mew_case *only);
void mew_shown_functions_fini(struct mew_shown_functions *f);

#endif
