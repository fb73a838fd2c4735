/*
 * stacks.c - see stacks.h.
 * Layer L5. Any thread.
 */
#include "config.h"

#include "stacks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "symbolise.h"
#include "textual.h"

/* --- frames ----------------------------------------------------------------------------------------------------- */

struct mew_stack_walk mew_stack_begin(const struct mew_model *m, uint32_t stack)
{
	if (!mew_stack_known(m, stack))
		return (struct mew_stack_walk){ .m = m };
	return (struct mew_stack_walk){ .m = m, .first = m->stacks[stack].first, .left = m->stacks[stack].depth };
}

bool mew_stack_next(struct mew_stack_walk *walk, struct mew_stack_frame *frame)
{
	const struct mew_model *m = walk->m;
	const struct mew_location *l;
	const struct mew_line *line;

	if (walk->lines == 0) { /* the location that was given last is done */
		if (walk->left == 0)
			return false;
		walk->left--;
		frame->location = m->frames[walk->first + walk->left];
		walk->lines = m->locations[frame->location].nlines;
		if (walk->lines == 0) {
			*frame = (struct mew_stack_frame){ .location = frame->location, .function = MEW_NO_FUNCTION };
			return true;
		}
	}
	frame->location = m->frames[walk->first + walk->left];
	l = &m->locations[frame->location];
	frame->inlined = l->nlines - walk->lines;
	walk->lines--;
	line = &m->lines[l->first_line + walk->lines];
	frame->function = line->function;
	frame->line = line->line;
	return true;
}

/* --- sums ------------------------------------------------------------------------------------------------------- */

const struct mew_stack_metric mew_memory_metrics[MEW_MEMORY_METRICS] = {
	{ "memory at the peak", MEW_STACK_PEAK, true },
	{ "memory allocated", MEW_STACK_CUMULATIVE, true },
	{ "allocations", MEW_STACK_ALLOCATIONS, false },
	{ "memory alive at the end", MEW_STACK_NET, true },
};

uint64_t mew_stack_plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) || sum > INT64_MAX ? INT64_MAX : sum;
}

static int by_stack(const void *a, const void *b)
{
	const struct mew_stack_sum *x = a, *y = b;
	int order = (x->stack > y->stack) - (x->stack < y->stack);

	if (order == 0)
		order = (x->thread > y->thread) - (x->thread < y->thread);
	return order != 0 ? order : (int)x->blocked - (int)y->blocked;
}

static struct mew_stack_sum sum_of_sample(const struct mew_cpu_sample *s, bool apart)
{
	return (struct mew_stack_sum){ .stack = s->stack,
				       .thread = apart ? s->thread : 0,
				       .blocked = apart && s->blocked,
				       .values = { [MEW_STACK_WEIGHT] = s->weight_ns, [MEW_STACK_SAMPLES] = 1 } };
}

static struct mew_stack_sum sum_of_heap(const struct mew_heap_stack *s)
{
	return (struct mew_stack_sum){ .stack = s->stack,
				       .values = { [MEW_STACK_PEAK] = s->peak_bytes,
						   [MEW_STACK_CUMULATIVE] = s->cumulative_bytes,
						   [MEW_STACK_ALLOCATIONS] = s->allocations,
						   [MEW_STACK_NET] = s->net_bytes } };
}

/* Sums in order; equal ones are neighbours. Returns how many are left. */
static size_t merge(struct mew_stack_sum *sums, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct mew_stack_sum *last;

		if (kept == 0 || by_stack(&sums[kept - 1], &sums[i]) != 0) {
			sums[kept++] = sums[i];
			last = &sums[kept - 1];
			for (unsigned k = 0; k < MEW_STACK_VALUES; k++)
				last->values[k] = mew_stack_plus(last->values[k], 0);
			continue;
		}
		last = &sums[kept - 1];
		for (unsigned k = 0; k < MEW_STACK_VALUES; k++)
			last->values[k] = mew_stack_plus(last->values[k], sums[i].values[k]);
	}
	return kept;
}

struct mew_stack_sum *mew_stack_sums(const struct mew_model *m, const struct mew_case *c, enum mew_kind kind,
				     bool apart, size_t *n)
{
	size_t count = kind == MEW_KIND_CPU ? c->nsamples : c->nheap_stacks;
	struct mew_stack_sum *sums = calloc(count + 1, sizeof *sums);

	if (sums == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		sums[i] = kind == MEW_KIND_CPU ? sum_of_sample(&c->samples[i], apart) : sum_of_heap(&c->heap_stacks[i]);
		if (!mew_stack_known(m, sums[i].stack))
			sums[i].stack = MEW_NO_STACK;
	}
	qsort(sums, count, sizeof *sums, by_stack);
	*n = merge(sums, count);
	return sums;
}

static bool counts(const struct mew_heap_stack *s)
{
	return s->peak_bytes != 0 || s->cumulative_bytes != 0 || s->allocations != 0 || s->net_bytes != 0;
}

bool mew_stack_any(const struct mew_model *m)
{
	for (size_t i = 0; i < m->ncases; i++) {
		const struct mew_case *c = &m->cases[i];

		for (size_t k = 0; k < c->nsamples; k++)
			if (c->samples[k].weight_ns != 0)
				return true;
		for (size_t k = 0; k < c->nheap_stacks; k++)
			if (counts(&c->heap_stacks[k]))
				return true;
	}
	return false;
}

/* --- samples in time -------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct mew_cpu_sample *x = *(const struct mew_cpu_sample *const *)a,
				    *y = *(const struct mew_cpu_sample *const *)b;
	int order = (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);

	if (order == 0)
		order = (x->thread > y->thread) - (x->thread < y->thread);
	return order != 0 ? order : (x > y) - (x < y); /* of one array */
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct mew_cpu_sample *x = *(const struct mew_cpu_sample *const *)a,
				    *y = *(const struct mew_cpu_sample *const *)b;

	return x->thread != y->thread ? (x->thread < y->thread ? -1 : 1) : by_time(a, b);
}

const struct mew_cpu_sample **mew_stack_timeline(const struct mew_case *c, bool by_thread)
{
	const struct mew_cpu_sample **order = calloc(c->nsamples + 1, sizeof(const struct mew_cpu_sample *));

	if (order == NULL)
		return NULL;
	for (size_t i = 0; i < c->nsamples; i++)
		order[i] = &c->samples[i];
	qsort(order, c->nsamples, sizeof(const struct mew_cpu_sample *), by_thread ? by_thread_and_time : by_time);
	return order;
}

const char *mew_stack_clock(const struct mew_case *c)
{
	const struct mew_row_head *row = (const struct mew_row_head *)&c->cpu;

	return mew_row_has(row, MEW_FIG_CLOCK) && strcmp(c->cpu.clock, "cpu") == 0 ? "cpu" : "wall";
}

uint64_t mew_stack_interval_ns(const struct mew_case *c)
{
	const struct mew_row_head *row = (const struct mew_row_head *)&c->cpu;

	if (mew_row_has(row, MEW_FIG_EFFECTIVE_INTERVAL))
		return mew_seconds_ns(c->cpu.effective_interval);
	return mew_row_has(row, MEW_FIG_INTERVAL) ? mew_seconds_ns(c->cpu.interval) : 0;
}

/* --- the program ------------------------------------------------------------------------------------------------ */

static uint32_t outermost_module(const struct mew_model *m, uint32_t stack)
{
	return m->locations[m->frames[m->stacks[stack].first + m->stacks[stack].depth - 1]].module;
}

uint32_t mew_stack_program(const struct mew_model *m, const struct mew_case *c)
{
	for (uint32_t i = 0; c->program != NULL && i < m->nmodules; i++)
		if (strcmp(mew_module_name(m, i), mew_base_name(c->program)) == 0)
			return i;
	for (size_t i = 0; i < m->nfunctions; i++)
		if (strcmp(m->functions[i].name, "main") == 0 && m->functions[i].module < m->nmodules)
			return m->functions[i].module;
	for (size_t i = 0; i < c->nsamples + c->nheap_stacks; i++) {
		uint32_t stack = i < c->nsamples ? c->samples[i].stack : c->heap_stacks[i - c->nsamples].stack;

		if (mew_stack_known(m, stack) && outermost_module(m, stack) < m->nmodules)
			return outermost_module(m, stack);
	}
	return MEW_NO_MODULE;
}

/* --- text ------------------------------------------------------------------------------------------------------- */

void mew_write_name(struct mew_writer *w, const char *name, char never, char instead)
{
	for (size_t bytes; *name != '\0'; name += bytes) {
		uint32_t code = mew_utf8_next(name, &bytes);

		if (code == (unsigned char)never)
			mew_write_char(w, instead);
		else if (code < 0x20 || code == 0x7f)
			mew_write_char(w, ' ');
		else if (code == MEW_BAD_CHARACTER)
			mew_write_text(w, "\xef\xbf\xbd");
		else
			mew_write_bytes(w, name, bytes);
	}
}

uint64_t mew_seconds_ns(double seconds)
{
	if (!isfinite(seconds) || seconds <= 0)
		return 0;
	return seconds < 9e9 ? (uint64_t)llround(seconds * 1e9) : INT64_MAX;
}
