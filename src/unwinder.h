/*
 * unwinder.h - which unwinder walks stacks in this process: MEW_UNWINDER.
 * Layer L1. Outside windows.
 */
#ifndef MEW_UNWINDER_H
#define MEW_UNWINDER_H

#include "base.h"

struct mew_error;

/*
 * Is this a name of an unwinder? NULL and "" are the default.
 *
 * Returns  MEW_OK; MEW_E_INVALID with text
 */
int mew_unwinder_check(const char *name, struct mew_error *err);

/*
 * Walk by this one from now on.
 *
 * name     "table", "fp" or "libunwind", as above
 * Returns  MEW_OK; MEW_E_INVALID; MEW_E_UNSUPPORTED when it is not to be had here; then nothing has changed
 * Context  no window is open; loads a library
 */
int mew_unwinder_use(const char *name, struct mew_error *err);

/* What the environment asks for, read the first time alone. Returns as mew_unwinder_use(). */
int mew_unwinder_choose(struct mew_error *err);

/* What a row must say about its stacks; NULL for the default. */
const char *mew_unwinder_note(void);

#endif
