/*
 * plan_trace.c - see plan_trace.h.
 * Layer L4. The plan's thread, outside windows.
 */
#include "config.h"

#include "plan_trace.h"

#include <stdio.h>
#include <string.h>

#include "os.h"

bool mew_plan_comes_first(const char *after, const char *key)
{
	size_t n = strlen(after);

	return strncmp(key, after, n) == 0 && (key[n] == '\0' || strncmp(key + n, "/case:", 6) == 0);
}

void mew_plan_trace_begin(const struct mew_plan_case *cases, size_t n, struct mew_plan_case *c, uint64_t free_ns)
{
	uint64_t ready = c->ready_ns;

	c->queued_ns = 0;
	c->start_ns = mew_trace_is_on() ? mew_os_now_ns() : 0;
	if (c->start_ns == 0)
		return;
	for (size_t i = 0; c->after != NULL && i < n; i++)
		if (cases[i].end_ns > ready && mew_plan_comes_first(c->after, cases[i].key))
			ready = cases[i].end_ns;
	if (ready < free_ns) /* else only the bookkeeping lies between */
		c->queued_ns = c->start_ns - ready;
}

void mew_plan_trace_end(const struct mew_plan_case *cases, size_t n, struct mew_plan_case *c,
			const struct mew_row_head *row)
{
	struct mew_trace_args args = { 0 };

	if (c->start_ns == 0)
		return;
	mew_trace_arg_text(&args, "label", c->label);
	mew_trace_arg_number(&args, "threads", c->threads);
	if (c->loops != 0)
		mew_trace_arg_number(&args, "loops", c->loops);
	if (c->queued_ns != 0)
		mew_trace_arg_ms(&args, "queue_ms", c->queued_ns);
	mew_trace_arg_text(&args, "state", c->dead ? mew_status_name(row->status) : "done");
	mew_trace_arg_text(&args, "reason", c->dead ? row->reason : NULL);
	c->end_ns = c->ready_ns = mew_os_now_ns();
	mew_trace_slice(&(struct mew_trace_slice){
		.category = "case", .name = c->key, .start_ns = c->start_ns, .end_ns = c->end_ns, .args = &args });
	for (size_t i = 0; c->after != NULL && i < n; i++)
		if (cases[i].end_ns != 0 && cases[i].end_ns <= c->start_ns &&
		    mew_plan_comes_first(c->after, cases[i].key))
			mew_trace_arrow("after", cases[i].end_ns, c->start_ns);
}

void mew_plan_trace_repetition(const struct mew_plan_case *c, unsigned process, unsigned repetition, uint64_t start_ns)
{
	struct mew_trace_args args = { 0 };
	char name[32];

	if (start_ns == 0)
		return;
	(void)snprintf(name, sizeof name, "repetition %u", repetition);
	mew_trace_arg_text(&args, "case", c->key);
	mew_trace_arg_number(&args, "process", process);
	mew_trace_slice(&(struct mew_trace_slice){
		.category = "repetition", .name = name, .start_ns = start_ns, .end_ns = mew_os_now_ns(),
		.args = &args });
}
