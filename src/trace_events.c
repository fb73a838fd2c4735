/*
 * trace_events.c - the reader of trace files: JSON text into checked events.
 * Layer L6. Nothing in a file is trusted; any process may have written it.
 */
#include "config.h"

#include "trace_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "trace_profile.h"
#include "trace_text.h"

/* One event as it stands in the file: the text of each member that has a meaning here. */
struct raw {
	struct mew_slice ph, name, cat, pid, tid, ts, dur, args, id, id2, s, bind_id, flow_in, flow_out;
};

static const struct {
	const char *key;
	size_t at;
} members[] = {
#define MEMBER(m) { #m, offsetof(struct raw, m) }
	MEMBER(ph), MEMBER(name), MEMBER(cat), MEMBER(pid), MEMBER(tid), MEMBER(ts), MEMBER(dur), MEMBER(args),
	MEMBER(id), MEMBER(id2), MEMBER(s), MEMBER(bind_id), MEMBER(flow_in), MEMBER(flow_out),
};

static bool is_string(struct mew_slice s)
{
	return s.n >= 2 && s.p[0] == '"';
}

static bool read_members(struct mew_cursor *c, struct raw *raw)
{
	struct mew_slice key, value;
	bool first = true;

	if (!mew_cursor_take(c, '{'))
		return false;
	while (mew_cursor_next(c, '}', &first, &key)) {
		value = mew_cursor_value(c);
		for (size_t i = 0; i < MEW_COUNTOF(members); i++)
			if (mew_slice_is(key, members[i].key))
				memcpy((char *)raw + members[i].at, &value, sizeof value);
	}
	return c->state == MEW_CURSOR_FINE;
}

/* A counter needs numbers, one at least: viewers refuse or hang on others. */
static bool are_numbers(struct mew_slice args)
{
	struct mew_cursor c = { args.p, args.p + args.n, MEW_CURSOR_FINE };
	struct mew_slice key;
	bool first = true;
	size_t n = 0;

	if (!mew_cursor_take(&c, '{'))
		return false;
	for (; mew_cursor_next(&c, '}', &first, &key); n++)
		if (!mew_slice_is_number(mew_cursor_value(&c)))
			return false;
	return n > 0;
}

/* --- one event -------------------------------------------------------------------------------------------------- */

static const char *read_ids(const struct raw *raw, struct mew_trace_event *e)
{
	if (strchr("bestfP", e->phase) != NULL) {
		e->has_id2 = raw->id2.n > 0;
		e->id = e->has_id2 ? mew_slice_member(raw->id2, "local") : raw->id;
		if (e->has_id2 && e->id.n == 0)
			e->id = mew_slice_member(raw->id2, "global");
		if (e->id.n == 0 || (!is_string(e->id) && !mew_slice_is_number(e->id)))
			return "id is neither a text nor a number";
	}
	e->flow_in = raw->flow_in.n == 4;
	e->flow_out = raw->flow_out.n == 4;
	e->bind = raw->bind_id;
	if ((e->flow_in || e->flow_out) && (e->phase != 'X' || e->bind.n == 0))
		return "an arrow at something that is no slice, or without bind_id";
	return NULL;
}

static const char *read_times(const struct raw *raw, struct mew_trace_event *e)
{
	if (e->phase == 'M')
		return NULL;
	if (!mew_slice_us(raw->ts, &e->ts_ns))
		return "ts is not a number of microseconds";
	if (e->ts_ns > INT64_MAX / 4 || e->ts_ns < INT64_MIN / 4)
		return "ts is beyond all clocks";
	if (e->phase == 'X' && (!mew_slice_us(raw->dur, &e->duration_ns) || e->duration_ns < 0 ||
				e->duration_ns > INT64_MAX / 4))
		return "dur is not a length of time";
	return NULL;
}

/* NULL, or what is wrong. */
static const char *read_event(const struct raw *raw, struct mew_trace_event *e)
{
	const char *why;

	if (raw->ph.n != 3 || raw->ph.p[0] != '"' || strchr("MXBEiICbestfP", raw->ph.p[1]) == NULL)
		return "ph is none of M X B E i I C b e s t f P";
	e->phase = raw->ph.p[1] == 'I' ? 'i' : raw->ph.p[1];
	e->name = raw->name;
	if (!is_string(e->name) && !(e->phase == 'E' && e->name.n == 0))
		return "name is not a text";
	if (raw->cat.n > 0 && !is_string(raw->cat))
		return "cat is not a text";
	e->category = raw->cat;
	if (!mew_slice_i64(raw->pid, &e->pid))
		return "pid is not a number";
	if (raw->tid.n > 0 && !mew_slice_i64(raw->tid, &e->tid))
		return "tid is not a number";
	if (raw->args.n > 0 && raw->args.p[0] != '{')
		return "args is not an object";
	e->args = raw->args;
	if (e->phase == 'C' && (e->args.n == 0 || !are_numbers(e->args)))
		return "a counter without numbers, or with something else among them";
	e->scope = mew_slice_is(raw->s, "p") ? 'p' : mew_slice_is(raw->s, "g") ? 'g' : 't';
	why = read_times(raw, e);
	if (why == NULL && e->phase == 'P')
		why = mew_trace_profile_read(e);
	return why != NULL ? why : read_ids(raw, e);
}

static bool grow(struct mew_trace_events *events)
{
	size_t capacity = events->capacity == 0 ? 1024 : events->capacity * 2;
	struct mew_trace_event *list;

	if (events->n >= MEW_TRACE_EVENTS_MAX) {
		events->full = true;
		return false;
	}
	if (events->n < events->capacity)
		return true;
	list = realloc(events->list, capacity * sizeof *list);
	if (list == NULL) {
		events->failed = true;
		return false;
	}
	events->list = list;
	events->capacity = capacity;
	return true;
}

/* What mew's own files say of themselves. Returns true when the event is only that. */
static bool read_own(struct mew_trace_source *s, const struct mew_trace_event *e)
{
	int64_t value;

	if (e->phase != 'M')
		return false;
	if (mew_slice_is(e->name, "mew_trace")) {
		s->is_ours = mew_slice_i64(mew_slice_member(e->args, "zero_ns"), &value) && value >= 0 &&
			     value <= INT64_MAX / 4;
		if (s->is_ours)
			s->zero_ns = value;
		s->unended = mew_slice_member(e->args, "ends").n == 4;
		return true;
	}
	if (mew_slice_is(e->name, "mew_end")) {
		s->unended = false;
		return true;
	}
	if (mew_slice_is(e->name, "mew_thinned")) {
		if (mew_slice_i64(mew_slice_member(e->args, "samples"), &value) && value > 0)
			s->thinned = (uint64_t)value;
		return true;
	}
	if (!mew_slice_is(e->name, "mew_dropped"))
		return false;
	if (mew_slice_i64(mew_slice_member(e->args, "records"), &value) && value > 0)
		s->lost = (uint64_t)value;
	return true;
}

static void refuse(struct mew_trace_source *s, size_t number, const char *why)
{
	if (s->bad++ == 0)
		(void)snprintf(s->first_bad, sizeof s->first_bad, "event %zu: %s", number, why);
}

static void read_one(struct mew_trace_events *events, struct mew_trace_source *s, uint32_t file, struct mew_cursor *c,
		     size_t number)
{
	struct mew_trace_event e = { .file = file };
	struct raw raw = { .ph = { NULL, 0 } };
	const char *why;

	if (mew_cursor_peek(c) != '{') {
		(void)mew_cursor_value(c);
		if (c->state == MEW_CURSOR_FINE)
			refuse(s, number, "it is not an object");
		return;
	}
	if (!read_members(c, &raw))
		return;
	why = read_event(&raw, &e);
	if (why != NULL) {
		refuse(s, number, why);
	} else if (!read_own(s, &e) && grow(events)) {
		e.serial = (uint32_t)events->n;
		events->list[events->n++] = e;
	}
}

/* --- one file --------------------------------------------------------------------------------------------------- */

static void read_array(struct mew_trace_events *events, struct mew_trace_source *s, uint32_t file, struct mew_cursor *c)
{
	bool first = true;

	c->p++;
	for (size_t number = 0; mew_cursor_next(c, ']', &first, NULL); number++) {
		if (*c->p == ']' && number > 0) { /* a comma after the last one: writers that stream leave it */
			c->p++;
			return;
		}
		read_one(events, s, file, c, number);
	}
}

static bool read_object(struct mew_trace_events *events, struct mew_trace_source *s, uint32_t file,
			struct mew_cursor *c)
{
	bool first = true, found = false;
	struct mew_slice key;

	c->p++;
	while (mew_cursor_next(c, '}', &first, &key)) {
		if (mew_slice_is(key, "traceEvents") && *c->p == '[') {
			read_array(events, s, file, c);
			found = true;
		} else {
			(void)mew_cursor_value(c);
		}
	}
	return found;
}

static void repair_utf8(char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes;) {
		size_t n = mew_trace_utf8((const unsigned char *)text + i, bytes - i);

		if (n == 0)
			text[i] = '?';
		i += n > 0 ? n : 1;
	}
}

int mew_trace_load(struct mew_trace_events *events, struct mew_trace_source *s, uint32_t file, struct mew_error *err)
{
	struct mew_cursor c = { s->text, s->text + s->bytes, MEW_CURSOR_FINE };
	size_t before = events->n;
	bool is_array, usable = true;

	if (s->bytes == 0)
		return mew_error_set(err, MEW_E_INVALID, "%s: empty: the disk was full, or its process was stopped",
				     s->name);
	repair_utf8(s->text, s->bytes);
	is_array = mew_cursor_peek(&c) == '[';
	if (is_array)
		read_array(events, s, file, &c);
	else
		usable = mew_cursor_peek(&c) == '{' && read_object(events, s, file, &c);
	s->cut = is_array && c.state == MEW_CURSOR_CUT;
	s->torn = s->cut && s->is_ours && s->text[s->bytes - 1] != '\n';
	if (events->failed)
		return mew_error_set(err, MEW_E_NOMEM, "%s: no memory for its events", s->name);
	if (events->full) {
		events->full = false;
		events->n = before;
		return mew_error_set(err, MEW_E_INVALID, "%s: too many events, %zu fit into a trace", s->name,
				     MEW_TRACE_EVENTS_MAX);
	}
	if (usable && (s->cut || (c.state == MEW_CURSOR_FINE && mew_cursor_peek(&c) == '\0')))
		return MEW_OK;
	events->n = before;
	if (c.state == MEW_CURSOR_FINE)
		return mew_error_set(err, MEW_E_INVALID,
				     "%s: not a trace: neither an array of events nor an object with traceEvents",
				     s->name);
	return mew_error_set(err, MEW_E_INVALID, "%s: malformed JSON at byte %zu", s->name, (size_t)(c.p - s->text));
}

void mew_trace_events_fini(struct mew_trace_events *events)
{
	free(events->list);
	*events = (struct mew_trace_events){ .list = NULL };
}
