/*
 * gate_step.h - run command lines as whole processes, timed from start to end, and end all that they started.
 * Layer L6. The command's thread; where mew_command_sweep() is called, nothing else of it may have children.
 */
#ifndef MEW_GATE_STEP_H
#define MEW_GATE_STEP_H

#include "base.h"
#include "mew.h"

#define MEW_STEP_VARIABLES 64u /* MEW_PLAN_VARIABLES and mew's own */

struct mew_variable {
	const char *name, *value;
};

struct mew_command_run { /* texts are borrowed */
	const char *line;      /* for /bin/sh -c */
	const char *directory; /* where it starts */
	int log;               /* its standard output and error */
	struct mew_variable env[MEW_STEP_VARIABLES]; /* beside the environment of mew */
	size_t nenv;
};

/* Orphans of what is started become children of this process, so that none is missed. Once, before the first. */
void mew_command_adopt(void);

/*
 * Start the commands together, each in a process group of its own with standard input at /dev/null, and wait for all.
 * What they leave in the background stays (a server that a later command uses) when all end with status 0; after a
 * failure, a timeout or an interrupt everything is killed and reaped.
 *
 * timeout    seconds; 0: none
 * cancelled  non-zero: an interrupt came
 * ns         returned: from the first start to the last end
 * Returns    MEW_OK, or MEW_E_BODY with how the first one failed: "exited with code 3"
 */
int mew_command_run(const struct mew_command_run *list, size_t n, double timeout, const volatile int *cancelled,
		    uint64_t *ns, struct mew_error *err);

/* Kill and reap every process that a command left behind, in whatever group or session it is. */
void mew_command_sweep(void);

#endif
