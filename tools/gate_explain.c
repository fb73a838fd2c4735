/*
 * gate_explain.c - see gate_explain.h: a CPU pass and a memory pass of each side, and the page over both.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_explain.h"

#include "cli.h"
#include "error.h"
#include "gate_files.h"
#include "gate_time.h"
#include "os.h"
#include "output.h"
#include "plan.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define FIRST_S 1.0 /* that the passes over a case take at least, until one was seen */

struct explain {
	struct mew_gate *g;
	struct mew_host host[MEW_SIDES];
	bool open[MEW_SIDES];
	double longest_s; /* so far, over one case */
	size_t wanted, done;
	bool nothing_worse; /* then who names a page gets one of all cases */
};

static bool got_worse(const struct mew_gate_case *c)
{
	for (size_t i = 0; i < c->nverdicts; i++)
		if (c->verdicts[i].outcome == MEW_OUTCOME_REGRESSED)
			return true;
	return false;
}

static bool nothing_got_worse(const struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++)
		if (got_worse(&g->cases[i]))
			return false;
	return true;
}

/* Without --html a page is for what got worse; who names one gets one. */
static bool is_wanted(const struct explain *e, const struct mew_gate_case *c)
{
	return c->reason == NULL && !c->is_skipped &&
	       (got_worse(c) || (e->g->options->html != NULL && e->nothing_worse));
}

static bool has_time(const struct explain *e)
{
	return mew_gate_time_left(e->g) >= (e->done == 0 ? FIRST_S : e->longest_s);
}

/* --- one case --------------------------------------------------------------------------------------------------- */

static int profile(struct explain *e, const struct mew_gate_case *c, enum mew_side side, enum mew_pass pass,
		   struct mew_error *err)
{
	struct mew_host *h = &e->host[side];
	struct mew_driver d = mew_host_driver(h);
	struct mew_plan_case one = {
		.item = c->pair.item[side], .key = c->key, .label = c->label, .threads = c->pair.threads,
		.iterations = h->cases[c->pair.item[side]].iterations,
	};
	struct mew_plan_options o;
	int status;

	mew_plan_defaults(&o);
	o.stacks = true;
	if (e->g->options->memory_iterations > 0)
		o.memory_iterations = e->g->options->memory_iterations;
	status = mew_host_begin_pass(h, pass, err);
	return status == MEW_OK ? mew_plan_run(&d, &one, 1, pass, &o, e->g->profiles[side], err) : status;
}

/* Both sides one after the other, so that what the machine does in this second falls on both. */
static int profile_case(struct explain *e, const struct mew_gate_case *c, struct mew_error *err)
{
	static const enum mew_pass passes[] = { MEW_PASS_CPU, MEW_PASS_MEMORY };
	uint64_t start = mew_os_now_ns();
	int status = MEW_OK;
	double took;

	for (size_t i = 0; i < MEW_COUNTOF(passes); i++)
		for (enum mew_side side = MEW_BASE;
		     side < MEW_SIDES && status == MEW_OK && !mew_gate_is_cancelled(e->g); side++)
			if (passes[i] == MEW_PASS_CPU || e->g->options->memory_iterations > 0)
				status = profile(e, c, side, passes[i], err);
	took = (double)(mew_os_now_ns() - start) / 1e9;
	if (took > e->longest_s)
		e->longest_s = took;
	e->done += status == MEW_OK;
	return status;
}

static int profile_all(struct explain *e, struct mew_error *err)
{
	struct mew_gate *g = e->g;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		int status = mew_host_open(&e->host[side], g->options->programs[side], &g->options->host, err);

		e->open[side] = true;
		g->profiles[side] = mew_model_new();
		if (status == MEW_OK && g->profiles[side] == NULL)
			status = mew_error_set(err, MEW_E_NOMEM, "no memory for profiles");
		if (status != MEW_OK)
			return status;
		mew_model_take_facts(g->profiles[side], g->models[side]);
	}
	for (size_t i = 0; i < g->ncases && !mew_gate_is_cancelled(g) && has_time(e); i++) {
		int status = is_wanted(e, &g->cases[i]) ? profile_case(e, &g->cases[i], err) : MEW_OK;

		if (status != MEW_OK)
			return status;
	}
	return MEW_OK;
}

/* --- the page --------------------------------------------------------------------------------------------------- */

static int write_page(struct mew_gate *g, struct mew_error *err)
{
	struct mew_report_input in = { 0 };
	int status = MEW_OK;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++)
		status = mew_session_finish(g->profiles[side], NULL, err);
	if (status != MEW_OK)
		return status;
	in.model = g->profiles[MEW_HEAD];
	in.base = g->profiles[MEW_BASE];
	if (g->options->html != NULL)
		(void)snprintf(g->html, sizeof g->html, "%s", g->options->html);
	else
		(void)snprintf(g->html, sizeof g->html, "%s/" MEW_GATE_PAGE, g->options->output);
	status = mew_output_report(mew_report_find("html"), &in, g->html, err);
	if (status == MEW_OK && !g->options->quiet)
		(void)fprintf(stderr, "wrote %s\n", g->html);
	return status;
}

/* Why some cases are not in the page, or all are not. */
static void say_what_is_missing(struct explain *e, int status, const struct mew_error *err)
{
	char *text = e->g->unexplained;
	size_t size = sizeof e->g->unexplained;

	if (status != MEW_OK)
		(void)snprintf(text, size, "%.240s", err->text);
	else if (mew_gate_is_cancelled(e->g))
		(void)snprintf(text, size, "it was interrupted");
	else if (e->done < e->wanted)
		(void)snprintf(text, size, "the time that --budget gives was spent, %zu of %zu cases were profiled",
			       e->done, e->wanted);
}

static bool is_possible(const struct mew_gate *g)
{
	return g->options->plan == NULL && !g->options->gbench && g->machines == 0 && g->identity[0] == '\0' &&
	       !g->interrupted;
}

static void close_all(struct explain *e)
{
	struct mew_gate *g = e->g;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		if (e->open[side])
			mew_host_close(&e->host[side]);
		if (g->html[0] == '\0') {
			mew_model_free(g->profiles[side]);
			g->profiles[side] = NULL;
		}
	}
}

void mew_gate_explain(struct mew_gate *g)
{
	struct explain e = { .g = g, .nothing_worse = nothing_got_worse(g) };
	struct mew_error err;
	int status;

	if (g->options->html == NULL && g->options->output == NULL)
		return;
	for (size_t i = 0; i < g->ncases; i++)
		e.wanted += is_wanted(&e, &g->cases[i]);
	if (e.wanted == 0 || !is_possible(g)) {
		if (e.wanted > 0 && g->options->gbench)
			(void)snprintf(g->unexplained, sizeof g->unexplained,
				       "the gate profiles no programs of Google Benchmark: mew run --gbench-program "
				       "--all --json does, for mew report");
		else if (g->options->html != NULL)
			(void)snprintf(g->unexplained, sizeof g->unexplained, "%s",
				       is_possible(g) ? "no case could be compared" :
				       "only programs that were measured here, from the start to the end, are profiled");
	} else {
		status = profile_all(&e, &err);
		if (status == MEW_OK && e.done > 0) {
			status = write_page(g, &err);
			if (status != MEW_OK)
				g->html[0] = '\0';
		}
		say_what_is_missing(&e, status, &err);
		close_all(&e);
	}
	if (g->unexplained[0] != '\0' && !g->options->quiet)
		mew_cli_complain("flame graphs: %s", g->unexplained);
}
