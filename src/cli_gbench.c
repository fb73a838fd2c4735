/*
 * cli_gbench.c - `mew run --gbench-program` and `mew list --gbench-program`: programs of Google Benchmark.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli.h"
#include "cli_trace.h"

#include "error.h"
#include "guest_pass.h"
#include "os.h"
#include "select.h"
#include "symbolise.h"

#include <stdio.h>

struct job { /* all programs of a run */
	struct mew_cli *cli;
	struct mew_model *model;
	struct mew_progress *progress;
	const struct mew_select *select;
	size_t chosen;
	bool *ended_badly;
};

/* --- what cannot be asked of a Google Benchmark program ----------------------------------------------------------- */

static int check_flags(const struct mew_cli *c)
{
	const char *flag = c->plan.iterations > 0	  ? "--min-time Nx"
			   : c->plan.latency		  ? "--latency"
			   : c->plan.inner_iterations > 0 ? "--inner-iterations"
			   : c->host.nhooks > 0		  ? "--hook"
			   : c->ntags > 0		  ? "-t"
							  : NULL;

	if (c->jobs > 1) {
		mew_cli_complain("--jobs: a program of Google Benchmark runs its cases in one process, one after the "
				 "other: leave it out");
		return MEW_EXIT_USAGE;
	}
	if (c->allocators != NULL) {
		mew_cli_complain("--allocator does not go with --gbench-program: run it once for each, with "
				 "LD_PRELOAD=libjemalloc.so.2 for example");
		return MEW_EXIT_USAGE;
	}
	if (flag == NULL)
		return MEW_EXIT_FINE;
	mew_cli_complain("%s does not go with --gbench-program: Google Benchmark decides on iterations, and knows no "
			 "tags, hooks and phases", flag);
	return MEW_EXIT_USAGE;
}

/* --- programs ----------------------------------------------------------------------------------------------------- */

static size_t choose(struct mew_guest_job *g, const struct mew_select *select)
{
	size_t n = 0;

	for (size_t i = 0; i < g->host->nnames; i++) {
		g->chosen[i] = mew_select_matches(select, g->host->names[i], NULL, NULL);
		n += g->chosen[i];
	}
	return n;
}

static void run_program(struct job *j, struct mew_guest_job *g)
{
	size_t n = choose(g, j->select), passes = 0;

	j->chosen += n;
	mew_model_take_facts(j->model, g->host->facts);
	for (int pass = 0; pass < MEW_PASSES; pass++)
		passes += j->cli->passes[pass];
	g->steps = passes * n;
	for (int pass = 0; n > 0 && pass < MEW_PASSES && *j->cli->host.cancelled == 0; pass++) {
		uint64_t start = mew_os_now_ns();
		char name[24];

		if (!j->cli->passes[pass])
			continue;
		mew_guest_run_pass(g, (enum mew_pass)pass);
		mew_cli_trace_program(start, g->host->program);
		(void)snprintf(name, sizeof name, "%s pass", g->pass_name);
		mew_cli_trace_since(start, "pass", name, NULL);
	}
	*j->ended_badly = *j->ended_badly || g->ended_badly;
}

static int one_program(struct job *j, const char *program)
{
	struct mew_guest_job g = { 0 };
	struct mew_guest_host host;
	struct mew_error err;
	int code = MEW_EXIT_USAGE, status = mew_guest_open(&host, program, &j->cli->host, &err);

	if (status == MEW_OK && mew_guest_job_init(&g, &host, &j->cli->plan, j->model, j->progress) != 0)
		status = mew_error_set(&err, MEW_E_NOMEM, "no memory for the cases of %s", program);
	if (status == MEW_OK) {
		g.program = program;
		run_program(j, &g);
		code = MEW_EXIT_FINE;
	} else {
		mew_cli_complain("%s", err.text);
	}
	mew_guest_job_fini(&g);
	mew_guest_close(&host);
	return code;
}

int mew_cli_gbench(struct mew_cli *c, struct mew_model *model, struct mew_progress *progress, bool *ended_badly)
{
	struct job j = { .cli = c, .model = model, .progress = progress, .ended_badly = ended_badly };
	struct mew_select select;
	struct mew_error err;
	int code = check_flags(c);

	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_select_init(&select, c->pattern, c->literal, NULL, 0, &err) != MEW_OK) {
		mew_cli_complain("-k: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	j.select = &select;
	for (int i = 0; i < c->nprograms && code == MEW_EXIT_FINE; i++)
		code = one_program(&j, c->programs[i]);
	mew_select_fini(&select);
	mew_progress_clear(progress);
	if (code == MEW_EXIT_FINE && j.chosen == 0) {
		mew_cli_complain("none of the benchmarks matches -k and -F");
		return MEW_EXIT_INVALID;
	}
	return code;
}
