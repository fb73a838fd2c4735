/*
 * fx_work.h - the workload of oracle.c.
 * Test fixture.
 */
#ifndef FX_WORK_H
#define FX_WORK_H

#include <signal.h>

struct fx_big {
	long word[8];
};

/* Set by the workload's signal handler before it starts its steps, cleared by whoever sees the first of them. */
extern volatile sig_atomic_t fx_signal_entered;

/* About 20,000 instructions in the program, libc, libm and the vDSO. */
void fx_work(void);

/* Raise the trap flag in the caller's own frame, so that the first instruction stepped is still in it. */
static inline __attribute__((always_inline)) void fx_start_steps(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 :
			 : "memory", "cc");
}

#endif
