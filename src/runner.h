/*
 * runner.h - run a case in this process: open it, run blocks of it, close it.
 * Layer L4. The one way a body is driven; directly by a session in this process, or by a worker for the command.
 */
#ifndef MEW_RUNNER_H
#define MEW_RUNNER_H

#include "entries.h"
#include "model.h"
#include "state.h"

/* The row that a pass fills. */
static inline enum mew_kind mew_pass_kind(enum mew_pass pass)
{
	return pass == MEW_PASS_MEMORY ? MEW_KIND_MEMORY : pass == MEW_PASS_CPU ? MEW_KIND_CPU : MEW_KIND_TIME;
}

/* "time", "memory" or "CPU": the name of a pass for people. */
const char *mew_pass_name(enum mew_pass pass);

struct mew_request { /* run one block */
	uint32_t item;           /* of the catalogue */
	enum mew_pass pass;
	int phase;               /* enum mew_phase */
	unsigned process, repetition;
	bool resident;           /* captured by the backend of resident memory, not by that of the pass */
	bool captured;           /* memory and CPU pass: with the backend (the value block) or without (its warm-up) */
	struct mew_block_plan plan;
	uint64_t interval_ns;    /* CPU */
	bool stacks;             /* memory */
	bool pause_cpu;          /* CPU */
	enum mew_clock clock;    /* CPU */
	int pace_fd;             /* timing: the page of a loop to take turns with (pace.h), inherited; 0: alone */
	enum mew_side side;
};

struct mew_open_case; /* a case that had its set-up and not yet its teardown */

struct mew_runner {
	const struct mew_catalogue *catalogue;   /* borrowed */
	const struct mew_hook *const *hooks;     /* borrowed */
	size_t nhooks;
	struct mew_open_case *open;              /* list */
};

void mew_runner_init(struct mew_runner *r, const struct mew_catalogue *catalogue, const struct mew_hook *const *hooks,
		     size_t nhooks);
/* Close what is still open. */
void mew_runner_fini(struct mew_runner *r);

/* Set up a case for a pass: its setup() and its hooks' bookkeeping. Returns MEW_OK or a status. */
int mew_runner_open(struct mew_runner *r, uint32_t item, enum mew_pass pass, struct mew_error *err);

/*
 * Run one block of an open case. Two timing blocks of different cases may take turns on one thread.
 *
 * out      a fresh model; gets one case with the block's runs, counters, hook data and, in a captured block, the row and stacks
 * Returns  MEW_OK; else the case's failure with its sentence (MEW_E_UNSUPPORTED beginning "skipped: " for a skip)
 */
int mew_runner_run(struct mew_runner *r, const struct mew_request *rq, struct mew_model *out, struct mew_error *err);

/* A body was left by a longjmp that skipped mew_runner_run(): stop what still records. Context: the same thread. */
void mew_runner_abandon(void);

/* teardown() of the hooks and of the case. */
void mew_runner_close(struct mew_runner *r, uint32_t item, enum mew_pass pass);

#endif
