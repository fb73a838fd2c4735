/*
 * cpu_scan.h - what /proc says of the threads of this process, and the thread of mew that looks again and again.
 * Layer L3. Private to cpu_crew.c. The reading functions call neither malloc nor anything that can be cancelled: they
 * also run on threads of the program.
 */
#ifndef MEW_CPU_SCAN_H
#define MEW_CPU_SCAN_H

#include "base.h"

struct mew_cpu_crew;
struct mew_cpu_scanner;

/* Call `each` with the id of every thread of the process. Returns 0, or -1 when /proc cannot be read. */
int mew_cpu_scan_tasks(void (*each)(int tid, void *data), void *data);

/* The name of a thread, "" when it is gone. */
void mew_cpu_scan_name(int tid, char *name, size_t size);

/*
 * A thread that calls mew_cpu_crew_scan(crew) every two milliseconds until that says false. All signals are blocked
 * there, and the crew does not count it.
 *
 * Returns  NULL when no thread can be made
 * Context  the thread that opens the window, and the one that closes it; NULL is fine
 */
struct mew_cpu_scanner *mew_cpu_scanner_start(struct mew_cpu_crew *crew);
void mew_cpu_scanner_join(struct mew_cpu_scanner *s);

#endif
