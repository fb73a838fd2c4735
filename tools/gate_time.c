/*
 * gate_time.c - see gate_time.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_time.h"

#include "cli_trace.h"
#include "error.h"
#include "os.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct longest { /* so far: what the next one must be expected to last */
	uint64_t fresh_ns, case_ns;
};

bool mew_gate_is_cancelled(const struct mew_gate *g)
{
	return g->options->host.cancelled != NULL && *g->options->host.cancelled != 0;
}

static double taken_s(const struct mew_gate *g)
{
	return (double)(mew_os_now_ns() - g->start_ns) / 1e9;
}

double mew_gate_time_left(const struct mew_gate *g)
{
	return g->options->budget == 0 ? (double)INFINITY : g->options->budget - taken_s(g);
}

void mew_gate_stop_clock(struct mew_gate *g)
{
	g->seconds = g->earlier_s + taken_s(g);
}

bool mew_gate_has_time(struct mew_gate *g, uint64_t longest_ns)
{
	if (mew_gate_time_left(g) >= (double)longest_ns / 1e9)
		return true;
	g->out_of_time = true;
	return false;
}

static void remember(uint64_t *longest_ns, uint64_t start_ns)
{
	uint64_t took = mew_os_now_ns() - start_ns;

	if (took > *longest_ns)
		*longest_ns = took;
}

static bool is_open(const struct mew_gate *g, const struct mew_gate_case *c)
{
	return c->stage != MEW_GATE_DECIDED && c->series.n < g->options->pairs;
}

static bool any_open(const struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++)
		if (is_open(g, &g->cases[i]))
			return true;
	return false;
}

/* How long a case waited that is visited now: since its visit before, if others were visited meanwhile. */
static uint64_t queued(const struct mew_gate *g, const struct mew_gate_case *c, uint64_t start_ns)
{
	uint64_t ready = c->seen_ns != 0 ? c->seen_ns : g->start_ns;

	for (size_t i = 0; i < g->ncases; i++)
		if (g->cases[i].seen_ns > ready)
			return start_ns - ready;
	return 0;
}

static void trace_case(const struct mew_gate *g, struct mew_gate_case *c, uint64_t start_ns)
{
	static const char *const stages[] = { "looking", "confirming", "decided" };
	struct mew_trace_args args = { 0 };
	uint64_t waited;

	if (!mew_trace_is_on())
		return;
	waited = queued(g, c, start_ns);
	c->seen_ns = mew_os_now_ns();
	mew_trace_arg_text(&args, "label", c->label);
	if (waited != 0)
		mew_trace_arg_ms(&args, "queue_ms", waited);
	mew_trace_arg_number(&args, "observations", c->series.n);
	mew_trace_arg_text(&args, "state", c->reason != NULL ? "failed" : stages[c->stage]);
	mew_trace_arg_text(&args, "reason", c->reason);
	mew_cli_trace_since(start_ns, "case", c->key, &args);
}

/* What neither side can run here is not compared; what one side alone skips has failed, and what has run before. */
static bool skip(const struct mew_gate_method *m, struct mew_gate_case *c, const struct mew_error *cause)
{
	static const char word[] = "skipped: ";
	const char *why = cause->status == MEW_E_UNSUPPORTED ? strstr(cause->text, word) : NULL;

	if (why == NULL || c->series.n > 0 || !m->skips(m->data, c))
		return false;
	c->is_skipped = true;
	c->stage = MEW_GATE_DECIDED;
	(void)snprintf(c->why, sizeof c->why, "skipped on both sides, so not compared: %.110s", why + strlen(word));
	return true;
}

/* A failure is the case's; only what concerns all of them is returned. */
static int take(struct mew_gate *g, const struct mew_gate_method *m, struct mew_gate_case *c, struct mew_error *err)
{
	struct mew_gate_observation o;
	struct mew_error cause;

	if (m->observe(m->data, c, &o, &cause) != MEW_OK) {
		if (!mew_gate_is_cancelled(g) && !skip(m, c, &cause))
			mew_gate_fail(c, "%s", cause.text);
		return MEW_OK;
	}
	if (mew_gate_observe(&c->series, &o) != 0) {
		mew_gate_fail(c, "no memory for its observations");
		return MEW_OK;
	}
	return mew_gate_look(g, c, g->ncases, err);
}

static int sweep(struct mew_gate *g, const struct mew_gate_method *m, struct mew_progress *progress,
		 struct longest *longest, struct mew_error *err)
{
	uint64_t start = mew_os_now_ns();
	int status = m->fresh != NULL ? m->fresh(m->data, err) : MEW_OK;

	if (status == MEW_OK && m->fresh != NULL)
		g->processes++;
	remember(&longest->fresh_ns, start);
	for (size_t i = 0; i < g->ncases && status == MEW_OK && !mew_gate_is_cancelled(g); i++) {
		struct mew_gate_case *c = &g->cases[i];
		uint64_t case_start = mew_os_now_ns();

		if (!is_open(g, c))
			continue;
		if (!mew_gate_has_time(g, longest->case_ns))
			break;
		mew_progress_show(progress, c, c->key, 0, "gate", c->series.n, g->options->pairs);
		g->processes += m->fresh == NULL;
		status = take(g, m, c, err);
		remember(&longest->case_ns, case_start);
		trace_case(g, c, case_start);
		mew_cli_trace_tick();
	}
	if (m->fresh != NULL)
		mew_cli_trace_since(start, "repetition", "pair of processes", NULL);
	return status;
}

int mew_gate_take_time(struct mew_gate *g, const struct mew_gate_method *method, struct mew_progress *progress,
		       struct mew_error *err)
{
	struct longest longest = { 0, 0 };
	int status = MEW_OK;

	g->start_ns = mew_os_now_ns();
	while (status == MEW_OK && !mew_gate_is_cancelled(g) && any_open(g) &&
	       mew_gate_has_time(g, longest.fresh_ns + longest.case_ns)) {
		status = sweep(g, method, progress, &longest, err);
		mew_gate_stop_clock(g);
		if (status == MEW_OK)
			status = mew_gate_write_samples(g, err);
	}
	mew_gate_stop_clock(g);
	g->interrupted = mew_gate_is_cancelled(g);
	return status;
}
