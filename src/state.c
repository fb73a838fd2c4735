/*
 * state.c - the timing loop: samples, the rendezvous of threads, the stop rule.
 * Layer L4. Body threads. Between samples only; inside one nothing of mew runs but pause and resume.
 */
#include "config.h"

#include "state.h"

#include "error.h"
#include "os.h"
#include "stats.h"
#include "trace.h"

#define CALIBRATION_GROWTH 8u
#define COLD_FACTOR 64u

int mew_block_init(struct mew_block *b, const struct mew_block_plan *plan, unsigned threads,
		   const struct mew_backend *backend, struct mew_capture *capture, struct mew_error *err)
{
	size_t states = threads * sizeof(struct mew_state), samples = plan->max_samples * sizeof(uint64_t);

	*b = (struct mew_block){ .plan = *plan, .backend = backend, .capture = capture, .threads = threads };
	(void)pthread_mutex_init(&b->lock, NULL);
	(void)pthread_cond_init(&b->turned, NULL);
	b->states = mew_os_map(states);
	b->real_ns = mew_os_reserve(samples);
	b->cpu_ns = mew_os_reserve(samples);
	b->scratch = mew_os_reserve(samples);
	if (b->states == NULL || b->real_ns == NULL || b->cpu_ns == NULL || b->scratch == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %llu samples: ask for fewer",
				     (unsigned long long)plan->max_samples);
	b->real_ns[0] = b->cpu_ns[0] = 0; /* their pages are here before the window, whose growth they are not */
	for (unsigned i = 0; i < threads; i++) {
		b->states[i].block = b;
		b->states[i].thread = i;
	}
	b->present = threads;
	b->next_check = plan->min_samples;
	return MEW_OK;
}

void mew_block_fini(struct mew_block *b)
{
	size_t samples = b->plan.max_samples * sizeof(uint64_t);

	mew_os_unmap(b->states, b->threads * sizeof(struct mew_state));
	mew_os_unmap(b->real_ns, samples);
	mew_os_unmap(b->cpu_ns, samples);
	mew_os_unmap(b->scratch, samples);
	(void)pthread_cond_destroy(&b->turned);
	(void)pthread_mutex_destroy(&b->lock);
}

/* --- the plan: how many iterations come next -------------------------------------------------------------------- */

static bool is_precise(struct mew_block *b)
{
	struct mew_interval in;
	size_t n = b->nsamples;
	double median;

	if (n < b->next_check)
		return false;
	b->next_check = n + n / 4 + 1; /* sorting stays a small part of the run */
	for (size_t i = 0; i < n; i++)
		b->scratch[i] = (double)b->real_ns[i];
	mew_stats_sort(b->scratch, n);
	median = mew_stats_median_sorted(b->scratch, n);
	if (!mew_stats_median_interval_sorted(b->scratch, n, 0.95, &in))
		return false;
	return in.high - median <= b->plan.precision * median && median - in.low <= b->plan.precision * median;
}

static bool is_complete(struct mew_block *b, uint64_t iterations)
{
	const struct mew_block_plan *p = &b->plan;

	if (p->exact != 0)
		return iterations >= p->exact;
	if (b->nsamples >= p->max_samples && p->min_samples <= p->max_samples)
		return true;
	if (p->max_ns != 0 && (b->measured_ns >= p->max_ns || b->spent_ns >= p->max_ns))
		return true;
	if (b->nsamples < p->min_samples || b->measured_ns < p->min_ns || iterations < p->min_iterations)
		return false;
	return p->precision == 0 || is_precise(b);
}

/*
 * Calibration: grow until one sample is a fair part of the target, so that its rate can be trusted; where little of it
 * is measured, since the body pauses or sets its own time, until it takes far longer than that.
 */
static uint64_t next_calibration(const struct mew_block *b, uint64_t last)
{
	uint64_t ns, growth, longest = b->plan.target_ns * COLD_FACTOR;

	if (last == 0)
		return 1;
	ns = b->real_ns[b->nsamples - 1];
	if (b->nsamples == 1 && ns < longest)
		return 1; /* the first iteration of a body pays for cold caches and fresh pages: judge the second */
	if (ns >= b->plan.target_ns / 4 || b->nruns == MEW_COUNTOF(b->runs) || last >= UINT64_MAX / CALIBRATION_GROWTH)
		return 0;
	growth = longest / (b->wall_ns + 1);
	return growth <= 1 ? 0 : last * (growth < CALIBRATION_GROWTH ? growth : CALIBRATION_GROWTH);
}

/* Iterations per thread of the next sample; 0 ends the block. `last` is what the previous one was, 0 at the start. */
static uint64_t plan_next(struct mew_block *b, uint64_t last, uint64_t iterations)
{
	const struct mew_block_plan *p = &b->plan;

	if (b->backend_status != MEW_OK)
		return 0;
	if (p->loops == 0)
		return next_calibration(b, last);
	if (last != 0 && is_complete(b, iterations))
		return 0;
	if (p->exact != 0 && p->exact - iterations < p->loops)
		return p->exact - iterations;
	if (last != 0 && b->nsamples == p->max_samples && p->target_ns != 0) /* no more are kept */
		return b->wall_ns < p->target_ns ? last * 2 : last;
	return p->loops;
}

/* --- the timeline ----------------------------------------------------------------------------------------------- */

/*
 * Put the last pause on the timeline. Called where the time is nobody's: in the next pause, or between samples, so that
 * a traced run measures what an untraced one does.
 */
static void show_pause(struct mew_state *st)
{
	struct mew_trace_record r = { MEW_TRACE_SLICE, "pause", "pause", st->shown_at_ns,
				      st->shown_until_ns - st->shown_at_ns };

	if (st->shown_until_ns == 0)
		return;
	st->shown_until_ns = 0;
	if (st->shown++ < MEW_PAUSES_SHOWN)
		mew_trace_push(&r);
}

static void remember_pause(struct mew_state *st, uint64_t until_ns)
{
	if (!mew_trace_is_on())
		return;
	st->shown_at_ns = st->paused_at_ns;
	st->shown_until_ns = until_ns;
}

/* --- one sample ------------------------------------------------------------------------------------------------- */

static uint64_t start_sample(struct mew_state *st, uint64_t iterations)
{
	uint64_t turns = mew_turns(iterations, st->batch);
	struct mew_os_events events;

	if (turns == 0)
		return 0;
	if (__builtin_mul_overflow(turns, st->batch, &st->chunk)) {
		mew_state_fail(st, MEW_E_INVALID, "the batch of MEW_LOOP_BATCH is too large: %llu",
			       (unsigned long long)st->batch);
		return 0;
	}
	st->paused_ns = 0;
	st->pauses = 0;
	st->manual_s = 0;
	if (st->block->backend == NULL) {
		mew_os_events(&events);
		st->events = (struct mew_os_events_slot){ events.context_switches, events.page_faults, events.cpu };
		st->start_cpu_ns = mew_os_thread_cpu_ns();
	}
	st->start_ns = mew_os_now_ns();
	st->paused_at_ns = st->start_ns;
	return turns;
}

static void end_sample(struct mew_state *st)
{
	uint64_t now = mew_os_now_ns(), spent, correction;
	struct mew_block *b = st->block;
	struct mew_os_events events;

	if (b->backend == NULL) {
		st->chunk_cpu_ns = mew_os_thread_cpu_ns() - st->start_cpu_ns;
		mew_os_events(&events); /* before what mew does here: the first sample with a pause measures what one costs */
	}
	show_pause(st);
	if (st->pause_depth != 0)
		st->paused_ns += now - st->paused_at_ns;
	st->wall_ns = now - st->start_ns;
	st->spent_ns += st->wall_ns;
	spent = now - st->start_ns - st->paused_ns;
	/* between them the two clock reads of a pause cost the figures about one read */
	correction = st->pauses == 0 ? 0 : (uint64_t)((double)st->pauses * mew_loop_costs()->pause_ns);
	st->chunk_ns = spent > correction ? spent - correction : 0;
	st->window_ns += st->chunk_ns;
	if (st->manual)
		st->chunk_ns = (uint64_t)(st->manual_s * 1e9 + 0.5);
	st->completed += st->chunk;
	if (b->backend != NULL)
		return;
	__atomic_fetch_add(&b->context_switches, events.context_switches - st->events.context_switches,
			   __ATOMIC_RELAXED);
	__atomic_fetch_add(&b->page_faults, events.page_faults - st->events.page_faults, __ATOMIC_RELAXED);
	__atomic_fetch_add(&b->migrations, events.cpu != st->events.cpu, __ATOMIC_RELAXED);
}

/* Put the sample that all threads just ended into the block. Called by the last thread to arrive. */
static void record_sample(struct mew_block *b, uint64_t loops)
{
	uint64_t real = 0, cpu = 0;
	struct mew_sample_run *run;

	b->wall_ns = 0;
	for (unsigned i = 0; i < b->threads; i++) {
		if (b->wall_ns < b->states[i].wall_ns)
			b->wall_ns = b->states[i].wall_ns;
		real += b->states[i].chunk_ns;
		cpu += b->states[i].chunk_cpu_ns;
	}
	if (b->threads > 1)
		real /= b->threads;
	b->measured_ns += real;
	b->spent_ns += b->wall_ns;
	if (b->nsamples == b->plan.max_samples)
		return;
	if (b->nruns == 0 || b->runs[b->nruns - 1].loops != loops) {
		if (b->nruns == MEW_COUNTOF(b->runs))
			return;
		b->runs[b->nruns++] = (struct mew_sample_run){ .loops = loops, .first = b->nsamples };
	}
	run = &b->runs[b->nruns - 1];
	run->n++;
	b->real_ns[b->nsamples] = real;
	b->cpu_ns[b->nsamples++] = cpu;
}

/* --- rendezvous ------------------------------------------------------------------------------------------------- */

static void open_window(struct mew_block *b)
{
	if (b->backend != NULL && b->backend_status == MEW_OK)
		b->backend_status = b->backend->begin(b->capture, &b->backend_error);
	b->opened = b->backend_status == MEW_OK;
}

static void close_window(struct mew_block *b)
{
	if (!b->opened || b->closed)
		return;
	if (b->backend != NULL)
		b->backend->end(b->capture);
	b->closed = true;
}

static bool any_failed(const struct mew_block *b)
{
	for (unsigned i = 0; i < b->threads; i++)
		if (b->states[i].status != MEW_OK || b->states[i].skipped)
			return true;
	return false;
}

/* With a partner: hand the turn on and rest until ours comes again; between samples, so nothing of it is timed. */
static void take_turns(struct mew_block *b, bool first)
{
	uint64_t switches = __atomic_load_n(&b->context_switches, __ATOMIC_RELAXED);
	struct mew_pace *pace = b->plan.pace;

	if (!first)
		mew_pace_pass(pace, switches != b->paced_switches);
	b->paced_switches = switches;
	if (b->next != 0 && !mew_pace_wait(pace, b->plan.side, first, b->plan.duo))
		b->next = 0;
	else if (b->next == 0 && b->nsamples >= pace->total / MEW_SIDES)
		mew_pace_await_end(pace, b->plan.duo);
}

/* All present threads are here: record the sample they ended, decide what comes next. Lock held (or one thread). */
static void decide(struct mew_block *b, const struct mew_state *st, bool first)
{
	if (first)
		open_window(b);
	else if (!b->plan.free_running || b->threads == 1)
		record_sample(b, st->chunk);
	if (b->present < b->threads || b->stopping || any_failed(b))
		b->next = 0;
	else
		b->next = plan_next(b, first ? 0 : st->chunk, st->completed);
	if (b->plan.pace != NULL)
		take_turns(b, first);
	if (b->next == 0)
		close_window(b);
}

static void release(struct mew_block *b)
{
	b->arrived = 0;
	b->generation++;
	(void)pthread_cond_broadcast(&b->turned);
}

/* Waiting for the others at the end of a free-running window is no part of the case: it must not be sampled. */
static void say_wait(const struct mew_state *st, bool waits)
{
	const struct mew_block *b = st->block;

	if (st->attached && b->plan.free_running && b->backend->wait != NULL)
		b->backend->wait(b->capture, st->thread, waits);
}

/* Wait until all threads that are still in their bodies have come; returns what all do next. */
static uint64_t meet(struct mew_state *st, bool first)
{
	struct mew_block *b = st->block;
	uint64_t next, generation;

	if (b->threads == 1) {
		decide(b, st, first);
		return b->next;
	}
	say_wait(st, true);
	(void)pthread_mutex_lock(&b->lock);
	if (++b->arrived == b->present) {
		decide(b, st, first);
		release(b);
	} else {
		generation = b->generation;
		while (generation == b->generation)
			(void)pthread_cond_wait(&b->turned, &b->lock);
	}
	next = b->next;
	(void)pthread_mutex_unlock(&b->lock);
	say_wait(st, false);
	return next;
}

/*
 * Capture passes with several threads: nobody waits between samples, since waiting would be sampled. Thread 0 keeps the
 * time, the others follow its word; all meet at the end.
 */
static uint64_t go_on_alone(struct mew_state *st)
{
	struct mew_block *b = st->block;

	if (st->status != MEW_OK || st->skipped)
		return 0;
	if (b->plan.exact != 0)
		return plan_next(b, st->chunk, st->completed);
	if (__atomic_load_n(&b->stopping, __ATOMIC_RELAXED))
		return 0;
	if (st->thread != 0)
		return b->plan.loops;
	b->measured_ns = st->window_ns;
	b->spent_ns = st->spent_ns;
	b->nsamples++;
	return plan_next(b, st->chunk, st->completed);
}

static void detach(struct mew_state *st)
{
	struct mew_block *b = st->block;

	if (!st->attached)
		return;
	st->attached = false;
	b->backend->thread_end(b->capture, st->thread);
}

/* --- the loop --------------------------------------------------------------------------------------------------- */

static uint64_t finish(struct mew_state *st)
{
	st->stage = MEW_STAGE_AFTER;
	detach(st);
	return 0;
}

uint64_t mew_loop_begin_(struct mew_state *st, uint64_t batch)
{
	struct mew_block *b = st->block;
	uint64_t next;

	if (st->stage != MEW_STAGE_BEFORE) {
		mew_state_fail(st, MEW_E_LOOP,
			       "the body has a second loop: one MEW_LOOP is timed, split the case in two");
		return 0;
	}
	if (batch == 0)
		mew_state_fail(st, MEW_E_INVALID, "MEW_LOOP_BATCH needs at least 1 iteration per turn, got 0");
	if (st->status != MEW_OK || st->skipped)
		return 0;
	st->batch = batch;
	mew_trace_thread_ready();
	if (b->backend != NULL) {
		struct mew_error err;
		int status = b->backend->thread_begin(b->capture, st->thread, &err);

		st->attached = status == MEW_OK;
		if (status != MEW_OK)
			mew_state_fail(st, status, "%s", err.text);
	}
	st->stage = MEW_STAGE_LOOP;
	if (st->pause_depth != 0) { /* paused since before the loop */
		st->paused_in_loop = true;
		if (b->backend != NULL && st->attached)
			b->backend->pause(b->capture, st->thread);
	}
	next = meet(st, true);
	if (next == 0 || (next = start_sample(st, next)) == 0)
		return finish(st);
	return next;
}

uint64_t mew_loop_turn_(struct mew_state *st)
{
	struct mew_block *b = st->block;
	uint64_t next;

	if (st->stage != MEW_STAGE_LOOP)
		return 0;
	end_sample(st);
	if (st->attached && b->backend->turn != NULL)
		b->backend->turn(b->capture, st->thread, st->chunk);
	if (b->threads > 1 && b->plan.free_running) {
		next = go_on_alone(st);
		if (next != 0)
			return start_sample(st, next);
		__atomic_store_n(&b->stopping, true, __ATOMIC_RELAXED); /* the window closes when the last thread is here */
	}
	next = meet(st, false);
	if (next == 0 || (next = start_sample(st, next)) == 0)
		return finish(st);
	return next;
}

void mew_state_leave(struct mew_state *st)
{
	struct mew_block *b = st->block;

	if (st->stage == MEW_STAGE_BEFORE)
		mew_state_fail(st, MEW_E_LOOP,
			       "the body never entered its loop: it needs one MEW_LOOP(st) on every way");
	else if (st->stage == MEW_STAGE_LOOP)
		mew_state_fail(st, MEW_E_LOOP,
			       "the body left its loop early (break, return, goto or longjmp): let MEW_LOOP end by "
			       "itself");
	(void)pthread_mutex_lock(&b->lock);
	b->present--;
	if (b->arrived != 0 && b->arrived == b->present) {
		b->next = 0;
		close_window(b);
		release(b);
	}
	if (b->present == 0)
		close_window(b);
	(void)pthread_mutex_unlock(&b->lock);
	detach(st);
	show_pause(st);
}

/* --- pause ------------------------------------------------------------------------------------------------------ */

void mew_pause(struct mew_state *st)
{
	if (st->pause_depth++ != 0 || st->stage != MEW_STAGE_LOOP)
		return;
	if (st->block->backend != NULL)
		st->block->backend->pause(st->block->capture, st->thread);
	st->paused_in_loop = true;
	st->pauses++;
	st->paused_at_ns = mew_os_now_ns();
	show_pause(st);
}

void mew_resume(struct mew_state *st)
{
	uint64_t now;

	if (st->pause_depth == 0 || --st->pause_depth != 0 || st->stage != MEW_STAGE_LOOP)
		return;
	/* the flag before the clock, as in mew_pause(): what both leave between them cancels out */
	if (st->block->backend != NULL)
		st->block->backend->resume(st->block->capture, st->thread);
	now = mew_os_now_ns();
	st->paused_ns += now - st->paused_at_ns;
	remember_pause(st, now);
}
