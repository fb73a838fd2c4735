/*
 * gate_command.c - a gate of commands: phases timed as a whole, the arms taking turns, a pair of runs as an
 * observation. Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_phase.h"

#include "cli.h"
#include "error.h"
#include "gate_step.h"
#include "gate_time.h"
#include "os.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of samples draw once: the second runs in the reverse order of the first, so neither arm is always the later. */
static bool head_first(uint64_t seed, unsigned sample)
{
	struct mew_random r;
	uint64_t drawn = 0;

	mew_random_seed(&r, seed);
	for (unsigned i = 0; i <= sample / 2; i++)
		drawn = mew_random_next(&r);
	return ((drawn >> 63) ^ (sample & 1)) != 0;
}

/* --- one pair --------------------------------------------------------------------------------------------------- */

static int keep_pair(struct mew_gate *g, struct mew_gate_case *c, const struct mew_phase_result run[MEW_SIDES],
		     bool swapped, struct mew_error *err)
{
	struct mew_gate_observation o = {
		.ns = { (double)run[MEW_BASE].ns, (double)run[MEW_HEAD].ns }, .loops = 1, .rounds = 1, .cpu = -1,
		.head_first = swapped,
	};

	o.log_ratio = log(o.ns[MEW_HEAD] / o.ns[MEW_BASE]);
	o.ties = o.log_ratio < 0 || o.log_ratio > 0 ? 0 : 1;
	if (mew_gate_count_pair(c, run[MEW_BASE].counts, run[MEW_HEAD].counts) != 0 ||
	    (c->stage != MEW_GATE_DECIDED && mew_gate_observe(&c->series, &o) != 0))
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the observations of \"%s\"", c->key);
	return mew_gate_look(g, c, g->ncases, err);
}

static int check_sides(struct mew_gate *g)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		struct mew_error err;

		if (mew_tool_check(g->options->programs[side], &g->tools[side], &err) == MEW_OK)
			continue;
		(void)snprintf(g->identity, sizeof g->identity, "%s: %s", mew_side_name(side), err.text);
		return -1;
	}
	return 0;
}

/* Shown and never judged: a context that fails is left out from then on. */
static void run_contexts(struct mew_commands *p, struct mew_gate_case *c, unsigned sample, uint64_t base_ns)
{
	for (size_t k = 0; k < p->g->options->ncontexts; k++) {
		const struct mew_gate_context *context = &p->g->options->contexts[k];
		struct mew_arm arm = { context->name, context->program, MEW_SIDES };
		struct mew_phase_result run;
		struct mew_error err;

		if (p->lost[k])
			continue;
		if (mew_phase_run(p, c->phase, &arm, sample, &run, &err) != MEW_OK) {
			p->lost[k] = true;
			if (!mew_gate_is_cancelled(p->g))
				mew_cli_complain("context %s: %s: %s", context->name, c->key, err.text);
			continue;
		}
		(void)mew_gate_observe(&c->contexts[k], &(struct mew_gate_observation){
			.log_ratio = log((double)run.ns / (double)base_ns), .ns = { (double)base_ns, (double)run.ns },
			.loops = 1, .rounds = 1, .cpu = -1, .context = true });
	}
}

/* One phase on both arms. Returns a status that ends the gate: what was measured stays. */
static int run_pair(struct mew_commands *p, struct mew_gate_case *c, unsigned sample, struct mew_error *err)
{
	struct mew_gate *g = p->g;
	bool swapped = head_first(g->options->seed, sample);
	struct mew_phase_result run[MEW_SIDES];

	for (unsigned turn = 0; turn < MEW_SIDES; turn++) {
		enum mew_side side = (turn == 0) == swapped ? MEW_HEAD : MEW_BASE;
		struct mew_arm arm = { mew_side_name(side), g->options->programs[side], side };

		if (check_sides(g) != 0)
			return MEW_E_INVALID;
		if (mew_phase_run(p, c->phase, &arm, sample, &run[side], err) == MEW_OK)
			continue;
		if (!mew_gate_is_cancelled(g))
			mew_gate_fail(c, "%s, sample %u: %s", arm.name, sample, err->text);
		return MEW_E_BODY;
	}
	g->processes++;
	if (keep_pair(g, c, run, swapped, err) != MEW_OK)
		return MEW_E_NOMEM;
	run_contexts(p, c, sample, run[MEW_BASE].ns);
	return MEW_OK;
}

/* --- samples ---------------------------------------------------------------------------------------------------- */

/*
 * A cold state is used again in all but each N-th sample; a run that goes on has none left, so its first one is cold.
 */
static bool is_reused(const struct mew_gate *g, const struct mew_command_phase *phase, unsigned sample, unsigned first)
{
	unsigned every = g->options->cold_every == 0 ? 1 : g->options->cold_every;

	return phase->cold && sample != first && sample % every != 0;
}

static int take_sample(struct mew_commands *p, size_t from, size_t to, unsigned sample, unsigned first,
		       struct mew_error *err)
{
	struct mew_gate *g = p->g;
	int status = MEW_OK;

	for (size_t i = from; i < to && status == MEW_OK && !mew_gate_is_cancelled(g); i++) {
		struct mew_gate_case *c = &g->cases[i];

		mew_progress_show(&p->progress, c, c->key, 0, "gate", sample, p->most);
		if (is_reused(g, c->phase, sample, first))
			c->reused++;
		else
			status = run_pair(p, c, sample, err);
	}
	return status;
}

static bool any_open(const struct mew_gate *g, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (g->cases[i].stage != MEW_GATE_DECIDED)
			return true;
	return false;
}

/* Samples that an interrupted run took: of the phase that ran most often. */
static unsigned taken(const struct mew_gate *g, size_t from, size_t to)
{
	unsigned most = 0;

	for (size_t i = from; i < to; i++) {
		unsigned n = (unsigned)g->cases[i].series.n + g->cases[i].reused;

		most = n > most ? n : most;
	}
	return most;
}

/* Phases from..to, in order, until all are decided or there were so many samples. */
static int take_samples(struct mew_commands *p, size_t from, size_t to, unsigned most, struct mew_error *err)
{
	unsigned first = taken(p->g, from, to);
	int status = MEW_OK;

	p->longest_ns = 0;
	p->most = most;
	for (unsigned s = first;
	     s < most && status == MEW_OK && any_open(p->g, from, to) && !mew_gate_is_cancelled(p->g); s++) {
		uint64_t before = mew_os_now_ns(), took;
		int written;

		if (!mew_gate_has_time(p->g, p->longest_ns))
			break;
		status = take_sample(p, from, to, s, first, err);
		took = mew_os_now_ns() - before;
		p->longest_ns = took > p->longest_ns ? took : p->longest_ns;
		mew_gate_stop_clock(p->g);
		p->g->interrupted = mew_gate_is_cancelled(p->g);
		written = mew_gate_write_samples(p->g, err);
		if (written != MEW_OK)
			return written;
	}
	return status;
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static int add_cases(struct mew_gate *g, struct mew_error *err)
{
	for (size_t i = 0; i < g->options->plan->n; i++) {
		const struct mew_command_phase *phase = &g->options->plan->list[i];
		struct mew_gate_case *c = mew_gate_add(g, phase->key, NULL);

		if (c == NULL)
			return mew_error_set(err, MEW_E_NOMEM, "no memory for the phases");
		c->phase = phase;
	}
	return mew_gate_continue(g, err);
}

static int measure(struct mew_commands *p, struct mew_error *err)
{
	struct mew_gate *g = p->g;
	size_t isolated = g->options->plan->isolated;
	int status = add_cases(g, err);

	if (status == MEW_OK)
		status = mew_scratch_open(&p->scratch, g, err);
	if (status != MEW_OK)
		return status;
	p->g->start_ns = mew_os_now_ns();
	status = take_samples(p, 0, isolated, g->options->pairs, err);
	if (status == MEW_OK && g->ncases > isolated && !mew_gate_is_cancelled(g))
		status = take_samples(p, isolated, g->ncases, g->options->contention_samples, err);
	g->interrupted = mew_gate_is_cancelled(g);
	return status;
}

int mew_gate_commands(struct mew_gate *g)
{
	struct mew_commands *p = calloc(1, sizeof *p);
	struct mew_error err = { 0 };
	int status;

	if (p == NULL) {
		mew_cli_complain("no memory for the gate");
		return MEW_EXIT_USAGE;
	}
	p->g = g;
	mew_progress_init(&p->progress, g->options->progress);
	status = measure(p, &err);
	mew_progress_clear(&p->progress);
	mew_command_sweep();
	mew_scratch_close(&p->scratch);
	free(p);
	/* what failed in a run is judged with the rest: the verdict says that it is invalid */
	if (status == MEW_OK || status == MEW_E_BODY || g->identity[0] != '\0' || g->interrupted)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s", err.text);
	return MEW_EXIT_USAGE;
}
