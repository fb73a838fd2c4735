/*
 * gate_plan.h - the phases file of `mew gate --command`: which commands make a phase, what they must have done.
 * Layer L6. The command's thread.
 *
 * The file is an object: "phases", a list, and "contention", a list of phases for --contention (without it the phases
 * themselves are run side by side). A phase has
 *
 *	name       letters, digits, . _ -
 *	prepare    commands before the clock; never timed
 *	run        commands inside the clock; without it the arm's own command line
 *	restore    commands after it; a command is a text or {"command": TEXT, "timed": true or false}, or a list of those
 *	cold       true: with --cold-every N it runs in each N-th sample, the state it left is used again in the others
 *	env        object of texts for both arms; env_base and env_head for one
 *	counts     object: count to "less" or "more", whichever is better
 *	require    object: count to a condition such as ">0" or "==0"
 *	artefacts  list of files below MEW_SCRATCH that are copied to the logs
 *	jobs       in contention alone: list of commands that run together
 */
#ifndef MEW_GATE_PLAN_H
#define MEW_GATE_PLAN_H

#include <jansson.h>

#include "verdict.h"

#define MEW_PLAN_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-" /* letters of names */
#define MEW_PLAN_VARIABLES 48u /* of a side, at most */
#define MEW_PLAN_COUNTS 16u
#define MEW_PLAN_PHASES 32u
#define MEW_PLAN_JOBS 256u

struct mew_step { /* one command line, for /bin/sh -c */
	const char *line;
	bool timed;
};

struct mew_steps {
	struct mew_step *list;
	size_t n;
};

struct mew_require { /* what a count must be, or the run did not do its job */
	const char *name;
	const char *text; /* ">0" */
};

struct mew_command_phase { /* texts belong to the tree of the file */
	const char *name;
	char key[80]; /* name, or contention/name */
	struct mew_steps prepare, run, restore;
	bool cold;
	const json_t *env[3]; /* of the base, of the head, of both */
	const json_t *artefacts;
	size_t counts[MEW_PLAN_COUNTS]; /* places in the plan's list */
	size_t ncounts;
	struct mew_require require[MEW_PLAN_COUNTS];
	size_t nrequire;
	const json_t *jobs; /* NULL: every job is the run */
	bool contended;
};

struct mew_command_plan {
	json_t *tree;
	uint64_t hash; /* of what the file says: tells it from another */
	struct mew_command_phase list[MEW_PLAN_PHASES]; /* the contended ones last */
	size_t n, isolated;
	struct mew_metric counts[MEW_PLAN_COUNTS];
	size_t ncounts;
};

/*
 * Read a phases file, trusting nothing.
 *
 * contention  whether contended phases are wanted
 * out         returned, freed by mew_command_plan_free() also after a failure
 * Returns     MEW_OK; MEW_E_IO, MEW_E_INVALID, MEW_E_NOMEM with a sentence that names file, phase, member and what it must be
 */
int mew_command_plan_read(const char *path, bool contention, struct mew_command_plan *out, struct mew_error *err);
void mew_command_plan_free(struct mew_command_plan *plan);

/* Does the value meet the condition (">0", ">=2", "<5", "<=5", "==0", "!=0")? -1: it is not a condition. */
int mew_require_is_met(const char *text, double value);

#endif
