/*
 * guest_channel.h - memory that the command shares with a program whose framework drives the bodies.
 * Layer L4. A mapping and no descriptor: a program that closes every descriptor, changes its root or dies half-way has
 * handed over what it had by then.
 *
 * Format   struct mew_guest_channel, then frames: u64 length and so many bytes. They are models as in wire.h, the first
 *          with facts about the process; in the list pass the second one is text, a name on each line.
 */
#ifndef MEW_GUEST_CHANNEL_H
#define MEW_GUEST_CHANNEL_H

#include "base.h"

#define MEW_GUEST_ENVIRONMENT "MEW_GUEST_CHANNEL"       /* the descriptor's number */
#define MEW_GUEST_MAGIC UINT64_C(0x336e61686377656d)
#define MEW_GUEST_BYTES ((size_t)1 << 30)               /* address space; pages come as they are written */
#define MEW_GUEST_LOOPS 4096u
#define MEW_GUEST_LEFT UINT32_MAX

struct mew_guest_channel {
	uint64_t magic;
	uint64_t bytes;         /* of the mapping */
	/* written by the command before the program starts */
	uint32_t pass;          /* enum mew_guest_pass */
	uint32_t stacks;
	uint64_t interval_ns;
	uint32_t clock;         /* enum mew_clock */
	uint32_t process;       /* its number among the fresh processes of a pass */
	int32_t pace_fd;        /* of a page to take turns by (pace.h); -1: none */
	uint32_t side;          /* enum mew_side there */
	/* written by the program */
	uint32_t loaded;        /* process id of the first with libmew_guest; MEW_GUEST_LEFT when it has exited; atomic */
	uint32_t owner;         /* process id of the one that runs benchmarks; atomic */
	uint32_t full;          /* a frame found no room; atomic */
	uint64_t used;          /* bytes of complete frames; atomic */
	uint32_t untraced;      /* a trace was asked for, and it cannot write its part */
	uint32_t counted;       /* it takes a number of iterations for a time */
	uint32_t loops;         /* taken in turns so far */
	unsigned char disturbed[MEW_GUEST_LOOPS]; /* of the last of them, by number: it lost the processor */
	char refusal[240];
};

#endif
