/*
 * cpu_signal.c - the real-time signal of the CPU backend: choosing it, telling mew's own from others, and fork.
 * Layer L3. on_signal() runs in a signal handler, the rest outside windows. The handler stays installed for good: a
 * signal still on its way when a window closes must never meet the default action, which ends the process.
 */
#include "config.h"

#include "cpu_timer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "kept.h"
#include "os.h"

#include "hotpath.h"

#define SIGNALS 65 /* the kernel's _NSIG on Linux */
#define GENERATION_MASK (MEW_CPU_SLOT_BYTES - 1)

static struct {
	uintptr_t slots;                    /* address of the first; 0 before they are mapped */
	int number;
	bool watches_fork;
	struct sigaction former[SIGNALS];   /* who had a signal before mew */
	_Atomic uint64_t strays;
	_Atomic int events[MEW_CPU_SLOTS];  /* perf descriptor of each slot, plus 1; 0 for none */
	_Atomic uint32_t nevents;           /* slots from here on never had one */
} shared;

/* --- slots ------------------------------------------------------------------------------------------------------- */

static struct mew_cpu_thread *slot_at(uintptr_t i)
{
	return (struct mew_cpu_thread *)(shared.slots + i * MEW_CPU_SLOT_BYTES);
}

static bool map_slots(void)
{
	void *memory;

	if (shared.slots != 0)
		return true;
	memory = mew_kept_map((MEW_CPU_SLOTS + 1) * MEW_CPU_SLOT_BYTES); /* one more, to align */
	if (memory == NULL)
		return false;
	shared.slots = ((uintptr_t)memory + GENERATION_MASK) & ~GENERATION_MASK;
	return true;
}

/* Everything but the words that outlive the user of a slot. */
static void clear_slot(struct mew_cpu_thread *t)
{
	atomic_store(&t->armed, 0);
	atomic_store(&t->held, 0);
	atomic_store(&t->paused, 0);
	atomic_store(&t->away, 0);
	atomic_store(&t->asleep, 0);
	atomic_store(&t->pauses, 0);
	atomic_store(&t->helper, 0);
	atomic_store(&t->sp_seen, 0);
	t->timer = -1;
	t->event = -1;
	t->perfring = NULL;
	atomic_store(&t->event_due, 0);
	t->was_blocked = false;
	t->window = NULL;
	t->entry_lo = t->entry_hi = 0;
	t->found_by_scan = false;
	t->looks = 0;
	memset(&t->rest, 0, sizeof t->rest);
	t->cost_ns16 = 0;
	t->pause_seen = 0;
	t->paused_ticks = 0;
	t->full_steps = 0;
	t->backoffs = 0;
	memset(&t->ring, 0, sizeof t->ring);
	memset(&t->unwind, 0, sizeof t->unwind);
	t->recent.n = t->recent.busy = 0;
	t->unwind.recent = &t->recent;
	memset(t->pcs, 0, sizeof t->pcs);
}

void mew_cpu_slots_static(struct mew_kept_static *s)
{
	*s = (struct mew_kept_static){ &shared, sizeof shared };
}

struct mew_cpu_thread *mew_cpu_slot_take(void)
{
	for (uintptr_t i = 0; i < MEW_CPU_SLOTS; i++) {
		struct mew_cpu_thread *t = slot_at(i);
		uint32_t expected = 0;

		if (!atomic_compare_exchange_strong(&t->taken, &expected, 1))
			continue;
		(void)atomic_fetch_add(&t->generation, 1);
		clear_slot(t);
		return t;
	}
	return NULL;
}

void mew_cpu_slot_give(struct mew_cpu_thread *t)
{
	atomic_store(&t->taken, 0);
}

struct mew_cpu_thread *mew_cpu_slot_next(const struct mew_cpu_thread *t)
{
	uintptr_t i = t == NULL ? 0 : ((uintptr_t)t - shared.slots) / MEW_CPU_SLOT_BYTES + 1;

	if (shared.slots == 0 || i >= MEW_CPU_SLOTS)
		return NULL;
	/* slots are taken from the first on: behind one that nobody ever had nobody was */
	return (atomic_load(&slot_at(i)->taken) | atomic_load(&slot_at(i)->generation)) != 0 ? slot_at(i) : NULL;
}

struct mew_cpu_thread *mew_cpu_slot_of(int tid)
{
	for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
		if (atomic_load(&t->taken) != 0 && t->tid == tid)
			return t;
	return NULL;
}

void *mew_cpu_slot_value(struct mew_cpu_thread *t)
{
	return (char *)t + (atomic_load(&t->generation) & GENERATION_MASK);
}

void mew_cpu_slot_event(struct mew_cpu_thread *t, int event)
{
	uint32_t i = (uint32_t)(((uintptr_t)t - shared.slots) / MEW_CPU_SLOT_BYTES), n = atomic_load(&shared.nevents);

	atomic_store(&shared.events[i], event + 1);
	while (event >= 0 && n <= i && !atomic_compare_exchange_weak(&shared.nevents, &n, i + 1))
		;
}

static struct mew_cpu_thread *slot_of_event(int event)
{
	uint32_t n = atomic_load(&shared.nevents);

	for (uint32_t i = 0; i < n; i++)
		if (atomic_load_explicit(&shared.events[i], memory_order_relaxed) == event + 1)
			return slot_at(i);
	return NULL;
}

/* --- the handler ------------------------------------------------------------------------------------------------- */

/* The slot whose engine sent this; NULL when none of mew did. *stale: it did, but under an earlier generation. */
static struct mew_cpu_thread *sender(const siginfo_t *info, bool *stale)
{
	uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
	struct mew_cpu_thread *t;

	*stale = false;
	if (info->si_code == POLL_IN || info->si_code == POLL_HUP)
		return slot_of_event(info->si_fd);
	if (info->si_code != SI_TIMER || value < shared.slots ||
	    value - shared.slots >= MEW_CPU_SLOTS * MEW_CPU_SLOT_BYTES)
		return NULL;
	t = slot_at((value - shared.slots) / MEW_CPU_SLOT_BYTES);
	*stale = (value & GENERATION_MASK) != (atomic_load(&t->generation) & GENERATION_MASK);
	return t;
}

static void forward(int number, siginfo_t *info, void *context)
{
	const struct sigaction *former = &shared.former[number];

	if ((former->sa_flags & SA_SIGINFO) != 0 && former->sa_sigaction != NULL)
		former->sa_sigaction(number, info, context);
	else if (former->sa_handler != SIG_DFL && former->sa_handler != SIG_IGN)
		former->sa_handler(number);
	else
		(void)atomic_fetch_add(&shared.strays, 1);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool stale;
	struct mew_cpu_thread *t = sender(info, &stale);

	if (t == NULL)
		forward(number, info, context);
	else if (stale)
		(void)atomic_fetch_add(&shared.strays, 1);
	else
		mew_cpu_thread_tick(t, context);
	errno = saved;
}

uint64_t mew_cpu_signal_strays(void)
{
	return atomic_load(&shared.strays);
}

/* --- choosing the signal ----------------------------------------------------------------------------------------- */

int mew_cpu_signal_number(void)
{
	return shared.number;
}

bool mew_cpu_signal_is_ours(int number)
{
	struct sigaction now;

	if (number == 0 || sigaction(number, NULL, &now) != 0)
		return false;
	return (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_signal;
}

static bool is_free(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
}

/* From the top: programs that use real-time signals count from SIGRTMIN. */
static int choose(void)
{
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--)
		if (mew_cpu_signal_is_ours(number) || is_free(number))
			return number;
	return SIGRTMAX;
}

/* No other handler may interrupt a tick, but a fault must still reach the one who expects it. */
static struct sigaction action_of(void (*handler)(int, siginfo_t *, void *))
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP };
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	(void)sigfillset(&action.sa_mask);
	for (size_t i = 0; i < MEW_COUNTOF(faults); i++)
		(void)sigdelset(&action.sa_mask, faults[i]);
	return action;
}

static int install(int number)
{
	struct sigaction action = action_of(on_signal);

	if (mew_cpu_signal_is_ours(number)) /* saved as its own predecessor it would call itself */
		return 0;
	if (sigaction(number, NULL, &shared.former[number]) != 0)
		return -1;
	return sigaction(number, &action, NULL);
}

/* --- fork -------------------------------------------------------------------------------------------------------- */

static struct mew_cpu_thread *slot_of_caller(void)
{
	struct mew_cpu_thread *t = mew_cpu_slot_of(mew_os_tid());

	return t != NULL && mew_cpu_engine_is_open(t) ? t : NULL;
}

static void before_fork(void)
{
	struct mew_cpu_thread *t = slot_of_caller();

	if (t != NULL)
		mew_cpu_thread_hold(t);
}

static void after_fork_in_parent(void)
{
	struct mew_cpu_thread *t = slot_of_caller();

	if (t != NULL)
		mew_cpu_thread_unhold(t);
}

/* Timers are not inherited, but their numbers may be given again: forget them. Perf events are, as descriptors. */
static void after_fork_in_child(void)
{
	for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t)) {
		atomic_store(&t->armed, 0);
		atomic_store(&t->held, 0);
		atomic_store(&t->asleep, 0);
		atomic_store(&t->busy, 0);
		(void)atomic_fetch_add(&t->generation, 1);
		t->timer = -1;
		mew_cpu_perfring_forget(t);
		if (atomic_load(&t->generation) > 1) /* else another thread had just begun to take it */
			mew_cpu_engine_close(t);
	}
	for (uint32_t i = 0; i < atomic_load(&shared.nevents); i++) { /* of slots that the child cannot see */
		int event = atomic_exchange(&shared.events[i], 0) - 1;

		if (event >= 0)
			(void)close(event);
	}
}

/* --- the queue is full ------------------------------------------------------------------------------------------- */

static void on_overflow(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	struct mew_cpu_thread *t = slot_of_caller();

	(void)number;
	(void)info;
	if (t != NULL && t->event >= 0)
		mew_cpu_thread_tick(t, context);
	else
		(void)atomic_fetch_add(&shared.strays, 1);
	errno = saved;
}

void mew_cpu_signal_guard_overflow(void)
{
	struct sigaction action = action_of(on_overflow);

	if (is_free(SIGIO))
		(void)sigaction(SIGIO, &action, NULL);
}

bool mew_cpu_signal_watch_fork(void)
{
	if (!shared.watches_fork)
		shared.watches_fork = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
	return shared.watches_fork;
}

int mew_cpu_signal_take(struct mew_error *err)
{
	int number;

	if (!map_slots())
		return mew_error_errno(err, MEW_E_NOMEM, "no address space for the sampled threads: raise ulimit -v");
	if (!mew_cpu_signal_watch_fork())
		return mew_error_set(err, MEW_E_NOMEM, "no memory to watch fork");
	if (mew_cpu_signal_is_ours(shared.number))
		return MEW_OK;
	number = choose();
	if (install(number) != 0)
		return mew_error_errno(err, MEW_E_DENIED, "signal %d cannot be handled", number);
	shared.number = number;
	return MEW_OK;
}
