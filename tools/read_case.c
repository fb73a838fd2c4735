/*
 * read_case.c - one case out of a JSON tree: its rows, runs, stacks and samples.
 * Layer L6, in the command only. One thread; the format is described above its writer, reports/json.c.
 */
#include "config.h"

#include "read_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rows ------------------------------------------------------------------------------------------------------- */

static bool read_column(struct mew_reader *r, const json_t *of, const struct mew_figure *column, char *row)
{
	void *at = row + column->offset;

	if (column->type == MEW_VALUE_U64)
		return mew_read_member_u64(r, of, column->name, at);
	if (column->type == MEW_VALUE_F64)
		return mew_read_member_f64(r, of, column->name, at);
	return mew_read_needed_text(r, of, column->name, at);
}

static bool read_list_figure(struct mew_reader *r, struct mew_case *c, enum mew_kind kind,
			     const struct mew_figure *figure, const json_t *row)
{
	const struct mew_list_type *type = figure->list;
	bool fine = true;
	const json_t *list;
	size_t n;
	char *rows;

	if (!mew_read_member_list(r, row, figure->name, &list))
		return false;
	n = json_array_size(list);
	rows = calloc(n + 1, type->row_bytes);
	if (rows == NULL)
		return mew_read_no_memory(r);
	for (size_t i = 0; fine && i < n; i++)
		for (size_t k = 0; fine && k < type->ncolumns; k++)
			fine = read_column(r, json_array_get(list, i), &type->columns[k], rows + i * type->row_bytes);
	if (fine)
		mew_model_list(r->model, c, kind, figure->bit, rows, n);
	free(rows);
	return fine;
}

static bool read_figure(struct mew_reader *r, struct mew_case *c, enum mew_kind kind, const struct mew_figure *figure,
			const json_t *row)
{
	const char *text;
	uint64_t whole;
	double value;

	if (mew_read_none(json_object_get(row, figure->name)))
		return true;
	switch (figure->type) {
	case MEW_VALUE_U64:
		if (!mew_read_member_u64(r, row, figure->name, &whole))
			return false;
		mew_model_u64(c, kind, figure->bit, whole);
		return true;
	case MEW_VALUE_F64:
		if (!mew_read_member_f64(r, row, figure->name, &value))
			return false;
		mew_model_f64(c, kind, figure->bit, value);
		return true;
	case MEW_VALUE_LIST:
		return read_list_figure(r, c, kind, figure, row);
	default:
		if (!mew_read_needed_text(r, row, figure->name, &text))
			return false;
		mew_model_text(r->model, c, kind, figure->bit, text);
		return true;
	}
}

static bool read_absent(struct mew_reader *r, struct mew_case *c, enum mew_kind kind, const json_t *row)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);
	const char *why;
	json_t *absent;

	if (!mew_read_member_object(r, row, "absent", &absent))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!mew_read_member_text(r, absent, figures[i].name, &why))
			return false;
		if (why != NULL)
			mew_model_absent(r->model, c, kind, figures[i].bit, why);
	}
	return true;
}

static bool read_row(struct mew_reader *r, struct mew_case *c, enum mew_kind kind, const json_t *of)
{
	struct mew_row_head *head;
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);
	json_t *row;

	if (!mew_read_member_object(r, of, mew_kind_name(kind), &row) || row == NULL)
		return r->status == MEW_OK;
	head = mew_model_row(r->model, c, kind);
	for (size_t i = 0; i < n; i++)
		if (!read_figure(r, c, kind, &figures[i], row))
			return false;
	return read_absent(r, c, kind, row) && mew_read_status(r, row, &head->status) &&
	       mew_read_copied_text(r, row, "reason", &head->reason) &&
	       mew_read_copied_text(r, row, "profiler", &head->profiler);
}

/* --- lists of a case -------------------------------------------------------------------------------------------- */

static bool read_counters(struct mew_reader *r, struct mew_case *c, const json_t *of)
{
	json_t *counters, *value;
	const char *name;

	if (!mew_read_member_object(r, of, "counters", &counters))
		return false;
	json_object_foreach(counters, name, value) {
		if (!json_is_number(value))
			return mew_read_damaged(r, name, "a number");
		if (mew_model_add_counter(r->model, c, name, json_number_value(value)) != 0)
			return mew_read_no_memory(r);
	}
	return true;
}

static bool read_phase_data(struct mew_reader *r, struct mew_case *c, const json_t *of)
{
	const json_t *list;

	if (!mew_read_member_list(r, of, "phase_data", &list))
		return false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		const char *key, *value;
		int phase;

		if (!mew_read_phase(r, item, &phase) || !mew_read_needed_text(r, item, "key", &key) ||
		    !mew_read_needed_text(r, item, "value", &value))
			return false;
		if (mew_model_add_phase_data(r->model, c, phase, key, value) != 0)
			return mew_read_no_memory(r);
	}
	return true;
}

/* Taken by the caller; NULL when the list is not one of n whole numbers, or without memory. */
static uint64_t *read_numbers(struct mew_reader *r, const json_t *list, const char *what, size_t n)
{
	uint64_t *values;
	bool fine = true;

	if (!json_is_array(list) || json_array_size(list) != n) {
		(void)mew_read_damaged(r, what, "a list as long as the other");
		return NULL;
	}
	values = calloc(n + 1, sizeof *values);
	if (values == NULL) {
		(void)mew_read_no_memory(r);
		return NULL;
	}
	for (size_t i = 0; fine && i < n; i++)
		fine = mew_read_u64(r, json_array_get(list, i), what, &values[i]);
	if (fine)
		return values;
	free(values);
	return NULL;
}

static bool read_run(struct mew_reader *r, struct mew_case *c, const json_t *item)
{
	const json_t *real = json_object_get(item, "real_ns"), *cpu = json_object_get(item, "cpu_ns");
	struct mew_run run = { .nsamples = json_array_size(real) };
	uint64_t *real_ns, *cpu_ns = NULL;
	bool fine;

	if (!mew_read_phase(r, item, &run.phase) || !mew_read_member_u32(r, item, "process", &run.process) ||
	    !mew_read_member_u32(r, item, "repetition", &run.repetition) ||
	    !mew_read_member_u64(r, item, "loops", &run.loops) ||
	    !mew_read_member_u64(r, item, "context_switches", &run.context_switches) ||
	    !mew_read_member_u64(r, item, "migrations", &run.migrations) ||
	    !mew_read_member_u64(r, item, "page_faults", &run.page_faults))
		return false;
	real_ns = read_numbers(r, real, "real_ns", run.nsamples);
	if (!mew_read_none(cpu))
		cpu_ns = read_numbers(r, cpu, "cpu_ns", run.nsamples);
	run.real_ns = run.nsamples > 0 ? real_ns : NULL;
	run.cpu_ns = run.nsamples > 0 ? cpu_ns : NULL;
	fine = r->status == MEW_OK && (mew_model_add_run(r->model, c, &run) == 0 || mew_read_no_memory(r));
	free(real_ns);
	free(cpu_ns);
	return fine;
}

static bool read_runs(struct mew_reader *r, struct mew_case *c, const json_t *of)
{
	const json_t *list;

	if (!mew_read_member_list(r, of, "runs", &list))
		return false;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!read_run(r, c, json_array_get(list, i)))
			return false;
	return true;
}

static bool read_heap_stacks(struct mew_reader *r, struct mew_case *c, const json_t *of)
{
	static const char what[] = "heap_stacks";
	const json_t *list;

	if (!mew_read_member_list(r, of, what, &list))
		return false;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *item = json_array_get(list, i);
		struct mew_heap_stack s;

		if (!mew_read_index(r, json_array_get(item, 0), what, &r->stacks, true, &s.stack) ||
		    !mew_read_u64(r, json_array_get(item, 1), what, &s.peak_bytes) ||
		    !mew_read_u64(r, json_array_get(item, 2), what, &s.cumulative_bytes) ||
		    !mew_read_u64(r, json_array_get(item, 3), what, &s.allocations) ||
		    !mew_read_u64(r, json_array_get(item, 4), what, &s.net_bytes))
			return false;
		if (mew_model_add_heap_stack(c, &s) != 0)
			return mew_read_no_memory(r);
	}
	return true;
}

/* The columns of the samples, of equal length. */
static bool read_samples(struct mew_reader *r, struct mew_case *c, const json_t *of)
{
	json_t *samples;
	const json_t *stacks;
	uint64_t *threads = NULL, *times = NULL, *weights = NULL, *blocked = NULL;
	size_t n;

	if (!mew_read_member_object(r, of, "samples", &samples) || samples == NULL ||
	    !mew_read_member_list(r, samples, "stack", &stacks))
		return r->status == MEW_OK;
	n = json_array_size(stacks);
	if (n == 0)
		return true;
	threads = read_numbers(r, json_object_get(samples, "thread"), "thread", n);
	times = read_numbers(r, json_object_get(samples, "time_ns"), "time_ns", n);
	weights = read_numbers(r, json_object_get(samples, "weight_ns"), "weight_ns", n);
	if (json_object_get(samples, "blocked") != NULL)
		blocked = read_numbers(r, json_object_get(samples, "blocked"), "blocked", n);
	for (size_t i = 0; r->status == MEW_OK && i < n; i++) {
		struct mew_cpu_sample s = { .time_ns = times[i], .weight_ns = weights[i] };

		s.thread = (uint32_t)threads[i];
		s.blocked = blocked != NULL && blocked[i] != 0;
		if (s.thread != threads[i])
			(void)mew_read_damaged(r, "thread", "a whole number below 2^32");
		else if (mew_read_index(r, json_array_get(stacks, i), "stack", &r->stacks, true, &s.stack) &&
			 mew_model_add_sample(c, &s) != 0)
			(void)mew_read_no_memory(r);
	}
	free(threads);
	free(times);
	free(weights);
	free(blocked);
	return r->status == MEW_OK;
}

/* --- a case ----------------------------------------------------------------------------------------------------- */

/* A case of the model under a key of its own. Returns NULL when there is one already, or none could be made. */
static struct mew_case *new_case(struct mew_reader *r, const json_t *of)
{
	const char *key, *program, *allocator;
	size_t before = r->model->ncases;
	struct mew_case *c;

	if (!mew_read_needed_text(r, of, "key", &key) || !mew_read_member_text(r, of, "program", &program) ||
	    !mew_read_member_text(r, of, "allocator", &allocator))
		return NULL;
	(void)snprintf(r->where, sizeof r->where, "case %.64s", key);
	if (*key == '\0') {
		(void)mew_read_damaged(r, "key", "a name");
		return NULL;
	}
	c = mew_model_case_under(r->model, key, program, allocator);
	if (c == NULL) {
		(void)mew_read_no_memory(r);
	} else if (r->model->ncases == before) {
		(void)mew_read_damaged(r, "key", "one that no other case of the program has");
		c = NULL;
	}
	return c;
}

bool mew_read_case(struct mew_reader *r, const json_t *of)
{
	struct mew_case *c = new_case(r, of);

	if (c == NULL || !mew_read_copied_text(r, of, "label", &c->label) ||
	    !mew_read_copied_text(r, of, "tags", &c->tags) || !mew_read_copied_text(r, of, "output", &c->output) ||
	    !mew_read_member_u32(r, of, "threads", &c->threads) ||
	    !mew_read_member_f64(r, of, "bytes_per_iteration", &c->bytes_per_iteration) ||
	    !mew_read_member_f64(r, of, "items_per_iteration", &c->items_per_iteration))
		return false;
	for (int kind = 0; kind < MEW_KINDS; kind++)
		if (!read_row(r, c, (enum mew_kind)kind, of))
			return false;
	return read_counters(r, c, of) && read_phase_data(r, c, of) && read_runs(r, c, of) &&
	       read_heap_stacks(r, c, of) && read_samples(r, c, of);
}
