/*
 * fx_aarch64.c - a program of aarch64 without a C library that stops in code of many shapes and prints registers, stack and
 * the calls that lead there. Test fixture, built and run by fx_aarch64.sh, whose output is fx_aarch64.inc.
 */

typedef unsigned long word;
struct context { /* as the kernel writes it behind 128 bytes of siginfo; 184 bytes precede the registers */
	word unused[23], x[31], sp, pc;
};
struct action {
	void (*handler)(int, void *, struct context *);
	word flags;
	void (*restorer)(void);
	word mask;
};

#define NOINLINE __attribute__((noinline))
enum { SYS_WRITE = 64, SYS_EXIT = 93, SYS_KILL = 129, SYS_SIGACTION = 134, SYS_GETPID = 172, SIGUSR1 = 10, SIGTRAP = 5 };

static word expected[64]; /* outermost first */
static unsigned nexpected;
static const char *name;
static int in_assembly; /* x9 has the return address */
static word stack_hi;
static volatile word sink;

#define NOTE() (expected[nexpected++] = (word)__builtin_return_address(0))
#define FORGET() ((void)nexpected--)

static inline __attribute__((always_inline)) long call(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
		      x3 __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

static void text(const char *s)
{
	long n = 0;

	while (s[n] != 0)
		n++;
	call(SYS_WRITE, 1, (long)s, n, 0);
}

static void number(word value)
{
	char digits[32];
	int at = 31;

	digits[at] = 0;
	digits[--at] = ' ';
	digits[--at] = ',';
	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value != 0);
	digits[--at] = 'x';
	digits[--at] = '0';
	text(digits + at);
}

/* name, pc, sp, x29, x30, words of the stack up to its end, words; calls, calls */
static void on_trap(int signal, void *info, struct context *c)
{
	word n = (stack_hi - c->sp) / 8;

	(void)signal;
	(void)info;
	text("\t{ \"");
	text(name);
	text("\", ");
	number(c->pc);
	number(c->sp);
	number(c->x[29]);
	number(c->x[30]);
	number(n);
	text("(const uint64_t[]){ ");
	for (word i = 0; i < n; i++)
		number(((const word *)c->sp)[i]);
	text("},\n\t  ");
	number(nexpected + (unsigned)in_assembly);
	text("(const uint64_t[]){ ");
	if (in_assembly)
		number(c->x[9]);
	for (unsigned i = nexpected; i-- > 0;)
		number(expected[i]);
	text("} },\n");
	c->pc += 4;
}

NOINLINE static void here(void)
{
	NOTE();
	__asm__ volatile("brk #0" ::: "memory");
	FORGET();
	sink = 1;
}

/* A leaf; a frame that is built in steps, as in the C library: stopped after each; code without rules, with and without a record. */
__asm__(".text\n"
	"leaf: .cfi_startproc\n\tmov x9, x30\n\tbrk #0\n\tret\n\t.cfi_endproc\n"
	"steps: .cfi_startproc\n\tmov x9, x30\n\t"
	"sub sp, sp, #96\n\t.cfi_def_cfa_offset 96\n\tbrk #0\n\t"
	"stp x19, x20, [sp, #16]\n\t.cfi_offset 19, -80\n\t.cfi_offset 20, -72\n\tbrk #0\n\t"
	"stp x29, x30, [sp, #80]\n\t.cfi_offset 29, -16\n\t.cfi_offset 30, -8\n\tmov x30, #0\n\tmov x29, #12345\n\tbrk #0\n\t"
	"ldp x29, x30, [sp, #80]\n\t.cfi_restore 29\n\t.cfi_restore 30\n\tbrk #0\n\t"
	"add sp, sp, #96\n\t.cfi_def_cfa_offset 0\n\tbrk #0\n\tret\n\t.cfi_endproc\n"
	"bare_leaf:\n\tmov x9, x30\n\tbrk #0\n\tret\n"
	"bare_frame:\n\tstp x29, x30, [sp, #-64]!\n\tmov x29, sp\n\tblr x0\n\tldp x29, x30, [sp], #64\n\tret\n"
	"restorer: .cfi_startproc\n\t.cfi_signal_frame\n\tnop\n"
	"restore: mov x8, #139\n\tsvc #0\n\t.cfi_endproc\n");
extern void leaf(void), steps(void), bare_leaf(void), bare_frame(void (*call)(void)), restore(void);

NOINLINE static void assembly(void (*body)(void))
{
	NOTE();
	in_assembly = 1;
	body();
	in_assembly = 0;
	FORGET();
	sink = 2;
}

NOINLINE static word deep(word n, void (*body)(void))
{
	volatile word frame[9];

	NOTE();
	frame[n % 9] = n;
	if (n == 0)
		body();
	else
		frame[n % 9] += deep(n - 1, body);
	FORGET();
	return frame[n % 9] + n;
}

/* The stack pointer is not where it was: the frame is found by x29. */
NOINLINE static word grown(word n)
{
	volatile char *room = __builtin_alloca(n * 16);

	NOTE();
	room[n] = (char)n;
	here();
	FORGET();
	return (word)room[n];
}

static void grow(void)
{
	NOTE();
	sink = grown(5);
	FORGET();
}

NOINLINE static void through_bare_frame(void)
{
	NOTE();
	bare_frame(here); /* its return address here is noted by nobody; see fx_aarch64.sh */
	FORGET();
	sink = 3;
}

static void on_signal(int signal, void *info, struct context *c)
{
	(void)signal;
	(void)info;
	expected[nexpected++] = c->pc;
	NOTE();
	sink = deep(1, here);
	FORGET();
	FORGET();
}

NOINLINE static void raise_here(void)
{
	NOTE();
	call(SYS_KILL, call(SYS_GETPID, 0, 0, 0, 0), SIGUSR1, 0, 0);
	FORGET();
	sink = 4;
}

__attribute__((used)) static void run(word sp)
{
	static struct action trap = { on_trap, 0x44000004, restore, 0 }, usr1 = { on_signal, 0x44000004, restore, 0 };

	stack_hi = sp;
	NOTE();
	call(SYS_SIGACTION, SIGTRAP, (long)&trap, 0, 8);
	call(SYS_SIGACTION, SIGUSR1, (long)&usr1, 0, 8);
	name = "deep";
	sink = deep(3, here);
	name = "alloca";
	sink = deep(1, grow);
	name = "leaf";
	assembly(leaf);
	name = "steps";
	assembly(steps);
	name = "leaf without rules";
	assembly(bare_leaf);
	name = "frame without rules";
	through_bare_frame();
	name = "signal";
	sink = deep(1, raise_here);
	call(SYS_EXIT, 0, 0, 0, 0);
}

__asm__(".text\n.globl _start\n_start: .cfi_startproc\n\t.cfi_undefined 30\n\tmov x29, #0\n\tmov x30, #0\n\t"
	"mov x0, sp\n\tbl run\n\tbrk #1\n\t.cfi_endproc\n");
