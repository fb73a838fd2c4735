/*
 * trace_nest.c - partners and nesting: what makes events of many writers one trace that no viewer complains of.
 * Layer L6. Whole nanoseconds, no tolerance.
 */
#include "config.h"

#include "trace_events.h"

#include <stdlib.h>
#include <string.h>

#include "trace_profile.h"

typedef int order_fn(const struct mew_trace_event *a, const struct mew_trace_event *b);

int mew_slice_order(struct mew_slice a, struct mew_slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n > 0 ? memcmp(a.p, b.p, n) : 0;

	return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

static int numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

/* At one time: slices, longest first, then what opens, what refers, what closes. */
static int rank(char phase)
{
	const char *order = "MXBbstfPiCeE", *at = strchr(order, phase);

	return (int)(at - order);
}

int mew_trace_order(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = (b->phase == 'M') - (a->phase == 'M');

	if (order == 0)
		order = numbers(a->ts_ns, b->ts_ns);
	if (order == 0)
		order = numbers(rank(a->phase), rank(b->phase));
	if (order == 0)
		order = numbers(b->duration_ns, a->duration_ns);
	return order != 0 ? order : numbers(a->serial, b->serial);
}

static int by_track(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = numbers(a->pid, b->pid);

	if (order == 0)
		order = numbers(a->tid, b->tid);
	return order != 0 ? order : mew_trace_order(a, b);
}

/* Begins and ends keep the order of their file at one time: an empty section is a begin and then an end. */
static int by_writer(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = numbers(a->pid, b->pid);

	if (order == 0)
		order = numbers(a->tid, b->tid);
	if (order == 0)
		order = numbers(a->ts_ns, b->ts_ns);
	return order != 0 ? order : numbers(a->serial, b->serial);
}

/* A local id is of its process, any other of its file. */
static int by_partner(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = numbers(a->file, b->file);

	if (order == 0)
		order = numbers(a->pid, b->pid);
	if (order == 0)
		order = mew_slice_order(a->category, b->category);
	if (order == 0)
		order = mew_slice_order(a->name, b->name);
	return order != 0 ? order : mew_slice_order(a->id, b->id);
}

static int by_partner_and_time(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = by_partner(a, b);

	return order != 0 ? order : mew_trace_order(a, b);
}

/* One number is one profile in each process of each file. */
static int by_profile(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = numbers(a->file, b->file);

	if (order == 0)
		order = numbers(a->pid, b->pid);
	if (order == 0)
		order = mew_slice_order(a->id, b->id);
	return order != 0 ? order : mew_trace_order(a, b);
}

static int by_bind(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = numbers(a->file, b->file);

	return order != 0 ? order : mew_slice_order(a->bind, b->bind);
}

static order_fn *chosen; /* for qsort, which hands over no context; one thread */

static int compare(const void *a, const void *b)
{
	return chosen(*(struct mew_trace_event *const *)a, *(struct mew_trace_event *const *)b);
}

/* The events with these phases, sorted; the caller frees the list. NULL without memory. */
static struct mew_trace_event **choose(struct mew_trace_events *events, const char *phases, order_fn *order, size_t *n)
{
	struct mew_trace_event **list = malloc((events->n + 1) * sizeof(struct mew_trace_event *));

	*n = 0;
	if (list == NULL) {
		events->failed = true;
		return NULL;
	}
	for (size_t i = 0; i < events->n; i++)
		if (!events->list[i].dropped && strchr(phases, events->list[i].phase) != NULL)
			list[(*n)++] = &events->list[i];
	chosen = order;
	qsort(list, *n, sizeof(struct mew_trace_event *), compare);
	return list;
}

static void drop(struct mew_trace_events *events, struct mew_trace_event *e)
{
	e->dropped = true;
	events->dropped++;
}

static bool same_track(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	return a->pid == b->pid && a->tid == b->tid;
}

static int64_t last_of(const struct mew_trace_events *events, int64_t pid)
{
	int64_t last = INT64_MIN;

	for (size_t i = 0; i < events->n; i++) {
		const struct mew_trace_event *e = &events->list[i];

		if (!e->dropped && e->pid == pid && e->phase != 'M' && e->ts_ns + e->duration_ns > last)
			last = e->ts_ns + e->duration_ns;
	}
	return last;
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

static void become_slice(struct mew_trace_event *begin, int64_t end_ns)
{
	begin->phase = 'X';
	begin->duration_ns = end_ns - begin->ts_ns;
}

/* When a process's last event ends; looked for once for all tracks of a process, which follow each other. */
struct last {
	bool known;
	int64_t pid, ns;
};

static void close_open(struct mew_trace_events *events, struct mew_trace_event **open, size_t n, struct last *last)
{
	if (n > 0 && (!last->known || last->pid != open[0]->pid))
		*last = (struct last){ true, open[0]->pid, last_of(events, open[0]->pid) };
	while (n-- > 0) {
		open[n]->unfinished = true;
		become_slice(open[n], last->ns);
	}
}

static void pair_begins(struct mew_trace_events *events)
{
	struct last last = { .known = false };
	size_t n, depth = 0;
	struct mew_trace_event **list = choose(events, "BE", by_writer, &n), **open;

	open = malloc((n + 1) * sizeof(struct mew_trace_event *));
	if (list == NULL || open == NULL) {
		events->failed = true;
		n = 0;
	}
	for (size_t i = 0; i < n; i++) {
		struct mew_trace_event *e = list[i];

		if (i > 0 && !same_track(e, list[i - 1])) {
			close_open(events, open, depth, &last);
			depth = 0;
		}
		if (e->phase == 'B') {
			open[depth++] = e;
		} else if (depth > 0) {
			become_slice(open[--depth], e->ts_ns);
			open[depth]->unfinished = mew_slice_member(e->args, "unfinished").n == 4; /* true */
			e->dropped = true; /* it is part of the slice now, and no loss */
		} else {
			drop(events, e);
		}
	}
	close_open(events, open, depth, &last);
	free(open);
	free(list);
}

/* --- async spans and arrows ------------------------------------------------------------------------------------- */

static void pair_group_of_spans(struct mew_trace_events *events, struct mew_trace_event **group, size_t n)
{
	size_t next = 0; /* the oldest begin that is open */

	for (size_t i = 0; i < n; i++) {
		if (group[i]->phase == 'b')
			continue;
		while (next < i && (group[next]->phase != 'b' || group[next]->number != 0))
			next++;
		if (next == i)
			drop(events, group[i]);
		else
			group[next]->number = group[i]->number = ++events->numbers;
	}
	for (size_t i = 0; i < n; i++)
		if (group[i]->phase == 'b' && group[i]->number == 0)
			drop(events, group[i]);
}

/* Each start opens an arrow; those that follow, up to the next start, are its steps and ends. */
static void pair_group_of_arrows(struct mew_trace_events *events, struct mew_trace_event **group, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t end = i + 1;
		bool has_end = false;

		for (; end < n && group[end]->phase != 's'; end++)
			has_end = has_end || group[end]->phase == 'f';
		if (group[i]->phase == 's' && has_end)
			events->numbers++;
		for (size_t k = i; k < end; k++) {
			if (group[i]->phase == 's' && has_end)
				group[k]->number = events->numbers;
			else
				drop(events, group[k]);
		}
		i = end;
	}
}

static void pair_groups(struct mew_trace_events *events, const char *phases,
			void (*pair)(struct mew_trace_events *, struct mew_trace_event **, size_t))
{
	size_t n, end;
	struct mew_trace_event **list = choose(events, phases, by_partner_and_time, &n);

	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n && by_partner(list[i], list[end]) == 0; end++)
			;
		pair(events, list + i, end - i);
	}
	free(list);
}

/* Chunks belong to the Profile before them. */
static void pair_profiles(struct mew_trace_events *events)
{
	size_t n;
	struct mew_trace_event **list = choose(events, "P", by_profile, &n);
	uint64_t number = 0;

	for (size_t i = 0; i < n; i++) {
		if (i > 0 && (list[i]->file != list[i - 1]->file || list[i]->pid != list[i - 1]->pid ||
			      mew_slice_order(list[i]->id, list[i - 1]->id) != 0))
			number = 0;
		if (list[i]->has_start)
			number = ++events->numbers;
		list[i]->number = number;
		if (number == 0)
			drop(events, list[i]);
	}
	free(list);
}

static void pair_binds(struct mew_trace_events *events)
{
	size_t n, end;
	struct mew_trace_event **list = choose(events, "X", by_bind, &n);

	for (size_t i = 0; i < n; i = end) {
		bool in = false, out = false;

		for (end = i; end < n && by_bind(list[i], list[end]) == 0; end++) {
			in = in || list[end]->flow_in;
			out = out || list[end]->flow_out;
		}
		if (in && out)
			events->numbers++;
		for (size_t k = i; k < end; k++) {
			list[k]->flow_in = list[k]->flow_in && out;
			list[k]->flow_out = list[k]->flow_out && in;
			list[k]->number = list[k]->flow_in || list[k]->flow_out ? events->numbers : 0;
		}
	}
	free(list);
}

void mew_trace_pair(struct mew_trace_events *events)
{
	pair_begins(events);
	pair_groups(events, "be", pair_group_of_spans);
	pair_groups(events, "stf", pair_group_of_arrows);
	pair_profiles(events);
	pair_binds(events);
}

/* --- nesting ---------------------------------------------------------------------------------------------------- */

static bool add_end(struct mew_trace_events *events, const struct mew_trace_event *begin, int64_t end_ns)
{
	struct mew_trace_event e = *begin;

	if (events->n == events->capacity) {
		size_t capacity = events->capacity * 2;
		struct mew_trace_event *list = realloc(events->list, capacity * sizeof *list);

		if (list == NULL)
			return false;
		events->list = list;
		events->capacity = capacity;
	}
	e.phase = 'e';
	e.ts_ns = end_ns;
	e.args = (struct mew_slice){ NULL, 0 };
	e.serial = (uint32_t)events->n;
	events->list[events->n++] = e;
	return true;
}

/* Mark with `unfit` those that do not nest in what is open when they begin. */
static void find_unfit(struct mew_trace_event **list, size_t n, unsigned char *unfit, struct mew_trace_event *base)
{
	size_t depth = 0;
	int64_t *ends = malloc((n + 1) * sizeof *ends);

	for (size_t i = 0; ends != NULL && i < n; i++) {
		struct mew_trace_event *e = list[i];
		int64_t end;

		if (e->duration_ns == 0)
			e->duration_ns = 1; /* the least that all viewers draw as a slice */
		end = e->ts_ns + e->duration_ns;
		if (i > 0 && !same_track(e, list[i - 1]))
			depth = 0;
		while (depth > 0 && ends[depth - 1] <= e->ts_ns)
			depth--;
		if (depth == 0 || end <= ends[depth - 1])
			ends[depth++] = end;
		else
			unfit[e - base] = 1;
	}
	free(ends);
}

void mew_trace_nest(struct mew_trace_events *events)
{
	size_t n, kept = 0, all = events->n;
	struct mew_trace_event **list = choose(events, "X", by_track, &n);
	unsigned char *unfit = calloc(all + 1, 1);

	if (list != NULL && unfit != NULL)
		find_unfit(list, n, unfit, events->list);
	free(list);
	for (size_t i = 0; unfit != NULL && i < all; i++) {
		struct mew_trace_event *e = &events->list[i];
		int64_t end = e->ts_ns + e->duration_ns;

		if (unfit[i] == 0)
			continue;
		e->phase = 'b';
		e->has_id2 = true;
		e->flow_in = e->flow_out = false;
		e->number = ++events->numbers;
		e->duration_ns = 0;
		if (!add_end(events, e, end))
			events->list[i].dropped = events->failed = true;
	}
	free(unfit);
	for (size_t i = 0; i < events->n; i++)
		if (!events->list[i].dropped)
			events->list[kept++] = events->list[i];
	events->n = kept;
}

static int compare_events(const void *a, const void *b)
{
	return mew_trace_order(a, b);
}

void mew_trace_sort(struct mew_trace_events *events)
{
	if (events->n > 0)
		qsort(events->list, events->n, sizeof *events->list, compare_events);
}
