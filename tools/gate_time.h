/*
 * gate_time.h - observation after observation until every case is decided or the time is up, whatever makes one.
 * Layer L6. The command's thread.
 */
#ifndef MEW_GATE_TIME_H
#define MEW_GATE_TIME_H

#include "gate.h"

struct mew_gate_method { /* how two fresh processes come to say something of a case */
	void *data;
	/*
	 * Before each sweep over the cases: a pair of processes for all of them; NULL: each observation starts its own.
	 * Returns MEW_OK, or a status that ends the gate.
	 */
	int (*fresh)(void *data, struct mew_error *err);
	/* Returns MEW_OK and the observation, or what the case failed with, naming the side. */
	int (*observe)(void *data, struct mew_gate_case *c, struct mew_gate_observation *out, struct mew_error *err);
	/* Asked where one side skipped a case: do both? */
	bool (*skips)(void *data, struct mew_gate_case *c);
};

/* Was it interrupted? */
bool mew_gate_is_cancelled(const struct mew_gate *g);

/* Seconds that --budget leaves, counted from g->start_ns, below 0 when it is over; infinite without one. */
double mew_gate_time_left(const struct mew_gate *g);

/* g->seconds: what it took until now, with the run that goes on here. */
void mew_gate_stop_clock(struct mew_gate *g);

/* Does what lasts so long still fit into --budget, counted from g->start_ns? If not, g->out_of_time is set. */
bool mew_gate_has_time(struct mew_gate *g, uint64_t longest_ns);

/*
 * Sweep over the cases that are not decided, until all are, or have as many observations as were asked for, or the time
 * is up. samples.json is written after every sweep.
 *
 * Returns  MEW_OK, also after an interrupt, or a status that ends the gate: what was measured stays
 */
int mew_gate_take_time(struct mew_gate *g, const struct mew_gate_method *method, struct mew_progress *progress,
		       struct mew_error *err);

#endif
