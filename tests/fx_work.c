/*
 * fx_work.c - code of every shape that a stack walk has to leave: the workload that oracle.c single-steps.
 * Test fixture. Compiled over compilers, levels and frame pointers; nothing here is measured.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fx_shapes.h"
#include "fx_work.h"

static volatile long sink;
static jmp_buf way_out;

NOINLINE static long leaf(long a, long b)
{
	return a * 3 + b;
}

/* A stack realigned to 64 bytes: the frame is found by way of a register or a saved word. */
NOINLINE static double realigned(int n)
{
	double v[8] __attribute__((aligned(64)));
	char *p = __builtin_alloca((size_t)n * 16 + 32);

	for (int i = 0; i < 8; i++)
		v[i] = sin(n + i) * exp(-i);
	memset(p, n, (size_t)n);
	return v[n & 7] + p[n - 1];
}

/* Realigned, with arguments on the stack, and left by a jump to another function. */
NOINLINE static long realigned_tail(long a, long b, long c, long d, long e, long f, long g, long h)
{
	volatile long v[8] __attribute__((aligned(64)));

	for (long i = 0; i < 8; i++)
		v[i] = leaf(a + b, i) + c + d;
	return many_registers(v[a & 7] + e + f, v[b & 7] + g + h);
}

/*
 * As hand-written cryptography does it: the old rsp is kept in rax, parked in the realigned frame while other code is
 * called, and fetched into rsi; the second keeps it in r9 all the way.
 */
__asm__(".text\n"
	"parked:\n\t.cfi_startproc\n\t"
	"mov %rsp, %rax\n\t.cfi_def_cfa_register %rax\n\t"
	"push %rbx\n\t.cfi_offset %rbx, -16\n\t"
	"push %rbp\n\t.cfi_offset %rbp, -24\n\t"
	"sub $48, %rsp\n\tand $-32, %rsp\n\t"
	"mov %rax, 40(%rsp)\n\t.cfi_escape 0x0f, 0x05, 0x77, 0x28, 0x06, 0x23, 0x08\n\t"
	"xor %ebx, %ebx\n\txor %ebp, %ebp\n\tcall *%rdi\n\t"
	"mov 40(%rsp), %rsi\n\t.cfi_def_cfa %rsi, 8\n\t"
	"mov -16(%rsi), %rbp\n\t.cfi_restore %rbp\n\t"
	"mov -8(%rsi), %rbx\n\t.cfi_restore %rbx\n\t"
	"lea (%rsi), %rsp\n\t.cfi_def_cfa_register %rsp\n\t"
	"ret\n\t.cfi_endproc\n"
	"kept:\n\t.cfi_startproc\n\t"
	"mov %rsp, %r9\n\t.cfi_def_cfa_register %r9\n\t"
	"sub $72, %rsp\n\tmovq $0, (%rsp)\n\tlea 1(%rdi), %rax\n\t"
	"mov %r9, %rsp\n\t.cfi_def_cfa_register %rsp\n\t"
	"ret\n\t.cfi_endproc\n");
extern void parked(void (*call)(void));
extern long kept(long n);

NOINLINE static void in_parked(void)
{
	sink = kept(many_registers(3, 4));
}

NOINLINE static long tail(long n)
{
	return leaf(n, (long)strlen("tail"));
}

NOINLINE static long even(long n);
NOINLINE static long odd(long n)
{
	return n == 0 ? 0 : 1 + even(n - 1) * 2;
}
NOINLINE static long even(long n)
{
	return n == 0 ? 1 : 1 + odd(n - 1) * 2;
}

__attribute__((format(printf, 1, 2), noinline)) static long variadic(const char *format, ...)
{
	char text[128];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	return n + text[1];
}

NOINLINE static struct fx_big by_value(long n)
{
	struct fx_big b = { { n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7 } };

	return b;
}

/* The call is the last instruction: its return address belongs to whatever comes next. */
__attribute__((noreturn, noinline)) static void leave(long n)
{
	sink = n;
	longjmp(way_out, 1);
}
__attribute__((noreturn, noinline)) static void leave_through(long n)
{
	leave(leaf(n, 2));
}

NOINLINE static long switched(int n)
{
	switch (n) {
	case 0: return leaf(1, 2);
	case 1: return leaf(3, 4) + leaf(5, 6);
	case 2: return many_registers(7, 8);
	case 3: return tail(9);
	case 4: return even(3);
	default: return odd(2);
	}
}

static int ascending(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x - *y;
}

NOINLINE static void use_library(void)
{
	volatile double sum = strtod("3.14159265358979", NULL);
	struct timespec now;
	char text[256];
	int v[12];

	for (int i = 0; i < 12; i++)
		v[i] = (i * 7919) % 101;
	qsort(v, 12, sizeof v[0], ascending);
	(void)snprintf(text, sizeof text, "%d %s %.9g %p", v[3], "hello", sqrt(v[5] + 2.0), (void *)text);
	for (size_t i = 1; i < 5; i++) {
		char *p = malloc(i * 3000), *q = calloc(1, i * 77), *longer = realloc(p, i * 9000);

		if (longer != NULL && q != NULL)
			memmove(longer, q, 64);
		free(q);
		free(longer != NULL ? longer : p);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	sum += (double)getppid() + (double)time(NULL);
	sink = (long)sum;
}

volatile sig_atomic_t fx_signal_entered;

static void on_signal(int number)
{
	fx_signal_entered = 1;
	fx_start_steps(); /* the kernel stopped them when it came here */
	sink = deep(3, number) + (long)realigned(number);
}

NOINLINE static void use_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal }, before;

	if (sigaction(SIGUSR1, &action, &before) != 0)
		return;
#ifdef CALLS_ALONE /* not every C library can be stepped through raise(): it may block all signals there */
	(void)kill(getpid(), SIGUSR1);
#else
	(void)raise(SIGUSR1);
#endif
	(void)sigaction(SIGUSR1, &before, NULL);
}

void fx_work(void)
{
	static long (*const table[])(long, long) = { leaf, many_registers, deep };
	volatile double sum = 0;

	for (long i = 0; i < 3; i++)
		sink = table[i](i + 4, 7);
	for (int i = 0; i < 6; i++)
		sink = switched(i) + tail(i) + realigned_tail(i, 1, 2, 3, 4, 5, 6, 7);
	for (int i = 0; i < 3; i++)
		sum += realigned(i * 11 + 3);
	parked(in_parked);
	sink = variadic("%d %ld %s", 3, 4L, "five") + by_value(5).word[6];
	if (setjmp(way_out) == 0)
		leave_through(3);
	use_library();
	use_signal();
	sink = (long)sum;
}
