/*
 * cli_private.h - what the files of `mew run` share: the programs, their cases, and how far the run is.
 * Layer L6. The command's thread.
 */
#ifndef MEW_CLI_PRIVATE_H
#define MEW_CLI_PRIVATE_H

#include "allocator_list.h"
#include "cli.h"

struct mew_cli_lanes;

struct mew_cli_run { /* of `mew run` */
	struct mew_cli *cli;
	struct mew_allocators allocators;
	struct mew_host_options options[MEW_ALLOCATORS_MAX]; /* of the hosts under each */
	struct mew_host *hosts; /* per program, and of it per allocator */
	size_t nhosts;
	struct mew_plan_case **cases; /* per host */
	size_t *ncases;
	struct mew_model *model;
	struct mew_progress progress;
	size_t steps_before;          /* progress: passes and programs behind */
	size_t steps;
	bool measured;                /* there is a run to show */
	bool cut_short;               /* cases have fewer processes than was asked for, and say why */
	uint64_t pass_ns;             /* the first case of the pass could begin then; 0: none could yet */
	uint64_t visited_ns;          /* the last visit of the pass ended then; 0: none did yet */
	struct mew_cli_lanes *lanes;  /* the memory pass runs in them; NULL: it does not */
};

/* How many hosts each program has, and what is preloaded in one of them; NULL: nothing that was asked for. */
size_t mew_cli_allocators(const struct mew_cli_run *r);
const struct mew_named_allocator *mew_cli_allocator(const struct mew_cli_run *r, size_t host);

/* Steps of progress that a host's part of a pass has. */
size_t mew_cli_steps(const struct mew_cli_run *r, size_t i, enum mew_pass pass);

/* Show that `c` is next after `steps` steps. False once the run was interrupted. */
bool mew_cli_show(struct mew_cli_run *r, const struct mew_plan_case *c, enum mew_pass pass, size_t steps);

/* For struct mew_plan_options: wait until the case is alone, and show it. False once the run was interrupted. */
bool mew_cli_progress(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total);

/* Did one of the signals come since mew_cli_catch_interrupts()? Context: any thread. */
bool mew_cli_interrupted(void);

/* All passes that the flags ask for, over all programs, into the model. */
void mew_cli_passes(struct mew_cli_run *r);

/*
 * Start the memory pass of all programs in lanes and wait until the last case has one.
 * Returns false when it has to run the ordinary way: --jobs does not ask for it, or it cannot be had (then a line says
 * so).
 */
bool mew_cli_lanes_begin(struct mew_cli_run *r);

/*
 * Wait for the lanes to be empty and take over what they measured, in the order of the cases. Nothing happens without
 * lanes.
 *
 * is_awaited  a case of another pass waits for it, which shows on the timeline
 */
void mew_cli_lanes_end(struct mew_cli_run *r, bool is_awaited);

/* Names, tables and files of what was measured. Returns the exit code. */
int mew_cli_finish(struct mew_cli_run *r);

#endif
