/*
 * error.h - fill a struct mew_error where the cause is known.
 * Layer L0.
 */
#ifndef MEW_ERROR_H
#define MEW_ERROR_H

#include "base.h"
#include "mew.h"

/*
 * Fill an error with a status and one sentence (lower case, no newline, names the object and the remedy).
 *
 * err      may be NULL
 * Returns  status, so that `return mew_error_set(err, MEW_E_INVALID, ...)` works; sys_errno becomes 0
 * Context  any thread; not signal, not malloc (formats); errno is kept
 */
int mew_error_set(struct mew_error *err, int status, const char *format, ...) MEW_PRINTF(3, 4);

/* The same for a failed system call: keeps errno in sys_errno and appends ": <its text>". */
int mew_error_errno(struct mew_error *err, int status, const char *format, ...) MEW_PRINTF(3, 4);

/* ", raise the number of ..." to end a sentence with where errno says that no descriptor is left, else "". */
const char *mew_error_descriptors(void);

/* Put the last line that says something of what a body printed behind the sentence; NULL: it printed nothing. */
void mew_error_add_printed(struct mew_error *err, const char *printed);

/* No error. err may be NULL. */
void mew_error_clear(struct mew_error *err);

/* This thread's slot behind mew_last_error(). Context: any thread. */
struct mew_error *mew_error_thread(void);

#endif
