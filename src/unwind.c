/*
 * unwind.c - a thread's part of the unwinder: its stack bounds and its cache of rules.
 * Layer L1. Any thread; the walk itself is in the file of the architecture.
 */
#include "config.h"

#include "unwind.h"

#include "os.h"

#include "hotpath.h"

int mew_unwind_thread_init(struct mew_unwind_thread *t)
{
	return mew_os_stack_bounds(&t->stack_lo, &t->stack_hi);
}
