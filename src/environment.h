/*
 * environment.h - facts about the machine and the process that was measured, and the grade they deserve.
 * Layer L4. Reads files under /proc and /sys; outside windows; changes nothing.
 */
#ifndef MEW_ENVIRONMENT_H
#define MEW_ENVIRONMENT_H

#include "model.h"

/* CPU, governor, turbo, ASLR, load, kernel, virtual machine, time. Unknown facts are left out. */
void mew_environment_machine(struct mew_model *m);

/* libc, compiler and optimisation of the benchmarks, allocator, hooks: of the calling process. */
void mew_environment_process(struct mew_model *m);

/* 'A' to 'D' with the reason, from the facts. */
void mew_environment_grade(struct mew_model *m);

struct mew_advice { /* one disturbance, and what would end it */
	const char *what, *remedy;
};
/* What disturbs measurements here; at most max. Returns the number. Strings are constants. */
size_t mew_environment_advice(const struct mew_model *m, struct mew_advice *out, size_t max);

#endif
