/*
 * span_text.c - see span_text.h.
 * Layer L4. Names come through a model of these few stacks alone, by the same door as those of a profile.
 */
#include "config.h"

#include "span_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entry_call.h"
#include "error.h"
#include "memory_span.h"
#include "model.h"
#include "modules.h"
#include "sink.h"
#include "symbolise.h"

#define NAME_BYTES 512

static void put_sentence(FILE *to, const struct mew_span_failure *f, const char *why)
{
	unsigned long long budget = f->budget;

	fprintf(to, "%s:%d: ", f->file, f->line);
	if (f->status != MEW_OK) {
		fprintf(to, "the budget of %llu allocation%s cannot be checked: %s\n", budget, budget == 1 ? "" : "s",
			why);
		return;
	}
	fprintf(to, "%llu allocation%s where ", (unsigned long long)f->count, f->count == 1 ? "" : "s");
	if (budget == 0)
		fprintf(to, "none is allowed\n");
	else
		fprintf(to, "at most %llu %s allowed\n", budget, budget == 1 ? "is" : "are");
}

/* One place in the code: a line for each function that was inlined there, innermost first. False when it is main(). */
static bool put_location(FILE *to, const struct mew_model *m, uint32_t location)
{
	const struct mew_location *l = &m->locations[location];
	char name[NAME_BYTES];
	bool is_main = false;

	if (l->nlines == 0)
		fprintf(to, "    %s\n", mew_location_name(m, location, name, sizeof name));
	for (uint32_t i = l->first_line; i < l->first_line + l->nlines; i++) {
		const struct mew_function *function = &m->functions[m->lines[i].function];

		if (function->file[0] == '\0')
			fprintf(to, "    %s (%s)\n", function->name, mew_module_name(m, l->module));
		else if (m->lines[i].line == 0)
			fprintf(to, "    %s (%s)\n", function->name, mew_base_name(function->file));
		else
			fprintf(to, "    %s (%s:%u)\n", function->name, mew_base_name(function->file),
				m->lines[i].line);
		is_main = strcmp(function->name, "main") == 0;
	}
	return !is_main;
}

static void put_stack(FILE *to, const struct mew_model *m, uint32_t stack, const struct mew_span_stack *s)
{
	const struct mew_stack *frames = &m->stacks[stack];

	fprintf(to, "  allocation %llu, %zu byte%s:\n", (unsigned long long)s->number, s->size,
		s->size == 1 ? "" : "s");
	for (uint32_t i = 0; i < frames->depth; i++)
		if (!put_location(to, m, m->frames[frames->first + i]))
			break; /* what started the program says nothing about the allocation */
}

/* Frames of the program's own: in a benchmark they end at its body. */
static size_t depth_in_body(const struct mew_span_stack *s)
{
	uintptr_t lo, hi;

	mew_entry_range(&lo, &hi);
	for (size_t i = 1; i < s->depth; i++)
		if (s->pcs[i] >= lo && s->pcs[i] < hi)
			return i;
	return s->depth;
}

static void put_stacks(FILE *to, struct mew_model *m, const struct mew_span_stack *stacks, size_t n)
{
	const struct mew_modules *modules;
	struct mew_sink sink = { .model = m };
	uint32_t ids[MEW_SPAN_STACKS];
	struct mew_error err = { .status = MEW_OK };

	/* a library that was opened in the block; without memory the old list must do */
	(void)mew_modules_renew();
	modules = mew_modules_current();
	for (size_t i = 0; i < n; i++)
		ids[i] = mew_sink_stack(&sink, modules, stacks[i].pcs, depth_in_body(&stacks[i]));
	(void)mew_symbolise(m, NULL, &err);
	for (size_t i = 0; i < n; i++)
		if (ids[i] != MEW_NO_STACK)
			put_stack(to, m, ids[i], &stacks[i]);
	if (err.status != MEW_OK)
		fprintf(to, "  (%s)\n", err.text);
}

char *mew_span_text(const struct mew_span_failure *f, const char *why, const struct mew_span_stack *stacks, size_t n)
{
	struct mew_model *m = NULL;
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);
	bool failed;

	if (to == NULL)
		return NULL;
	put_sentence(to, f, why);
	if (n > 0)
		m = mew_model_new();
	if (m != NULL)
		put_stacks(to, m, stacks, n);
	if (n > 0 && f->count - f->budget > n)
		fprintf(to, "  and %llu more\n", (unsigned long long)(f->count - f->budget - n));
	mew_model_free(m);
	failed = ferror(to) != 0;
	if (fclose(to) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}
