/*
 * unwind_aarch64.h - the walk of aarch64, apart from the machine it runs on: recorded stacks can be walked anywhere.
 * Layer L1. Any thread, signal, malloc.
 */
#ifndef MEW_UNWIND_AARCH64_H
#define MEW_UNWIND_AARCH64_H

#include "cfi.h"
#include "unwind.h"

struct mew_modules;

/* Registers of the DWARF for the Arm 64-bit architecture: x29 in the place of bp, x30 in that of bx. */
extern const struct mew_machine mew_machine_aarch64;

/* Byte of a ucontext where x0 lies; x30, sp and pc follow. The same for every C library, for the kernel writes it. */
#define MEW_AARCH64_X0 184u

/*
 * mew_unwind_walk() by the tables of these modules, which are compiled with mew_machine_aarch64.
 *
 * regs   ip, sp; bp is x29, bx is x30; context a ucontext of aarch64, or NULL
 */
size_t mew_unwind_aarch64(struct mew_unwind_thread *t, const struct mew_modules *modules,
			  const struct mew_unwind_regs *regs, uintptr_t entry_lo, uintptr_t entry_hi, uintptr_t *pcs,
			  size_t max, enum mew_unwind_stop *stop);

#endif
