/*
 * cmd_trace_check.c - `mew trace-check`: is this trace sound.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"
#include "trace_check.h"

#include <stdio.h>
#include <string.h>

static void say(const char *text)
{
	(void)printf("%s\n", text);
}

static int check(const char *path)
{
	struct mew_trace_verdict v;
	struct mew_error err;

	if (mew_trace_check(path, say, &v, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	(void)printf("%s: %zu events, %zu faults%s\n", path, v.events, v.faults,
		     v.cut ? "; it ends early: the run did not" : "");
	if (v.faults > 0)
		return MEW_EXIT_FAILED;
	if (v.events > 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s: there are no events to check", path);
	return MEW_EXIT_INVALID;
}

int mew_cmd_trace_check(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		(void)printf("usage: mew trace-check FILE\n\nExit code: 0 sound; 1 it has faults; 2 it cannot be read; "
			     "4 it is empty.\n");
		return MEW_EXIT_FINE;
	}
	if (argc != 2 || (argv[1][0] == '-' && argv[1][1] != '\0')) {
		mew_cli_complain("trace-check: name one trace file");
		return MEW_EXIT_USAGE;
	}
	return check(argv[1]);
}
