/*
 * cli_gbench.c - `mew run --gbench-program`: a pass over all cases of a program is a process, and another one for those
 * behind a case that ended it.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli.h"

#include "error.h"
#include "guest_host.h"
#include "launch.h"
#include "select.h"
#include "summarise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define FILTER_MAX ((size_t)100000) /* the kernel takes 128 KiB for one text of the environment */
#define SHORT_PASS 0.01             /* seconds that the memory pass measures: it counts, and needs no more */

struct job { /* a pass over a program */
	struct mew_cli *cli;
	struct mew_guest_host *host;
	struct mew_model *model;
	struct mew_progress *progress;
	enum mew_pass pass;
	bool *chosen, *reported, *failed; /* per name */
	size_t done, steps;
	const char *pass_name;
	bool *ended_badly;
};

/* --- what cannot be asked of a Google Benchmark program -------------------------------------------------------------- */

static int check_flags(const struct mew_cli *c)
{
	const char *flag = c->plan.iterations > 0	  ? "--min-time Nx"
			   : c->plan.latency		  ? "--latency"
			   : c->plan.inner_iterations > 0 ? "--inner-iterations"
			   : c->host.nhooks > 0		  ? "--hook"
			   : c->ntags > 0		  ? "-t"
			   : c->trace.file != NULL		  ? "--trace"
							  : NULL;

	if (flag == NULL)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s does not go with --gbench-program: Google Benchmark decides on iterations, and knows no tags, hooks and phases", flag);
	return MEW_EXIT_USAGE;
}

/* --- results as they come ------------------------------------------------------------------------------------------- */

static enum mew_kind kind_of(const struct job *j)
{
	return mew_pass_kind(j->pass);
}

static size_t find_name(const struct job *j, const char *key)
{
	size_t i = 0;

	while (i < j->host->nnames && strcmp(j->host->names[i], key) != 0)
		i++;
	return i;
}

/* The first chosen case that was not reported, which is the one that runs; nnames when there is none. */
static size_t next_case(const struct job *j)
{
	size_t i = 0;

	while (i < j->host->nnames && (!j->chosen[i] || j->reported[i]))
		i++;
	return i;
}

static bool drop_unwanted(struct job *j, struct mew_model *piece)
{
	for (size_t i = 0; i < piece->ncases; i++) {
		struct mew_case *c = &piece->cases[i];
		size_t name = find_name(j, c->key);

		if (name == j->host->nnames || !j->chosen[name] || j->failed[name]) /* a failed repetition fails the case */
			return true;
		c->program = mew_model_string(piece, j->host->program);
		j->done += !j->reported[name];
		j->reported[name] = true;
		j->failed[name] = mew_case_row(c, kind_of(j))->status != MEW_OK;
	}
	return false;
}

static void take(void *data, struct mew_model *piece)
{
	struct job *j = data;
	size_t next = next_case(j);

	if (piece != NULL && !drop_unwanted(j, piece) && mew_model_merge(j->model, piece) != 0)
		mew_cli_complain("no memory for the results of %s", j->host->program);
	if (next < j->host->nnames)
		mew_progress_show(j->progress, j->host->names[next], j->host->names[next], (int)j->pass, j->pass_name, j->done, j->steps);
}

static void fail_case(struct job *j, size_t name, int status, const char *reason, char *output)
{
	struct mew_case *c = mew_model_case(j->model, j->host->names[name], j->host->program);

	j->reported[name] = j->failed[name] = true;
	if (c == NULL)
		return;
	if (c->threads == 0)
		c->threads = 1;
	mew_model_fail(j->model, c, kind_of(j), status, reason);
	if (output != NULL)
		c->output = mew_model_string(j->model, output);
}

/* --- a pass ---------------------------------------------------------------------------------------------------------- */

static size_t put_escaped(char *out, const char *name)
{
	size_t n = 0;

	for (; *name != '\0'; name++) {
		if (strchr(".[]{}()*+?^$|\\", *name) != NULL)
			out[n++] = '\\';
		out[n++] = *name;
	}
	return n;
}

/* An expression for what is still to run; *all when that is everything. NULL without memory, or when it is too long. */
static char *make_filter(const struct job *j, bool *all)
{
	size_t room = 8, n = 0;
	char *filter;

	*all = true;
	for (size_t i = 0; i < j->host->nnames; i++) {
		room += 2 * strlen(j->host->names[i]) + 1;
		*all = *all && j->chosen[i] && !j->reported[i];
	}
	filter = malloc(room);
	if (filter == NULL)
		return NULL;
	filter[n++] = '^';
	for (size_t i = 0; i < j->host->nnames; i++) {
		if (!j->chosen[i] || j->reported[i])
			continue;
		filter[n] = n == 1 ? '(' : '|';
		n++;
		n += put_escaped(filter + n, j->host->names[i]);
	}
	memcpy(filter + n, ")$", 3);
	if (*all || n < FILTER_MAX)
		return filter;
	free(filter);
	return NULL;
}

static struct mew_guest_request request_of(struct job *j, unsigned process)
{
	static const enum mew_guest_pass passes[] = { MEW_GUEST_TIME, MEW_GUEST_MEMORY, MEW_GUEST_CPU };
	const struct mew_plan_options *o = &j->cli->plan;
	bool times = j->pass == MEW_PASS_TIME;

	return (struct mew_guest_request){
		.pass = passes[j->pass],
		.min_time = o->dry_run ? 1e-9 : j->pass == MEW_PASS_MEMORY ? SHORT_PASS : o->min_time,
		.repetitions = !times || o->dry_run ? 1 : o->repetitions > 1 ? o->repetitions : 0,
		.interleave = times && o->interleave,
		.stacks = o->stacks,
		.interval_ns = (uint64_t)(o->interval * 1e9),
		.clock = o->clock,
		.process = process,
		.take = take,
		.data = j,
	};
}

/* The process ended before it reported all: who is to blame, and does another one make sense? */
static bool blame(struct job *j, enum mew_guest_end end, int wait_status)
{
	char how[96], reason[200], *output;
	size_t name = next_case(j);

	mew_launch_describe(wait_status, how, sizeof how);
	if (end == MEW_GUEST_CANCELLED)
		return false;
	if (name == j->host->nnames) {
		if (end == MEW_GUEST_ENDED && wait_status != 0) {
			mew_cli_complain("%s: its process %s behind its last benchmark", j->host->program, how);
			*j->ended_badly = true;
		}
		return false;
	}
	if (end == MEW_GUEST_TIMED_OUT)
		(void)snprintf(reason, sizeof reason, "did not end within --timeout %g s; its process was killed", j->cli->host.timeout);
	else if (j->host->channel->full != 0)
		(void)snprintf(reason, sizeof reason, "the results are too large to hand over; choose fewer cases, or a longer interval");
	else if (wait_status == 0)
		(void)snprintf(reason, sizeof reason, "the program ended, with code 0, and did not report it");
	else
		(void)snprintf(reason, sizeof reason, "the benchmark's process was lost: %s", how);
	output = mew_guest_take_output(j->host);
	fail_case(j, name, j->host->channel->full != 0 ? MEW_E_LOST : MEW_E_BODY, reason, output);
	free(output);
	return true;
}

static void fail_rest(struct job *j, const struct mew_error *err)
{
	for (size_t i = next_case(j); i < j->host->nnames; i = next_case(j))
		fail_case(j, i, err->status, err->text, NULL);
}

static void run_process(struct job *j, unsigned process)
{
	struct mew_guest_request rq = request_of(j, process);
	enum mew_guest_end end = MEW_GUEST_ENDED;
	bool go_on = true;

	memset(j->reported, 0, j->host->nnames);
	for (size_t i = 0; i < j->host->nnames; i++)
		j->reported[i] = j->failed[i];
	while (go_on && next_case(j) < j->host->nnames) {
		struct mew_error err;
		int wait_status = 0, status;
		bool all;
		char *filter = make_filter(j, &all);

		rq.filter = all ? NULL : filter;
		status = filter != NULL ? mew_guest_run_process(j->host, &rq, &end, &wait_status, &err) :
					  mew_error_set(&err, MEW_E_INVALID, "too many cases are chosen to name them all: choose fewer, or all");
		free(filter);
		if (status != MEW_OK)
			fail_rest(j, &err);
		go_on = status == MEW_OK && blame(j, end, wait_status);
	}
}

/* What mew reads around a loop of its own was not read here: no figure is better than a zero. */
static void summarise(struct job *j, size_t name)
{
	static const int unseen[] = { MEW_FIG_CONTEXT_SWITCHES, MEW_FIG_MIGRATIONS, MEW_FIG_PAGE_FAULTS, MEW_FIG_LOOP_OVERHEAD_NS,
				      MEW_FIG_CLOCK_COST_NS };
	struct mew_case *c = mew_model_case(j->model, j->host->names[name], j->host->program);

	mew_summarise_time(j->model, c, false);
	for (size_t i = 0; c != NULL && i < MEW_COUNTOF(unseen); i++)
		mew_model_absent(j->model, c, MEW_KIND_TIME, unseen[i], "Google Benchmark does not tell it");
}

static void run_pass(struct job *j)
{
	unsigned processes = j->pass == MEW_PASS_TIME && !j->cli->plan.dry_run ? j->cli->plan.processes : 1;

	memset(j->failed, 0, j->host->nnames);
	for (unsigned i = 0; i < processes && *j->cli->host.cancelled == 0; i++)
		run_process(j, i);
	for (size_t i = 0; i < j->host->nnames && j->pass == MEW_PASS_TIME; i++)
		if (j->chosen[i] && j->reported[i] && !j->failed[i])
			summarise(j, i);
}

/* --- programs -------------------------------------------------------------------------------------------------------- */

static size_t choose(struct job *j, const struct mew_select *select)
{
	size_t n = 0;

	for (size_t i = 0; i < j->host->nnames; i++) {
		j->chosen[i] = mew_select_matches(select, j->host->names[i], NULL, NULL);
		n += j->chosen[i];
	}
	return n;
}

static void run_program(struct job *j, const struct mew_select *select, size_t *chosen)
{
	static const char *const names[MEW_PASSES] = { "time", "memory", "CPU" };
	size_t n = choose(j, select), passes = 0;

	*chosen += n;
	for (size_t i = 0; i < j->host->facts->nfacts; i++)
		(void)mew_model_add_fact(j->model, j->host->facts->facts[i].name, j->host->facts->facts[i].value);
	for (int pass = 0; pass < MEW_PASSES; pass++)
		passes += j->cli->passes[pass];
	j->steps = passes * n;
	for (int pass = 0; n > 0 && pass < MEW_PASSES && *j->cli->host.cancelled == 0; pass++) {
		if (!j->cli->passes[pass])
			continue;
		j->pass = (enum mew_pass)pass;
		j->pass_name = names[pass];
		run_pass(j);
	}
}

static int one_program(struct job *j, const char *program, const struct mew_select *select, size_t *chosen)
{
	struct mew_guest_host host;
	struct mew_error err;
	int code = MEW_EXIT_USAGE, status = mew_guest_open(&host, program, &j->cli->host, &err);
	bool *flags = status == MEW_OK ? calloc(3 * host.nnames, sizeof *flags) : NULL;

	if (status == MEW_OK && flags == NULL)
		(void)mew_error_set(&err, MEW_E_NOMEM, "no memory for the cases of %s", program);
	if (flags != NULL) {
		/* cppcheck-suppress autoVariables ; taken away below */
		j->host = &host;
		j->chosen = flags;
		j->reported = flags + host.nnames;
		j->failed = flags + 2 * host.nnames;
		j->done = 0;
		run_program(j, select, chosen);
		j->host = NULL;
		code = MEW_EXIT_FINE;
	} else {
		mew_cli_complain("%s", err.text);
	}
	free(flags);
	mew_guest_close(&host);
	return code;
}

int mew_cli_gbench(struct mew_cli *c, struct mew_model *model, struct mew_progress *progress, bool *ended_badly)
{
	struct job j = { .cli = c, .model = model, .progress = progress, .ended_badly = ended_badly };
	struct mew_select select;
	struct mew_error err;
	size_t chosen = 0;
	int code = check_flags(c);

	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_select_init(&select, c->pattern, c->literal, NULL, 0, &err) != MEW_OK) {
		mew_cli_complain("-k: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	for (int i = 0; i < c->nprograms && code == MEW_EXIT_FINE; i++)
		code = one_program(&j, c->programs[i], &select, &chosen);
	mew_select_fini(&select);
	mew_progress_clear(progress);
	if (code == MEW_EXIT_FINE && chosen == 0) {
		mew_cli_complain("none of the benchmarks matches -k and -F");
		return MEW_EXIT_INVALID;
	}
	return code;
}
