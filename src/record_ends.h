/*
 * record_ends.h - when the processes of `mew record --follow` end, which is the end of their window, and which of them
 * run on. They are no children of the command, and one that nobody waits for stays a zombie, so ends are seen by
 * descriptors (pidfd) and, where there are none, by asking.
 * Layer L4. The command's thread.
 */
#ifndef MEW_RECORD_ENDS_H
#define MEW_RECORD_ENDS_H

#include "record_read.h"

struct mew_record_ends {
	int fd;          /* readable when one has ended: for poll(); -1: none can be had */
	int command;     /* process id of the command's own child, whose end is known by wait() */
	size_t nwatched; /* processes of the recorder that were looked at */
};

void mew_record_ends_init(struct mew_record_ends *e);
void mew_record_ends_fini(struct mew_record_ends *e);

/* Watch those that came since the last call, and note the ends of those that have ended. */
void mew_record_ends_look(struct mew_record_ends *e, struct mew_recorder *r);

/* Milliseconds after which to look although fd is silent; -1: never. */
int mew_record_ends_due(const struct mew_record_ends *e, const struct mew_recorder *r);

/*
 * Behind the command's end: take those that have just begun, and wait up to a fifth of a second for the ends of all. Who
 * runs on without having answered is left out.
 *
 * socket   as in the orders: it is looked for in the environment of what runs
 * Returns  MEW_OK or MEW_E_NOMEM
 */
int mew_record_ends_settle(struct mew_record_ends *e, struct mew_recorder *r, const char *socket, struct mew_error *err);

#endif
