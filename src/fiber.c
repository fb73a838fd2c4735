/*
 * fiber.c - the public side of unwind_stacks.h: stacks of fibers and coroutines.
 * Layer L6. Any thread, also inside a window.
 */
#include "config.h"

#include "mew.h"

#include "error.h"
#include "unwind_stacks.h"

int mew_stack_register(const void *lo, const void *hi)
{
	struct mew_error *err = mew_error_thread();

	if (lo == NULL || (uintptr_t)hi <= (uintptr_t)lo)
		return mew_error_set(err, MEW_E_INVALID,
				     "a stack goes from its lowest address to one past its highest");
	switch (mew_stacks_add((uintptr_t)lo, (uintptr_t)hi)) {
	case 0: return MEW_OK;
	case -1:
		return mew_error_set(err, MEW_E_NOMEM, "%u stacks are registered, which is all there is room for: "
						       "unregister those that are gone", MEW_STACKS_MAX);
	default:
		return mew_error_set(err, MEW_E_INVALID,
				     "this stack overlaps one that is registered: unregister that first");
	}
}

int mew_stack_unregister(const void *lo)
{
	if (mew_stacks_remove((uintptr_t)lo) == 0)
		return MEW_OK;
	return mew_error_set(mew_error_thread(), MEW_E_INVALID, "no registered stack begins at this address");
}
