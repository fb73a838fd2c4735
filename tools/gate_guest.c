/*
 * gate_guest.c - a gate of Google Benchmark programs: exact figures of both sides, then for each case pairs of fresh
 * processes whose loops take turns.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "cli.h"
#include "gate_time.h"
#include "guest_pair.h"
#include "guest_pass.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guests {
	struct mew_gate *g;
	struct mew_guest_pair pair;
	struct mew_pair_observation scratch;
	struct mew_progress progress;
};

/* --- which cases ------------------------------------------------------------------------------------------------ */

static int add_cases(struct guests *p, enum mew_side side)
{
	const struct mew_guest_host *h = &p->pair.host[side], *other = &p->pair.host[!side];

	for (size_t i = 0; i < h->nnames; i++) {
		bool both = mew_guest_find(other, h->names[i]) < other->nnames;
		struct mew_gate_case *c;

		if ((both && side == MEW_HEAD) || !mew_select_matches(p->g->options->select, h->names[i], NULL, NULL))
			continue;
		c = mew_gate_add(p->g, h->names[i], NULL);
		if (c == NULL)
			return -1;
		if (!both)
			mew_gate_fail(c, "only %s has it, so there is nothing to compare: choose the common cases by "
					 "-k or -F",
				      mew_side_name(side));
	}
	return 0;
}

static int choose_cases(struct guests *p)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (add_cases(p, side) != 0) {
			mew_cli_complain("no memory for the cases");
			return MEW_EXIT_USAGE;
		}
	for (size_t i = 0; i < p->g->ncases; i++)
		p->g->cases[i].pair.key = p->g->cases[i].key;
	if (p->g->ncases > 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("none of the benchmarks matches -k and -F; `mew list --gbench-program` shows them");
	return MEW_EXIT_INVALID;
}

/* --- exact figures ---------------------------------------------------------------------------------------------- */

/* Where the figures cannot be had at all, time is judged alone, and the reports say why. */
static void exact_pass(void *data, enum mew_side side, bool again)
{
	struct guests *p = data;
	struct mew_guest_host *h = &p->pair.host[side];
	struct mew_gate *g = p->g;
	struct mew_model *into = again ? g->recounts[side] : g->models[side];
	struct mew_plan_options o;
	struct mew_guest_job j;

	mew_plan_defaults(&o);
	o.memory_iterations = g->options->memory_iterations;
	o.stacks = false;
	if (mew_guest_job_init(&j, h, &o, into, &p->progress) != 0) {
		(void)snprintf(g->uncounted, sizeof g->uncounted, "no memory for the memory pass");
		return;
	}
	j.exact = true;
	for (size_t i = 0; i < g->ncases; i++) {
		size_t name = mew_guest_find(h, g->cases[i].key);

		if (name == h->nnames || g->cases[i].reason != NULL ||
		    (again && !mew_gate_wants_recount(g, &g->cases[i])))
			continue;
		j.chosen[name] = true;
		j.steps++;
	}
	mew_guest_run_pass(&j, MEW_PASS_MEMORY);
	mew_guest_job_fini(&j);
	mew_gate_check_exact(g, into, side);
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static int observe(void *data, struct mew_gate_case *c, struct mew_gate_observation *out, struct mew_error *err)
{
	struct guests *p = data;
	struct mew_pair_observation *got = &p->scratch;
	int status = mew_guest_pair_calibrate(&p->pair, &c->pair, p->g->options->extra_work, err);

	if (status == MEW_OK)
		status = mew_guest_pair_observe(&p->pair, &c->pair, p->g->options->rounds, got, err);
	if (status == MEW_OK)
		*out = mew_gate_observation_of(got);
	return status;
}

static bool skips(void *data, struct mew_gate_case *c)
{
	struct guests *p = data;

	return mew_guest_pair_skips(&p->pair, &c->pair);
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static void check_identity(struct mew_gate *g)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		struct mew_tool now;
		struct mew_error err;

		if (g->tools[side].path[0] == '\0') /* nobody asked what it was */
			continue;
		if (mew_tool_file(g->options->programs[side], &now, &err) != MEW_OK ||
		    now.hash != g->tools[side].hash ||
		    strcmp(now.path, g->tools[side].path) != 0)
			(void)snprintf(g->identity, sizeof g->identity, "%s was replaced while it was measured: %.150s",
				       mew_side_name(side), g->options->programs[side]);
	}
}

static int measure(struct guests *p)
{
	const struct mew_gate_method method = { p, NULL, observe, skips };
	struct mew_gate *g = p->g;
	struct mew_error err;
	int code = choose_cases(p);

	if (code != MEW_EXIT_FINE)
		return code;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		mew_model_take_facts(g->models[side], p->pair.host[side].facts);
	code = mew_calibration_apply(g);
	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_gate_continue(g, &err) != MEW_OK) { /* its looks need the floors of the calibration */
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_INVALID;
	}
	if (g->options->memory_iterations > 0)
		mew_gate_exact_passes(g, exact_pass, p);
	if (mew_gate_take_time(g, &method, &p->progress, &err) != MEW_OK && !g->interrupted) {
		mew_progress_clear(&p->progress);
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	check_identity(g);
	return MEW_EXIT_FINE;
}

int mew_gate_guests(struct mew_gate *g)
{
	struct guests *p = calloc(1, sizeof *p);
	struct mew_error err;
	int code;

	if (p == NULL) {
		mew_cli_complain("no memory for the gate");
		return MEW_EXIT_USAGE;
	}
	p->g = g;
	mew_progress_init(&p->progress, g->options->progress);
	if (mew_guest_pair_open(&p->pair, g->options->programs, &g->options->host, g->options->seed, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		code = MEW_EXIT_USAGE;
	} else {
		code = measure(p);
	}
	mew_progress_clear(&p->progress);
	mew_guest_pair_close(&p->pair);
	free(p);
	return code;
}
