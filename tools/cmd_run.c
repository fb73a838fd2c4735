/*
 * cmd_run.c - `mew run`.
 * Layer L6.
 */
#include "config.h"

#include "cmd.h"

#include "cli.h"

int mew_cmd_run(int argc, char **argv)
{
	struct mew_cli cli;
	int code = mew_cli_parse(&cli, MEW_CLI_RUN, argc, argv);

	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_cli_told(&cli, MEW_CLI_RUN, "mew run [flags] BENCH..."))
		return MEW_EXIT_FINE;
	if (cli.nprograms == 0) {
		mew_cli_complain("run: name a benchmark program, such as `mew run ./bench`");
		return MEW_EXIT_USAGE;
	}
	return mew_cli_run(&cli);
}
