/*
 * gate_phase.h - one phase of commands on one arm: prepare, run, restore, counts, artefacts.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GATE_PHASE_H
#define MEW_GATE_PHASE_H

#include "gate.h"
#include "gate_scratch.h"

struct mew_commands { /* a gate of commands while it measures */
	struct mew_gate *g;
	struct mew_scratch scratch;
	struct mew_progress progress;
	bool lost[MEW_GATE_CONTEXTS]; /* contexts that failed */
	unsigned most;                /* samples of this part */
	uint64_t longest_ns;          /* of a sample of this part */
};

struct mew_arm {
	const char *name, *line;
	enum mew_side side; /* MEW_SIDES: a context */
};

struct mew_phase_result {
	uint64_t ns; /* of the timed commands */
	double counts[MEW_PLAN_COUNTS]; /* as the phase lists them; NaN: the run left none */
};

/*
 * Run a phase once. Its output and artefacts are in logs/NN-arm/ whatever happens.
 *
 * Returns  MEW_OK, or MEW_E_BODY with a sentence about what it did not do
 */
int mew_phase_run(struct mew_commands *p, const struct mew_command_phase *phase, const struct mew_arm *arm,
		  unsigned sample, struct mew_phase_result *out, struct mew_error *err);

#endif
