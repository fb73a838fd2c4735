/*
 * fx_sym_code.c - code whose names, files, lines and inlining are known: compiled with -g -O2 by t_symbolise.
 * A fixture: no layer. Words in capitals after "line:" mark lines that the test looks up by text, not by number.
 */
#include <stddef.h>

enum { FX_FIRST, FX_SECOND, FX_STATIC, FX_SLOTS };

const void *fx_pcs[FX_SLOTS]; /* return addresses: each lies just behind a marked call */
int fx_slots = FX_SLOTS;
int fx_value;

__attribute__((noinline)) void fx_mark(int slot);
__attribute__((noinline)) int fx_first(int x);
__attribute__((noinline)) int fx_second(int x);
void fx_run(void);

void fx_mark(int slot)
{
	fx_pcs[slot] = __builtin_return_address(0);
}

static inline __attribute__((always_inline)) int fx_inner(int x, int slot) /* line: INNER */
{
	fx_mark(slot); /* line: INNER_CALL */
	return x * 3 + fx_value;
}

static inline __attribute__((always_inline)) int fx_middle(int x, int slot) /* line: MIDDLE */
{
	return fx_inner(x + 1, slot) ^ fx_value; /* line: MIDDLE_CALL */
}

int fx_first(int x) /* line: FIRST */
{
	fx_value += fx_middle(x, FX_FIRST); /* line: FIRST_CALL */
	return fx_value;
}

int fx_second(int x) /* line: SECOND */
{
	fx_value -= fx_inner(x, FX_SECOND); /* line: SECOND_CALL */
	return fx_value;
}

static __attribute__((noinline)) void fx_static(void) /* line: STATIC */
{
	fx_mark(FX_STATIC); /* line: STATIC_CALL */
	fx_value++;
}

void fx_run(void)
{
	(void)fx_first(1);
	(void)fx_second(2);
	fx_static();
	fx_value++;
}
