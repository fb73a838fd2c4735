/*
 * analyse_heap.c - which functions allocate: the stacks of a memory row added up by the function that asked.
 * Layer L3. One thread, after symbolising.
 */
#include "config.h"

#include "analyse.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "blame.h"

#define KIND MEW_KIND_MEMORY

/* Of struct mew_blame. The bytes come first: where one name has several definitions, most bytes choose the line. */
enum sum { CUMULATIVE, PEAK, ALLOCATIONS, NET };

/* --- whose allocation it is ------------------------------------------------------------------------------------- */

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool is_operator(const char *at)
{
	static const char word[] = "operator";

	return begins_with(at, word) && !isalnum((unsigned char)at[sizeof word - 1]) && at[sizeof word - 1] != '_';
}

/*
 * Where the qualified name begins in a demangled one: templates have their result before it ("void std::f<int>(int)"),
 * which may be a type of the standard library when the function is not.
 */
static const char *name_in(const char *demangled)
{
	static const char unnamed[] = "(anonymous namespace)";
	const char *name = demangled;
	int depth = 0;

	for (const char *at = demangled; *at != '\0'; at++) {
		if (depth == 0 && (at == name || at[-1] == ':') && is_operator(at))
			break; /* what follows may hold brackets and blanks that mean nothing */
		if (begins_with(at, unnamed)) {
			at += sizeof unnamed - 2;
			continue;
		}
		if (depth == 0 && *at == '(')
			break;
		if (depth == 0 && *at == ' ')
			name = at + 1;
		depth += (strchr("<({[", *at) != NULL) - (strchr(">)}]", *at) != NULL);
	}
	return name;
}

/* The C++ library between the program and malloc: it allocates for its caller. */
static bool is_glue(const char *function)
{
	static const char *const starts[] = { "operator new", "std::", "__gnu_cxx::" };
	const char *name = name_in(function);

	for (size_t i = 0; i < MEW_COUNTOF(starts); i++)
		if (begins_with(name, starts[i]))
			return true;
	return false;
}

/* The innermost function of a stack that is no glue; the outermost when all are. */
static struct mew_blame owner_of(const struct mew_model *m, uint32_t stack)
{
	const struct mew_stack *s = stack < m->nstacks ? &m->stacks[stack] : NULL;
	struct mew_blame b = mew_blame_at(m, m->nlocations, 0);

	for (uint32_t i = 0; s != NULL && i < s->depth; i++) {
		uint32_t location = m->frames[s->first + i], line = 0;

		do {
			b = mew_blame_at(m, location, line);
			if (!is_glue(b.name))
				return b;
		} while (++line < m->locations[location].nlines);
	}
	return b;
}

/* --- the list --------------------------------------------------------------------------------------------------- */

/* Returned: the functions of a row in no order, to be freed; NULL without memory. */
static struct mew_blame *collect(const struct mew_model *m, const struct mew_case *c, size_t *n)
{
	struct mew_blame *all = malloc((c->nheap_stacks + 1) * sizeof *all);

	for (size_t i = 0; all != NULL && i < c->nheap_stacks; i++) {
		const struct mew_heap_stack *s = &c->heap_stacks[i];

		all[i] = owner_of(m, s->stack);
		all[i].sums[CUMULATIVE] = s->cumulative_bytes;
		all[i].sums[PEAK] = s->peak_bytes;
		all[i].sums[ALLOCATIONS] = s->allocations;
		all[i].sums[NET] = s->net_bytes;
	}
	*n = all != NULL ? mew_blame_merge(all, c->nheap_stacks) : 0;
	return all;
}

static int by_size(const void *a, const void *b)
{
	static const enum sum order[] = { PEAK, CUMULATIVE, ALLOCATIONS };
	const struct mew_blame *x = a, *y = b;

	for (size_t i = 0; i < MEW_COUNTOF(order); i++)
		if (x->sums[order[i]] != y->sums[order[i]])
			return x->sums[order[i]] > y->sums[order[i]] ? -1 : 1;
	return mew_blame_order(a, b);
}

static bool set_list(struct mew_model *m, struct mew_case *c, const struct mew_blame *all, size_t n)
{
	struct mew_memory_function rows[MEW_MOST_BY_FUNCTION] = { { .function = NULL } };
	char *labels[MEW_MOST_BY_FUNCTION] = { NULL };
	size_t made = 0;

	for (; made < n; made++) {
		labels[made] = mew_blame_label(m, &all[made], INT_MAX);
		if (labels[made] == NULL)
			break;
		rows[made] = (struct mew_memory_function){
			.function = labels[made],
			.peak_bytes = all[made].sums[PEAK],
			.cumulative_bytes = all[made].sums[CUMULATIVE],
			.allocations = all[made].sums[ALLOCATIONS],
			.net_bytes = all[made].sums[NET],
		};
	}
	if (made == n)
		mew_model_list(m, c, KIND, MEW_FIG_BY_FUNCTION, rows, n);
	for (size_t i = 0; i < made; i++)
		free(labels[i]);
	return made == n && mew_row_has(mew_case_row(c, KIND), MEW_FIG_BY_FUNCTION);
}

static bool analyse_case(struct mew_model *m, struct mew_case *c)
{
	size_t n;
	struct mew_blame *all = collect(m, c, &n);
	bool is_done;

	if (all == NULL)
		return false;
	qsort(all, n, sizeof *all, by_size);
	is_done = set_list(m, c, all, n < MEW_MOST_BY_FUNCTION ? n : MEW_MOST_BY_FUNCTION);
	free(all);
	return is_done;
}

/* No stacks: none were asked for, or nothing was allocated. */
static bool was_captured(const struct mew_case *c)
{
	const struct mew_row_head *row = (const struct mew_row_head *)(const void *)&c->memory;

	if (c->nheap_stacks > 0 || (mew_row_has(row, MEW_FIG_MODE) && strcmp(c->memory.mode, "capture") == 0))
		return true;
	return mew_row_has(row, MEW_FIG_TOTAL_ALLOCATIONS) && c->memory.total_allocations == 0;
}

int mew_analyse_heap(struct mew_model *m, struct mew_error *err)
{
	for (size_t i = 0; i < m->ncases; i++) {
		struct mew_case *c = &m->cases[i];

		if ((c->kinds & 1u << KIND) == 0 || c->memory.status != MEW_OK)
			continue;
		if (!was_captured(c))
			mew_model_absent(m, c, KIND, MEW_FIG_BY_FUNCTION,
					 "counted without stacks; ask for them with --html or .flamegraph");
		else if (!analyse_case(m, c))
			return mew_error_set(err, MEW_E_NOMEM, "no memory to analyse the allocations of %s", c->key);
	}
	return MEW_OK;
}
