/*
 * dead.h - figures of a process that is gone, from the memory that its captures kept (kept.h).
 * Layer L3. The reader has the kept memory at the addresses it had in that process, and the same build of this code.
 */
#ifndef MEW_DEAD_H
#define MEW_DEAD_H

#include "error.h"
#include "kept.h"
#include "mew/backend.h"

#define MEW_DEAD_STATICS 6

struct mew_hooks_api;
struct mew_sink;

/*
 * The variables through which both captures and the list of modules find what they keep, in a fixed order. The reader
 * fills its own with those of the dead process, then drains. Context: no capture runs in this process.
 */
void mew_dead_statics(struct mew_kept_static out[MEW_DEAD_STATICS]);

/*
 * Register what both captures run in forked children, so that whoever is registered later runs after it. Returns false
 * without memory. Context: no capture runs.
 */
bool mew_dead_watch_fork(void);

/*
 * Push what a memory capture with stacks saw until its process ended, whenever that was.
 *
 * thread_lo, thread_hi  the member of mew_hooks_api, of that process
 * Returns               as mew_backend.drain; after mew_dead_statics() were filled
 */
int mew_memory_drain_dead(struct mew_sink *sink, uintptr_t thread_lo, uintptr_t thread_hi, struct mew_error *err);

/*
 * The same of a CPU capture. ended_ns is of CLOCK_MONOTONIC; samples before from_ns of the window, and from until_ns
 * on, are left out (0: none are).
 */
int mew_cpu_drain_dead(struct mew_capture *c, uint64_t from_ns, uint64_t until_ns, uint64_t ended_ns,
		       struct mew_sink *sink, struct mew_error *err);

#endif
