/*
 * html_tree.h - the functions of a report and the call trees merged from its stacks, in the columns the viewer reads.
 * Layer L5. Reads a sealed model.
 */
#ifndef MEW_HTML_TREE_H
#define MEW_HTML_TREE_H

#include "html_pack.h"
#include "model.h"

struct mew_html_function { /* one name in the flame graphs; texts are borrowed from the model or from the table */
	const char *name, *file;
	uint32_t line;   /* of the definition; 0 unknown */
	uint32_t module; /* MEW_NO_MODULE: none */
	const char *why; /* reason for a missing name; NULL for a real one */
};

struct mew_html_functions { /* ascending by name, file, line and module, so that two reports are easy to compare */
	struct mew_html_function *all;
	size_t n;
	uint32_t *of_function; /* place in `all` of a model's function; UINT32_MAX: not on any stack */
	uint32_t *of_location; /* the same for locations without lines */
	uint32_t missing;      /* place in `all` of "[no stack]" */
	char *names;           /* memory of the names made here */
};

/*
 * Collect the functions on all stacks of all cases.
 *
 * f        filled; given back by mew_html_functions_fini(), after a failure too
 * Returns  0, or -1 without memory
 */
int mew_html_functions_init(struct mew_html_functions *f, const struct mew_model *m);
void mew_html_functions_fini(struct mew_html_functions *f);

/*
 * Merge the stacks of a case into one tree and append its columns to `out`, frames in preorder, all as numbers:
 *
 *   count of frames, count of metrics
 *   per frame  how many levels it lies above the child of the frame before it (0: it is that child)
 *   per frame  2 * function + 1 if it was inlined into its parent
 *   per frame  line in the function where it calls or costs: 0 unknown or more than one, 1 + 2 * d for d lines behind
 *              the definition, 2 * d for d lines before it
 *   per metric, per frame  its own value, without its children
 *
 * Metrics are nanoseconds and samples for MEW_KIND_CPU; bytes at the peak, bytes in all, allocations and bytes still
 * alive at the end for MEW_KIND_MEMORY, where frames are told apart by their line as well.
 *
 * Returns  0, or -1 without memory
 */
int mew_html_tree(struct mew_pack *out, const struct mew_html_functions *f, const struct mew_model *m,
		  const struct mew_case *c, enum mew_kind kind);

#endif
