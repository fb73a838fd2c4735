/*
 * pace.h - two timing loops that take turns: a page both map says whose sample comes next.
 * Layer L1. The loops may be in two processes, where one sleeps while the other measures, or on one thread (duo.h).
 */
#ifndef MEW_PACE_H
#define MEW_PACE_H

#include "base.h"
#include "duo.h"

#define MEW_PACE_TURNS 4096u /* samples of both sides together */

enum mew_side { MEW_BASE, MEW_HEAD, MEW_SIDES };

struct mew_pace { /* the page; all that changes while loops run is atomic */
	uint32_t turn;                        /* index of the next sample; loops sleep on it */
	uint32_t total;                       /* samples of both sides */
	uint32_t arrived;                     /* sides that are at their loop; loops sleep on it until it is MEW_SIDES */
	uint32_t ended;                       /* a side left before its last sample: the other must not wait */
	unsigned char owner[MEW_PACE_TURNS];  /* enum mew_side of each turn */
	unsigned char disturbed[MEW_PACE_TURNS]; /* written by the turn's owner: it lost the processor within the sample */
};

/*
 * A page that processes can share.
 *
 * fd       returned: a memory file to be inherited; closed on exec unless its flag is taken away
 * Returns  the page, all zero; NULL when the system has no memory for it (errno is set)
 * Context  caller thread; mew_pace_unmap() is due, and close(fd)
 */
struct mew_pace *mew_pace_create(int *fd);
/* The page behind an inherited descriptor; NULL when it is none (errno is set). */
struct mew_pace *mew_pace_map(int fd);
void mew_pace_unmap(struct mew_pace *p);

/* Heads or tails. `seed` is changed for the next call. */
bool mew_pace_coin(uint64_t *seed);

/*
 * Say the order before the loops start: pairs of one sample of each side; the first pair's order is random, each second
 * pair has the reverse order of the one before it, so that a drift and the place in a pair fall on both sides alike.
 *
 * rounds   pairs, at most MEW_PACE_TURNS / 2
 * seed     changed for the next call
 */
void mew_pace_plan(struct mew_pace *p, unsigned rounds, uint64_t *seed);

/*
 * Rest until the side's turn has come.
 *
 * duo      the other loop is on the same thread and gets it meanwhile; NULL: sleep
 * Returns  false when there is no turn any more
 * Context  a loop's thread, between samples
 */
bool mew_pace_wait(struct mew_pace *p, enum mew_side side, bool first, struct mew_duo *duo);
/* The running turn's sample is done. */
void mew_pace_pass(struct mew_pace *p, bool disturbed);
/* Rest until both sides have taken their last sample: what follows a loop must not fall into the other's. */
void mew_pace_await_end(struct mew_pace *p, struct mew_duo *duo);
/* Let the other side go on to its end. Context: any thread of either side, or of a process that watches both. */
void mew_pace_leave(struct mew_pace *p);

#endif
