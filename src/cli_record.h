/*
 * cli_record.h - `mew record`: one command from its start to its end.
 * Layer L6.
 */
#ifndef MEW_CLI_RECORD_H
#define MEW_CLI_RECORD_H

#include "cli.h"

#define MEW_EXIT_CANNOT_RUN 126
#define MEW_EXIT_NOT_FOUND 127

/*
 * Run c->programs, which is a command with its arguments, and report on it. Tables go to standard error, for standard
 * output is the command's.
 *
 * Returns  the command's exit code, 128 and the number of the signal that ended it; MEW_EXIT_USAGE when it was not run,
 *          or when it went well and the report did not; MEW_EXIT_CANNOT_RUN, MEW_EXIT_NOT_FOUND as a shell does
 */
int mew_cli_record(struct mew_cli *c);

#endif
