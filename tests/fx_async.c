/*
 * fx_async.c - a timer interrupts work of many shapes, and each time the stack is walked twice: by mew's tables and by
 * the compiler's own unwinder. Prints how often they agree.
 * Test program: fx_async WALKS. aarch64.sh runs it on an emulated processor.
 */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "fx_shapes.h"
#include "modules.h"
#include "unwind.h"

#define FRAMES 128
#define SITES 8 /* that are told */
#define HOLD __asm__ volatile("" : : : "memory") /* keeps a call from becoming a jump */

struct stack {
	uintptr_t pcs[FRAMES];
	size_t n;
};

static struct mew_unwind_thread walker;
static volatile unsigned long walks, equal, longer, unmet, cut, different;
static struct site {
	uintptr_t pc;
	size_t at, mew, other;
	enum mew_unwind_stop stop;
} sites[SITES];
static size_t nsites;

/* --- two walks ---------------------------------------------------------------------------------------------------- */

/* Of the compiler's <unwind.h>, behind whose name mew's own is found. */
struct _Unwind_Context;
enum { GO_ON = 0, END_OF_STACK = 5 };
int _Unwind_Backtrace(int (*each)(struct _Unwind_Context *context, void *to), void *to);
uintptr_t _Unwind_GetIP(struct _Unwind_Context *context);

static int add(struct _Unwind_Context *context, void *to)
{
	struct stack *s = to;

	if (s->n == FRAMES)
		return END_OF_STACK;
	s->pcs[s->n++] = _Unwind_GetIP(context);
	return GO_ON;
}

static void note(uintptr_t pc, size_t at, size_t mew, size_t other, enum mew_unwind_stop stop)
{
	for (size_t i = 0; i < nsites; i++)
		if (sites[i].pc == pc)
			return;
	if (nsites < SITES)
		sites[nsites++] = (struct site){ pc, at, mew, other, stop };
}

#ifdef __aarch64__
/* A handler returns by the kernel's code, which the vDSO has; an emulator's lies in no file. This one is in a file. */
__asm__(".text\n.type way_back, %function\nway_back:\n\tmov x8, #139\n\tsvc #0\n.size way_back, .-way_back\n");
extern const char way_back[];
#define IS_WAY_BACK(pc) ((pc) - (uintptr_t)way_back < 8) /* the other unwinder looks before it, where nothing is */
#else
#define IS_WAY_BACK(pc) false
#endif

/* The compiler's unwinder also has the frames of this handler: it is compared from the interrupted place on. */
static void judge(const struct stack *ours, enum mew_unwind_stop stop, const struct stack *all)
{
	size_t first = 0, common = 0, n;

	while (first < all->n && all->pcs[first] != ours->pcs[0])
		first++;
	n = all->n - first;
	while (n > 1 && !mew_modules_is_code(mew_modules_current(), mew_unwind_strip(all->pcs[first + n - 1])))
		n--; /* what is no code called nobody: there it had lost its way */
	while (common < ours->n && common < n && ours->pcs[common] == all->pcs[first + common])
		common++;
	walks++;
	if (common < ours->n && common < n && !IS_WAY_BACK(ours->pcs[0])) {
		different++;
		note(ours->pcs[0], common, ours->n, n, stop);
	} else if (stop != MEW_STOP_END) {
		cut++;
		note(ours->pcs[0], common, ours->n, n, stop);
	} else if (n == 0) {
		unmet++; /* it did not come as far as the interrupted place */
	} else if (ours->n > n) {
		longer++; /* it has no rules for stubs of the linkage table */
	} else if (ours->n < n && !IS_WAY_BACK(ours->pcs[0])) {
		different++; /* the end, it said, and callers were left */
		note(ours->pcs[0], common, ours->n, n, stop);
	} else {
		equal++;
	}
}

static const struct itimerval soon = { .it_value = { 0, 997 } }, never; /* one tick at a time */
static sigjmp_buf out_of_other;
static volatile sig_atomic_t in_other;

/* Where code has no rules the other unwinder reads what it takes for code. */
static void on_fault(int number)
{
	if (in_other)
		siglongjmp(out_of_other, 1);
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

static void on_tick(int number, siginfo_t *info, void *ucontext)
{
	static struct stack ours, all; /* ticks are not nested */
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	int saved = errno;

	(void)number;
	(void)info;
	mew_unwind_from_ucontext(&regs, ucontext);
	ours.n = mew_unwind_walk(&walker, &regs, 0, 0, ours.pcs, FRAMES, &stop);
	all.n = 0;
	if (sigsetjmp(out_of_other, 1) == 0) {
		in_other = 1;
		(void)_Unwind_Backtrace(add, &all);
	}
	in_other = 0;
	judge(&ours, stop, &all);
	(void)setitimer(ITIMER_REAL, &soon, NULL);
	errno = saved;
}

/* --- work --------------------------------------------------------------------------------------------------------- */

static volatile long sink;
static jmp_buf way_out;

NOINLINE static long leaf(long a, long b)
{
	for (long i = 0; i < 20; i++)
		a += b ^ i;
	return a;
}

/* The stack pointer moves: only the frame pointer finds the frame. */
NOINLINE static long grown(size_t n)
{
	volatile char *room = __builtin_alloca(n * 16 + 16);
	volatile long aligned[8] __attribute__((aligned(64)));

	room[n] = (char)n;
	aligned[n & 7] = deep(3, (long)n);
	HOLD;
	return room[n] + aligned[n & 7];
}

NOINLINE static long tail(long n)
{
	return leaf(n, n + 1);
}

NOINLINE static void leave(long n)
{
	sink = deep(n, 1);
	longjmp(way_out, 1);
}

static int ascending(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return leaf(*x, 1) < leaf(*y, 1) ? -1 : 1;
}

NOINLINE static void use_library(void)
{
	char text[256];
	int v[24];

	for (int i = 0; i < 24; i++)
		v[i] = i * 7919 % 101;
	qsort(v, 24, sizeof v[0], ascending);
	(void)snprintf(text, sizeof text, "%d %s %.9g %p", v[3], "hello", strtod("2.5", NULL), (void *)text);
	for (size_t i = 1; i < 5; i++) {
		char *p = malloc(i * 3000), *more = realloc(p, i * 9000);

		if (more != NULL)
			memset(more, 1, i * 9000);
		sink = more != NULL ? more[i] : 0;
		free(more != NULL ? more : p);
	}
}

static void on_signal(int number)
{
	sink = deep(5, number) + grown((size_t)number);
}

NOINLINE static void work(void)
{
	sink = deep(12, 3) + many_registers(4, 5) + tail(6);
	for (size_t i = 0; i < 5; i++)
		sink = grown(i * 3);
	if (setjmp(way_out) == 0)
		leave(6);
	use_library();
	(void)raise(SIGUSR1);
	(void)raise(SIGUSR2); /* on a stack of its own */
}

/* --- handlers ----------------------------------------------------------------------------------------------------- */

#ifdef __aarch64__
static bool handle(int number, void *handler, unsigned long flags)
{
	const struct {
		void *handler;
		unsigned long flags;
		const void *restorer;
		unsigned long mask;
	} action = { handler, flags | 0x04000000, way_back, 0 };

	return syscall(SYS_rt_sigaction, number, &action, NULL, sizeof action.mask) == 0;
}
#else
static bool handle(int number, void *handler, unsigned long flags)
{
	struct sigaction action = { .sa_handler = (void (*)(int))handler, .sa_flags = (int)flags };

	return sigaction(number, &action, NULL) == 0;
}
#endif

/* --- the program -------------------------------------------------------------------------------------------------- */

static bool prepare(void)
{
	static char room[65536];
	const stack_t stack = { .ss_sp = room, .ss_size = sizeof room };
	struct stack first = { .n = 0 };

	(void)_Unwind_Backtrace(add, &first); /* it may load and allocate the first time */
	return mew_modules_renew() == 0 && mew_unwind_thread_init(&walker) == 0 && sigaltstack(&stack, NULL) == 0 &&
	       handle(SIGUSR1, (void *)on_signal, 0) && handle(SIGUSR2, (void *)on_signal, SA_ONSTACK) &&
	       handle(SIGSEGV, (void *)on_fault, SA_NODEFER) && handle(SIGBUS, (void *)on_fault, SA_NODEFER) &&
	       handle(SIGALRM, (void *)on_tick, SA_SIGINFO | SA_RESTART);
}

int main(int argc, char **argv)
{
	unsigned long wanted = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;

	if (!prepare() || setitimer(ITIMER_REAL, &soon, NULL) != 0) {
		perror("fx_async");
		return 2;
	}
	while (walks < wanted)
		work();
	(void)setitimer(ITIMER_REAL, &never, NULL);
	printf("walks %lu equal %lu longer %lu unmet %lu cut %lu different %lu\n", walks, equal, longer, unmet, cut,
	       different);
	for (size_t i = 0; i < nsites; i++)
		printf("at %p: frame %zu of %zu, the other has %zu, stop %d\n", (void *)sites[i].pc, sites[i].at,
		       sites[i].mew, sites[i].other, (int)sites[i].stop);
	return different == 0 && cut * 1000 <= walks && unmet * 100 <= walks && equal * 10 >= walks * 9 ? 0 : 1;
}
