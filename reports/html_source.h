/*
 * html_source.h - the source lines around the hot ones, for reports that may carry them.
 * Layer L5. Reads a sealed model and the files that its functions name.
 */
#ifndef MEW_HTML_SOURCE_H
#define MEW_HTML_SOURCE_H

#include "model.h"
#include "writer.h"

#define MEW_HTML_SOURCE_AROUND 8              /* lines before and behind a hot one */
#define MEW_HTML_SOURCE_BYTES (256u * 1024u)  /* of text in a report, at most */

/*
 * Write {"file name": [[first line, ["text", ...]], ...], ...} as JSON: the lines that stacks of samples and
 * allocations go through, the heaviest first until the room is full, each with what stands around it. Files that cannot
 * be read (they lie elsewhere, or are no regular files) are left out.
 *
 * Returns  0, or -1 without memory; what the writer meets stays in the writer
 * Context  opens files, allocates
 */
int mew_html_source(struct mew_writer *w, const struct mew_model *m);

#endif
