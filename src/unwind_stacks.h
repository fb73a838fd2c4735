/*
 * unwind_stacks.h - stacks that are no thread's own: those of fibers and coroutines, as the program announced them.
 * Layer L1. Announced by any thread; looked up anywhere, also in a signal handler and inside malloc.
 */
#ifndef MEW_UNWIND_STACKS_H
#define MEW_UNWIND_STACKS_H

#include "base.h"

#define MEW_STACKS_MAX 64u

/*
 * Announce the memory [lo, hi) as a stack. Not one thread's lock is taken: it may run inside a window.
 *
 * Returns  0; -1 with no room left; -2 when another stack that is known overlaps
 * Context  any thread
 */
int mew_stacks_add(uintptr_t lo, uintptr_t hi);

/* Forget the stack that begins at lo, before its memory goes. Returns 0; -1 when none does. Context: any thread. */
int mew_stacks_remove(uintptr_t lo);

/* Bounds of the known stack that holds sp; false for none. Context: any thread, signal, malloc. */
bool mew_stacks_find(uintptr_t sp, uintptr_t *lo, uintptr_t *hi);

#endif
