/*
 * summarise.c - figures of time from raw samples; only measurement/value runs enter them.
 * Layer L4. Caller thread, after the windows.
 */
#include "config.h"

#include "summarise.h"

#include "state.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct samples {
	double *each, *cpu, *scratch; /* per iteration, ns */
	size_t n, ncpu;
	double switches, migrations, faults;
	uint64_t iterations, loops, repetitions, processes;
};

void mew_summarise_note(struct mew_model *m, struct mew_case *c, enum mew_kind kind, const char *note)
{
	mew_model_note(m, c, kind, note);
}

void mew_summarise_fewer(struct mew_model *m, struct mew_case *c, enum mew_kind kind, uint64_t run, unsigned asked,
			 const struct mew_error *why)
{
	char note[sizeof why->text + 64];

	(void)snprintf(note, sizeof note, "only %llu of %u processes were run: %s", (unsigned long long)run, asked,
		       why->text);
	mew_model_note(m, c, kind, note);
}

static void take_run(struct samples *s, const struct mew_run *run, unsigned threads)
{
	for (size_t i = 0; i < run->nsamples; i++) {
		s->each[s->n++] = (double)run->real_ns[i] / (double)run->loops;
		if (run->cpu_ns != NULL)
			s->cpu[s->ncpu++] = (double)run->cpu_ns[i] / ((double)run->loops * threads);
	}
	s->iterations += run->loops * run->nsamples * threads;
	if (run->loops > s->loops)
		s->loops = run->loops;
	s->switches += (double)run->context_switches;
	s->migrations += (double)run->migrations;
	s->faults += (double)run->page_faults;
	if (run->repetition + 1 > s->repetitions)
		s->repetitions = run->repetition + 1;
	if (run->process + 1 > s->processes)
		s->processes = run->process + 1;
}

static bool collect(struct samples *s, const struct mew_case *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nruns; i++)
		if (c->runs[i].phase == MEW_PHASE_MEASUREMENT_VALUE)
			n += c->runs[i].nsamples;
	if (n == 0)
		return true;
	s->each = malloc(n * sizeof *s->each);
	s->cpu = malloc(n * sizeof *s->cpu);
	s->scratch = malloc(n * sizeof *s->scratch);
	if (s->each == NULL || s->cpu == NULL || s->scratch == NULL)
		return false;
	for (size_t i = 0; i < c->nruns; i++)
		if (c->runs[i].phase == MEW_PHASE_MEASUREMENT_VALUE)
			take_run(s, &c->runs[i], c->threads);
	mew_stats_sort(s->each, s->n);
	mew_stats_sort(s->cpu, s->ncpu);
	return true;
}

static void put(struct mew_case *c, int figure, double value)
{
	mew_model_f64(c, MEW_KIND_TIME, figure, value);
}

static void put_location(struct mew_model *m, struct mew_case *c, const struct samples *s)
{
	double median = mew_stats_median_sorted(s->each, s->n);
	struct mew_interval in;

	put(c, MEW_FIG_MEDIAN_NS, median);
	if (mew_stats_median_interval_sorted(s->each, s->n, 0.95, &in)) {
		put(c, MEW_FIG_MEDIAN_LOW_NS, in.low);
		put(c, MEW_FIG_MEDIAN_HIGH_NS, in.high);
	} else {
		mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_MEDIAN_LOW_NS, "needs 6 samples; raise --max-time");
		mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_MEDIAN_HIGH_NS, "needs 6 samples; raise --max-time");
	}
	put(c, MEW_FIG_MEAN_NS, mew_stats_mean(s->each, s->n));
	if (s->n > 1)
		put(c, MEW_FIG_STDDEV_NS, mew_stats_stddev(s->each, s->n));
	else
		mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_STDDEV_NS, "needs 2 samples; raise --max-time");
	put(c, MEW_FIG_MAD_NS, mew_stats_mad(s->each, s->n, median, s->scratch));
	put(c, MEW_FIG_MIN_NS, s->each[0]);
	put(c, MEW_FIG_MAX_NS, s->each[s->n - 1]);
	put(c, MEW_FIG_P90_NS, mew_stats_quantile_sorted(s->each, s->n, 0.90));
	put(c, MEW_FIG_P99_NS, mew_stats_quantile_sorted(s->each, s->n, 0.99));
}

/* What all threads declared, per second of one thread's iteration. */
static void put_rate(struct mew_model *m, struct mew_case *c, int figure, double amount, double median_s,
		     const char *undeclared)
{
	if (amount > 0 && median_s > 0)
		put(c, figure, amount / median_s);
	else
		mew_model_absent(m, c, MEW_KIND_TIME, figure, amount > 0 ? "an iteration took no time" : undeclared);
}

static void put_rates(struct mew_model *m, struct mew_case *c, const struct samples *s)
{
	double median_s = mew_stats_median_sorted(s->each, s->n) / 1e9;

	put_rate(m, c, MEW_FIG_BYTES_PER_SECOND, c->bytes_per_iteration, median_s,
		 "the body did not call mew_set_bytes");
	put_rate(m, c, MEW_FIG_ITEMS_PER_SECOND, c->items_per_iteration, median_s,
		 "the body did not call mew_set_items");
	if (s->ncpu > 0)
		put(c, MEW_FIG_CPU_NS, mew_stats_median_sorted(s->cpu, s->ncpu));
	else
		mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_CPU_NS,
				 "the loop has pauses, and reading the CPU clock at each costs more than a pause may");
}

static void put_counts(struct mew_case *c, const struct samples *s)
{
	double n = (double)s->n;

	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_ITERATIONS, s->iterations);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_LOOPS, s->loops);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_SAMPLES, s->n);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_REPETITIONS, s->repetitions);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_PROCESSES, s->processes);
	put(c, MEW_FIG_CONTEXT_SWITCHES, s->switches / n);
	put(c, MEW_FIG_MIGRATIONS, s->migrations / n);
	put(c, MEW_FIG_PAGE_FAULTS, s->faults / n);
	put(c, MEW_FIG_LOOP_OVERHEAD_NS, mew_loop_costs()->turn_ns);
	put(c, MEW_FIG_CLOCK_COST_NS, mew_loop_costs()->clock_ns);
}

void mew_summarise_time(struct mew_model *m, struct mew_case *c, bool latency)
{
	struct samples s = { 0 };

	if (c == NULL || mew_model_row(m, c, MEW_KIND_TIME) == NULL)
		return;
	c->time.profiler = latency ? "latency" : "loop";
	if (!collect(&s, c)) {
		mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_NOMEM, "no memory for the samples");
	} else if (s.n == 0) {
		mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_INVALID, "not measured: the run ended before this case");
	} else {
		put_location(m, c, &s);
		put_rates(m, c, &s);
		put_counts(c, &s);
	}
	free(s.each);
	free(s.cpu);
	free(s.scratch);
}

void mew_summarise_dry(struct mew_model *m, struct mew_case *c, const char *how)
{
	char note[120];

	if (c == NULL || mew_model_row(m, c, MEW_KIND_TIME) == NULL)
		return;
	c->time.profiler = "loop";
	(void)snprintf(note, sizeof note, "%s, and --dry-run measures nothing", how);
	if (c->nruns == 0)
		mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_INVALID, "the run ended before this case");
	else
		mew_model_note(m, c, MEW_KIND_TIME, note);
}
