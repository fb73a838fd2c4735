/*
 * cpu_ladder.c - tries the engines of a clock from the best down, by making each send one signal.
 * Layer L3. Runner thread, outside windows.
 */
#include "config.h"

#include "cpu_ladder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu_perfring.h"
#include "error.h"
#include "os.h"
#include "unwind_machine.h"

#define TRIAL_NS ((uint64_t)100000)
#define TRIAL_MOST_NS ((uint64_t)50000000) /* of CPU time: twelve of the slowest kernel tick in use, 4 ms */

struct rung {
	int engine;
	const char *name; /* in figures */
	const char *call; /* in sentences */
	const char *because; /* it may be worse than the one before it although it works */
};

static const struct rung rungs[MEW_CPU_ENGINES] = {
	[MEW_CPU_ENGINE_TIMER] = { MEW_CPU_ENGINE_TIMER, "timer", "timer_create(CLOCK_MONOTONIC)", "" },
	[MEW_CPU_ENGINE_PERF] = { MEW_CPU_ENGINE_PERF, "perf", "perf_event_open(PERF_COUNT_SW_TASK_CLOCK)", "" },
	[MEW_CPU_ENGINE_CPU_TIMER] = { MEW_CPU_ENGINE_CPU_TIMER, "cpu-timer", "timer_create(CLOCK_THREAD_CPUTIME_ID)",
				       "; this engine samples no faster than the kernel's tick" },
	[MEW_CPU_ENGINE_RING] = { MEW_CPU_ENGINE_RING, "ring", "perf_event_open with a ring", "" },
};

const char *mew_cpu_engine_name(int engine)
{
	return rungs[engine].name;
}

static bool is_for_ring(const char *name)
{
	return name != NULL && strcmp(name, "ring") == 0;
}

int mew_cpu_sampler_check(const char *name, struct mew_error *err)
{
	if (name == NULL || name[0] == '\0' || strcmp(name, "signal") == 0 || is_for_ring(name))
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID, "MEW_SAMPLER is \"%.40s\": it must be signal or ring", name);
}

/* --- one trial --------------------------------------------------------------------------------------------------- */

/* A ring sends no signal: the kernel writes a sample. */
static bool sample_came(const struct mew_cpu_thread *t)
{
	uint64_t until = mew_os_thread_cpu_ns() + TRIAL_MOST_NS;

	do
		if (mew_cpu_perfring_came(t))
			return true;
	while (mew_os_thread_cpu_ns() < until);
	return false;
}

static int try_ring(struct mew_cpu_thread *t)
{
	int failed = 0;

	t->period_ns = TRIAL_NS;
	if (mew_cpu_engine_open(t) != 0)
		return errno;
	if (mew_cpu_perfring_start(t) != 0)
		failed = errno;
	else if (!sample_came(t))
		failed = ETIME;
	mew_cpu_engine_close(t);
	return failed;
}

/* The signal is blocked here: it stays in the queue until it is fetched. */
static bool signal_came(const sigset_t *set)
{
	static const struct timespec at_once = { 0, 0 };
	uint64_t until = mew_os_thread_cpu_ns() + TRIAL_MOST_NS;
	siginfo_t info;

	do
		if (sigtimedwait(set, &info, &at_once) > 0)
			return true;
	while (mew_os_thread_cpu_ns() < until);
	return false;
}

/* Let an engine of a slot send one signal. Returns 0 or an errno; ETIME: it was made but sent nothing. */
static int try_slot(struct mew_cpu_thread *t, const sigset_t *set)
{
	uint64_t now = t->window->engine == MEW_CPU_ENGINE_CPU_TIMER ? mew_os_thread_cpu_ns() : 0;
	static const struct timespec at_once = { 0, 0 };
	siginfo_t info;
	int failed = 0;

	if (mew_cpu_engine_open(t) != 0)
		return errno;
	if (mew_cpu_engine_arm(t, now, mew_os_now_ns(), TRIAL_NS) != 0)
		failed = errno;
	else if (!signal_came(set))
		failed = ETIME;
	mew_cpu_engine_off(t);
	while (sigtimedwait(set, &info, &at_once) > 0) /* one that was on its way all the same */
		;
	mew_cpu_engine_close(t);
	return failed;
}

static int try_engine(int engine)
{
	struct mew_cpu_window window = { .engine = engine };
	struct mew_cpu_thread *t = mew_cpu_slot_take();
	sigset_t set, former;
	int failed;

	if (t == NULL)
		return EAGAIN;
	t->window = &window;
	t->tid = mew_os_tid();
	t->signal_number = mew_cpu_signal_number();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, t->signal_number);
	(void)pthread_sigmask(SIG_BLOCK, &set, &former);
	failed = engine == MEW_CPU_ENGINE_RING ? try_ring(t) : try_slot(t, &set);
	(void)pthread_sigmask(SIG_SETMASK, &former, NULL);
	mew_cpu_slot_give(t);
	return failed;
}

/* --- why not ----------------------------------------------------------------------------------------------------- */

static const char *remedy(int engine, int failed)
{
	if (failed == ETIME && engine == MEW_CPU_ENGINE_RING)
		return "it was made but wrote no sample: the kernel or its emulation cannot do it";
	if (failed == ETIME)
		return "it was made but sent no signal: the kernel or its emulation cannot do it";
	if (failed == ENOBUFS)
		return "raise ulimit -l (locked memory)";
	if (engine != MEW_CPU_ENGINE_TIMER && engine != MEW_CPU_ENGINE_CPU_TIMER && failed == EACCES)
		return "set kernel.perf_event_paranoid to 1 or less, or grant CAP_PERFMON";
	if (engine != MEW_CPU_ENGINE_TIMER && engine != MEW_CPU_ENGINE_CPU_TIMER && failed == EPERM)
		return "let the container's seccomp profile pass it, or grant CAP_PERFMON";
	if (failed == ENOSYS)
		return "let the container's seccomp profile pass it, or use a kernel that has it";
	if (failed == EACCES || failed == EPERM)
		return "let the container's seccomp profile pass it";
	if (failed == EMFILE || failed == ENFILE)
		return "raise ulimit -n (open files)";
	if (failed == EAGAIN)
		return "raise ulimit -i (pending signals)";
	return "the kernel cannot do it";
}

static const char *name_of(int failed)
{
	switch (failed) {
	case EACCES:
		return "EACCES";
	case EPERM:
		return "EPERM";
	case ENOSYS:
		return "ENOSYS";
	case EAGAIN:
		return "EAGAIN";
	case EMFILE:
		return "EMFILE";
	case ETIME:
		return "no signal";
	default:
		return strerror(failed);
	}
}

static void explain(char *to, size_t room, const struct rung *rung, int failed)
{
	size_t used = strlen(to);

	(void)snprintf(to + used, room - used, "%s%s: %s (%s)", used > 0 ? "; " : "", rung->call, name_of(failed),
		       remedy(rung->engine, failed));
}

/* --- the ladder -------------------------------------------------------------------------------------------------- */

static int give_up(const char *reason, int failed, struct mew_error *err)
{
	int status = failed == EACCES || failed == EPERM || failed == EAGAIN || failed == ENOSYS ? MEW_E_DENIED
												 : MEW_E_UNSUPPORTED;

	(void)mew_error_set(err, status, "nothing here can sample that clock: %s", reason);
	err->sys_errno = failed;
	return status;
}

/* Why an engine is not even tried; NULL when it is. */
static const char *why_untried(enum mew_clock clock, int engine)
{
	uint64_t mask;

	if (engine != MEW_CPU_ENGINE_RING)
		return NULL;
	if (clock == MEW_CLOCK_WALL)
		return "MEW_SAMPLER=ring: perf's clock stands still while a thread is off the processor, so it cannot "
		       "sample wall time (use --clock cpu)";
	if (mew_unwind_perf_registers(&mask) == 0)
		return "MEW_SAMPLER=ring: copied stacks cannot be walked on this machine (unset it)";
	if (mew_unwind_may_allocate())
		return "MEW_SAMPLER=ring: libunwind cannot walk a copied stack (unset MEW_UNWINDER)";
	return NULL;
}

static bool is_usable(enum mew_clock clock, int engine, char reason[MEW_CPU_REASON_BYTES], int *failed)
{
	const char *why = why_untried(clock, engine);

	*failed = why != NULL ? EOPNOTSUPP : try_engine(engine);
	if (why != NULL)
		(void)snprintf(reason, MEW_CPU_REASON_BYTES, "%s", why); /* it is the first */
	else if (*failed != 0)
		explain(reason, MEW_CPU_REASON_BYTES, &rungs[engine], *failed);
	return *failed == 0;
}

int mew_cpu_ladder(enum mew_clock clock, int only, int *engine, char reason[MEW_CPU_REASON_BYTES],
		   struct mew_error *err)
{
	static const int of_wall[] = { MEW_CPU_ENGINE_RING, MEW_CPU_ENGINE_TIMER };
	static const int of_cpu[] = { MEW_CPU_ENGINE_RING, MEW_CPU_ENGINE_PERF, MEW_CPU_ENGINE_TIMER,
				      MEW_CPU_ENGINE_CPU_TIMER };
	const int *order = clock == MEW_CLOCK_CPU ? of_cpu : of_wall;
	size_t n = clock == MEW_CLOCK_CPU ? MEW_COUNTOF(of_cpu) : MEW_COUNTOF(of_wall);
	size_t first = is_for_ring(getenv("MEW_SAMPLER")) ? 0 : 1;
	int failed = 0;

	reason[0] = '\0';
	*engine = MEW_CPU_ENGINE_BEST;
	for (size_t i = only == MEW_CPU_ENGINE_BEST ? first : 0; i < n; i++) {
		if (only != MEW_CPU_ENGINE_BEST && only != order[i])
			continue;
		*engine = order[i];
		if (!is_usable(clock, *engine, reason, &failed))
			continue;
		if (*engine == MEW_CPU_ENGINE_RING || (only != MEW_CPU_ENGINE_BEST && i > 1))
			(void)snprintf(reason, MEW_CPU_REASON_BYTES, "it was asked for");
		if (reason[0] != '\0')
			(void)strncat(reason, rungs[*engine].because, MEW_CPU_REASON_BYTES - strlen(reason) - 1);
		return MEW_OK;
	}
	if (*engine == MEW_CPU_ENGINE_BEST)
		return mew_error_set(err, MEW_E_INVALID, "there is no engine %d for that clock", only);
	return give_up(reason, failed, err);
}
