/*
 * json.c - results as JSON, without loss: mew's own file format, which `mew report` reads back.
 * Layer L5. Reads a sealed model; the same model gives the same bytes. The reader is tools/read_json.c.
 *
 * The file is one object. Keys are the members' names in mew.h and src/model.h; times end in _ns or are seconds, sizes
 * are bytes. What is absent or null was not measured; nothing is written as a stand-in. Whole numbers above 2^63-1 are
 * strings.
 *
 *   schema         1; a reader refuses a number above its own
 *   mew            version of the mew that wrote it
 *   environment    { fact: text }
 *   grade          { "letter": "A".."D", "reason" }, or null
 *   hooks          names of the active hooks, blank-separated
 *   cases          list of
 *     key, label, program, tags, threads
 *     allocator    the one it ran under; only where several were asked for
 *     bytes_per_iteration, items_per_iteration    what the body declared, 0 for nothing
 *     counters     { name: value }
 *     phase_data   [ { phase, key, value } ]      what hooks put beside a phase
 *     output       what a failing body printed, or null
 *     time, memory, cpu    a row each, where measured:
 *                  { status: "MEW_OK", reason, profiler, each present figure by name, "absent": { figure: reason } };
 *                  a figure that is a list is [ { member: value } ]
 *     runs         [ { phase: "measurement/value", process, repetition, loops, context_switches, migrations,
 *                    page_faults, real_ns: [...], cpu_ns: [...] } ]
 *                  every block of every phase, warm-up included; cpu_ns may be missing
 *     heap_stacks  [ [stack, peak_bytes, cumulative_bytes, allocations, net_bytes] ]
 *     samples      { stack: [...], thread: [...], time_ns: [...], weight_ns: [...], blocked: [...] }
 *                  columns of equal length, in time order per thread; missing when there are none; blocked is 1 for a
 *                  sample whose thread was on no processor, and is missing when that is true of none
 *   modules        [ { path, build_id, size, gone } ]
 *   functions      [ { name, file, line, module } ]
 *   locations      [ { module, offset: "0x12ab", start: "0x12a0", lines: [[function, line], ...], why } ]
 *                  innermost inlined function first; start is the offset where a function without a name begins, by the
 *                  unwind table; missing where that is not known
 *   stacks         [ [location, ...] ]   leaf first
 *
 * Stacks, locations, functions and modules are numbered by their place in these lists, from 0; null stands for "none".
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "error.h"
#include "mew/report.h"
#include "model.h"
#include "writer.h"

#define SCHEMA 1u
#define PRETTY_CASES 4u  /* figures, runs and columns stand on a line each */
#define PRETTY_SYMBOLS 2u /* an entry a line */

/* --- single values ---------------------------------------------------------------------------------------------- */

static void put_u64(struct mew_json *j, uint64_t value)
{
	char text[24];

	if (value <= INT64_MAX) {
		mew_json_u64(j, value);
		return;
	}
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	mew_json_string(j, text);
}

/* An index, or null for the number that means none. */
static void put_index(struct mew_json *j, uint32_t index)
{
	if (index == UINT32_MAX)
		mew_json_null(j);
	else
		mew_json_u64(j, index);
}

static void member_u64(struct mew_json *j, const char *key, uint64_t value)
{
	mew_json_key(j, key);
	put_u64(j, value);
}

/* Adding zero turns -0, which readers take for the whole number 0, into 0. */
static void member_f64(struct mew_json *j, const char *key, double value)
{
	mew_json_key(j, key);
	mew_json_f64(j, value + 0.0);
}

static void member_phase(struct mew_json *j, int phase)
{
	const char *name = mew_phase_name(phase);

	mew_json_key(j, "phase");
	if (name != NULL)
		mew_json_string(j, name);
	else
		mew_json_i64(j, phase);
}

static void member_numbers(struct mew_json *j, const char *key, const uint64_t *values, size_t n)
{
	mew_json_key(j, key);
	mew_json_array(j);
	for (size_t i = 0; i < n; i++)
		put_u64(j, values[i]);
	mew_json_array_end(j);
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* A figure of a row, or a column of a row of a list. */
static void put_value(struct mew_json *j, const char *base, const struct mew_figure *figure)
{
	const void *at = base + figure->offset;
	double value;

	switch (figure->type) {
	case MEW_VALUE_U64:
		member_u64(j, figure->name, *(const uint64_t *)at);
		break;
	case MEW_VALUE_F64:
		value = *(const double *)at;
		if (isfinite(value)) /* otherwise it is no figure, whatever `present` says */
			member_f64(j, figure->name, value);
		break;
	case MEW_VALUE_TEXT:
		if (*(const char *const *)at != NULL)
			mew_json_put_text(j, figure->name, *(const char *const *)at);
		break;
	case MEW_VALUE_LIST:
		break;
	}
}

static void put_figure(struct mew_json *j, const struct mew_row_head *row, const struct mew_figure *figure)
{
	const struct mew_list_type *list = figure->list;
	const char *rows;
	size_t n;

	if (figure->type != MEW_VALUE_LIST) {
		put_value(j, (const char *)row, figure);
		return;
	}
	rows = mew_row_list(row, figure, &n);
	mew_json_key(j, figure->name);
	mew_json_array(j);
	for (size_t i = 0; i < n; i++) {
		mew_json_object(j);
		for (size_t k = 0; k < list->ncolumns; k++)
			put_value(j, rows + i * list->row_bytes, &list->columns[k]);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static const char *absent_reason(const struct mew_row_head *row, int bit)
{
	for (const struct mew_absent *a = row->absent_; a != NULL; a = a->next)
		if (a->bit == bit)
			return a->why;
	return NULL;
}

/* Figures of the catalogue in its order, so that the order in which they were filled leaves no trace. */
static void put_row(struct mew_json *j, enum mew_kind kind, const struct mew_row_head *row)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);

	mew_json_key(j, mew_kind_name(kind));
	mew_json_object(j);
	mew_json_put_text(j, "status", mew_status_name(row->status));
	mew_json_put_text(j, "reason", row->reason);
	mew_json_put_text(j, "profiler", row->profiler);
	for (size_t i = 0; i < n; i++)
		if ((row->present >> figures[i].bit & 1) != 0)
			put_figure(j, row, &figures[i]);
	mew_json_key(j, "absent");
	mew_json_object(j);
	for (size_t i = 0; i < n; i++)
		if ((row->present >> figures[i].bit & 1) == 0 && absent_reason(row, figures[i].bit) != NULL)
			mew_json_put_text(j, figures[i].name, absent_reason(row, figures[i].bit));
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_rows(struct mew_json *j, const struct mew_case *c)
{
	const void *const rows[MEW_KINDS] = {
		[MEW_KIND_TIME] = &c->time, [MEW_KIND_MEMORY] = &c->memory, [MEW_KIND_CPU] = &c->cpu,
	};

	for (int kind = 0; kind < MEW_KINDS; kind++)
		if (mew_case_has(c, kind))
			put_row(j, (enum mew_kind)kind, rows[kind]);
}

/* --- lists of a case -------------------------------------------------------------------------------------------- */

static void put_counters(struct mew_json *j, const struct mew_case *c)
{
	mew_json_key(j, "counters");
	mew_json_object(j);
	for (size_t i = 0; i < c->ncounters; i++)
		member_f64(j, c->counters[i].name, c->counters[i].value);
	mew_json_object_end(j);
}

static void put_phase_data(struct mew_json *j, const struct mew_case *c)
{
	mew_json_key(j, "phase_data");
	mew_json_array(j);
	for (size_t i = 0; i < c->nphase_data; i++) {
		mew_json_object(j);
		member_phase(j, c->phase_data[i].phase);
		mew_json_put_text(j, "key", c->phase_data[i].key);
		mew_json_put_text(j, "value", c->phase_data[i].value);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static void put_runs(struct mew_json *j, const struct mew_case *c)
{
	mew_json_key(j, "runs");
	mew_json_array(j);
	for (size_t i = 0; i < c->nruns; i++) {
		const struct mew_run *run = &c->runs[i];

		mew_json_object(j);
		member_phase(j, run->phase);
		member_u64(j, "process", run->process);
		member_u64(j, "repetition", run->repetition);
		member_u64(j, "loops", run->loops);
		member_u64(j, "context_switches", run->context_switches);
		member_u64(j, "migrations", run->migrations);
		member_u64(j, "page_faults", run->page_faults);
		member_numbers(j, "real_ns", run->real_ns, run->nsamples);
		if (run->cpu_ns != NULL && run->nsamples > 0)
			member_numbers(j, "cpu_ns", run->cpu_ns, run->nsamples);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static void put_heap_stacks(struct mew_json *j, const struct mew_case *c)
{
	mew_json_key(j, "heap_stacks");
	mew_json_array(j);
	for (size_t i = 0; i < c->nheap_stacks; i++) {
		const struct mew_heap_stack *s = &c->heap_stacks[i];

		mew_json_array(j);
		put_index(j, s->stack);
		put_u64(j, s->peak_bytes);
		put_u64(j, s->cumulative_bytes);
		put_u64(j, s->allocations);
		put_u64(j, s->net_bytes);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
}

static bool any_blocked(const struct mew_case *c)
{
	for (size_t i = 0; i < c->nsamples; i++)
		if (c->samples[i].blocked)
			return true;
	return false;
}

static void put_samples(struct mew_json *j, const struct mew_case *c)
{
	static const char *const columns[] = { "stack", "thread", "time_ns", "weight_ns", "blocked" };
	size_t ncolumns = any_blocked(c) ? MEW_COUNTOF(columns) : MEW_COUNTOF(columns) - 1;

	if (c->nsamples == 0)
		return;
	mew_json_key(j, "samples");
	mew_json_object(j);
	for (size_t k = 0; k < ncolumns; k++) {
		mew_json_key(j, columns[k]);
		mew_json_array(j);
		for (size_t i = 0; i < c->nsamples; i++) {
			const struct mew_cpu_sample *s = &c->samples[i];

			if (k == 0)
				put_index(j, s->stack);
			else
				put_u64(j, k == 1 ? s->thread : k == 2 ? s->time_ns : k == 3 ? s->weight_ns :
					s->blocked);
		}
		mew_json_array_end(j);
	}
	mew_json_object_end(j);
}

static void put_case(struct mew_json *j, const struct mew_case *c)
{
	mew_json_object(j);
	mew_json_put_text(j, "key", c->key);
	mew_json_put_text(j, "label", c->label);
	mew_json_put_text(j, "program", c->program);
	if (c->allocator != NULL)
		mew_json_put_text(j, "allocator", c->allocator);
	mew_json_put_text(j, "tags", c->tags);
	member_u64(j, "threads", c->threads);
	member_f64(j, "bytes_per_iteration", c->bytes_per_iteration);
	member_f64(j, "items_per_iteration", c->items_per_iteration);
	put_counters(j, c);
	put_phase_data(j, c);
	mew_json_put_text(j, "output", c->output);
	put_rows(j, c);
	put_runs(j, c);
	put_heap_stacks(j, c);
	put_samples(j, c);
	mew_json_object_end(j);
}

/* --- symbols ---------------------------------------------------------------------------------------------------- */

static void put_modules(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "modules");
	mew_json_array(j);
	for (size_t i = 0; i < m->nmodules; i++) {
		mew_json_object(j);
		mew_json_put_text(j, "path", m->modules[i].path);
		mew_json_put_text(j, "build_id", m->modules[i].build_id);
		member_u64(j, "size", m->modules[i].size);
		mew_json_key(j, "gone");
		mew_json_bool(j, m->modules[i].gone);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static void put_functions(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "functions");
	mew_json_array(j);
	for (size_t i = 0; i < m->nfunctions; i++) {
		mew_json_object(j);
		mew_json_put_text(j, "name", m->functions[i].name);
		mew_json_put_text(j, "file", m->functions[i].file);
		member_u64(j, "line", m->functions[i].line);
		mew_json_key(j, "module");
		put_index(j, m->functions[i].module);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static void put_location(struct mew_json *j, const struct mew_model *m, const struct mew_location *l)
{
	char offset[24];

	(void)snprintf(offset, sizeof offset, "0x%llx", (unsigned long long)l->offset);
	mew_json_object(j);
	mew_json_key(j, "module");
	put_index(j, l->module);
	mew_json_put_text(j, "offset", offset);
	if (l->start != 0) {
		(void)snprintf(offset, sizeof offset, "0x%llx", (unsigned long long)l->start);
		mew_json_put_text(j, "start", offset);
	}
	mew_json_key(j, "lines");
	mew_json_array(j);
	for (uint32_t i = 0; i < l->nlines; i++) {
		mew_json_array(j);
		mew_json_u64(j, m->lines[l->first_line + i].function);
		mew_json_u64(j, m->lines[l->first_line + i].line);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
	if (l->why != NULL)
		mew_json_put_text(j, "why", l->why);
	mew_json_object_end(j);
}

static void put_locations(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "locations");
	mew_json_array(j);
	for (size_t i = 0; i < m->nlocations; i++)
		put_location(j, m, &m->locations[i]);
	mew_json_array_end(j);
}

static void put_stacks(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "stacks");
	mew_json_array(j);
	for (size_t i = 0; i < m->nstacks; i++) {
		mew_json_array(j);
		for (uint32_t k = 0; k < m->stacks[i].depth; k++)
			mew_json_u64(j, m->frames[m->stacks[i].first + k]);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static void put_environment(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "environment");
	mew_json_object(j);
	for (size_t i = 0; i < m->nfacts; i++)
		mew_json_put_text(j, m->facts[i].name, m->facts[i].value);
	mew_json_object_end(j);
}

static void put_grade(struct mew_json *j, const struct mew_model *m)
{
	char letter[2] = { m->grade, '\0' };

	mew_json_key(j, "grade");
	if (m->grade == 0) {
		mew_json_null(j);
		return;
	}
	mew_json_object(j);
	mew_json_put_text(j, "letter", letter);
	mew_json_put_text(j, "reason", m->grade_reason);
	mew_json_object_end(j);
}

static int write_json(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	const struct mew_model *m = in->model;
	struct mew_json j;

	(void)err;
	mew_json_init(&j, w, PRETTY_CASES);
	mew_json_object(&j);
	member_u64(&j, "schema", SCHEMA);
	mew_json_put_text(&j, "mew", MEW_VERSION);
	put_environment(&j, m);
	put_grade(&j, m);
	mew_json_put_text(&j, "hooks", m->hooks == NULL ? "" : m->hooks);
	mew_json_key(&j, "cases");
	mew_json_array(&j);
	for (size_t i = 0; i < m->ncases; i++)
		put_case(&j, &m->cases[i]);
	mew_json_array_end(&j);
	j.pretty_depth = PRETTY_SYMBOLS;
	put_modules(&j, m);
	put_functions(&j, m);
	put_locations(&j, m);
	put_stacks(&j, m);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

const struct mew_report mew_report_json = {
	.abi = MEW_REPORT_ABI,
	.name = "json",
	.help = "everything, without loss: the file that mew report reads",
	.suffix = ".mew.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 1,
	.write = write_json,
};
