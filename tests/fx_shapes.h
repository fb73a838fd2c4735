/*
 * fx_shapes.h - functions whose frames a stack walk has to leave, as every workload has them: all saved registers taken,
 * and a recursion with words on the stack. Whoever includes it has its own leaf().
 * Test fixture of fx_work.c and fx_async.c, for any machine.
 */
#ifndef FX_SHAPES_H
#define FX_SHAPES_H

#define NOINLINE __attribute__((noinline))

NOINLINE static long leaf(long a, long b);

NOINLINE static long many_registers(long a, long b)
{
	long c = leaf(a, b), d = leaf(b, c), e = leaf(c, d), f = leaf(d, e), g = leaf(e, f);

	return leaf(a ^ c, leaf(b ^ d, leaf(e ^ f, g))) + a * b - c * d + e * f;
}

NOINLINE static long deep(long n, long salt)
{
	volatile long frame[5];

	frame[n % 5] = salt;
	return n == 0 ? many_registers(salt, n) : deep(n - 1, salt + n) + frame[n % 5];
}

#endif
