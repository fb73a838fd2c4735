/*
 * mew.c - the command: picks the subcommand.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "mew.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *usage, *help;
} commands[] = {
	{ "run", mew_cmd_run, "mew run [flags] BENCH...", "measure: tables, then files" },
	{ "list", mew_cmd_list, "mew list [flags] BENCH...",
	  "cases, labels, tags; -v: what works here and what disturbs" },
	{ "compare", mew_cmd_compare, "mew compare BASE HEAD... [flags]",
	  "saved results side by side; --gate decides" },
	{ "gate", mew_cmd_gate, "mew gate --base OLD --head NEW",
	  "is the head worse: a verdict by paired fresh processes" },
	{ "calibrate", mew_cmd_calibrate, "mew calibrate BENCH [flags]",
	  "what the gate can see here: noise floor, false alarms, power" },
	{ "record", mew_cmd_record, "mew record [flags] -- CMD ...", "an unmodified program, whole: memory and CPU" },
	{ "report", mew_cmd_report, "mew report FILE.mew.json [flags]",
	  "any report from saved results; --dump lists every run" },
	{ "trace-check", mew_cmd_trace_check, "mew trace-check FILE", "is this trace sound" },
};

static void usage(FILE *to)
{
	(void)fprintf(to, "usage: mew COMMAND ...\n\n");
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		mew_cli_help_entry(to, 34, commands[i].usage, commands[i].help);
	(void)fprintf(to, "\n`mew COMMAND --help` lists the flags; mew(1) and mew(3) have the rest.\n");
}

int main(int argc, char **argv)
{
	(void)setlocale(LC_CTYPE, "");
	if (argc < 2) {
		usage(stderr);
		return MEW_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return MEW_EXIT_FINE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		(void)printf("mew %s\n", mew_version());
		return MEW_EXIT_FINE;
	}
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].main(argc - 1, argv + 1);
	mew_cli_complain("there is no command \"%s\"; `mew --help` lists them", argv[1]);
	return MEW_EXIT_USAGE;
}
