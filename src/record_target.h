/*
 * record_target.h - can a program be recorded by preloading? Told from its file, before it runs.
 * Layer L4. The command's thread; in a recorded program any thread, also in a child of vfork.
 */
#ifndef MEW_RECORD_TARGET_H
#define MEW_RECORD_TARGET_H

#include "error.h"

#include <limits.h>
#include <stddef.h>

/*
 * The file that a command names, found as execvp() finds it.
 *
 * Returns  MEW_OK with the path in `out`; MEW_E_IO with errno in err->sys_errno: ENOENT, or EACCES for what is no program
 */
int mew_record_find(const char *command, char *out, size_t size, struct mew_error *err);

/* The same without the reason, and without memory of the heap: false where it is not found. */
bool mew_record_path(const char *command, char *out, size_t size);

/* What a look needs and returns; too much for a small stack. */
struct mew_record_look {
	char path[PATH_MAX]; /* what decided: the program, or a script's interpreter */
	char next[PATH_MAX];
	const char *why;     /* it cannot be recorded: a constant sentence whose subject is the path; NULL: it can */
	bool breaks;         /* it would not start with our libraries, or complain, rather than run without them */
};

/*
 * Look at the program, or for a script at its interpreter.
 *
 * look     borrowed; filled
 * Returns  MEW_OK, also for what cannot be read: then the run shows; MEW_E_UNSUPPORTED with the reason: static, set-user-id
 *          or the like, another machine's or C library's, built with a sanitizer; MEW_E_INVALID: no program at all
 */
int mew_record_look(const char *path, struct mew_record_look *look);

/*
 * "PATH WHY", where a path that is too long loses its beginning: the remedy is at the end.
 *
 * why   shorter than `size` by 8 bytes or more
 * out   `size` bytes
 */
void mew_record_say(const char *path, const char *why, char *out, size_t size);

/* The same look with its sentence as an error. Context: a thread of the command, with a stack of its size. */
int mew_record_check(const char *path, struct mew_error *err);

#endif
