/*
 * record_target.h - can a program be recorded by preloading? Told from its file, before it runs.
 * Layer L4. The command's thread; in a recorded program any thread, also in a child of vfork.
 */
#ifndef MEW_RECORD_TARGET_H
#define MEW_RECORD_TARGET_H

#include "error.h"

#include <stddef.h>

/*
 * The file that a command names, found as execvp() finds it.
 *
 * Returns  MEW_OK with the path in `out`; MEW_E_IO with errno in err->sys_errno: ENOENT, or EACCES for what is no program
 */
int mew_record_find(const char *command, char *out, size_t size, struct mew_error *err);

/* The same without the reason, and without memory of the heap: false where it is not found. */
bool mew_record_path(const char *command, char *out, size_t size);

/*
 * Look at the program, or for a script at its interpreter.
 *
 * breaks   returned: is it one that would not start with our libraries, or complain, rather than run without them?
 * Returns  MEW_OK, also for what cannot be read: then the run shows; MEW_E_UNSUPPORTED with the reason: static, set-user-id
 *          or the like, another machine's or C library's, built with a sanitizer; MEW_E_INVALID: no program at all
 */
int mew_record_check(const char *path, bool *breaks, struct mew_error *err);

#endif
