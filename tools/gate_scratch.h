/*
 * gate_scratch.h - the folders of a gate of commands: scratch of each arm, logs of each run.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GATE_SCRATCH_H
#define MEW_GATE_SCRATCH_H

#include "gate.h"

struct mew_scratch {
	char root[PATH_MAX / 8]; /* a temporary folder; "": none yet */
	char logs[PATH_MAX / 4]; /* absolute */
};

/* Make the temporary folder. Returns MEW_OK or MEW_E_IO; mew_scratch_close() is due in any case. */
int mew_scratch_open(struct mew_scratch *s, const struct mew_gate *g, struct mew_error *err);
/* Remove it with all in it. */
void mew_scratch_close(struct mew_scratch *s);

/* Make a folder if it is not there; empty it where asked. Returns MEW_OK or MEW_E_IO. */
int mew_scratch_folder(const char *path, bool empty, struct mew_error *err);
/* Names in a folder that are none of 0.json .. (n-1).json, and those that lack, both counted. */
unsigned mew_scratch_unexpected(const char *folder, unsigned n);
/* Copy a file; a missing one is no failure. Returns MEW_OK or MEW_E_IO. */
int mew_scratch_copy(const char *from, const char *to, struct mew_error *err);

#endif
