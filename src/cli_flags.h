/*
 * cli_flags.h - the flags of `mew run`, `list`, `report` and `record`: one table for the parser, --help and completion.
 * Layer L6. The command's thread.
 */
#ifndef MEW_CLI_FLAGS_H
#define MEW_CLI_FLAGS_H

#include <getopt.h>

#include "cli.h"

enum mew_flag_id { /* letters stand for themselves */
	F_MIN_TIME = 256, F_MAX_TIME, F_MIN_WARMUP, F_REPETITIONS, F_PROCESSES, F_INTERLEAVE, F_LATENCY, F_MEMORY,
	F_CPU, F_CLOCK,
	F_INNER, F_ALL, F_HOOK, F_JOBS, F_TIMEOUT, F_CAPTURE, F_DRY_RUN, F_VERSUS, F_SEED, F_EMBED_SOURCE, F_DEBUGINFOD,
	F_GBENCH,
	F_COLOR, F_PROGRESS, F_TRACE, F_REDACT, F_VERSION, F_HELP, F_FOLLOW, F_START_AFTER, F_START_ON, F_STOP_ON,
	F_ALLOCATOR, F_DUMP, F_REPORT
};

#define MEW_CLI_OPTIONS 64u /* room for all long flags and reports */
#define MEW_CLI_LETTERS 16u

/*
 * What getopt_long() needs to know of a command's flags. The value of a report's flag is F_REPORT and its place in
 * mew_reports.
 *
 * letters  room for MEW_CLI_LETTERS
 * out      room for MEW_CLI_OPTIONS
 */
void mew_cli_options(enum mew_cli_command command, char *letters, struct option *out);

#endif
