/*
 * code_x86_64.c - see code_x86_64.h: lengths of instructions by the tables of the processor's manual (volume 2,
 * appendix A). Layer L1. Any thread; pure.
 */
#include "config.h"

#include "code_x86_64.h"

#include <string.h>

/*
 * One letter for each opcode:
 *   .  alone               m  an operand (ModRM)      b  a byte behind it       z  4 bytes, 2 with 0x66
 *   n  operand and byte    y  operand and z           w  2 bytes                e  3 bytes
 *   q  8 bytes with REX.W, else z                     o  an address of 8 bytes  -  none of 64-bit mode
 *   p  prefix              r  REX                     x  another table          g  by the operand's register field
 */
static const char one_byte[] =
	"mmmmbz--" "mmmmbz-x" "mmmmbz--" "mmmmbz--" /* 00 */
	"mmmmbzp-" "mmmmbzp-" "mmmmbzp-" "mmmmbzp-" /* 20 */
	"rrrrrrrr" "rrrrrrrr" "........" "........" /* 40 */
	"--xmpppp" "zybn...." "bbbbbbbb" "bbbbbbbb" /* 60 */
	"ny-nmmmm" "mmmmmmmm" "........" "..-....." /* 80 */
	"oooo...." "bz......" "bbbbbbbb" "qqqqqqqq" /* a0 */
	"nnw.xxny" "e.w..b-." "mmmm---." "mmmmmmmm" /* c0 */
	"bbbbbbbb" "zz-b...." "p.pp..gg" "......mm"; /* e0 */

/* Behind 0f. */
static const char two_bytes[] =
	"mmmm-..." "..-.-m.n" "mmmmmmmm" "mmmmmmmm" /* 00 */
	"mmmm----" "mmmmmmmm" "......-." "x-x-----" /* 20 */
	"mmmmmmmm" "mmmmmmmm" "mmmmmmmm" "mmmmmmmm" /* 40 */
	"mmmmmmmm" "mmmmmmmm" "nnnnmmm." "mm--mmmm" /* 60 */
	"zzzzzzzz" "zzzzzzzz" "mmmmmmmm" "mmmmmmmm" /* 80 */
	"...mnm--" "...mnmmm" "mmmmmmmm" "mmnmmmmm" /* a0 */
	"mmnmnnnm" "........" "mmmmmmmm" "mmmmmmmm" /* c0 */
	"mmmmmmmm" "mmmmmmmm" "mmmmmmmm" "mmmmmmmm"; /* e0 */

struct reader {
	const unsigned char *code;
	size_t left;
	struct mew_code *out;
	unsigned at;      /* bytes read */
	bool short_data;  /* 0x66: immediates of two bytes */
	bool short_address;
	unsigned repeat;  /* 0xf2, 0xf3 */
	unsigned rex;
	unsigned map;     /* 1: 0f, 2: 0f 38, 3: 0f 3a; 0: none of them */
	bool is_vector;   /* VEX or EVEX */
};

static bool take(struct reader *r, unsigned n)
{
	if (r->left - r->at < n || r->at + n > MEW_CODE_BYTES)
		return false;
	r->at += n;
	return true;
}

/* The ModRM behind an opcode that has one, else 0: what follows a shorter instruction may lie on no page. */
static unsigned operand_of(const struct reader *r, unsigned opcode)
{
	bool has_operand = strchr("mnyg", one_byte[opcode]) != NULL;

	return has_operand && r->at < r->left ? r->code[r->at] : 0;
}

/* ModRM, SIB and displacement. */
static bool take_operand(struct reader *r)
{
	unsigned mod, rm, base = 8;

	if (!take(r, 1))
		return false;
	mod = r->code[r->at - 1] >> 6;
	rm = r->code[r->at - 1] & 7u;
	if (mod == 3)
		return true;
	if (rm == 4) {
		if (!take(r, 1))
			return false;
		base = r->code[r->at - 1] & 7u;
	}
	if (mod == 0 && rm == 5) {
		r->out->kind = MEW_CODE_RELATIVE;
		r->out->at = r->at;
		r->out->width = 4;
	}
	if (mod == 1)
		return take(r, 1);
	return mod == 2 || (mod == 0 && (rm == 5 || base == 5)) ? take(r, 4) : true;
}

/* Test alone has an immediate in the groups f6 and f7. */
static bool take_group(struct reader *r, unsigned opcode)
{
	bool is_test = (operand_of(r, opcode) >> 3 & 7) < 2;

	return take_operand(r) &&
	       (!is_test || take(r, opcode == 0xf6 ? 1 : r->short_data && (r->rex & 8) == 0 ? 2 : 4));
}

static bool take_by(struct reader *r, char letter, unsigned opcode)
{
	unsigned z = r->short_data && (r->rex & 8) == 0 ? 2 : 4;

	switch (letter) {
	case '.': return true;
	case 'm': return take_operand(r);
	case 'b': return take(r, 1);
	case 'z': return take(r, z);
	case 'n': return take_operand(r) && take(r, 1);
	case 'y': return take_operand(r) && take(r, z);
	case 'w': return take(r, 2);
	case 'e': return take(r, 3);
	case 'q': return take(r, (r->rex & 8) != 0 ? 8 : z);
	case 'o': return take(r, r->short_address ? 4 : 8);
	case 'g': return take_group(r, opcode);
	default: return false;
	}
}

/* --- what it does to the place where the program goes on ---------------------------------------------------------- */

static void leads(struct reader *r, enum mew_code_kind kind, unsigned width)
{
	r->out->kind = kind;
	r->out->width = width;
	r->out->at = r->at - width;
}

static void judge_one_byte(struct reader *r, unsigned opcode, unsigned operand)
{
	if (opcode >= 0x70 && opcode <= 0x7f)
		leads(r, MEW_CODE_BRANCH, 1);
	else if (opcode >= 0xe0 && opcode <= 0xe3)
		leads(r, MEW_CODE_LOOP, 1);
	else if (opcode == 0xe8 || opcode == 0xe9)
		leads(r, opcode == 0xe8 ? MEW_CODE_CALL : MEW_CODE_JUMP, 4);
	else if (opcode == 0xeb)
		leads(r, MEW_CODE_JUMP, 1);
	else if (opcode == 0xc2 || opcode == 0xc3 || opcode == 0xca || opcode == 0xcb || opcode == 0xcc ||
		 opcode == 0xf4)
		r->out->kind = MEW_CODE_END;
	else if (opcode == 0xff && (operand >> 3 & 7) >= 4 && (operand >> 3 & 7) <= 5)
		r->out->kind = MEW_CODE_END;
	r->out->is_indirect_call = opcode == 0xff && (operand >> 3 & 7) >= 2 && (operand >> 3 & 7) <= 3;
	r->out->is_padding = opcode == 0xcc || (opcode == 0x90 && r->repeat == 0);
}

static void judge_two_bytes(struct reader *r, unsigned opcode)
{
	if (opcode >= 0x80 && opcode <= 0x8f)
		leads(r, MEW_CODE_BRANCH, 4);
	else if (opcode == 0x0b)
		r->out->kind = MEW_CODE_END;
	r->out->is_padding = opcode == 0x1f;
}

/* --- the opcodes -------------------------------------------------------------------------------------------------- */

static bool read_two_bytes(struct reader *r)
{
	unsigned opcode;

	if (!take(r, 1))
		return false;
	opcode = r->code[r->at - 1];
	if (opcode == 0x38 || opcode == 0x3a)
		return take(r, 1) && take_operand(r) && (opcode == 0x38 || take(r, 1));
	if (opcode == 0x78 && (r->short_data || r->repeat != 0))
		return false; /* of one maker's processors: two immediates */
	if (opcode >= 0x80 && opcode <= 0x8f) {
		if (!take(r, 4))
			return false;
	} else if (!take_by(r, two_bytes[opcode], opcode)) {
		return false;
	}
	judge_two_bytes(r, opcode);
	return true;
}

/* VEX and EVEX: the prefix says which table; all have an operand but vzeroupper. */
static bool read_vector(struct reader *r, unsigned first)
{
	unsigned payload = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3, opcode;

	if (r->rex != 0 || r->short_data || r->repeat != 0 || !take(r, payload) || !take(r, 1))
		return false;
	r->map = first == 0xc5 ? 1 : r->code[r->at - payload - 1] & (first == 0xc4 ? 0x1fu : 7u);
	opcode = r->code[r->at - 1];
	if (r->map == 1 && opcode == 0x77 && first != 0x62)
		return true;
	if (r->map < 1 || r->map > 6 || r->map == 4 || !take_operand(r))
		return false;
	if (r->map == 3 || (r->map == 1 && two_bytes[opcode] == 'n'))
		return take(r, 1);
	return true;
}

static bool read_opcode(struct reader *r)
{
	unsigned opcode, operand;

	if (!take(r, 1))
		return false;
	opcode = r->code[r->at - 1];
	if (opcode == 0x0f)
		return read_two_bytes(r);
	if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62)
		return read_vector(r, opcode);
	operand = operand_of(r, opcode);
	if (opcode == 0x8f && (operand & 0x1f) >= 8)
		return false; /* XOP */
	if (opcode == 0xc7 && operand == 0xf8)
		return false; /* xbegin: a displacement to code behind an operand */
	if (opcode == 0xe8 || opcode == 0xe9) {
		if (!take(r, 4)) /* also with 0x66, as most processors have it */
			return false;
	} else if (!take_by(r, one_byte[opcode], opcode)) {
		return false;
	}
	judge_one_byte(r, opcode, operand);
	return true;
}

static void take_prefixes(struct reader *r)
{
	for (; r->at < r->left && r->at < MEW_CODE_BYTES && one_byte[r->code[r->at]] == 'p'; r->at++) {
		r->short_data = r->short_data || r->code[r->at] == 0x66;
		r->short_address = r->short_address || r->code[r->at] == 0x67;
		if (r->code[r->at] == 0xf2 || r->code[r->at] == 0xf3)
			r->repeat = r->code[r->at];
	}
	if (r->at < r->left && one_byte[r->code[r->at]] == 'r')
		r->rex = r->code[r->at++];
}

bool mew_code_read(const unsigned char *code, size_t left, struct mew_code *out)
{
	struct reader r = { .code = code, .left = left, .out = out };

	*out = (struct mew_code){ .kind = MEW_CODE_PLAIN };
	take_prefixes(&r);
	out->prefixed = r.at > 0;
	if (!read_opcode(&r))
		return false;
	out->bytes = r.at;
	return true;
}

uintptr_t mew_code_target(const struct mew_code *c, const unsigned char *code, uintptr_t address)
{
	int32_t far;
	int8_t near;

	if (c->width == 1) {
		memcpy(&near, code + c->at, sizeof near);
		return address + c->bytes + (uintptr_t)(intptr_t)near;
	}
	memcpy(&far, code + c->at, sizeof far);
	return address + c->bytes + (uintptr_t)(intptr_t)far;
}
