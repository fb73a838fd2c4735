/*
 * trace_profile.c - see trace_profile.h.
 * Layer L6. Nothing in a file is trusted.
 */
#include "config.h"

#include "trace_profile.h"

#include <stdlib.h>

static struct mew_slice data_of(const struct mew_trace_event *e)
{
	return mew_slice_member(e->args, "data");
}

static struct mew_slice in_chunk(const struct mew_trace_event *e, const char *name)
{
	return mew_slice_member(mew_slice_member(data_of(e), "cpuProfile"), name);
}

/* A walk over the elements of an array; an empty slice has none. */
struct walk {
	struct mew_cursor c;
	bool first, fine;
};

static struct walk begin(struct mew_slice array)
{
	struct walk w = { .c = { array.p, array.p + array.n, MEW_CURSOR_FINE }, .first = true };

	w.fine = array.n > 0 && mew_cursor_take(&w.c, '[');
	return w;
}

static bool next(struct walk *w, struct mew_slice *value)
{
	if (!w->fine || !mew_cursor_next(&w->c, ']', &w->first, NULL))
		return false;
	*value = mew_cursor_value(&w->c);
	return w->c.state == MEW_CURSOR_FINE;
}

/* How many whole numbers the array holds; false when something else is among them. */
static bool count_numbers(struct mew_slice array, size_t *n)
{
	struct walk w = begin(array);
	struct mew_slice value;
	int64_t number;

	for (*n = 0; next(&w, &value); ++*n)
		if (value.p[0] == '"' || !mew_slice_i64(value, &number))
			return false;
	return array.n == 0 || w.fine;
}

static bool are_nodes(struct mew_slice array)
{
	struct walk w = begin(array);
	struct mew_slice node, parent;
	int64_t number;

	while (next(&w, &node)) {
		parent = mew_slice_member(node, "parent");
		if (!mew_slice_i64(mew_slice_member(node, "id"), &number) ||
		    (parent.n > 0 && !mew_slice_i64(parent, &number)) ||
		    mew_slice_member(mew_slice_member(node, "callFrame"), "functionName").n < 2)
			return false;
	}
	return array.n == 0 || w.fine;
}

const char *mew_trace_profile_read(struct mew_trace_event *e)
{
	struct mew_slice data = data_of(e), start = mew_slice_member(data, "startTime");
	size_t samples, deltas;

	if (data.n == 0 || data.p[0] != '{')
		return "a profile without args.data";
	if (mew_slice_is(e->name, "Profile")) {
		e->has_start = true;
		if (!mew_slice_us(start, &e->start_ns) || e->start_ns > INT64_MAX / 4 || e->start_ns < INT64_MIN / 4)
			return "startTime is not a number of microseconds";
		if (e->start_ns - e->ts_ns < 1000 && e->ts_ns - e->start_ns < 1000)
			e->start_ns = e->ts_ns; /* the same moment, without the fraction that startTime cannot have */
		return NULL;
	}
	if (!mew_slice_is(e->name, "ProfileChunk"))
		return "P that is neither Profile nor ProfileChunk";
	if (!are_nodes(in_chunk(e, "nodes")))
		return "a node of a profile without id, function or a fit parent";
	if (!count_numbers(in_chunk(e, "samples"), &samples) ||
	    !count_numbers(mew_slice_member(data, "timeDeltas"), &deltas) ||
	    samples != deltas)
		return "samples and timeDeltas are not whole numbers, as many of the one as of the other";
	return NULL;
}

int mew_trace_profile_order(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	int order = (a->pid > b->pid) - (a->pid < b->pid);

	if (order == 0)
		order = mew_slice_order(a->id, b->id);
	return order != 0 ? order : (a->serial > b->serial) - (a->serial < b->serial);
}

/* --- all events of one profile ---------------------------------------------------------------------------------- */

struct mew_trace_profile {
	int64_t *ids; /* ascending */
	size_t n, capacity;
	int64_t now_ns; /* of the last sample */
};

struct mew_trace_profile *mew_trace_profile_new(void)
{
	return calloc(1, sizeof(struct mew_trace_profile));
}

void mew_trace_profile_free(struct mew_trace_profile *p)
{
	if (p != NULL)
		free(p->ids);
	free(p);
}

/* Where the id is, or where it would have to be. */
static size_t place_of(const struct mew_trace_profile *p, int64_t id)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->ids[middle] < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_known(const struct mew_trace_profile *p, int64_t id)
{
	size_t at = place_of(p, id);

	return at < p->n && p->ids[at] == id;
}

static const char *add_id(struct mew_trace_profile *p, int64_t id)
{
	size_t at = place_of(p, id);

	if (at < p->n && p->ids[at] == id)
		return "two nodes of a profile have one id";
	if (p->n == p->capacity) {
		size_t capacity = p->capacity == 0 ? 256 : p->capacity * 2;
		int64_t *ids = realloc(p->ids, capacity * sizeof *ids);

		if (ids == NULL)
			return "there is no memory to look at its nodes";
		p->ids = ids;
		p->capacity = capacity;
	}
	for (size_t i = p->n++; i > at; i--) /* ids mostly ascend */
		p->ids[i] = p->ids[i - 1];
	p->ids[at] = id;
	return NULL;
}

static const char *check_nodes(struct mew_trace_profile *p, struct mew_slice array)
{
	struct walk w = begin(array);
	struct mew_slice node;
	const char *why = NULL;

	while (why == NULL && next(&w, &node)) {
		struct mew_slice parent = mew_slice_member(node, "parent");
		int64_t id = 0, above = 0;

		(void)mew_slice_i64(mew_slice_member(node, "id"), &id);
		(void)mew_slice_i64(parent, &above);
		if (parent.n > 0 && !is_known(p, above))
			return "a node of a profile hangs on one that is not there before it";
		why = add_id(p, id);
	}
	return why;
}

static const char *check_samples(struct mew_trace_profile *p, struct mew_slice samples, struct mew_slice deltas)
{
	struct walk w = begin(samples), d = begin(deltas);
	struct mew_slice value, delta;

	while (next(&w, &value) && next(&d, &delta)) {
		int64_t id = 0, ns = 0;

		(void)mew_slice_i64(value, &id);
		if (!is_known(p, id))
			return "a sample of a node that is not there";
		if (!mew_slice_us(delta, &ns) || __builtin_add_overflow(p->now_ns, ns, &p->now_ns))
			return "a time between samples that is no number of microseconds";
		if (p->now_ns < 0)
			return "a sample before zero, and viewers drop it";
	}
	return NULL;
}

const char *mew_trace_profile_check(struct mew_trace_profile *p, const struct mew_trace_event *e, bool first)
{
	const char *why;

	if (first) {
		p->n = 0;
		p->now_ns = e->start_ns;
		if (!e->has_start)
			return "a chunk of a profile that did not begin";
		return e->start_ns < 0 ? "it starts before zero, and viewers drop it" : NULL;
	}
	if (e->has_start)
		return "a second profile with one id";
	why = check_nodes(p, in_chunk(e, "nodes"));
	return why != NULL ? why : check_samples(p, in_chunk(e, "samples"), mew_slice_member(data_of(e), "timeDeltas"));
}
