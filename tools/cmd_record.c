/*
 * cmd_record.c - `mew record`.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli_record.h"

#define USAGE "mew record [flags] -- CMD ..."

int mew_cmd_record(int argc, char **argv)
{
	struct mew_cli cli;
	int code = mew_cli_parse_record(&cli, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (cli.help) {
		mew_cli_help_record(stdout, USAGE);
		return MEW_EXIT_FINE;
	}
	if (cli.nprograms == 0) {
		mew_cli_complain("record: name a command, such as `mew record -- ls -l`");
		return MEW_EXIT_USAGE;
	}
	return mew_cli_record(&cli);
}
