/*
 * launch.h - start a worker process, and end it with everything it started.
 * Layer L4.
 */
#ifndef MEW_LAUNCH_H
#define MEW_LAUNCH_H

#include "base.h"
#include "mew.h"

struct mew_launch {
	const char *program;
	int channel;         /* the worker's end of the socket; passed as --mew-worker=FD */
	int output;          /* its standard output and error; -1 keeps ours (then both go to our standard error) */
	int inherited;       /* a further descriptor it keeps under its number; 0: none */
	bool known;          /* its facts are known: it need not look for them */
	const char *preload; /* put before LD_PRELOAD; may be NULL */
};

/*
 * Start it in a process group of its own, with standard input at /dev/null.
 * Returns the process id; -1 when it could not be executed, with the reason in err.
 */
int mew_launch_worker(const struct mew_launch *s, struct mew_error *err);

/* "x cannot be run: Permission denied; ...": fills err by an errno of exec, with what to do. Returns MEW_E_INVALID. */
int mew_launch_refused(const char *program, int failure, struct mew_error *err);

/*
 * Reap the worker and kill what its group left behind; returns its wait status.
 *
 * patience_ns  how long it has to leave by itself; 0: it is killed at once
 * had_to_kill  whether that was not enough, so that the signal in the status is ours; may be NULL
 */
int mew_launch_end(int pid, uint64_t patience_ns, bool *had_to_kill);

#define MEW_PATIENCE_NS UINT64_C(2000000000) /* for what a program does at its exit */

/* "exited with code 3", "killed by signal 11 (Segmentation fault)". */
void mew_launch_describe(int wait_status, char *text, size_t size);

#endif
