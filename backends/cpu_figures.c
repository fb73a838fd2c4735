/*
 * cpu_figures.c - from the records of a window to the row: samples, figures, lists and what has to be said.
 * Layer L3. Runner thread, after the window.
 */
#include "config.h"

#include "cpu_capture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cpu_lists.h"
#include "dead.h"
#include "error.h"
#include "modules.h"
#include "sink.h"
#include "stackset.h"
#include "unwinder.h"

#define NOTED_SHARE 0.2    /* of the loop, that the row says sampling took */
#define NOTED_SAMPLES 100u /* fewer say little about what they cost */

struct totals {
	uint64_t samples, weight_ns, blocked_ns, lost;
	uint64_t bench_samples, bench_weight_ns; /* of the benchmark threads */
	uint64_t pauses;
	uint64_t stops[MEW_STOPS];
	struct mew_cpu_thread_figures *rows; /* benchmark threads, then the crew */
	size_t nrows;
};

/* The model's number of a stack of the set; `known` remembers it, plus 1, by the set's number. */
static uint32_t intern(const struct mew_capture *c, struct mew_sink *sink, const struct mew_modules *modules,
		       uint32_t *known, uint32_t stack)
{
	const uintptr_t *pcs;
	size_t n;

	if (stack == 0)
		return MEW_NO_STACK;
	if (known[stack] == 0) {
		pcs = mew_stackset_frames(c->window.stacks, stack, &n);
		known[stack] = mew_sink_stack(sink, modules, pcs, n) + 1;
	}
	return known[stack] - 1;
}

static void put_sample(const struct mew_capture *c, uint32_t thread, const struct mew_cpu_record *record,
		       struct mew_sink *sink, uint32_t *known, struct totals *totals)
{
	struct mew_cpu_sample sample = { .stack = intern(c, sink, mew_modules_current(), known, record->stack),
					 .thread = thread,
					 .time_ns = record->time_ns,
					 .weight_ns = record->weight_ns,
					 .blocked = record->blocked != 0 };

	if (record->time_ns < c->from_ns || (c->until_ns != 0 && record->time_ns >= c->until_ns))
		return;
	mew_sink_sample(sink, &sample);
	totals->samples++;
	totals->weight_ns += record->weight_ns;
	totals->blocked_ns += record->blocked != 0 ? record->weight_ns : 0;
	totals->lost += record->stack == 0;
	totals->stops[record->stop < MEW_STOPS ? record->stop : MEW_STOP_UNSUPPORTED]++;
	totals->rows[thread].sample_count++;
	totals->rows[thread].sample_weight += (double)record->weight_ns * 1e-9;
}

static void drain_threads(const struct mew_capture *c, struct mew_sink *sink, uint32_t *known, struct totals *totals)
{
	struct mew_cpu_crew_record one;
	struct mew_cpu_record record;

	for (unsigned i = 0; i < c->config.threads; i++) {
		if (c->threads[i].sampled == NULL)
			continue;
		while (mew_ring_pop(&c->threads[i].sampled->ring, &record))
			put_sample(c, i, &record, sink, known, totals);
		totals->lost += mew_ring_dropped(&c->threads[i].sampled->ring);
		totals->pauses += atomic_load(&c->threads[i].sampled->pauses);
	}
	totals->bench_samples = totals->samples;
	totals->bench_weight_ns = totals->weight_ns;
	while (mew_cpu_crew_pop(c->crew, &one))
		put_sample(c, c->config.threads + one.number, &one.record, sink, known, totals);
	totals->lost += mew_cpu_crew_losses(c->crew).records;
}

static bool has_pauses(const struct mew_capture *c)
{
	for (unsigned i = 0; i < c->config.threads; i++)
		if (c->threads[i].sampled != NULL && atomic_load(&c->threads[i].sampled->pauses) != 0)
			return true;
	return false;
}

/* Returns NULL and the CPU time of all threads, or why it is not known. */
static const char *find_cpu_time(const struct mew_capture *c, uint64_t *sum)
{
	const struct mew_cpu_crew_row *crew;
	size_t n;

	*sum = 0;
	if (!c->config.pause_cpu && has_pauses(c))
		return "the case pauses, and reading the CPU clock would make each pause slow: "
		       "ask for it with .pause_cpu = 1";
	for (unsigned i = 0; i < c->config.threads; i++) {
		const struct mew_cpu_bench_thread *t = &c->threads[i];

		if (t->sampled == NULL || !t->has_cpu)
			return "the CPU clock of a benchmark thread could not be read";
		*sum += t->cpu_ns;
	}
	n = mew_cpu_crew_rows(c->crew, &crew);
	for (size_t i = 0; i < n; i++) {
		if (!crew[i].has_cpu)
			return "a thread of the case ended unseen, and its CPU clock with it";
		*sum += crew[i].cpu_ns;
	}
	return NULL;
}

/* Seconds of the window, pauses out, all threads together; the rows of the crew have their names and times. */
static double wall_of_all(const struct mew_capture *c, const struct mew_sink *sink, const struct totals *totals)
{
	double sum = (double)sink->window_ns * 1e-9 * c->config.threads;

	for (size_t i = c->config.threads; i < totals->nrows; i++)
		sum += totals->rows[i].wall_time;
	return sum;
}

static void put_times(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	double off;
	uint64_t cpu_ns;
	const char *why = find_cpu_time(c, &cpu_ns);

	mew_sink_f64(sink, MEW_FIG_WALL_TIME, (double)sink->window_ns * 1e-9);
	if (why != NULL) {
		mew_sink_absent(sink, MEW_FIG_CPU_TIME, why);
		mew_sink_absent(sink, MEW_FIG_OFF_CPU_TIME, why);
		return;
	}
	off = wall_of_all(c, sink, totals) - (double)cpu_ns * 1e-9;
	mew_sink_f64(sink, MEW_FIG_CPU_TIME, (double)cpu_ns * 1e-9);
	mew_sink_f64(sink, MEW_FIG_OFF_CPU_TIME, off > 0 ? off : 0); /* the clocks are not read at one moment */
}

static void put_engine(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	bool is_wall = c->window.clock == MEW_CLOCK_WALL;

	mew_sink_text(sink, MEW_FIG_CLOCK, is_wall ? "wall" : "cpu");
	mew_sink_text(sink, MEW_FIG_ENGINE, mew_cpu_engine_name(c->window.engine));
	if (c->why_engine[0] != '\0')
		mew_sink_text(sink, MEW_FIG_ENGINE_REASON, c->why_engine);
	else
		mew_sink_absent(sink, MEW_FIG_ENGINE_REASON, "no engine is better for this clock");
	if (is_wall)
		mew_sink_f64(sink, MEW_FIG_BLOCKED_WEIGHT, (double)totals->blocked_ns * 1e-9);
	else
		mew_sink_absent(sink, MEW_FIG_BLOCKED_WEIGHT,
				"the samples are spread over CPU time: --clock wall sees time off the processor");
}

static void put_interval(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	double all = c->window.clock == MEW_CLOCK_WALL ? wall_of_all(c, sink, totals) :
		     (double)totals->weight_ns * 1e-9;

	mew_sink_f64(sink, MEW_FIG_INTERVAL, (double)c->config.interval_ns * 1e-9);
	if (totals->samples != 0)
		mew_sink_f64(sink, MEW_FIG_EFFECTIVE_INTERVAL, all / (double)totals->samples);
	else
		mew_sink_absent(sink, MEW_FIG_EFFECTIVE_INTERVAL,
				"nothing was sampled: raise the iterations or lower the interval");
}

/* Threads are sampled at the same time: of the window, which is their mean, each took its part of the cost. */
static void put_cost(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	double cost = (double)totals->samples * (double)c->cost_ns * 1e-9;
	double wall = (double)sink->window_ns * 1e-9;
	double part = (double)totals->bench_samples * (double)c->cost_ns * 1e-9 / c->config.threads,
		share = part / wall;
	char note[120];

	if (c->cost_ns == 0) {
		mew_sink_absent(sink, MEW_FIG_SAMPLER_COST, c->cost_why);
		mew_sink_absent(sink, MEW_FIG_WALL_TIME_CORRECTED, c->cost_why);
		return;
	}
	mew_sink_f64(sink, MEW_FIG_SAMPLER_COST, cost);
	mew_sink_f64(sink, MEW_FIG_WALL_TIME_CORRECTED, wall - part);
	if (totals->samples < NOTED_SAMPLES || share <= NOTED_SHARE)
		return;
	(void)snprintf(note, sizeof note, "sampling took %d %% of the loop's time: raise the interval",
		       (int)(100 * share));
	mew_sink_note(sink, note);
}

/* Returns the longest period that a thread ended with. */
static uint64_t note_backoffs(const struct mew_capture *c, struct mew_sink *sink)
{
	uint64_t longest = c->window.period_ns;
	bool is_slow = false, is_full = false;
	char note[200];

	for (unsigned i = 0; i < c->config.threads; i++) {
		const struct mew_cpu_thread *t = c->threads[i].sampled;

		if (t == NULL || t->backoffs == 0)
			continue;
		longest = t->period_ns > longest ? t->period_ns : longest;
		is_slow = is_slow || t->backoffs > t->full_steps;
		is_full = is_full || t->full_steps > 0;
	}
	if (is_slow || is_full) {
		(void)snprintf(note, sizeof note, "%s: the sampling interval was raised from %llu to %llu us",
			       is_slow ? "samples took more than a fifth of the interval" :
					 "the run is so long that its samples would not fit",
			       (unsigned long long)(c->window.period_ns / 1000), (unsigned long long)(longest / 1000));
		mew_sink_note(sink, note);
	}
	return longest;
}

/*
 * A signal that is blocked, or handled by someone else for a while, stops the sampling of its thread without a trace
 * but this: the weights do not add up. Far beyond what chance does, which is 1 % and some intervals.
 */
static void note_gap(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals, uint64_t period)
{
	double wall = (double)sink->window_ns * c->config.threads, weight = (double)totals->bench_weight_ns;
	double slack = (double)period * (20.0 * c->config.threads + 4 * sqrt(2.0 * (double)totals->pauses));
	char note[200];

	if (totals->lost != 0 || weight >= 0.9 * wall - slack)
		return;
	(void)snprintf(note, sizeof note,
		       "the samples stand for %d %% of the loop: it must not block signal %d or replace its handler",
		       (int)(100 * weight / wall), mew_cpu_signal_number());
	mew_sink_note(sink, note);
}

static void put_figures(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	put_times(c, sink, totals);
	put_engine(c, sink, totals);
	put_interval(c, sink, totals);
	put_cost(c, sink, totals);
	mew_sink_u64(sink, MEW_FIG_SAMPLE_COUNT, totals->samples);
	mew_sink_f64(sink, MEW_FIG_SAMPLE_WEIGHT, (double)totals->weight_ns * 1e-9);
	mew_sink_u64(sink, MEW_FIG_CPU_ITERATIONS, sink->iterations);
	mew_sink_u64(sink, MEW_FIG_CPU_LOST, totals->lost);
	mew_sink_u64(sink, MEW_FIG_TRUNCATED, totals->samples - totals->stops[MEW_STOP_END]);
	mew_cpu_put_stops(sink, totals->stops);
}

/* Why the window has no such figures, whatever the counters say; NULL: it may. */
static const char *why_uncounted(const struct mew_capture *c)
{
	const struct mew_cpu_crew_row *crew;

	if (c->config.whole)
		return "counters are not opened in a whole program, for its descriptors' sake";
	if (mew_cpu_crew_rows(c->crew, &crew) > 0)
		return "the case has threads of its own, whose events are not counted";
	return NULL;
}

static int put_counters(const struct mew_capture *c, struct mew_sink *sink, struct mew_error *err)
{
	const char *why = why_uncounted(c);
	const struct mew_cpu_counters **all;
	size_t n = 0;

	for (int figure = MEW_FIG_CYCLES; why != NULL && figure <= MEW_FIG_BRANCH_MISSES; figure++)
		mew_sink_absent(sink, figure, why);
	if (why != NULL)
		return MEW_OK;
	all = calloc((size_t)c->config.threads + 1, sizeof(*all));
	if (all == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the counters of the CPU pass");
	for (unsigned i = 0; i < c->config.threads; i++)
		if (c->threads[i].sampled != NULL)
			all[n++] = &c->threads[i].counters;
	mew_cpu_counters_put(all, n, has_pauses(c), sink);
	free(all);
	return MEW_OK;
}

/* Returns false without memory. */
static bool put_threads(const struct mew_capture *c, struct mew_sink *sink, struct totals *totals)
{
	char (*names)[MEW_CPU_NAME_BYTES] = calloc(totals->nrows, sizeof *names);
	bool has_cpu = c->config.pause_cpu || !has_pauses(c);
	const struct mew_cpu_crew_row *crew;

	if (names == NULL)
		return false;
	(void)mew_cpu_crew_rows(c->crew, &crew);
	for (unsigned i = 0; i < totals->nrows; i++) {
		struct mew_cpu_thread_figures *row = &totals->rows[i];

		if (i >= c->config.threads) {
			mew_cpu_name_crew(row, &crew[i - c->config.threads], names[i]);
			continue;
		}
		mew_cpu_name_benchmark(row, i, names[i]);
		row->tid = c->threads[i].sampled != NULL ? (uint64_t)c->threads[i].sampled->tid : 0;
		row->wall_time = (double)(sink->thread_ns != NULL ? sink->thread_ns[i] : sink->window_ns) * 1e-9;
		row->cpu_time = has_cpu && c->threads[i].has_cpu ? (double)c->threads[i].cpu_ns * 1e-9 : 0;
	}
	mew_sink_list(sink, MEW_FIG_BY_THREAD, totals->rows, totals->nrows);
	free(names);
	return true;
}

static void put_notes(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	struct mew_cpu_crew_losses losses = mew_cpu_crew_losses(c->crew);
	uint64_t longest = note_backoffs(c, sink);

	if (c->window.clock == MEW_CLOCK_WALL)
		note_gap(c, sink, totals, longest);
	mew_cpu_note_crew(sink, &losses, c->window.engine);
	if (mew_unwinder_note() != NULL)
		mew_sink_note(sink, mew_unwinder_note());
}

/* Returns false without memory. */
static bool put_all(const struct mew_capture *c, struct mew_sink *sink, struct totals *totals)
{
	uint32_t *known = calloc((size_t)mew_stackset_count(c->window.stacks) + 1, sizeof *known);

	if (known == NULL)
		return false;
	(void)mew_modules_renew(); /* names files opened in the window; without memory the older snapshot has to do */
	if (!c->config.whole) /* there it was another process */
		mew_sink_window(sink, c->window.opened_ns);
	drain_threads(c, sink, known, totals);
	free(known);
	if (sink->failed || !put_threads(c, sink, totals))
		return false;
	put_figures(c, sink, totals);
	put_notes(c, sink, totals);
	return true;
}

int mew_cpu_drain(struct mew_capture *c, struct mew_sink *sink, struct mew_error *err)
{
	const struct mew_cpu_crew_row *crew;
	struct totals totals = { .nrows = c->config.threads + mew_cpu_crew_rows(c->crew, &crew) };
	bool done;

	if (c->taken != 0)
		return mew_error_set(err, MEW_E_LOST,
				     "the loop replaced the handler of signal %d, which the CPU sampler uses, and "
				     "samples are lost: let it take another one", c->taken);
	totals.rows = calloc(totals.nrows, sizeof *totals.rows);
	done = totals.rows != NULL && put_all(c, sink, &totals);
	free(totals.rows);
	if (!done)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the samples of the CPU pass");
	if (c->window.clock == MEW_CLOCK_CPU)
		mew_case_row(sink->row, sink->kind)->profiler = "cpu";
	return put_counters(c, sink, err);
}

/* Constants of the dead process are not at the addresses that it knew them by. */
int mew_cpu_drain_dead(struct mew_capture *c, uint64_t from_ns, uint64_t until_ns, uint64_t ended_ns,
		       struct mew_sink *sink, struct mew_error *err)
{
	c->cost_why = "a whole program is not held up to calibrate the cost of a sample";
	c->from_ns = from_ns;
	c->until_ns = until_ns;
	for (unsigned i = 0; i < c->config.threads; i++) {
		c->threads[i].has_cpu = false;
		c->threads[i].counters.events = NULL;
	}
	mew_cpu_crew_bury(c->crew, ended_ns);
	return mew_cpu_drain(c, sink, err);
}
