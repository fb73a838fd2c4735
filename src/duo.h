/*
 * duo.h - two functions on one thread, each on a stack of its own, that give way to each other by a call.
 * Layer L1. While they take turns the kernel sees one thread that never sleeps: nobody gets the processor in between,
 * and the process keeps the state of one with a single thread, in malloc too.
 *
 * Context  the thread that called mew_duo_run()
 */
#ifndef MEW_DUO_H
#define MEW_DUO_H

#include "base.h"

struct mew_duo;

/* Two stacks, as large as the limit on the main thread's. Returns NULL when the system has no memory (errno is set). */
struct mew_duo *mew_duo_new(void);
void mew_duo_free(struct mew_duo *d); /* NULL is fine */

/*
 * Call run(data[0]) and run(data[1]); the first begins, the other when the first gives way or ends. Returns when both
 * have returned.
 *
 * data  borrowed; each place has its stack, and both are alike
 */
void mew_duo_run(struct mew_duo *d, void (*run)(void *), void *const data[2]);

/*
 * Let the other one go on; returns when that gives way or ends.
 * Returns  false: it had ended already, and nothing ran
 */
bool mew_duo_yield(struct mew_duo *d);

#endif
