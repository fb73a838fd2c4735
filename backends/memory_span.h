/*
 * memory_span.h - what the malloc family of open spans (memory_span.c) shares with their registry (span_registry.c).
 * Layer L3. Totals only ever rise, and a span is the difference of two readings: one that is never ended costs nothing
 * and writes nowhere, and spans nest without knowing of each other.
 */
#ifndef MEW_MEMORY_SPAN_H
#define MEW_MEMORY_SPAN_H

#include "base.h"

#include "hooks/hooks.h"

#define MEW_SPAN_STACKS 4u  /* of the first allocations beyond a budget */
#define MEW_SPAN_FRAMES 16u /* of each */

struct mew_unwind_thread;
struct mew_span;

#pragma GCC visibility push(hidden)

struct mew_span_totals {
	uint64_t allocations, bytes, frees;
	uint64_t reallocs; /* those of `allocations` that replaced a block */
};

struct mew_span_stack {
	uint64_t number; /* of the allocation, counted from 1 in its block */
	size_t size;
	size_t depth;
	uintptr_t pcs[MEW_SPAN_FRAMES]; /* leaf first: the call of the allocator, exact */
};

struct mew_span_slot { /* an open span */
	struct mew_span_slot *next;
	const struct mew_span *span; /* never written to, and read only where its frame is known to be alive */
	const void *owner;           /* the thread that began it: its mew_span_self */
	uint64_t serial;
	unsigned session;            /* it counts as long as this is the registry's */
	int scope;                   /* enum mew_span_scope */
	struct mew_span_totals start;
	uint64_t limit;              /* total of allocations up to which the budget holds; UINT64_MAX: none */
	size_t nstacks;
	struct mew_span_stack stacks[MEW_SPAN_STACKS];
};

struct mew_span_thread {
	bool busy;                        /* the allocator or mew is at work: their calls pass uncounted */
	struct mew_span_totals totals;
	uint64_t alarm;                   /* the lowest limit of a budget that still wants stacks; 0: none */
	struct mew_span_slot *slots;      /* spans of the thread, newest first; only it touches them */
	struct mew_unwind_thread *unwind; /* NULL before the first budget */
	uintptr_t stack_lo, stack_hi;     /* 0 before the first span */
};
extern MEW_HOT_TLS struct mew_span_thread mew_span_self;

struct mew_span_shared { /* all threads together, counted while a span of the process is open */
	unsigned open;                  /* atomic: such spans */
	struct mew_span_totals totals;  /* atomic, each */
};
extern struct mew_span_shared mew_span_shared;

/* The allocator behind the hooks; set before the family is armed. */
extern const struct mew_malloc_family *mew_span_next;
extern const struct mew_malloc_family mew_span_family;

/* Choose the alarm anew from the slots of the calling thread. Context: the thread itself, also inside malloc. */
void mew_span_set_alarm(struct mew_span_thread *self);

#pragma GCC visibility pop

#endif
