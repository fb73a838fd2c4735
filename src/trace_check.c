/*
 * trace_check.c - see trace_check.h. It reads the file as it stands and mends nothing.
 * Layer L6.
 */
#include "config.h"

#include "trace_check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "error.h"
#include "trace_files.h"
#include "trace_profile.h"

#define SAID_MAX 20u
#define FILE_MAX ((size_t)1 << 30)

struct check {
	const struct mew_trace_events *events;
	void (*say)(const char *text);
	size_t faults;
};

static void fault(struct check *c, const struct mew_trace_event *e, const char *format, ...) MEW_PRINTF(3, 4);

static void fault(struct check *c, const struct mew_trace_event *e, const char *format, ...)
{
	char line[300], what[120];
	va_list ap;

	if (c->faults++ >= SAID_MAX)
		return;
	va_start(ap, format);
	(void)vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	(void)snprintf(line, sizeof line, "%.*s at %" PRId64 ".%03d us (pid %" PRId64 ", tid %" PRId64 "): %s",
		       (int)(e->name.n < 80 ? e->name.n : 80), e->name.n > 0 ? e->name.p : "", e->ts_ns / 1000,
		       (int)(e->ts_ns % 1000 < 0 ? -(e->ts_ns % 1000) : e->ts_ns % 1000), e->pid, e->tid, what);
	c->say(line);
}

static int64_t end_of(const struct mew_trace_event *e)
{
	return e->ts_ns + e->duration_ns;
}

/* --- order and times -------------------------------------------------------------------------------------------- */

static void check_order(struct check *c)
{
	int64_t last = INT64_MIN;

	for (size_t i = 0; i < c->events->n; i++) {
		const struct mew_trace_event *e = &c->events->list[i];

		if (e->phase == 'M')
			continue;
		if (e->ts_ns < 0)
			fault(c, e, "it is before zero, and viewers drop it");
		if (e->ts_ns < last)
			fault(c, e, "it stands behind an event of a later time");
		last = e->ts_ns > last ? e->ts_ns : last;
		if (e->phase == 'X' && e->duration_ns == 0)
			fault(c, e, "a slice without length; use an instant");
	}
}

/* --- tracks ----------------------------------------------------------------------------------------------------- */

static int by_track(const void *x, const void *y)
{
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x,
		*b = *(const struct mew_trace_event *const *)y;
	int order = (a->pid > b->pid) - (a->pid < b->pid);

	if (order == 0)
		order = (a->tid > b->tid) - (a->tid < b->tid);
	return order != 0 ? order : (a->serial > b->serial) - (a->serial < b->serial);
}

static void check_nesting(struct check *c, struct mew_trace_event **list, size_t n, int64_t *ends)
{
	size_t depth = 0, begins = 0;
	bool slices = false;

	for (size_t i = 0; i < n; i++) {
		const struct mew_trace_event *e = list[i];

		if (e->phase == 'B') {
			begins++;
		} else if (e->phase == 'E' && begins == 0) {
			fault(c, e, "an end without a begin");
		} else if (e->phase == 'E') {
			begins--;
		} else if (e->phase == 'X') {
			slices = true;
			while (depth > 0 && ends[depth - 1] <= e->ts_ns)
				depth--;
			if (depth > 0 && end_of(e) > ends[depth - 1])
				fault(c, e, "it ends after the slice it began in");
			ends[depth++] = end_of(e);
		}
		if (slices && begins > 0)
			fault(c, e, "slices of both forms (X, and B with E) on one track");
	}
	if (begins > 0)
		fault(c, list[n - 1], "%zu begins without an end", begins);
}

static void check_names(struct check *c, struct mew_trace_event **list, size_t n, bool process)
{
	const struct mew_trace_event *user = NULL;

	for (size_t i = 0; i < n; i++) {
		if (list[i]->phase == 'M' && mew_slice_is(list[i]->name, process ? "process_name" : "thread_name"))
			return;
		if (list[i]->phase != 'M' && (process || strchr("XBEistfP", list[i]->phase) != NULL))
			user = list[i];
	}
	if (user != NULL)
		fault(c, user, process ? "its process has no name" : "its thread has no name");
}

static void check_tracks(struct check *c, struct mew_trace_event **list, int64_t *ends)
{
	size_t n = c->events->n;

	qsort(list, n, sizeof(struct mew_trace_event *), by_track);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && list[end]->pid == list[i]->pid; end++)
			;
		check_names(c, list + i, end - i, true);
		for (size_t k = i, next; k < end; k = next) {
			for (next = k; next < end && list[next]->tid == list[k]->tid; next++)
				;
			check_names(c, list + k, next - k, false);
			check_nesting(c, list + k, next - k, ends);
		}
	}
}

/* --- partners --------------------------------------------------------------------------------------------------- */

static bool is_local(const struct mew_trace_event *e)
{
	return e->has_id2;
}

/* Spans by process where their id is local; arrows in the whole file. */
static int by_partner(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	bool span = a->phase == 'b' || a->phase == 'e', other = b->phase == 'b' || b->phase == 'e';
	int order = (int)span - (int)other;

	if (order == 0)
		order = mew_slice_order(a->id, b->id);
	if (order == 0 && span && (is_local(a) || is_local(b)))
		order = (a->pid > b->pid) - (a->pid < b->pid);
	if (order == 0)
		order = mew_slice_order(a->category, b->category);
	return order != 0 ? order : mew_slice_order(a->name, b->name);
}

static int by_partner_and_place(const void *x, const void *y)
{
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x,
		*b = *(const struct mew_trace_event *const *)y;
	int order = by_partner(a, b);

	return order != 0 ? order : (a->serial > b->serial) - (a->serial < b->serial);
}

static void check_group(struct check *c, struct mew_trace_event **group, size_t n)
{
	size_t open = 0, starts = 0, ends = 0;

	for (size_t i = 0; i < n; i++) {
		switch (group[i]->phase) {
		case 'b':
			if (++open > 1)
				fault(c, group[i], "its id is in use by a span that is open");
			break;
		case 'e':
			if (open == 0)
				fault(c, group[i], "the end of a span that did not begin");
			else
				open--;
			break;
		case 's':
			if (++starts > 1)
				fault(c, group[i], "a second arrow with one id");
			break;
		default:
			if (starts == 0)
				fault(c, group[i], "an arrow that did not start");
			ends += group[i]->phase == 'f';
		}
	}
	if (open > 0)
		fault(c, group[n - 1], "a span without an end");
	if (starts > 0 && ends == 0)
		fault(c, group[n - 1], "an arrow without an end");
}

static int by_bind(const void *x, const void *y)
{
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x,
		*b = *(const struct mew_trace_event *const *)y;

	return mew_slice_order(a->bind, b->bind);
}

static void check_binds(struct check *c, struct mew_trace_event **list)
{
	size_t n = 0;

	for (size_t i = 0; i < c->events->n; i++)
		if (c->events->list[i].flow_in || c->events->list[i].flow_out)
			list[n++] = &c->events->list[i];
	qsort(list, n, sizeof(struct mew_trace_event *), by_bind);
	for (size_t i = 0, end; i < n; i = end) {
		bool in = false, out = false;

		for (end = i; end < n && by_bind(&list[i], &list[end]) == 0; end++) {
			in = in || list[end]->flow_in;
			out = out || list[end]->flow_out;
		}
		if (!in || !out)
			fault(c, list[i], "an arrow with one end (bind_id)");
	}
}

static void check_partners(struct check *c, struct mew_trace_event **list)
{
	size_t n = 0;

	for (size_t i = 0; i < c->events->n; i++)
		if (strchr("bestf", c->events->list[i].phase) != NULL)
			list[n++] = &c->events->list[i];
	qsort(list, n, sizeof(struct mew_trace_event *), by_partner_and_place);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && by_partner(list[i], list[end]) == 0; end++)
			;
		check_group(c, list + i, end - i);
	}
	check_binds(c, list);
}

/* --- profiles --------------------------------------------------------------------------------------------------- */

static int by_profile(const void *x, const void *y)
{
	return mew_trace_profile_order(*(const struct mew_trace_event *const *)x,
				       *(const struct mew_trace_event *const *)y);
}

static void check_profiles(struct check *c, struct mew_trace_event **list)
{
	struct mew_trace_profile *profile = mew_trace_profile_new();
	const char *why;
	size_t n = 0;

	for (size_t i = 0; i < c->events->n; i++)
		if (c->events->list[i].phase == 'P')
			list[n++] = &c->events->list[i];
	qsort(list, n, sizeof(struct mew_trace_event *), by_profile);
	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || list[i]->pid != list[i - 1]->pid ||
			     mew_slice_order(list[i]->id, list[i - 1]->id) != 0;

		why = profile != NULL ? mew_trace_profile_check(profile, list[i], first) :
		      "there is no memory to look at it";
		if (why != NULL)
			fault(c, list[i], "%s", why);
	}
	mew_trace_profile_free(profile);
}

int mew_trace_check(const char *path, void (*say)(const char *text), struct mew_trace_verdict *out,
		    struct mew_error *err)
{
	struct mew_trace_events events = { .n = 0 };
	struct mew_trace_files files = { .n = 0 };
	struct check c = { .events = &events, .say = say };
	int status = mew_trace_files_read(&files, AT_FDCWD, path, FILE_MAX, &events, err);
	struct mew_trace_event **list = calloc(events.n + 1, sizeof(struct mew_trace_event *));
	int64_t *ends = calloc(events.n + 1, sizeof *ends);

	if (status == MEW_OK && (list == NULL || ends == NULL))
		status = mew_error_set(err, MEW_E_NOMEM, "%s: no memory for its events", path);
	if (status == MEW_OK && files.list[0].bad > 0) {
		say(files.list[0].first_bad);
		c.faults += files.list[0].bad;
	}
	if (status == MEW_OK && files.list[0].cut) { /* it was streamed: events stand in the order of their ends */
		mew_trace_sort(&events);
		for (size_t i = 0; i < events.n; i++)
			events.list[i].serial = (uint32_t)i;
	}
	if (status == MEW_OK && list != NULL && ends != NULL) {
		check_order(&c);
		for (size_t i = 0; i < events.n; i++)
			list[i] = &events.list[i];
		check_tracks(&c, list, ends);
		check_partners(&c, list);
		check_profiles(&c, list);
		*out = (struct mew_trace_verdict){ events.n, c.faults, files.list[0].cut };
	}
	free(ends);
	free(list);
	mew_trace_events_fini(&events);
	mew_trace_files_fini(&files);
	return status;
}
