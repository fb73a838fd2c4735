/*
 * cpu_timer.c - a thread's grid of random sampling points, and the tick that records.
 * Layer L3. The tick runs in a signal handler: it reads clocks and arms the next tick, no more is asked of the system.
 * It interns the stack: measured, a fifth of the cost and a tenth of the memory of copying stacks into fresh pages.
 */
#include "config.h"

#include "cpu_timer.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "cpu_perfring.h"
#include "error.h"
#include "modules.h"
#include "os.h"
#include "stackset.h"

#include "hotpath.h"

#define NS_PER_S ((uint64_t)1000000000)
#define LEAST_DELAY_NS ((uint64_t)1000)        /* points nearer than the way out of the handler see nothing new */
#define STACK_RESERVE_BYTES ((uintptr_t)16384) /* below this no walk: the signal frame itself may take 11 KiB */
#define WALK_BYTES ((uintptr_t)4096)           /* on other stacks, which may be small: what a walk itself needs */
#define SLEEP_AFTER_TICKS 50u
#define EARLY_NS ((uint64_t)1000)              /* a point so near is here */
#define COST_SHARE 5u                          /* a tick may cost 1/5 of the period */

_Static_assert(sizeof(struct mew_cpu_thread) <= MEW_CPU_SLOT_BYTES, "a thread's state must fit in its slot");

/* --- the window's clock ------------------------------------------------------------------------------------------ */

static bool is_on_cpu_time(const struct mew_cpu_thread *t)
{
	return t->window->clock == MEW_CLOCK_CPU;
}

/* The window's clock of a thread from any thread; the wall's where it cannot be read. */
static uint64_t clock_of(const struct mew_cpu_thread *t, clockid_t clock, uint64_t wall_now)
{
	struct timespec now;

	if (!is_on_cpu_time(t) || clock_gettime(clock, &now) != 0)
		return wall_now;
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int arm_next(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now)
{
	return mew_cpu_engine_arm(t, now, wall_now, t->due_ns > now ? t->due_ns - now : 0);
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

uint64_t mew_cpu_thread_random(struct mew_cpu_thread *t) /* Marsaglia's xorshift64 */
{
	uint64_t x = t->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return t->random = x;
}

/* Clock and address differ between threads but not by much: spread the bits. The state must not be 0. */
static void seed_random(struct mew_cpu_thread *t)
{
	t->random = (mew_os_now_ns() ^ ((uint64_t)(unsigned)t->tid << 32) ^ (uint64_t)(uintptr_t)t) | 1;
	for (int i = 0; i < 16; i++)
		(void)mew_cpu_thread_random(t);
}

static void draw_point(struct mew_cpu_thread *t)
{
	t->due_ns = t->cell_ns + mew_cpu_thread_random(t) % t->width_ns;
}

static void start_grid(struct mew_cpu_thread *t, uint64_t now)
{
	t->cell_ns = now;
	t->width_ns = t->period_ns;
	draw_point(t);
}

/*
 * Go on to the first point after `now`. Returns the length of the cells whose points have passed, the one that was
 * due included: what this tick stands for. Under the wall clock the cells after that are as wide as the thread's sleep
 * allows; their width follows from the past alone, so each moment of them still has the same chance.
 */
static uint64_t advance_grid(struct mew_cpu_thread *t, uint64_t now)
{
	uint64_t first = t->cell_ns, whole;

	t->cell_ns += t->width_ns;
	t->width_ns = is_on_cpu_time(t) ? t->period_ns : mew_cpu_rest_width(t);
	if (t->cell_ns + t->width_ns <= now) {
		whole = (now - t->cell_ns) / t->width_ns;
		t->cell_ns += whole * t->width_ns;
	}
	draw_point(t);
	while (t->due_ns <= now) {
		t->cell_ns += t->width_ns;
		draw_point(t);
	}
	return t->cell_ns - first;
}

/* The cell that is due keeps its start; its point moves with the longer period. */
static void double_period(struct mew_cpu_thread *t)
{
	if (t->period_ns > NS_PER_S)
		return;
	t->due_ns = t->cell_ns + (t->due_ns - t->cell_ns) * 2;
	t->width_ns *= 2;
	t->period_ns *= 2;
	t->backoffs++;
}

/* --- one tick ---------------------------------------------------------------------------------------------------- */

/*
 * Can a walk from here go on? A handler runs on the stack that it interrupted, and its signal frame is there already.
 */
static bool may_walk(const struct mew_cpu_thread *t, const struct mew_unwind_regs *regs)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), lo, hi;

	if (!mew_unwind_bounds(&t->unwind, regs, &lo, &hi))
		return false;
	if (lo == t->unwind.stack_lo)
		return regs->sp >= lo + STACK_RESERVE_BYTES;
	return here >= lo + WALK_BYTES && here < hi;
}

static size_t walk(struct mew_cpu_thread *t, const void *ucontext, enum mew_unwind_stop *stop)
{
	struct mew_unwind_regs regs;

	mew_unwind_from_ucontext(&regs, ucontext);
	if (!may_walk(t, &regs)) {
		t->pcs[0] = regs.ip; /* the function is known, how it was called is not */
		if (t->unwind.stack_hi == 0)
			atomic_store_explicit(&t->sp_seen, regs.sp, memory_order_relaxed);
		*stop = MEW_STOP_BAD_STACK;
		return 1;
	}
	return mew_unwind_walk(&t->unwind, &regs, t->entry_lo, t->entry_hi, t->pcs, MEW_CPU_FRAMES_MAX, stop);
}

/* A run of any length must fit: each time half of what was left is used, the rest is spent at half the rate. */
static void save_records(struct mew_cpu_thread *t)
{
	uint64_t left = t->ring.capacity - (t->ring.head - t->ring.tail);

	if (left < (t->ring.capacity >> (t->full_steps + 1))) {
		t->full_steps++;
		double_period(t);
	}
}

void mew_cpu_thread_keep(struct mew_cpu_thread *t, const struct mew_cpu_record *record)
{
	(void)mew_ring_push(&t->ring, record); /* counts its drops */
	save_records(t);
}

static void sleep_or_go_on(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now)
{
	uint64_t pause = atomic_load_explicit(&t->pauses, memory_order_relaxed);

	if (pause != t->pause_seen) {
		t->pause_seen = pause;
		t->paused_ticks = 0;
	}
	if (++t->paused_ticks >= SLEEP_AFTER_TICKS)
		atomic_store_explicit(&t->asleep, 1, memory_order_relaxed);
	else
		(void)arm_next(t, now, wall_now);
}

/*
 * One tick may be preempted for long, so each counts for a period at most; the average over 16 then reaches the limit
 * only when ticks are slow again and again.
 */
static void note_cost(struct mew_cpu_thread *t, uint64_t cost_ns)
{
	if (cost_ns > t->period_ns)
		cost_ns = t->period_ns;
	t->cost_ns16 += cost_ns - t->cost_ns16 / 16;
	if (t->cost_ns16 / 16 > t->period_ns / COST_SHARE)
		double_period(t);
}

/* A tick of a paused thread, which stands for nothing. */
static void skip_paused(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now)
{
	if (now + LEAST_DELAY_NS >= t->due_ns)
		(void)advance_grid(t, now + LEAST_DELAY_NS);
	sleep_or_go_on(t, now, wall_now);
}

/*
 * Under the CPU clock: did the tick come before its point? Engines that go by another clock find that out only now: a
 * wall timer went on while the thread was off the processor. Arms the next tick then.
 */
static bool is_early(struct mew_cpu_thread *t, const void *ucontext, uint64_t now, uint64_t wall_now)
{
	bool is_asleep = t->window->engine == MEW_CPU_ENGINE_TIMER &&
			 mew_cpu_rest_is_asleep(t, ucontext, wall_now, now);
	uint64_t delay;

	if (!is_asleep && now + EARLY_NS >= t->due_ns)
		return false;
	delay = t->due_ns > now ? t->due_ns - now : 0;
	if (is_asleep && delay < mew_cpu_rest_width(t))
		delay = mew_cpu_rest_width(t);
	(void)mew_cpu_engine_arm(t, now, wall_now, delay);
	return true;
}

static void record(struct mew_cpu_thread *t, const void *ucontext, uint64_t now, uint64_t wall_now)
{
	enum mew_unwind_stop stop = MEW_STOP_END;
	struct mew_cpu_record record = { .time_ns = wall_now - t->window->opened_ns };
	size_t n = walk(t, ucontext, &stop);
	uint64_t wall_end, cost;

	record.stack = mew_stackset_intern(t->window->stacks, t->pcs, n);
	record.stop = (uint16_t)stop;
	record.blocked = !is_on_cpu_time(t) && mew_cpu_rest_is_blocked(t, ucontext, wall_now);
	wall_end = mew_os_now_ns();
	cost = wall_end - wall_now;
	if (is_on_cpu_time(t) && cost > t->period_ns) /* interrupted itself: how long it ran is not known by the wall */
		cost = mew_os_thread_cpu_ns() - now;
	/*
	 * What a tick costs beyond a paused one lengthens the running time only: the grid steps over it and the
	 * sample carries it, else a case with many pauses would weigh less than it took. Points inside what is left
	 * of the tick would see the same place: they are charged here and need no signal of their own.
	 */
	t->cell_ns += cost;
	record.weight_ns = cost + t->rest.owed_ns + advance_grid(t, now + cost + LEAST_DELAY_NS);
	t->rest.owed_ns = 0;
	mew_cpu_thread_keep(t, &record);
	note_cost(t, cost);
	(void)arm_next(t, now + cost, wall_end);
}

static void sample(struct mew_cpu_thread *t, const void *ucontext)
{
	uint64_t wall_now = mew_os_now_ns();
	uint64_t now = is_on_cpu_time(t) ? mew_os_thread_cpu_ns() : wall_now;

	if ((atomic_load_explicit(&t->paused, memory_order_relaxed) |
	     atomic_load_explicit(&t->away, memory_order_relaxed)) != 0)
		skip_paused(t, now, wall_now);
	else if (!is_on_cpu_time(t) || !is_early(t, ucontext, now, wall_now))
		record(t, ucontext, now, wall_now);
}

void mew_cpu_thread_tick(struct mew_cpu_thread *t, const void *ucontext)
{
	/* sequential consistency: the one who clears armed then waits for busy, see mew_cpu_thread_disarm() */
	atomic_store(&t->busy, 1);
	atomic_store_explicit(&t->event_due, 0, memory_order_relaxed);
	if (atomic_load(&t->armed) != 0 && atomic_load(&t->held) == 0)
		sample(t, ucontext);
	atomic_store_explicit(&t->busy, 0, memory_order_release);
}

/* --- windows ----------------------------------------------------------------------------------------------------- */

int mew_cpu_thread_arm(struct mew_cpu_thread *t, uint64_t wall_now)
{
	uint64_t now = clock_of(t, t->cpu_clock, wall_now);
	struct timespec cpu = { 0, 0 };

	(void)clock_gettime(t->cpu_clock, &cpu);
	mew_cpu_rest_start(t, wall_now, (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec);
	t->period_ns = t->window->period_ns;
	t->full_steps = 0;
	if (t->perfring != NULL)
		return mew_cpu_perfring_start(t);
	start_grid(t, now);
	atomic_store(&t->armed, 1);
	if (arm_next(t, now, wall_now) == 0)
		return 0;
	atomic_store(&t->armed, 0);
	return -1;
}

void mew_cpu_thread_disarm(struct mew_cpu_thread *t)
{
	atomic_store(&t->armed, 0);
	while (atomic_load(&t->busy) != 0)
		(void)sched_yield();
	mew_cpu_engine_off(t);
	mew_cpu_perfring_stop(t);
}

void mew_cpu_thread_wake(struct mew_cpu_thread *t)
{
	uint64_t wall_now = mew_os_now_ns(), now;

	atomic_store_explicit(&t->asleep, 0, memory_order_relaxed);
	if (atomic_load(&t->armed) == 0 || !mew_cpu_engine_is_open(t))
		return;
	now = clock_of(t, CLOCK_THREAD_CPUTIME_ID, wall_now);
	start_grid(t, now);
	(void)arm_next(t, now, wall_now);
}

void mew_cpu_thread_hold(struct mew_cpu_thread *t)
{
	atomic_store(&t->held, 1);
	mew_cpu_engine_off(t);
}

/* The point that was due may have passed: then the tick comes at once and the fork's time is charged to the fork. */
void mew_cpu_thread_unhold(struct mew_cpu_thread *t)
{
	uint64_t wall_now = mew_os_now_ns();

	atomic_store(&t->held, 0);
	if (atomic_load(&t->armed) != 0 && atomic_load(&t->asleep) == 0)
		(void)arm_next(t, clock_of(t, CLOCK_THREAD_CPUTIME_ID, wall_now), wall_now);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void set_blocked(const struct mew_cpu_thread *t, bool blocked, bool *was)
{
	sigset_t set, old;

	(void)sigemptyset(&set);
	(void)sigemptyset(&old);
	(void)sigaddset(&set, t->signal_number);
	(void)pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, &old);
	if (was != NULL)
		*was = sigismember(&old, t->signal_number) == 1;
}

/* Touch what a tick touches and resolve what it calls. The stack that this interns belongs to no sample. */
static void rehearse(struct mew_cpu_thread *t)
{
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	size_t n;

	mew_unwind_here(&regs);
	n = mew_unwind_walk(&t->unwind, &regs, 0, 0, t->pcs, MEW_CPU_FRAMES_MAX, &stop);
	(void)mew_stackset_intern(t->window->stacks, t->pcs, n);
	(void)mew_os_now_ns();
	(void)mew_os_thread_cpu_ns();
	mew_cpu_engine_off(t);
}

struct mew_cpu_thread *mew_cpu_thread_take(int tid)
{
	struct mew_cpu_thread *t = mew_cpu_slot_take();

	if (t == NULL)
		return NULL;
	t->tid = tid;
	t->signal_number = mew_cpu_signal_number();
	seed_random(t);
	return t;
}

int mew_cpu_thread_equip(struct mew_cpu_thread *t, const struct mew_cpu_window *window, size_t records)
{
	if (mew_ring_init(&t->ring, sizeof(struct mew_cpu_record), records) != 0) {
		errno = ENOMEM;
		return -1;
	}
	t->window = window;
	if (mew_cpu_engine_open(t) == 0)
		return 0;
	mew_ring_fini(&t->ring);
	t->window = NULL;
	return -1;
}

static int prepare(struct mew_cpu_thread *t, const struct mew_cpu_window *window, struct mew_error *err)
{
	if (mew_unwind_thread_init(&t->unwind) != 0)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "the bounds of this thread's stack cannot be found: is /proc mounted?");
	if (mew_modules_renew() != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the unwind tables of the loaded files");
	if (pthread_getcpuclockid(pthread_self(), &t->cpu_clock) != 0)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "this thread has no CPU clock");
	if (mew_cpu_thread_equip(t, window, MEW_CPU_RECORDS) == 0)
		return MEW_OK;
	if (errno == ENOMEM)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu samples of a thread: raise ulimit -v",
				     MEW_CPU_RECORDS);
	return mew_error_errno(err, MEW_E_DENIED,
			       window->engine == MEW_CPU_ENGINE_RING
				       ? "no perf event with a ring for a benchmark thread: raise ulimit -n and -l"
			       : window->engine == MEW_CPU_ENGINE_PERF
				       ? "no perf event for a benchmark thread: raise ulimit -n"
				       : "no timer for a benchmark thread: raise ulimit -i (pending signals)");
}

int mew_cpu_thread_new(struct mew_cpu_thread **out, const struct mew_cpu_window *window, struct mew_error *err)
{
	struct mew_cpu_thread *t = mew_cpu_thread_take(mew_os_tid());
	int status;

	if (t == NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "more than %u threads are sampled: use fewer",
				     (unsigned)MEW_CPU_SLOTS);
	t->entry_lo = window->entry_lo;
	t->entry_hi = window->entry_hi;
	status = prepare(t, window, err);
	if (status != MEW_OK) {
		mew_cpu_slot_give(t);
		return status;
	}
	rehearse(t);
	mew_cpu_thread_unblock(t);
	*out = t;
	return MEW_OK;
}

void mew_cpu_thread_unblock(struct mew_cpu_thread *t)
{
	set_blocked(t, false, &t->was_blocked);
}

void mew_cpu_thread_detach(struct mew_cpu_thread *t)
{
	mew_cpu_thread_disarm(t);
	mew_cpu_engine_close(t);
	if (t->was_blocked)
		set_blocked(t, true, NULL);
}

void mew_cpu_thread_strip(struct mew_cpu_thread *t)
{
	mew_cpu_engine_close(t);
	mew_ring_fini(&t->ring);
	t->window = NULL;
}

void mew_cpu_thread_free(struct mew_cpu_thread *t)
{
	mew_cpu_thread_strip(t);
	mew_cpu_slot_give(t);
}
