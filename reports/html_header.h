/*
 * html_header.h - what the HTML report is made of, and the first line of its data.
 * Layer L5.
 */
#ifndef MEW_HTML_HEADER_H
#define MEW_HTML_HEADER_H

#include "html_tree.h"
#include "model.h"
#include "writer.h"

#define MEW_HTML_PARTS 2 /* the result, and the one it is compared with */

struct mew_html_part { /* one result of a report */
	const struct mew_model *model; /* sealed; borrowed */
	struct mew_shown_functions functions;
};

/* Has a case a line of data of this kind? */
bool mew_html_has_data(const struct mew_case *c, enum mew_kind kind);

/*
 * Write the header of `nparts` results, at most MEW_HTML_PARTS, as JSON.
 *
 * parts        borrowed; the second is the base
 * source_line  number of the line with the sources; 0: there is none
 * Returns      0, or -1 without memory; what the writer meets stays in the writer
 */
int mew_html_header(struct mew_writer *w, const struct mew_html_part *parts, size_t nparts, size_t source_line);

#endif
