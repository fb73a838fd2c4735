/*
 * guest.h - what the files behind mew/guest.h share: one block at a time, and the channel to the command.
 * Layer L4.
 */
#ifndef MEW_GUEST_INTERNAL_H
#define MEW_GUEST_INTERNAL_H

#include "guest_channel.h"
#include "model.h"
#include "mew/backend.h"
#include "mew/guest.h"

struct mew_guest_slot { /* a thread of the block */
	bool entered, started, finished, attached, paused;
	int tid;
	uint64_t start_ns, paused_at_ns, paused_ns;
	uint64_t window_ns, iterations;
};

struct mew_guest_block {
	const struct mew_backend *backend; /* NULL: there is no block */
	struct mew_capture *capture;
	unsigned threads;
	struct mew_guest_slot *slots;
	unsigned entered, started, finished;
	bool decided;           /* the window was opened, or could not be */
	bool opened, closed;
	bool whole;             /* no edges: from the start to the stop of the framework's own pass */
	int status;             /* why it cannot have figures */
	struct mew_error error;
};

extern struct mew_guest_block mew_guest_block; /* under the lock of guest.c while threads run */

/* The one window that ran to its end on all its threads. Else *why is a sentence. Context: no thread is in a loop. */
bool mew_guest_is_complete(const char **why);
uint64_t mew_guest_iterations(void);
/* Open and begin a block that is `whole`, on the calling thread; end it. */
void mew_guest_begin_whole(void);
void mew_guest_end_whole(void);
/* Drop the block and what it recorded; release its backend. */
void mew_guest_drop(void);

/* The channel of this process, mapped at the first call; NULL when the command did not start it. */
struct mew_guest_channel *mew_guest_channel(void);
/* The pass that this process was started for; MEW_GUEST_ALONE without a channel, or in a child of the program. */
enum mew_guest_pass mew_guest_pass(void);
/* The framework's own memory pass is running. */
bool mew_guest_in_memory_pass(void);

/*
 * Edges of a loop's first thread, in each pass: before and behind the framework's barriers. They take turns with the
 * loop of another build where the command gave a page for that, and are slices of the timeline.
 */
void mew_guest_first_enters(void);
void mew_guest_first_leaves(unsigned threads, uint64_t iterations);
/* All loops of this process are over: the other build need not wait for it. */
void mew_guest_end_turns(void);
/* Map the page that the command's channel names, if it names one. */
void mew_guest_find_page(const struct mew_guest_channel *channel);
/* What this process is called on the timeline; a case that is reported. Nothing happens without a trace. */
void mew_guest_trace_process(enum mew_guest_pass pass);
void mew_guest_trace_case(const struct mew_guest_run *run);

#endif
