/*
 * unwind_libunwind.c - the walk by libunwind: MEW_UNWINDER=libunwind. To compare with, never the default.
 * Layer L1. Any thread, signal, malloc, as far as libunwind itself is: it lists modules under the loader's lock, blocks
 * signals, and allocates in its first walk on a thread, which mew_unwind_thread_init() therefore makes.
 */
#include "config.h"

#include "unwind_libunwind.h"

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "unwind.h"

#include "hotpath.h"

struct mew_libunwind mew_libunwind;

#ifdef MEW_LIBUNWIND_PREFIX

#define CURSOR_WORDS 256 /* soname 8 needs 127 */
#define EXACT_LEAF 1     /* UNW_INIT_SIGNAL_FRAME: ip is no return address */

static MEW_HOT_TLS bool inside; /* a walk that was interrupted holds what a second one would wait for */

static size_t follow(ucontext_t *context, uintptr_t entry_lo, uintptr_t entry_hi, uintptr_t *pcs, size_t max,
		     enum mew_unwind_stop *stop)
{
	uintptr_t cursor[CURSOR_WORDS], ip;
	size_t n = 1;
	int more;

	*stop = MEW_STOP_NO_RULE;
	if (mew_libunwind.init(cursor, context, EXACT_LEAF) != 0)
		return n;
	for (;;) { /* ends: each turn stops or fills one of max places */
		more = mew_libunwind.step(cursor);
		if (more < 0 || (more > 0 && mew_libunwind.get(cursor, MEW_LIBUNWIND_IP, &ip) != 0))
			return n;
		if (more == 0 || ip == 0 || (ip >= entry_lo && ip < entry_hi)) {
			*stop = MEW_STOP_END;
			return n;
		}
		if (n == max) {
			*stop = MEW_STOP_FULL;
			return n;
		}
		pcs[n++] = ip;
	}
}

size_t mew_unwind_by_libunwind(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			       uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			       struct mew_unwind_trail *trail)
{
	int saved = errno;
	ucontext_t context;
	uintptr_t lo, hi;
	size_t n;

	if (trail != NULL)
		trail->whole = false;
	*stop = max == 0 ? MEW_STOP_FULL : MEW_STOP_UNSUPPORTED;
	if (max == 0)
		return 0;
	pcs[0] = regs->ip;
	if (inside || mew_libunwind.init == NULL || regs->copy != NULL) /* it reads the stack itself */
		return 1;
	*stop = MEW_STOP_BAD_STACK;
	if (!mew_unwind_bounds(t, regs, &lo, &hi))
		return 1;
	if (regs->context == NULL) {
		memset(&context, 0, sizeof context);
		context.uc_mcontext.gregs[REG_RIP] = (greg_t)regs->ip;
		context.uc_mcontext.gregs[REG_RSP] = (greg_t)regs->sp;
		context.uc_mcontext.gregs[REG_RBP] = (greg_t)regs->bp;
		context.uc_mcontext.gregs[REG_RBX] = (greg_t)regs->bx;
	} else {
		memcpy(&context, regs->context, sizeof context); /* it takes it as its own */
	}
	inside = true;
	n = follow(&context, entry_lo, entry_hi, pcs, max, stop);
	inside = false;
	errno = saved;
	return n;
}

#else

size_t mew_unwind_by_libunwind(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			       uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			       struct mew_unwind_trail *trail)
{
	return mew_unwind_by_table(t, regs, entry_lo, entry_hi, pcs, max, stop, trail);
}

#endif
