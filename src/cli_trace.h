/*
 * cli_trace.h - `--trace`: the directory for fragments, the file, and the way from one to the other.
 * Layer L6. The command's thread. One trace per process.
 */
#ifndef MEW_CLI_TRACE_H
#define MEW_CLI_TRACE_H

#include "cli.h"
#include "model.h"
#include "trace_log.h"

#define MEW_TRACE_DEFAULT "mew-trace.json"

/* The values of --trace and --redact. Return MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line that names the flag. */
int mew_cli_trace_file(struct mew_cli_trace *t, const char *value);
int mew_cli_trace_redact(const char *value);

/* Is one of the programs the file of a --trace without a '='? Returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line. */
int mew_cli_trace_check(const struct mew_cli_trace *t, char *const programs[], int n);

/*
 * Begin the trace that the flags ask for: make the file's directory and one for fragments, and export MEW_TRACE_DIR.
 * Where that is set already, this process is part of another's traced run and only adds its fragment.
 *
 * Returns  MEW_EXIT_FINE, also when no trace is asked for; MEW_EXIT_USAGE after a line on standard error
 */
int mew_cli_trace_begin(const struct mew_cli_trace *t);

/* A reading of the clocks, at most every 50 ms. */
void mew_cli_trace_tick(void);

/* A slice from start_ns until now. */
void mew_cli_trace_since(uint64_t start_ns, const char *category, const char *name, const struct mew_trace_args *args);

/* What a program had of a pass, from start_ns until now. */
void mew_cli_trace_program(uint64_t start_ns, const char *program);

/* The samples of a finished model go onto the timeline. Nothing happens outside a traced run. */
void mew_cli_trace_samples(const struct mew_model *m);

/*
 * Merge, write, say so, and remove the fragments; or, when there was no run to show, remove all.
 *
 * keep     write the file
 * code     of the run so far
 * Returns  code; MEW_EXIT_USAGE when it was fine and the trace could not be written. Then what there is stays, and a line
 *          says where
 */
int mew_cli_trace_end(const struct mew_cli_trace *t, bool keep, int code);

#endif
