/*
 * t_code.c - instructions of x86-64 at the end of memory: their length is found without a look at what follows, and one
 * that is cut is refused. Test program; a disassembler judges the rest (record_window.sh).
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "code_x86_64.h"

#define CODE(text, what) { text, sizeof(text) - 1, what }

static const struct {
	const char *bytes;
	size_t n;
	enum mew_code_kind kind;
} known[] = {
	CODE("\x90", MEW_CODE_PLAIN),                                 /* nop */
	CODE("\xc3", MEW_CODE_END),                                   /* ret */
	CODE("\xcc", MEW_CODE_END),                                   /* int3 */
	CODE("\x5d", MEW_CODE_PLAIN),                                 /* pop rbp */
	CODE("\x41\x5f", MEW_CODE_PLAIN),                             /* pop r15 */
	CODE("\xeb\x10", MEW_CODE_JUMP),
	CODE("\x74\x10", MEW_CODE_BRANCH),
	CODE("\xe3\x10", MEW_CODE_LOOP),                              /* jrcxz */
	CODE("\xe8\1\2\3\4", MEW_CODE_CALL),
	CODE("\xe9\1\2\3\4", MEW_CODE_JUMP),
	CODE("\x0f\x84\1\2\3\4", MEW_CODE_BRANCH),
	CODE("\x0f\x0b", MEW_CODE_END),                              /* ud2 */
	CODE("\xff\xd0", MEW_CODE_PLAIN),                            /* call rax */
	CODE("\xff\xe0", MEW_CODE_END),                              /* jmp rax */
	CODE("\xff\x25\1\2\3\4", MEW_CODE_END),                    /* jmp in memory */
	CODE("\xf7\xd8", MEW_CODE_PLAIN),                            /* neg eax */
	CODE("\xf7\xc0\1\2\3\4", MEW_CODE_PLAIN),                  /* test eax, 4 bytes */
	CODE("\xf6\x45\x08\x01", MEW_CODE_PLAIN),                    /* test [rbp + 8], 1 byte */
	CODE("\x66\xf7\xc0\1\2", MEW_CODE_PLAIN),                   /* test ax, 2 bytes */
	CODE("\xc7\x45\xfc\1\2\3\4", MEW_CODE_PLAIN),              /* mov [rbp - 4], 4 bytes */
	CODE("\x8f\x00", MEW_CODE_PLAIN),                            /* pop [rax] */
	CODE("\xb8\1\2\3\4", MEW_CODE_PLAIN),                       /* mov eax, 4 bytes */
	CODE("\x48\xb8\1\2\3\4\5\6\7\10", MEW_CODE_PLAIN),        /* mov rax, 8 bytes */
	CODE("\x48\x8b\x04\x24", MEW_CODE_PLAIN),                    /* mov rax, [rsp] */
	CODE("\x48\x8d\x05\1\2\3\4", MEW_CODE_RELATIVE),           /* lea rax, [rip + 4 bytes] */
	CODE("\xf3\x0f\x1e\xfa", MEW_CODE_PLAIN),                    /* endbr64 */
	CODE("\xc5\xf8\x77", MEW_CODE_PLAIN),                        /* vzeroupper */
	CODE("\xc5\xfd\x6f\x07", MEW_CODE_PLAIN),                    /* vmovdqa ymm0, [rdi] */
	CODE("\x62\xf1\xfd\x48\x6f\x07", MEW_CODE_PLAIN),            /* vmovdqa64 zmm0, [rdi] */
};

static unsigned char *end; /* of memory that can be read */

static int set_up(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (memory == MAP_FAILED)
		return -1;
	end = memory + page;
	return mprotect(end, page, PROT_NONE);
}

/* Who reads the code of a function does not know where the memory behind it ends. */
static void t_nothing_behind_is_read(void **state)
{
	struct mew_code c;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(known); i++) {
		unsigned char *code = end - known[i].n;

		memcpy(code, known[i].bytes, known[i].n);
		assert_true(mew_code_read(code, MEW_CODE_BYTES, &c));
		assert_int_equal(c.bytes, known[i].n);
		assert_int_equal(c.kind, known[i].kind);
	}
}

static void t_a_cut_instruction_is_none(void **state)
{
	struct mew_code c;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(known); i++) {
		for (size_t n = 0; n < known[i].n; n++) {
			memcpy(end - n, known[i].bytes, n);
			assert_false(mew_code_read(end - n, n, &c));
		}
	}
}

/* Their length follows from the byte behind the opcode: read as the instruction that shares it, it would be wrong. */
static void t_others_of_an_opcode_are_refused(void **state)
{
	static const unsigned char others[][10] = {
		{ 0x8f, 0xe8, 0x78, 0xc0, 0xc1, 1 },    /* XOP: vprotb, behind the opcode of pop */
		{ 0xc7, 0xf8, 1, 2, 3, 4 },             /* xbegin, behind that of mov */
	};
	struct mew_code c;

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(others); i++) {
		memcpy(end - sizeof others[i], others[i], sizeof others[i]);
		assert_false(mew_code_read(end - sizeof others[i], sizeof others[i], &c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_nothing_behind_is_read),
		cmocka_unit_test(t_a_cut_instruction_is_none),
		cmocka_unit_test(t_others_of_an_opcode_are_refused),
	};

	return cmocka_run_group_tests_name("code", tests, set_up, NULL);
}
