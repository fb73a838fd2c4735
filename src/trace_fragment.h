/*
 * trace_fragment.h - the file that this process's part of the timeline goes to: a fragment in the directory of a traced
 * run, or a file of the command that asked for the trace.
 * Layer L2. Outside windows; the owner lets one thread in at a time.
 */
#ifndef MEW_TRACE_FRAGMENT_H
#define MEW_TRACE_FRAGMENT_H

#include <sys/types.h>

#include "base.h"
#include "mew.h"

struct mew_trace_fragment {
	int fd;        /* -1: not open */
	bool failed;   /* no more is written */
	uint64_t written;
	char directory[4000]; /* "": none */
	char name[80]; /* in it; "": not made yet */
	dev_t device;  /* which file it is: a program may close our descriptor, and give its number to another file */
	ino_t inode;
};

/*
 * Fragments go into `directory`; none is made yet.
 *
 * Returns  MEW_OK; MEW_E_INVALID when the directory is none, a link, or another user's
 */
int mew_trace_fragment_into(struct mew_trace_fragment *f, const char *directory, struct mew_error *err);

/*
 * Open a file beside the trace, empty, and keep other commands off it for as long as it is open.
 *
 * Returns  MEW_OK; MEW_E_BUSY when another command writes to it; MEW_E_IO
 */
int mew_trace_fragment_open(struct mew_trace_fragment *f, const char *path, struct mew_error *err);

/* Make the file in the directory, called after the process. False when that failed, now or before, or there is none. */
bool mew_trace_fragment_make(struct mew_trace_fragment *f, int pid);

/*
 * Append text. What cannot be written, since the disk is full or the size of files is limited, ends the file and not
 * the run; then the file's last line has no end. Where the program closed our descriptor, the file is opened again.
 */
void mew_trace_fragment_write(struct mew_trace_fragment *f, const char *text, size_t bytes);

/* In a forked child: the file is the parent's, and the next one is made for the child. */
void mew_trace_fragment_fork(struct mew_trace_fragment *f);

/* The file stays. */
void mew_trace_fragment_close(struct mew_trace_fragment *f);

/* The directory that this process's fragments go to, opened; -1 where there is none. The caller closes it. */
int mew_trace_fragment_directory(const struct mew_trace_fragment *f);

#endif
