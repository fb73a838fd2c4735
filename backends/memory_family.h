/*
 * memory_family.h - the malloc family of an armed capture, included once by each file that enters events.
 * Layer L3, a template: the includer defines these first, so that each of the two ways of entering an event gets its
 * own straight code. Context: malloc, any thread, possibly in a signal handler.
 *
 *   bool take(const void *block, struct mew_heap_block *old)
 *       take a block that is still the allocator's out of the table
 *   void put_back(const void *block, const struct mew_heap_block *old)
 *       ... and in again
 *   void enter(struct mew_heap_thread *self, enum mew_heap_event event, const void *block, size_t size, size_t usable,
 *              const struct mew_heap_block *old, const void *caller)
 *       the event: block with its sizes is what it leaves in the table (mew_heap_enters) or what is freed, `old` what
 *       it took out
 *
 * Order: a record leaves the table before the real free and enters it after the real malloc; realloc does both, and
 * puts the record back when it failed. A block is admitted when its call returns in the window on a thread that is not
 * paused. A pause stops admission alone: frees of tracked blocks count in it, and a realloc of one keeps it tracked
 * with the smaller of both sizes, for what a block loses in a pause is freed, and what it gains there is outside the
 * figures.
 */

static const struct mew_heap_block none;

MEW_HEAP_INLINE void after_malloc(struct mew_heap_thread *self, const void *block, size_t size, const void *caller)
{
	self->busy = MEW_HEAP_ACCOUNTING;
	if (MEW_LIKELY(block != NULL)) {
		enter(self, MEW_HEAP_JOIN, block, size, mew_heap_usable(block), &none,
		      caller);
	} else if (size != 0) {
		enter(self, MEW_HEAP_FAILED, NULL, 0, 0, &none, caller);
	}
	self->busy = MEW_HEAP_FREE;
}

/* The frame of the calling hook ends here; what lies above it is the program's. */
#define CALLER __builtin_return_address(0)

/* One hook: `call` on the next allocator, whose block of `size` bytes is then admitted. */
#define HOOK(call, size)                                                                                               \
	struct mew_heap_thread *self = &mew_heap_self;                                                                 \
	void *block;                                                                                                   \
                                                                                                                       \
	if (MEW_UNLIKELY(!mew_heap_admits(self)))                                                                      \
		return mew_heap.next.call;                                                                             \
	self->busy = MEW_HEAP_ALLOCATOR;                                                                               \
	block = mew_heap.next.call;                                                                                   \
	after_malloc(self, block, size, CALLER);                                                                       \
	return block

static void *hook_realloc_nothing(size_t size, const void *caller)
{
	struct mew_heap_thread *self = &mew_heap_self;
	void *block;

	if (MEW_UNLIKELY(!mew_heap_admits(self)))
		return mew_heap.next.do_realloc(NULL, size);
	self->busy = MEW_HEAP_ALLOCATOR;
	block = mew_heap.next.do_realloc(NULL, size);
	after_malloc(self, block, size, caller);
	return block;
}

static int hook_posix_memalign(void **out, size_t alignment, size_t size)
{
	struct mew_heap_thread *self = &mew_heap_self;
	int error;

	if (MEW_UNLIKELY(!mew_heap_admits(self)))
		return mew_heap.next.do_posix_memalign(out, alignment, size);
	self->busy = MEW_HEAP_ALLOCATOR;
	error = mew_heap.next.do_posix_memalign(out, alignment, size);
	/* *out is untouched when it fails; any size but 0 then stands for the failure */
	after_malloc(self, error == 0 ? *out : NULL, error == 0 ? size : SIZE_MAX, CALLER);
	return error;
}

static void hook_free(void *block)
{
	struct mew_heap_thread *self = &mew_heap_self;
	struct mew_heap_block old;

	if (block == NULL)
		return;
	if (MEW_UNLIKELY(self->busy != MEW_HEAP_FREE)) {
		mew_heap_nested(self);
		mew_heap.next.do_free(block);
		return;
	}
	self->busy = MEW_HEAP_ACCOUNTING;
	if (MEW_LIKELY(take(block, &old)))
		enter(self, MEW_HEAP_LEAVE, block, 0, 0, &old, NULL);
	else if (!self->paused)
		enter(self, MEW_HEAP_FOREIGN, block, 0, 0, &none, NULL);
	self->busy = MEW_HEAP_ALLOCATOR;
	mew_heap.next.do_free(block);
	self->busy = MEW_HEAP_FREE;
}

/* What a realloc of a block came to. `tracked`: `old` was taken out of the table for it. */
MEW_HEAP_INLINE void after_realloc(struct mew_heap_thread *self, const void *block, void *moved, size_t size,
				   bool tracked, const struct mew_heap_block *old, const void *caller)
{
	size_t usable;

	if (moved == NULL && size == 0) { /* this allocator frees */
		if (tracked)
			enter(self, MEW_HEAP_LEAVE, block, 0, 0, old, NULL);
		else if (!self->paused)
			enter(self, MEW_HEAP_FOREIGN, block, 0, 0, &none, NULL);
		return;
	}
	if (moved == NULL) {
		if (tracked)
			put_back(block, old);
		if (!self->paused)
			enter(self, MEW_HEAP_FAILED, NULL, 0, 0, &none, NULL);
		return;
	}
	if (self->paused && !tracked)
		return;
	usable = mew_heap_usable(moved);
	if (self->paused)
		enter(self, MEW_HEAP_SHRINK, moved, size < old->size ? size : old->size, usable, old, NULL);
	else if (tracked)
		enter(self, moved == block ? MEW_HEAP_RESIZE : MEW_HEAP_MOVE, moved, size, usable, old, caller);
	else
		enter(self, moved == block ? MEW_HEAP_ADOPT_IN_PLACE : MEW_HEAP_ADOPT_MOVED, moved, size, usable, &none,
		      caller);
}

static void *hook_realloc(void *block, size_t size)
{
	struct mew_heap_thread *self = &mew_heap_self;
	struct mew_heap_block old = none;
	bool tracked;
	void *moved;

	if (block == NULL)
		return hook_realloc_nothing(size, CALLER);
	if (MEW_UNLIKELY(self->busy != MEW_HEAP_FREE)) {
		mew_heap_nested(self);
		return mew_heap.next.do_realloc(block, size);
	}
	self->busy = MEW_HEAP_ACCOUNTING;
	tracked = take(block, &old);
	self->busy = MEW_HEAP_ALLOCATOR;
	moved = mew_heap.next.do_realloc(block, size);
	self->busy = MEW_HEAP_ACCOUNTING;
	after_realloc(self, block, moved, size, tracked, &old, CALLER);
	self->busy = MEW_HEAP_FREE;
	return moved;
}

#define NEXT mew_heap.next
#include "hook_family.h"

#undef NEXT
#undef HOOK
#undef CALLER
