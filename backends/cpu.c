/*
 * cpu.c - the CPU backend "wall": samples each benchmark thread at random points of the wall or CPU clock, pauses out.
 * Layer L3. Windows and figures; what runs in the signal handler is in cpu_timer.c, cpu_engine.c, cpu_rest.c and
 * cpu_signal.c.
 */
#include "config.h"

#include "mew/backend.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cpu_cost.h"
#include "cpu_counters.h"
#include "cpu_ladder.h"
#include "cpu_timer.h"
#include "error.h"
#include "modules.h"
#include "os.h"
#include "sink.h"
#include "stackset.h"
#include "unwinder.h"

#define STACKS_MAX ((size_t)1 << 16)
#define FRAMES_MAX ((size_t)1 << 21) /* of all different stacks together */
#define NOTED_SHARE 0.2              /* of the loop, that the row says sampling took */
#define NOTED_SAMPLES 100u           /* fewer say little about what they cost */

extern const struct mew_backend mew_backend_cpu;

struct thread { /* one benchmark thread */
	struct mew_cpu_thread *sampled; /* NULL before thread_begin */
	uint64_t cpu_ns;                /* the thread's CPU clock at begin, then what passed until end */
	uint64_t cpu_pause_ns;          /* the clock when the pause began */
	uint64_t cpu_paused_ns;
	bool has_cpu;
	struct mew_cpu_counters counters;
};

struct mew_capture {
	struct mew_capture_config config;
	struct mew_cpu_window window;
	struct thread *threads;
	uint64_t cost_ns;     /* of one sample; 0: not known, see cost_why */
	const char *cost_why;
	int taken;            /* the signal whose handler was not mew's any more when the window closed; 0: none */
	char why_engine[MEW_CPU_REASON_BYTES]; /* why no better one; "" for the best */
};

struct totals {
	uint64_t samples, weight_ns, blocked_ns, lost, truncated;
	uint64_t pauses;
};

static bool read_clock(clockid_t clock, uint64_t *ns)
{
	struct timespec t;

	if (clock_gettime(clock, &t) != 0)
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return true;
}

/* --- before the window ------------------------------------------------------------------------------------------- */

/* Can a timer be made? */
static bool has_timer(clockid_t clock)
{
	int timer = mew_cpu_timer_create(clock, mew_os_tid(), mew_cpu_signal_number(), NULL), saved = errno;

	if (timer >= 0)
		mew_cpu_timer_delete(timer);
	errno = saved;
	return timer >= 0;
}

static bool has_event(void)
{
	int event = mew_cpu_event_open(mew_cpu_signal_number());

	if (event >= 0)
		(void)close(event);
	return event >= 0;
}

/* Whether the clock that is asked for can be had is found at open. */
static int probe(struct mew_error *err)
{
	int status = mew_unwinder_choose(err);

	if (status == MEW_OK)
		status = mew_cpu_signal_take(err);
	if (status != MEW_OK || has_event() || has_timer(CLOCK_THREAD_CPUTIME_ID) || has_timer(CLOCK_MONOTONIC))
		return status;
	if (errno == EAGAIN)
		return mew_error_errno(err, MEW_E_DENIED, "no timer can be made: raise ulimit -i (pending signals)");
	if (errno == ENOSYS || errno == EPERM)
		return mew_error_errno(err, MEW_E_DENIED,
				       "timer_create is not allowed here: let the container's seccomp profile pass it");
	return mew_error_errno(err, MEW_E_UNSUPPORTED, "the kernel has no timers that signal one thread: it needs "
						       "CONFIG_POSIX_TIMERS");
}

static void release(struct mew_capture *c)
{
	if (c->threads != NULL)
		for (unsigned i = 0; i < c->config.threads; i++) {
			struct mew_cpu_thread *t = c->threads[i].sampled;

			mew_cpu_counters_close(&c->threads[i].counters);
			if (t == NULL)
				continue;
			mew_cpu_thread_disarm(t);
			mew_cpu_thread_free(t);
		}
	mew_stackset_free(c->window.stacks);
	free(c->threads);
	free(c);
}

static int choose_engine(struct mew_capture *c, struct mew_error *err)
{
	int status = mew_cpu_ladder(c->config.clock, c->config.engine, &c->window.engine, c->why_engine, err);

	c->window.clock = c->config.clock;
	if (status == MEW_OK && c->window.engine == MEW_CPU_ENGINE_PERF)
		mew_cpu_signal_guard_overflow();
	return status;
}

static int start_capture(struct mew_capture **out, const struct mew_capture_config *config, struct mew_error *err)
{
	struct mew_capture *c;
	int status;

	if (config->threads == 0)
		return mew_error_set(err, MEW_E_INVALID, "a case needs at least 1 thread to sample, got 0");
	if (config->interval_ns == 0)
		return mew_error_set(err, MEW_E_INVALID, "the sampling interval is 0: 100 us is a good one");
	status = mew_unwinder_choose(err);
	if (status == MEW_OK)
		status = mew_cpu_signal_take(err);
	if (status != MEW_OK)
		return status;
	c = calloc(1, sizeof *c);
	if (c == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the CPU sampler");
	c->config = *config;
	c->window.entry_lo = config->entry_lo;
	c->window.entry_hi = config->entry_hi;
	c->window.period_ns = config->interval_ns < MEW_CPU_PERIOD_MIN_NS ? MEW_CPU_PERIOD_MIN_NS : config->interval_ns;
	c->threads = calloc(config->threads, sizeof *c->threads);
	c->window.stacks = mew_stackset_new(STACKS_MAX, FRAMES_MAX);
	if (c->threads == NULL || c->window.stacks == NULL) {
		release(c);
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the stacks of the CPU sampler");
	}
	c->cost_ns = mew_cpu_cost_ns(&c->cost_why);
	status = choose_engine(c, err);
	if (status != MEW_OK) {
		release(c);
		return status;
	}
	*out = c;
	return MEW_OK;
}

static int begin_thread(struct mew_capture *c, unsigned thread, struct mew_error *err)
{
	if (thread >= c->config.threads || c->threads[thread].sampled != NULL)
		return mew_error_set(err, MEW_E_INVALID, "thread %u is sampled already, or none of the case's %u",
				     thread, c->config.threads);
	mew_cpu_counters_open(&c->threads[thread].counters, mew_cpu_hardware);
	return mew_cpu_thread_new(&c->threads[thread].sampled, &c->window, err);
}

/* --- the window -------------------------------------------------------------------------------------------------- */

static void disarm(struct mew_capture *c)
{
	for (unsigned i = 0; i < c->config.threads; i++)
		if (c->threads[i].sampled != NULL)
			mew_cpu_thread_disarm(c->threads[i].sampled);
}

static int begin(struct mew_capture *c, struct mew_error *err)
{
	for (unsigned i = 0; i < c->config.threads; i++) {
		struct thread *t = &c->threads[i];

		if (t->sampled == NULL)
			continue;
		if (!mew_cpu_signal_is_ours(t->sampled->signal_number))
			return mew_error_set(err, MEW_E_BUSY,
					     "the program took signal %d from the CPU sampler: it must use another one",
					     t->sampled->signal_number);
		mew_cpu_counters_begin(&t->counters);
		t->has_cpu = read_clock(t->sampled->cpu_clock, &t->cpu_ns);
	}
	c->window.opened_ns = mew_os_now_ns();
	for (unsigned i = 0; i < c->config.threads; i++) {
		struct mew_cpu_thread *t = c->threads[i].sampled;

		if (t == NULL || mew_cpu_thread_arm(t, c->window.opened_ns) == 0)
			continue;
		disarm(c);
		return mew_error_errno(err, MEW_E_DENIED, "the timer of benchmark thread %u cannot be set", i);
	}
	return MEW_OK;
}

static void pause_thread(struct mew_capture *c, unsigned thread)
{
	struct thread *t = &c->threads[thread];

	mew_cpu_thread_pause(t->sampled);
	if (c->config.pause_cpu)
		t->cpu_pause_ns = mew_os_thread_cpu_ns();
}

static void resume_thread(struct mew_capture *c, unsigned thread)
{
	struct thread *t = &c->threads[thread];

	if (c->config.pause_cpu)
		t->cpu_paused_ns += mew_os_thread_cpu_ns() - t->cpu_pause_ns;
	mew_cpu_thread_resume(t->sampled);
}

/* CPU time of the window, its pauses out; a loop may end while paused. */
static void close_cpu(const struct mew_capture *c, struct thread *t)
{
	uint64_t now;

	if (!t->has_cpu || !read_clock(t->sampled->cpu_clock, &now)) {
		t->has_cpu = false;
		return;
	}
	if (c->config.pause_cpu && atomic_load(&t->sampled->paused) != 0)
		now = t->cpu_pause_ns;
	t->cpu_ns = now - t->cpu_ns - t->cpu_paused_ns;
}

static void end(struct mew_capture *c)
{
	disarm(c);
	for (unsigned i = 0; i < c->config.threads; i++) {
		const struct mew_cpu_thread *t = c->threads[i].sampled;

		if (t == NULL)
			continue;
		if (!mew_cpu_signal_is_ours(t->signal_number))
			c->taken = t->signal_number;
		close_cpu(c, &c->threads[i]);
		mew_cpu_counters_end(&c->threads[i].counters);
	}
}

static void end_thread(struct mew_capture *c, unsigned thread)
{
	if (c->threads[thread].sampled != NULL)
		mew_cpu_thread_detach(c->threads[thread].sampled);
}

/* --- after the window -------------------------------------------------------------------------------------------- */

/* The model's number of a stack of the set; `known` remembers it, plus 1, by the set's number. */
static uint32_t intern(const struct mew_capture *c, struct mew_sink *sink, const struct mew_modules *modules,
		       uint32_t *known, uint32_t stack)
{
	const uintptr_t *pcs;
	size_t n;

	if (stack == 0)
		return MEW_NO_STACK;
	if (known[stack] == 0) {
		pcs = mew_stackset_frames(c->window.stacks, stack, &n);
		known[stack] = mew_sink_stack(sink, modules, pcs, n) + 1;
	}
	return known[stack] - 1;
}

static void drain_thread(const struct mew_capture *c, unsigned thread, struct mew_sink *sink, uint32_t *known,
			 struct totals *totals)
{
	const struct mew_modules *modules = mew_modules_current();
	struct mew_ring *ring = &c->threads[thread].sampled->ring;
	struct mew_cpu_record record;

	while (mew_ring_pop(ring, &record)) {
		struct mew_cpu_sample sample = { .stack = intern(c, sink, modules, known, record.stack),
						 .thread = thread,
						 .time_ns = record.time_ns,
						 .weight_ns = record.weight_ns,
						 .blocked = record.blocked != 0 };

		mew_sink_sample(sink, &sample);
		totals->samples++;
		totals->weight_ns += record.weight_ns;
		totals->blocked_ns += record.blocked != 0 ? record.weight_ns : 0;
		totals->lost += record.stack == 0;
		totals->truncated += record.stop != MEW_STOP_END;
	}
	totals->lost += mew_ring_dropped(ring);
	totals->pauses += atomic_load(&c->threads[thread].sampled->pauses);
}

static bool has_pauses(const struct mew_capture *c)
{
	for (unsigned i = 0; i < c->config.threads; i++)
		if (c->threads[i].sampled != NULL && atomic_load(&c->threads[i].sampled->pauses) != 0)
			return true;
	return false;
}

/* Returns NULL and the CPU time of all threads, or why it is not known. */
static const char *find_cpu_time(const struct mew_capture *c, uint64_t *sum)
{
	*sum = 0;
	if (!c->config.pause_cpu && has_pauses(c))
		return "the case pauses, and reading the CPU clock would make each pause slow: "
		       "ask for it with .pause_cpu = 1";
	for (unsigned i = 0; i < c->config.threads; i++) {
		const struct thread *t = &c->threads[i];

		if (t->sampled == NULL || !t->has_cpu)
			return "the CPU clock of a benchmark thread could not be read";
		*sum += t->cpu_ns;
	}
	return NULL;
}

static void put_times(const struct mew_capture *c, struct mew_sink *sink)
{
	double wall = (double)sink->window_ns * 1e-9, off;
	uint64_t cpu_ns;
	const char *why = find_cpu_time(c, &cpu_ns);

	mew_sink_f64(sink, MEW_FIG_WALL_TIME, wall);
	if (why != NULL) {
		mew_sink_absent(sink, MEW_FIG_CPU_TIME, why);
		mew_sink_absent(sink, MEW_FIG_OFF_CPU_TIME, why);
		return;
	}
	off = wall * c->config.threads - (double)cpu_ns * 1e-9;
	mew_sink_f64(sink, MEW_FIG_CPU_TIME, (double)cpu_ns * 1e-9);
	mew_sink_f64(sink, MEW_FIG_OFF_CPU_TIME, off > 0 ? off : 0); /* the clocks are not read at one moment */
}

static void put_engine(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	bool is_wall = c->window.clock == MEW_CLOCK_WALL;

	mew_sink_text(sink, MEW_FIG_CLOCK, is_wall ? "wall" : "cpu");
	mew_sink_text(sink, MEW_FIG_ENGINE, mew_cpu_engine_name(c->window.engine));
	if (c->why_engine[0] != '\0')
		mew_sink_text(sink, MEW_FIG_ENGINE_REASON, c->why_engine);
	else
		mew_sink_absent(sink, MEW_FIG_ENGINE_REASON, "no engine is better for this clock");
	if (is_wall)
		mew_sink_f64(sink, MEW_FIG_BLOCKED_WEIGHT, (double)totals->blocked_ns * 1e-9);
	else
		mew_sink_absent(sink, MEW_FIG_BLOCKED_WEIGHT,
				"the samples are spread over CPU time: --clock wall sees time off the processor");
}

static void put_interval(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	double all = c->window.clock == MEW_CLOCK_WALL ? (double)sink->window_ns * c->config.threads
						       : (double)totals->weight_ns;

	mew_sink_f64(sink, MEW_FIG_INTERVAL, (double)c->config.interval_ns * 1e-9);
	if (totals->samples != 0)
		mew_sink_f64(sink, MEW_FIG_EFFECTIVE_INTERVAL, all * 1e-9 / (double)totals->samples);
	else
		mew_sink_absent(sink, MEW_FIG_EFFECTIVE_INTERVAL,
				"nothing was sampled: raise the iterations or lower the interval");
}

/* Threads are sampled at the same time: of the window, which is their mean, each took its part of the cost. */
static void put_cost(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	double cost = (double)totals->samples * (double)c->cost_ns * 1e-9;
	double wall = (double)sink->window_ns * 1e-9, share = cost / c->config.threads / wall;
	char note[120];

	if (c->cost_ns == 0) {
		mew_sink_absent(sink, MEW_FIG_SAMPLER_COST, c->cost_why);
		mew_sink_absent(sink, MEW_FIG_WALL_TIME_CORRECTED, c->cost_why);
		return;
	}
	mew_sink_f64(sink, MEW_FIG_SAMPLER_COST, cost);
	mew_sink_f64(sink, MEW_FIG_WALL_TIME_CORRECTED, wall - cost / c->config.threads);
	if (totals->samples < NOTED_SAMPLES || share <= NOTED_SHARE)
		return;
	(void)snprintf(note, sizeof note, "sampling took %d %% of the loop's time: raise the interval", (int)(100 * share));
	mew_sink_note(sink, note);
}

/* Returns the longest period that a thread ended with. */
static uint64_t note_backoffs(const struct mew_capture *c, struct mew_sink *sink)
{
	uint64_t longest = c->window.period_ns;
	bool is_slow = false, is_full = false;
	char note[200];

	for (unsigned i = 0; i < c->config.threads; i++) {
		const struct mew_cpu_thread *t = c->threads[i].sampled;

		if (t == NULL || t->backoffs == 0)
			continue;
		longest = t->period_ns > longest ? t->period_ns : longest;
		is_slow = is_slow || t->backoffs > t->full_steps;
		is_full = is_full || t->full_steps > 0;
	}
	if (is_slow || is_full) {
		(void)snprintf(note, sizeof note, "%s: the sampling interval was raised from %llu to %llu us",
			       is_slow ? "samples took more than a fifth of the interval" :
					 "the run is so long that its samples would not fit",
			       (unsigned long long)(c->window.period_ns / 1000), (unsigned long long)(longest / 1000));
		mew_sink_note(sink, note);
	}
	return longest;
}

/*
 * A signal that is blocked, or handled by someone else for a while, stops the sampling of its thread without a trace
 * but this: the weights do not add up. Far beyond what chance does, which is 1 % and some intervals.
 */
static void note_gap(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals, uint64_t period)
{
	double wall = (double)sink->window_ns * c->config.threads, weight = (double)totals->weight_ns;
	double slack = (double)period * (20.0 * c->config.threads + 4 * sqrt(2.0 * (double)totals->pauses));
	char note[200];

	if (totals->lost != 0 || weight >= 0.9 * wall - slack)
		return;
	(void)snprintf(note, sizeof note,
		       "the samples stand for %d %% of the loop: it must not block signal %d or replace its handler",
		       (int)(100 * weight / wall), mew_cpu_signal_number());
	mew_sink_note(sink, note);
}

static void put_figures(const struct mew_capture *c, struct mew_sink *sink, const struct totals *totals)
{
	put_times(c, sink);
	put_engine(c, sink, totals);
	put_interval(c, sink, totals);
	put_cost(c, sink, totals);
	mew_sink_u64(sink, MEW_FIG_SAMPLE_COUNT, totals->samples);
	mew_sink_f64(sink, MEW_FIG_SAMPLE_WEIGHT, (double)totals->weight_ns * 1e-9);
	mew_sink_u64(sink, MEW_FIG_CPU_ITERATIONS, sink->iterations);
	mew_sink_u64(sink, MEW_FIG_CPU_LOST, totals->lost);
	mew_sink_u64(sink, MEW_FIG_TRUNCATED, totals->truncated);
}

static int put_counters(const struct mew_capture *c, struct mew_sink *sink, struct mew_error *err)
{
	const struct mew_cpu_counters **all = calloc(c->config.threads, sizeof(*all));
	size_t n = 0;

	if (all == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the counters of the CPU pass");
	for (unsigned i = 0; i < c->config.threads; i++)
		if (c->threads[i].sampled != NULL)
			all[n++] = &c->threads[i].counters;
	mew_cpu_counters_put(all, n, has_pauses(c), sink);
	free(all);
	return MEW_OK;
}

static int drain(struct mew_capture *c, struct mew_sink *sink, struct mew_error *err)
{
	struct totals totals = { 0 };
	uint32_t *known;

	if (c->taken != 0)
		return mew_error_set(err, MEW_E_LOST,
				     "the loop replaced the handler of signal %d, which the CPU sampler uses, and samples "
				     "are lost: let it take another one", c->taken);
	known = calloc((size_t)mew_stackset_count(c->window.stacks) + 1, sizeof *known);
	if (known == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the stacks of the CPU pass");
	(void)mew_modules_renew(); /* names files opened in the window; without memory the older snapshot has to do */
	for (unsigned i = 0; i < c->config.threads; i++)
		if (c->threads[i].sampled != NULL)
			drain_thread(c, i, sink, known, &totals);
	free(known);
	if (sink->failed)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the samples of the CPU pass");
	put_figures(c, sink, &totals);
	if (c->window.clock == MEW_CLOCK_WALL)
		note_gap(c, sink, &totals, note_backoffs(c, sink));
	else
		(void)note_backoffs(c, sink);
	if (mew_unwinder_note() != NULL)
		mew_sink_note(sink, mew_unwinder_note());
	if (c->window.clock == MEW_CLOCK_CPU)
		mew_case_row(sink->row, sink->kind)->profiler = "cpu";
	return put_counters(c, sink, err);
}

const struct mew_backend mew_backend_cpu = {
	.abi = MEW_BACKEND_ABI,
	.name = "wall",
	.help = "samples where the wall or CPU time of the loop goes, each thread by itself",
	.pass = MEW_PASS_CPU,
	.probe = probe,
	.open = start_capture,
	.thread_begin = begin_thread,
	.begin = begin,
	.pause = pause_thread,
	.resume = resume_thread,
	.end = end,
	.thread_end = end_thread,
	.drain = drain,
	.close = release,
};
