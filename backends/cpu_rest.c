/*
 * cpu_rest.c - tells from inside a tick whether its thread was running or off the processor.
 * Layer L3. Runs in a signal handler.
 *
 * Reading the CPU clock of a thread is a system call, as dear as setting the timer: measured 0.15 us on a quiet machine
 * and 1.2 us in a virtual one. A thread that a tick finds in its own code was running, so the clock is read only for a
 * tick that interrupted a system call, or that came late: a loop that computes pays nothing.
 */
#include "config.h"

#include "cpu_timer.h"

#include <sys/resource.h>

#include "os.h"
#include "unwind_machine.h"

#include "hotpath.h"

#define WAKE_MOST_NS ((uint64_t)20000) /* more than waking for a tick ever takes */
#define PUT_OFF_MOST 64u
#define GROWTH_MOST 16u

void mew_cpu_rest_start(struct mew_cpu_thread *t, uint64_t wall_now, uint64_t cpu_now)
{
	t->rest = (struct mew_cpu_rest){ .tick_ns = wall_now,
					 .wall_ns = wall_now,
					 .cpu_ns = cpu_now,
					 .pauses = atomic_load_explicit(&t->pauses, memory_order_relaxed),
					 .wake_ns = WAKE_MOST_NS };
}

/* Did the thread go to wait for something since this was last asked? */
static bool has_waited(struct mew_cpu_rest *rest)
{
	struct rusage usage;
	uint64_t before = rest->switches;

	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		return false;
	rest->switches = (uint64_t)usage.ru_nvcsw;
	return rest->switches != before;
}

/*
 * In a system call, was it asleep for nearly all of the time between two ticks? Three quarters: a stretch in which it
 * was woken or fell asleep is none. Where ticks are close, waking for them alone takes more than a quarter: then a
 * thread that was off for a part of the time is asleep when it went to wait.
 */
static bool is_sleep(struct mew_cpu_rest *rest, uint64_t off, uint64_t elapsed)
{
	return off / 3 > elapsed / 4 || (off > elapsed / 16 && has_waited(rest));
}

static void sleeps(struct mew_cpu_rest *rest, bool does)
{
	if (!does)
		rest->sleeping = 0;
	else if (rest->sleeping < GROWTH_MOST)
		rest->sleeping++;
}

/* Time off the processor since the CPU clock was last read; false after a pause, which may have been spent asleep. */
static bool read_off(struct mew_cpu_thread *t, uint64_t wall_now, uint64_t *off_ns)
{
	struct mew_cpu_rest *rest = &t->rest;
	uint64_t cpu_now = mew_os_thread_cpu_ns(), wall = wall_now - rest->wall_ns, cpu = cpu_now - rest->cpu_ns;
	uint64_t pauses = atomic_load_explicit(&t->pauses, memory_order_relaxed);
	bool is_known = pauses == rest->pauses;

	*off_ns = wall > cpu ? wall - cpu : 0;
	rest->wall_ns = wall_now;
	rest->cpu_ns = cpu_now;
	rest->pauses = pauses;
	return is_known;
}

bool mew_cpu_rest_is_blocked(struct mew_cpu_thread *t, const void *ucontext, uint64_t wall_now)
{
	uint64_t elapsed = wall_now - t->rest.tick_ns, off = 0;
	bool in_call = mew_unwind_in_syscall(ucontext), is_known;

	t->rest.tick_ns = wall_now;
	if (!in_call && wall_now < t->due_ns + t->period_ns / 4) {
		sleeps(&t->rest, false);
		return false;
	}
	is_known = read_off(t, wall_now, &off);
	sleeps(&t->rest, in_call && is_known && is_sleep(&t->rest, off, elapsed));
	return is_known && off > elapsed / 2;
}

bool mew_cpu_rest_is_asleep(struct mew_cpu_thread *t, const void *ucontext, uint64_t wall_now, uint64_t cpu_now)
{
	struct mew_cpu_rest *rest = &t->rest;
	uint64_t elapsed = wall_now - rest->wall_ns, ran = cpu_now - rest->cpu_ns;
	bool does = mew_unwind_in_syscall(ucontext) && ran < elapsed && is_sleep(rest, elapsed - ran, elapsed);

	rest->wall_ns = wall_now;
	rest->cpu_ns = cpu_now;
	sleeps(rest, does);
	if (!does) {
		rest->put_off = 0;
		return false;
	}
	/* mew's own waking, or more where the thread ran before it fell asleep: step over the least seen */
	if (ran < rest->wake_ns)
		rest->wake_ns = ran;
	t->cell_ns += rest->wake_ns;
	t->due_ns += rest->wake_ns;
	rest->owed_ns += rest->wake_ns;
	/* what is due is charged to where the thread runs next, but not put off for ever */
	return cpu_now < t->due_ns || rest->put_off++ < PUT_OFF_MOST;
}

uint64_t mew_cpu_rest_width(const struct mew_cpu_thread *t)
{
	uint64_t width = t->period_ns;

	for (unsigned i = 0; i < t->rest.sleeping && width < MEW_CPU_WIDE_NS; i++)
		width *= 2;
	return width;
}
