/*
 * cpu_engine.c - the three things that can send a thread its ticks: a wall timer, perf's task clock, a CPU timer.
 * Layer L3. Arming runs in a signal handler: system calls alone.
 *
 * A perf event is armed for one overflow at a time. With a running one each overflow would queue a signal of its own
 * while the thread has the signal blocked, until the queue of the user is full.
 */
#include "config.h"

#include "cpu_timer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu_perfring.h"
#include "os.h"

#include "hotpath.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define NS_PER_S ((uint64_t)1000000000)
#define HIGH_DESCRIPTOR 700
#define FAR_NS (1000 * NS_PER_S)

/* --- timers ------------------------------------------------------------------------------------------------------ */

int mew_cpu_timer_create(clockid_t clock, int tid, int number, void *value)
{
	struct sigevent event;
	int timer = -1;

	memset(&event, 0, sizeof event);
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = number;
	event.sigev_value.sival_ptr = value;
	event.sigev_notify_thread_id = tid;
	if (syscall(SYS_timer_create, clock, &event, &timer) != 0)
		return -1;
	return timer;
}

void mew_cpu_timer_delete(int timer)
{
	(void)syscall(SYS_timer_delete, timer);
}

/* Fire once at this time of the timer's clock; 0 switches it off. */
static int set_timer(int timer, uint64_t at_ns)
{
	struct itimerspec spec = { .it_value = { .tv_sec = (time_t)(at_ns / NS_PER_S),
						 .tv_nsec = (long)(at_ns % NS_PER_S) } };

	return (int)syscall(SYS_timer_settime, timer, TIMER_ABSTIME, &spec, NULL);
}

/* --- perf -------------------------------------------------------------------------------------------------------- */

static int send_to_thread(int tid, int event, int number)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = tid };

	if (fcntl(event, F_SETSIG, number) != 0 || fcntl(event, F_SETOWN_EX, &owner) != 0)
		return -1;
	return fcntl(event, F_SETFL, O_ASYNC | O_NONBLOCK);
}

/* To a number that nobody counts on: programs expect the lowest ones to be free, and shells use those below 256. */
static int out_of_the_way(int event)
{
	int high = event < 0 ? -1 : fcntl(event, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);

	if (high < 0)
		return event;
	(void)close(event);
	return high;
}

static int open_event(int tid, int number)
{
	struct perf_event_attr attr;
	int event, saved;

	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.sample_period = FAR_NS;
	attr.disabled = 1;
	event = out_of_the_way((int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
	if (event < 0 || send_to_thread(tid, event, number) == 0)
		return event;
	saved = errno;
	(void)close(event);
	errno = saved;
	return -1;
}

int mew_cpu_event_open(int number)
{
	return open_event(mew_os_tid(), number);
}

/* One that is due still has its overflow to come: another REFRESH would grant it a second. */
static int arm_event(struct mew_cpu_thread *t, uint64_t delay_ns)
{
	bool is_due = atomic_exchange(&t->event_due, 1) != 0;

	if (ioctl(t->event, PERF_EVENT_IOC_PERIOD, &delay_ns) != 0)
		return -1;
	return is_due ? ioctl(t->event, PERF_EVENT_IOC_ENABLE, 0) : ioctl(t->event, PERF_EVENT_IOC_REFRESH, 1);
}

/* --- either ------------------------------------------------------------------------------------------------------ */

int mew_cpu_engine_open(struct mew_cpu_thread *t)
{
	clockid_t own = t->tid == mew_os_tid() ? CLOCK_THREAD_CPUTIME_ID : t->cpu_clock;
	clockid_t clock = t->window->engine == MEW_CPU_ENGINE_CPU_TIMER ? own : CLOCK_MONOTONIC;

	if (t->window->engine == MEW_CPU_ENGINE_RING)
		return mew_cpu_perfring_open(t);
	if (t->window->engine != MEW_CPU_ENGINE_PERF) {
		t->timer = mew_cpu_timer_create(clock, t->tid, t->signal_number, mew_cpu_slot_value(t));
		return t->timer < 0 ? -1 : 0;
	}
	t->event = open_event(t->tid, t->signal_number);
	mew_cpu_slot_event(t, t->event);
	return t->event < 0 ? -1 : 0;
}

void mew_cpu_engine_close(struct mew_cpu_thread *t)
{
	int timer = atomic_exchange(&t->timer, -1), event = atomic_exchange(&t->event, -1);

	mew_cpu_perfring_close(t);
	if (timer >= 0)
		mew_cpu_timer_delete(timer);
	if (event < 0)
		return;
	mew_cpu_slot_event(t, -1);
	(void)close(event);
}

int mew_cpu_engine_arm(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now, uint64_t delay_ns)
{
	if (delay_ns == 0)
		delay_ns = 1;
	if (t->event >= 0)
		return arm_event(t, delay_ns);
	return set_timer(t->timer, (t->window->engine == MEW_CPU_ENGINE_CPU_TIMER ? now : wall_now) + delay_ns);
}

void mew_cpu_engine_off(const struct mew_cpu_thread *t)
{
	if (t->event >= 0)
		(void)ioctl(t->event, PERF_EVENT_IOC_DISABLE, 0);
	if (t->timer >= 0)
		(void)set_timer(t->timer, 0);
}
