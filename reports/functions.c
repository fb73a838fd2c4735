/*
 * functions.c - the table of functions that the stacks of a report speak of.
 * Layer L5. Reads a sealed model; places without a name get one from their module, with the reason.
 */
#include "config.h"

#include "functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64 /* of a made-up name; a longer file name loses its end */

struct entry { /* a function while the table is sorted */
	struct mew_shown_function function;
	uint32_t *place; /* where its final number goes */
};

struct table {
	struct entry *all;
	size_t n;
	uint32_t *like;  /* by location without a name: the first one of the same module, start and reason */
	uint32_t *slots; /* those first ones; open addressing, UINT32_MAX is free */
	size_t nslots;
};

static void add(struct table *t, struct mew_shown_function function, uint32_t *place)
{
	t->all[t->n++] = (struct entry){ function, place };
	*place = 0; /* seen */
}

static const char *why_unnamed(const struct mew_location *l)
{
	return l->why != NULL ? l->why : "the symbols were not looked up";
}

static void name_unknown(char *out, const struct mew_model *m, const struct mew_location *l)
{
	const char *path, *slash;

	if (l->module >= m->nmodules) {
		(void)snprintf(out, NAME_BYTES, "unknown");
		return;
	}
	path = m->modules[l->module].path;
	slash = strrchr(path, '/');
	if (l->start != 0)
		(void)snprintf(out, NAME_BYTES, "%.40s+0x%llx", slash == NULL ? path : slash + 1,
			       (unsigned long long)l->start);
	else
		(void)snprintf(out, NAME_BYTES, "unknown (%.50s)", slash == NULL ? path : slash + 1);
}

static uint32_t *slot_of(const struct table *t, const struct mew_model *m, const struct mew_location *l)
{
	uint64_t h = ((uint64_t)l->module + 1) * 0x9e3779b97f4a7c15u ^ l->start * 0xc2b2ae3d27d4eb4fu;
	size_t s = (size_t)(h ^ h >> 29) & (t->nslots - 1);

	for (; t->slots[s] != UINT32_MAX; s = (s + 1) & (t->nslots - 1)) {
		const struct mew_location *other = &m->locations[t->slots[s]];

		if (other->module == l->module && other->start == l->start &&
		    strcmp(why_unnamed(other), why_unnamed(l)) == 0)
			break;
	}
	return &t->slots[s];
}

/* Places without a name are one function for each module, start and reason, as in the figure of the top function. */
static void add_unnamed(struct table *t, struct mew_shown_functions *f, const struct mew_model *m, uint32_t number)
{
	const struct mew_location *l = &m->locations[number];
	char *name = f->names + (size_t)number * NAME_BYTES;
	uint32_t *slot = slot_of(t, m, l);

	if (*slot != UINT32_MAX) {
		t->like[number] = *slot;
		return;
	}
	*slot = number;
	t->like[number] = number;
	name_unknown(name, m, l);
	add(t,
	    (struct mew_shown_function){ name, "", 0, l->module < m->nmodules ? l->module : MEW_NO_MODULE,
					why_unnamed(l) },
	    &f->of_location[number]);
}

static void add_location(struct table *t, struct mew_shown_functions *f, const struct mew_model *m, uint32_t number)
{
	const struct mew_location *l = &m->locations[number];

	for (uint32_t i = 0; i < l->nlines; i++) {
		uint32_t k = m->lines[l->first_line + i].function;
		const struct mew_function *fn = &m->functions[k];

		if (f->of_function[k] == UINT32_MAX)
			add(t,
			    (struct mew_shown_function){ *fn->name != '\0' ? fn->name : "[unknown]", fn->file,
							fn->line, fn->module, NULL },
			    &f->of_function[k]);
	}
	if (l->nlines == 0 && t->like[number] == UINT32_MAX)
		add_unnamed(t, f, m, number);
}

static void add_stack(struct table *t, struct mew_shown_functions *f, const struct mew_model *m, uint32_t stack)
{
	if (stack >= m->nstacks || m->stacks[stack].depth == 0) {
		if (f->missing == UINT32_MAX)
			add(t,
			    (struct mew_shown_function){ "[no stack]", "", 0, MEW_NO_MODULE,
							"the stack could not be recorded" },
			    &f->missing);
		return;
	}
	for (uint32_t i = 0; i < m->stacks[stack].depth; i++)
		add_location(t, f, m, m->frames[m->stacks[stack].first + i]);
}

static int compare(const struct mew_shown_function *a, const struct mew_shown_function *b)
{
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = strcmp(a->file, b->file);
	if (order == 0)
		order = (a->line > b->line) - (a->line < b->line);
	if (order == 0)
		order = (a->module > b->module) - (a->module < b->module);
	return order;
}

static int by_name(const void *a, const void *b)
{
	return compare(&((const struct entry *)a)->function, &((const struct entry *)b)->function);
}

static int number_them(struct mew_shown_functions *f, struct table *t)
{
	f->all = calloc(t->n + 1, sizeof *f->all);
	if (f->all == NULL)
		return -1;
	qsort(t->all, t->n, sizeof *t->all, by_name);
	for (size_t i = 0; i < t->n; i++) {
		f->all[i] = t->all[i].function;
		*t->all[i].place = (uint32_t)i;
	}
	f->n = t->n;
	return 0;
}

static void add_case(struct table *t, struct mew_shown_functions *f, const struct mew_model *m,
		     const struct mew_case *c)
{
	for (size_t k = 0; k < c->nsamples; k++)
		add_stack(t, f, m, c->samples[k].stack);
	for (size_t k = 0; k < c->nheap_stacks; k++)
		add_stack(t, f, m, c->heap_stacks[k].stack);
}

static uint32_t *numbers(size_t n)
{
	uint32_t *all = malloc((n + 1) * sizeof *all);

	return all == NULL ? NULL : memset(all, 0xff, (n + 1) * sizeof *all);
}

int mew_shown_functions_init(struct mew_shown_functions *f, const struct mew_model *m, const struct mew_case *only)
{
	struct table t = { .all = calloc(m->nfunctions + m->nlocations + 1, sizeof *t.all),
			   .like = numbers(m->nlocations),
			   .nslots = 16 };
	int failed = -1;

	while (t.nslots < m->nlocations * 2)
		t.nslots *= 2;
	t.slots = numbers(t.nslots);
	*f = (struct mew_shown_functions){ .missing = UINT32_MAX,
					  .of_function = numbers(m->nfunctions),
					  .of_location = numbers(m->nlocations),
					  .names = malloc(m->nlocations * NAME_BYTES + 1) };
	if (t.all != NULL && t.slots != NULL && t.like != NULL && f->of_function != NULL && f->of_location != NULL &&
	    f->names != NULL) {
		for (size_t i = 0; i < m->ncases; i++)
			if (only == NULL || only == &m->cases[i])
				add_case(&t, f, m, &m->cases[i]);
		failed = number_them(f, &t);
		for (size_t i = 0; i < m->nlocations; i++)
			if (t.like[i] != UINT32_MAX)
				f->of_location[i] = f->of_location[t.like[i]];
	}
	free(t.all);
	free(t.slots);
	free(t.like);
	return failed;
}

void mew_shown_functions_fini(struct mew_shown_functions *f)
{
	free(f->all);
	free(f->of_function);
	free(f->of_location);
	free(f->names);
	*f = (struct mew_shown_functions){ 0 };
}
