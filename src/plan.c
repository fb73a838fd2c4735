/*
 * plan.c - the order of blocks. Every sequence (repetitions, interleaving, fresh processes) is an order of the same
 * request. Layer L4. Runner thread, or the command's.
 */
#include "config.h"

#include "plan.h"

#include "error.h"
#include "os.h"
#include "plan_private.h"
#include "plan_trace.h"
#include "summarise.h"

void mew_plan_defaults(struct mew_plan_options *o)
{
	*o = (struct mew_plan_options){
		.max_time = 0.5,
		.min_warmup_time = 0.01,
		.precision = 0.01,
		.repetitions = 1,
		.processes = 1,
		.memory_iterations = 100,
		.stacks = true,
		.interval = 0.0001,
	};
}

static void one_process(struct mew_plan_pass *r)
{
	if (r->pass == MEW_PASS_TIME && r->o->interleave) {
		mew_plan_time_interleaved(r);
		return;
	}
	for (size_t i = 0; i < r->n && !r->stopped; i++) {
		mew_plan_trace_begin(r->all, r->nall, &r->cases[i], r->free_ns);
		if (r->pass == MEW_PASS_TIME)
			mew_plan_time_case(r, &r->cases[i]);
		else if (r->pass == MEW_PASS_MEMORY)
			mew_plan_memory_case(r, &r->cases[i]);
		else
			mew_plan_cpu_case(r, &r->cases[i]);
		mew_plan_show_case(r, &r->cases[i]);
	}
}

static void summarise(struct mew_plan_pass *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct mew_case *row = r->cases[i].dead ? NULL : mew_plan_row(r->model, &r->cases[i]);

		if (row != NULL && r->pass == MEW_PASS_TIME && r->o->dry_run)
			mew_summarise_dry(r->model, row, "it ran once");
		else if (row != NULL && r->pass == MEW_PASS_TIME)
			mew_summarise_time(r->model, row, r->o->latency);
		row = row != NULL ? mew_plan_row(r->model, &r->cases[i]) : NULL;
		if (row != NULL && row->left_threads)
			mew_summarise_note(r->model, row, r->kind,
					   "it left threads running behind it; join them in the body");
	}
}

int mew_plan_run(const struct mew_driver *d, struct mew_plan_case *cases, size_t n, enum mew_pass pass,
		 const struct mew_plan_options *o, struct mew_model *model, struct mew_error *err)
{
	struct mew_plan_pass r = { .d = d, .cases = cases, .n = n, .pass = pass, .kind = mew_pass_kind(pass), .o = o,
				   .model = model,
				   .all = o->all != NULL ? o->all : cases, .nall = o->all != NULL ? o->nall : n,
				   .free_ns = o->free_ns };
	uint64_t now = mew_os_now_ns();
	unsigned processes = pass == MEW_PASS_TIME && d->renew != NULL && !o->dry_run ? o->processes : 1;
	unsigned first = o->one_process && o->process < processes ? o->process : 0,
		end = o->one_process ? first + 1 : processes;

	if (r.free_ns == 0)
		r.free_ns = now;
	for (size_t i = 0; i < n; i++) {
		cases[i].open = false;
		cases[i].start_ns = cases[i].end_ns = 0;
		r.total += mew_plan_repetitions(&r, &cases[i]) * (end - first);
		if (first == 0) {
			cases[i].dead = false;
			cases[i].loops = cases[i].calibrated_ns = 0;
			cases[i].ready_ns = o->ready_ns != 0 ? o->ready_ns : now;
		}
	}
	for (r.process = first; r.process < end && !r.stopped; r.process++) {
		int status = r.process == first ? MEW_OK : d->renew(d->data, err);

		if (status == MEW_OK) {
			one_process(&r);
		} else if (status == MEW_E_BUSY) {
			r.stopped = true;
		} else {
			summarise(&r);
			return status;
		}
	}
	if (end == processes || r.stopped)
		summarise(&r);
	if (r.stopped)
		return mew_error_set(err, MEW_E_BUSY, "interrupted");
	return MEW_OK;
}

void mew_plan_end(struct mew_plan_case *c, const struct mew_plan_options *o, struct mew_model *model)
{
	struct mew_plan_pass r = { .cases = c, .n = 1, .pass = MEW_PASS_TIME, .kind = MEW_KIND_TIME, .o = o,
				   .model = model };
	struct mew_case *row = mew_plan_row(model, c);

	if (row != NULL && row->nruns > 0 && !mew_case_has(row, MEW_KIND_TIME))
		summarise(&r);
}

/* --- this process ----------------------------------------------------------------------------------------------- */

static int direct_open(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	return mew_runner_open(data, item, pass, err);
}

static int direct_run(void *data, const struct mew_request *rq, struct mew_model *out, struct mew_error *err)
{
	return mew_runner_run(data, rq, out, err);
}

static int direct_close(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	(void)err;
	mew_runner_close(data, item, pass);
	return MEW_OK;
}

struct mew_driver mew_driver_direct(struct mew_runner *r)
{
	return (struct mew_driver){ .data = r, .open = direct_open, .run = direct_run, .close = direct_close };
}
