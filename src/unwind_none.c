/*
 * unwind_none.c - the walk on machines whose unwind rules are not known here: the leaf, and why there is no more.
 * Layer L1. Any thread, signal, malloc.
 */
#include "config.h"

#include "unwind_machine.h"

#include "cfi.h"

#include "hotpath.h"

const struct mew_machine mew_machine; /* nothing is compiled */

size_t mew_unwind_by_table(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			   uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			   struct mew_unwind_trail *trail)
{
	(void)t;
	(void)entry_lo;
	(void)entry_hi;
	if (trail != NULL)
		trail->whole = false;
	*stop = max == 0 ? MEW_STOP_FULL : MEW_STOP_UNSUPPORTED;
	if (max == 0)
		return 0;
	pcs[0] = regs->ip;
	return 1;
}

void mew_unwind_from_ucontext(struct mew_unwind_regs *r, const void *ucontext)
{
	*r = (struct mew_unwind_regs){ .context = ucontext };
}

bool mew_unwind_in_syscall(const void *ucontext)
{
	(void)ucontext;
	return true;
}

size_t mew_unwind_perf_registers(uint64_t *mask)
{
	*mask = 0;
	return 0;
}

void mew_unwind_from_perf(void *ucontext, const uint64_t *values)
{
	(void)ucontext;
	(void)values;
}
