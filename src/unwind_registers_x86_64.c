/*
 * unwind_registers_x86_64.c - the registers of x86-64 in a signal's ucontext and in perf's samples: see
 * unwind_machine.h.
 * Layer L1. Any thread, signal.
 */
#include "config.h"

#include "unwind_machine.h"

#include <ucontext.h>

#include "hotpath.h"

/* It reads other functions' frames, also the gaps that a sanitizer guards. */
#define READS_STACKS __attribute__((no_sanitize("address", "thread")))

READS_STACKS void mew_unwind_from_ucontext(struct mew_unwind_regs *r, const void *ucontext)
{
	const greg_t *g = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;

	*r = (struct mew_unwind_regs){ .ip = (uintptr_t)g[REG_RIP], .sp = (uintptr_t)g[REG_RSP],
				       .bp = (uintptr_t)g[REG_RBP], .bx = (uintptr_t)g[REG_RBX],
				       .context = ucontext };
}

/*
 * The syscall instruction leaves its return address in rcx; the kernel shows that address as where the thread is, or
 * the instruction two bytes before it, to be run again.
 */
bool mew_unwind_in_syscall(const void *ucontext)
{
	const greg_t *g = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;

	return g[REG_RCX] == g[REG_RIP] || g[REG_RCX] == g[REG_RIP] + 2;
}

/* --- perf --------------------------------------------------------------------------------------------------------- */

/* By rising number: those of the kernel's asm/perf_regs.h, which not every C library comes with. */
static const struct {
	uint8_t of_perf, of_context;
} registers[] = {
	{ 0, REG_RAX },  { 1, REG_RBX },  { 2, REG_RCX },  { 3, REG_RDX },  { 4, REG_RSI },  { 5, REG_RDI },
	{ 6, REG_RBP },  { 7, REG_RSP },  { 8, REG_RIP },  { 16, REG_R8 },  { 17, REG_R9 },  { 18, REG_R10 },
	{ 19, REG_R11 }, { 20, REG_R12 }, { 21, REG_R13 }, { 22, REG_R14 }, { 23, REG_R15 },
};

size_t mew_unwind_perf_registers(uint64_t *mask)
{
	*mask = 0;
	for (size_t i = 0; i < MEW_COUNTOF(registers); i++)
		*mask |= (uint64_t)1 << registers[i].of_perf;
	return MEW_COUNTOF(registers);
}

void mew_unwind_from_perf(void *ucontext, const uint64_t *values)
{
	greg_t *g = ((ucontext_t *)ucontext)->uc_mcontext.gregs;

	for (size_t i = 0; i < MEW_COUNTOF(registers); i++)
		g[registers[i].of_context] = (greg_t)values[i];
}
