/*
 * wire_model.c - requests and models as messages. A model goes over as the calls that make it again, so what arrives is
 * checked by the model itself.
 * Layer L4. Outside windows.
 */
#include "config.h"

#include "wire.h"

#include <stdlib.h>
#include <string.h>

void mew_wire_put_request(struct mew_wire *w, const struct mew_request *rq)
{
	const struct mew_block_plan *p = &rq->plan;

	mew_wire_put_number(w, rq->item);
	mew_wire_put_number(w, rq->pass);
	mew_wire_put_number(w, (uint64_t)rq->phase);
	mew_wire_put_number(w, rq->process);
	mew_wire_put_number(w, rq->repetition);
	mew_wire_put_number(w, (uint64_t)rq->captured | (uint64_t)rq->stacks << 1 | (uint64_t)rq->pause_cpu << 2 |
				       (uint64_t)p->free_running << 3 | (uint64_t)rq->resident << 4 |
				       (uint64_t)(rq->clock == MEW_CLOCK_CPU) << 5);
	mew_wire_put_number(w, rq->interval_ns);
	mew_wire_put_number(w, p->loops);
	mew_wire_put_number(w, p->target_ns);
	mew_wire_put_number(w, p->exact);
	mew_wire_put_number(w, p->min_samples);
	mew_wire_put_number(w, p->max_samples);
	mew_wire_put_number(w, p->min_ns);
	mew_wire_put_number(w, p->max_ns);
	mew_wire_put_number(w, p->min_iterations);
	mew_wire_put_real(w, p->precision);
	mew_wire_put_number(w, (uint64_t)rq->pace_fd);
	mew_wire_put_number(w, (uint64_t)rq->side);
}

void mew_wire_request(struct mew_wire *w, struct mew_request *rq)
{
	struct mew_block_plan *p = &rq->plan;
	uint64_t flags;

	*rq = (struct mew_request){ 0 };
	rq->item = (uint32_t)mew_wire_number(w);
	rq->pass = (enum mew_pass)mew_wire_number(w);
	rq->phase = (int)mew_wire_number(w);
	rq->process = (unsigned)mew_wire_number(w);
	rq->repetition = (unsigned)mew_wire_number(w);
	flags = mew_wire_number(w);
	rq->captured = flags & 1;
	rq->stacks = flags >> 1 & 1;
	rq->pause_cpu = flags >> 2 & 1;
	p->free_running = flags >> 3 & 1;
	rq->resident = flags >> 4 & 1;
	rq->clock = (flags >> 5 & 1) != 0 ? MEW_CLOCK_CPU : MEW_CLOCK_WALL;
	rq->interval_ns = mew_wire_number(w);
	p->loops = mew_wire_number(w);
	p->target_ns = mew_wire_number(w);
	p->exact = mew_wire_number(w);
	p->min_samples = mew_wire_number(w);
	p->max_samples = mew_wire_number(w);
	p->min_ns = mew_wire_number(w);
	p->max_ns = mew_wire_number(w);
	p->min_iterations = mew_wire_number(w);
	p->precision = mew_wire_real(w);
	rq->pace_fd = (int)mew_wire_number(w);
	rq->side = mew_wire_number(w) != 0 ? MEW_HEAD : MEW_BASE;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

/* A member of a row, or of a row of a list: any figure that is not a list itself. */
static void put_scalar(struct mew_wire *w, const char *base, const struct mew_figure *figure)
{
	const void *at = base + figure->offset;

	if (figure->type == MEW_VALUE_U64)
		mew_wire_put_number(w, *(const uint64_t *)at);
	else if (figure->type == MEW_VALUE_F64)
		mew_wire_put_real(w, *(const double *)at);
	else
		mew_wire_put_text(w, *(const char *const *)at);
}

static void put_list(struct mew_wire *w, const struct mew_row_head *row, const struct mew_figure *figure)
{
	size_t n;
	const char *rows = mew_row_list(row, figure, &n);

	mew_wire_put_number(w, n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < figure->list->ncolumns; k++)
			put_scalar(w, rows + i * figure->list->row_bytes, &figure->list->columns[k]);
}

static void put_row(struct mew_wire *w, const struct mew_case *c, enum mew_kind kind)
{
	struct mew_case copy = *c;
	struct mew_row_head *row = mew_case_row(&copy, kind);
	const struct mew_figure *f;
	size_t n;

	mew_wire_put_text(w, row->profiler);
	mew_wire_put_number(w, (uint64_t)-row->status);
	mew_wire_put_text(w, row->reason);
	f = mew_figures(kind, &n);
	for (size_t i = 0; i < n; i++) {
		const char *why = mew_row_why(row, f[i].bit);

		mew_wire_put_number(w, why == NULL);
		if (why != NULL)
			mew_wire_put_text(w, why);
		else if (f[i].type == MEW_VALUE_LIST)
			put_list(w, row, &f[i]);
		else
			put_scalar(w, (const char *)row, &f[i]);
	}
}

/* A row of a list into memory; texts stay in the buffer. */
static void get_list_row(struct mew_wire *w, const struct mew_list_type *list, char *row)
{
	for (size_t k = 0; k < list->ncolumns; k++) {
		void *at = row + list->columns[k].offset;

		if (list->columns[k].type == MEW_VALUE_U64)
			*(uint64_t *)at = mew_wire_number(w);
		else if (list->columns[k].type == MEW_VALUE_F64)
			*(double *)at = mew_wire_real(w);
		else
			*(const char **)at = mew_wire_text(w);
	}
}

static void get_list(struct mew_wire *w, struct mew_model *m, struct mew_case *c, enum mew_kind kind,
		     const struct mew_figure *figure)
{
	uint64_t n = mew_wire_number(w);
	char *rows = n <= w->size - w->at ? calloc((size_t)n + 1, figure->list->row_bytes) : NULL;

	if (rows == NULL) {
		w->failed = true;
		return;
	}
	for (size_t i = 0; i < n && !w->failed; i++)
		get_list_row(w, figure->list, rows + i * figure->list->row_bytes);
	if (!w->failed)
		mew_model_list(m, c, kind, figure->bit, rows, (size_t)n);
	free(rows);
}

static bool get_row(struct mew_wire *w, struct mew_model *m, struct mew_case *c, enum mew_kind kind)
{
	struct mew_row_head *row = mew_model_row(m, c, kind);
	const struct mew_figure *f;
	size_t n;

	if (row == NULL)
		return false;
	row->profiler = mew_model_string(m, mew_wire_text(w));
	row->status = -(int)mew_wire_number(w);
	row->reason = mew_model_string(m, mew_wire_text(w));
	f = mew_figures(kind, &n);
	for (size_t i = 0; i < n && !w->failed; i++) {
		bool present = mew_wire_number(w) != 0;

		if (!present)
			mew_model_absent(m, c, kind, f[i].bit, mew_wire_text(w));
		else if (f[i].type == MEW_VALUE_U64)
			mew_model_u64(c, kind, f[i].bit, mew_wire_number(w));
		else if (f[i].type == MEW_VALUE_F64)
			mew_model_f64(c, kind, f[i].bit, mew_wire_real(w));
		else if (f[i].type == MEW_VALUE_TEXT)
			mew_model_text(m, c, kind, f[i].bit, mew_wire_text(w));
		else
			get_list(w, m, c, kind, &f[i]);
	}
	return !w->failed;
}

/* --- runs and lists --------------------------------------------------------------------------------------------- */

static void put_run(struct mew_wire *w, const struct mew_run *r)
{
	mew_wire_put_number(w, (uint64_t)r->phase);
	mew_wire_put_number(w, r->process);
	mew_wire_put_number(w, r->repetition);
	mew_wire_put_number(w, r->loops);
	mew_wire_put_number(w, r->context_switches);
	mew_wire_put_number(w, r->migrations);
	mew_wire_put_number(w, r->page_faults);
	mew_wire_put_number(w, r->nsamples);
	for (size_t i = 0; i < r->nsamples; i++)
		mew_wire_put_number(w, r->real_ns[i]);
	mew_wire_put_number(w, r->cpu_ns != NULL);
	for (size_t i = 0; r->cpu_ns != NULL && i < r->nsamples; i++)
		mew_wire_put_number(w, r->cpu_ns[i]);
}

static uint64_t *get_numbers(struct mew_wire *w, size_t n)
{
	uint64_t *x = n <= w->size - w->at ? malloc((n + 1) * sizeof *x) : NULL;

	if (x == NULL) {
		w->failed = true;
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		x[i] = mew_wire_number(w);
	return x;
}

static bool get_run(struct mew_wire *w, struct mew_model *m, struct mew_case *c)
{
	struct mew_run r = { .phase = (int)mew_wire_number(w) };
	uint64_t *real, *cpu = NULL;

	r.process = (unsigned)mew_wire_number(w);
	r.repetition = (unsigned)mew_wire_number(w);
	r.loops = mew_wire_number(w);
	r.context_switches = mew_wire_number(w);
	r.migrations = mew_wire_number(w);
	r.page_faults = mew_wire_number(w);
	r.nsamples = mew_wire_number(w);
	r.real_ns = real = get_numbers(w, r.nsamples);
	if (mew_wire_number(w) != 0)
		r.cpu_ns = cpu = get_numbers(w, r.nsamples);
	if (!w->failed && mew_model_add_run(m, c, &r) != 0)
		w->failed = true;
	free(real);
	free(cpu);
	return !w->failed;
}

static void put_stacks_of_case(struct mew_wire *w, const struct mew_case *c)
{
	mew_wire_put_number(w, c->nheap_stacks);
	for (size_t i = 0; i < c->nheap_stacks; i++) {
		const struct mew_heap_stack *s = &c->heap_stacks[i];

		mew_wire_put_number(w, s->stack);
		mew_wire_put_number(w, s->peak_bytes);
		mew_wire_put_number(w, s->cumulative_bytes);
		mew_wire_put_number(w, s->allocations);
		mew_wire_put_number(w, s->net_bytes);
	}
	mew_wire_put_number(w, (uint64_t)c->window.pid);
	mew_wire_put_number(w, c->window.zero_ns);
	mew_wire_put_number(w, c->window.opened_ns);
	mew_wire_put_number(w, c->nsamples);
	for (size_t i = 0; i < c->nsamples; i++) {
		const struct mew_cpu_sample *s = &c->samples[i];

		mew_wire_put_number(w, s->stack);
		mew_wire_put_number(w, s->thread);
		mew_wire_put_number(w, s->time_ns);
		mew_wire_put_number(w, s->weight_ns);
		mew_wire_put_number(w, s->blocked);
	}
}

static bool get_stacks_of_case(struct mew_wire *w, const struct mew_model *m, struct mew_case *c)
{
	uint64_t n = mew_wire_number(w);

	for (uint64_t i = 0; i < n && !w->failed; i++) {
		struct mew_heap_stack s = { .stack = (uint32_t)mew_wire_number(w) };

		s.peak_bytes = mew_wire_number(w);
		s.cumulative_bytes = mew_wire_number(w);
		s.allocations = mew_wire_number(w);
		s.net_bytes = mew_wire_number(w);
		if ((s.stack >= m->nstacks && s.stack != MEW_NO_STACK) || mew_model_add_heap_stack(c, &s) != 0)
			w->failed = true;
	}
	c->window.pid = (int)mew_wire_number(w);
	c->window.zero_ns = mew_wire_number(w);
	c->window.opened_ns = mew_wire_number(w);
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n && !w->failed; i++) {
		struct mew_cpu_sample s = { .stack = (uint32_t)mew_wire_number(w) };

		s.thread = (uint32_t)mew_wire_number(w);
		s.time_ns = mew_wire_number(w);
		s.weight_ns = mew_wire_number(w);
		s.blocked = mew_wire_number(w) != 0;
		if ((s.stack >= m->nstacks && s.stack != MEW_NO_STACK) || mew_model_add_sample(c, &s) != 0)
			w->failed = true;
	}
	return !w->failed;
}

static void put_case(struct mew_wire *w, const struct mew_case *c)
{
	mew_wire_put_text(w, c->key);
	mew_wire_put_text(w, c->program);
	mew_wire_put_text(w, c->label);
	mew_wire_put_text(w, c->tags);
	mew_wire_put_number(w, c->threads);
	mew_wire_put_number(w, c->left_threads);
	mew_wire_put_real(w, c->bytes_per_iteration);
	mew_wire_put_real(w, c->items_per_iteration);
	mew_wire_put_number(w, c->kinds);
	for (int kind = 0; kind < MEW_KINDS; kind++)
		if (mew_case_has(c, kind))
			put_row(w, c, (enum mew_kind)kind);
	mew_wire_put_number(w, c->nruns);
	for (size_t i = 0; i < c->nruns; i++)
		put_run(w, &c->runs[i]);
	mew_wire_put_number(w, c->ncounters);
	for (size_t i = 0; i < c->ncounters; i++) {
		mew_wire_put_text(w, c->counters[i].name);
		mew_wire_put_real(w, c->counters[i].value);
	}
	mew_wire_put_number(w, c->nphase_data);
	for (size_t i = 0; i < c->nphase_data; i++) {
		mew_wire_put_number(w, (uint64_t)c->phase_data[i].phase);
		mew_wire_put_text(w, c->phase_data[i].key);
		mew_wire_put_text(w, c->phase_data[i].value);
	}
	put_stacks_of_case(w, c);
}

static bool get_case(struct mew_wire *w, struct mew_model *m)
{
	const char *key = mew_wire_text(w), *program = mew_wire_text(w);
	struct mew_case *c = key != NULL ? mew_model_case(m, key, program) : NULL;
	uint64_t n, kinds;

	if (c == NULL)
		return false;
	c->label = mew_model_string(m, mew_wire_text(w));
	c->tags = mew_model_string(m, mew_wire_text(w));
	c->threads = (unsigned)mew_wire_number(w);
	c->left_threads = mew_wire_number(w) != 0;
	c->bytes_per_iteration = mew_wire_real(w);
	c->items_per_iteration = mew_wire_real(w);
	kinds = mew_wire_number(w);
	for (int kind = 0; kind < MEW_KINDS; kind++)
		if ((kinds >> kind & 1) != 0 && !get_row(w, m, c, (enum mew_kind)kind))
			return false;
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n; i++)
		if (!get_run(w, m, c))
			return false;
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n && !w->failed; i++) {
		const char *name = mew_wire_text(w);
		double value = mew_wire_real(w);

		if (name == NULL || mew_model_add_counter(m, c, name, value) != 0)
			return false;
	}
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n && !w->failed; i++) {
		int phase = (int)mew_wire_number(w);
		const char *name = mew_wire_text(w), *value = mew_wire_text(w);

		if (name == NULL || value == NULL || mew_model_add_phase_data(m, c, phase, name, value) != 0)
			return false;
	}
	return get_stacks_of_case(w, m, c);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static void put_places(struct mew_wire *w, const struct mew_model *m)
{
	mew_wire_put_number(w, m->nmodules);
	for (size_t i = 0; i < m->nmodules; i++) {
		mew_wire_put_text(w, m->modules[i].path);
		mew_wire_put_text(w, m->modules[i].build_id);
		mew_wire_put_number(w, m->modules[i].size);
		mew_wire_put_number(w, m->modules[i].gone);
	}
	mew_wire_put_number(w, m->nlocations);
	for (size_t i = 0; i < m->nlocations; i++) {
		mew_wire_put_number(w, m->locations[i].module);
		mew_wire_put_number(w, m->locations[i].offset);
	}
	mew_wire_put_number(w, m->nstacks);
	for (size_t i = 0; i < m->nstacks; i++) {
		mew_wire_put_number(w, m->stacks[i].depth);
		for (uint32_t k = 0; k < m->stacks[i].depth; k++)
			mew_wire_put_number(w, m->frames[m->stacks[i].first + k]);
	}
}

static bool get_stack(struct mew_wire *w, struct mew_model *m)
{
	uint64_t depth = mew_wire_number(w);
	uint32_t *frames;
	bool fine;

	if (w->failed || depth == 0 || depth > w->size - w->at)
		return false;
	frames = malloc(depth * sizeof *frames);
	if (frames == NULL)
		return false;
	fine = true;
	for (uint64_t k = 0; k < depth; k++) {
		frames[k] = (uint32_t)mew_wire_number(w);
		fine = fine && frames[k] < m->nlocations;
	}
	fine = fine && !w->failed && mew_model_stack(m, frames, depth) != MEW_NO_STACK;
	free(frames);
	return fine;
}

/* The sender's numbers are kept: an empty model gives equal things the same order. */
static bool get_places(struct mew_wire *w, struct mew_model *m)
{
	uint64_t n = mew_wire_number(w);

	for (uint64_t i = 0; i < n && !w->failed; i++) {
		const char *path = mew_wire_text(w), *id = mew_wire_text(w);
		uint64_t size = mew_wire_number(w);
		bool gone = mew_wire_number(w) != 0;

		if (path == NULL || id == NULL || mew_model_module(m, path, id, size, gone) != i)
			return false;
	}
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n && !w->failed; i++) {
		uint32_t module = (uint32_t)mew_wire_number(w);
		uint64_t offset = mew_wire_number(w);

		if ((module >= m->nmodules && module != MEW_NO_MODULE) || mew_model_location(m, module, offset) != i)
			return false;
	}
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n; i++)
		if (!get_stack(w, m))
			return false;
	return !w->failed;
}

void mew_wire_put_model(struct mew_wire *w, const struct mew_model *m)
{
	mew_wire_put_number(w, m->nfacts);
	for (size_t i = 0; i < m->nfacts; i++) {
		mew_wire_put_text(w, m->facts[i].name);
		mew_wire_put_text(w, m->facts[i].value);
	}
	put_places(w, m);
	mew_wire_put_number(w, m->ncases);
	for (size_t i = 0; i < m->ncases; i++)
		put_case(w, &m->cases[i]);
}

bool mew_wire_model(struct mew_wire *w, struct mew_model *m)
{
	uint64_t n = mew_wire_number(w);

	for (uint64_t i = 0; i < n && !w->failed; i++) {
		const char *name = mew_wire_text(w), *value = mew_wire_text(w);

		if (name == NULL || value == NULL || mew_model_add_fact(m, name, value) != 0)
			return false;
	}
	if (!get_places(w, m))
		return false;
	n = mew_wire_number(w);
	for (uint64_t i = 0; i < n; i++)
		if (!get_case(w, m))
			return false;
	return !w->failed;
}
