/*
 * runner.c - one block of one case: hooks, backend, threads, body, verdict on how it went.
 * Layer L4. Runner thread; benchmark threads live only inside mew_body_call().
 */
#include "config.h"

#include "runner.h"

#include "body.h"
#include "entry_call.h"
#include "error.h"
#include "os.h"
#include "phases.h"
#include "registry.h"
#include "runner_put.h"
#include "sink.h"
#include "trace_log.h"
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mew_open_case {
	struct mew_open_case *next;
	uint32_t item;
	enum mew_pass pass;
	struct mew_phases phases;
	uint64_t opened_ns, calibrated_ns; /* on the timeline: an arrow leads from its calibration to its measurements */
};

void mew_runner_init(struct mew_runner *r, const struct mew_catalogue *catalogue, const struct mew_hook *const *hooks,
		     size_t nhooks)
{
	*r = (struct mew_runner){ .catalogue = catalogue, .hooks = hooks, .nhooks = nhooks };
}

static struct mew_open_case **find_open(struct mew_runner *r, uint32_t item, enum mew_pass pass)
{
	struct mew_open_case **at = &r->open;

	while (*at != NULL && ((*at)->item != item || (*at)->pass != pass))
		at = &(*at)->next;
	return at;
}

const char *mew_pass_name(enum mew_pass pass)
{
	static const char *const names[MEW_PASSES] = { "time", "memory", "CPU" };

	return names[pass];
}

/* --- the timeline ----------------------------------------------------------------------------------------------- */

static void trace_since(uint64_t start_ns, const char *category, const char *name, const char *key)
{
	struct mew_trace_args args = { 0 };

	if (!mew_trace_is_on())
		return;
	mew_trace_arg_text(&args, "case", key);
	mew_trace_slice(&(struct mew_trace_slice){
		.category = category, .name = name, .start_ns = start_ns, .end_ns = mew_os_now_ns(), .args = &args });
}

/* A worker serves one pass: its process is called after it. */
static void trace_pass(enum mew_pass pass)
{
	static bool named;
	char name[120];

	if (named || !mew_trace_is_on() || !mew_worker_is_running())
		return;
	named = true;
	(void)snprintf(name, sizeof name, "%s (%s pass)", program_invocation_short_name, mew_pass_name(pass));
	mew_trace_process(name, 1 + (int)pass);
}

static uint64_t iterations_of(const struct mew_case *row)
{
	uint64_t n = 0;

	for (size_t i = 0; i < row->nruns; i++)
		n += row->runs[i].loops * row->runs[i].nsamples;
	return n;
}

static void trace_samples(const struct mew_case *row)
{
	uint64_t now = mew_os_now_ns();

	mew_trace_counter("samples", "kept", now, row->cpu.sample_count);
	mew_trace_counter("samples lost", "lost", now, row->cpu.lost);
}

/* A block: its phase, and the arrow from the calibration that found its loops. */
static void trace_block(struct mew_open_case *open, const struct mew_request *rq, const struct mew_case *row,
			uint64_t start_ns, int status)
{
	struct mew_trace_args args = { 0 };
	struct mew_trace_slice s = { .category = "phase", .name = mew_phase_name(rq->phase), .start_ns = start_ns,
				     .args = &args };

	if (!mew_trace_is_on())
		return;
	mew_trace_arg_text(&args, "case", row->key);
	mew_trace_arg_number(&args, "repetition", rq->repetition);
	mew_trace_arg_number(&args, "loops", rq->plan.loops);
	mew_trace_arg_number(&args, "iterations", iterations_of(row));
	if (status != MEW_OK)
		mew_trace_arg_text(&args, "failed", mew_status_name(status));
	s.end_ns = mew_os_now_ns();
	mew_trace_slice(&s);
	if (rq->phase == MEW_PHASE_CALIBRATION_LOOPS && status == MEW_OK)
		open->calibrated_ns = s.end_ns;
	else if (rq->phase == MEW_PHASE_MEASUREMENT_VALUE && open->calibrated_ns != 0)
		mew_trace_arrow("calibration", open->calibrated_ns, start_ns);
	if (rq->phase == MEW_PHASE_CPU_VALUE && status == MEW_OK)
		trace_samples(row);
	mew_trace_resident();
	mew_trace_drain();
}

int mew_runner_open(struct mew_runner *r, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	const struct mew_backend *backend;
	struct mew_open_case *open;
	const struct mew_item *it;
	int status;

	if (item >= r->catalogue->n)
		return mew_error_set(err, MEW_E_INVALID, "there is no case number %u", item);
	it = &r->catalogue->items[item];
	open = calloc(1, sizeof *open);
	if (open == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to open \"%s\"", it->key);
	open->item = item;
	open->pass = pass;
	status = mew_phases_init(&open->phases, r->hooks, r->nhooks, it->key, err);
	if (status != MEW_OK) {
		free(open);
		return status;
	}
	open->next = r->open;
	r->open = open;
	backend = mew_backend_for(pass);
	if (backend != NULL && backend->case_begin != NULL)
		backend->case_begin();
	trace_pass(pass);
	open->opened_ns = mew_os_now_ns();
	if (it->entry->setup != NULL) {
		it->entry->setup(it->entry->arg);
		trace_since(open->opened_ns, "case", "set-up", it->key);
	}
	return MEW_OK;
}

void mew_runner_close(struct mew_runner *r, uint32_t item, enum mew_pass pass)
{
	struct mew_open_case **at = find_open(r, item, pass), *open = *at;
	const struct mew_backend *backend = mew_backend_for(pass);
	const struct mew_item *it;
	uint64_t now = mew_os_now_ns();

	if (open == NULL)
		return;
	*at = open->next;
	mew_phases_fini(&open->phases);
	it = &r->catalogue->items[item];
	if (it->entry->teardown != NULL) {
		it->entry->teardown(it->entry->arg);
		trace_since(now, "case", "teardown", it->key);
	}
	if (mew_worker_is_running()) /* in one process with the plan, that shows the cases */
		trace_since(open->opened_ns, "case", it->key, it->key);
	mew_trace_drain();
	if (backend != NULL && backend->case_end != NULL)
		backend->case_end();
	free(open);
}

void mew_runner_fini(struct mew_runner *r)
{
	while (r->open != NULL)
		mew_runner_close(r, r->open->item, r->open->pass);
}

/* --- verdict ---------------------------------------------------------------------------------------------------- */

static int judge(const struct mew_item *item, struct mew_block *b, struct mew_error *err)
{
	const char *complaint;

	for (unsigned i = 0; i < b->threads; i++)
		if (b->states[i].status != MEW_OK)
			return mew_error_set(err, b->states[i].status, "%s", b->states[i].reason);
	for (unsigned i = 0; i < b->threads; i++)
		if (b->states[i].skipped)
			return mew_error_set(err, MEW_E_UNSUPPORTED, "%s", b->states[i].reason);
	if (b->backend_status != MEW_OK)
		return mew_error_set(err, b->backend_status, "%s", b->backend_error.text);
	for (unsigned i = 1; i < b->threads; i++)
		if (b->states[i].manual != b->states[0].manual)
			return mew_error_set(err, MEW_E_INVALID,
					     "some threads set their iteration time and some do not");
	if (item->entry->expect == NULL)
		return MEW_OK;
	complaint = item->entry->expect(&b->states[0], item->entry->arg);
	if (complaint == NULL)
		return MEW_OK;
	return mew_error_set(err, MEW_E_BODY, "it did not do what it must: %s", complaint);
}

/* --- the capture ------------------------------------------------------------------------------------------------ */

static int drain(struct mew_model *m, struct mew_case *c, const struct mew_request *rq, struct mew_block *b,
		 struct mew_error *err)
{
	uint64_t *thread_ns = calloc(b->threads, sizeof *thread_ns);
	struct mew_sink sink = {
		.model = m,
		.row = c,
		.kind = mew_pass_kind(rq->pass),
		.thread_ns = thread_ns,
	};
	struct mew_row_head *row = mew_model_row(m, c, sink.kind);
	int status;

	if (row == NULL || thread_ns == NULL) {
		free(thread_ns);
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the result");
	}
	row->profiler = b->backend->name;
	for (unsigned t = 0; t < b->threads; t++) {
		sink.iterations += b->states[t].completed;
		sink.window_ns += b->states[t].window_ns / b->threads;
		thread_ns[t] = b->states[t].window_ns;
	}
	status = b->backend->drain(b->capture, &sink, err);
	free(thread_ns);
	if (status == MEW_OK && sink.failed)
		status = mew_error_set(err, MEW_E_NOMEM, "no memory for the stacks of this case");
	return status;
}

/* What records now, for mew_runner_abandon(). One session at a time, so one suffices. */
static struct {
	const struct mew_backend *backend;
	struct mew_capture *capture;
} active;

/* Two blocks without a backend may be under way at once: they leave it alone. */
static void set_active(const struct mew_backend *backend, struct mew_capture *capture)
{
	if (backend == NULL)
		return;
	active.backend = backend;
	active.capture = capture;
}

void mew_runner_abandon(void)
{
	if (active.capture == NULL)
		return;
	active.backend->end(active.capture);
	active.backend->close(active.capture);
	active.capture = NULL;
}

/* --- one block -------------------------------------------------------------------------------------------------- */

static int open_backend(const struct mew_request *rq, unsigned threads, const struct mew_backend **backend,
			struct mew_capture **capture, struct mew_error *err)
{
	struct mew_capture_config config = {
		.pass = rq->pass,
		.threads = threads,
		.interval_ns = rq->interval_ns,
		.stacks = rq->stacks,
		.pause_cpu = rq->pause_cpu,
		.clock = rq->clock,
	};
	int status = MEW_OK;

	*backend = mew_backend_for(rq->resident ? MEW_PASS_RESIDENT : rq->pass);
	if (*backend == NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "this build has no backend for the pass");
	mew_entry_range(&config.entry_lo, &config.entry_hi);
	if (!rq->resident) /* it says itself, in its figure, why it cannot */
		status = (*backend)->probe(err);
	return status != MEW_OK ? status : (*backend)->open(capture, &config, err);
}

/* The page of a loop to take turns with, from the descriptor that this process inherited. */
static int open_pace(const struct mew_request *rq, struct mew_block_plan *plan, struct mew_error *err)
{
	if (rq->pace_fd == 0 || rq->captured)
		return MEW_OK;
	(void)fcntl(rq->pace_fd, F_SETFD, FD_CLOEXEC); /* no child of a body's needs it */
	plan->pace = mew_pace_map(rq->pace_fd);
	plan->side = rq->side;
	if (plan->pace == NULL)
		return mew_error_errno(err, MEW_E_IO, "the page to take turns by cannot be mapped");
	return MEW_OK;
}

static void close_pace(struct mew_pace *pace, const struct mew_block *b)
{
	if (pace == NULL)
		return;
	if (b->nsamples < pace->total / MEW_SIDES)
		mew_pace_leave(pace);
	mew_pace_unmap(pace);
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	int n = 0;

	if (dir == NULL)
		return -1;
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

static int run_block(struct mew_runner *r, const struct mew_request *rq, struct mew_model *out, struct mew_case *row,
		     struct mew_error *err)
{
	const struct mew_item *item = &r->catalogue->items[rq->item];
	const struct mew_backend *backend = NULL;
	struct mew_capture *capture = NULL;
	struct mew_block_plan plan = rq->plan;
	struct mew_block block;
	int status, before;

	if (rq->captured) {
		status = open_backend(rq, row->threads, &backend, &capture, err);
		if (status != MEW_OK)
			return status;
	}
	if (rq->captured) /* else the first sample with a pause measures them, behind its end */
		(void)mew_loop_costs();
	status = open_pace(rq, &plan, err);
	if (status != MEW_OK)
		return status;
	status = mew_block_init(&block, &plan, row->threads, backend, capture, err);
	if (status == MEW_OK) {
		before = plan.pace == NULL ? count_threads() : -1;
		set_active(backend, capture);
		mew_body_call(item, &block);
		set_active(backend, NULL);
		status = judge(item, &block, err);
		if (status == MEW_OK && mew_runner_put(out, row, rq, &block) != 0)
			status = mew_error_set(err, MEW_E_NOMEM, "no memory for the samples of \"%s\"", item->key);
		if (status == MEW_OK && backend != NULL)
			status = drain(out, row, rq, &block, err);
		if (status == MEW_OK && before >= 0 && count_threads() > before)
			row->left_threads = true;
	}
	if (capture != NULL)
		backend->close(capture);
	close_pace(plan.pace, &block);
	mew_block_fini(&block);
	return status;
}

int mew_runner_run(struct mew_runner *r, const struct mew_request *rq, struct mew_model *out, struct mew_error *err)
{
	struct mew_open_case *open = *find_open(r, rq->item, rq->pass);
	const struct mew_item *item;
	struct mew_error end_error;
	struct mew_case *row;
	int status, ended;
	uint64_t start;

	if (open == NULL)
		return mew_error_set(err, MEW_E_INVALID, "case number %u is not open", rq->item);
	item = &r->catalogue->items[rq->item];
	row = mew_model_case(out, item->key, NULL);
	if (row == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for \"%s\"", item->key);
	row->label = mew_model_string(out, item->label);
	row->tags = mew_model_string(out, item->entry->tags);
	row->threads = item->entry->threads != 0 ? item->entry->threads : 1;
	open->phases.model = out;
	open->phases.row = row;
	mew_trace_resident();
	start = mew_os_now_ns();
	status = mew_phases_begin(&open->phases, rq->phase, rq->plan.loops, rq->repetition, err);
	if (status == MEW_OK) {
		status = run_block(r, rq, out, row, err);
		ended = mew_phases_end(&open->phases, rq->phase, rq->plan.loops, rq->repetition, &end_error);
		if (status == MEW_OK && ended != MEW_OK) {
			status = ended;
			*err = end_error;
		}
	}
	trace_block(open, rq, row, start, status);
	open->phases.model = NULL;
	open->phases.row = NULL;
	return status;
}
