/*
 * recorder_left.h - programs that a followed program starts and that cannot be recorded; and what is told to the
 * command. Layer L6.
 */
#ifndef MEW_RECORDER_LEFT_H
#define MEW_RECORDER_LEFT_H

#include "record.h"

/*
 * One message to the command.
 *
 * socket       its name
 * file         what is recorded; borrowed; -1: none, and `why`
 * is_left_out  it is about a program that this process starts
 * Returns      false when the command cannot be told
 * Context      any thread, also in a child of vfork
 */
bool mew_recorder_tell(const char *socket, int file, const char *why, bool is_left_out);

/* From now on programs are looked at before they start. Context: constructor, before the variables are copied. */
void mew_recorder_left_init(const struct mew_record_orders *o);

struct mew_recorder_left_env { /* an environment of its own, mapped */
	char **list; /* NULL: none */
	size_t bytes;
	bool is_left_out; /* returned: the command was told of the program */
};

/*
 * The environment for a program: `envp`, or where our libraries would keep it from starting a copy without them. The
 * command is told of each program that cannot be recorded.
 *
 * path      as given to exec; what cannot be read is left alone
 * searches  it is looked for in PATH
 * mine      filled; given back by mew_recorder_left_free() when the program was not started, or is another process
 * Context   any thread, also in a child of vfork: no heap
 */
char *const *mew_recorder_left_env(const char *path, bool searches, char *const *envp,
				   struct mew_recorder_left_env *mine);
void mew_recorder_left_free(struct mew_recorder_left_env *mine);

#endif
