/*
 * cli_versus.h - `mew run --versus`.
 * Layer L6.
 */
#ifndef MEW_CLI_VERSUS_H
#define MEW_CLI_VERSUS_H

#include "cli.h"

/*
 * Compare the two cases that --versus names and print which one is faster.
 * Returns  MEW_EXIT_FINE: it is known; MEW_EXIT_INCONCLUSIVE: it is not; another code after a line on standard error
 */
int mew_cli_versus(const struct mew_cli *c);

#endif
