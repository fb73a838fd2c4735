/*
 * record_ends.h - when the processes of `mew record --follow` end: it is the end of their window. They are no children of
 * the command, and one that nobody waits for stays a zombie, so ends are seen by descriptors (pidfd) and, where there are
 * none, by asking.
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

/* Watch those that came since the last call, and note the ends of those that ended within wait_ms from now. */
void mew_record_ends_look(struct mew_record_ends *e, struct mew_recorder *r, int wait_ms);

/* Milliseconds after which to look although fd is silent; -1: never. */
int mew_record_ends_due(const struct mew_record_ends *e, const struct mew_recorder *r);

#endif
