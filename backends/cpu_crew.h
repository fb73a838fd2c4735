/*
 * cpu_crew.h - the threads that a case makes itself, in its set-up or in its loop: sampled beside its benchmark
 * threads. Layer L3. Private to the CPU backend. A wrapper of pthread_create (libmew_threads, libmew_hooks) announces
 * each on the thread itself; where none is in the process, a thread of mew looks into /proc/self/task every two
 * milliseconds.
 */
#ifndef MEW_CPU_CREW_H
#define MEW_CPU_CREW_H

#include "cpu_timer.h"

#define MEW_CPU_CREW_ROWS 1024u /* threads with a row of their own; later ones share the last */

struct mew_cpu_crew; /* of one window */

struct mew_cpu_crew_row { /* one thread, as far as it was in the window */
	char name[32];
	int tid;
	uint64_t threads; /* that share this row; 1 but for the last */
	uint64_t wall_ns, cpu_ns;
	bool has_cpu;     /* of all of them */
};

struct mew_cpu_crew_record {
	struct mew_cpu_record record;
	uint32_t number; /* of the row */
};

/*
 * A case is opened: threads that are made from now on are its own. One case at a time: another one takes its place.
 *
 * Context  runner thread, outside windows
 */
void mew_cpu_crew_watch(void);
/* What it registers for forked children, once. Returns false without memory. Context: outside windows. */
bool mew_cpu_crew_watch_fork(void);
/* The case is closed: its threads are forgotten. Context: runner thread, outside windows. */
void mew_cpu_crew_unwatch(void);
bool mew_cpu_crew_is_watching(void);

/* The calling thread is not one of the case's own. Context: that thread. */
void mew_cpu_crew_forget(void);
/* The calling thread is one of mew's: never sample it. Context: that thread. */
void mew_cpu_crew_hide(void);

/*
 * The threads of one window; mew_cpu_crew_free() is due.
 *
 * window   borrowed
 * Returns  NULL without memory
 * Context  runner thread, outside windows
 */
struct mew_cpu_crew *mew_cpu_crew_new(const struct mew_cpu_window *window);
void mew_cpu_crew_free(struct mew_cpu_crew *c); /* NULL is fine */

/*
 * Before the window opens: timers for the threads that are there. Then, with window->opened_ns set: start them, and
 * from then on those that are born. And when it closes: stop them, and keep what they recorded.
 *
 * Context  the thread that opens and closes the window; c may be NULL
 */
void mew_cpu_crew_prepare(struct mew_cpu_crew *c);
void mew_cpu_crew_start(struct mew_cpu_crew *c);
void mew_cpu_crew_end(struct mew_cpu_crew *c);

/* In place of mew_cpu_crew_end(), of a process that ended with its window open: keep what its threads had recorded. */
void mew_cpu_crew_bury(struct mew_cpu_crew *c, uint64_t ended_ns);

/* After mew_cpu_crew_end(). */
size_t mew_cpu_crew_rows(const struct mew_cpu_crew *c, const struct mew_cpu_crew_row **rows);
/* The next record, in the order of each thread; false behind the last. */
bool mew_cpu_crew_pop(struct mew_cpu_crew *c, struct mew_cpu_crew_record *record);
struct mew_cpu_crew_losses {
	uint64_t unsampled; /* threads without a slot or a timer */
	int refused;        /* errno of the first that had a slot and got no timer; 0: none */
	uint64_t scanned;   /* threads that no wrapper announced */
	uint64_t silent;    /* threads that were there for long and gave no sample */
	uint64_t records;   /* samples dropped */
	uint64_t unannounced; /* libraries that were opened without a word to the listener */
};
struct mew_cpu_crew_losses mew_cpu_crew_losses(const struct mew_cpu_crew *c);

/* Look for threads once: cpu_scan.c calls it. Returns whether the window is still open. Context: mew's own thread. */
bool mew_cpu_crew_scan(struct mew_cpu_crew *c);

#endif
