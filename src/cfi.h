/*
 * cfi.h - call frame instructions: a bounded reader, and a run of one program into packed rules.
 * Layer L1. Used while tables are built (ehframe.c), outside windows; pure, so that a fuzzer can drive it.
 *
 * Two registers are followed from frame to frame beside the stack pointer. On x86-64 these are rbp and rbx; on aarch64
 * x29, which stands in the place of rbp, and x30, the return address, in that of rbx. A machine's register numbers are
 * data (struct mew_machine).
 *
 * A packed rule says how to leave a frame (System V ABI for AMD64, chapter 3.7; DWARF 5, chapter 6.4; DWARF for the Arm
 * 64-bit architecture, chapter 4):
 *
 *	bits 0-3    enum mew_rule_kind: where the canonical frame address (CFA) comes from
 *	bits 4-5    enum mew_rule_save: where the caller's rbp is
 *	bits 6-7    the same for rbx
 *	bits 8-31   signed; CFA offset in bytes; for the two loads bits 8-23 are the offset of the load and 24-31
 *	            what is added to the value loaded; for a leaf's register bits 8-23 are the offset and 24-31 its
 *	            DWARF number; for the PLT the first byte of a 16-byte entry where one more word is pushed
 *	bits 32-47  signed; slot of rbp in words, from the CFA or from rbp
 *	bits 48-63  the same for rbx
 *
 * On x86-64 the return address is always at CFA - 8, on aarch64 it is where x30 is. Only MEW_RULE_JUMP differs, the end
 * of longjmp: bits 8-27 are the numbers of four registers of a leaf, which hold the CFA, and the caller's rsp, rip and
 * rbp, with rbx saved from the CFA on; it has no bits for rbp. Any other row that has the return address elsewhere is
 * MEW_RULE_UNSUPPORTED.
 */
#ifndef MEW_CFI_H
#define MEW_CFI_H

#include "base.h"

#include <string.h>

enum mew_rule_kind {
	MEW_RULE_NONE, /* no unwind information here */
	MEW_RULE_UNSUPPORTED,
	MEW_RULE_END,    /* the outermost frame: its return address is undefined */
	MEW_RULE_SIGNAL, /* the registers are in the ucontext at rsp */
	MEW_RULE_SP,
	MEW_RULE_BP,
	MEW_RULE_BX,
	MEW_RULE_LEAF,    /* another register, which is known at the leaf only */
	MEW_RULE_PLT,     /* rsp + 8, and 8 more from a certain byte of each entry on */
	MEW_RULE_SP_LOAD, /* the word at rsp + offset, plus something */
	MEW_RULE_BP_LOAD, /* the same from rbp */
	MEW_RULE_JUMP     /* a jump to another frame is under way, and its registers are loaded */
};

enum mew_rule_save { MEW_SAVE_SAME, MEW_SAVE_CFA, MEW_SAVE_BP, MEW_SAVE_LOST };

/* DWARF register numbers, and what else a machine has of its own. Each unwind_<machine>.c has one. */
struct mew_machine {
	uint8_t ra, sp, bp, bx; /* return address, stack pointer, the two that are followed; bx may be ra */
	uint8_t last;           /* the last general register */
	int8_t ra_offset;       /* the one place from the CFA where ra may be saved; 0: any, or in the register */
	bool signs_returns;     /* the instructions by which a function says that its return address is signed */
	const char *letters;    /* of CIE augmentations without data, beside those that all have; may be NULL */
};

extern const struct mew_machine mew_machine; /* this one */

/* Bytes of memory, and the address that they have (or had) in the process they belong to. */
struct mew_span {
	const uint8_t *bytes;
	size_t size;
	uintptr_t address;
};

/* A cursor that never leaves its span: a read past the end gives 0 and sets `bad` for good. */
struct mew_reader {
	const uint8_t *at, *end;
	const uint8_t *base;
	uintptr_t address; /* of base */
	bool bad;
};

/* A reader over bytes [offset, size) of a span; an offset beyond the end makes a bad reader. */
static inline struct mew_reader mew_reader_of(const struct mew_span *span, size_t offset)
{
	bool bad = offset > span->size;

	return (struct mew_reader){ .at = span->bytes + (bad ? span->size : offset), .end = span->bytes + span->size,
				    .base = span->bytes, .address = span->address, .bad = bad };
}

/* Give up: everything that is read from now on is 0. */
static inline void mew_read_fail(struct mew_reader *r)
{
	r->bad = true;
	r->at = r->end;
}

/* A number of n bytes, 1, 2, 4 or 8, in the order of this machine: files and stacks are its own. */
static inline uint64_t mew_read_bytes(struct mew_reader *r, size_t n)
{
	const uint8_t *at = r->at;
	uint64_t eight;
	uint32_t four;
	uint16_t two;

	if (MEW_UNLIKELY((size_t)(r->end - at) < n)) {
		mew_read_fail(r);
		return 0;
	}
	r->at = at + n;
	switch (n) {
	case 1: return *at;
	case 2: memcpy(&two, at, sizeof two); return two;
	case 4: memcpy(&four, at, sizeof four); return four;
	default: memcpy(&eight, at, sizeof eight); return eight;
	}
}

/* Numbers of any length, seven bits a byte: nearly all of them have one. */
uint64_t mew_read_long_uleb(struct mew_reader *r);
int64_t mew_read_long_sleb(struct mew_reader *r);
static inline uint64_t mew_read_uleb(struct mew_reader *r)
{
	return MEW_LIKELY(r->at < r->end && *r->at < 0x80) ? *r->at++ : mew_read_long_uleb(r);
}
static inline int64_t mew_read_sleb(struct mew_reader *r)
{
	return MEW_LIKELY(r->at < r->end && *r->at < 0x80) ? (*r->at++ ^ 0x40) - 0x40 : mew_read_long_sleb(r);
}

static inline void mew_read_skip(struct mew_reader *r, uint64_t n)
{
	if (MEW_UNLIKELY(n > (uint64_t)(r->end - r->at)))
		mew_read_fail(r);
	else
		r->at += n;
}

/*
 * A pointer in one of the DW_EH_PE encodings of the LSB core specification, chapter 10.5.
 *
 * data     base of the data-relative form, 0 where there is none
 * Returns  the address; 0 for an omitted pointer, and for a form that does not occur here (`bad` is set)
 */
uintptr_t mew_read_pointer(struct mew_reader *r, uint8_t encoding, uintptr_t data);

/* What is known about one stretch of code. Zero is "no rule for anything"; see cfi.c. */
struct mew_cfi_row {
	uint8_t cfa;        /* enum mew_rule_kind */
	uint8_t bp, bx;     /* enum mew_rule_save */
	uint8_t ra;         /* private */
	uint8_t reg;        /* DWARF number, of what the CFA is relative to */
	uint8_t in_sp, in_ip, in_bp; /* DWARF number of the register that holds the caller's, plus 1; 0 for none */
	int64_t cfa_offset; /* as in a packed rule, but without the register */
	int64_t bp_offset, bx_offset; /* bytes */
};

#define MEW_CFI_REMEMBER 8 /* compilers nest one deep */

/* One run. mew_cfi_init() makes it the run of a CIE; for an FDE the caller fills in the rest of the first group. */
struct mew_cfi {
	const struct mew_machine *machine;
	struct mew_reader program;
	struct mew_cfi_row row;            /* where to start; afterwards the last row */
	const struct mew_cfi_row *initial; /* what a restore goes back to; NULL inside a CIE */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;  /* of DW_CFA_set_loc */
	uintptr_t pc, end; /* code that the program speaks of */
	/* called for each row whose code begins before `end`; NULL inside a CIE */
	void (*emit)(void *to, uintptr_t pc, uint64_t rule);
	void *to;

	unsigned depth;
	struct mew_cfi_row remembered[MEW_CFI_REMEMBER];
};

/* The run of a CIE's program. Leaves `remembered` as it is: there is one run for each function of a process. */
void mew_cfi_init(struct mew_cfi *c, const struct mew_machine *machine, struct mew_reader program,
		  uint64_t code_align, int64_t data_align);

/*
 * Run to the end of the program and emit its rows; the code behind an instruction that is not understood gets
 * MEW_RULE_UNSUPPORTED.
 *
 * Returns  false when the program is malformed or unknown
 */
bool mew_cfi_run(struct mew_cfi *c);

static inline enum mew_rule_kind mew_rule_kind(uint64_t rule)
{
	return (enum mew_rule_kind)(rule & 15);
}
static inline enum mew_rule_save mew_rule_bp(uint64_t rule)
{
	return (enum mew_rule_save)(rule >> 4 & 3);
}
static inline enum mew_rule_save mew_rule_bx(uint64_t rule)
{
	return (enum mew_rule_save)(rule >> 6 & 3);
}
static inline intptr_t mew_rule_cfa_offset(uint64_t rule)
{
	return (int32_t)(uint32_t)rule >> 8;
}
static inline intptr_t mew_rule_short_offset(uint64_t rule)
{
	return (int16_t)(uint16_t)(rule >> 8);
}
static inline unsigned mew_rule_register(uint64_t rule)
{
	return (unsigned)(rule >> 24 & 31);
}
/* Of MEW_RULE_JUMP: 0 the CFA, 1 rsp, 2 rip, 3 rbp. */
static inline unsigned mew_rule_jump_register(uint64_t rule, unsigned which)
{
	return (unsigned)(rule >> (8 + 4 * which) & 15);
}
static inline intptr_t mew_rule_load_add(uint64_t rule)
{
	return (int8_t)(uint8_t)(rule >> 24);
}
static inline intptr_t mew_rule_bp_offset(uint64_t rule)
{
	return (intptr_t)(int16_t)(uint16_t)(rule >> 32) * 8;
}
static inline intptr_t mew_rule_bx_offset(uint64_t rule)
{
	return (intptr_t)(int16_t)(uint16_t)(rule >> 48) * 8;
}

#endif
