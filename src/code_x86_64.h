/*
 * code_x86_64.h - where one instruction of x86-64 ends, and what of it depends on the place where it stands.
 * Layer L1. Any thread; pure. Tested against a disassembler by tests/code.sh.
 */
#ifndef MEW_CODE_X86_64_H
#define MEW_CODE_X86_64_H

#include "base.h"

#define MEW_CODE_BYTES 15u /* of the longest instruction */

enum mew_code_kind {
	MEW_CODE_PLAIN,    /* means the same anywhere */
	MEW_CODE_RELATIVE, /* has a 32-bit displacement from its end: an operand in memory */
	MEW_CODE_CALL,     /* the next four: a displacement from its end, to code */
	MEW_CODE_JUMP,
	MEW_CODE_BRANCH,   /* conditional */
	MEW_CODE_LOOP,     /* conditional, by rcx; 8 bits only */
	MEW_CODE_END       /* what follows is not run after it: ret, an indirect jump, a trap */
};

struct mew_code {
	unsigned bytes;
	enum mew_code_kind kind;
	unsigned at, width;   /* offset and bytes (1, 4) of the displacement; width 0: none */
	bool prefixed;         /* there are prefixes in front of it */
	bool is_padding;       /* a nop or int3, as compilers put between functions */
	bool is_indirect_call; /* by a register or memory operand: it returns to where it stands, whatever its kind */
};

/*
 * Read one instruction of 64-bit mode.
 *
 * left     bytes there are at `code`
 * Returns  false when it is none, is cut, or is one of the few that are not known here
 */
bool mew_code_read(const unsigned char *code, size_t left, struct mew_code *out);

/* Where a call, jump or branch leads, for code that runs at `address`. */
uintptr_t mew_code_target(const struct mew_code *c, const unsigned char *code, uintptr_t address);

#endif
