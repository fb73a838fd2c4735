/*
 * guest_pass.h - a pass over the chosen cases of a program of another framework: a process for all of them, and another
 * one for those behind a case that ended it.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GUEST_PASS_H
#define MEW_GUEST_PASS_H

#include "guest_host.h"
#include "plan.h"
#include "terminal.h"

struct mew_guest_job {
	struct mew_guest_host *host;
	const struct mew_plan_options *plan;
	struct mew_model *model;          /* gets the rows */
	struct mew_progress *progress;
	const char *program;              /* of the rows; NULL: they name none */
	bool exact;                       /* the memory pass: plan->memory_iterations behind as many warm ones; one, where the framework takes no number */
	bool *chosen, *reported, *failed, *measured; /* per name of the host: reported by this process, measured by any */
	size_t done, steps;               /* of the progress */
	enum mew_pass pass;
	const char *pass_name;
	bool told_untraced;               /* that its processes are missing from the trace */
	bool ended_badly;                 /* returned: a process failed behind its last benchmark */
};

/*
 * For a host that is open; all are borrowed, nothing is chosen. Returns 0, or -1 without memory; mew_guest_job_fini()
 * is due.
 */
int mew_guest_job_init(struct mew_guest_job *j, struct mew_guest_host *host, const struct mew_plan_options *plan,
		       struct mew_model *model, struct mew_progress *progress);
void mew_guest_job_fini(struct mew_guest_job *j);

/* Run a pass. A case that fails has a row with the reason; none stops the others. */
void mew_guest_run_pass(struct mew_guest_job *j, enum mew_pass pass);

#endif
