/*
 * unwind_aarch64.c - leaves one frame after the other by packed rules (cfi.h): aarch64, where calls keep the return
 * address in x30 and it may be signed.
 * Layer L1. Any thread, signal, malloc: no locks, no heap, no system calls; stack memory is read within bounds only.
 * All but the last functions know nothing of the machine they run on: t_unwind_aarch64.c walks recorded stacks with
 * them.
 */
#include "config.h"

#include "unwind_aarch64.h"

#include <stdatomic.h>
#include <ucontext.h>

#include "ehframe.h"
#include "modules.h"
#include "unwind_machine.h"
#include "unwind_rules.h"

#include "hotpath.h"

#define MACHINE { .ra = 30, .sp = 31, .bp = 29, .bx = 30, .last = 30, .signs_returns = true, .letters = "BG" }
const struct mew_machine mew_machine_aarch64 = MACHINE;

#define SIGINFO_BYTES 128u /* before the ucontext, at the stack pointer of a signal frame */
#define X30_PLACE (MEW_AARCH64_X0 + 30u * 8u)
#define SP_PLACE (X30_PLACE + 8u)
#define PC_PLACE (SP_PLACE + 8u)

enum { STEPPED = -1 }; /* beside enum mew_unwind_stop */

struct frame {
	uintptr_t ip, sp, fp, lr;
	const void *context; /* all registers, at a leaf that was interrupted */
	uintptr_t lo, hi;    /* where loads may go */
	bool fp_lost;
	bool sp_low; /* sp is not exact: the true one lies above */
	bool leaf;   /* ip is exact and lr is the register, as before a call */
};

/* An address of code without its signature. */
static uintptr_t strip(uintptr_t address)
{
#ifdef __aarch64__
	return mew_unwind_strip(address);
#else
	return address & (((uintptr_t)1 << 48) - 1); /* what user space has */
#endif
}

/* mov x8, 139; svc 0: the end of every signal handler. The kernel's, in the vDSO, has no unwind rules of late. */
READS_STACKS static bool returns_from_signal(const struct mew_module_map *map, uintptr_t ip)
{
#ifdef __aarch64__
	const volatile uint32_t *code = (const volatile uint32_t *)ip;

	return (ip & 3) == 0 && ip >= map->lo && map->hi - ip >= 8 && code[0] == 0xd2801168u && code[1] == 0xd4000001u;
#else
	(void)map; /* recorded code is not at its address */
	(void)ip;
	return false;
#endif
}

/* Only of a return address is one less not a multiple of 4. What lies before the end of a handler did not call it. */
static uint64_t find_rule(const struct mew_modules *modules, uintptr_t pc)
{
	const struct mew_module_map *map = mew_modules_find(modules, pc);

	if (map == NULL || map->gone)
		return MEW_RULE_NONE;
	if (returns_from_signal(map, (pc & 3) == 3 ? pc + 1 : pc))
		return MEW_RULE_SIGNAL;
	return map->table != NULL ? mew_unwind_table_rule(map->table, pc) : (uint64_t)MEW_RULE_NONE;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

READS_STACKS static inline bool load(const struct frame *f, uintptr_t at, uintptr_t *value)
{
	if (MEW_UNLIKELY(at < f->lo || at > f->hi - sizeof *value || (at & 7) != 0))
		return false;
	*value = *(const volatile uintptr_t *)at;
	return true;
}

static bool set_bounds(struct frame *f, const struct mew_unwind_thread *t, const struct mew_unwind_regs *regs)
{
	uintptr_t lo;

	if (!mew_unwind_bounds(t, regs, &lo, &f->hi))
		return false;
	f->lo = f->sp; /* no red zone */
	return true;
}

READS_STACKS static uintptr_t word_of(const void *context, unsigned place)
{
	return *(const volatile uintptr_t *)((const char *)context + place);
}

static int unusual_cfa(const struct frame *f, uint64_t rule, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)mew_rule_short_offset(rule);
	bool from_fp = mew_rule_kind(rule) == MEW_RULE_BP_LOAD;

	switch (mew_rule_kind(rule)) {
	case MEW_RULE_END: return MEW_STOP_END;
	case MEW_RULE_LEAF:
		if (!f->leaf || f->context == NULL)
			return MEW_STOP_UNSUPPORTED;
		*cfa = word_of(f->context, MEW_AARCH64_X0 + 8 * mew_rule_register(rule)) + offset;
		return STEPPED;
	case MEW_RULE_BP_LOAD:
	case MEW_RULE_SP_LOAD:
		if (from_fp ? f->fp_lost : f->sp_low)
			return MEW_STOP_UNSUPPORTED;
		if (!load(f, (from_fp ? f->fp : f->sp) + offset, cfa))
			return MEW_STOP_BAD_STACK;
		*cfa += (uintptr_t)mew_rule_load_add(rule);
		return STEPPED;
	default: return MEW_STOP_UNSUPPORTED;
	}
}

/*
 * Behind a frame that was left by its frame pointer the stack pointer is not known. But x29 points at the place where
 * the caller's x29 is saved, and the rule says how far that is from the CFA.
 */
static int cfa_by_record(const struct frame *f, uint64_t rule, uintptr_t *cfa)
{
	if (f->fp_lost || mew_rule_bp(rule) != MEW_SAVE_CFA)
		return MEW_STOP_NO_RULE;
	*cfa = f->fp - (uintptr_t)mew_rule_bp_offset(rule);
	return STEPPED;
}

static inline int canonical_address(const struct frame *f, uint64_t rule, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)mew_rule_cfa_offset(rule);

	switch (mew_rule_kind(rule)) {
	case MEW_RULE_SP:
		if (MEW_UNLIKELY(f->sp_low))
			return cfa_by_record(f, rule, cfa);
		*cfa = f->sp + offset;
		return STEPPED;
	case MEW_RULE_BP: *cfa = f->fp + offset; return f->fp_lost ? MEW_STOP_UNSUPPORTED : STEPPED;
	default: return unusual_cfa(f, rule, cfa);
	}
}

/* Where the rule says that a register is saved: 0 for in the register, as far as addresses go. */
static inline uintptr_t slot_of(const struct frame *f, enum mew_rule_save how, uintptr_t offset, uintptr_t cfa)
{
	switch (how) {
	case MEW_SAVE_CFA: return cfa + offset;
	case MEW_SAVE_BP: return f->fp_lost ? 1 : f->fp + offset; /* 1: is not aligned, the load fails */
	case MEW_SAVE_SAME: return 0;
	default: return 1;
	}
}

static inline int step_by_rule(struct frame *f, uint64_t rule)
{
	uintptr_t cfa = 0, ip = f->lr, at;
	int stop = canonical_address(f, rule, &cfa);

	if (MEW_UNLIKELY(stop != STEPPED))
		return stop;
	if (MEW_UNLIKELY(cfa < f->sp || cfa > f->hi || (cfa == f->sp && !f->leaf)))
		return MEW_STOP_BAD_STACK;
	at = slot_of(f, mew_rule_bx(rule), (uintptr_t)mew_rule_bx_offset(rule), cfa);
	if (MEW_UNLIKELY(at == 0 && !f->leaf))
		return MEW_STOP_UNSUPPORTED; /* a call has put another address into x30 since */
	if (MEW_UNLIKELY(at != 0 && !load(f, at, &ip)))
		return mew_rule_bx(rule) == MEW_SAVE_LOST ? MEW_STOP_UNSUPPORTED : MEW_STOP_BAD_STACK;
	at = slot_of(f, mew_rule_bp(rule), (uintptr_t)mew_rule_bp_offset(rule), cfa);
	if (at != 0)
		f->fp_lost = !load(f, at, &f->fp);
	f->ip = strip(ip);
	f->sp = cfa;
	f->sp_low = false;
	f->leaf = false;
	return STEPPED;
}

/* At sp the kernel put a siginfo and then a ucontext with the registers of the interrupted code. */
static int step_out_of_signal(struct frame *f, const struct mew_unwind_thread *t)
{
	uintptr_t context = f->sp + SIGINFO_BYTES, last;
	struct mew_unwind_regs r = { .context = (const void *)context };

	if (f->sp_low || !load(f, context + PC_PLACE, &last))
		return MEW_STOP_BAD_STACK;
	r.ip = last;
	r.sp = word_of(r.context, SP_PLACE);
	*f = (struct frame){ .ip = r.ip, .sp = r.sp, .fp = word_of(r.context, X30_PLACE - 8),
			     .lr = word_of(r.context, X30_PLACE), .context = r.context, .leaf = true };
	return set_bounds(f, t, &r) ? STEPPED : MEW_STOP_BAD_STACK;
}

/*
 * Code without rules. Innermost, when x30 leads to code that has rules: then nothing was called yet, or all is put
 * back. Else by the frame record at x29, which calling conventions ask for.
 */
static int step_without_rule(struct frame *f, const struct mew_modules *modules)
{
	uintptr_t lr = strip(f->lr), ip, fp;

	if (f->leaf && mew_modules_is_code(modules, lr) && find_rule(modules, lr - 1) != MEW_RULE_NONE) {
		f->ip = lr;
		f->leaf = false;
		return STEPPED;
	}
	if (f->fp_lost || f->fp < f->sp || !load(f, f->fp, &fp) || !load(f, f->fp + 8, &ip))
		return MEW_STOP_NO_RULE;
	ip = strip(ip);
	if (!mew_modules_is_code(modules, ip))
		return MEW_STOP_NO_RULE;
	f->sp = f->fp + 16;
	f->sp_low = true;
	f->ip = ip;
	f->fp = fp;
	f->leaf = false;
	return STEPPED;
}

static inline int step(struct frame *f, struct mew_unwind_thread *t, const struct mew_modules *modules, uint64_t rule)
{
	switch (mew_rule_kind(rule)) {
	case MEW_RULE_NONE: return step_without_rule(f, modules);
	case MEW_RULE_SIGNAL: return step_out_of_signal(f, t);
	default: return step_by_rule(f, rule);
	}
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

size_t mew_unwind_aarch64(struct mew_unwind_thread *t, const struct mew_modules *modules,
			  const struct mew_unwind_regs *regs, uintptr_t entry_lo, uintptr_t entry_hi, uintptr_t *pcs,
			  size_t max, enum mew_unwind_stop *stop)
{
	struct frame f = { .ip = regs->ip, .sp = regs->sp, .fp = regs->bp, .lr = regs->bx, .context = regs->context,
			   .leaf = true };
	size_t n = 0;
	int why;

	*stop = MEW_STOP_FULL;
	if (max == 0)
		return 0;
	pcs[n++] = f.ip;
	*stop = modules == NULL ? MEW_STOP_NO_RULE : MEW_STOP_BAD_STACK;
	if (modules == NULL || !set_bounds(&f, t, regs))
		return n;
	forget_old(t, modules->generation);
	for (;; pcs[n++] = f.ip) { /* ends: each turn stops or fills one of max places */
		why = step(&f, t, modules, rule_at(t, modules, f.leaf ? f.ip : f.ip - 1));
		if (why == STEPPED && (f.ip == 0 || (f.ip >= entry_lo && f.ip < entry_hi)))
			why = MEW_STOP_END;
		if (why == STEPPED && n == max)
			why = MEW_STOP_FULL;
		if (why != STEPPED)
			break;
	}
	*stop = (enum mew_unwind_stop)why;
	return n;
}

/* --- on the machine itself ---------------------------------------------------------------------------------------- */

#ifdef __aarch64__

const struct mew_machine mew_machine = MACHINE;

_Static_assert(offsetof(ucontext_t, uc_mcontext.regs) == MEW_AARCH64_X0, "the kernel's ucontext");
_Static_assert(offsetof(ucontext_t, uc_mcontext.pc) == PC_PLACE, "the kernel's ucontext");

/* A trail needs return addresses that lie below the canonical frame address, as they do on x86-64 alone. */
size_t mew_unwind_by_table(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			   uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			   struct mew_unwind_trail *trail)
{
	if (trail != NULL) {
		trail->end = (struct mew_trail_word){ 0, 0 };
		trail->nframes = 0;
		trail->whole = false;
	}
	return mew_unwind_aarch64(t, mew_modules_current(), regs, entry_lo, entry_hi, pcs, max, stop);
}

READS_STACKS void mew_unwind_from_ucontext(struct mew_unwind_regs *r, const void *ucontext)
{
	*r = (struct mew_unwind_regs){ .ip = word_of(ucontext, PC_PLACE), .sp = word_of(ucontext, SP_PLACE),
				       .bp = word_of(ucontext, X30_PLACE - 8), .bx = word_of(ucontext, X30_PLACE),
				       .context = ucontext };
}

bool mew_unwind_in_syscall(const void *ucontext)
{
	(void)ucontext;
	return true; /* svc leaves no trace in a register */
}

size_t mew_unwind_perf_registers(uint64_t *mask)
{
	*mask = 0;
	return 0; /* load() knows no copies */
}

void mew_unwind_from_perf(void *ucontext, const uint64_t *values)
{
	(void)ucontext;
	(void)values;
}

#endif
