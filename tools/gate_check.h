/*
 * gate_check.h - which flags of `mew gate` do not go together: refused, since one that is ignored misleads.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GATE_CHECK_H
#define MEW_GATE_CHECK_H

#include "rules_flags.h"

struct mew_gate_given { /* flags that were given, each once */
	const struct mew_flag *list[MEW_FLAGS_MAX];
	size_t n;
};

/* Remember a flag by what getopt_long() gave; `flags` are those of `mew gate`, beside the shared ones. */
void mew_gate_given(struct mew_gate_given *given, const struct mew_flag *flags, size_t n, int id);

/* By its name, such as "--budget" or "-k". */
bool mew_gate_is_given(const struct mew_gate_given *given, const char *name);

/* Returns MEW_EXIT_FINE, or MEW_EXIT_USAGE after a line that names the flags. */
int mew_gate_check_given(const struct mew_gate_given *given);

#endif
