/*
 * record_read.h - the command's side of a recording: collect the files of the recorded processes, and read each when
 * its process is gone.
 * Layer L4. The command's thread.
 */
#ifndef MEW_RECORD_READ_H
#define MEW_RECORD_READ_H

#include "model.h"
#include "record.h"

struct mew_recording { /* one process image */
	int pid;
	int file;        /* -1: none, see why */
	char why[MEW_RECORD_WHY_BYTES];
	bool is_left_out;  /* a program that cannot be recorded: see mew_recorder_left; only while it is received */
	int end;           /* readable when the process is gone; -1: none is needed any more, or there is none to be had */
	uint64_t ended_ns; /* when it was found to be gone; 0: it is not known to be */
};

struct mew_recorder_left { /* programs that cannot be recorded */
	char why[MEW_RECORD_WHY_BYTES];
	size_t times;
};

struct mew_recorder {
	int listener;
	struct mew_recording *list;
	struct mew_recorder_left *left;
	size_t nleft;
	size_t n, refused; /* refused: connections of another user */
	bool is_full;      /* no descriptor is left for another process; then nobody waits at the listener any more */
};

/*
 * Listen for programs; o->socket gets the name to tell them.
 *
 * Returns  MEW_OK; MEW_E_IO. mew_recorder_fini() is due
 */
int mew_recorder_init(struct mew_recorder *r, struct mew_record_orders *o, struct mew_error *err);
void mew_recorder_fini(struct mew_recorder *r);

/* Take whatever waits at r->listener. Returns MEW_OK or MEW_E_NOMEM. */
int mew_recorder_accept(struct mew_recorder *r, struct mew_error *err);

/* Count a program that cannot be recorded, and why in one sentence. Returns MEW_OK or MEW_E_NOMEM. */
int mew_recorder_leave_out(struct mew_recorder *r, const char *why, struct mew_error *err);

/* Open the window of the memory capture of every process that waits for it. */
void mew_recorder_open_windows(const struct mew_recorder *r);

/*
 * Add a case with the rows of one process to the model; a capture that failed, or a window that never opened, gives a
 * failed row with its reason.
 *
 * o        what the process was told; what was before o->from_ns is left out
 * Returns  MEW_OK; MEW_E_IO, MEW_E_UNSUPPORTED when the file is none of this build's; MEW_E_NOMEM
 */
int mew_recording_read(const struct mew_recording *g, const struct mew_record_orders *o, struct mew_model *m,
		       struct mew_error *err);

/* Give back its file, which mew_recorder_fini() would do at the end. */
void mew_recording_close(struct mew_recording *g);

/*
 * The head of what a process left, checked, with its texts ended.
 *
 * file     of a recording; borrowed
 * Returns  MEW_OK; MEW_E_IO; MEW_E_UNSUPPORTED when it is none of this build's
 */
int mew_recording_root(int file, struct mew_record_root *root, struct mew_error *err);

/* Did its window open at the function that was asked for? True without one, and where that cannot be told. */
bool mew_recording_opened(const struct mew_recording *g, const struct mew_record_orders *o);

#endif
