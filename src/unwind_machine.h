/*
 * unwind_machine.h - what a machine has of its own. Each unwind_<machine>.c defines all of this, with struct
 * mew_machine of cfi.h; on x86-64 unwind_registers_x86_64.c has what turns a ucontext and perf's samples into
 * registers. configure picks one machine, and unwind_none.c where nothing is known. No other file of the capture knows
 * a register by its name, but for mew_unwind_here() and mew_unwind_strip() of unwind.h, which must be inline, and
 * unwind_libunwind.c, which hands libunwind a ucontext in its own form.
 * Layer L1.
 */
#ifndef MEW_UNWIND_MACHINE_H
#define MEW_UNWIND_MACHINE_H

#include "unwind.h"

/* The walk by the tables, and the registers that it begins with: mew_unwind_by_table(), mew_unwind_from_ucontext(). */

/*
 * Was the code that a signal interrupted in a system call? True also where that cannot be told.
 *
 * ucontext  third argument of the handler
 * Context   signal
 */
bool mew_unwind_in_syscall(const void *ucontext);

/*
 * Registers that perf is to copy with a stack, for a walk of the copy.
 *
 * mask     returned: of PERF_SAMPLE_REGS_USER
 * Returns  how many they are; 0 where copied stacks cannot be walked
 */
size_t mew_unwind_perf_registers(uint64_t *mask);

/* Fill in a ucontext from such values, in the order in which the kernel writes them: by rising number. */
void mew_unwind_from_perf(void *ucontext, const uint64_t *values);

#endif
