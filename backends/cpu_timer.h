/*
 * cpu_timer.h - one sampled thread: its timer, its grid of random points, its records.
 * Layer L3. Private to the CPU backend; threads and windows are made outside windows, ticks run in a signal handler.
 *
 * The grid: time is cut into cells of one period; each cell has one uniformly random point. A tick is due at each
 * point and stands for its whole cell, so every moment has the same chance to be seen and the weights add up to the
 * time. A tick that comes late also stands for the cells whose points have passed; a tick that finds its thread
 * paused stands for nothing. The time that a recording tick itself takes is not part of the grid and is charged where
 * it was spent.
 *
 * Under MEW_CLOCK_CPU the same grid lies on the CPU time of the thread.
 */
#ifndef MEW_CPU_TIMER_H
#define MEW_CPU_TIMER_H

#include "base.h"
#include "mew.h"
#include "ring.h"
#include "unwind.h"
#include "unwind_recent.h"

#include <stdatomic.h>
#include <time.h>

struct mew_stackset;
struct mew_cpu_perfring;
struct mew_kept_static; /* kept.h */

#define MEW_CPU_FRAMES_MAX 256         /* deeper stacks are cut at the entry side */
#define MEW_CPU_RECORDS ((size_t)1 << 20) /* per thread: 100 s at 0.1 ms; the period grows before they run out */
#define MEW_CPU_PERIOD_MIN_NS 20000u   /* delivery alone takes 4 us */

/* What the ticks of all threads of one capture read; constant while a window is open. */
struct mew_cpu_window {
	enum mew_clock clock;
	int engine;                   /* enum mew_cpu_engine */
	struct mew_stackset *stacks;
	uintptr_t entry_lo, entry_hi; /* stacks of benchmark threads end below this code */
	uint64_t period_ns;
	uint64_t opened_ns;
};

/* What cpu_rest.c remembers of a thread to tell running from sleeping. */
struct mew_cpu_rest {
	uint64_t tick_ns;          /* of CLOCK_MONOTONIC, the last tick */
	uint64_t wall_ns, cpu_ns;  /* both clocks when the CPU clock was last read */
	uint64_t pauses;           /* of the thread then */
	uint64_t wake_ns;          /* CPU time that waking for a tick takes: the least seen */
	uint64_t switches;         /* how often the thread had gone to wait when that was last asked */
	uint64_t owed_ns;          /* CPU time of such ticks, for the next sample to carry */
	unsigned sleeping;         /* ticks in a row that found the thread asleep */
	unsigned put_off;          /* samples in a row that were due and waited for the thread to run */
};

struct mew_cpu_record {
	uint64_t time_ns;   /* since the window opened */
	uint64_t weight_ns;
	uint32_t stack;     /* of the window's stack set; 0: the set was full */
	uint16_t stop;      /* enum mew_unwind_stop */
	uint16_t blocked;   /* the thread was on no processor */
};

/*
 * One thread's state, at a multiple of MEW_CPU_SLOT_BYTES. Never unmapped, only used again under another generation:
 * a late signal of an earlier timer finds a number that is not its own.
 */
struct mew_cpu_thread {
	/* written by the thread itself, read by its handler */
	_Atomic uint32_t paused;
	_Atomic uint32_t away;        /* waits for other benchmark threads: paused, and yet no pause of the body's */
	_Atomic uint32_t asleep;      /* a long pause switched the timer off; resume switches it on */
	_Atomic uint64_t pauses;

	/* whoever opens and closes the window against the handler */
	_Atomic uint32_t armed;
	_Atomic uint32_t busy;        /* a tick is running */
	_Atomic uint32_t held;        /* fork is under way */
	_Atomic uint32_t taken;       /* the slot is in use */
	_Atomic uint32_t generation;

	_Atomic int timer;            /* the kernel's number; -1 for none */
	_Atomic int event;            /* file descriptor of a perf event in its place; -1 for none */
	struct mew_cpu_perfring *perfring; /* in place of both: cpu_perfring.h; NULL for none */
	_Atomic uint32_t event_due;   /* that was armed and has sent nothing since */
	_Atomic int tid;
	int signal_number;
	bool was_blocked;             /* the thread had the signal blocked before mew_cpu_thread_new() */
	clockid_t cpu_clock;          /* of this thread, readable from any */
	const struct mew_cpu_window *window;
	uintptr_t entry_lo, entry_hi; /* stacks end below this code; 0, 0: at the thread's end */

	/* of threads that the case made itself: cpu_crew.c */
	_Atomic uint32_t helper;      /* it is one */
	_Atomic uintptr_t sp_seen;    /* a tick's stack pointer, left by a thread whose stack is not known; 0 none */
	uint32_t number;              /* of its row */
	bool found_by_scan, present;  /* no wrapper announced it; the last scan saw it */
	bool has_cpu;
	uint32_t looks;               /* scans that saw it */
	uint64_t from_ns, cpu_from_ns; /* its wall and CPU time when it entered the window */

	/* the handler's own between arm and disarm */
	uint64_t random;
	uint64_t period_ns;
	uint64_t cell_ns;             /* start of the cell whose point is due */
	uint64_t width_ns;            /* of that cell: the period, or more while the thread sleeps */
	uint64_t due_ns;
	struct mew_cpu_rest rest;
	uint64_t cost_ns16;           /* moving average of a tick's cost, in 1/16 ns */
	uint64_t pause_seen;          /* value of pauses at the last paused tick */
	unsigned paused_ticks;        /* in a row within that pause */
	unsigned full_steps;          /* how often the period was doubled to save records */
	unsigned backoffs;            /* how often it was doubled for any reason */
	struct mew_ring ring;
	struct mew_unwind_recent recent; /* before the large one: a tick then touches few pages */
	uintptr_t pcs[MEW_CPU_FRAMES_MAX];
	struct mew_unwind_thread unwind;
};
#define MEW_CPU_SLOT_BYTES ((uintptr_t)32768)
#define MEW_CPU_SLOTS ((uintptr_t)1024)

/* --- cpu_signal.c: the signal and the slots ---------------------------------------------------------------------- */

/*
 * Make sure that a real-time signal is handled by mew: the one already taken when it still is, else a free one, else
 * the highest (signals that are not mew's own go on to its former handler). Also maps the slots and watches fork,
 * once.
 *
 * Returns  MEW_OK; MEW_E_DENIED or MEW_E_NOMEM with text
 * Context  runner thread, outside windows
 */
int mew_cpu_signal_take(struct mew_error *err);

/* The half of that which concerns fork; once. Returns false without memory. Context: outside windows. */
bool mew_cpu_signal_watch_fork(void);

/* Number of the signal; 0 before mew_cpu_signal_take(). Context: any thread. */
int mew_cpu_signal_number(void);

/* Is the handler of that signal still mew's? Context: any thread. */
bool mew_cpu_signal_is_ours(int number);

/* Signals of mew's number that were dropped: of nobody, or of a timer of the past. Context: any thread. */
uint64_t mew_cpu_signal_strays(void);

/* What the slots hang on. Context: any thread. */
void mew_cpu_slots_static(struct mew_kept_static *s);

/* A free slot under a new generation, cleared but for its ring; NULL when all are taken. Context: any thread. */
struct mew_cpu_thread *mew_cpu_slot_take(void);
void mew_cpu_slot_give(struct mew_cpu_thread *t);

/* The slots that were ever used, one after the other: the first for NULL, NULL behind the last. Context: any thread. */
struct mew_cpu_thread *mew_cpu_slot_next(const struct mew_cpu_thread *t);
/* The slot of a thread id; NULL for none. Context: any thread. */
struct mew_cpu_thread *mew_cpu_slot_of(int tid);

/* What a timer carries so that the handler finds the slot: its address and, in the low bits, its generation. */
void *mew_cpu_slot_value(struct mew_cpu_thread *t);

/* The same for a perf event, which carries no value: its slot is known by the descriptor, -1 for none. */
void mew_cpu_slot_event(struct mew_cpu_thread *t, int event);

/*
 * A signal that finds no room in the queue (ulimit -i) becomes SIGIO, whose default action ends the process. Where that
 * is the action, take SIGIO for a tick instead. Context: outside windows.
 */
void mew_cpu_signal_guard_overflow(void);

/* --- cpu_engine.c: what makes the ticks of one thread ------------------------------------------------------------ */

enum mew_cpu_engine { /* in no order */
	MEW_CPU_ENGINE_BEST,      /* none yet: the best that works here */
	MEW_CPU_ENGINE_TIMER,     /* a timer of CLOCK_MONOTONIC */
	MEW_CPU_ENGINE_PERF,      /* perf's task clock: an exact timer of CPU time */
	MEW_CPU_ENGINE_CPU_TIMER, /* a timer of the thread's CPU clock: as coarse as the kernel's tick */
	MEW_CPU_ENGINE_RING,      /* the same clock without signals: cpu_perfring.h */
	MEW_CPU_ENGINES
};

/*
 * Create a timer for a thread id that sends `number` with `value`. A timer of CLOCK_THREAD_CPUTIME_ID goes by the
 * calling thread.
 *
 * Returns  the kernel's timer number; -1 with errno
 * Context  any thread, outside windows
 */
int mew_cpu_timer_create(clockid_t clock, int tid, int number, void *value);
void mew_cpu_timer_delete(int timer);

/* A slot for a thread id, without records and timer; NULL when all are taken. Context: any thread. */
struct mew_cpu_thread *mew_cpu_thread_take(int tid);
/* Give it records and a timer that is not armed. Returns 0 or -1 with errno, nothing left. Context: any thread. */
int mew_cpu_thread_equip(struct mew_cpu_thread *t, const struct mew_cpu_window *window, size_t records);
/* Take both away again. Context: any thread, after mew_cpu_thread_disarm(). */
void mew_cpu_thread_strip(struct mew_cpu_thread *t);
/* Let the calling thread receive the signal; undone by mew_cpu_thread_detach(). */
void mew_cpu_thread_unblock(struct mew_cpu_thread *t);

/*
 * Open perf's task clock for the calling thread, kernel included, to send `number` to it once it is armed.
 *
 * Returns  a file descriptor; -1 with errno
 * Context  outside windows
 */
int mew_cpu_event_open(int number);

/*
 * Make the window's engine for the thread t->tid, switched off; t->signal_number is set. Close it.
 *
 * Returns  0 or -1 with errno and nothing left behind
 * Context  any thread; close: after mew_cpu_thread_disarm()
 */
int mew_cpu_engine_open(struct mew_cpu_thread *t);
void mew_cpu_engine_close(struct mew_cpu_thread *t);

static inline bool mew_cpu_engine_is_open(const struct mew_cpu_thread *t)
{
	return t->timer >= 0 || t->event >= 0 || t->perfring != NULL;
}

/*
 * One tick when the window's clock has gone on by `delay_ns` from `now`. Off: no more ticks.
 *
 * now      of the window's clock; wall_now: of CLOCK_MONOTONIC
 * Returns  0 or -1 with errno
 * Context  any thread, signal
 */
int mew_cpu_engine_arm(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now, uint64_t delay_ns);
void mew_cpu_engine_off(const struct mew_cpu_thread *t);

/* --- cpu_rest.c: is the thread on a processor? ------------------------------------------------------------------- */

#define MEW_CPU_WIDE_NS ((uint64_t)2000000) /* cells of a sleeping thread grow up to this, or are a period */

/* Begin: both clocks now. Context: any thread. */
void mew_cpu_rest_start(struct mew_cpu_thread *t, uint64_t wall_now, uint64_t cpu_now);

/*
 * Wall clock: did this tick find its thread off the processor? The CPU clock is read only where that can be: in a
 * system call, or after a late tick. Context: signal.
 */
bool mew_cpu_rest_is_blocked(struct mew_cpu_thread *t, const void *ucontext, uint64_t wall_now);

/* CPU clock by a wall timer: does the thread sleep, so that this tick is none of its running time? Context: signal. */
bool mew_cpu_rest_is_asleep(struct mew_cpu_thread *t, const void *ucontext, uint64_t wall_now, uint64_t cpu_now);

/* Width of the next cell, or how long until a sleeping thread is looked at again. Context: signal. */
uint64_t mew_cpu_rest_width(const struct mew_cpu_thread *t);

/* --- cpu_timer.c: one thread ------------------------------------------------------------------------------------- */

/*
 * Prepare the calling thread: slot, records, stack bounds, timer (not armed), the signal unblocked. The tick's path
 * is walked once, so that no page and no lazy binding is left for the first real one.
 *
 * window   borrowed until mew_cpu_thread_free()
 * Returns  MEW_OK; a status with text and nothing left behind
 */
int mew_cpu_thread_new(struct mew_cpu_thread **out, const struct mew_cpu_window *window, struct mew_error *err);

/* Delete the timer and restore the signal mask. Records stay. Context: the sampled thread. */
void mew_cpu_thread_detach(struct mew_cpu_thread *t);

/* Give everything back. Context: any thread, after mew_cpu_thread_disarm(). */
void mew_cpu_thread_free(struct mew_cpu_thread *t);

/* Start a grid now, `wall_now` by CLOCK_MONOTONIC. Returns 0 or -1 with errno. Context: any thread. */
int mew_cpu_thread_arm(struct mew_cpu_thread *t, uint64_t wall_now);

/* Stop ticks; when it returns none is running and none will record. Context: any thread but a handler. */
void mew_cpu_thread_disarm(struct mew_cpu_thread *t);

/*
 * Fork on the calling thread: no ticks between the two, since before Linux 4.19 a fork that a signal interrupts
 * starts over, for ever when it takes longer than a period. Context: atfork.
 */
void mew_cpu_thread_hold(struct mew_cpu_thread *t);
void mew_cpu_thread_unhold(struct mew_cpu_thread *t);

/* One signal of this thread's timer. Context: signal. */
void mew_cpu_thread_tick(struct mew_cpu_thread *t, const void *ucontext);

/* Keep a record; the period grows while they run out. Context: one thread or handler at a time. */
void mew_cpu_thread_keep(struct mew_cpu_thread *t, const struct mew_cpu_record *record);

/* A random number of the thread's own. Context: as above. */
uint64_t mew_cpu_thread_random(struct mew_cpu_thread *t);

/* In cpu_perfring.c: the thread paused or went on. Context: the sampled thread. */
void mew_cpu_perfring_note(struct mew_cpu_thread *t);
/* In the child of a fork: the ring is the parent's. Context: atfork. */
void mew_cpu_perfring_forget(struct mew_cpu_thread *t);

/* The slow half of resume. Context: the sampled thread. */
void mew_cpu_thread_wake(struct mew_cpu_thread *t);

/* The thread waits, or goes on. Context: the sampled thread. */
static inline void mew_cpu_thread_wait(struct mew_cpu_thread *t, bool waits)
{
	atomic_store_explicit(&t->away, waits, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (MEW_UNLIKELY(t->perfring != NULL))
		mew_cpu_perfring_note(t);
	if (!waits && atomic_load_explicit(&t->asleep, memory_order_relaxed) != 0)
		mew_cpu_thread_wake(t);
}

/* Leave and enter the figures: a store each. Context: the sampled thread. */
static inline void mew_cpu_thread_pause(struct mew_cpu_thread *t)
{
	atomic_store_explicit(&t->paused, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&t->pauses, atomic_load_explicit(&t->pauses, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (MEW_UNLIKELY(t->perfring != NULL))
		mew_cpu_perfring_note(t);
}
static inline void mew_cpu_thread_resume(struct mew_cpu_thread *t)
{
	atomic_store_explicit(&t->paused, 0, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (MEW_UNLIKELY(t->perfring != NULL))
		mew_cpu_perfring_note(t);
	if (MEW_UNLIKELY(atomic_load_explicit(&t->asleep, memory_order_relaxed) != 0))
		mew_cpu_thread_wake(t);
}

#endif
