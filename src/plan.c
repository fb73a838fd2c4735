/*
 * plan.c - the order of blocks. Every sequence (repetitions, interleaving, fresh processes) is an order of the same request.
 * Layer L4. Runner thread, or the command's.
 */
#include "config.h"

#include "plan.h"

#include "error.h"
#include "os.h"
#include "plan_trace.h"
#include "summarise.h"

#include <string.h>

#define SAMPLE_NS 200000u          /* short against a scheduler's slice: a preempted sample stays a rare outlier */
#define SAMPLE_THREADED_NS 2000000u /* threads must start and stop together: a longer sample hides the rendezvous */
#define CPU_CHUNK_NS 1000000u
#define MIN_SAMPLES 10u
#define MAX_SAMPLES ((uint64_t)1 << 16)
#define MAX_LATENCY_SAMPLES ((uint64_t)1 << 20)
#define CPU_MIN_ITERATIONS 1000u
#define CPU_MIN_SAMPLES 1000u
#define CPU_MAX_NS 2000000000u
#define EXACT_SAMPLES 64u
#define COLD_FACTOR 64u /* a first iteration may take so many times a warm one */

struct run { /* one pass over all cases */
	const struct mew_driver *d;
	struct mew_plan_case *cases;
	size_t n;
	enum mew_pass pass;
	enum mew_kind kind;
	const struct mew_plan_options *o;
	struct mew_model *model;
	unsigned process;
	size_t done, total; /* steps, for progress */
	bool stopped;
};

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

static uint64_t to_ns(double seconds)
{
	return seconds >= 1e9 ? (uint64_t)1000000000000000000 : (uint64_t)(seconds * 1e9);
}

/* --- one case --------------------------------------------------------------------------------------------------- */

static struct mew_case *row_of(struct run *r, const struct mew_plan_case *c)
{
	struct mew_case *row = mew_model_case_under(r->model, c->key, c->program, c->allocator);

	if (row != NULL && row->threads == 0) {
		row->threads = c->threads;
		row->label = mew_model_string(r->model, c->label);
		row->tags = mew_model_string(r->model, c->tags);
	}
	return row;
}

static void fail(struct run *r, struct mew_plan_case *c, int status, const char *reason)
{
	struct mew_case *row = row_of(r, c);

	if (row != NULL)
		mew_model_fail(r->model, row, r->kind, status, reason);
	c->dead = true;
}

/* Run a block and take its outcome over. Returns NULL (and the case is dead) when it failed. */
static struct mew_case *block(struct run *r, struct mew_plan_case *c, const struct mew_request *rq)
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
	if (status != MEW_OK)
		fail(r, c, status, err.text);
	else
		row = row_of(r, c);
	return row;
}

static bool go_on(struct run *r, const struct mew_plan_case *c)
{
	if (!r->stopped && r->o->progress != NULL && !r->o->progress(r->o->progress_data, c, r->pass, r->done, r->total))
		r->stopped = true;
	return !r->stopped && !c->dead;
}

static void open_case(struct run *r, struct mew_plan_case *c)
{
	struct mew_error err;
	int status;

	if (!go_on(r, c))
		return;
	(void)row_of(r, c);
	status = r->d->open(r->d->data, c->item, r->pass, &err);
	c->open = status == MEW_OK;
	if (status != MEW_OK)
		fail(r, c, status, err.text);
}

static void close_case(struct run *r, struct mew_plan_case *c)
{
	if (c->open)
		r->d->close(r->d->data, c->item, r->pass);
	c->open = false;
}

static struct mew_request request(const struct run *r, const struct mew_plan_case *c, int phase, unsigned repetition)
{
	return (struct mew_request){
		.item = c->item,
		.pass = r->pass,
		.phase = phase,
		.process = r->process,
		.repetition = repetition,
		.plan = { .max_samples = MAX_SAMPLES },
		.interval_ns = to_ns(r->o->interval),
		.stacks = r->o->stacks,
		.pause_cpu = r->o->pause_cpu,
		.clock = r->o->clock,
	};
}

static const struct mew_run *last_run(const struct mew_case *row)
{
	return row->nruns == 0 ? NULL : &row->runs[row->nruns - 1];
}

/* Iterations per sample such that one lasts target_ns, from the last run of the row. */
static uint64_t loops_for(const struct mew_case *row, uint64_t target_ns)
{
	const struct mew_run *last = last_run(row);
	double each, loops;

	if (last == NULL || last->nsamples == 0)
		return 1;
	each = (double)last->real_ns[last->nsamples - 1] / (double)last->loops;
	loops = each > 0 ? (double)target_ns / each : (double)last->loops;
	if (loops < 1)
		return 1;
	return loops > 1e15 ? (uint64_t)1000000000000000 : (uint64_t)loops;
}

static uint64_t exact_of(const struct run *r, const struct mew_plan_case *c)
{
	return c->iterations != 0 ? c->iterations : c->min_time > 0 ? 0 : r->o->iterations;
}

static void show_case(struct run *r, struct mew_plan_case *c)
{
	struct mew_case *row = row_of(r, c);

	if (row != NULL)
		mew_plan_trace_end(r->cases, r->n, c, mew_case_row(row, r->kind));
}

/* --- timing ----------------------------------------------------------------------------------------------------- */

static uint64_t sample_ns(const struct mew_plan_case *c)
{
	return c->threads > 1 ? SAMPLE_THREADED_NS : SAMPLE_NS;
}

/* Find the iterations per sample; once per case. */
static void calibrate(struct run *r, struct mew_plan_case *c)
{
	struct mew_request rq = request(r, c, MEW_PHASE_CALIBRATION_WARMUP, 0);
	struct mew_case *row;
	uint64_t exact = exact_of(r, c);

	if (r->o->dry_run || exact != 0 || r->o->latency) {
		c->loops = exact > EXACT_SAMPLES && !r->o->latency ? (exact + EXACT_SAMPLES - 1) / EXACT_SAMPLES : 1;
		return;
	}
	rq.plan.loops = rq.plan.max_samples = 1;
	row = block(r, c, &rq);
	if (row == NULL)
		return;
	c->loops = 1;
	if (last_run(row) == NULL || last_run(row)->real_ns[0] >= sample_ns(c) * COLD_FACTOR)
		return;
	rq = request(r, c, MEW_PHASE_CALIBRATION_LOOPS, 0);
	rq.plan.target_ns = sample_ns(c);
	row = block(r, c, &rq);
	if (row != NULL)
		c->loops = loops_for(row, sample_ns(c));
}

static void warm_up(struct run *r, struct mew_plan_case *c, unsigned repetition)
{
	struct mew_request rq = request(r, c, MEW_PHASE_MEASUREMENT_WARMUP, repetition);

	if (r->o->dry_run || r->o->min_warmup_time <= 0)
		return;
	rq.plan.loops = c->loops;
	rq.plan.min_samples = 1;
	rq.plan.min_ns = rq.plan.max_ns = to_ns(r->o->min_warmup_time);
	(void)block(r, c, &rq);
}

static unsigned repetitions_of(const struct run *r, const struct mew_plan_case *c)
{
	if (r->o->dry_run || r->pass != MEW_PASS_TIME)
		return 1;
	return c->repetitions != 0 ? c->repetitions : r->o->repetitions;
}

static void measure(struct run *r, struct mew_plan_case *c, unsigned repetition)
{
	struct mew_request rq = request(r, c, MEW_PHASE_MEASUREMENT_VALUE, repetition);
	struct mew_block_plan *p = &rq.plan;
	double min_time = c->min_time > 0 ? c->min_time : r->o->min_time;
	double share = r->o->max_time / repetitions_of(r, c) / r->o->processes;

	p->loops = c->loops;
	p->exact = r->o->dry_run ? 1 : exact_of(r, c);
	p->max_samples = r->o->latency ? MAX_LATENCY_SAMPLES : MAX_SAMPLES;
	p->min_samples = MIN_SAMPLES;
	p->min_ns = to_ns(min_time);
	p->max_ns = to_ns(share > min_time ? share : min_time);
	p->precision = r->o->precision;
	(void)block(r, c, &rq);
}

static void time_repetition(struct run *r, struct mew_plan_case *c, unsigned repetition)
{
	uint64_t start = mew_trace_is_on() ? mew_os_now_ns() : 0;

	if (!go_on(r, c))
		return;
	warm_up(r, c, repetition);
	if (!c->dead)
		measure(r, c, repetition);
	r->done++;
	mew_plan_trace_repetition(c, r->process, repetition, start);
}

static void time_prepare(struct run *r, struct mew_plan_case *c)
{
	open_case(r, c);
	if (c->open && !c->dead && c->loops == 0)
		calibrate(r, c);
}

static void time_case(struct run *r, struct mew_plan_case *c)
{
	time_prepare(r, c);
	for (unsigned k = 0; k < repetitions_of(r, c); k++)
		time_repetition(r, c, k);
	close_case(r, c);
}

static void time_interleaved(struct run *r)
{
	unsigned most = 0;

	for (size_t i = 0; i < r->n; i++) {
		time_prepare(r, &r->cases[i]);
		if (repetitions_of(r, &r->cases[i]) > most)
			most = repetitions_of(r, &r->cases[i]);
	}
	for (unsigned k = 0; k < most; k++)
		for (size_t i = 0; i < r->n; i++)
			if (k < repetitions_of(r, &r->cases[i])) {
				mew_plan_trace_begin(&r->cases[i]);
				time_repetition(r, &r->cases[i], k);
				show_case(r, &r->cases[i]);
			}
	for (size_t i = 0; i < r->n; i++)
		close_case(r, &r->cases[i]);
}

/* --- memory and CPU --------------------------------------------------------------------------------------------- */

/* A block of so many iterations, in chunks of `loops`. */
static struct mew_request fixed(const struct run *r, const struct mew_plan_case *c, int phase, uint64_t iterations,
				uint64_t loops)
{
	struct mew_request rq = request(r, c, phase, 0);

	rq.plan.loops = loops;
	rq.plan.exact = iterations;
	if (iterations / loops < rq.plan.max_samples)
		rq.plan.max_samples = iterations / loops + 1;
	return rq;
}

static bool warm_up_fixed(struct run *r, struct mew_plan_case *c, int phase, uint64_t iterations)
{
	uint64_t few = iterations < 10 ? 1 : iterations / 10;
	struct mew_request rq = fixed(r, c, phase, few, few);

	return block(r, c, &rq) != NULL;
}

/*
 * Growth of resident memory, seen in a second warm-up call of full length: the table of blocks would be part of it. The
 * figure waits here until the value block has made the row.
 */
struct resident {
	bool present;
	uint64_t bytes;
	const char *why; /* the model's */
};

static bool find_resident(struct run *r, struct mew_plan_case *c, uint64_t iterations, struct resident *out)
{
	struct mew_request rq = fixed(r, c, MEW_PHASE_MEMORY_WARMUP, iterations, iterations);
	const struct mew_case *row;

	rq.captured = rq.resident = rq.plan.free_running = true;
	row = block(r, c, &rq);
	if (row == NULL)
		return false;
	out->why = mew_memory_why(&row->memory, MEW_FIG_RSS_PEAK_DELTA_BYTES);
	out->present = out->why == NULL;
	out->bytes = row->memory.rss_peak_delta_bytes;
	return true;
}

static void memory_blocks(struct run *r, struct mew_plan_case *c, uint64_t iterations)
{
	struct mew_request rq = fixed(r, c, MEW_PHASE_MEMORY_VALUE, iterations, 1); /* single turns are figures too */
	struct resident resident;
	struct mew_case *row;

	rq.captured = rq.plan.free_running = true;
	if ((!r->o->cold_resident && !warm_up_fixed(r, c, MEW_PHASE_MEMORY_WARMUP, iterations)) ||
	    !find_resident(r, c, iterations, &resident))
		return;
	row = block(r, c, &rq);
	if (row != NULL && resident.present)
		mew_model_u64(row, r->kind, MEW_FIG_RSS_PEAK_DELTA_BYTES, resident.bytes);
	else if (row != NULL)
		mew_model_absent(r->model, row, r->kind, MEW_FIG_RSS_PEAK_DELTA_BYTES, resident.why);
}

static void memory_case(struct run *r, struct mew_plan_case *c)
{
	open_case(r, c);
	if (go_on(r, c))
		memory_blocks(r, c, c->iterations != 0 ? c->iterations : r->o->memory_iterations);
	r->done++;
	close_case(r, c);
}

static void cpu_exactly(struct run *r, struct mew_plan_case *c, uint64_t iterations)
{
	struct mew_request rq = fixed(r, c, MEW_PHASE_CPU_VALUE, iterations, iterations);

	rq.captured = rq.plan.free_running = true;
	if (warm_up_fixed(r, c, MEW_PHASE_CPU_WARMUP, iterations))
		(void)block(r, c, &rq);
}

/* Until there are enough iterations and samples, in chunks found by the warm-up. */
static void cpu_until_known(struct run *r, struct mew_plan_case *c)
{
	struct mew_request rq = request(r, c, MEW_PHASE_CPU_WARMUP, 0);
	struct mew_case *row;

	rq.plan.target_ns = CPU_CHUNK_NS;
	row = block(r, c, &rq);
	if (row == NULL)
		return;
	rq = request(r, c, MEW_PHASE_CPU_VALUE, 0);
	rq.captured = true;
	rq.plan.loops = loops_for(row, CPU_CHUNK_NS);
	rq.plan.min_samples = 1;
	rq.plan.min_iterations = CPU_MIN_ITERATIONS;
	rq.plan.min_ns = rq.interval_ns * (CPU_MIN_SAMPLES + CPU_MIN_SAMPLES / 20);
	rq.plan.max_ns = CPU_MAX_NS;
	rq.plan.free_running = true;
	(void)block(r, c, &rq);
}

static void cpu_case(struct run *r, struct mew_plan_case *c)
{
	uint64_t exact = c->iterations != 0 ? c->iterations : r->o->inner_iterations;

	open_case(r, c);
	if (go_on(r, c)) {
		if (exact == 0)
			cpu_until_known(r, c);
		else
			cpu_exactly(r, c, exact);
	}
	r->done++;
	close_case(r, c);
}

/* --- the pass --------------------------------------------------------------------------------------------------- */

static void one_process(struct run *r)
{
	if (r->pass == MEW_PASS_TIME && r->o->interleave) {
		time_interleaved(r);
		return;
	}
	for (size_t i = 0; i < r->n && !r->stopped; i++) {
		mew_plan_trace_begin(&r->cases[i]);
		if (r->pass == MEW_PASS_TIME)
			time_case(r, &r->cases[i]);
		else if (r->pass == MEW_PASS_MEMORY)
			memory_case(r, &r->cases[i]);
		else
			cpu_case(r, &r->cases[i]);
		show_case(r, &r->cases[i]);
	}
}

static struct mew_case *case_of(struct mew_model *m, const struct mew_plan_case *c)
{
	return mew_model_case_under(m, c->key, c->program, c->allocator);
}

static void summarise(struct run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct mew_case *row = r->cases[i].dead ? NULL : case_of(r->model, &r->cases[i]);

		if (row != NULL && r->pass == MEW_PASS_TIME)
			mew_summarise_time(r->model, row, r->o->latency);
		row = row != NULL ? case_of(r->model, &r->cases[i]) : NULL;
		if (row != NULL && row->left_threads)
			mew_summarise_note(r->model, row, r->kind, "it left threads running behind it; join them in the body");
	}
}

int mew_plan_run(const struct mew_driver *d, struct mew_plan_case *cases, size_t n, enum mew_pass pass,
		 const struct mew_plan_options *o, struct mew_model *model, struct mew_error *err)
{
	struct run r = { .d = d, .cases = cases, .n = n, .pass = pass, .kind = mew_pass_kind(pass), .o = o, .model = model };
	unsigned processes = pass == MEW_PASS_TIME && d->renew != NULL && !o->dry_run ? o->processes : 1;
	unsigned first = o->one_process && o->process < processes ? o->process : 0, end = o->one_process ? first + 1 : processes;

	for (size_t i = 0; i < n; i++) {
		cases[i].open = false;
		cases[i].start_ns = cases[i].end_ns = 0;
		r.total += repetitions_of(&r, &cases[i]) * (end - first);
		if (first == 0) {
			cases[i].dead = false;
			cases[i].loops = 0;
		}
	}
	for (r.process = first; r.process < end && !r.stopped; r.process++) {
		int status = r.process == first ? MEW_OK : d->renew(d->data, err);

		if (status != MEW_OK)
			return status;
		one_process(&r);
	}
	if (end == processes || r.stopped)
		summarise(&r);
	if (r.stopped)
		return mew_error_set(err, MEW_E_BUSY, "interrupted");
	return MEW_OK;
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

static void direct_close(void *data, uint32_t item, enum mew_pass pass)
{
	mew_runner_close(data, item, pass);
}

struct mew_driver mew_driver_direct(struct mew_runner *r)
{
	return (struct mew_driver){ .data = r, .open = direct_open, .run = direct_run, .close = direct_close };
}
