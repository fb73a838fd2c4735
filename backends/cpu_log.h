/*
 * cpu_log.h - records of threads that left the window, so that their slots and rings serve the next ones.
 * Layer L3. One thread at a time, not in a handler; memory straight from the kernel.
 */
#ifndef MEW_CPU_LOG_H
#define MEW_CPU_LOG_H

#include "cpu_crew.h"

struct mew_cpu_log_chunk;
struct mew_cpu_log { /* zeroed to begin with */
	struct mew_cpu_log_chunk *first, *last;
	size_t popped; /* of the first chunk */
};

/* Returns false without memory. */
bool mew_cpu_log_push(struct mew_cpu_log *log, const struct mew_cpu_crew_record *record);
/* The oldest record; false behind the last. */
bool mew_cpu_log_pop(struct mew_cpu_log *log, struct mew_cpu_crew_record *record);
void mew_cpu_log_fini(struct mew_cpu_log *log);

#endif
