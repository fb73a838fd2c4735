/*
 * fx_preload.h - a test program runs itself again with another allocator behind the hooks.
 * Test fixture.
 */
#ifndef FX_PRELOAD_H
#define FX_PRELOAD_H

#define FX_NOT_THERE 77 /* for the second run to exit with: the allocator is not installed */

/* What this run was started for; NULL in the first. */
const char *fx_scenario(void);

/*
 * Run this program with the hooks and then `allocator` (a library's name) preloaded, what it prints dropped.
 *
 * Returns  its exit status; -1 when it did not get that far or died of a signal, which is printed
 */
int fx_run_preloaded(const char *scenario, const char *allocator);

#endif
