/*
 * plan_private.h - what the files of the plan share: a pass over all cases, and the steps that each pass is made of.
 * Layer L4. The plan's thread.
 */
#ifndef MEW_PLAN_PRIVATE_H
#define MEW_PLAN_PRIVATE_H

#include "plan.h"

#define MEW_PLAN_SAMPLES_MAX ((uint64_t)1 << 16)

struct mew_plan_pass { /* one pass over all cases */
	const struct mew_driver *d;
	struct mew_plan_case *cases;
	size_t n;
	enum mew_pass pass;
	enum mew_kind kind;
	const struct mew_plan_options *o;
	struct mew_model *model;
	unsigned process;
	size_t done, total; /* steps, for progress */
	const struct mew_plan_case *all; /* for the timeline: those that a case may come after */
	size_t nall;
	uint64_t free_ns;   /* for the timeline: the visit before ended then, or the call began */
	bool stopped;
};

/* Tell progress that this case is next. False when the pass was stopped, or the case is dead. */
bool mew_plan_go_on(struct mew_plan_pass *r, const struct mew_plan_case *c);

/* Open and close a case in the driver; one that cannot be opened is dead, with the reason in its row. */
void mew_plan_open_case(struct mew_plan_pass *r, struct mew_plan_case *c);
void mew_plan_close_case(struct mew_plan_pass *r, struct mew_plan_case *c);

/* A request for a block of the case, with what is the same for all blocks of the pass. */
struct mew_request mew_plan_request(const struct mew_plan_pass *r, const struct mew_plan_case *c, int phase,
				    unsigned repetition);

/* Run a block and take its outcome over. Returns the row; NULL (and the case is dead) when it failed. */
struct mew_case *mew_plan_block(struct mew_plan_pass *r, struct mew_plan_case *c, const struct mew_request *rq);

/* The last run of a row; NULL when there is none. */
const struct mew_run *mew_plan_last_run(const struct mew_case *row);

/* How often the pass visits the case in each process. */
unsigned mew_plan_repetitions(const struct mew_plan_pass *r, const struct mew_plan_case *c);

/* The visit that mew_plan_trace_begin() began is over: show it on the timeline. */
void mew_plan_show_case(struct mew_plan_pass *r, struct mew_plan_case *c);

/* All blocks of a case in one process; of all cases in turn. */
void mew_plan_time_case(struct mew_plan_pass *r, struct mew_plan_case *c);
void mew_plan_time_interleaved(struct mew_plan_pass *r);
void mew_plan_memory_case(struct mew_plan_pass *r, struct mew_plan_case *c);
void mew_plan_cpu_case(struct mew_plan_pass *r, struct mew_plan_case *c);

#endif
