/*
 * cmd_record.c - `mew record`.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli_record.h"

int mew_cmd_record(int argc, char **argv)
{
	struct mew_cli cli;
	int code = mew_cli_parse(&cli, MEW_CLI_RECORD, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_cli_told(&cli, MEW_CLI_RECORD, "mew record [flags] -- CMD ..."))
		return MEW_EXIT_FINE;
	if (cli.nprograms == 0) {
		mew_cli_complain("record: name a command, such as `mew record -- ls -l`");
		return MEW_EXIT_USAGE;
	}
	return mew_cli_record(&cli);
}
