/*
 * html_tree.h - the call trees merged from the stacks of a case, in the columns the viewer reads.
 * Layer L5. Reads a sealed model.
 */
#ifndef MEW_HTML_TREE_H
#define MEW_HTML_TREE_H

#include "functions.h"
#include "model.h"
#include "pack.h"

/*
 * Merge the stacks of a case into one tree and append its columns to `out`, frames in preorder, all as numbers:
 *
 *   count of frames, count of metrics
 *   per frame  how many levels it lies above the child of the frame before it (0: it is that child)
 *   per frame  2 * function + 1 if it was inlined into its parent
 *   per frame  line in the function where it calls or costs: 0 unknown or more than one, 1 + 2 * d for d lines behind
 *              the definition, 2 * d for d lines before it
 *   per metric, per frame  its own value, without its children
 *   for MEW_KIND_CPU, the samples in the order they were taken: count of threads, and per thread its number, count of
 *   samples, per sample the change of its frame's place in preorder (from 1; 2 * d for d further on, 2 * d - 1 for d
 *   back), per sample its weight
 *
 * Metrics are nanoseconds and samples for MEW_KIND_CPU; bytes at the peak, bytes in all, allocations and bytes still
 * alive at the end for MEW_KIND_MEMORY, where frames are told apart by their line as well.
 *
 * Returns  0, or -1 without memory
 */
int mew_html_tree(struct mew_pack *out, const struct mew_shown_functions *f, const struct mew_model *m,
		  const struct mew_case *c, enum mew_kind kind);

#endif
