/*
 * unwind.c - a thread's part of the unwinder, and the way that all walks go.
 * Layer L1. Any thread; the ways themselves are in a file each.
 */
#include "config.h"

#include "unwind.h"

#include <ucontext.h>

#include "os.h"
#include "unwind_stacks.h"

#include "hotpath.h"

static mew_unwind_fn *chosen = mew_unwind_by_table; /* changes between windows alone */

void mew_unwind_use(mew_unwind_fn *way)
{
	chosen = way;
}

bool mew_unwind_may_allocate(void)
{
	return chosen == mew_unwind_by_libunwind;
}

int mew_unwind_thread_init(struct mew_unwind_thread *t)
{
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	uintptr_t pcs[8];

	if (mew_os_stack_bounds(&t->stack_lo, &t->stack_hi) != 0)
		return -1;
	if (mew_unwind_may_allocate()) { /* its first walk on a thread does */
		mew_unwind_here(&regs);
		(void)chosen(t, &regs, 0, 0, pcs, MEW_COUNTOF(pcs), &stop, NULL);
	}
	return 0;
}

int mew_unwind_thread_init_inside(struct mew_unwind_thread *t)
{
	return mew_os_stack_bounds_by_maps(&t->stack_lo, &t->stack_hi);
}

static bool holds(uintptr_t lo, uintptr_t hi, uintptr_t sp)
{
	return sp >= lo && sp < hi && hi - lo >= sizeof(uintptr_t);
}

bool mew_unwind_bounds(const struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t *lo,
		       uintptr_t *hi)
{
	const ucontext_t *context = regs->context;

	if (MEW_UNLIKELY(regs->copy != NULL)) {
		*lo = regs->copy->lo;
		*hi = regs->copy->hi;
		return holds(*lo, *hi, regs->sp);
	}
	*lo = t->stack_lo;
	*hi = t->stack_hi;
	if (MEW_LIKELY(holds(*lo, *hi, regs->sp)))
		return true;
	if (context != NULL) { /* the kernel notes there which alternate stack was in force */
		*lo = (uintptr_t)context->uc_stack.ss_sp;
		*hi = *lo + context->uc_stack.ss_size;
		if (*lo < *hi && holds(*lo, *hi, regs->sp))
			return true;
	}
	return mew_stacks_find(regs->sp, lo, hi) && holds(*lo, *hi, regs->sp);
}

size_t mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
		       uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop)
{
	return chosen(t, regs, entry_lo, entry_hi, pcs, max, stop, NULL);
}

size_t mew_unwind_walk_trail(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			     uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			     struct mew_unwind_trail *trail)
{
	return chosen(t, regs, entry_lo, entry_hi, pcs, max, stop, trail);
}
