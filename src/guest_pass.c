/*
 * guest_pass.c - see guest_pass.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "guest_pass.h"

#include "cli.h"
#include "cli_trace.h"
#include "error.h"
#include "launch.h"
#include "summarise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define FILTER_MAX ((size_t)60000)  /* libstdc++ takes 100,000 states: one for a character, a few for an alternative */
#define SHORT_PASS 0.01             /* seconds that the memory pass measures: it counts, and needs no more */
#define SHORTEST 1e-9               /* seconds that end with the first iteration */

int mew_guest_job_init(struct mew_guest_job *j, struct mew_guest_host *host, const struct mew_plan_options *plan,
		       struct mew_model *model, struct mew_progress *progress)
{
	bool *flags = calloc(4 * host->nnames + 1, sizeof *flags);

	*j = (struct mew_guest_job){ .host = host, .plan = plan, .model = model, .progress = progress };
	if (flags == NULL)
		return -1;
	j->chosen = flags;
	j->reported = flags + host->nnames;
	j->failed = flags + 2 * host->nnames;
	j->measured = flags + 3 * host->nnames;
	return 0;
}

void mew_guest_job_fini(struct mew_guest_job *j)
{
	free(j->chosen);
	*j = (struct mew_guest_job){ 0 };
}

/* --- results as they come ----------------------------------------------------------------------------------------- */

static enum mew_kind kind_of(const struct mew_guest_job *j)
{
	return mew_pass_kind(j->pass);
}

static bool is_due(const struct mew_guest_job *j, size_t i)
{
	return j->chosen[i] && !j->reported[i];
}

/* The first chosen case that was not reported, which is the one that runs; nnames when there is none. */
static size_t next_case(const struct mew_guest_job *j)
{
	size_t i = 0;

	while (i < j->host->nnames && !is_due(j, i))
		i++;
	return i;
}

static bool drop_unwanted(struct mew_guest_job *j, struct mew_model *piece)
{
	for (size_t i = 0; i < piece->ncases; i++) {
		struct mew_case *c = &piece->cases[i];
		size_t name = mew_guest_find(j->host, c->key);

		if (name == j->host->nnames || !j->chosen[name] || j->failed[name]) /* a failed repetition fails the case */
			return true;
		c->program = mew_model_string(piece, j->program);
		j->done += !j->reported[name];
		j->reported[name] = true;
		j->failed[name] = mew_case_row(c, kind_of(j))->status != MEW_OK;
		j->measured[name] = !j->failed[name];
	}
	return false;
}

static void take(void *data, struct mew_model *piece)
{
	struct mew_guest_job *j = data;
	size_t next = next_case(j);

	if (piece != NULL && !drop_unwanted(j, piece) && mew_model_merge(j->model, piece) != 0)
		mew_cli_complain("no memory for the results of %s", j->host->program);
	mew_cli_trace_tick();
	if (next < j->host->nnames)
		mew_progress_show(j->progress, j->host->names[next], j->host->names[next], (int)j->pass, j->pass_name,
				  j->done, j->steps);
}

static void fail_case(struct mew_guest_job *j, size_t name, int status, const char *reason, char *output)
{
	struct mew_case *c = mew_model_case(j->model, j->host->names[name], j->program);

	j->reported[name] = j->failed[name] = true;
	if (c == NULL)
		return;
	mew_model_fail(j->model, c, kind_of(j), status, reason);
	if (output != NULL)
		c->output = mew_model_string(j->model, output);
}

/* --- a pass ------------------------------------------------------------------------------------------------------- */

/* An expression for what is still to run, as far as it fits: names before *end. NULL without memory. */
static char *make_filter(const struct mew_guest_job *j, size_t *end)
{
	size_t room = 8, n = 0, i;
	char *filter;

	for (i = 0; i < j->host->nnames; i++)
		room += 2 * strlen(j->host->names[i]) + 1;
	filter = malloc(room);
	if (filter == NULL)
		return NULL;
	filter[n++] = '^';
	for (i = 0; i < j->host->nnames && (n == 1 || n + 2 * strlen(j->host->names[i]) < FILTER_MAX); i++) {
		if (!is_due(j, i))
			continue;
		filter[n] = n == 1 ? '(' : '|';
		n++;
		n += mew_guest_escape(filter + n, j->host->names[i]);
	}
	memcpy(filter + n, ")$", 3);
	*end = i;
	return filter;
}

/* Every case of the program is still to run: it needs no filter. */
static bool is_whole(const struct mew_guest_job *j)
{
	size_t i = 0;

	while (i < j->host->nnames && is_due(j, i))
		i++;
	return i == j->host->nnames;
}

static struct mew_guest_request request_of(struct mew_guest_job *j, unsigned process)
{
	static const enum mew_guest_pass passes[] = { MEW_GUEST_TIME, MEW_GUEST_MEMORY, MEW_GUEST_CPU };
	const struct mew_plan_options *o = j->plan;
	bool times = j->pass == MEW_PASS_TIME;
	double min_time = o->dry_run ? SHORTEST : j->pass == MEW_PASS_MEMORY ? SHORT_PASS : o->min_time;

	return (struct mew_guest_request){
		.pass = passes[j->pass],
		.min_time = j->exact ? SHORTEST : min_time,
		.iterations = j->exact ? o->memory_iterations : 0,
		.repetitions = j->exact ? 2 : !times || o->dry_run ? 1 : o->repetitions > 1 ? o->repetitions : 0,
		.interleave = times && o->interleave,
		.stacks = o->stacks,
		.interval_ns = (uint64_t)(o->interval * 1e9),
		.clock = o->clock,
		.process = process,
		.take = take,
		.data = j,
	};
}

/* The process ended. Did it report all names before `named`, who is to blame, and does another one make sense? */
static bool blame(struct mew_guest_job *j, size_t named, enum mew_guest_end end, int wait_status)
{
	char how[96], reason[200], *output;
	size_t name = next_case(j);

	mew_launch_describe(wait_status, how, sizeof how);
	if (end == MEW_GUEST_CANCELLED)
		return false;
	if (name >= named) {
		if (end == MEW_GUEST_ENDED && wait_status != 0) {
			mew_cli_complain("%s: its process %s behind its last benchmark", j->host->program, how);
			j->ended_badly = true;
		}
		return true;
	}
	if (end == MEW_GUEST_TIMED_OUT)
		(void)snprintf(reason, sizeof reason, "did not end within --timeout %g s; its process was killed",
			       j->host->options->timeout);
	else if (j->host->channel->full != 0)
		(void)snprintf(reason, sizeof reason,
			       "the results are too large to hand over; choose fewer cases, or a longer interval");
	else if (wait_status == 0)
		(void)snprintf(reason, sizeof reason, "the program ended, with code 0, and did not report it");
	else
		(void)snprintf(reason, sizeof reason, "the benchmark's process was lost: %s", how);
	output = mew_guest_take_output(j->host);
	fail_case(j, name, j->host->channel->full != 0 ? MEW_E_LOST : MEW_E_BODY, reason, output);
	free(output);
	return true;
}

/* The program cannot be run, or no more: what earlier processes measured stays. */
static void end_rest(struct mew_guest_job *j, unsigned process, const struct mew_error *err)
{
	for (size_t i = next_case(j); i < j->host->nnames; i = next_case(j)) {
		struct mew_case *c = j->measured[i] ? mew_model_case(j->model, j->host->names[i], j->program) : NULL;

		if (!j->measured[i])
			fail_case(j, i, err->status, err->text, NULL);
		else if (c != NULL)
			mew_summarise_fewer(j->model, c, kind_of(j), process, j->plan->processes, err);
		j->ended_badly = j->reported[i] = true;
	}
}

static void tell_untraced(struct mew_guest_job *j)
{
	if (j->host->channel->untraced == 0 || j->told_untraced)
		return;
	mew_cli_complain("trace: %s cannot write its part (did it drop its privileges?), so its loops are missing: run "
			 "mew as the user that it becomes", j->host->program);
	j->told_untraced = true;
}

/* One process, and others for what is left when a case ends it. Returns whether the program could be run. */
static bool run_process(struct mew_guest_job *j, unsigned process)
{
	struct mew_guest_request rq = request_of(j, process);
	enum mew_guest_end end = MEW_GUEST_ENDED;
	bool go_on = true;

	memset(j->reported, 0, j->host->nnames);
	for (size_t i = 0; i < j->host->nnames; i++)
		j->reported[i] = j->failed[i];
	while (go_on && next_case(j) < j->host->nnames) {
		struct mew_error err;
		int wait_status = 0, status = MEW_OK;
		size_t named = j->host->nnames;
		bool whole = is_whole(j);
		char *filter = whole ? NULL : make_filter(j, &named);

		rq.filter = filter;
		if (whole || filter != NULL)
			status = mew_guest_run_process(j->host, &rq, &end, &wait_status, &err);
		else
			status = mew_error_set(&err, MEW_E_NOMEM, "no memory to name its cases to %s", j->host->program);
		free(filter);
		tell_untraced(j);
		if (status != MEW_OK) {
			end_rest(j, process, &err);
			return false;
		}
		go_on = blame(j, named, end, wait_status);
	}
	return true;
}

/* What mew reads around a loop of its own was not read here: no figure is better than a zero. */
static void summarise(struct mew_guest_job *j, size_t name)
{
	static const int unseen[] = { MEW_FIG_CONTEXT_SWITCHES, MEW_FIG_MIGRATIONS, MEW_FIG_PAGE_FAULTS,
				      MEW_FIG_LOOP_OVERHEAD_NS, MEW_FIG_CLOCK_COST_NS };
	struct mew_case *c = mew_model_case(j->model, j->host->names[name], j->program);

	if (j->plan->dry_run) { /* Google Benchmark has no single iteration to offer */
		mew_summarise_dry(j->model, c, "Google Benchmark ran it as shortly as it does");
		return;
	}
	mew_summarise_time(j->model, c, false);
	for (size_t i = 0; c != NULL && i < MEW_COUNTOF(unseen); i++)
		mew_model_absent(j->model, c, MEW_KIND_TIME, unseen[i], "Google Benchmark does not tell it");
}

void mew_guest_run_pass(struct mew_guest_job *j, enum mew_pass pass)
{
	unsigned processes = pass == MEW_PASS_TIME && !j->plan->dry_run ? j->plan->processes : 1;
	const volatile int *cancelled = j->host->options->cancelled;

	j->pass = pass;
	j->pass_name = mew_pass_name(pass);
	memset(j->failed, 0, j->host->nnames);
	memset(j->measured, 0, j->host->nnames);
	for (unsigned i = 0; i < processes && (cancelled == NULL || *cancelled == 0); i++)
		if (!run_process(j, i))
			break;
	for (size_t i = 0; i < j->host->nnames && pass == MEW_PASS_TIME; i++)
		if (j->measured[i] && !j->failed[i])
			summarise(j, i);
}
