/*
 * firefox_tables.c - see firefox_tables.h.
 * Layer L5. Any thread.
 *
 * Stacks are sorted by their frames, outermost first: then what a stack shares with the one before it is what the tree
 * holds already, and parents come before their children, as readers want it. A frame is one function at one place;
 * functions that were inlined there are frames of their own with the same address, depth 0 being the outermost.
 */
#include "config.h"

#include "firefox_tables.h"

#include <stdlib.h>
#include <string.h>

#include "stacks.h"
#include "symbolise.h"

#define EXACT_IN_DOUBLE ((uint64_t)1 << 53) /* readers hold numbers as doubles */
#define RESOURCE_LIBRARY 1u

/* --- the tree of stacks ----------------------------------------------------------------------------------------- */

struct walked { /* a stack while the stacks are sorted */
	const struct mew_model *m;
	uint32_t stack;
};

static int by_frames(const void *a, const void *b)
{
	const struct walked *x = a, *y = b;
	struct mew_stack_walk left = mew_stack_begin(x->m, x->stack), right = mew_stack_begin(y->m, y->stack);
	struct mew_stack_frame f, g;

	for (;;) {
		bool more = mew_stack_next(&left, &f), others = mew_stack_next(&right, &g);

		if (!more || !others)
			return (int)more - (int)others;
		if (f.location != g.location)
			return f.location < g.location ? -1 : 1;
	}
}

/* How many frames a stack has, inlined ones included. */
static size_t frames_of(const struct mew_model *m, uint32_t stack)
{
	struct mew_stack_walk walk = mew_stack_begin(m, stack);
	struct mew_stack_frame frame;
	size_t n = 0;

	while (mew_stack_next(&walk, &frame))
		n++;
	return n;
}

/* The used stacks in order, without the missing one; *n and the sizes that the tables can reach are returned. */
static struct walked *sort_stacks(const struct mew_model *m, const bool *used, size_t *n, size_t *most, size_t *deepest)
{
	struct walked *all = calloc(m->nstacks + 1, sizeof *all);

	*n = 0;
	*most = 1;
	*deepest = 0;
	for (uint32_t i = 0; all != NULL && i < m->nstacks; i++) {
		size_t depth;

		if (!used[i])
			continue;
		depth = frames_of(m, i);
		*most += depth;
		*deepest = depth > *deepest ? depth : *deepest;
		all[(*n)++] = (struct walked){ m, i };
	}
	if (all != NULL)
		qsort(all, *n, sizeof *all, by_frames);
	return all;
}

struct growing {
	struct mew_firefox_tables *t;
	uint32_t *first;            /* by location: its outermost frame, the inlined ones follow; UINT32_MAX: none yet */
	struct mew_firefox_node *path; /* of the stack before: `prefix` holds the node itself here */
	size_t depth;
};

static uint32_t frame_number(struct growing *g, const struct mew_stack_frame *frame)
{
	struct mew_firefox_tables *t = g->t;
	uint32_t *first = &g->first[frame->location];

	if (frame->inlined == 0 && *first == UINT32_MAX)
		*first = (uint32_t)t->nframes;
	if (*first + frame->inlined == t->nframes) {
		uint32_t function = mew_stack_function(t->shown, frame);

		t->frames[t->nframes++] = (struct mew_firefox_frame){
			.location = frame->location,
			.function = function,
			.outer = frame->inlined == 0 ? function : t->frames[*first].function,
			.line = frame->line,
			.inlined = frame->inlined,
		};
	}
	return *first + frame->inlined;
}

static void add_stack(struct growing *g, uint32_t stack)
{
	struct mew_firefox_tables *t = g->t;
	struct mew_stack_walk walk = mew_stack_begin(t->m, stack);
	struct mew_stack_frame frame;
	uint32_t node = MEW_FIREFOX_NO_NODE;
	size_t depth = 0;

	for (; mew_stack_next(&walk, &frame); depth++) {
		uint32_t number = frame_number(g, &frame);

		if (depth >= g->depth || g->path[depth].frame != number) {
			t->nodes[t->nnodes] = (struct mew_firefox_node){ node, number };
			g->path[depth] = (struct mew_firefox_node){ (uint32_t)t->nnodes++, number };
			g->depth = depth + 1;
		}
		node = g->path[depth].prefix;
	}
	t->node_of[stack] = node;
}

static void add_missing(struct mew_firefox_tables *t)
{
	t->frames[t->nframes] = (struct mew_firefox_frame){
		.location = (uint32_t)t->m->nlocations, .function = t->shown->missing, .outer = t->shown->missing
	};
	t->nodes[t->nnodes] = (struct mew_firefox_node){ MEW_FIREFOX_NO_NODE, (uint32_t)t->nframes++ };
	t->node_of[t->m->nstacks] = (uint32_t)t->nnodes++;
}

static uint32_t *all_unset(size_t n)
{
	uint32_t *all = malloc((n + 1) * sizeof *all);

	return all == NULL ? NULL : memset(all, 0xff, (n + 1) * sizeof *all);
}

int mew_firefox_tables_init(struct mew_firefox_tables *t, const bool *used)
{
	size_t n, most, deepest;
	struct walked *stacks = sort_stacks(t->m, used, &n, &most, &deepest);
	struct growing g = { .t = t, .first = all_unset(t->m->nlocations) };
	int failed = -1;

	g.path = calloc(deepest + 1, sizeof *g.path);
	t->nnodes = t->nframes = 0;
	t->node_of = all_unset(t->m->nstacks);
	t->nodes = most < UINT32_MAX ? calloc(most, sizeof *t->nodes) : NULL;
	t->frames = most < UINT32_MAX ? calloc(most, sizeof *t->frames) : NULL;
	if (stacks != NULL && g.first != NULL && g.path != NULL && t->node_of != NULL && t->nodes != NULL &&
	    t->frames != NULL) {
		for (size_t i = 0; i < n; i++)
			add_stack(&g, stacks[i].stack);
		if (used[t->m->nstacks])
			add_missing(t);
		failed = 0;
	}
	free(stacks);
	free(g.first);
	free(g.path);
	return failed;
}

void mew_firefox_tables_fini(struct mew_firefox_tables *t)
{
	free(t->node_of);
	free(t->nodes);
	free(t->frames);
}

/* --- numbers within the thread ---------------------------------------------------------------------------------- */

struct local { /* what the frames use, from 0 in the order of first use */
	uint32_t *of, *used;
	uint32_t n;
};

struct locals {
	struct local functions, symbols, modules; /* functions and symbols by place in the table of functions */
	uint64_t *lowest; /* by symbol: the least address seen in it */
};

static bool make_local(struct local *l, size_t n)
{
	l->of = all_unset(n);
	l->used = all_unset(n);
	return l->of != NULL && l->used != NULL;
}

static uint32_t number_of(struct local *l, uint32_t global)
{
	if (l->of[global] == UINT32_MAX) {
		l->used[l->n] = global;
		l->of[global] = l->n++;
	}
	return l->of[global];
}

static uint32_t module_of(const struct mew_firefox_tables *t, uint32_t function)
{
	uint32_t module = t->shown->all[function].module;

	return module < t->m->nmodules ? module : MEW_NO_MODULE;
}

static bool has_address(const struct mew_firefox_tables *t, const struct mew_firefox_frame *f)
{
	return f->location < t->m->nlocations && t->m->locations[f->location].module < t->m->nmodules &&
	       t->m->locations[f->location].offset < EXACT_IN_DOUBLE && module_of(t, f->outer) != MEW_NO_MODULE;
}

/* The model keeps no start of a function that has a name: the least address seen in it stands for that. */
static void note_symbol(const struct mew_firefox_tables *t, struct locals *l, const struct mew_firefox_frame *f)
{
	const struct mew_location *location;
	uint64_t start;
	uint32_t symbol;

	if (!has_address(t, f))
		return;
	location = &t->m->locations[f->location];
	start = location->start != 0 && location->start < location->offset ? location->start : location->offset;
	symbol = number_of(&l->symbols, f->outer);
	if (start < l->lowest[symbol])
		l->lowest[symbol] = start;
}

static bool find_locals(struct locals *l, const struct mew_firefox_tables *t)
{
	l->lowest = malloc((t->shown->n + 1) * sizeof *l->lowest);
	if (l->lowest == NULL || !make_local(&l->functions, t->shown->n) || !make_local(&l->symbols, t->shown->n) ||
	    !make_local(&l->modules, t->m->nmodules))
		return false;
	memset(l->lowest, 0xff, (t->shown->n + 1) * sizeof *l->lowest);
	for (size_t i = 0; i < t->nframes; i++) {
		(void)number_of(&l->functions, t->frames[i].function);
		note_symbol(t, l, &t->frames[i]);
	}
	for (uint32_t i = 0; i < l->functions.n; i++)
		if (module_of(t, l->functions.used[i]) != MEW_NO_MODULE)
			(void)number_of(&l->modules, module_of(t, l->functions.used[i]));
	return true;
}

static void free_locals(struct locals *l)
{
	struct local *const all[] = { &l->functions, &l->symbols, &l->modules };

	for (size_t i = 0; i < MEW_COUNTOF(all); i++) {
		free(all[i]->of);
		free(all[i]->used);
	}
	free(l->lowest);
}

/* --- columns ---------------------------------------------------------------------------------------------------- */

void mew_firefox_column(struct mew_json *j, const char *key)
{
	mew_json_key(j, key);
	mew_json_array(j);
}

/* A column that has the same text, a JSON number or null, in every row. */
static void put_same(struct mew_json *j, const char *key, size_t n, const int *value)
{
	mew_firefox_column(j, key);
	for (size_t i = 0; i < n; i++)
		if (value == NULL)
			mew_json_null(j);
		else
			mew_json_i64(j, *value);
	mew_json_array_end(j);
}

static void put_number_or_null(struct mew_json *j, uint64_t value, uint64_t none)
{
	if (value == none)
		mew_json_null(j);
	else
		mew_json_u64(j, value);
}

static void begin_table(struct mew_json *j, const char *name, size_t n)
{
	mew_json_key(j, name);
	mew_json_object(j);
	mew_json_key(j, "length");
	mew_json_u64(j, n);
}

static void put_stack_table(struct mew_json *j, const struct mew_firefox_tables *t)
{
	begin_table(j, "stackTable", t->nnodes);
	mew_firefox_column(j, "prefix");
	for (size_t i = 0; i < t->nnodes; i++)
		put_number_or_null(j, t->nodes[i].prefix, MEW_FIREFOX_NO_NODE);
	mew_json_array_end(j);
	mew_firefox_column(j, "frame");
	for (size_t i = 0; i < t->nnodes; i++)
		mew_json_u64(j, t->nodes[i].frame);
	mew_json_array_end(j);
	mew_json_object_end(j);
}

static enum mew_firefox_category category_of(const struct mew_firefox_tables *t, const struct mew_firefox_frame *f)
{
	if (f->location >= t->m->nlocations)
		return MEW_FIREFOX_OTHER;
	if (t->shown->all[f->function].why != NULL)
		return MEW_FIREFOX_UNNAMED;
	return module_of(t, f->function) == t->program ? MEW_FIREFOX_PROGRAM : MEW_FIREFOX_LIBRARY;
}

static void put_address(struct mew_json *j, const struct mew_firefox_tables *t, const struct mew_firefox_frame *f)
{
	if (has_address(t, f))
		mew_json_u64(j, t->m->locations[f->location].offset);
	else
		mew_json_i64(j, -1);
}

static void put_frame_table(struct mew_json *j, const struct mew_firefox_tables *t, const struct locals *l)
{
	enum { ADDRESS, DEPTH, CATEGORY, FUNCTION, SYMBOL, LINE, COLUMNS };
	static const char *const keys[COLUMNS] = { "address", "inlineDepth", "category", "func", "nativeSymbol",
						   "line" };
	static const int zero = 0;

	begin_table(j, "frameTable", t->nframes);
	for (int column = 0; column < COLUMNS; column++) {
		mew_firefox_column(j, keys[column]);
		for (size_t i = 0; i < t->nframes; i++) {
			const struct mew_firefox_frame *f = &t->frames[i];

			if (column == ADDRESS)
				put_address(j, t, f);
			else if (column == SYMBOL)
				put_number_or_null(j, has_address(t, f) ? l->symbols.of[f->outer] : UINT32_MAX,
						   UINT32_MAX);
			else if (column == LINE)
				put_number_or_null(j, f->line, 0);
			else
				mew_json_u64(j, column == DEPTH	   ? f->inlined :
						column == CATEGORY ? (uint64_t)category_of(t, f) :
								     l->functions.of[f->function]);
		}
		mew_json_array_end(j);
	}
	put_same(j, "subcategory", t->nframes, &zero);
	put_same(j, "innerWindowID", t->nframes, &zero);
	put_same(j, "column", t->nframes, NULL);
	mew_json_object_end(j);
}

static void put_false(struct mew_json *j, const char *key, size_t n)
{
	mew_firefox_column(j, key);
	for (size_t i = 0; i < n; i++)
		mew_json_bool(j, false);
	mew_json_array_end(j);
}

static void put_func_table(struct mew_json *j, const struct mew_firefox_tables *t, const struct locals *l)
{
	size_t n = l->functions.n;

	begin_table(j, "funcTable", n);
	mew_firefox_column(j, "name");
	for (size_t i = 0; i < n; i++)
		mew_json_u64(j, mew_strings_add(t->strings, t->shown->all[l->functions.used[i]].name));
	mew_json_array_end(j);
	put_false(j, "isJS", n);
	put_false(j, "relevantForJS", n);
	mew_firefox_column(j, "resource");
	for (size_t i = 0; i < n; i++) {
		uint32_t module = module_of(t, l->functions.used[i]);

		mew_json_i64(j, module == MEW_NO_MODULE ? -1 : (int64_t)l->modules.of[module]);
	}
	mew_json_array_end(j);
	mew_firefox_column(j, "fileName");
	for (size_t i = 0; i < n; i++) {
		const char *file = t->shown->all[l->functions.used[i]].file;

		put_number_or_null(j, file[0] == '\0' ? UINT64_MAX : mew_strings_add(t->strings, file), UINT64_MAX);
	}
	mew_json_array_end(j);
	mew_firefox_column(j, "lineNumber");
	for (size_t i = 0; i < n; i++)
		put_number_or_null(j, t->shown->all[l->functions.used[i]].line, 0);
	mew_json_array_end(j);
	put_same(j, "columnNumber", n, NULL);
	mew_json_object_end(j);
}

static void put_resource_table(struct mew_json *j, const struct mew_firefox_tables *t, const struct locals *l)
{
	static const int library = RESOURCE_LIBRARY;

	begin_table(j, "resourceTable", l->modules.n);
	mew_firefox_column(j, "lib");
	for (uint32_t i = 0; i < l->modules.n; i++)
		mew_json_u64(j, l->modules.used[i]);
	mew_json_array_end(j);
	mew_firefox_column(j, "name");
	for (uint32_t i = 0; i < l->modules.n; i++)
		mew_json_u64(j, mew_strings_add(t->strings, mew_module_name(t->m, l->modules.used[i])));
	mew_json_array_end(j);
	put_same(j, "host", l->modules.n, NULL);
	put_same(j, "type", l->modules.n, &library);
	mew_json_object_end(j);
}

static void put_native_symbols(struct mew_json *j, const struct mew_firefox_tables *t, const struct locals *l)
{
	size_t n = l->symbols.n;

	begin_table(j, "nativeSymbols", n);
	mew_firefox_column(j, "libIndex");
	for (size_t i = 0; i < n; i++)
		mew_json_u64(j, module_of(t, l->symbols.used[i]));
	mew_json_array_end(j);
	mew_firefox_column(j, "address");
	for (size_t i = 0; i < n; i++)
		mew_json_u64(j, l->lowest[i]);
	mew_json_array_end(j);
	mew_firefox_column(j, "name");
	for (size_t i = 0; i < n; i++)
		mew_json_u64(j, mew_strings_add(t->strings, t->shown->all[l->symbols.used[i]].name));
	mew_json_array_end(j);
	put_same(j, "functionSize", n, NULL);
	mew_json_object_end(j);
}

int mew_firefox_put_tables(struct mew_json *j, const struct mew_firefox_tables *t)
{
	struct locals l = { .lowest = NULL };
	bool made = find_locals(&l, t);

	if (made) {
		put_stack_table(j, t);
		put_frame_table(j, t, &l);
		put_func_table(j, t, &l);
		put_resource_table(j, t, &l);
		put_native_symbols(j, t, &l);
	}
	free_locals(&l);
	return made ? 0 : -1;
}
