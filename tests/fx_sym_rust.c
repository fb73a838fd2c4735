/*
 * fx_sym_rust.c - functions with the names that rustc gives, in C: compiled without debug information by t_symbols.
 * A fixture: no layer.
 */
enum { FX_HASHED, FX_SPELLED, FX_NEW, FX_SLOTS };

const void *fx_pcs[FX_SLOTS];
int fx_slots = FX_SLOTS;
int fx_value;

__attribute__((noinline)) void fx_mark(int slot);
__attribute__((noinline)) void fx_hashed(void) __asm__("_ZN4core3fmt5write17h0123456789abcdefE");
__attribute__((noinline)) void fx_spelled(void)
	__asm__("_ZN49_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$Drop$GT$4drop17h0123456789abcdefE");
__attribute__((noinline)) void fx_new(void) __asm__("_RNvMCs1234_7mycrateNtB2_5Thing3act");
void fx_run(void);

void fx_mark(int slot)
{
	fx_pcs[slot] = __builtin_return_address(0);
}

void fx_hashed(void)
{
	fx_mark(FX_HASHED);
	fx_value++;
}

void fx_spelled(void)
{
	fx_mark(FX_SPELLED);
	fx_value++;
}

void fx_new(void)
{
	fx_mark(FX_NEW);
	fx_value++;
}

void fx_run(void)
{
	fx_hashed();
	fx_spelled();
	fx_new();
}
