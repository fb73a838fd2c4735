/*
 * probe.h - a call at the entry of a function that is already compiled and loaded.
 * Layer L1. Placed by one thread before the function can run; hit on any thread, also in signal handlers.
 *
 * The first instructions of the function are moved to a page of mew's nearby, and a jump to it takes their place. There
 * all registers and flags are kept over the call, then the moved instructions run and lead back. No signal is used, no
 * descriptor, and nothing of the stack above: threads that block all signals, and exceptions, see no difference.
 */
#ifndef MEW_PROBE_H
#define MEW_PROBE_H

#include "base.h"

struct mew_probe;
/* Context: any thread, in the middle of anything; built without vector registers (MEW_HOT_FLAGS), keeps errno. */
typedef void mew_probe_fn(struct mew_probe *p);

struct mew_probe { /* at the beginning of a page of its own */
	uint64_t armed;     /* atomic: its own address, or 0: the function runs on at once */
	mew_probe_fn *hit;
	void *data;         /* of the owner */
	unsigned roles;     /* of the owner */
	uintptr_t entry;
};

/* Is there a probe for this machine? */
bool mew_probe_is_known(void);

/*
 * Put a probe, not armed, on the function that begins at `entry`; for good.
 *
 * bytes    of its code
 * why      returned with NULL: a part of a sentence, constant
 * Returns  NULL when its code cannot be changed safely
 * Context  nobody runs the function, no signal, no malloc; maps memory, never calls malloc
 */
struct mew_probe *mew_probe_place(uintptr_t entry, size_t bytes, mew_probe_fn *hit, void *data, const char **why);

/* Context: any thread, signal. */
static inline void mew_probe_arm(struct mew_probe *p, bool armed)
{
	__atomic_store_n(&p->armed, armed ? (uint64_t)(uintptr_t)p : 0, __ATOMIC_RELEASE);
}

#endif
