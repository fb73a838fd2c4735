/*
 * html_tree.c - one tree from the stacks of a case, each inlined function a frame of its own, outermost first.
 * Layer L5. Reads a sealed model.
 */
#include "config.h"

#include "html_tree.h"

#include <stdlib.h>

#include "stacks.h"

#define METRICS MEW_STACK_VALUES
#define MANY_LINES UINT32_MAX

struct frame {
	uint32_t parent, key, line;
	uint32_t shown_line; /* line, or what all stacks through it agree on */
	uint32_t child, sibling;
	uint64_t self[METRICS];
};

struct tree {
	struct frame *frames; /* frame 0 is the root, 0 as a link is none */
	size_t n, size;
	uint32_t *slots; /* open addressing by (parent, key, line) */
	size_t nslots;
	unsigned metrics;
	bool by_line;
	uint32_t *leaf_of; /* CPU, by stack: the frame it ends in; the last place is for samples without a stack */
};

/* --- growing ---------------------------------------------------------------------------------------------------- */

static size_t slot_of(const struct tree *t, uint32_t parent, uint32_t key, uint32_t line)
{
	uint64_t h = (uint64_t)parent * 0x9e3779b97f4a7c15u ^ (uint64_t)key * 0xc2b2ae3d27d4eb4fu ^
		     (uint64_t)line * 0x165667b19e3779f9u;
	size_t s = (size_t)(h ^ h >> 29) & (t->nslots - 1);

	while (t->slots[s] != 0) {
		const struct frame *f = &t->frames[t->slots[s]];

		if (f->parent == parent && f->key == key && f->line == line)
			break;
		s = (s + 1) & (t->nslots - 1);
	}
	return s;
}

static bool grow(struct tree *t)
{
	size_t size = t->size == 0 ? 1024 : t->size * 2;
	struct frame *frames = size < UINT32_MAX / 2 ? realloc(t->frames, size * sizeof *frames) : NULL;
	uint32_t *slots;

	if (frames == NULL)
		return false;
	t->frames = frames;
	slots = calloc(size * 2, sizeof *slots);
	if (slots == NULL)
		return false;
	free(t->slots);
	t->slots = slots;
	t->nslots = size * 2;
	t->size = size;
	for (size_t i = 1; i < t->n; i++)
		t->slots[slot_of(t, frames[i].parent, frames[i].key, frames[i].line)] = (uint32_t)i;
	return true;
}

/* The child of a frame, made when it is not there; 0 without memory. */
static uint32_t enter(struct tree *t, uint32_t parent, uint32_t key, uint32_t line)
{
	uint32_t told = t->by_line ? line : 0;
	size_t s = slot_of(t, parent, key, told);

	if (t->slots[s] == 0) {
		if (t->n == t->size) {
			if (!grow(t))
				return 0;
			s = slot_of(t, parent, key, told);
		}
		t->slots[s] = (uint32_t)t->n;
		t->frames[t->n++] = (struct frame){ .parent = parent, .key = key, .line = told, .shown_line = line };
	} else if (t->frames[t->slots[s]].shown_line != line) {
		t->frames[t->slots[s]].shown_line = MANY_LINES;
	}
	return t->slots[s];
}

/* The frame a stack ends in, made when it is not there; 0 without memory. */
static uint32_t enter_stack(struct tree *t, const struct mew_shown_functions *f, const struct mew_model *m,
			    uint32_t stack)
{
	struct mew_stack_walk walk = mew_stack_begin(m, stack);
	struct mew_stack_frame frame;
	uint32_t at = 0;

	if (!mew_stack_known(m, stack))
		return enter(t, 0, f->missing * 2, 0);
	while (mew_stack_next(&walk, &frame)) {
		at = enter(t, at, mew_stack_function(f, &frame) * 2 + (frame.inlined > 0), frame.line);
		if (at == 0)
			break;
	}
	return at;
}

static bool add_stacks(struct tree *t, const struct mew_shown_functions *f, const struct mew_model *m,
		       const struct mew_case *c, enum mew_kind kind)
{
	size_t n;
	struct mew_stack_sum *sums = mew_stack_sums(m, c, kind, false, &n);
	bool done = sums != NULL;

	if (kind == MEW_KIND_CPU) {
		t->leaf_of = calloc(m->nstacks + 1, sizeof *t->leaf_of);
		done = done && t->leaf_of != NULL;
	}
	for (size_t i = 0; done && i < n; i++) {
		uint32_t at = enter_stack(t, f, m, sums[i].stack);

		done = at != 0;
		if (done && t->leaf_of != NULL)
			t->leaf_of[sums[i].stack < m->nstacks ? sums[i].stack : m->nstacks] = at;
		for (unsigned k = 0; done && k < t->metrics; k++)
			t->frames[at].self[k] += sums[i].values[k];
	}
	free(sums);
	return done;
}

/* --- columns ---------------------------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct frame *x = *(const struct frame *const *)a, *y = *(const struct frame *const *)b;
	int order = (x->parent > y->parent) - (x->parent < y->parent);

	if (order == 0)
		order = (x->key > y->key) - (x->key < y->key);
	if (order == 0)
		order = (x->line > y->line) - (x->line < y->line);
	return order;
}

/* Chain siblings in the order of their functions and lines. */
static bool link_children(struct tree *t)
{
	struct frame **sorted = malloc(t->n * sizeof(struct frame *));

	if (sorted == NULL)
		return false;
	for (size_t i = 0; i < t->n; i++)
		sorted[i] = &t->frames[i];
	qsort(sorted + 1, t->n - 1, sizeof(struct frame *), by_place);
	for (size_t i = t->n; i-- > 1;) {
		sorted[i]->sibling = t->frames[sorted[i]->parent].child;
		t->frames[sorted[i]->parent].child = (uint32_t)(sorted[i] - t->frames);
	}
	free(sorted);
	return true;
}

/* Append the column of levels, and fill `order` with the frames in preorder. */
static void put_levels(struct mew_pack *out, const struct tree *t, uint32_t *order)
{
	size_t depth = 1, before = 0, n = 0;

	for (uint32_t at = t->frames[0].child; at != 0;) {
		order[n++] = at;
		mew_pack_number(out, before + 1 - depth);
		before = depth;
		if (t->frames[at].child != 0) {
			at = t->frames[at].child;
			depth++;
			continue;
		}
		while (at != 0 && t->frames[at].sibling == 0) {
			at = t->frames[at].parent;
			depth--;
		}
		at = t->frames[at].sibling; /* the root has none: the end */
	}
}

/* Lines lie near the head of their function: the distance packs far better than the line. */
static void put_line(struct mew_pack *out, const struct mew_shown_functions *f, const struct frame *frame)
{
	int64_t distance = (int64_t)frame->shown_line - f->all[frame->key / 2].line;

	if (frame->shown_line == 0 || frame->shown_line == MANY_LINES)
		mew_pack_number(out, 0);
	else
		mew_pack_number(out, distance < 0 ? (uint64_t)-distance * 2 : (uint64_t)distance * 2 + 1);
}

static void put_columns(struct mew_pack *out, const struct mew_shown_functions *f, const struct tree *t,
			const uint32_t *order)
{
	size_t n = t->n - 1;

	for (size_t i = 0; i < n; i++)
		mew_pack_number(out, t->frames[order[i]].key);
	for (size_t i = 0; i < n; i++)
		put_line(out, f, &t->frames[order[i]]);
	for (unsigned k = 0; k < t->metrics; k++)
		for (size_t i = 0; i < n; i++)
			mew_pack_number(out, t->frames[order[i]].self[k]);
}

/* --- the order of the samples ----------------------------------------------------------------------------------- */

static void put_thread(struct mew_pack *out, const struct tree *t, const uint32_t *place, size_t nstacks,
		       const struct mew_cpu_sample *const *samples, size_t n)
{
	uint32_t before = 0;

	mew_pack_number(out, samples[0]->thread);
	mew_pack_number(out, n);
	for (size_t i = 0; i < n; i++) {
		uint32_t at = place[t->leaf_of[samples[i]->stack < nstacks ? samples[i]->stack : nstacks]];

		mew_pack_number(out, at >= before ? (uint64_t)(at - before) * 2 : (uint64_t)(before - at) * 2 - 1);
		before = at;
	}
	for (size_t i = 0; i < n; i++)
		mew_pack_number(out, samples[i]->weight_ns);
}

/* Samples by thread and time; `place` has for each frame its number in preorder, from 1. */
static bool put_samples(struct mew_pack *out, const struct tree *t, const uint32_t *place, size_t nstacks,
			const struct mew_case *c)
{
	const struct mew_cpu_sample **sorted = mew_stack_timeline(c, true);
	size_t threads = 0;

	if (sorted == NULL)
		return false;
	for (size_t i = 0; i < c->nsamples; i++)
		threads += i == 0 || sorted[i]->thread != sorted[i - 1]->thread;
	mew_pack_number(out, threads);
	for (size_t i = 0, end; i < c->nsamples; i = end) {
		for (end = i + 1; end < c->nsamples && sorted[end]->thread == sorted[i]->thread; end++)
			;
		put_thread(out, t, place, nstacks, sorted + i, end - i);
	}
	free(sorted);
	return true;
}

static bool put_tree(struct mew_pack *out, const struct mew_shown_functions *f, struct tree *t, size_t nstacks,
		     const struct mew_case *c)
{
	size_t n = t->n - 1;
	uint32_t *order = malloc((n + 1) * sizeof *order), *place = calloc(n + 1, sizeof *place);
	bool done = order != NULL && place != NULL && link_children(t);

	if (done) {
		mew_pack_number(out, n);
		mew_pack_number(out, t->metrics);
		put_levels(out, t, order);
		put_columns(out, f, t, order);
		for (size_t i = 0; i < n; i++)
			place[order[i]] = (uint32_t)i + 1;
		if (t->leaf_of != NULL)
			done = put_samples(out, t, place, nstacks, c);
	}
	free(order);
	free(place);
	return done && !out->failed;
}

int mew_html_tree(struct mew_pack *out, const struct mew_shown_functions *f, const struct mew_model *m,
		  const struct mew_case *c, enum mew_kind kind)
{
	struct tree t = { .metrics = kind == MEW_KIND_CPU ? 2 : METRICS, .by_line = kind == MEW_KIND_MEMORY };
	bool done = false;

	if (grow(&t)) {
		t.frames[0] = (struct frame){ 0 };
		t.n = 1;
		done = add_stacks(&t, f, m, c, kind) && put_tree(out, f, &t, m->nstacks, c);
	}
	free(t.leaf_of);
	free(t.frames);
	free(t.slots);
	return done ? 0 : -1;
}
