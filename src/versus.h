/*
 * versus.h - two cases of one program compared inside one process, their samples in turns on one thread.
 * Layer L4. What it says holds for this build: how the linker laid the two out is part of it.
 */
#ifndef MEW_VERSUS_H
#define MEW_VERSUS_H

#include "host.h"
#include "pace.h"
#include "verdict.h"

#define MEW_VERSUS_PAIRS 4096u

struct mew_versus_options {
	const char *program;
	const char *keys[MEW_SIDES]; /* base and head */
	const struct mew_host_options *host;
	double max_time;             /* seconds of measuring */
	uint64_t seed;               /* of all orders */
};

struct mew_versus_pair {             /* one sample of each case, one after the other */
	uint64_t ns[MEW_SIDES];      /* the whole sample */
	unsigned block;              /* call of both bodies that it is of */
	bool head_first;
	bool disturbed;              /* a sample lost the processor: the observation is left out */
};

struct mew_versus {
	struct mew_verdict verdict;  /* of time, at margin 0: is the head slower or faster */
	double ns[MEW_SIDES];        /* median of an iteration */
	uint64_t loops[MEW_SIDES];   /* iterations of a sample */
	unsigned blocks, disturbed;  /* disturbed: observations left out, since a sample of them lost the processor */
	double seconds;              /* from the start of the process to the verdict */
	uint64_t seed;               /* that the orders came of */
	struct mew_versus_pair *pairs; /* all, in the order in which they were taken */
	size_t npairs;
};

/*
 * Start the program and compare until the difference is certain or the time is up.
 *
 * An observation is the mean ln(head / base) of two pairs of samples, one that begins with each case. Both bodies run
 * on one thread that does not sleep between them, so a pair costs no wait for the processor. Blocks of pairs are short,
 * and the two cases change stacks from block to block, so that what a stack's place does to a loop falls on both.
 *
 * out      filled; mew_versus_free() is due in any case
 * Returns  MEW_OK; MEW_E_INVALID naming the case that does not exist or has threads of its own; what a case failed with
 * Context  the command's thread
 */
int mew_versus(const struct mew_versus_options *o, struct mew_versus *out, struct mew_error *err);
void mew_versus_free(struct mew_versus *v);

#endif
