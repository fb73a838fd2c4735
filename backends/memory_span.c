/*
 * memory_span.c - the malloc family while spans are open: totals of each thread, and stacks beyond a budget.
 * Layer L3; the hooks here run inside malloc on any thread. A span of the thread costs it no lock and no shared line.
 */
#include "config.h"

#include "memory_span.h"

#include "unwind.h"

#include "hotpath.h"

#define OWN_FRAMES_MAX 8u /* of mew, between the walk and the hook's caller */
#define ALL_FRAMES (MEW_SPAN_FRAMES + OWN_FRAMES_MAX)

MEW_HOT_TLS struct mew_span_thread mew_span_self;
struct mew_span_shared mew_span_shared;
const struct mew_malloc_family *mew_span_next;

/* --- beyond a budget ---------------------------------------------------------------------------------------------- */

void mew_span_set_alarm(struct mew_span_thread *self)
{
	uint64_t lowest = UINT64_MAX;

	for (const struct mew_span_slot *s = self->slots; s != NULL; s = s->next)
		if (s->nstacks < MEW_SPAN_STACKS && s->limit < lowest)
			lowest = s->limit;
	self->alarm = lowest == UINT64_MAX ? 0 : lowest + 1;
}

/* The stack above the hook: at least the caller itself. */
static void walk(struct mew_span_thread *self, const void *caller, struct mew_span_stack *out)
{
	uintptr_t pcs[ALL_FRAMES];
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	size_t found = 0;

	out->pcs[0] = (uintptr_t)caller - 1;
	out->depth = 1;
	if (self->unwind == NULL)
		return;
	mew_unwind_here(&regs);
	found = mew_unwind_walk(self->unwind, &regs, 0, 0, pcs, ALL_FRAMES, &stop);
	for (size_t i = 0; i < found && i < OWN_FRAMES_MAX; i++) {
		if (pcs[i] != (uintptr_t)caller)
			continue;
		while (out->depth < MEW_SPAN_FRAMES && i + out->depth < found) {
			out->pcs[out->depth] = pcs[i + out->depth];
			out->depth++;
		}
		return;
	}
}

static MEW_NOINLINE void keep_stack(struct mew_span_thread *self, size_t size, const void *caller)
{
	struct mew_span_stack stack = { .size = size };

	walk(self, caller, &stack);
	for (struct mew_span_slot *s = self->slots; s != NULL; s = s->next) {
		if (s->nstacks == MEW_SPAN_STACKS || s->limit >= self->totals.allocations)
			continue;
		stack.number = self->totals.allocations - s->start.allocations;
		s->stacks[s->nstacks++] = stack;
	}
	mew_span_set_alarm(self);
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

static inline bool is_shared(void)
{
	return MEW_UNLIKELY(__atomic_load_n(&mew_span_shared.open, __ATOMIC_ACQUIRE) != 0);
}

static inline void add_shared(uint64_t *total, uint64_t amount)
{
	(void)__atomic_fetch_add(total, amount, __ATOMIC_RELAXED);
}

static inline void count_allocation(struct mew_span_thread *self, size_t size, bool replaces, const void *caller)
{
	self->totals.allocations++;
	self->totals.bytes += size;
	self->totals.reallocs += replaces;
	if (is_shared()) {
		add_shared(&mew_span_shared.totals.allocations, 1);
		add_shared(&mew_span_shared.totals.bytes, size);
		add_shared(&mew_span_shared.totals.reallocs, replaces);
	}
	if (MEW_UNLIKELY(self->alarm != 0) && self->totals.allocations >= self->alarm)
		keep_stack(self, size, caller);
}

static inline void count_free(struct mew_span_thread *self)
{
	self->totals.frees++;
	if (is_shared())
		add_shared(&mew_span_shared.totals.frees, 1);
}

/* --- the family --------------------------------------------------------------------------------------------------- */

/* The frame of the calling hook ends here; what lies above it is the program's. */
#define CALLER __builtin_return_address(0)

/* One hook: `call` on the next allocator, whose block of `size` bytes then counts. */
#define HOOK(call, size)                                                                                               \
	struct mew_span_thread *self = &mew_span_self;                                                                 \
	void *block;                                                                                                   \
                                                                                                                       \
	if (MEW_UNLIKELY(self->busy))                                                                                  \
		return mew_span_next->call;                                                                            \
	self->busy = true;                                                                                             \
	block = mew_span_next->call;                                                                                   \
	if (MEW_LIKELY(block != NULL))                                                                                 \
		count_allocation(self, size, false, CALLER);                                                           \
	self->busy = false;                                                                                            \
	return block

static int hook_posix_memalign(void **out, size_t alignment, size_t size)
{
	struct mew_span_thread *self = &mew_span_self;
	int error;

	if (MEW_UNLIKELY(self->busy))
		return mew_span_next->do_posix_memalign(out, alignment, size);
	self->busy = true;
	error = mew_span_next->do_posix_memalign(out, alignment, size);
	if (MEW_LIKELY(error == 0 && *out != NULL))
		count_allocation(self, size, false, CALLER);
	self->busy = false;
	return error;
}

static void hook_free(void *block)
{
	struct mew_span_thread *self = &mew_span_self;

	if (MEW_UNLIKELY(self->busy)) {
		mew_span_next->do_free(block);
		return;
	}
	self->busy = true;
	if (block != NULL)
		count_free(self);
	mew_span_next->do_free(block);
	self->busy = false;
}

/* A realloc that fails changes nothing; one to 0 bytes that returns nothing has freed, unless there was no block. */
static void *hook_realloc(void *block, size_t size)
{
	struct mew_span_thread *self = &mew_span_self;
	bool had_block = block != NULL;
	void *moved;

	if (MEW_UNLIKELY(self->busy))
		return mew_span_next->do_realloc(block, size);
	self->busy = true;
	moved = mew_span_next->do_realloc(block, size);
	if (MEW_LIKELY(moved != NULL))
		count_allocation(self, size, had_block, CALLER);
	else if (size == 0 && had_block)
		count_free(self);
	self->busy = false;
	return moved;
}

#define NEXT (*mew_span_next)
#include "hook_family.h"

const struct mew_malloc_family mew_span_family = MEW_HEAP_FAMILY;
