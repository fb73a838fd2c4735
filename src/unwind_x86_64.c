/*
 * unwind_x86_64.c - leaves one frame after the other by packed rules (cfi.h), with a cache of them per thread.
 * Layer L1. Any thread, signal, malloc: no locks, no heap, no system calls; stack memory is read within bounds only.
 */
#include "config.h"

#include "unwind.h"

#include <stdatomic.h>
#include <ucontext.h>

#include "ehframe.h"
#include "modules.h"
#include "unwind_code_x86_64.h"
#include "unwind_machine.h"
#include "unwind_recent.h"
#include "unwind_rules.h"

#include "hotpath.h"

#define RED_ZONE 128    /* bytes below rsp that a leaf function may use */
const struct mew_machine mew_machine = { .ra = 16, .sp = 7, .bp = 6, .bx = 3, .last = 15, .ra_offset = -8 };

enum { STEPPED = -1 }; /* beside enum mew_unwind_stop */

struct frame {
	uintptr_t ip, sp, bp, bx;
	const ucontext_t *context; /* all registers, at a leaf that was interrupted */
	uintptr_t lo, hi;          /* where loads may go */
	uintptr_t shift;           /* from a word of the stack to where it is read: 0 but for a copy */
	const struct mew_unwind_copy *copy;
	bool bp_lost, bx_lost;
	bool leaf; /* ip is exact, not a return address */
};

/* --- rules -------------------------------------------------------------------------------------------------------- */

static uint64_t find_rule(const struct mew_modules *modules, uintptr_t pc)
{
	const struct mew_module_map *map = mew_modules_find(modules, pc);

	return map != NULL && map->table != NULL ? mew_unwind_table_rule(map->table, pc) : (uint64_t)MEW_RULE_NONE;
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

READS_STACKS static inline bool load(const struct frame *f, uintptr_t at, uintptr_t *value)
{
	if (MEW_UNLIKELY(at < f->lo || at > f->hi - sizeof *value || (at & 7) != 0))
		return false;
	*value = *(const volatile uintptr_t *)(at + f->shift);
	return true;
}

/*
 * Begin on the stack of these registers: loads may go from the red zone to the end of the stack. False when it is no
 * stack that is known.
 */
static bool set_bounds(struct frame *f, const struct mew_unwind_thread *t, const struct mew_unwind_regs *regs)
{
	uintptr_t lo;

	if (!mew_unwind_bounds(t, regs, &lo, &f->hi))
		return false;
	f->lo = f->sp - lo > RED_ZONE ? f->sp - RED_ZONE : lo;
	f->copy = regs->copy;
	f->shift = MEW_UNLIKELY(f->copy != NULL) ? (uintptr_t)f->copy->words - f->copy->lo : 0;
	return true;
}

READS_STACKS static uintptr_t leaf_register(const ucontext_t *context, unsigned number)
{
	static const uint8_t place[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
					   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

	return (uintptr_t)context->uc_mcontext.gregs[place[number]];
}

/* The CFA by a rule that is not "register plus offset": STEPPED with *cfa, or why there is none. */
static int unusual_cfa(const struct frame *f, uint64_t rule, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)mew_rule_short_offset(rule);
	bool loaded;

	switch (mew_rule_kind(rule)) {
	case MEW_RULE_PLT:
		*cfa = f->sp + 8 + ((f->ip & 15) >= (uintptr_t)mew_rule_cfa_offset(rule) ? 8 : 0);
		return STEPPED;
	case MEW_RULE_LEAF:
		if (!f->leaf || f->context == NULL)
			return MEW_STOP_UNSUPPORTED;
		*cfa = leaf_register(f->context, mew_rule_register(rule)) + offset;
		return STEPPED;
	case MEW_RULE_BP_LOAD:
		if (f->bp_lost)
			return MEW_STOP_UNSUPPORTED;
		loaded = load(f, f->bp + offset, cfa);
		break;
	case MEW_RULE_SP_LOAD:
		loaded = load(f, f->sp + offset, cfa);
		break;
	case MEW_RULE_END: return MEW_STOP_END;
	default: return MEW_STOP_UNSUPPORTED;
	}
	*cfa += (uintptr_t)mew_rule_load_add(rule);
	return loaded ? STEPPED : MEW_STOP_BAD_STACK;
}

static inline int canonical_address(const struct frame *f, uint64_t rule, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)mew_rule_cfa_offset(rule);

	switch (mew_rule_kind(rule)) {
	case MEW_RULE_SP: *cfa = f->sp + offset; return STEPPED;
	case MEW_RULE_BP: *cfa = f->bp + offset; return f->bp_lost ? MEW_STOP_UNSUPPORTED : STEPPED;
	case MEW_RULE_BX: *cfa = f->bx + offset; return f->bx_lost ? MEW_STOP_UNSUPPORTED : STEPPED;
	default: return unusual_cfa(f, rule, cfa);
	}
}

/*
 * What the caller had in rbp or rbx: value is the register's own on entry and the caller's on return.
 *
 * A slot named relative to rbp lies in this frame. Compilers leave that rule in force behind the pop of rbp at the end
 * of a realigned function; then rbp, and rbx that is popped before it, are the caller's already.
 */
static inline void restore(const struct frame *f, enum mew_rule_save how, uintptr_t slot, uintptr_t cfa,
			   uintptr_t *value, bool *lost)
{
	uintptr_t at = (how == MEW_SAVE_BP ? f->bp : cfa) + slot;

	switch (how) {
	case MEW_SAVE_SAME: return;
	case MEW_SAVE_CFA: *lost = !load(f, at, value); return;
	case MEW_SAVE_BP:
		if (f->bp_lost || (at >= f->sp && at < cfa))
			*lost = f->bp_lost || !load(f, at, value);
		return;
	default: *lost = true;
	}
}

static inline int step_by_rule(struct frame *f, uint64_t rule)
{
	uintptr_t cfa = 0, ip, bp = f->bp;
	bool bp_lost = f->bp_lost;
	int stop = canonical_address(f, rule, &cfa);

	if (MEW_UNLIKELY(stop != STEPPED))
		return stop;
	if (MEW_UNLIKELY(cfa <= f->sp || !load(f, cfa - 8, &ip)))
		return MEW_STOP_BAD_STACK;
	if ((rule & 0xf0) != 0) {
		restore(f, mew_rule_bp(rule), (uintptr_t)mew_rule_bp_offset(rule), cfa, &bp, &bp_lost);
		restore(f, mew_rule_bx(rule), (uintptr_t)mew_rule_bx_offset(rule), cfa, &f->bx, &f->bx_lost);
		f->bp = bp;
		f->bp_lost = bp_lost;
	}
	f->ip = ip;
	f->sp = cfa;
	f->leaf = false;
	return STEPPED;
}

/*
 * longjmp has loaded the registers of the frame it goes to; from its last instruction but one on, rsp is that frame's
 * already. The rest of the jmp_buf need not lie on the stack.
 */
static int step_with_jump(struct frame *f, uint64_t rule)
{
	uintptr_t cfa, sp;

	if (!f->leaf || f->context == NULL)
		return MEW_STOP_UNSUPPORTED;
	cfa = leaf_register(f->context, mew_rule_jump_register(rule, 0));
	sp = leaf_register(f->context, mew_rule_jump_register(rule, 1));
	if (sp < f->sp || sp > f->hi)
		return MEW_STOP_BAD_STACK;
	restore(f, mew_rule_bx(rule), (uintptr_t)mew_rule_bx_offset(rule), cfa, &f->bx, &f->bx_lost);
	f->ip = leaf_register(f->context, mew_rule_jump_register(rule, 2));
	f->bp = leaf_register(f->context, mew_rule_jump_register(rule, 3));
	f->sp = sp;
	f->leaf = false;
	return STEPPED;
}

/* The kernel put a ucontext at rsp, and the registers of the interrupted code into it. */
READS_STACKS static int step_out_of_signal(struct frame *f, const struct mew_unwind_thread *t)
{
	struct mew_unwind_regs r;

	if (f->hi - f->sp < sizeof(ucontext_t) || (f->sp & 7) != 0)
		return MEW_STOP_BAD_STACK;
	mew_unwind_from_ucontext(&r, (const void *)(f->sp + f->shift));
	r.copy = f->copy;
	*f = (struct frame){ .ip = r.ip, .sp = r.sp, .bp = r.bp, .bx = r.bx, .context = r.context, .leaf = true };
	return set_bounds(f, t, &r) ? STEPPED : MEW_STOP_BAD_STACK;
}

static bool step_out_of_stub(struct frame *f, const struct mew_modules *modules)
{
	uintptr_t words = mew_modules_is_code(modules, f->ip + 1) ? mew_code_stub_words(f->ip) : 0, ip;

	if (words == 0 || !load(f, f->sp + (words - 1) * 8, &ip) || !mew_modules_is_code(modules, ip))
		return false;
	f->sp += words * 8;
	f->ip = ip;
	f->leaf = false;
	return true;
}

/*
 * Did the call before this return address lead to the code at f->ip, which has no rules? Code that keeps no frame
 * pointer leaves that of a caller in rbp, and whoever follows it leaves that caller out. A direct call names the
 * function that it calls: it must lie before f->ip, and have no rules either. Code outside every file was made at run
 * time: it is called by way of a register, and is believed.
 */
static bool call_leads_here(const struct frame *f, const struct mew_modules *modules, uintptr_t ip)
{
	const struct mew_module_map *here = mew_modules_find(modules, f->ip);
	uintptr_t target;

	if (here == NULL)
		return true;
	if (f->copy != NULL)
		return false; /* the code may be gone by now */
	return mew_code_called(ip, &target) && target <= f->ip && mew_modules_find(modules, target) == here &&
	       find_rule(modules, target) == MEW_RULE_NONE;
}

static int step_by_frame_pointer(struct frame *f, const struct mew_modules *modules)
{
	uintptr_t ip, bp;

	if (f->bp_lost || f->bp < f->sp || !load(f, f->bp, &bp) || !load(f, f->bp + 8, &ip) ||
	    !mew_modules_is_code(modules, ip) || !call_leads_here(f, modules, ip))
		return MEW_STOP_NO_RULE;
	f->sp = f->bp + 16;
	f->ip = ip;
	f->bp = bp;
	f->bx_lost = true;
	f->leaf = false;
	return STEPPED;
}

static inline int step(struct frame *f, struct mew_unwind_thread *t, const struct mew_modules *modules, uint64_t rule)
{
	if (MEW_LIKELY(mew_rule_kind(rule) > MEW_RULE_SIGNAL && mew_rule_kind(rule) != MEW_RULE_JUMP))
		return step_by_rule(f, rule);
	switch (mew_rule_kind(rule)) {
	case MEW_RULE_NONE:
		/* of a copy, the code may be gone by now: reading it could fault */
		if (f->leaf && f->copy == NULL && step_out_of_stub(f, modules))
			return STEPPED;
		if (f->copy == NULL && mew_modules_find(modules, f->ip) != NULL && mew_code_returns_from_signal(f->ip))
			return step_out_of_signal(f, t);
		if (step_by_frame_pointer(f, modules) == STEPPED)
			return STEPPED;
		/* a fiber returns to the first instruction of a function, as no call does: see makecontext */
		return !f->leaf && find_rule(modules, f->ip) != MEW_RULE_NONE ? MEW_STOP_END : MEW_STOP_NO_RULE;
	case MEW_RULE_END: return MEW_STOP_END;
	case MEW_RULE_SIGNAL: return step_out_of_signal(f, t);
	case MEW_RULE_JUMP: return step_with_jump(f, rule);
	default: return MEW_STOP_UNSUPPORTED;
	}
}

/* --- the trail ---------------------------------------------------------------------------------------------------- */

struct origins { /* where the two registers' values were read */
	uintptr_t bp, bx;
};

static void steered_by(struct mew_unwind_trail *trail, uintptr_t at, uintptr_t value)
{
	if (trail->nframes > 0 && trail->frame[trail->nframes - 1].at == at)
		return;
	if (trail->nframes == MEW_TRAIL_FRAMES)
		trail->whole = false;
	else
		trail->frame[trail->nframes++] = (struct mew_trail_word){ at, value };
}

/* Where a register of the caller was read, as restore() decides it. */
static uintptr_t origin_of(struct mew_unwind_trail *trail, const struct frame *f, const struct origins *o,
			   enum mew_rule_save how, uintptr_t slot, uintptr_t cfa, uintptr_t old)
{
	uintptr_t at = f->bp + slot;

	switch (how) {
	case MEW_SAVE_CFA: return cfa + slot;
	case MEW_SAVE_BP: steered_by(trail, o->bp, f->bp); return at >= f->sp && at < cfa ? at : old;
	default: return old;
	}
}

/*
 * Note what a step from `f` to the stack pointer `cfa` went by. What is rare makes the trail useless instead of long.
 */
static void note_step(struct mew_unwind_trail *trail, const struct frame *f, uint64_t rule, uintptr_t cfa,
		      struct origins *o)
{
	struct origins before = *o;

	switch (mew_rule_kind(rule)) {
	case MEW_RULE_SP: break;
	case MEW_RULE_BP: steered_by(trail, o->bp, f->bp); break;
	case MEW_RULE_BX: steered_by(trail, o->bx, f->bx); break;
	case MEW_RULE_NONE:
		steered_by(trail, o->bp, f->bp);
		trail->whole = trail->whole && !f->leaf;
		o->bp = f->bp;
		return;
	default: trail->whole = false; return;
	}
	if (f->bp_lost || f->bx_lost)
		trail->whole = false;
	o->bp = origin_of(trail, f, &before, mew_rule_bp(rule), (uintptr_t)mew_rule_bp_offset(rule), cfa, before.bp);
	o->bx = origin_of(trail, f, &before, mew_rule_bx(rule), (uintptr_t)mew_rule_bx_offset(rule), cfa, before.bx);
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

/* The frame that a walk begins with. False, and *stop says why, when it can go no further. */
static inline bool start(struct frame *f, struct mew_unwind_thread *t, const struct mew_unwind_regs *regs,
			 const struct mew_modules *modules, enum mew_unwind_stop *stop)
{
	*f = (struct frame){ .ip = regs->ip, .sp = regs->sp, .bp = regs->bp, .bx = regs->bx, .context = regs->context,
			     .leaf = true };
	*stop = modules == NULL ? MEW_STOP_NO_RULE : MEW_STOP_BAD_STACK;
	if (modules == NULL || !set_bounds(f, t, regs))
		return false;
	forget_old(t, modules->generation);
	return true;
}

/* Does the walk end at the caller that was just found? */
static inline bool is_end(const struct frame *f, uintptr_t entry_lo, uintptr_t entry_hi)
{
	return f->ip == 0 || (f->ip >= entry_lo && f->ip < entry_hi);
}

static inline __attribute__((always_inline)) size_t
walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo, uintptr_t entry_hi,
     uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop, struct mew_unwind_trail *trail)
{
	const struct mew_modules *modules = mew_modules_current();
	struct origins origins = { MEW_TRAIL_BP, MEW_TRAIL_BX };
	struct frame f, before;
	uint64_t rule;
	size_t n = 1;
	int why;

	pcs[0] = regs->ip;
	if (!start(&f, t, regs, modules, stop))
		return n;
	for (;; pcs[n++] = f.ip) { /* ends: each turn stops or fills one of max places */
		rule = rule_at(t, modules, f.leaf ? f.ip : f.ip - 1);
		if (trail != NULL)
			before = f;
		why = step(&f, t, modules, rule);
		if (trail != NULL && why == STEPPED)
			note_step(trail, &before, rule, f.sp, &origins);
		if (why == STEPPED && is_end(&f, entry_lo, entry_hi)) {
			why = MEW_STOP_END;
			if (trail != NULL)
				trail->end = (struct mew_trail_word){ f.sp - 8, f.ip };
		}
		if (why == STEPPED && n == max)
			why = MEW_STOP_FULL;
		if (why != STEPPED)
			break;
		if (trail != NULL)
			trail->slots[n] = f.sp - 8; /* however the step was made, the return address lay there */
	}
	if (trail != NULL) {
		/* memory of another stack may be gone when its words are looked at again */
		trail->whole = trail->whole && f.hi == t->stack_hi;
		trail->generation = modules->generation;
	}
	*stop = (enum mew_unwind_stop)why;
	return n;
}

/*
 * The same on the thread's own stack, up to where it comes upon the stack that was walked last. What ends for want of a
 * rule or at a bad word is not kept: the next walk looks for itself.
 */
static size_t walk_until_known(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			       uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop)
{
	const struct mew_modules *modules = mew_modules_current();
	struct mew_unwind_recent *r = t->recent;
	struct mew_trail_word end = { 0, 0 };
	size_t known, frame, n = 1, met = 0;
	int why = STEPPED;
	struct frame f;

	pcs[0] = regs->ip;
	if (!start(&f, t, regs, modules, stop))
		return n;
	known = mew_recent_begin(r, modules->generation, entry_lo, entry_hi, f.hi);
	while (why == STEPPED) { /* ends: each turn stops or fills one of max places */
		struct mew_recent_step *at = &r->step[(n - 1) & (MEW_RECENT_STEPS - 1)];
		unsigned lost = (f.bp_lost ? MEW_RECENT_BP : 0u) | (f.bx_lost ? MEW_RECENT_BX : 0u);
		uint64_t rule;

		*at = (struct mew_recent_step){ f.sp, f.bp, f.bx, MEW_RULE_NONE };
		if (known > 0 && !f.leaf && mew_recent_meets(r, &known, f.ip, at, lost, pcs + n, max - n, &frame)) {
			met = frame + 1;
			why = MEW_STOP_END;
			break;
		}
		rule = rule_at(t, modules, f.leaf ? f.ip : f.ip - 1);
		if (!f.leaf)
			at->rule = rule;
		why = step(&f, t, modules, rule);
		if (why == STEPPED && is_end(&f, entry_lo, entry_hi)) {
			end = (struct mew_trail_word){ f.sp - 8, f.ip };
			why = MEW_STOP_END;
		} else if (why == STEPPED && n == max) {
			why = MEW_STOP_FULL;
		}
		if (why == STEPPED)
			pcs[n++] = f.ip;
	}
	*stop = (enum mew_unwind_stop)why;
	if (why == MEW_STOP_END && f.hi == t->stack_hi)
		mew_recent_keep(r, met, pcs, n, end);
	return met > 0 ? n + met - 1 : n;
}

/* May a walk from here go by the last one? Not on another stack, whose memory may be gone, and not inside a walk. */
static inline bool may_reuse(const struct mew_unwind_thread *t, const struct mew_unwind_regs *regs)
{
	return t->recent != NULL && regs->copy == NULL && regs->sp >= t->stack_lo && regs->sp < t->stack_hi &&
	       *(const volatile uint32_t *)&t->recent->busy == 0;
}

size_t mew_unwind_by_table(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			   uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			   struct mew_unwind_trail *trail)
{
	size_t n;

	*stop = MEW_STOP_FULL;
	if (max == 0)
		return 0;
	if (trail == NULL && may_reuse(t, regs)) {
		*(volatile uint32_t *)&t->recent->busy = 1;
		n = walk_until_known(t, regs, entry_lo, entry_hi, pcs, max, stop);
		*(volatile uint32_t *)&t->recent->busy = 0;
		return n;
	}
	if (trail == NULL)
		return walk(t, regs, entry_lo, entry_hi, pcs, max, stop, NULL);
	trail->end = (struct mew_trail_word){ 0, 0 };
	trail->nframes = 0;
	trail->whole = true;
	n = walk(t, regs, entry_lo, entry_hi, pcs, max, stop, trail);
	trail->whole = trail->whole && *stop == MEW_STOP_END;
	return n;
}
