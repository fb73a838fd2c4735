/*
 * gbench.c - results as Google Benchmark writes them with --benchmark_format=json, for compare.py and its kin.
 * Layer L5. Reads a sealed model.
 *
 * An object of `context` and `benchmarks`. A row of run_type "iteration" is one repetition, that is one block of
 * samples of one process; rows of a case share a name, the key, by which readers pair them. From two repetitions on,
 * four rows of run_type "aggregate" follow: mean, median, stddev and cv of the repetitions (cv is a fraction). Times
 * are always in ns of one iteration, real_time and cpu_time are always there, and nothing is null: readers stumble over
 * all of that. What was not measured is 0 in these two, and named in "mew.skipped". A failed case is a row with
 * error_occurred.
 *
 * Figures that mean the same have Google Benchmark's names (allocs_per_iter, max_bytes_used, total_allocated_bytes,
 * net_heap_growth, bytes_per_second, items_per_second); every other number of the catalogue is KIND.FIGURE; counters
 * that bodies set keep their names, after "counter." where such a name is taken.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "error.h"
#include "grid.h"
#include "mew/report.h"
#include "model.h"
#include "rows.h"
#include "stats.h"
#include "textual.h"
#include "writer.h"

#define PRETTY 2u /* a row a line */
#define NO_TIME "real_time cpu_time"
#define NO_CPU_TIME "cpu_time"

struct repetition { /* nanoseconds of one iteration */
	double real, cpu;
	bool has_cpu;
	uint64_t iterations;
};

struct block { /* what the rows of one case share */
	const struct mew_case *c;
	char *name;
	size_t family, instance;
	struct repetition *all;
	size_t n;
};

/* --- context ---------------------------------------------------------------------------------------------------- */

static bool fact_is(const struct mew_model *m, const char *name, const char *value)
{
	const char *fact = mew_model_fact(m, name);

	return fact != NULL && strcmp(fact, value) == 0;
}

static void put_fact(struct mew_json *j, const struct mew_fact *fact)
{
	char *name;

	if (asprintf(&name, "mew.%s", fact->name) < 0) {
		mew_write_no_memory(j->w);
		return;
	}
	mew_json_put_text(j, name, fact->value);
	free(name);
}

static void put_context(struct mew_json *j, const struct mew_model *m)
{
	const char *cpus = mew_model_fact(m, "cpu_count"), *date = mew_model_fact(m, "date");

	mew_json_key(j, "context");
	mew_json_object(j);
	mew_json_put_text(j, "date", date != NULL ? date : "");
	if (m->ncases > 0 && m->cases[0].program != NULL)
		mew_json_put_text(j, "executable", m->cases[0].program);
	if (cpus != NULL)
		mew_json_put_u64(j, "num_cpus", strtoull(cpus, NULL, 10));
	if (mew_model_fact(m, "governor") != NULL)
		mew_json_put_bool(j, "cpu_scaling_enabled", !fact_is(m, "governor", "performance"));
	if (mew_model_fact(m, "aslr") != NULL)
		mew_json_put_bool(j, "aslr_enabled", fact_is(m, "aslr", "on"));
	mew_json_key(j, "caches");
	mew_json_array(j);
	mew_json_array_end(j);
	mew_json_put_text(j, "library_version", mew_version());
	if (mew_model_fact(m, "optimized") != NULL)
		mew_json_put_text(j, "library_build_type", fact_is(m, "optimized", "no") ? "debug" : "release");
	mew_json_put_u64(j, "json_schema_version", 1);
	for (size_t i = 0; i < m->nfacts; i++)
		put_fact(j, &m->facts[i]);
	mew_json_object_end(j);
}

/* --- repetitions ------------------------------------------------------------------------------------------------ */

/* Median of the samples, as in all of mew's figures; `x` has room for them. */
static double per_iteration(const uint64_t *ns, const struct mew_run *run, double *x)
{
	for (size_t i = 0; i < run->nsamples; i++)
		x[i] = (double)ns[i] / (double)run->loops;
	mew_stats_sort(x, run->nsamples);
	return mew_stats_median_sorted(x, run->nsamples);
}

static bool is_repetition(const struct mew_run *run)
{
	return run->phase == MEW_PHASE_MEASUREMENT_VALUE && run->nsamples > 0 && run->loops > 0;
}

/* As in the row's own figures, iterations are of all threads, and so is the CPU time that each takes. */
static int collect(struct block *b)
{
	unsigned threads = b->c->threads > 0 ? b->c->threads : 1;
	size_t most = 0;
	double *x;

	for (size_t i = 0; i < b->c->nruns; i++)
		most = b->c->runs[i].nsamples > most ? b->c->runs[i].nsamples : most;
	x = calloc(most + 1, sizeof *x);
	b->all = calloc(b->c->nruns + 1, sizeof *b->all);
	for (size_t i = 0; x != NULL && b->all != NULL && i < b->c->nruns; i++) {
		const struct mew_run *run = &b->c->runs[i];

		if (!is_repetition(run))
			continue;
		b->all[b->n].real = per_iteration(run->real_ns, run, x);
		b->all[b->n].has_cpu = run->cpu_ns != NULL;
		if (run->cpu_ns != NULL)
			b->all[b->n].cpu = per_iteration(run->cpu_ns, run, x) / threads;
		b->all[b->n++].iterations = run->loops * run->nsamples * threads;
	}
	free(x);
	return x == NULL || b->all == NULL ? MEW_E_NOMEM : MEW_OK;
}

/* One repetition, or none kept: then the row's own figures are the only one. */
static void settle(struct block *b)
{
	const struct mew_row_head *row = mew_rows_of(b->c, MEW_KIND_TIME);

	if (b->n > 1 || row == NULL || !mew_row_has(row, MEW_FIG_MEDIAN_NS))
		return;
	b->all[0] = (struct repetition){
		.real = b->c->time.median_ns,
		.cpu = mew_row_has(row, MEW_FIG_CPU_NS) ? b->c->time.cpu_ns : 0,
		.has_cpu = mew_row_has(row, MEW_FIG_CPU_NS),
		.iterations = mew_row_has(row, MEW_FIG_ITERATIONS) ? b->c->time.iterations : 1,
	};
	b->n = 1;
}

/* --- figures ---------------------------------------------------------------------------------------------------- */

static const char *name_of(char *out, size_t size, enum mew_kind kind, const struct mew_figure *figure)
{
	static const struct {
		enum mew_kind kind;
		int bit;
		const char *name;
	} same[] = {
		{ MEW_KIND_TIME, MEW_FIG_BYTES_PER_SECOND, "bytes_per_second" },
		{ MEW_KIND_TIME, MEW_FIG_ITEMS_PER_SECOND, "items_per_second" },
		{ MEW_KIND_MEMORY, MEW_FIG_ALLOCATIONS_PER_ITERATION, "allocs_per_iter" },
		{ MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES, "max_bytes_used" },
		{ MEW_KIND_MEMORY, MEW_FIG_CUMULATIVE_BYTES, "total_allocated_bytes" },
		{ MEW_KIND_MEMORY, MEW_FIG_NET_BYTES, "net_heap_growth" },
	};

	for (size_t i = 0; i < MEW_COUNTOF(same); i++)
		if (same[i].kind == kind && same[i].bit == figure->bit)
			return same[i].name;
	(void)snprintf(out, size, "%s.%s", mew_kind_name(kind), figure->name);
	return out;
}

static void put_figures(struct mew_json *j, const struct mew_case *c)
{
	char name[96];
	double value;

	for (int kind = 0; kind < MEW_KINDS; kind++) {
		const struct mew_row_head *row = mew_rows_of(c, (enum mew_kind)kind);
		size_t n;
		const struct mew_figure *figures = mew_figures((enum mew_kind)kind, &n);

		for (size_t i = 0; row != NULL && i < n; i++) {
			if (!mew_row_number(row, &figures[i], &value))
				continue;
			mew_json_key(j, name_of(name, sizeof name, (enum mew_kind)kind, &figures[i]));
			(void)mew_rows_put_number(j, row, &figures[i]);
		}
	}
}

/* Would a counter of this name be taken for another member? Members with a '.' are all mew's own. */
static bool is_taken(const char *name)
{
	static const char *const names[] = {
		"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
		"repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
		"aggregate_name",
		"aggregate_unit", "error_occurred", "error_message", "skipped", "skip_message", "big_o", "rms",
		"bytes_per_second", "items_per_second", "allocs_per_iter", "max_bytes_used", "total_allocated_bytes",
		"net_heap_growth",
	};

	for (size_t i = 0; i < MEW_COUNTOF(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strchr(name, '.') != NULL;
}

static void put_counters(struct mew_json *j, const struct mew_case *c)
{
	for (size_t i = 0; i < c->ncounters; i++) {
		char *name;

		if (asprintf(&name, "%s%s", is_taken(c->counters[i].name) ? "counter." : "", c->counters[i].name) < 0) {
			mew_write_no_memory(j->w);
			return;
		}
		mew_json_put_f64(j, name, c->counters[i].value);
		free(name);
	}
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static void begin_row(struct mew_json *j, const struct block *b, const char *aggregate)
{
	char *name = NULL;

	if (asprintf(&name, "%s%s%s", b->name, aggregate != NULL ? "_" : "", aggregate != NULL ? aggregate : "") < 0)
		mew_write_no_memory(j->w);
	mew_json_object(j);
	mew_json_put_text(j, "name", name);
	free(name);
	mew_json_put_u64(j, "family_index", b->family);
	mew_json_put_u64(j, "per_family_instance_index", b->instance);
	mew_json_put_text(j, "run_name", b->name);
	mew_json_put_text(j, "run_type", aggregate != NULL ? "aggregate" : "iteration");
	mew_json_put_u64(j, "repetitions", b->n > 0 ? b->n : 1);
	mew_json_put_u64(j, "threads", b->c->threads);
	if (b->c->label != NULL)
		mew_json_put_text(j, "label", b->c->label);
}

/* skipped: which of the two times were not measured; NULL: none */
static void put_times(struct mew_json *j, uint64_t iterations, double real, double cpu, const char *skipped)
{
	mew_json_put_u64(j, "iterations", iterations);
	mew_json_key(j, "real_time");
	mew_json_f64(j, isfinite(real) ? real + 0.0 : 0);
	mew_json_key(j, "cpu_time");
	mew_json_f64(j, isfinite(cpu) ? cpu + 0.0 : 0);
	mew_json_put_text(j, "time_unit", "ns");
	if (skipped != NULL)
		mew_json_put_text(j, "mew.skipped", skipped);
}

static void put_repetition(struct mew_json *j, const struct block *b, size_t i)
{
	const struct repetition none = { .iterations = 0 }, *r = i < b->n ? &b->all[i] : &none;

	begin_row(j, b, NULL);
	mew_json_put_u64(j, "repetition_index", i);
	put_times(j, r->iterations, r->real, r->cpu, i >= b->n ? NO_TIME : r->has_cpu ? NULL : NO_CPU_TIME);
	put_figures(j, b->c);
	put_counters(j, b->c);
	mew_json_object_end(j);
}

struct aggregates {
	double mean, median, stddev, cv;
};

static struct aggregates aggregates_of(double *x, size_t n)
{
	struct aggregates a = { .mean = mew_stats_mean(x, n), .stddev = mew_stats_stddev(x, n) };

	mew_stats_sort(x, n);
	a.median = mew_stats_median_sorted(x, n);
	a.cv = a.mean > 0 ? a.stddev / a.mean : 0;
	return a;
}

/* cpu: of all repetitions, or NULL */
static void put_aggregate(struct mew_json *j, const struct block *b, const char *name, double real, const double *cpu)
{
	begin_row(j, b, name);
	mew_json_put_text(j, "aggregate_name", name);
	mew_json_put_text(j, "aggregate_unit", strcmp(name, "cv") == 0 ? "percentage" : "time");
	put_times(j, b->n, real, cpu != NULL ? *cpu : 0, cpu != NULL ? NULL : NO_CPU_TIME);
	mew_json_object_end(j);
}

static int put_aggregates(struct mew_json *j, const struct block *b)
{
	double *x = calloc(b->n, sizeof *x);
	struct aggregates real, cpu;
	bool has_cpu = true;

	if (x == NULL)
		return MEW_E_NOMEM;
	for (size_t i = 0; i < b->n; i++)
		x[i] = b->all[i].real;
	real = aggregates_of(x, b->n);
	for (size_t i = 0; i < b->n; i++) {
		x[i] = b->all[i].cpu;
		has_cpu = has_cpu && b->all[i].has_cpu;
	}
	cpu = aggregates_of(x, b->n);
	free(x);
	put_aggregate(j, b, "mean", real.mean, has_cpu ? &cpu.mean : NULL);
	put_aggregate(j, b, "median", real.median, has_cpu ? &cpu.median : NULL);
	put_aggregate(j, b, "stddev", real.stddev, has_cpu ? &cpu.stddev : NULL);
	put_aggregate(j, b, "cv", real.cv, has_cpu ? &cpu.cv : NULL);
	return MEW_OK;
}

static void put_error(struct mew_json *j, const struct block *b, const struct mew_row_head *row)
{
	begin_row(j, b, NULL);
	mew_json_put_u64(j, "repetition_index", 0);
	mew_json_put_bool(j, "error_occurred", true);
	mew_json_put_text(j, "error_message", row->reason != NULL ? row->reason : mew_status_name(row->status));
	put_times(j, 0, 0, 0, NO_TIME);
	mew_json_object_end(j);
}

static int put_case(struct mew_json *j, struct block *b)
{
	const struct mew_row_head *row = mew_rows_of(b->c, MEW_KIND_TIME);

	if (row != NULL && row->status != MEW_OK) {
		put_error(j, b, row);
		return MEW_OK;
	}
	if (collect(b) != MEW_OK)
		return MEW_E_NOMEM;
	settle(b);
	for (size_t i = 0; i == 0 || i < b->n; i++)
		put_repetition(j, b, i);
	return b->n > 1 ? put_aggregates(j, b) : MEW_OK;
}

/* "zlib/inflate/case:1" follows "zlib/inflate/case:0" as the next instance of its family. */
static bool same_family(const struct mew_case *a, const struct mew_case *b)
{
	const char *end = strstr(a->key, "/case:");

	return end != NULL && strncmp(a->key, b->key, (size_t)(end - a->key) + strlen("/case:")) == 0;
}

static int write_gbench(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	const struct mew_model *m = in->model;
	struct block b = { .c = NULL };
	struct mew_json j;
	int status = MEW_OK;

	mew_json_init(&j, w, PRETTY);
	mew_json_object(&j);
	put_context(&j, m);
	mew_json_key(&j, "benchmarks");
	mew_json_array(&j);
	for (size_t i = 0; i < m->ncases && status == MEW_OK; i++) {
		bool next = b.c != NULL && same_family(b.c, &m->cases[i]);

		b = (struct block){ .c = &m->cases[i], .name = mew_rows_name(&m->cases[i]),
				    .family = i == 0 ? 0 : next ? b.family : b.family + 1,
				    .instance = next ? b.instance + 1 : 0 };
		status = b.name != NULL ? put_case(&j, &b) : MEW_E_NOMEM;
		free(b.all);
		free(b.name);
	}
	if (status != MEW_OK)
		return mew_error_set(err, status, "the gbench report could not be written: out of memory");
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

const struct mew_report mew_report_gbench = {
	.abi = MEW_REPORT_ABI,
	.name = "gbench",
	.help = "Google Benchmark's JSON, for compare.py",
	.suffix = ".gbench.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_gbench,
};
