/*
 * dead.c - see dead.h.
 * Layer L3. The command's thread.
 */
#include "config.h"

#include "dead.h"

#include "cpu_crew.h"
#include "cpu_timer.h"
#include "memory.h"
#include "modules.h"

void mew_dead_statics(struct mew_kept_static out[MEW_DEAD_STATICS])
{
	out[0] = (struct mew_kept_static){ &mew_heap, sizeof mew_heap };
	mew_heap_capture_static(&out[1]);
	mew_heap_mapped_static(&out[2]);
	mew_heap_pools_static(&out[3]);
	mew_cpu_slots_static(&out[4]);
	mew_modules_static(&out[5]);
}

bool mew_dead_watch_fork(void)
{
	return mew_cpu_signal_watch_fork() && mew_cpu_crew_watch_fork();
}
