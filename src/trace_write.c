/*
 * trace_write.c - see trace_write.h.
 * Layer L6. After the measurement.
 */
#include "config.h"

#include "trace_write.h"

#include <stdlib.h>
#include <string.h>

#include "trace_command.h"

static void put_slice(struct mew_writer *w, const char *key, struct mew_slice value)
{
	if (value.n == 0)
		return;
	mew_writef(w, ",\"%s\":", key);
	mew_write_bytes(w, value.p, value.n);
}

static void put_time(struct mew_writer *w, const char *key, int64_t ns)
{
	mew_writef(w, ",\"%s\":%s", key, ns < 0 ? "-" : "");
	mew_write_us(w, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
}

/* Of a process or a thread, which may be part of a command line. What is escaped in it is not cut in pieces. */
static void put_shown_name(struct mew_writer *w, const struct mew_trace_event *e, struct mew_slice name)
{
	char *text = strndup(name.p + 1, name.n - 2), *shown = text != NULL ? mew_trace_shown_name(text) : NULL;

	if (shown != NULL && strcmp(shown, text) == 0)
		put_slice(w, "args", e->args);
	else
		mew_writef(w, ",\"args\":{\"name\":\"%s\"}",
			   shown == NULL || strchr(text, '\\') != NULL ? "***" : shown);
	free(shown);
	free(text);
}

static void put_args(struct mew_writer *w, const struct mew_trace_event *e)
{
	struct mew_slice name = { NULL, 0 };

	if (e->phase == 'M' && (mew_slice_is(e->name, "process_name") || mew_slice_is(e->name, "thread_name")))
		name = mew_slice_member(e->args, "name");
	if (name.n >= 2 && name.p[0] == '"') {
		put_shown_name(w, e, name);
		return;
	}
	if (e->has_start) {
		mew_writef(w, ",\"args\":{\"data\":{\"startTime\":%lld}}", (long long)((e->start_ns + 500) / 1000));
		return;
	}
	if (!e->unfinished) {
		put_slice(w, "args", e->args);
		return;
	}
	mew_write_text(w, ",\"args\":{\"unfinished\":true");
	if (e->args.n > 2) {
		const char *p = e->args.p + 1;

		while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
			p++;
		mew_write_text(w, *p == '}' ? "" : ",");
		mew_write_bytes(w, p, e->args.n - (size_t)(p - e->args.p));
	} else {
		mew_write_char(w, '}');
	}
}

static void put_partner(struct mew_writer *w, const struct mew_trace_event *e)
{
	if (e->phase == 'b' || e->phase == 'e')
		mew_writef(w, ",\"id2\":{\"local\":\"0x%llx\"}", (unsigned long long)e->number);
	else if (e->phase == 'P')
		mew_writef(w, ",\"id\":\"0x%llx\"", (unsigned long long)e->number);
	else if (e->phase == 's' || e->phase == 't' || e->phase == 'f')
		mew_writef(w, ",\"id\":\"0x%llx\"%s", (unsigned long long)e->number,
			   e->phase == 'f' ? ",\"bp\":\"e\"" : "");
	else if (e->flow_in || e->flow_out)
		mew_writef(w, ",\"bind_id\":\"0x%llx\"%s%s", (unsigned long long)e->number,
			   e->flow_in ? ",\"flow_in\":true" : "", e->flow_out ? ",\"flow_out\":true" : "");
}

void mew_trace_write_event(struct mew_writer *w, const struct mew_trace_event *e)
{
	mew_writef(w, "{\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", e->phase, (long long)e->pid, (long long)e->tid);
	put_slice(w, "cat", e->category);
	if (e->category.n == 0 && e->phase != 'M' && e->phase != 'C')
		mew_write_text(w, ",\"cat\":\"other\"");
	put_slice(w, "name", e->name);
	if (e->phase != 'M')
		put_time(w, "ts", e->ts_ns);
	if (e->phase == 'X')
		put_time(w, "dur", e->duration_ns);
	if (e->phase == 'i')
		mew_writef(w, ",\"s\":\"%c\"", e->scope);
	put_partner(w, e);
	put_args(w, e);
	mew_write_char(w, '}');
}
