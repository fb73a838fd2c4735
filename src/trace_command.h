/*
 * trace_command.h - the commands of a traced run: how long each ran, how it ended, and what of its line may be shown.
 * Layer L2. Outside windows; the thread that starts and reaps them.
 */
#ifndef MEW_TRACE_COMMAND_H
#define MEW_TRACE_COMMAND_H

#include "base.h"

/*
 * Command lines may hold what must not leave the machine: none is shown until an expression says what to hide.
 *
 * expression  an extended regular expression; what it matches becomes "***". NULL: no line is shown from now on
 * Returns     false when it is no such expression
 */
bool mew_trace_redact(const char *expression);

/* `line` as it may be shown; the caller frees it. NULL: it may not, or there is no memory. */
char *mew_trace_shown_line(const char *line);

/*
 * The name of a program as it may be shown: always, but for what the expression hides. The caller frees it; NULL
 * without memory.
 */
char *mew_trace_shown_name(const char *name);

/*
 * A command from start_ns until end_ns, on a line of its own, since several run at once. Nothing happens without a
 * trace.
 *
 * program      its file; the last part of the path is the name shown
 * line         with its arguments
 * wait_status  of waitpid()
 */
void mew_trace_command(const char *program, const char *line, uint64_t start_ns, uint64_t end_ns, int wait_status);

#endif
