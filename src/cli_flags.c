/*
 * cli_flags.c - see cli_flags.h; report formats bring their own flags.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_flags.h"

#include <stdio.h>
#include <string.h>

#include "cli_trace.h"

#define RUN MEW_CLI_RUN
#define LIST MEW_CLI_LIST
#define REPORT MEW_CLI_REPORT
#define RECORD MEW_CLI_RECORD

static const struct flag {
	unsigned commands; /* that know it: enum mew_cli_command, added up */
	int id;            /* the letter, or enum mew_flag_id */
	const char *name;  /* long name; NULL: letter only */
	int argument;      /* of getopt.h */
	const char *shown, *help;
} flags[] = {
	{ RUN | LIST, 'k', NULL, required_argument, "-k RE",
	  "cases whose name or label matches the extended regular expression" },
	{ RUN | LIST, 'F', NULL, required_argument, "-F TEXT", "cases whose name or label contains the text" },
	{ RUN | LIST, 't', NULL, required_argument, "-t TAG", "cases with the tag; given twice: with either" },
	{ RUN, F_MIN_TIME, "min-time", required_argument, "--min-time S|Nx",
	  "measure a case at least S seconds, or exactly N iterations" },
	{ RUN, F_MAX_TIME, "max-time", required_argument, "--max-time S", "and at most S seconds (0.5)" },
	{ RUN, F_MIN_WARMUP, "min-warmup-time", required_argument, "--min-warmup-time S",
	  "warm up S seconds before each repetition (0.01)" },
	{ RUN, F_REPETITIONS, "repetitions", required_argument, "--repetitions N", "measure each case N times (1)" },
	{ RUN, F_PROCESSES, "processes", required_argument, "--processes N", "in N fresh processes (1)" },
	{ RUN, F_INTERLEAVE, "interleave", no_argument, "--interleave", "take the repetitions of all cases in turn" },
	{ RUN, F_LATENCY, "latency", no_argument, "--latency", "time single calls: percentiles are of calls" },
	{ RUN, F_MEMORY, "memory", optional_argument, "--memory[=ITERS]",
	  "memory pass: exact allocations of ITERS iterations (100)" },
	{ RUN, F_CPU, "cpu", optional_argument, "--cpu[=INTERVAL]",
	  "CPU pass: a sample every INTERVAL seconds (0.0001)" },
	{ RUN, F_CLOCK, "clock", required_argument, "--clock wall|cpu",
	  "spread the CPU pass's samples over wall or CPU time (wall)" },
	{ RUN, F_INNER, "inner-iterations", required_argument, "--inner-iterations N",
	  "exactly N iterations in the CPU pass" },
	{ RUN, F_ALL, "all", no_argument, "--all", "timing, memory and CPU passes" },
	{ RUN, F_ALLOCATOR, "allocator", required_argument, "--allocator LIST",
	  "under each of: system, jemalloc, tcmalloc, mimalloc, a file's path" },
	{ RUN, F_HOOK, "hook", required_argument, "--hook NAME", "run the program's hook of that name" },
	{ RUN, F_JOBS, "jobs", required_argument, "--jobs N",
	  "memory pass: N processes at once; 0: as many as processors (1)" },
	{ RUN, F_TIMEOUT, "timeout", required_argument, "--timeout S",
	  "a case that takes longer than S seconds in a pass fails (none)" },
	{ RUN, F_CAPTURE, "capture", required_argument, "--capture yes|no",
	  "keep what bodies print apart, show it for failed cases (yes)" },
	{ RUN, F_DRY_RUN, "dry-run", no_argument, "--dry-run",
	  "run each case once, without its time; passes that are added run in full" },
	{ RUN, F_VERSUS, "versus", required_argument, "--versus KEY KEY",
	  "compare two cases inside one process: is the second slower" },
	{ RUN, F_SEED, "seed", required_argument, "--seed N", "of the order in which --versus takes its samples" },
	{ RECORD, F_MEMORY, "memory", no_argument, "--memory",
	  "its allocations (both, unless one of the two is given)" },
	{ RECORD, F_CPU, "cpu", optional_argument, "--cpu[=INTERVAL]",
	  "where its time goes: a sample every INTERVAL seconds (0.001)" },
	{ RECORD, F_CLOCK, "clock", required_argument, "--clock cpu|wall",
	  "spread the samples over CPU or wall time (cpu)" },
	{ RECORD, F_FOLLOW, "follow", no_argument, "--follow", "its children too, and what it becomes by exec" },
	{ RECORD, F_START_AFTER, "start-after", required_argument, "--start-after S", "leave out its first S seconds" },
	{ RECORD, F_START_ON, "start-on", required_argument, "--start-on FUNCTION",
	  "leave out what is before FUNCTION is entered first" },
	{ RECORD, F_STOP_ON, "stop-on", required_argument, "--stop-on FUNCTION",
	  "and what follows when FUNCTION is entered" },
	{ RUN | REPORT | RECORD, F_EMBED_SOURCE, "embed-source", no_argument, "--embed-source",
	  "put the source lines around hot lines into --html" },
	{ RUN | REPORT | RECORD, F_DEBUGINFOD, "debuginfod", optional_argument, "--debuginfod[=S]",
	  "ask DEBUGINFOD_URLS for missing debug information, at most S seconds (30)" },
	{ RUN, F_TRACE, "trace", optional_argument, "--trace[=FILE]",
	  "the run on a timeline, for ui.perfetto.dev (" MEW_TRACE_DEFAULT ")" },
	{ RECORD, F_TRACE, "trace", optional_argument, "--trace[=FILE]",
	  "processes and threads on a timeline (" MEW_TRACE_DEFAULT ")" },
	{ RUN | RECORD, F_REDACT, "redact", required_argument, "--redact RE",
	  "show the command line in it, \"***\" for what matches" },
	{ RUN | LIST, F_GBENCH, "gbench-program", no_argument, "--gbench-program",
	  "BENCH is a program of Google Benchmark" },
	{ REPORT, F_DUMP, "dump", no_argument, "--dump",
	  "list every run by phase, in nanoseconds, instead of the tables" },
	{ RUN | REPORT | RECORD, 'q', NULL, no_argument, "-q", "do not say which files were written" },
	{ RUN | REPORT | RECORD, 'v', NULL, no_argument, "-v", "every figure, and why one is absent" },
	{ LIST, 'v', NULL, no_argument, "-v", "also what works on this machine, and what disturbs" },
	{ RUN | REPORT | RECORD, F_COLOR, "color", required_argument, "--color WHEN",
	  "auto, always or never; NO_COLOR and FORCE_COLOR are honoured" },
	{ RUN, F_PROGRESS, "progress", required_argument, "--progress WHEN",
	  "auto, always or never, on standard error" },
	{ RUN | LIST | REPORT, F_VERSION, "version", no_argument, "--version", "print the version" },
	{ RUN | LIST | REPORT | RECORD, F_HELP, "help", no_argument, "--help", "print this" },
};

static bool is_known(const struct flag *f, enum mew_cli_command command)
{
	return (f->commands & (unsigned)command) != 0;
}

static bool has_flag(const struct mew_report *r, enum mew_cli_command command)
{
	return command != LIST && strcmp(r->name, "table") != 0; /* tables go to the terminal by themselves */
}

void mew_cli_options(enum mew_cli_command command, char *letters, struct option *out)
{
	size_t n = 0, used = 0;

	if (command == RECORD)
		letters[used++] = '+'; /* its flags end where the command begins */
	letters[used++] = ':';
	for (size_t i = 0; i < MEW_COUNTOF(flags); i++) {
		const struct flag *f = &flags[i];

		if (!is_known(f, command))
			continue;
		if (f->name != NULL && n + 1 < MEW_CLI_OPTIONS)
			out[n++] = (struct option){ f->name, f->argument, NULL, f->id };
		if (f->name == NULL && used + 2 < MEW_CLI_LETTERS) {
			letters[used++] = (char)f->id;
			if (f->argument == required_argument)
				letters[used++] = ':';
		}
	}
	for (int i = 0; mew_reports[i] != NULL && n + 1 < MEW_CLI_OPTIONS; i++)
		if (has_flag(mew_reports[i], command))
			out[n++] = (struct option){ mew_reports[i]->name, required_argument, NULL, F_REPORT + i };
	out[n] = (struct option){ NULL, 0, NULL, 0 };
	letters[used] = '\0';
}

/* Does `word`, which getopt_long() refused, begin several long flags? Then a line names them. */
static bool is_ambiguous(const struct option *options, const char *word)
{
	size_t length = strcspn(word, "="), n = 0, used = 0;
	char names[800] = "";

	if (length < 3 || strncmp(word, "--", 2) != 0)
		return false;
	for (; options->name != NULL; options++) {
		if (strncmp(options->name, word + 2, length - 2) != 0 ||
		    used + strlen(options->name) + 5 > sizeof names)
			continue;
		used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s", n++ > 0 ? ", " : "",
					 options->name);
	}
	if (n > 1)
		mew_cli_complain("%.*s could be one of %s: write it out", (int)length, word, names);
	return n > 1;
}

int mew_cli_unknown(char **argv, int id, const struct option *options)
{
	const char *word = argv[optind - 1]; /* not of a letter: it may stand in front of others in one word */
	bool is_byte = optopt < 0 || (optopt > 127 && optopt < 256); /* of a longer character; char may have a sign */

	if (is_byte && argv[optind] != NULL && argv[optind][0] == '-' && strchr(argv[optind], optopt) != NULL)
		word = argv[optind];
	if (is_byte)
		mew_cli_complain("there is no flag %s; see --help", word);
	else if (optopt > 0 && optopt < 256)
		mew_cli_complain(id == ':' ? "-%c needs a value; see --help" : "there is no flag -%c; see --help",
				 optopt);
	else if (id == ':')
		mew_cli_complain("%s needs a value; see --help", word);
	else if (optopt != 0)
		mew_cli_complain("%.*s takes no value; see --help", (int)strcspn(word, "="), word);
	else if (!is_ambiguous(options, word))
		mew_cli_complain("there is no flag %s; see --help", word);
	return MEW_EXIT_USAGE;
}

/* --- help ------------------------------------------------------------------------------------------------------- */

static const char *codes(enum mew_cli_command command)
{
	switch (command) {
	case LIST:
		return "Exit code: 0 fine; 2 usage or environment; 4 no case matches.";
	case REPORT:
		return "Exit code: 0 fine; 2 usage or environment.";
	case RECORD:
		return "Tables go to standard error. Exit code: the command's; 128 and the number of the\n"
		       "signal that ended it; 2 it was not run, or the report failed; 126 and 127 it\n"
		       "cannot be run, is not found.";
	case RUN:
	default:
		return "Exit code: 0 fine; 1 a case failed; 2 usage or environment; 4 nothing measured\n"
		       "or invalid. With --versus: 0 a difference; 3 none that was resolved.";
	}
}

#define HELP_COLUMNS 80

void mew_cli_help_entry(FILE *to, int width, const char *shown, const char *help)
{
	int column = fprintf(to, "  %-*s", width, shown);

	for (const char *word = help; *word != '\0';) {
		int length = (int)strcspn(word, " ");

		if (column > width + 2 && column + 1 + length > HELP_COLUMNS)
			column = fprintf(to, "\n  %*s", width, "") - 1;
		column += fprintf(to, " %.*s", length, word);
		word += length;
		word += strspn(word, " ");
	}
	(void)fputc('\n', to);
}

#define HELP_WIDTH 22

static void show_reports(FILE *to)
{
	(void)fprintf(to, "\nreports (`-` is standard output, without the tables):\n");
	for (size_t i = 0; mew_reports[i] != NULL; i++) {
		char shown[40];

		if (!has_flag(mew_reports[i], RUN))
			continue;
		(void)snprintf(shown, sizeof shown, "--%s %s", mew_reports[i]->name,
			       mew_reports[i]->shape == MEW_REPORT_FILE ? "FILE" : "DIR");
		mew_cli_help_entry(to, HELP_WIDTH, shown, mew_reports[i]->help);
	}
}

void mew_cli_help(FILE *to, enum mew_cli_command command, const char *usage)
{
	(void)fprintf(to, "usage: %s\n\n", usage);
	for (size_t i = 0; i < MEW_COUNTOF(flags); i++)
		if (is_known(&flags[i], command))
			mew_cli_help_entry(to, HELP_WIDTH, flags[i].shown, flags[i].help);
	if (command != LIST)
		show_reports(to);
	(void)fprintf(to, "\n%s\n", codes(command));
}
