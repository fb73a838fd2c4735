/*
 * state_access.c - what a body may ask of its state and tell it.
 * Layer L4. Body threads.
 */
#include "config.h"

#include "state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t mew_case_index(const struct mew_state *st)
{
	return st->case_index;
}

const char *mew_case_label(const struct mew_state *st)
{
	return st->case_label;
}

uint64_t mew_iterations(const struct mew_state *st)
{
	return st->completed;
}

unsigned mew_threads(const struct mew_state *st)
{
	return st->block->threads;
}

unsigned mew_thread_index(const struct mew_state *st)
{
	return st->thread;
}

void mew_state_fail(struct mew_state *st, int status, const char *format, ...)
{
	va_list ap;

	if (st->status != MEW_OK || st->skipped)
		return;
	st->status = status;
	va_start(ap, format);
	(void)vsnprintf(st->reason, sizeof st->reason, format, ap);
	va_end(ap);
}

static bool is_amount(struct mew_state *st, const char *call, double value)
{
	if (isfinite(value) && value >= 0)
		return true;
	mew_state_fail(st, MEW_E_INVALID, "%s got a value that is negative or not finite", call);
	return false;
}

void mew_set_bytes(struct mew_state *st, double bytes_per_iteration)
{
	if (is_amount(st, "mew_set_bytes", bytes_per_iteration))
		st->bytes = bytes_per_iteration;
}

void mew_set_items(struct mew_state *st, double items_per_iteration)
{
	if (is_amount(st, "mew_set_items", items_per_iteration))
		st->items = items_per_iteration;
}

void mew_set_iteration_time(struct mew_state *st, double seconds)
{
	if (!is_amount(st, "mew_set_iteration_time", seconds))
		return;
	st->manual = true;
	st->manual_s += seconds;
}

void mew_set_counter(struct mew_state *st, const char *name, double value, unsigned flags)
{
	struct mew_user_counter *c = st->counters;

	if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof c->name) {
		mew_state_fail(st, MEW_E_INVALID, "mew_set_counter needs a name of 1 to %zu bytes", sizeof c->name - 1);
		return;
	}
	if (!isfinite(value)) {
		mew_state_fail(st, MEW_E_INVALID, "counter \"%s\" got a value that is not finite", name);
		return;
	}
	while (c < st->counters + st->ncounters && strcmp(c->name, name) != 0)
		c++;
	if (c == st->counters + MEW_COUNTERS_MAX) {
		mew_state_fail(st, MEW_E_INVALID, "more than %d counters of one thread: \"%s\" is too many",
			       MEW_COUNTERS_MAX, name);
		return;
	}
	if (c == st->counters + st->ncounters)
		st->ncounters++;
	(void)snprintf(c->name, sizeof c->name, "%s", name);
	c->value = value;
	c->flags = flags;
}

void mew_set_label(struct mew_state *st, const char *label)
{
	(void)snprintf(st->label, sizeof st->label, "%s", label != NULL ? label : "");
}

void mew_skip(struct mew_state *st, const char *why)
{
	if (st->status != MEW_OK || st->skipped)
		return;
	st->skipped = true;
	(void)snprintf(st->reason, sizeof st->reason, "skipped: %s",
		       why != NULL && why[0] != '\0' ? why : "no reason given");
}

void mew_fail(struct mew_state *st, const char *why)
{
	mew_state_fail(st, MEW_E_BODY, "%s", why != NULL && why[0] != '\0' ? why : "the body failed without a reason");
}

void mew_fail_exception_(struct mew_state *st, const char *what)
{
	mew_state_fail(st, MEW_E_BODY, "the body threw an exception: %s", what != NULL ? what : "unknown");
}
