/*
 * cli.h - the command lines of `mew run`, which a benchmark program takes itself too, `list`, `report` and `record`.
 * Layer L6.
 */
#ifndef MEW_CLI_H
#define MEW_CLI_H

#include "host.h"
#include "registry.h"
#include "symbolise.h"
#include "terminal.h"

enum mew_exit { MEW_EXIT_FINE = 0, MEW_EXIT_FAILED = 1, MEW_EXIT_USAGE = 2, MEW_EXIT_INCONCLUSIVE = 3,
		MEW_EXIT_INVALID = 4 };

enum mew_cli_command { MEW_CLI_RUN = 1, MEW_CLI_LIST = 2, MEW_CLI_REPORT = 4, MEW_CLI_RECORD = 8 };

#define MEW_CLI_LIST_MAX 32

struct mew_cli_output {
	const struct mew_report *report;
	const char *path;
};

struct mew_cli_trace {
	const char *file;   /* of --trace; NULL: none */
	int argc;           /* of the command line as it was given */
	char **argv;
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
	const char *allocators; /* the list of --allocator; NULL: none */
	bool processes_given;
	unsigned jobs;          /* processes of the memory pass at once */
	const char *versus[2]; /* the keys of --versus, base and head; NULL: not asked for */
	uint64_t seed;      /* of its orders */
	bool seed_given;
	struct mew_cli_trace trace;
	bool record;        /* a whole program: tables on standard error, its iteration is one */
	bool follow;        /* record: children too */
	double start_after; /* record: seconds until the window opens */
	const char *start_on, *stop_on; /* record: functions at whose entry it opens, closes; NULL: none */
	bool quiet, verbose, help, version, embed_source, dump;
	double servers; /* seconds that those of DEBUGINFOD_URLS may take in all; 0: they are not asked */
	bool gbench; /* the programs are of Google Benchmark */
	enum mew_when color, progress;
	char **programs; /* what is left of argv */
	int nprograms;
};

/*
 * Read the flags of a command; those of another one are refused. argv[0] is the name shown in messages.
 * Returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after one line on standard error.
 */
int mew_cli_parse(struct mew_cli *c, enum mew_cli_command command, int argc, char **argv);

/* Was --help or --version asked for? Then it is on standard output, and there is nothing else to do. */
bool mew_cli_told(const struct mew_cli *c, enum mew_cli_command command, const char *usage);

/*
 * An entry of --help: what is typed, then what it means, which is broken at blanks where a line would pass 80 columns.
 *
 * width    columns of `shown`; a longer one moves its text to the right
 */
void mew_cli_help_entry(FILE *to, int width, const char *shown, const char *help);

/* The flags of a command, an entry each, on `to`. */
void mew_cli_help(FILE *to, enum mew_cli_command command, const char *usage);

/* Measure the programs, print the tables, write the files. Returns the exit code. */
int mew_cli_run(struct mew_cli *c);

/*
 * The same for programs of Google Benchmark: what they measured is added to the model, which is not sealed yet.
 *
 * ended_badly  set when a program failed behind its last benchmark
 * Returns      MEW_EXIT_FINE; else why nothing can be shown, after one line on standard error
 */
int mew_cli_gbench(struct mew_cli *c, struct mew_model *model, struct mew_progress *progress, bool *ended_badly);

/*
 * The tables of a sealed model on standard output, of `mew record` on standard error, as the flags say. Returns MEW_OK
 * or a status.
 */
int mew_cli_tables(const struct mew_cli *c, const struct mew_model *m, struct mew_error *err);

/* Does no report file go to standard output, where the tables would be? */
bool mew_cli_wants_tables(const struct mew_cli *c);

/*
 * Before anything is measured: can the report files be written, and will there be stacks for those that show nothing
 * else? Returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line that names the file.
 */
int mew_cli_check_outputs(const struct mew_cli *c);

/*
 * Write the report files asked for; `base` is the result that m is compared with, or NULL. Returns MEW_EXIT_FINE or
 * MEW_EXIT_USAGE after a line for each that failed.
 */
int mew_cli_outputs(const struct mew_cli *c, const struct mew_model *m, const struct mew_model *base);

/*
 * A flag's value as seconds (at least `least`), as a whole number of 1 or more.
 * Returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line that names the flag.
 */
int mew_cli_seconds(const char *flag, const char *text, double least, double *out);
int mew_cli_count(const char *flag, const char *text, uint64_t *out);
/* "FLAG: "VALUE" is not WANT; see --help". Returns MEW_EXIT_USAGE. */
int mew_cli_bad(const char *flag, const char *value, const char *want);
struct option;
/*
 * What is wrong with a flag for which getopt_long() gave `id` ('?' or ':'); the long ones, `options`, have numbers from
 * 256. Returns MEW_EXIT_USAGE.
 */
int mew_cli_unknown(char **argv, int id, const struct option *options);

/*
 * Let SIGINT, SIGTERM and SIGHUP end waits and be seen by the flag that is returned; let the ends of children be seen.
 */
const volatile int *mew_cli_catch_interrupts(void);

/*
 * The servers to ask, from now on for as long as --debuginfod says. Returns `s` filled; NULL without the flag.
 */
struct mew_symbolise_servers *mew_cli_servers(const struct mew_cli *c, struct mew_symbolise_servers *s);
/* Before anything is measured: returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line where servers cannot be asked. */
int mew_cli_check_servers(const struct mew_cli *c);

/* "mew: <text>" on standard error. */
void mew_cli_complain(const char *format, ...) MEW_PRINTF(1, 2);
/* The same for one text: what a struct mew_host_options says by. */
void mew_cli_say(const char *text);

#endif
