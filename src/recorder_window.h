/*
 * recorder_window.h - a recorded program's window from one function to another: probes at their entries.
 * Layer L6.
 */
#ifndef MEW_RECORDER_WINDOW_H
#define MEW_RECORDER_WINDOW_H

#include "elf_names.h"
#include "probe.h"
#include "record.h"

#define MEW_WINDOW_PROBES 32u /* functions of the two names: more are not watched */
#define MEW_WINDOW_SEEN 1024u /* files */

enum mew_window_role { MEW_WINDOW_STARTS = 1, MEW_WINDOW_STOPS = 2 };
enum mew_window_state { MEW_WINDOW_WAITS, MEW_WINDOW_OPEN, MEW_WINDOW_CLOSED };

struct mew_window { /* in memory of its own, which forked children inherit */
	int state;      /* atomic: enum mew_window_state */
	int pid;        /* whose events count */
	unsigned lock;  /* of the search */
	struct mew_record_root *root;
	bool has_memory; /* the memory capture runs */
	struct mew_wanted_name start, stop;
	unsigned roles; /* that were asked for */
	struct mew_probe *probes[MEW_WINDOW_PROBES];
	unsigned nprobes;
	struct {
		uintptr_t lo;
	} seen[MEW_WINDOW_SEEN]; /* files that were searched */
	size_t nseen;
};

/*
 * Begin for the process that `root` is of: search what is loaded, and from now on what will be.
 *
 * w        NULL: for the first time; else that of the parent, whose window a forked child takes over if it is open
 * Returns  the window; NULL when the orders name no function, or there is no memory
 * Context  constructor, or forked child; captures are there, the memory capture's window as the orders say
 */
struct mew_window *mew_window_begin(struct mew_window *w, const struct mew_record_orders *o,
				    struct mew_record_root *root, bool has_memory);

/* Arm each probe from number `from` on for what it does in the state that the window is in. Context: as for a hit. */
void mew_window_arm(const struct mew_window *w, unsigned from);

/* A probe was hit. Context: any thread, in the middle of anything. */
void mew_window_hit(struct mew_probe *p);

#endif
