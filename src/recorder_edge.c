/*
 * recorder_edge.c - what happens when a function at an end of the window is entered.
 * Layer L6. On the thread that enters it, in the middle of anything: system calls by number, no locks, no vector
 * registers.
 */
#include "config.h"

#include "recorder_window.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"
#include "memory_own.h"

#include "hotpath.h"

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t = { 0, 0 };

	(void)syscall(SYS_clock_gettime, clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void stamp(struct mew_record_edge *edge)
{
	edge->at_cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	__atomic_store_n(&edge->at_ns, read_clock(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
}

static bool moves_on(struct mew_window *w, int from, int to)
{
	return __atomic_compare_exchange_n(&w->state, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static unsigned role_of(int state)
{
	return state == MEW_WINDOW_WAITS ? MEW_WINDOW_STARTS : state == MEW_WINDOW_OPEN ? MEW_WINDOW_STOPS : 0;
}

/* The state is read again behind each probe: another thread may have moved it on, and armed for that, meanwhile. */
void mew_window_arm(const struct mew_window *w, unsigned from)
{
	unsigned n = __atomic_load_n(&w->nprobes, __ATOMIC_SEQ_CST);

	for (unsigned i = from; i < n; i++) {
		int state, after = __atomic_load_n(&w->state, __ATOMIC_SEQ_CST);

		do {
			state = after;
			mew_probe_arm(w->probes[i], (w->probes[i]->roles & role_of(state)) != 0);
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			after = __atomic_load_n(&w->state, __ATOMIC_SEQ_CST);
		} while (after != state);
	}
}

/* Inside the allocator or an event of this thread, it does not know that it is alone. */
static void open_memory(void)
{
	if (mew_heap_self.busy == MEW_HEAP_FREE)
		mew_heap_window_open();
	else
		mew_heap_open_from_outside(&mew_heap);
	mew_heap_mapped_gate(NULL, true);
	mew_heap_pools_gate(NULL, true);
}

void mew_window_hit(struct mew_probe *p)
{
	struct mew_window *w = p->data;
	bool is_ours = (int)syscall(SYS_getpid) == w->pid; /* not in a child of vfork, or one that is not recorded */
	int saved = errno;

	if (is_ours && (p->roles & MEW_WINDOW_STARTS) != 0 &&
	    moves_on(w, MEW_WINDOW_WAITS, MEW_WINDOW_OPEN)) {
		mew_window_arm(w, 0);
		stamp(&w->root->start);
		if (w->has_memory)
			open_memory();
	} else if (is_ours && (p->roles & MEW_WINDOW_STOPS) != 0 &&
		   moves_on(w, MEW_WINDOW_OPEN, MEW_WINDOW_CLOSED)) {
		if (w->has_memory)
			mew_memory_shut_window();
		stamp(&w->root->stop);
		mew_window_arm(w, 0);
	}
	errno = saved;
}
