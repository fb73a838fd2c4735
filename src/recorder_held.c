/*
 * recorder_held.c - see recorder_held.h.
 * Layer L6. Any thread, signal handlers too; in a child of vfork it works in the memory of the parent.
 *
 * The kernel reads words and environment during the exec, so the child cannot unmap them, and its parent does not know
 * of them. But the thread that made the child sleeps until the exec is over, and the child has its thread pointer: what
 * that thread finds later under its own name, from another process, nobody uses any more.
 */
#include "config.h"

#include "recorder_held.h"

#include <pthread.h>
#include <unistd.h>

#include "base.h"
#include "os.h"

#define FILLING ((uintptr_t)1) /* no thread's */

static struct held {
	uintptr_t thread; /* whose it is; only that one looks at the rest. 0: free */
	int pid;
	void *memory;
	size_t bytes;
} all[16]; /* where they do not suffice, a map for each exec stays behind */

static bool is_own(const struct held *h)
{
	return __atomic_load_n(&h->thread, __ATOMIC_ACQUIRE) == (uintptr_t)pthread_self();
}

static bool change(struct held *h, uintptr_t from, uintptr_t to)
{
	return __atomic_compare_exchange_n(&h->thread, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void unmap_left(void)
{
	int pid = (int)getpid();

	for (size_t i = 0; i < MEW_COUNTOF(all); i++)
		if (is_own(&all[i]) && all[i].pid != pid) {
			struct held left = all[i];

			/* not twice: a handler that interrupts us may have done it */
			if (change(&all[i], left.thread, 0))
				mew_os_unmap(left.memory, left.bytes);
		}
}

void *mew_recorder_held_map(size_t bytes)
{
	void *memory;

	unmap_left();
	memory = mew_os_map(bytes);
	for (size_t i = 0; memory != NULL && i < MEW_COUNTOF(all); i++)
		if (change(&all[i], 0, FILLING)) {
			all[i].pid = (int)getpid();
			all[i].memory = memory;
			all[i].bytes = bytes;
			__atomic_store_n(&all[i].thread, (uintptr_t)pthread_self(), __ATOMIC_RELEASE);
			break;
		}
	return memory;
}

void mew_recorder_held_unmap(void *memory, size_t bytes)
{
	for (size_t i = 0; i < MEW_COUNTOF(all); i++)
		if (is_own(&all[i]) && all[i].memory == memory)
			(void)change(&all[i], (uintptr_t)pthread_self(), 0);
	mew_os_unmap(memory, bytes);
}
