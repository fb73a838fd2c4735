/*
 * fx_recent.h - counts the frames that walks take over from the last one. The program is linked with
 * -Wl,--wrap=mew_recent_holds, so that this stands before the function itself: no walk pays for the count elsewhere.
 * Test fixture of t_unwind_recent.c and oracle.c, x86-64 only.
 */
#ifndef FX_RECENT_H
#define FX_RECENT_H

#include "unwind_recent.h"

static size_t reused; /* frames, by all walks */

bool __real_mew_recent_holds(const struct mew_unwind_recent *r, size_t frame, uintptr_t *pcs, size_t *known);
bool __wrap_mew_recent_holds(const struct mew_unwind_recent *r, size_t frame, uintptr_t *pcs, size_t *known);

bool __wrap_mew_recent_holds(const struct mew_unwind_recent *r, size_t frame, uintptr_t *pcs, size_t *known)
{
	bool holds = __real_mew_recent_holds(r, frame, pcs, known);

	reused += holds ? frame : 0;
	return holds;
}

#endif
