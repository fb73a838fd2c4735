/*
 * duo.c - see duo.h. The switch is swapcontext(), which also keeps the signal mask of each.
 * Layer L1. One thread; a switch needs no heap and no lock.
 */
#include "config.h"

#include "duo.h"

#include "os.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)8 << 20)     /* where there is no limit */
#define STACK_MOST_BYTES ((size_t)1 << 30)

struct mew_duo {
	char *stacks; /* both, each with a page below it that cannot be touched */
	size_t stack_bytes, guard_bytes;
	ucontext_t home, side[2];
	int running;
	bool ended[2];
	void (*run)(void *);
	void *data[2];
};

static size_t stack_bytes(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur > STACK_MOST_BYTES)
		return STACK_BYTES;
	return limit.rlim_cur < STACK_BYTES / 8 ? STACK_BYTES / 8 : (size_t)limit.rlim_cur & ~(size_t)0xffff;
}

struct mew_duo *mew_duo_new(void)
{
	struct mew_duo *d = calloc(1, sizeof *d);

	if (d == NULL)
		return NULL;
	d->stack_bytes = stack_bytes();
	d->guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
	d->stacks = mew_os_reserve(2 * (d->stack_bytes + d->guard_bytes));
	if (d->stacks != NULL && mprotect(d->stacks, d->guard_bytes, PROT_NONE) == 0 &&
	    mprotect(d->stacks + d->guard_bytes + d->stack_bytes, d->guard_bytes, PROT_NONE) == 0)
		return d;
	mew_duo_free(d);
	errno = ENOMEM;
	return NULL;
}

void mew_duo_free(struct mew_duo *d)
{
	if (d == NULL)
		return;
	mew_os_unmap(d->stacks, 2 * (d->stack_bytes + d->guard_bytes));
	free(d);
}

/* The first frame of either stack. makecontext() hands over ints: the pointer comes in two. */
static void enter(unsigned high, unsigned low, int which)
{
	struct mew_duo *d = (struct mew_duo *)(uintptr_t)((uint64_t)high << 32 | low); // NOLINT(performance-no-int-to-ptr)

	d->run(d->data[which]);
	d->ended[which] = true;
	if (d->ended[!which]) {
		(void)setcontext(&d->home);
	} else {
		d->running = !which;
		(void)setcontext(&d->side[!which]);
	}
	abort(); /* it returns for a context that is none, and there is no frame to return to */
}

static void prepare(struct mew_duo *d, int which)
{
	ucontext_t *to = &d->side[which];
	uint64_t address = (uintptr_t)d;

	(void)getcontext(to); /* fails never on Linux: it reads registers and the mask */
	to->uc_stack.ss_sp = d->stacks + (size_t)which * (d->stack_bytes + d->guard_bytes) + d->guard_bytes;
	to->uc_stack.ss_size = d->stack_bytes;
	to->uc_link = NULL;
	makecontext(to, (void (*)(void))enter, 3, (unsigned)(address >> 32), (unsigned)address, which);
}

void mew_duo_run(struct mew_duo *d, void (*run)(void *), void *const data[2])
{
	d->run = run;
	for (int i = 0; i < 2; i++) {
		d->data[i] = data[i];
		d->ended[i] = false;
		prepare(d, i);
	}
	d->running = 0;
	(void)swapcontext(&d->home, &d->side[0]);
}

bool mew_duo_yield(struct mew_duo *d)
{
	int self = d->running;

	if (d->ended[!self])
		return false;
	d->running = !self;
	(void)swapcontext(&d->side[self], &d->side[!self]);
	return true;
}
