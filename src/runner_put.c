/*
 * runner_put.c - see runner_put.h.
 * Layer L4. Runner thread, after the block.
 */
#include "config.h"

#include "runner_put.h"

#include <math.h>
#include <string.h>

static void put_counter(struct mew_model *m, struct mew_case *c, const struct mew_block *b,
			const struct mew_user_counter *u)
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

/* The CPU clock is not read at a pause: a pause of any thread is in the sum. */
static bool has_paused(const struct mew_block *b)
{
	for (unsigned t = 0; t < b->threads; t++)
		if (b->states[t].paused_in_loop)
			return true;
	return false;
}

static int put_runs(struct mew_model *m, struct mew_case *c, const struct mew_request *rq, const struct mew_block *b)
{
	bool has_cpu = b->backend == NULL && !has_paused(b);

	for (size_t i = 0; i < b->nruns; i++) {
		const struct mew_sample_run *s = &b->runs[i];
		struct mew_run run = {
			.phase = rq->phase,
			.process = rq->process,
			.repetition = rq->repetition,
			.loops = s->loops,
			.nsamples = s->n,
			.real_ns = b->real_ns + s->first,
			.cpu_ns = has_cpu ? b->cpu_ns + s->first : NULL,
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

/* Of the first thread that has one. */
static int put_label(struct mew_model *m, struct mew_case *c, const struct mew_block *b)
{
	for (unsigned t = 0; t < b->threads; t++) {
		if (b->states[t].label[0] == '\0')
			continue;
		c->label = mew_model_string(m, b->states[t].label);
		return c->label != NULL ? 0 : -1;
	}
	return 0;
}

/* Did a thread before this one have a counter of that name? Its figure holds those of all. */
static bool is_put(const struct mew_block *b, unsigned thread, const char *name)
{
	for (unsigned t = 0; t < thread; t++)
		for (unsigned i = 0; i < b->states[t].ncounters; i++)
			if (strcmp(b->states[t].counters[i].name, name) == 0)
				return true;
	return false;
}

int mew_runner_put(struct mew_model *m, struct mew_case *c, const struct mew_request *rq, const struct mew_block *b)
{
	if (put_runs(m, c, rq, b) != 0)
		return -1;
	for (unsigned t = 0; t < b->threads; t++) {
		c->bytes_per_iteration += b->states[t].bytes;
		c->items_per_iteration += b->states[t].items;
	}
	if (put_label(m, c, b) != 0)
		return -1;
	for (unsigned t = 0; t < b->threads; t++)
		for (unsigned i = 0; i < b->states[t].ncounters; i++)
			if (!is_put(b, t, b->states[t].counters[i].name))
				put_counter(m, c, b, &b->states[t].counters[i]);
	return 0;
}
