/*
 * runner_put.c - see runner_put.h.
 * Layer L4. Runner thread, after the block.
 */
#include "config.h"

#include "runner_put.h"

#include <math.h>
#include <string.h>

static void put_counter(struct mew_model *m, struct mew_case *c, const struct mew_block *b, const struct mew_user_counter *u)
{
	double sum = 0, iterations = 0, seconds = 0;

	for (unsigned t = 0; t < b->threads; t++) {
		const struct mew_state *st = &b->states[t];

		iterations += (double)st->completed;
		seconds += (double)st->window_ns / 1e9 / b->threads;
		for (unsigned i = 0; i < st->ncounters; i++)
			if (strcmp(st->counters[i].name, u->name) == 0)
				sum += st->counters[i].value;
	}
	if ((u->flags & MEW_COUNTER_AVERAGE) != 0)
		sum /= b->threads;
	if ((u->flags & MEW_COUNTER_PER_ITERATION) != 0)
		sum /= iterations;
	if ((u->flags & MEW_COUNTER_RATE) != 0)
		sum /= seconds;
	if ((u->flags & MEW_COUNTER_INVERT) != 0)
		sum = 1 / sum;
	if (isfinite(sum))
		(void)mew_model_add_counter(m, c, u->name, sum);
}

static int put_runs(struct mew_model *m, struct mew_case *c, const struct mew_request *rq, const struct mew_block *b)
{
	for (size_t i = 0; i < b->nruns; i++) {
		const struct mew_sample_run *s = &b->runs[i];
		struct mew_run run = {
			.phase = rq->phase,
			.process = rq->process,
			.repetition = rq->repetition,
			.loops = s->loops,
			.nsamples = s->n,
			.real_ns = b->real_ns + s->first,
			.cpu_ns = b->backend == NULL && !b->states[0].paused_in_loop ? b->cpu_ns + s->first : NULL,
		};

		if (i == 0) {
			run.context_switches = b->context_switches;
			run.migrations = b->migrations;
			run.page_faults = b->page_faults;
		}
		if (mew_model_add_run(m, c, &run) != 0)
			return -1;
	}
	return 0;
}

int mew_runner_put(struct mew_model *m, struct mew_case *c, const struct mew_request *rq, const struct mew_block *b)
{
	if (put_runs(m, c, rq, b) != 0)
		return -1;
	for (unsigned t = 0; t < b->threads; t++) {
		c->bytes_per_iteration += b->states[t].bytes;
		c->items_per_iteration += b->states[t].items;
	}
	if (b->states[0].label[0] != '\0' && (c->label = mew_model_string(m, b->states[0].label)) == NULL)
		return -1;
	for (unsigned i = 0; i < b->states[0].ncounters; i++)
		put_counter(m, c, b, &b->states[0].counters[i]);
	return 0;
}
