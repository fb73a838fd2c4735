/*
 * entry_call.c - see entry_call.h.
 * Layer L4. Body threads. A section whose name is a C identifier gets start and stop symbols from the linker.
 */
#include "config.h"

#include "entry_call.h"

#include "base.h"

extern const char entry_start[] __asm__("__start_mew_entry") __attribute__((visibility("hidden")));
extern const char entry_stop[] __asm__("__stop_mew_entry") __attribute__((visibility("hidden")));

MEW_NOINLINE __attribute__((section("mew_entry"))) void mew_entry_call(mew_run_fn *run, struct mew_state *st, void *arg)
{
	run(st, arg);
	__asm__ volatile(""); /* not a tail call: the frame must stay */
}

void mew_entry_range(uintptr_t *lo, uintptr_t *hi)
{
	*lo = (uintptr_t)entry_start;
	*hi = (uintptr_t)entry_stop;
}
