/*
 * record_target.h - can a program be recorded by preloading? Told from its file, before it runs.
 * Layer L4. The command's thread.
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

/*
 * Look at the program, or for a script at its interpreter.
 *
 * Returns  MEW_OK; MEW_E_UNSUPPORTED with the reason: static, set-user-id or the like, another machine's or C library's, built
 *          with a sanitizer; MEW_E_IO when it cannot be read
 */
int mew_record_check(const char *path, struct mew_error *err);

#endif
