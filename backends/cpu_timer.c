/*
 * cpu_timer.c - a thread's grid of random sampling points, its timer, and the tick that records.
 * Layer L3. The tick runs in a signal handler: two clock reads and one timer_settime are all it asks of the system. It
 * interns the stack: measured, a fifth of the cost and a tenth of the memory of copying stacks into fresh pages.
 */
#include "config.h"

#include "cpu_timer.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "error.h"
#include "modules.h"
#include "os.h"
#include "stackset.h"

#include "hotpath.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define NS_PER_S ((uint64_t)1000000000)
#define LEAST_DELAY_NS ((uint64_t)1000)        /* points nearer than the way out of the handler see nothing new */
#define STACK_RESERVE_BYTES ((uintptr_t)16384) /* below this no walk: the signal frame itself may take 11 KiB */
#define WALK_BYTES ((uintptr_t)4096)           /* on other stacks, which may be small: what a walk itself needs */
#define SLEEP_AFTER_TICKS 50u
#define COST_SHARE 5u                          /* a tick may cost 1/5 of the period */

_Static_assert(sizeof(struct mew_cpu_thread) <= MEW_CPU_SLOT_BYTES, "a thread's state must fit in its slot");

/* --- the kernel's timer ------------------------------------------------------------------------------------------ */

int mew_cpu_timer_create(int tid, int number, void *value)
{
	struct sigevent event;
	int timer = -1;

	memset(&event, 0, sizeof event);
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = number;
	event.sigev_value.sival_ptr = value;
	event.sigev_notify_thread_id = tid;
	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0)
		return -1;
	return timer;
}

void mew_cpu_timer_delete(int timer)
{
	(void)syscall(SYS_timer_delete, timer);
}

/* Fire once at this time; 0 switches the timer off. */
static int set_timer(const struct mew_cpu_thread *t, uint64_t at_ns)
{
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(at_ns / NS_PER_S),
						 .tv_nsec = (long)(at_ns % NS_PER_S) } };

	return (int)syscall(SYS_timer_settime, t->timer, TIMER_ABSTIME, &spec, NULL);
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

static uint64_t next_random(struct mew_cpu_thread *t) /* Marsaglia's xorshift64 */
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
		(void)next_random(t);
}

static void draw_point(struct mew_cpu_thread *t)
{
	t->due_ns = t->cell_ns + next_random(t) % t->period_ns;
}

static void start_grid(struct mew_cpu_thread *t, uint64_t now)
{
	t->cell_ns = now;
	draw_point(t);
}

/*
 * Go on to the first point after `now`. Returns the length of the cells whose points have passed, the one that was
 * due included: what this tick stands for.
 */
static uint64_t advance_grid(struct mew_cpu_thread *t, uint64_t now)
{
	uint64_t first = t->cell_ns, whole;

	t->cell_ns += t->period_ns;
	if (t->cell_ns + t->period_ns <= now) {
		whole = (now - t->cell_ns) / t->period_ns;
		t->cell_ns += whole * t->period_ns;
	}
	draw_point(t);
	while (t->due_ns <= now) {
		t->cell_ns += t->period_ns;
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
	t->period_ns *= 2;
	t->backoffs++;
}

/* --- one tick ---------------------------------------------------------------------------------------------------- */

/* Can a walk from here go on? A handler runs on the stack that it interrupted, and its signal frame is there already. */
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
		*stop = MEW_STOP_BAD_STACK;
		return 1;
	}
	return mew_unwind_walk(&t->unwind, &regs, t->window->entry_lo, t->window->entry_hi, t->pcs,
			       MEW_CPU_FRAMES_MAX, stop);
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

static void sleep_or_go_on(struct mew_cpu_thread *t)
{
	uint64_t pause = atomic_load_explicit(&t->pauses, memory_order_relaxed);

	if (pause != t->pause_seen) {
		t->pause_seen = pause;
		t->paused_ticks = 0;
	}
	if (++t->paused_ticks >= SLEEP_AFTER_TICKS)
		atomic_store_explicit(&t->asleep, 1, memory_order_relaxed);
	else
		(void)set_timer(t, t->due_ns);
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

static void sample(struct mew_cpu_thread *t, const void *ucontext)
{
	uint64_t start = mew_os_now_ns(), end;
	enum mew_unwind_stop stop = MEW_STOP_END;
	struct mew_cpu_record record = { .time_ns = start - t->window->opened_ns };
	size_t n;

	if (atomic_load_explicit(&t->paused, memory_order_relaxed) != 0) {
		(void)advance_grid(t, start + LEAST_DELAY_NS);
		sleep_or_go_on(t);
		return;
	}
	n = walk(t, ucontext, &stop);
	record.stack = mew_stackset_intern(t->window->stacks, t->pcs, n);
	record.stop = (uint32_t)stop;
	end = mew_os_now_ns();
	/*
	 * What a tick costs beyond a paused one lengthens the running time only: the grid steps over it and the
	 * sample carries it, else a case with many pauses would weigh less than it took. Points inside what is left
	 * of the tick would see the same place: they are charged here and need no signal of their own.
	 */
	t->cell_ns += end - start;
	record.weight_ns = end - start + advance_grid(t, end + LEAST_DELAY_NS);
	(void)mew_ring_push(&t->ring, &record); /* counts its drops */
	save_records(t);
	note_cost(t, end - start);
	(void)set_timer(t, t->due_ns);
}

void mew_cpu_thread_tick(struct mew_cpu_thread *t, const void *ucontext)
{
	/* sequential consistency: the one who clears armed then waits for busy, see mew_cpu_thread_disarm() */
	atomic_store(&t->busy, 1);
	if (atomic_load(&t->armed) != 0 && atomic_load(&t->held) == 0)
		sample(t, ucontext);
	atomic_store_explicit(&t->busy, 0, memory_order_release);
}

/* --- windows ----------------------------------------------------------------------------------------------------- */

int mew_cpu_thread_arm(struct mew_cpu_thread *t, uint64_t now)
{
	t->period_ns = t->window->period_ns;
	start_grid(t, now);
	atomic_store(&t->armed, 1);
	if (set_timer(t, t->due_ns) == 0)
		return 0;
	atomic_store(&t->armed, 0);
	return -1;
}

void mew_cpu_thread_disarm(struct mew_cpu_thread *t)
{
	atomic_store(&t->armed, 0);
	while (atomic_load(&t->busy) != 0)
		(void)sched_yield();
	if (t->timer >= 0)
		(void)set_timer(t, 0);
}

void mew_cpu_thread_wake(struct mew_cpu_thread *t)
{
	atomic_store_explicit(&t->asleep, 0, memory_order_relaxed);
	if (atomic_load(&t->armed) == 0 || t->timer < 0)
		return;
	start_grid(t, mew_os_now_ns());
	(void)set_timer(t, t->due_ns);
}

void mew_cpu_thread_hold(struct mew_cpu_thread *t)
{
	atomic_store(&t->held, 1);
	(void)set_timer(t, 0);
}

/* The point that was due may have passed: then the tick comes at once and the fork's time is charged to the fork. */
void mew_cpu_thread_unhold(struct mew_cpu_thread *t)
{
	atomic_store(&t->held, 0);
	if (atomic_load(&t->armed) != 0 && atomic_load(&t->asleep) == 0)
		(void)set_timer(t, t->due_ns);
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
	(void)set_timer(t, 0);
}

static int prepare(struct mew_cpu_thread *t, struct mew_error *err)
{
	if (mew_unwind_thread_init(&t->unwind) != 0)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "the bounds of this thread's stack cannot be found: is /proc mounted?");
	if (mew_modules_renew() != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the unwind tables of the loaded files");
	if (pthread_getcpuclockid(pthread_self(), &t->cpu_clock) != 0)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "this thread has no CPU clock");
	if (mew_ring_init(&t->ring, sizeof(struct mew_cpu_record), MEW_CPU_RECORDS) != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for %zu samples of a thread: raise ulimit -v",
				     MEW_CPU_RECORDS);
	t->timer = mew_cpu_timer_create(t->tid, t->signal_number, mew_cpu_slot_value(t));
	if (t->timer < 0) {
		int status = mew_error_errno(err, MEW_E_DENIED,
					     "no timer for a benchmark thread: raise ulimit -i (pending signals)");

		mew_ring_fini(&t->ring);
		return status;
	}
	return MEW_OK;
}

int mew_cpu_thread_new(struct mew_cpu_thread **out, const struct mew_cpu_window *window, struct mew_error *err)
{
	struct mew_cpu_thread *t = mew_cpu_slot_take();
	int status;

	if (t == NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "more than %u threads are sampled: use fewer",
				     (unsigned)MEW_CPU_SLOTS);
	t->window = window;
	t->tid = mew_os_tid();
	t->signal_number = mew_cpu_signal_number();
	seed_random(t);
	status = prepare(t, err);
	if (status != MEW_OK) {
		mew_cpu_slot_give(t);
		return status;
	}
	rehearse(t);
	set_blocked(t, false, &t->was_blocked);
	*out = t;
	return MEW_OK;
}

static void drop_timer(struct mew_cpu_thread *t)
{
	if (t->timer >= 0)
		mew_cpu_timer_delete(t->timer);
	t->timer = -1;
}

void mew_cpu_thread_detach(struct mew_cpu_thread *t)
{
	mew_cpu_thread_disarm(t);
	drop_timer(t);
	if (t->was_blocked)
		set_blocked(t, true, NULL);
}

void mew_cpu_thread_free(struct mew_cpu_thread *t)
{
	drop_timer(t);
	mew_ring_fini(&t->ring);
	mew_cpu_slot_give(t);
}
