/*
 * plan_case.c - see plan_private.h: what every pass does with a case.
 * Layer L4. The plan's thread.
 */
#include "config.h"

#include "plan_private.h"

#include "error.h"
#include "plan_trace.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t mew_plan_ns(double seconds)
{
	return seconds >= 1e9 ? (uint64_t)1000000000000000000 : (uint64_t)(seconds * 1e9);
}

struct mew_case *mew_plan_row(struct mew_model *m, const struct mew_plan_case *c)
{
	struct mew_case *row = mew_model_case_under(m, c->key, c->program, c->allocator);

	if (row == NULL)
		return NULL;
	row->threads = c->threads; /* what came of a lost worker does not know them */
	if (row->label == NULL) /* a body may have given another */
		row->label = mew_model_string(m, c->label);
	if (row->tags == NULL)
		row->tags = mew_model_string(m, c->tags);
	return row;
}

/* An interrupt takes the block that runs: what was measured before stays. */
static bool is_measured(const struct mew_plan_pass *r, const struct mew_plan_case *c)
{
	const struct mew_case *row = mew_model_case_under(r->model, c->key, c->program, c->allocator);

	for (size_t i = 0; row != NULL && r->pass == MEW_PASS_TIME && i < row->nruns; i++)
		if (row->runs[i].phase == MEW_PHASE_MEASUREMENT_VALUE)
			return true;
	return false;
}

/* Returns the row that failed; NULL for none, as where an interrupt ends the run. */
static struct mew_case *fail(struct mew_plan_pass *r, struct mew_plan_case *c, int status, const char *reason)
{
	struct mew_case *row;

	if (status == MEW_E_BUSY && is_measured(r, c)) {
		r->stopped = true;
		return NULL;
	}
	row = mew_plan_row(r->model, c);
	if (row != NULL)
		mew_model_fail(r->model, row, r->kind, status, reason);
	c->dead = true;
	return row;
}

struct mew_case *mew_plan_block(struct mew_plan_pass *r, struct mew_plan_case *c, const struct mew_request *rq)
{
	struct mew_model *piece = mew_model_new();
	struct mew_case *row = NULL;
	struct mew_error err;
	int status = MEW_E_NOMEM;

	if (piece != NULL) {
		mew_error_clear(&err);
		status = r->d->run(r->d->data, rq, piece, &err);
		for (size_t i = 0; i < piece->ncases; i++) {
			piece->cases[i].program = mew_model_string(piece, c->program);
			piece->cases[i].allocator = mew_model_string(piece, c->allocator);
		}
		if (mew_model_merge(r->model, piece) != 0)
			status = mew_error_set(&err, MEW_E_NOMEM, "no memory for the results of \"%s\"", c->key);
	} else {
		(void)mew_error_set(&err, MEW_E_NOMEM, "no memory for the results of \"%s\"", c->key);
	}
	mew_model_free(piece);
	if (status == MEW_OK)
		row = mew_plan_row(r->model, c);
	else
		(void)fail(r, c, status, err.text);
	return row;
}

bool mew_plan_go_on(struct mew_plan_pass *r, const struct mew_plan_case *c)
{
	if (!r->stopped && r->o->progress != NULL &&
	    !r->o->progress(r->o->progress_data, c, r->pass, r->done, r->total))
		r->stopped = true;
	return !r->stopped && !c->dead;
}

/* A failed row shows what its set-up, body or teardown printed; NULL: none failed. */
static void keep_said(struct mew_plan_pass *r, struct mew_case *failed)
{
	char *said = failed != NULL && r->d->said != NULL ? r->d->said(r->d->data) : NULL;

	if (said != NULL)
		failed->output = mew_model_string(r->model, said);
	free(said);
}

void mew_plan_open_case(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	struct mew_error err;
	int status;

	if (!mew_plan_go_on(r, c))
		return;
	(void)mew_plan_row(r->model, c);
	status = r->d->open(r->d->data, c->item, r->pass, &err);
	c->open = status == MEW_OK;
	if (status != MEW_OK)
		keep_said(r, fail(r, c, status, err.text));
}

void mew_plan_close_case(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	struct mew_error err;
	int status = c->open ? r->d->close(r->d->data, c->item, r->pass, &err) : MEW_OK;

	if (status != MEW_OK && status != MEW_E_BUSY && !c->dead) {
		char text[sizeof err.text + 16];

		(void)snprintf(text, sizeof text, "teardown: %s", err.text);
		keep_said(r, fail(r, c, status, text));
	}
	c->open = false;
}

struct mew_request mew_plan_request(const struct mew_plan_pass *r, const struct mew_plan_case *c, int phase,
				    unsigned repetition)
{
	return (struct mew_request){
		.item = c->item,
		.pass = r->pass,
		.phase = phase,
		.process = r->process,
		.repetition = repetition,
		.plan = { .max_samples = MEW_PLAN_SAMPLES_MAX },
		.interval_ns = mew_plan_ns(r->o->interval),
		.stacks = r->o->stacks,
		.pause_cpu = r->o->pause_cpu,
		.clock = r->o->clock,
	};
}

const struct mew_run *mew_plan_last_run(const struct mew_case *row)
{
	return row->nruns == 0 ? NULL : &row->runs[row->nruns - 1];
}

uint64_t mew_plan_loops(const struct mew_case *row, uint64_t target_ns)
{
	const struct mew_run *last = mew_plan_last_run(row);
	double each, loops;

	if (last == NULL || last->nsamples == 0)
		return 1;
	each = (double)last->real_ns[last->nsamples - 1] / (double)last->loops;
	loops = each > 0 ? (double)target_ns / each : (double)last->loops;
	if (loops > 4 * (double)last->loops) /* it ended for the time that it took, most of which is not measured */
		loops = (double)last->loops;
	if (loops < 1)
		return 1;
	return loops > 1e15 ? (uint64_t)1000000000000000 : (uint64_t)loops;
}

void mew_plan_show_case(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	struct mew_case *row = mew_plan_row(r->model, c);

	if (row != NULL)
		mew_plan_trace_end(r->all, r->nall, c, mew_case_row(row, r->kind));
	if (r->process > 0 && c->calibrated_ns != 0 && c->start_ns != 0) /* in another process, which the worker knows nothing of */
		mew_trace_arrow("calibration", c->calibrated_ns, c->start_ns);
	r->free_ns = c->end_ns;
}

unsigned mew_plan_repetitions(const struct mew_plan_pass *r, const struct mew_plan_case *c)
{
	if (r->o->dry_run || r->pass != MEW_PASS_TIME)
		return 1;
	return c->repetitions != 0 ? c->repetitions : r->o->repetitions;
}
