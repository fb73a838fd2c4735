/*
 * cli.h - the command line of `mew run` and `mew list`, which a benchmark program takes itself too.
 * Layer L6.
 */
#ifndef MEW_CLI_H
#define MEW_CLI_H

#include "host.h"
#include "registry.h"
#include "terminal.h"

enum mew_exit { MEW_EXIT_FINE = 0, MEW_EXIT_FAILED = 1, MEW_EXIT_USAGE = 2, MEW_EXIT_INCONCLUSIVE = 3, MEW_EXIT_INVALID = 4 };

#define MEW_CLI_LIST_MAX 32

struct mew_cli_output {
	const struct mew_report *report;
	const char *path;
};

struct mew_cli {
	struct mew_plan_options plan;
	struct mew_host_options host;
	bool passes[MEW_PASSES];
	const char *pattern, *literal;
	const char *tags[MEW_CLI_LIST_MAX];
	size_t ntags;
	const char *hooks[MEW_CLI_LIST_MAX];
	struct mew_cli_output outputs[MEW_CLI_LIST_MAX];
	size_t noutputs;
	const char *trace;  /* the file of --trace; NULL: none */
	const char *redact; /* what command lines in it do not show */
	int argc;           /* of the command line as it was given */
	char **argv;
	bool quiet, verbose, help, version, embed_source;
	enum mew_when color, progress;
	char **programs; /* what is left of argv */
	int nprograms;
};

/*
 * Read the flags. argv[0] is the name shown in messages.
 * Returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after one line on standard error.
 */
int mew_cli_parse(struct mew_cli *c, int argc, char **argv);

/* The flags with one line each, on `to`. */
void mew_cli_help(FILE *to, const char *usage);

/* Measure the programs, print the tables, write the files. Returns the exit code. */
int mew_cli_run(struct mew_cli *c);

/* The tables of a sealed model on standard output, as the flags say. Returns MEW_OK or a status. */
int mew_cli_tables(const struct mew_cli *c, const struct mew_model *m, struct mew_error *err);

/* Write the report files asked for; `base` is the result that m is compared with, or NULL. Returns MEW_EXIT_FINE or MEW_EXIT_USAGE after a line for each that failed. */
int mew_cli_outputs(const struct mew_cli *c, const struct mew_model *m, const struct mew_model *base);

/* "mew: <text>" on standard error. */
void mew_cli_complain(const char *format, ...) MEW_PRINTF(1, 2);

#endif
