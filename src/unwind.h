/*
 * unwind.h - walk the calling thread's stack: by the compiled tables of the module snapshot, or as unwinder.h was told.
 * Layer L1. Any thread, signal, malloc: no locks, no heap, no system calls, bounded loops, every load checked against
 * the stack.
 */
#ifndef MEW_UNWIND_H
#define MEW_UNWIND_H

#include "base.h"

enum mew_unwind_stop {
	MEW_STOP_END,       /* the outermost frame, or the entry frame that was asked for */
	MEW_STOP_FULL,      /* the buffer is full */
	MEW_STOP_NO_RULE,   /* no unwind row and no frame pointer that can be trusted */
	MEW_STOP_BAD_STACK, /* a load outside the stack, or a frame that does not move up */
	MEW_STOP_UNSUPPORTED, /* a row this unwinder does not know */
	MEW_STOP_SHORT_COPY,  /* of a copied stack: it ends before the walk does */
	MEW_STOPS
};

/* A stack that was copied away: the words of [lo, hi) lie at `words`, and nothing is read from their own place. */
struct mew_unwind_copy {
	uintptr_t lo, hi;
	const void *words; /* borrowed; aligned like lo, to 8 bytes */
};

struct mew_unwind_regs { /* what the rules use from frame to frame; on aarch64 bp is x29 and bx is x30 (cfi.h) */
	uintptr_t ip, sp, bp, bx;
	const void *context; /* borrowed: the ucontext with the leaf's other registers; NULL inside an ordinary call */
	const struct mew_unwind_copy *copy; /* borrowed: walk there; NULL: on the stack itself */
};

struct mew_unwind_trail;
struct mew_unwind_recent;

struct mew_unwind_cache_entry {
	uintptr_t pc;
	uint64_t rule;
};
#define MEW_UNWIND_CACHE 1024

/* Per thread; zero it, then mew_unwind_thread_init(). 16 KiB: lives in mapped memory, not in TLS. */
struct mew_unwind_thread {
	uintptr_t stack_lo, stack_hi;
	uint64_t generation; /* of the snapshot the cache belongs to */
	struct mew_unwind_recent *recent; /* borrowed: walks go by the last one (unwind_recent.h); NULL: each for itself */
	struct mew_unwind_cache_entry cache[MEW_UNWIND_CACHE];
};

/* Learn the calling thread's stack bounds. Returns 0 or -1. Context: the thread itself, outside windows; allocates. */
int mew_unwind_thread_init(struct mew_unwind_thread *t);
/* The same for a thread that is first seen inside malloc. Context: the thread itself, malloc; allocates nothing. */
int mew_unwind_thread_init_inside(struct mew_unwind_thread *t);

/*
 * The bounds of the stack that a walk begins on: the thread's own, the alternate signal stack that the ucontext names,
 * or one of unwind_stacks.h. Those of the copy, where the walk is on one.
 *
 * Returns  false when it is none of them
 */
bool mew_unwind_bounds(const struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t *lo,
		       uintptr_t *hi);

/*
 * Walk from registers.
 *
 * regs      where to start: regs->ip is the leaf (exact); frames above are return addresses
 * entry     stop after the frame whose return address lies in [entry_lo, entry_hi); 0, 0: walk to the end
 * pcs       returned; at most max addresses, leaf first, the entry frame itself left out
 * Returns   number of addresses, at least 1; *stop says how it ended
 */
size_t mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
		       uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop);

/*
 * The words that steered a walk. Whoever finds the same words at the same places, seen from the stack pointer, is on
 * the same stack (unwind_memo.h).
 */
#define MEW_TRAIL_FRAMES 64
struct mew_trail_word {
	uintptr_t at; /* address on the stack; MEW_TRAIL_BP, MEW_TRAIL_BX: the register that the walk began with */
	uintptr_t value;
};
enum { MEW_TRAIL_BP = 1, MEW_TRAIL_BX = 2 };
struct mew_unwind_trail {
	uintptr_t *slots; /* given, room for `max`: slots[i] is the address that pcs[i] was read from, from 1 on */
	bool whole;       /* the walk came to its end, and nothing but these words steered it */
	uint64_t generation;       /* of the snapshot it went by */
	struct mew_trail_word end; /* the return address that ended it; at is 0 where the last frame has none */
	struct mew_trail_word frame[MEW_TRAIL_FRAMES]; /* frame pointers that a canonical frame address came from */
	size_t nframes;
};

/* mew_unwind_walk(), and what it went by. */
size_t mew_unwind_walk_trail(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			     uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			     struct mew_unwind_trail *trail);

/*
 * The ways to walk: each as mew_unwind_walk_trail(), with NULL for no trail. The last two leave no trail that could be
 * relied on.
 */
typedef size_t mew_unwind_fn(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			     uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop,
			     struct mew_unwind_trail *trail);
mew_unwind_fn mew_unwind_by_table;          /* unwind_<machine>.c */
mew_unwind_fn mew_unwind_by_frame_pointers; /* unwind_fp.c */
mew_unwind_fn mew_unwind_by_libunwind;      /* unwind_libunwind.c: locks and system calls of its own */

/* All walks from now on go this way; at start by table. Context: outside windows. */
void mew_unwind_use(mew_unwind_fn *way);

/* May a walk allocate, as only foreign code does? Context: any thread, signal, malloc. */
bool mew_unwind_may_allocate(void);

/* A return address as it was before it was signed (pointer authentication). Context: any thread, signal, malloc. */
static inline uintptr_t mew_unwind_strip(uintptr_t address)
{
#ifdef __aarch64__
	register uintptr_t x30 __asm__("x30") = address;

	__asm__("hint #7" : "+r"(x30)); /* xpaclri, which older processors pass over */
	return x30;
#else
	return address;
#endif
}

/*
 * The caller's own registers, as seen in the function that calls this inline. Stored straight to memory: an output
 * register could be one of those that are read after it.
 */
static inline __attribute__((always_inline)) void mew_unwind_here(struct mew_unwind_regs *r)
{
#ifdef __x86_64__
	__asm__ volatile("lea 0(%%rip), %%rax\n\tmov %%rax, %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2\n\t"
			 "mov %%rbx, %3"
			 : "=m"(r->ip), "=m"(r->sp), "=m"(r->bp), "=m"(r->bx)
			 :
			 : "rax");
	r->context = NULL;
	r->copy = NULL;
#elif defined(__aarch64__)
	__asm__ volatile("adr x9, .\n\tstr x9, %0\n\tmov x9, sp\n\tstr x9, %1\n\tstr x29, %2\n\tstr x30, %3"
			 : "=m"(r->ip), "=m"(r->sp), "=m"(r->bp), "=m"(r->bx)
			 :
			 : "x9");
	r->context = NULL;
	r->copy = NULL;
#else
	*r = (struct mew_unwind_regs){ .ip = (uintptr_t)__builtin_return_address(0),
				       .bp = (uintptr_t)__builtin_frame_address(0) };
#endif
}

/*
 * From the third argument of a signal handler; r points to it and is good until the handler returns. What else a
 * machine has of its own is in unwind_machine.h.
 */
void mew_unwind_from_ucontext(struct mew_unwind_regs *r, const void *ucontext);

#endif
