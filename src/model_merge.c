/*
 * model_merge.c - one model out of those of many processes: the numbers of each are translated, then all is copied.
 * Layer L2. One thread at a time; never inside a window.
 */
#include "config.h"

#include "model.h"

#include <stdlib.h>
#include <string.h>

#include "model_private.h"

/* The number in `into` for each number of `from`. */
struct renumber {
	uint32_t *modules, *functions, *locations, *stacks;
};

static void renumber_fini(struct renumber *r)
{
	free(r->modules);
	free(r->functions);
	free(r->locations);
	free(r->stacks);
}

static int renumber_init(struct renumber *r, const struct mew_model *from)
{
	*r = (struct renumber){
		.modules = malloc((from->nmodules + 1) * sizeof *r->modules),
		.functions = malloc((from->nfunctions + 1) * sizeof *r->functions),
		.locations = malloc((from->nlocations + 1) * sizeof *r->locations),
		.stacks = malloc((from->nstacks + 1) * sizeof *r->stacks),
	};
	if (r->modules != NULL && r->functions != NULL && r->locations != NULL && r->stacks != NULL)
		return 0;
	renumber_fini(r);
	return -1;
}

/* MEW_NO_MODULE and the like have no entry and stay what they are. */
static uint32_t translate(const uint32_t *numbers, size_t n, uint32_t number)
{
	return number < n ? numbers[number] : UINT32_MAX;
}

static int merge_modules(struct mew_model *into, const struct mew_model *from, struct renumber *r)
{
	for (size_t i = 0; i < from->nmodules; i++) {
		const struct mew_module *m = &from->modules[i];

		r->modules[i] = mew_model_module(into, m->path, m->build_id, m->size, m->gone);
		if (r->modules[i] == UINT32_MAX)
			return -1;
	}
	return 0;
}

static int merge_functions(struct mew_model *into, const struct mew_model *from, struct renumber *r)
{
	for (size_t i = 0; i < from->nfunctions; i++) {
		const struct mew_function *f = &from->functions[i];
		uint32_t module = translate(r->modules, from->nmodules, f->module);

		r->functions[i] = mew_model_function(into, f->name, f->file, f->line, module);
		if (r->functions[i] == UINT32_MAX)
			return -1;
	}
	return 0;
}

/* A resolved location beats an unresolved one; of two reasons the first stays. */
static int merge_resolution(struct mew_model *into, uint32_t number, const struct mew_model *from,
			    const struct mew_location *l, const struct renumber *r)
{
	struct mew_location *known = &into->locations[number];
	struct mew_line *lines;
	int failed;

	if (known->nlines > 0)
		return 0;
	if (l->nlines == 0) {
		if (known->start == 0)
			known->start = l->start;
		if (known->why == NULL)
			known->why = mew_model_string(into, l->why);
		return l->why != NULL && known->why == NULL ? -1 : 0;
	}
	lines = malloc(l->nlines * sizeof *lines);
	if (lines == NULL)
		return -1;
	memcpy(lines, &from->lines[l->first_line], l->nlines * sizeof *lines);
	for (uint32_t i = 0; i < l->nlines; i++)
		lines[i].function = translate(r->functions, from->nfunctions, lines[i].function);
	failed = mew_model_set_lines(into, number, lines, l->nlines);
	free(lines);
	return failed;
}

static int merge_locations(struct mew_model *into, const struct mew_model *from, struct renumber *r)
{
	for (size_t i = 0; i < from->nlocations; i++) {
		const struct mew_location *l = &from->locations[i];

		r->locations[i] = mew_model_location(into, translate(r->modules, from->nmodules, l->module), l->offset);
		if (r->locations[i] == UINT32_MAX || merge_resolution(into, r->locations[i], from, l, r) != 0)
			return -1;
	}
	return 0;
}

static int merge_stacks(struct mew_model *into, const struct mew_model *from, struct renumber *r)
{
	uint32_t *frames = malloc((from->nframes + 1) * sizeof *frames);

	if (frames == NULL)
		return -1;
	for (size_t i = 0; i < from->nframes; i++)
		frames[i] = translate(r->locations, from->nlocations, from->frames[i]);
	for (size_t i = 0; i < from->nstacks; i++) {
		r->stacks[i] = mew_model_stack(into, frames + from->stacks[i].first, from->stacks[i].depth);
		if (r->stacks[i] == UINT32_MAX) {
			free(frames);
			return -1;
		}
	}
	free(frames);
	return 0;
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

/* *to = text, copied; false without memory. NULL leaves what is there. */
static bool take_text(struct mew_model *into, const char **to, const char *text)
{
	const char *own;

	if (text == NULL)
		return true;
	own = mew_model_string(into, text);
	if (own == NULL)
		return false;
	*to = own;
	return true;
}

/* Set figures by way of the catalogue, so that strings and absences become the model's own. */
static void merge_figures(struct mew_model *into, struct mew_case *c, enum mew_kind kind,
			  const struct mew_row_head *row)
{
	size_t n;
	const struct mew_figure *f = mew_figures(kind, &n);

	for (; n-- > 0; f++) {
		const void *member = (const char *)row + f->offset, *list;
		size_t rows;

		if ((row->present >> f->bit & 1) == 0)
			continue;
		if (f->type == MEW_VALUE_U64)
			mew_model_u64(c, kind, f->bit, *(const uint64_t *)member);
		else if (f->type == MEW_VALUE_F64)
			mew_model_f64(c, kind, f->bit, *(const double *)member);
		else if (f->type == MEW_VALUE_TEXT)
			mew_model_text(into, c, kind, f->bit, *(const char *const *)member);
		if (f->type == MEW_VALUE_LIST) {
			list = mew_row_list(row, f, &rows);
			mew_model_list(into, c, kind, f->bit, list, rows);
		}
	}
	for (const struct mew_absent *a = row->absent_; a != NULL; a = a->next)
		mew_model_absent(into, c, kind, a->bit, a->why);
}

static int merge_row(struct mew_model *into, struct mew_case *c, enum mew_kind kind, const struct mew_row_head *row)
{
	struct mew_row_head *head = mew_model_row(into, c, kind);

	if (head == NULL)
		return -1;
	mew_model_clear(c, kind);
	head->status = row->status;
	if (!take_text(into, &head->label, row->label) || !take_text(into, &head->profiler, row->profiler) ||
	    !take_text(into, &head->reason, row->reason))
		return -1;
	merge_figures(into, c, kind, row);
	return head->present == row->present ? 0 : -1; /* a text or a list that found no memory is missing */
}

static int merge_counter(struct mew_model *into, struct mew_case *c, const struct mew_counter *counter)
{
	for (size_t i = 0; i < c->ncounters; i++) {
		if (strcmp(c->counters[i].name, counter->name) == 0) {
			c->counters[i].value = counter->value;
			return 0;
		}
	}
	return mew_model_add_counter(into, c, counter->name, counter->value);
}

/* A rate under hooks or a sampler is no figure of the loop: what was timed keeps its counters. */
static bool keeps_counters(const struct mew_case *c, const struct mew_case *from)
{
	return mew_case_has(c, MEW_KIND_TIME) && c->time.status == MEW_OK && !mew_case_has(from, MEW_KIND_TIME);
}

static int merge_lists(struct mew_model *into, struct mew_case *c, const struct mew_case *from)
{
	for (size_t i = 0; i < from->nruns; i++) {
		if (mew_model_add_run(into, c, &from->runs[i]) != 0)
			return -1;
	}
	for (size_t i = 0; i < from->ncounters && !keeps_counters(c, from); i++) {
		if (merge_counter(into, c, &from->counters[i]) != 0)
			return -1;
	}
	for (size_t i = 0; i < from->nphase_data; i++) {
		const struct mew_phase_data *d = &from->phase_data[i];

		if (mew_model_add_phase_data(into, c, d->phase, d->key, d->value) != 0)
			return -1;
	}
	return 0;
}

static int merge_captures(struct mew_case *c, const struct mew_case *from, const uint32_t *stacks, size_t nstacks)
{
	for (size_t i = 0; i < from->nheap_stacks; i++) {
		struct mew_heap_stack s = from->heap_stacks[i];

		s.stack = translate(stacks, nstacks, s.stack);
		if (mew_model_add_heap_stack(c, &s) != 0)
			return -1;
	}
	if (from->window.pid != 0)
		c->window = from->window;
	for (size_t i = 0; i < from->nsamples; i++) {
		struct mew_cpu_sample s = from->samples[i];

		s.stack = translate(stacks, nstacks, s.stack);
		if (mew_model_add_sample(c, &s) != 0)
			return -1;
	}
	return 0;
}

static int merge_case(struct mew_model *into, struct mew_case *from, const struct renumber *r, size_t nstacks)
{
	struct mew_case *c = mew_model_case_under(into, from->key, from->program, from->allocator);

	if (c == NULL || !take_text(into, &c->label, from->label) || !take_text(into, &c->tags, from->tags) ||
	    !take_text(into, &c->output, from->output))
		return -1;
	c->threads = from->threads;
	if (from->bytes_per_iteration > 0)
		c->bytes_per_iteration = from->bytes_per_iteration;
	if (from->items_per_iteration > 0)
		c->items_per_iteration = from->items_per_iteration;
	c->left_threads = c->left_threads || from->left_threads;
	for (int kind = 0; kind < MEW_KINDS; kind++) {
		if (mew_case_has(from, kind) &&
		    merge_row(into, c, (enum mew_kind)kind, mew_case_row(from, (enum mew_kind)kind)) != 0)
			return -1;
	}
	if (merge_lists(into, c, from) != 0)
		return -1;
	return merge_captures(c, from, r->stacks, nstacks);
}

/* --- the whole -------------------------------------------------------------------------------------------------- */

static bool has_word(const char *words, const char *word, size_t length)
{
	for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word)) {
		if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	}
	return false;
}

/* Words of `from` that are not there yet go to the end. */
static int merge_hooks(struct mew_model *into, const char *from)
{
	size_t room = strlen(into->hooks) + strlen(from) + 2;
	char *all = mew_arena_alloc(&into->strings, room), *words = strdup(from), *rest = NULL, *end;

	if (all == NULL || words == NULL) {
		free(words);
		return -1;
	}
	end = stpcpy(all, into->hooks);
	for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
		if (has_word(all, word, strlen(word)))
			continue;
		if (end > all)
			*end++ = ' ';
		end = stpcpy(end, word);
	}
	free(words);
	into->hooks = all;
	return 0;
}

static int merge_environment(struct mew_model *into, const struct mew_model *from)
{
	for (size_t i = 0; i < from->nfacts; i++) {
		const struct mew_fact *f = &from->facts[i];

		if (mew_model_fact(into, f->name) == NULL && mew_model_add_fact(into, f->name, f->value) != 0)
			return -1;
	}
	if (from->grade > into->grade) { /* 0 is not graded, 'D' is the worst */
		into->grade = from->grade;
		into->grade_reason = NULL;
		if (!take_text(into, &into->grade_reason, from->grade_reason))
			return -1;
	}
	return from->hooks[0] != '\0' ? merge_hooks(into, from->hooks) : 0;
}

static int merge_all(struct mew_model *into, const struct mew_model *from, struct renumber *r)
{
	if (merge_modules(into, from, r) != 0 || merge_functions(into, from, r) != 0 ||
	    merge_locations(into, from, r) != 0 || merge_stacks(into, from, r) != 0)
		return -1;
	for (size_t i = 0; i < from->ncases; i++) {
		if (merge_case(into, &from->cases[i], r, from->nstacks) != 0)
			return -1;
	}
	return merge_environment(into, from);
}

int mew_model_merge(struct mew_model *into, const struct mew_model *from)
{
	struct renumber r;
	int failed;

	if (into == from)
		return 0;
	if (into->sealed || renumber_init(&r, from) != 0)
		return -1;
	failed = merge_all(into, from, &r);
	renumber_fini(&r);
	return failed;
}
