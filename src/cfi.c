/*
 * cfi.c - runs call frame instructions and packs each row into one 64-bit rule.
 * Layer L1. Outside windows. The input is not trusted: every read is bounded, every value is range-checked.
 */
#include "config.h"

#include "cfi.h"

#include <string.h>

#include "hotpath.h"

enum { RA_UNSAID, RA_AT_CFA, RA_UNDEFINED, RA_ELSEWHERE };

/* DWARF 5, table 7.29; the upper two bits of the first three hold the opcode, the lower six an operand */
enum {
	CFA_ADVANCE = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE1 = 0x02,
	CFA_ADVANCE2 = 0x03,
	CFA_ADVANCE4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_AARCH64_SIGNED_WITH_PC = 0x2c,
	CFA_AARCH64_SIGNED = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET = 0x2f
};
enum { OP_DEREF = 0x06, OP_PLUS_UCONST = 0x23, OP_LIT0 = 0x30, OP_BREG0 = 0x70, OP_BREG31 = 0x8f };

/* --- rows --------------------------------------------------------------------------------------------------------- */

static bool fits(int64_t value, unsigned bits)
{
	int64_t limit = (int64_t)1 << (bits - 1);

	return value >= -limit && value < limit;
}

static uint64_t pack_save(unsigned save, int64_t offset, unsigned mode_shift, unsigned slot_shift)
{
	bool has_slot = save == MEW_SAVE_CFA || save == MEW_SAVE_BP;

	if (has_slot && (offset % 8 != 0 || !fits(offset / 8, 16))) {
		has_slot = false;
		save = MEW_SAVE_LOST;
	}
	return (uint64_t)save << mode_shift | (has_slot ? (uint64_t)(uint16_t)(offset / 8) << slot_shift : 0);
}

/* The registers of another frame, loaded from a jmp_buf: what the C library says of the end of its longjmp. */
static uint64_t pack_jump(const struct mew_cfi_row *r)
{
	if (r->cfa < MEW_RULE_SP || r->cfa > MEW_RULE_LEAF || r->cfa_offset != 0 || r->in_sp == 0 || r->in_bp == 0)
		return MEW_RULE_UNSUPPORTED;
	return MEW_RULE_JUMP | (uint64_t)r->reg << 8 | (uint64_t)(r->in_sp - 1) << 12 | (uint64_t)(r->in_ip - 1) << 16 |
	       (uint64_t)(r->in_bp - 1) << 20 | pack_save(r->bx, r->bx_offset, 6, 48);
}

static inline uint64_t pack(const struct mew_machine *machine, const struct mew_cfi_row *r)
{
	int64_t cfa = r->cfa_offset;

	if (r->ra == RA_UNDEFINED)
		return MEW_RULE_END;
	if (r->ra == RA_ELSEWHERE && r->in_ip != 0)
		return machine->ra_offset != 0 ? pack_jump(r) : MEW_RULE_UNSUPPORTED;
	if ((machine->ra_offset != 0 && r->ra != RA_AT_CFA) || r->cfa < MEW_RULE_SP ||
	    !fits(cfa, r->cfa == MEW_RULE_LEAF ? 16 : 24))
		return MEW_RULE_UNSUPPORTED;
	if (r->cfa == MEW_RULE_LEAF)
		cfa = (cfa & 0xffff) | (int64_t)r->reg << 16;
	return r->cfa | ((uint64_t)cfa & 0xffffff) << 8 | pack_save(r->bp, r->bp_offset, 4, 32) |
	       pack_save(r->bx, r->bx_offset, 6, 48);
}

/* Any general register will do; those that are not followed from frame to frame, at the leaf. */
static void base_on(struct mew_cfi *c, uint64_t reg)
{
	const struct mew_machine *m = c->machine;

	c->row.reg = (uint8_t)reg;
	if (reg == m->sp)
		c->row.cfa = MEW_RULE_SP;
	else if (reg == m->bp)
		c->row.cfa = MEW_RULE_BP;
	else if (reg == m->bx && reg != m->ra)
		c->row.cfa = MEW_RULE_BX;
	else
		c->row.cfa = reg <= m->last ? MEW_RULE_LEAF : MEW_RULE_UNSUPPORTED;
}

static inline void save(struct mew_cfi *c, uint64_t reg, enum mew_rule_save how, int64_t offset)
{
	const struct mew_machine *m = c->machine;

	if (reg == m->bp) {
		c->row.bp = (uint8_t)how;
		c->row.bp_offset = offset;
		c->row.in_bp = 0;
	} else if (reg == m->bx) {
		c->row.bx = (uint8_t)how;
		c->row.bx_offset = offset;
	}
	if (reg == m->ra) {
		c->row.ra = how == MEW_SAVE_CFA && offset == m->ra_offset ? RA_AT_CFA : RA_ELSEWHERE;
		c->row.in_ip = 0;
	}
}

/* The caller's value is in another register; followed where a jump is under way, see pack_jump(). */
static void save_in_register(struct mew_cfi *c, uint64_t reg, uint64_t other)
{
	const struct mew_machine *m = c->machine;
	uint8_t in = other <= m->last ? (uint8_t)(other + 1) : 0;

	save(c, reg, MEW_SAVE_LOST, 0);
	if (reg == m->sp)
		c->row.in_sp = in;
	else if (reg == m->ra)
		c->row.in_ip = in;
	else if (reg == m->bp)
		c->row.in_bp = in;
}

static inline void save_at_offset(struct mew_cfi *c, uint64_t reg, int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, c->data_align, &offset))
		offset = INT64_MAX; /* lost, when packed */
	save(c, reg, MEW_SAVE_CFA, offset);
}

static inline void restore(struct mew_cfi *c, uint64_t reg)
{
	static const struct mew_cfi_row nothing;
	const struct mew_cfi_row *from = c->initial != NULL ? c->initial : &nothing;

	if (reg == c->machine->bp) {
		c->row.bp = from->bp;
		c->row.bp_offset = from->bp_offset;
		c->row.in_bp = from->in_bp;
	} else if (reg == c->machine->bx) {
		c->row.bx = from->bx;
		c->row.bx_offset = from->bx_offset;
	}
	if (reg == c->machine->ra) {
		c->row.ra = from->ra;
		c->row.in_ip = from->in_ip;
	}
}

/* --- expressions: the few shapes that compilers, linkers and hand-written code use -------------------------------- */

/* breg(reg) offset: true, with the reader behind it */
static bool read_breg(struct mew_reader *r, unsigned *reg, int64_t *offset)
{
	uint64_t op = mew_read_bytes(r, 1);

	*reg = (unsigned)(op - OP_BREG0);
	*offset = mew_read_sleb(r);
	return op >= OP_BREG0 && op <= OP_BREG31 && !r->bad;
}

/*
 * The linker's PLT: rsp + 8 + ((rip & 15) >= n) * 8. What follows breg7 8 is
 * breg16 0, lit15, and, lit<n>, ge, lit3, shl, plus.
 */
static bool read_plt(struct mew_cfi *c, struct mew_reader r)
{
	static const uint8_t head[] = { 0x80, 0, 0x3f, 0x1a }, tail[] = { 0x2a, 0x33, 0x24, 0x22 };
	unsigned threshold;

	if (c->machine->ra_offset != -8 || (size_t)(r.end - r.at) != sizeof head + 1 + sizeof tail ||
	    memcmp(r.at, head, sizeof head) != 0 ||
	    memcmp(r.at + sizeof head + 1, tail, sizeof tail) != 0)
		return false;
	threshold = (unsigned)r.at[sizeof head] - OP_LIT0;
	if (threshold > 15)
		return false;
	c->row.cfa = MEW_RULE_PLT;
	c->row.cfa_offset = (int64_t)threshold;
	return true;
}

/* breg off, deref, and perhaps plus_uconst n: realigned frames, and assembly that parks the old rsp in its frame. */
static bool read_load(struct mew_cfi *c, struct mew_reader r, unsigned reg, int64_t offset)
{
	uint64_t add = 0;

	if (mew_read_bytes(&r, 1) != OP_DEREF)
		return false;
	if (r.at < r.end) {
		if (mew_read_bytes(&r, 1) != OP_PLUS_UCONST)
			return false;
		add = mew_read_uleb(&r);
	}
	if (r.bad || r.at < r.end || add > INT8_MAX || !fits(offset, 16) ||
	    (reg != c->machine->sp && reg != c->machine->bp))
		return false;
	c->row.cfa = reg == c->machine->sp ? MEW_RULE_SP_LOAD : MEW_RULE_BP_LOAD;
	c->row.cfa_offset = (int64_t)(add << 16 | (uint16_t)offset);
	return true;
}

static void define_by_expression(struct mew_cfi *c, struct mew_reader r)
{
	unsigned reg;
	int64_t offset;

	c->row.cfa = MEW_RULE_UNSUPPORTED;
	c->row.cfa_offset = 0;
	if (!read_breg(&r, &reg, &offset))
		return;
	if (r.at == r.end) {
		base_on(c, reg);
		c->row.cfa_offset = offset;
	} else if (!(reg == c->machine->sp && offset == 8 && read_plt(c, r))) {
		(void)read_load(c, r, reg, offset);
	}
}

/* A register saved at an address that is rbp plus something; anything else is lost. */
static void save_by_expression(struct mew_cfi *c, uint64_t reg, struct mew_reader r)
{
	unsigned base;
	int64_t offset;
	bool known = read_breg(&r, &base, &offset) && r.at == r.end && base == c->machine->bp;

	save(c, reg, known ? MEW_SAVE_BP : MEW_SAVE_LOST, known ? offset : 0);
}

/* The block operand of an expression instruction as a reader of its own. */
static struct mew_reader read_block(struct mew_reader *r)
{
	uint64_t size = mew_read_uleb(r);
	struct mew_reader block = *r;

	mew_read_skip(r, size);
	block.end = r->bad ? block.at : block.at + size;
	return block;
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

static void emit(struct mew_cfi *c, uint64_t rule)
{
	if (c->emit != NULL && c->pc < c->end)
		c->emit(c->to, c->pc, rule);
}

/* Emit the row up to the new place; a program that runs past its function ends there. */
static inline void advance(struct mew_cfi *c, uint64_t factored)
{
	uint64_t delta;

	emit(c, pack(c->machine, &c->row));
	if (__builtin_mul_overflow(factored, c->code_align, &delta) || delta > c->end - c->pc)
		c->pc = c->end;
	else
		c->pc += delta;
}

static void set_location(struct mew_cfi *c)
{
	uintptr_t to = mew_read_pointer(&c->program, c->encoding, 0);

	if (to < c->pc)
		c->program.bad = true;
	else if (!c->program.bad) {
		emit(c, pack(c->machine, &c->row));
		c->pc = to < c->end ? to : c->end;
	}
}

static void set_register(struct mew_cfi *c, uint64_t reg)
{
	if (c->row.cfa >= MEW_RULE_PLT)
		c->row.cfa = MEW_RULE_UNSUPPORTED;
	else
		base_on(c, reg);
}

static inline void set_offset(struct mew_cfi *c, int64_t offset, int64_t factor)
{
	if (c->row.cfa >= MEW_RULE_PLT)
		c->row.cfa = MEW_RULE_UNSUPPORTED;
	if (__builtin_mul_overflow(offset, factor, &c->row.cfa_offset))
		c->row.cfa_offset = INT64_MAX; /* does not fit when packed */
}

static void define(struct mew_cfi *c, int64_t factor)
{
	uint64_t reg = mew_read_uleb(&c->program);
	int64_t offset = factor == 1 ? (int64_t)mew_read_uleb(&c->program) : mew_read_sleb(&c->program);

	base_on(c, reg);
	set_offset(c, offset, factor);
}

static bool run_location(struct mew_cfi *c, uint8_t op)
{
	struct mew_reader *r = &c->program;

	switch (op) {
	case CFA_NOP: return true;
	case CFA_SET_LOC: set_location(c); return true;
	case CFA_ADVANCE1: advance(c, mew_read_bytes(r, 1)); return true;
	case CFA_ADVANCE2: advance(c, mew_read_bytes(r, 2)); return true;
	case CFA_ADVANCE4: advance(c, mew_read_bytes(r, 4)); return true;
	case CFA_GNU_ARGS_SIZE: (void)mew_read_uleb(r); return true;
	case CFA_AARCH64_SIGNED: /* the walk takes the signature off every return address */
	case CFA_AARCH64_SIGNED_WITH_PC: return c->machine->signs_returns;
	default: return false;
	}
}

static bool run_state(struct mew_cfi *c, uint8_t op)
{
	struct mew_reader *r = &c->program;

	switch (op) {
	case CFA_REMEMBER_STATE:
		if (c->depth == MEW_CFI_REMEMBER)
			return false;
		c->remembered[c->depth++] = c->row;
		return true;
	case CFA_RESTORE_STATE:
		if (c->depth == 0)
			return false;
		c->row = c->remembered[--c->depth];
		return true;
	case CFA_DEF_CFA: define(c, 1); return true;
	case CFA_DEF_CFA_SF: define(c, c->data_align); return true;
	case CFA_DEF_CFA_REGISTER: set_register(c, mew_read_uleb(r)); return true;
	case CFA_DEF_CFA_OFFSET_SF: set_offset(c, mew_read_sleb(r), c->data_align); return true;
	case CFA_DEF_CFA_EXPRESSION: define_by_expression(c, read_block(r)); return true;
	default: return false;
	}
}

static void lose(struct mew_cfi *c, uint64_t reg)
{
	save(c, reg, MEW_SAVE_LOST, 0);
}

static bool run_register(struct mew_cfi *c, uint8_t op)
{
	struct mew_reader *r = &c->program;
	uint64_t reg = mew_read_uleb(r);

	switch (op) {
	case CFA_OFFSET_EXTENDED: save_at_offset(c, reg, (int64_t)mew_read_uleb(r)); return true;
	case CFA_OFFSET_EXTENDED_SF: save_at_offset(c, reg, mew_read_sleb(r)); return true;
	case CFA_GNU_NEGATIVE_OFFSET: save_at_offset(c, reg, (int64_t)(0 - mew_read_uleb(r))); return true;
	case CFA_RESTORE_EXTENDED: restore(c, reg); return true;
	case CFA_SAME_VALUE: save(c, reg, MEW_SAVE_SAME, 0); return true;
	case CFA_EXPRESSION: save_by_expression(c, reg, read_block(r)); return true;
	case CFA_UNDEFINED:
		lose(c, reg);
		if (reg == c->machine->ra)
			c->row.ra = RA_UNDEFINED;
		return true;
	case CFA_REGISTER: save_in_register(c, reg, mew_read_uleb(r)); return true;
	case CFA_VAL_OFFSET: (void)mew_read_uleb(r); lose(c, reg); return true;
	case CFA_VAL_OFFSET_SF: (void)mew_read_sleb(r); lose(c, reg); return true;
	case CFA_VAL_EXPRESSION: (void)read_block(r); lose(c, reg); return true;
	default: return false;
	}
}

void mew_cfi_init(struct mew_cfi *c, const struct mew_machine *machine, struct mew_reader program,
		  uint64_t code_align, int64_t data_align)
{
	c->machine = machine;
	c->program = program;
	c->row = (struct mew_cfi_row){ .cfa = MEW_RULE_NONE };
	c->initial = NULL;
	c->code_align = code_align;
	c->data_align = data_align;
	c->encoding = 0;
	c->pc = c->end = 0;
	c->emit = NULL;
	c->to = NULL;
	c->depth = 0;
}

bool mew_cfi_run(struct mew_cfi *c)
{
	struct mew_reader *r = &c->program;
	bool known = true;

	while (known && !r->bad && r->at < r->end && (c->emit == NULL || c->pc < c->end)) {
		uint8_t op = *r->at++, low = op & 0x3f;

		switch (op & 0xc0) {
		case CFA_ADVANCE: advance(c, low); break;
		case CFA_OFFSET: save_at_offset(c, low, (int64_t)mew_read_uleb(r)); break;
		case CFA_RESTORE: restore(c, low); break;
		default:
			if (MEW_LIKELY(op == CFA_DEF_CFA_OFFSET)) /* two in three of the rest */
				set_offset(c, (int64_t)mew_read_uleb(r), 1);
			else
				known = run_location(c, op) || run_state(c, op) || run_register(c, op);
		}
	}
	known = known && !r->bad;
	emit(c, known ? pack(c->machine, &c->row) : MEW_RULE_UNSUPPORTED);
	return known;
}
