/*
 * terminal.h - what the terminal can show, and progress on it.
 * Layer L6. The command's thread.
 */
#ifndef MEW_TERMINAL_H
#define MEW_TERMINAL_H

#include "base.h"

enum mew_when { MEW_AUTO, MEW_ALWAYS, MEW_NEVER };

/* "auto", "always", "never"; false for anything else. */
bool mew_when_parse(const char *text, enum mew_when *out);

/* Columns for tables on this stream: COLUMNS, the terminal's, 80; 120 when the stream is not a terminal. */
int mew_terminal_width(int fd);
/* NO_COLOR wins over FORCE_COLOR over the stream being a terminal that is not "dumb". */
bool mew_terminal_color(enum mew_when when, int fd);
bool mew_terminal_utf8(void);

struct mew_progress {
	bool live;     /* a terminal: one line, redrawn; else one line per case under MEW_ALWAYS */
	bool lines;
	bool drawn;
	uint64_t start_ns, last_ns;
	const void *last_case;
	int last_pass;
};

void mew_progress_init(struct mew_progress *p, enum mew_when when);
/* At most ten times a second; never called inside a window. `done` of `total` steps are behind. */
void mew_progress_show(struct mew_progress *p, const void *id, const char *key, int pass, const char *pass_name,
		       size_t done, size_t total);
/* Take the line away. Due before any other output to standard error. */
void mew_progress_clear(struct mew_progress *p);

#endif
