/*
 * model.c - cases, their rows with figures and absences, and the lists beside them.
 * Layer L2. One thread at a time until sealed; never inside a window.
 */
#include "config.h"

#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_private.h"

struct mew_model *mew_model_new(void)
{
	struct mew_model *m = calloc(1, sizeof *m);

	if (m == NULL)
		return NULL;
	m->map = calloc(1, sizeof *m->map);
	if (m->map == NULL) {
		free(m);
		return NULL;
	}
	mew_arena_init(&m->strings, 0);
	m->hooks = "";
	return m;
}

void mew_model_free(struct mew_model *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < m->ncases; i++) {
		free(m->cases[i].runs);
		free(m->cases[i].counters);
		free(m->cases[i].phase_data);
		free(m->cases[i].heap_stacks);
		free(m->cases[i].samples);
	}
	free(m->cases);
	free(m->facts);
	free(m->modules);
	free(m->locations);
	free(m->lines);
	free(m->functions);
	free(m->stacks);
	free(m->frames);
	mew_map_free(m->map);
	mew_arena_fini(&m->strings);
	free(m);
}

void mew_model_seal(struct mew_model *m)
{
	mew_map_free(m->map); /* nothing is interned any more */
	m->map = NULL;
	m->sealed = true;
}

static size_t capacity(size_t n)
{
	size_t c = 8;

	if (n == 0)
		return 0;
	while (c < n)
		c *= 2;
	return c;
}

int mew_model_room(void *array, size_t n, size_t more, size_t item_bytes)
{
	size_t need, bytes;
	void *items, *moved;

	if (!mew_add_size(n, more, &need) || need > SIZE_MAX / 2)
		return -1;
	if (need <= capacity(n))
		return 0;
	if (!mew_mul_size(capacity(need), item_bytes, &bytes))
		return -1;
	memcpy(&items, array, sizeof items); /* by bytes: the pointer there is not a void * to the aliasing rules */
	moved = realloc(items, bytes);
	if (moved == NULL)
		return -1;
	memcpy(array, &moved, sizeof moved);
	/* cppcheck-suppress memleak ; the caller's pointer has it now */
	return 0;
}

static void *copy(struct mew_model *m, const void *data, size_t bytes)
{
	void *p = m->sealed ? NULL : mew_arena_alloc(&m->strings, bytes);

	return p == NULL ? NULL : memcpy(p, data, bytes);
}

const char *mew_model_string(struct mew_model *m, const char *text)
{
	return text == NULL ? NULL : copy(m, text, strlen(text) + 1);
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

struct mew_case *mew_model_find(const struct mew_model *m, const char *key)
{
	for (size_t i = 0; i < m->ncases; i++) {
		if (strcmp(m->cases[i].key, key) == 0)
			return &m->cases[i];
	}
	return NULL;
}

/* --- rows and figures ------------------------------------------------------------------------------------------- */

static void *row_of(struct mew_case *c, enum mew_kind kind, size_t *bytes)
{
	switch (kind) {
	case MEW_KIND_TIME:
		*bytes = sizeof c->time;
		return &c->time;
	case MEW_KIND_MEMORY:
		*bytes = sizeof c->memory;
		return &c->memory;
	case MEW_KIND_CPU:
		*bytes = sizeof c->cpu;
		return &c->cpu;
	case MEW_KINDS:
		break;
	}
	return NULL;
}

struct mew_row_head *mew_case_row(struct mew_case *c, enum mew_kind kind)
{
	size_t bytes;

	return row_of(c, kind, &bytes);
}

struct mew_row_head *mew_model_row(struct mew_model *m, struct mew_case *c, enum mew_kind kind)
{
	struct mew_row_head *head = mew_case_row(c, kind);

	if (head == NULL || m->sealed)
		return NULL;
	c->kinds |= 1u << kind;
	head->key = c->key;
	head->label = c->label;
	if (head->status != MEW_OK)
		head->reason = NULL;
	head->status = MEW_OK;
	return head;
}

void mew_model_clear(struct mew_case *c, enum mew_kind kind)
{
	size_t bytes;
	struct mew_row_head *head = row_of(c, kind, &bytes), kept;

	if (head == NULL)
		return;
	if (kind == MEW_KIND_MEMORY)
		c->nheap_stacks = 0;
	if (kind == MEW_KIND_CPU)
		c->nsamples = 0;
	kept = *head;
	memset(head, 0, bytes);
	head->key = kept.key;
	head->label = kept.label;
	head->profiler = kept.profiler;
}

void mew_model_fail(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int status, const char *reason)
{
	struct mew_row_head *head = mew_model_row(m, c, kind);

	if (head == NULL)
		return;
	mew_model_clear(c, kind);
	head->status = status;
	head->reason = mew_model_string(m, reason);
	if (head->reason == NULL)
		head->reason = "the case failed and no reason was kept";
}

void mew_model_note(struct mew_model *m, struct mew_case *c, enum mew_kind kind, const char *note)
{
	struct mew_row_head *row = mew_case_row(c, kind);
	char text[480];

	if (row == NULL)
		return;
	if (row->reason == NULL)
		(void)snprintf(text, sizeof text, "%s", note);
	else
		(void)snprintf(text, sizeof text, "%s; %s", row->reason, note);
	row->reason = mew_model_string(m, text);
}

static const struct mew_figure *figure_of(enum mew_kind kind, int bit)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);

	return bit >= 0 && (size_t)bit < n ? &figures[bit] : NULL;
}

/* Absences live in the model's own memory; `absent_` is const for the users of a row only. */
static struct mew_absent *absences(const struct mew_row_head *head)
{
	return (struct mew_absent *)(uintptr_t)head->absent_;
}

static void forget_absence(struct mew_row_head *head, int bit)
{
	struct mew_absent *before = NULL;

	for (struct mew_absent *a = absences(head); a != NULL; a = (struct mew_absent *)(uintptr_t)a->next) {
		if (a->bit != bit)
			before = a;
		else if (before != NULL)
			before->next = a->next;
		else
			head->absent_ = a->next;
	}
}

/* The member's address with its bit set and its absence gone; NULL when there is no such figure. */
static void *present(struct mew_case *c, enum mew_kind kind, int bit, enum mew_value_type *type)
{
	const struct mew_figure *f = figure_of(kind, bit);
	struct mew_row_head *head = mew_case_row(c, kind);

	if (f == NULL || head == NULL)
		return NULL;
	forget_absence(head, bit);
	head->present |= (uint64_t)1 << bit;
	*type = f->type;
	return (char *)head + f->offset;
}

static void not_present(struct mew_case *c, enum mew_kind kind, int bit)
{
	struct mew_row_head *head = mew_case_row(c, kind);

	if (head == NULL || figure_of(kind, bit) == NULL)
		return;
	forget_absence(head, bit);
	head->present &= ~((uint64_t)1 << bit);
}

void mew_model_u64(struct mew_case *c, enum mew_kind kind, int bit, uint64_t value)
{
	enum mew_value_type type;
	void *member = present(c, kind, bit, &type);

	if (member != NULL && type == MEW_VALUE_U64)
		*(uint64_t *)member = value;
	else if (member != NULL && type == MEW_VALUE_F64)
		*(double *)member = (double)value;
	else
		not_present(c, kind, bit);
}

void mew_model_f64(struct mew_case *c, enum mew_kind kind, int bit, double value)
{
	enum mew_value_type type;
	void *member = isfinite(value) ? present(c, kind, bit, &type) : NULL;

	if (member != NULL && type == MEW_VALUE_F64)
		*(double *)member = value;
	else if (member != NULL && type == MEW_VALUE_U64 && value >= 0 && value < 0x1p64)
		*(uint64_t *)member = (uint64_t)value;
	else
		not_present(c, kind, bit);
}

void mew_model_text(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int bit, const char *value)
{
	enum mew_value_type type;
	const char *text = mew_model_string(m, value);
	void *member = text != NULL ? present(c, kind, bit, &type) : NULL;

	if (member != NULL && type == MEW_VALUE_TEXT)
		*(const char **)member = text;
	else
		not_present(c, kind, bit);
}

/* Replace the borrowed texts in n copied rows. Returns false when one is NULL or finds no memory. */
static bool own_texts(struct mew_model *m, const struct mew_list_type *list, char *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < list->ncolumns; k++) {
			const char **text =
				(const char **)(void *)(rows + i * list->row_bytes + list->columns[k].offset);

			if (list->columns[k].type != MEW_VALUE_TEXT)
				continue;
			*text = mew_model_string(m, *text);
			if (*text == NULL)
				return false;
		}
	}
	return true;
}

void mew_model_list(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int bit, const void *rows, size_t n)
{
	const struct mew_figure *f = figure_of(kind, bit);
	struct mew_row_head *head = mew_case_row(c, kind);
	enum mew_value_type type;
	void *own = NULL;
	size_t bytes;

	not_present(c, kind, bit);
	if (f == NULL || head == NULL || f->type != MEW_VALUE_LIST || m->sealed ||
	    !mew_mul_size(n, f->list->row_bytes, &bytes))
		return;
	if (n > 0)
		own = copy(m, rows, bytes);
	if (n > 0 && (own == NULL || !own_texts(m, f->list, own, n)))
		return;
	*(const void **)present(c, kind, bit, &type) = own;
	*(size_t *)(void *)((char *)head + f->list->count_offset) = n;
}

const char *mew_row_list(const struct mew_row_head *row, const struct mew_figure *figure, size_t *n)
{
	const char *base = (const char *)row;

	*n = 0;
	if (figure->type != MEW_VALUE_LIST || !mew_row_has(row, figure->bit))
		return NULL;
	*n = *(const size_t *)(const void *)(base + figure->list->count_offset);
	return *(const char *const *)(const void *)(base + figure->offset);
}

void mew_model_absent(struct mew_model *m, struct mew_case *c, enum mew_kind kind, int bit, const char *why)
{
	struct mew_row_head *head = mew_case_row(c, kind);
	struct mew_absent absent = { .bit = bit }, *kept;

	not_present(c, kind, bit);
	absent.why = mew_model_string(m, why);
	if (head == NULL || absent.why == NULL || figure_of(kind, bit) == NULL)
		return;
	absent.next = absences(head);
	kept = copy(m, &absent, sizeof absent);
	if (kept != NULL)
		head->absent_ = kept;
}

const char *mew_row_why(const struct mew_row_head *row, int bit)
{
	if (row->status != MEW_OK)
		return row->reason != NULL ? row->reason : "the case failed";
	if (bit >= 0 && bit < 64 && mew_row_has(row, bit))
		return NULL;
	for (const struct mew_absent *a = row->absent_; a != NULL; a = a->next) {
		if (a->bit == bit)
			return a->why;
	}
	return "it was not measured";
}

/* --- lists ------------------------------------------------------------------------------------------------------ */

int mew_model_add_run(struct mew_model *m, struct mew_case *c, const struct mew_run *run)
{
	struct mew_run r = *run;
	size_t bytes;

	if (m->sealed || !mew_mul_size(r.nsamples, sizeof *r.real_ns, &bytes))
		return -1;
	if (mew_model_room(&c->runs, c->nruns, 1, sizeof r) != 0)
		return -1;
	if (run->real_ns != NULL)
		r.real_ns = copy(m, run->real_ns, bytes);
	if (run->cpu_ns != NULL)
		r.cpu_ns = copy(m, run->cpu_ns, bytes);
	if ((run->real_ns != NULL && r.real_ns == NULL) || (run->cpu_ns != NULL && r.cpu_ns == NULL))
		return -1;
	c->runs[c->nruns++] = r;
	return 0;
}

int mew_model_add_counter(struct mew_model *m, struct mew_case *c, const char *name, double value)
{
	struct mew_counter counter = { .name = mew_model_string(m, name), .value = value };

	if (counter.name == NULL || mew_model_room(&c->counters, c->ncounters, 1, sizeof counter) != 0)
		return -1;
	c->counters[c->ncounters++] = counter;
	return 0;
}

int mew_model_add_phase_data(struct mew_model *m, struct mew_case *c, int phase, const char *key, const char *value)
{
	struct mew_phase_data d = { .phase = phase };

	d.key = mew_model_string(m, key);
	d.value = mew_model_string(m, value);
	if (d.key == NULL || d.value == NULL || mew_model_room(&c->phase_data, c->nphase_data, 1, sizeof d) != 0)
		return -1;
	c->phase_data[c->nphase_data++] = d;
	return 0;
}

int mew_model_add_heap_stack(struct mew_case *c, const struct mew_heap_stack *s)
{
	if (mew_model_room(&c->heap_stacks, c->nheap_stacks, 1, sizeof *s) != 0)
		return -1;
	c->heap_stacks[c->nheap_stacks++] = *s;
	return 0;
}

int mew_model_add_sample(struct mew_case *c, const struct mew_cpu_sample *s)
{
	if (mew_model_room(&c->samples, c->nsamples, 1, sizeof *s) != 0)
		return -1;
	c->samples[c->nsamples++] = *s;
	return 0;
}

/* --- facts ------------------------------------------------------------------------------------------------------ */

static struct mew_fact *fact_of(const struct mew_model *m, const char *name)
{
	for (size_t i = 0; i < m->nfacts; i++) {
		if (strcmp(m->facts[i].name, name) == 0)
			return &m->facts[i];
	}
	return NULL;
}

int mew_model_add_fact(struct mew_model *m, const char *name, const char *value)
{
	struct mew_fact *known = fact_of(m, name), fact = { .value = mew_model_string(m, value) };

	if (fact.value == NULL)
		return -1;
	if (known != NULL) {
		known->value = fact.value;
		return 0;
	}
	fact.name = mew_model_string(m, name);
	if (fact.name == NULL || mew_model_room(&m->facts, m->nfacts, 1, sizeof fact) != 0)
		return -1;
	m->facts[m->nfacts++] = fact;
	return 0;
}

void mew_model_take_facts(struct mew_model *m, const struct mew_model *from)
{
	for (size_t i = 0; from != NULL && i < from->nfacts; i++)
		(void)mew_model_add_fact(m, from->facts[i].name, from->facts[i].value);
}

const char *mew_model_fact(const struct mew_model *m, const char *name)
{
	const struct mew_fact *fact = fact_of(m, name);

	return fact != NULL ? fact->value : NULL;
}
