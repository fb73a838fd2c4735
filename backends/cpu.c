/*
 * cpu.c - the CPU backend "wall": samples each benchmark thread at random points of the wall or CPU clock, pauses out.
 * Layer L3. Windows; the figures are in cpu_figures.c, what runs in the signal handler is in cpu_timer.c, cpu_engine.c,
 * cpu_rest.c and cpu_signal.c.
 */
#include "config.h"

#include "mew/backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu_capture.h"
#include "cpu_cost.h"
#include "cpu_ladder.h"
#include "cpu_timer.h"
#include "error.h"
#include "kept.h"
#include "os.h"
#include "stackset.h"
#include "unwinder.h"

#define STACKS_MAX ((size_t)1 << 16)
#define FRAMES_MAX ((size_t)1 << 21) /* of all different stacks together */

extern const struct mew_backend mew_backend_cpu;

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
	mew_cpu_drainer_stop(c->drainer);
	mew_cpu_crew_free(c->crew);
	if (c->watches)
		mew_cpu_crew_unwatch();
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
	mew_kept_unmap(c->threads, c->config.threads * sizeof *c->threads);
	mew_kept_unmap(c, sizeof *c);
}

static int choose_engine(struct mew_capture *c, struct mew_error *err)
{
	char why[MEW_CPU_REASON_BYTES];
	int only = c->config.engine, status;

	/* a wall timer would end the sleeps and waits of threads that need no sample under the CPU clock */
	if (c->config.whole)
		only = c->config.clock == MEW_CLOCK_CPU ? MEW_CPU_ENGINE_PERF : MEW_CPU_ENGINE_TIMER;
	status = mew_cpu_ladder(c->config.clock, only, &c->window.engine, c->why_engine, err);
	if (c->config.whole && only == MEW_CPU_ENGINE_PERF && status != MEW_OK) {
		status = mew_cpu_ladder(c->config.clock, MEW_CPU_ENGINE_CPU_TIMER, &c->window.engine, why, err);
		(void)strncat(c->why_engine, "; the kernel's tick bounds the rate",
			      sizeof c->why_engine - strlen(c->why_engine) - 1);
	} else if (c->config.whole) {
		c->why_engine[0] = '\0';
	}
	c->window.clock = c->config.clock;
	if (status == MEW_OK && c->window.engine == MEW_CPU_ENGINE_PERF)
		mew_cpu_signal_guard_overflow();
	if (status == MEW_OK && c->window.engine == MEW_CPU_ENGINE_RING) {
		c->cost_ns = 0;
		c->cost_why = "what a sample of the ring engine takes is not calibrated: no signal shows when it was "
			      "taken";
	}
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
	status = mew_cpu_sampler_check(getenv("MEW_SAMPLER"), err);
	if (status == MEW_OK)
		status = mew_unwinder_choose(err);
	if (status == MEW_OK)
		status = mew_cpu_signal_take(err);
	if (status != MEW_OK)
		return status;
	c = mew_kept_map(sizeof *c);
	if (c == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the CPU sampler");
	c->config = *config;
	c->window.entry_lo = config->entry_lo;
	c->window.entry_hi = config->entry_hi;
	c->window.period_ns = config->interval_ns < MEW_CPU_PERIOD_MIN_NS ? MEW_CPU_PERIOD_MIN_NS : config->interval_ns;
	c->threads = mew_kept_map(config->threads * sizeof *c->threads);
	c->window.stacks = mew_stackset_new(STACKS_MAX, FRAMES_MAX);
	c->crew = mew_cpu_crew_new(&c->window);
	if (c->threads == NULL || c->window.stacks == NULL || c->crew == NULL) {
		release(c);
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the stacks of the CPU sampler");
	}
	if (config->whole)
		c->cost_why = "a whole program is not held up to calibrate the cost of a sample";
	else
		c->cost_ns = mew_cpu_cost_ns(&c->cost_why);
	status = choose_engine(c, err);
	if (status != MEW_OK) {
		release(c);
		return status;
	}
	c->watches = !mew_cpu_crew_is_watching();
	if (c->watches)
		mew_cpu_crew_watch();
	*out = c;
	return MEW_OK;
}

static int begin_thread(struct mew_capture *c, unsigned thread, struct mew_error *err)
{
	if (thread >= c->config.threads || c->threads[thread].sampled != NULL)
		return mew_error_set(err, MEW_E_INVALID, "thread %u is sampled already, or none of the case's %u",
				     thread, c->config.threads);
	mew_cpu_crew_forget(); /* the runner's thread, not one of the case's own */
	if (!c->config.whole)
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

/*
 * A tick that comes while its timer is still being set shows mew and not the loop: in a short loop, on a busy machine,
 * it would be all there is. The one benchmark thread sets its own; several wait meanwhile, and are left out by that, as
 * is one whose runner says that it waits, until it says that it goes on. Returns whose wait is to be ended here, or
 * NULL.
 */
static struct mew_cpu_thread *leave_out(const struct mew_capture *c)
{
	struct mew_cpu_thread *t = c->threads[0].sampled;

	if (c->config.threads != 1 || c->config.whole || t == NULL || t->perfring != NULL || atomic_load(&t->away) != 0)
		return NULL;
	mew_cpu_thread_wait(t, true);
	return t;
}

static int begin(struct mew_capture *c, struct mew_error *err)
{
	struct mew_cpu_thread *left_out;

	for (unsigned i = 0; i < c->config.threads; i++) {
		struct mew_cpu_bench_thread *t = &c->threads[i];

		if (t->sampled == NULL)
			continue;
		if (!mew_cpu_signal_is_ours(t->sampled->signal_number))
			return mew_error_set(err, MEW_E_BUSY,
					     "the program took signal %d from the CPU sampler: it must use another one",
					     t->sampled->signal_number);
		mew_cpu_counters_begin(&t->counters);
		t->has_cpu = read_clock(t->sampled->cpu_clock, &t->cpu_ns);
	}
	if (c->window.engine == MEW_CPU_ENGINE_RING) {
		c->drainer = mew_cpu_drainer_start();
		if (c->drainer == NULL)
			return mew_error_set(err, MEW_E_NOMEM, "no thread to walk the samples with: raise ulimit -u");
	}
	mew_cpu_crew_prepare(c->crew);
	c->window.opened_ns = mew_os_now_ns();
	mew_cpu_crew_start(c->crew);
	left_out = leave_out(c);
	/* last, and by a new look at the clock: what the others took is not theirs */
	for (unsigned i = 0; i < c->config.threads; i++) {
		struct mew_cpu_thread *t = c->threads[i].sampled;

		if (t == NULL || mew_cpu_thread_arm(t, mew_os_now_ns()) == 0)
			continue;
		disarm(c);
		return mew_error_errno(err, MEW_E_DENIED, "the timer of benchmark thread %u cannot be set", i);
	}
	if (left_out != NULL)
		mew_cpu_thread_wait(left_out, false);
	return MEW_OK;
}

static void wait_thread(struct mew_capture *c, unsigned thread, bool waits)
{
	mew_cpu_thread_wait(c->threads[thread].sampled, waits);
}

static void pause_thread(struct mew_capture *c, unsigned thread)
{
	struct mew_cpu_bench_thread *t = &c->threads[thread];

	mew_cpu_thread_pause(t->sampled);
	if (c->config.pause_cpu)
		t->cpu_pause_ns = mew_os_thread_cpu_ns();
}

static void resume_thread(struct mew_capture *c, unsigned thread)
{
	struct mew_cpu_bench_thread *t = &c->threads[thread];

	if (c->config.pause_cpu)
		t->cpu_paused_ns += mew_os_thread_cpu_ns() - t->cpu_pause_ns;
	mew_cpu_thread_resume(t->sampled);
}

/* CPU time of the window, its pauses out; a loop may end while paused. */
static void close_cpu(const struct mew_capture *c, struct mew_cpu_bench_thread *t)
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
	mew_cpu_crew_end(c->crew);
	mew_cpu_drainer_stop(c->drainer);
	c->drainer = NULL;
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
	.drain = mew_cpu_drain,
	.close = release,
	.wait = wait_thread,
	.case_begin = mew_cpu_crew_watch,
	.case_end = mew_cpu_crew_unwatch,
};
