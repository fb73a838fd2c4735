/*
 * cli_passes.c - the passes of `mew run`: programs one after the other, allocators by turns.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_private.h"

#include "cli_trace.h"
#include "error.h"
#include "os.h"
#include "summarise.h"

#include <stdio.h>

size_t mew_cli_allocators(const struct mew_cli_run *r)
{
	return r->allocators.n > 0 ? r->allocators.n : 1;
}

const struct mew_named_allocator *mew_cli_allocator(const struct mew_cli_run *r, size_t host)
{
	return r->allocators.n > 0 ? &r->allocators.list[host % r->allocators.n] : NULL;
}

size_t mew_cli_steps(const struct mew_cli_run *r, size_t i, enum mew_pass pass)
{
	return r->ncases[i] * (pass == MEW_PASS_TIME ? (size_t)r->cli->plan.repetitions * r->cli->plan.processes : 1);
}

bool mew_cli_show(struct mew_cli_run *r, const struct mew_plan_case *c, enum mew_pass pass, size_t steps)
{
	mew_cli_trace_tick();
	mew_progress_show(&r->progress, c, c->key, (int)pass, mew_pass_name(pass), steps, r->steps);
	return !mew_cli_interrupted();
}

bool mew_cli_progress(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total)
{
	struct mew_cli_run *r = data;

	(void)total;
	mew_cli_lanes_end(r, true);
	return mew_cli_show(r, c, pass, r->steps_before + done);
}

/* Its program is gone, say: figures of the processes until then stay, and are fewer than was asked for. */
static void note_fewer(struct mew_cli_run *r, struct mew_case *row, const struct mew_error *err)
{
	mew_summarise_fewer(r->model, row, MEW_KIND_TIME, row->time.processes, r->cli->plan.processes, err);
	r->cut_short = true;
}

/* A pass that cannot start, or go on, fails those of n cases that it has not measured, with the reason; not the run. */
static void fail_pass(struct mew_cli_run *r, const struct mew_plan_case *cases, size_t n, enum mew_pass pass,
		      const struct mew_error *err)
{
	enum mew_kind kind = mew_pass_kind(pass);

	for (size_t k = 0; k < n; k++) {
		struct mew_case *row = mew_plan_row(r->model, &cases[k]);

		if (row != NULL && !mew_case_has(row, kind))
			mew_model_fail(r->model, row, kind, err->status, err->text);
		else if (row != NULL && pass == MEW_PASS_TIME && row->time.status == MEW_OK)
			note_fewer(r, row, err);
	}
}

/* What the plan is to know of the time that cases waited for those of other programs. */
static struct mew_plan_options plan_of(struct mew_cli_run *r)
{
	struct mew_plan_options plan = r->cli->plan;

	plan.ready_ns = r->pass_ns;
	if (r->pass_ns == 0)
		r->pass_ns = mew_os_now_ns();
	return plan;
}

/* One program's part of a pass. */
static void run_program(struct mew_cli_run *r, size_t i, enum mew_pass pass)
{
	struct mew_driver driver = mew_host_driver(&r->hosts[i]);
	uint64_t start = mew_os_now_ns();
	struct mew_plan_options plan;
	struct mew_error err;
	int status = mew_host_begin_pass(&r->hosts[i], pass, &err);

	plan = plan_of(r);
	if (status == MEW_OK)
		status = mew_plan_run(&driver, r->cases[i], r->ncases[i], pass, &plan, r->model, &err);
	if (status != MEW_OK && !mew_cli_interrupted())
		fail_pass(r, r->cases[i], r->ncases[i], pass, &err);
	mew_cli_trace_program(start, r->hosts[i].program);
	r->steps_before += mew_cli_steps(r, i, pass);
}

/* Its program cannot be run under the allocator, or no more: there are no further processes of the case. */
static void end_under(struct mew_cli_run *r, struct mew_plan_case *c, enum mew_pass pass, const struct mew_error *err)
{
	if (pass == MEW_PASS_TIME)
		mew_plan_end(c, &r->cli->plan, r->model);
	fail_pass(r, c, 1, pass, err);
	c->dead = true;
}

/* A block of one case under one allocator: of timing, one process of several. */
static void run_under(struct mew_cli_run *r, size_t host, size_t item, enum mew_pass pass, unsigned process)
{
	struct mew_driver driver = mew_host_driver(&r->hosts[host]);
	struct mew_plan_case *c = &r->cases[host][item];
	struct mew_plan_options plan;
	struct mew_error err;
	int status;

	if (process > 0 && c->dead) {
		r->steps_before += r->cli->plan.repetitions;
		return;
	}
	status = mew_host_begin_pass(&r->hosts[host], pass, &err);
	plan = plan_of(r);
	plan.free_ns = r->visited_ns;
	plan.all = r->cases[host];
	plan.nall = r->ncases[host];
	plan.one_process = pass == MEW_PASS_TIME;
	plan.process = process;
	if (status == MEW_OK)
		status = mew_plan_run(&driver, c, 1, pass, &plan, r->model, &err);
	if (status != MEW_OK && !mew_cli_interrupted())
		end_under(r, c, pass, &err);
	if (c->end_ns > r->visited_ns) /* not one that failed before its visit */
		r->visited_ns = c->end_ns;
	r->steps_before += pass == MEW_PASS_TIME ? plan.repetitions : 1;
}

/*
 * The allocators take turns in every case, each in a process of its own and each time another one first, so that what
 * disturbs the machine disturbs all of them.
 */
static void run_allocators(struct mew_cli_run *r, size_t program, enum mew_pass pass)
{
	size_t n = r->allocators.n, first = program * n;
	unsigned processes = pass == MEW_PASS_TIME && !r->cli->plan.dry_run ? r->cli->plan.processes : 1;

	for (size_t item = 0; item < r->ncases[first] && !mew_cli_interrupted(); item++) {
		for (unsigned process = 0; process < processes; process++)
			for (size_t k = 0; k < n && !mew_cli_interrupted(); k++)
				run_under(r, first + (k + process) % n, item, pass, process);
		for (size_t k = 0; k < n && pass == MEW_PASS_TIME && mew_cli_interrupted(); k++)
			mew_plan_end(&r->cases[first + k][item], &r->cli->plan, r->model);
	}
}

static void run_pass(struct mew_cli_run *r, enum mew_pass pass)
{
	r->pass_ns = r->visited_ns = 0;
	for (size_t i = 0; i < r->nhosts && !mew_cli_interrupted(); i += mew_cli_allocators(r)) {
		if (r->allocators.n > 0)
			run_allocators(r, i / r->allocators.n, pass);
		else if (r->ncases[i] > 0)
			run_program(r, i, pass);
	}
}

void mew_cli_passes(struct mew_cli_run *r)
{
	for (int pass = 0; pass < MEW_PASSES; pass++) {
		uint64_t start = mew_os_now_ns();
		char name[24];

		if (!r->cli->passes[pass] || (pass == MEW_PASS_MEMORY && mew_cli_lanes_begin(r)))
			continue;
		run_pass(r, (enum mew_pass)pass);
		(void)snprintf(name, sizeof name, "%s pass", mew_pass_name(pass));
		mew_cli_trace_since(start, "pass", name, NULL);
	}
	mew_cli_lanes_end(r, false);
	mew_progress_clear(&r->progress);
}
