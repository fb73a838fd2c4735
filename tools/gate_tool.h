/*
 * gate_tool.h - which file a command line really runs, and whether it is still the same.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GATE_TOOL_H
#define MEW_GATE_TOOL_H

#include "base.h"
#include "build_id.h"
#include "mew.h"

#include <limits.h>
#include <sys/stat.h>

struct mew_tool {
	char path[PATH_MAX]; /* without links, behind shims; "": not looked for */
	uint64_t bytes, hash;
	char build_id[MEW_BUILD_ID_TEXT]; /* "": it has none */
	struct stat seen;    /* spares the hash while nothing moved */
};

/*
 * Find the program that is the first word of a command line: by PATH, through symbolic links, and through shims (a
 * small script that does no more than `exec FILE "$@"`, as version managers have them).
 *
 * Returns  MEW_OK; MEW_E_INVALID or MEW_E_IO with a sentence that names the word
 */
int mew_tool_find(const char *line, struct mew_tool *out, struct mew_error *err);

/* The same for a file that is named by its path. */
int mew_tool_file(const char *path, struct mew_tool *out, struct mew_error *err);

/*
 * Is it the same file with the same contents? Otherwise the error says what changed. Returns MEW_OK or MEW_E_INVALID.
 */
int mew_tool_check(const char *line, struct mew_tool *tool, struct mew_error *err);

#endif
