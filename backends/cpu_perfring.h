/*
 * cpu_perfring.h - the engine without signals: the kernel copies stacks into a ring, a thread of mew walks them.
 * Layer L3. Private to the CPU backend; no part of it runs in a signal handler.
 *
 * One event of perf's task clock for each sampled thread. A sample stands for the CPU time since the one before it, so
 * whatever comes late or is lost is carried by the next. What the kernel cannot know is whether the thread was paused:
 * it notes the moment of each pause and resume in a log, which is read beside the samples.
 *
 * The period is drawn anew for every few samples, between a half and one and a half of what was asked, so that no loop
 * is in step with it for long.
 */
#ifndef MEW_CPU_PERFRING_H
#define MEW_CPU_PERFRING_H

#include "cpu_timer.h"

/* Bytes that the kernel copies from the stack pointer on, as perf does by default; deeper stacks are cut. */
#define MEW_CPU_COPY_BYTES 8192u

struct mew_cpu_drainer;

/*
 * Make the event and the ring of the thread t->tid, switched off. Close them; NULL in t->perfring is fine.
 *
 * Returns  0 or -1 with errno and nothing left behind; ENOBUFS: the ring may not be locked in memory
 * Context  any thread, outside windows or at a thread's birth and death
 */
int mew_cpu_perfring_open(struct mew_cpu_thread *t);
void mew_cpu_perfring_close(struct mew_cpu_thread *t);

/* Start to sample, from now on. Returns 0 or -1 with errno. Context: any thread. */
int mew_cpu_perfring_start(struct mew_cpu_thread *t);
/* Stop; what was sampled is walked and recorded when it returns. Context: any thread. */
void mew_cpu_perfring_stop(struct mew_cpu_thread *t);

/* Has the kernel written anything since the ring was made? Context: any thread. */
bool mew_cpu_perfring_came(const struct mew_cpu_thread *t);

/* Walk and record what all rings hold. Context: any thread. */
void mew_cpu_perfring_drain_all(void);

/*
 * The thread of mew that walks the samples of all threads every few milliseconds. It is known as mew's own when start
 * returns; NULL when it cannot be made.
 *
 * Context  runner thread, before the window opens; stop: after it
 */
struct mew_cpu_drainer *mew_cpu_drainer_start(void);
void mew_cpu_drainer_stop(struct mew_cpu_drainer *d); /* NULL is fine */

#endif
