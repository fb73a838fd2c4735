/*
 * memory_capture.c - the same figures with the stack of every allocation, and what each stack held at the peak.
 * Layer L3; the hooks here run inside malloc on any thread. Stacks are walked before any lock is taken.
 *
 * What a stack holds at the peak of the whole process is known at the end without a trace: a peak is complete when
 * something is removed while the total is above the best so far; peaks are numbered. A stack that an event touches
 * first moves what it gained `since` into `at_peak` if a peak was completed after its last event, and only then
 * changes. That is O(1) an event, and the sum of `at_peak` over all stacks is the peak. It needs one order of all
 * events: one short lock.
 */
#include "config.h"

#include "memory.h"

#include <errno.h>
#include <string.h>

#include "modules.h"
#include "os.h"
#include "shadow.h"
#include "sink.h"
#include "stackset.h"
#include "unwind.h"

#include "hotpath.h"

#define FRAMES_MAX 256u
#define OWN_FRAMES_MAX 8u /* of mew, between the walk and the hook's caller */
#define STACKS ((size_t)1 << 18) /* reserved, not touched: more would spread the hash over more pages */
#define FRAMES ((size_t)1 << 23)

_Static_assert(STACKS < (size_t)1 << MEW_SHADOW_STACK_BITS, "a table entry must hold every stack's number");

struct stack_figures {
	int64_t at_peak, since;
	uint64_t seen; /* number of the last peak that at_peak knows */
	uint64_t cumulative_bytes, allocations;
};

static struct {
	struct mew_stackset *set;
	struct stack_figures *figures; /* by id; 0 is what found no room in the set */
	uintptr_t entry_lo, entry_hi;
	uint64_t peaks;
} capture;

/* --- the unwinder of each thread ---------------------------------------------------------------------------------- */

union unwinder {
	struct mew_unwind_thread state;
	union unwinder *next;
};
static union unwinder *spare_unwinders; /* never unmapped: a late thread may still walk with one */
static unsigned spare_lock;

static union unwinder *take_unwinder(void)
{
	union unwinder *u = NULL;

	if (!mew_heap_lock(&spare_lock))
		return NULL;
	if (spare_unwinders != NULL) {
		u = spare_unwinders;
		spare_unwinders = u->next;
	}
	mew_heap_unlock(&spare_lock);
	if (u != NULL)
		memset(u, 0, sizeof *u);
	return u != NULL ? u : mew_os_map(sizeof *u);
}

static void give_unwinder_back(union unwinder *u)
{
	if (!mew_heap_lock(&spare_lock))
		return;
	u->next = spare_unwinders;
	spare_unwinders = u;
	mew_heap_unlock(&spare_lock);
}

/*
 * Finding the stack may allocate, even inside an event (a thread that was here before the capture): not the program's
 * calls.
 */
int mew_heap_capture_join(struct mew_heap_thread *self)
{
	unsigned char was = self->busy;
	int saved = errno;
	union unwinder *u;

	if (self->unwind != NULL)
		return 0;
	self->busy = MEW_HEAP_ALLOCATOR;
	u = take_unwinder();
	if (u != NULL && mew_unwind_thread_init(&u->state) != 0) {
		give_unwinder_back(u);
		u = NULL;
	}
	if (u != NULL)
		self->unwind = &u->state;
	self->busy = was;
	errno = saved;
	return u != NULL ? 0 : -1;
}

void mew_heap_capture_leave(struct mew_heap_thread *self)
{
	union unwinder *u = (union unwinder *)self->unwind;

	self->unwind = NULL;
	if (u != NULL)
		give_unwinder_back(u);
}

/*
 * The stack above a hook. Its leaf is the call of the allocator: that call's last byte, so that it reads as an exact
 * place.
 *
 * pcs      room for FRAMES_MAX
 * Returns  where it begins in pcs; *n is its depth, at least 1: the caller alone where the walk does not get that far
 */
static const uintptr_t *walk(struct mew_heap_thread *self, const void *caller, uintptr_t *pcs, size_t *n)
{
	struct mew_unwind_regs regs;
	enum mew_unwind_stop stop;
	size_t found = 0;

	if (self->unwind != NULL || (!self->ended && mew_heap_capture_join(self) == 0)) {
		mew_unwind_here(&regs);
		found = mew_unwind_walk(self->unwind, &regs, capture.entry_lo, capture.entry_hi, pcs, FRAMES_MAX,
					&stop);
	}
	for (size_t i = 0; i < found && i < OWN_FRAMES_MAX; i++) {
		if (pcs[i] == (uintptr_t)caller) {
			pcs[i]--;
			*n = found - i;
			return &pcs[i];
		}
	}
	pcs[0] = (uintptr_t)caller - 1;
	*n = 1;
	return pcs;
}

/* --- events, in one order ----------------------------------------------------------------------------------------- */

static void change(uint32_t id, int64_t bytes)
{
	struct stack_figures *f = &capture.figures[id];

	if (bytes < 0 && mew_heap.live > mew_heap.peak) {
		mew_heap.peak = mew_heap.live;
		capture.peaks++;
	}
	mew_heap.live += bytes;
	if (f->seen != capture.peaks) {
		f->at_peak += f->since;
		f->since = 0;
		f->seen = capture.peaks;
	}
	f->since += bytes;
}

/* Returns whether to unlock afterwards; *may_enter is false outside the window. */
static bool begin_event(bool *may_enter)
{
	bool locked = !mew_heap_alone();

	*may_enter = true;
	if (locked) {
		locked = mew_heap_lock(&mew_heap.lock);
		*may_enter = locked; /* else a forked child, whose figures nobody asks for */
		__atomic_store_n(&mew_heap.alone, 0, __ATOMIC_RELAXED);
	}
	*may_enter = *may_enter && __atomic_load_n(&mew_heap.open, __ATOMIC_RELAXED);
	return locked;
}

static MEW_NOINLINE void enter_block(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				     size_t size, size_t old_size, uint32_t old_stack, const void *caller)
{
	uintptr_t pcs[FRAMES_MAX];
	const uintptr_t *stack;
	bool may_enter, locked;
	uint32_t id;
	size_t n;

	stack = walk(self, caller, pcs, &n);
	locked = begin_event(&may_enter);
	if (!may_enter)
		goto out;
	id = mew_stackset_intern(capture.set, stack, n);
	if (!mew_shadow_put(block, size, id)) {
		mew_heap.counts.lost++;
		goto out;
	}
	mew_heap_note(&mew_heap.counts, event, size);
	if (event == MEW_HEAP_MOVE || event == MEW_HEAP_RESIZE)
		change(old_stack, -(int64_t)old_size);
	change(id, (int64_t)size);
	capture.figures[id].allocations++;
	capture.figures[id].cumulative_bytes += size;
out:
	if (locked)
		mew_heap_unlock(&mew_heap.lock);
}

/* Events without a stack of their own: what leaves, leaves the stack that it came by. */
static MEW_NOINLINE void enter_rest(enum mew_heap_event event, const void *block, size_t size, size_t old_size,
				    uint32_t old_stack)
{
	bool may_enter, locked = begin_event(&may_enter);

	if (may_enter) {
		if (event == MEW_HEAP_SHRINK && !mew_shadow_put(block, size, old_stack))
			mew_heap.counts.lost++;
		mew_heap_note(&mew_heap.counts, event, size);
		if (event == MEW_HEAP_LEAVE || event == MEW_HEAP_SHRINK)
			change(old_stack, (int64_t)size - (int64_t)old_size);
	}
	if (locked)
		mew_heap_unlock(&mew_heap.lock);
}

MEW_HEAP_INLINE void enter(struct mew_heap_thread *self, enum mew_heap_event event, const void *block, size_t size,
			 size_t old_size, uint32_t old_stack, const void *caller)
{
	if (event == MEW_HEAP_SHRINK || !mew_heap_enters(event))
		enter_rest(event, block, size, old_size, old_stack);
	else
		enter_block(self, event, block, size, old_size, old_stack, caller);
}

#include "memory_family.h"

const struct mew_malloc_family mew_heap_capture_family = MEW_HEAP_FAMILY;

/* --- the window --------------------------------------------------------------------------------------------------- */

int mew_heap_capture_open(uintptr_t entry_lo, uintptr_t entry_hi)
{
	capture.entry_lo = entry_lo;
	capture.entry_hi = entry_hi;
	capture.set = mew_stackset_new(STACKS, FRAMES);
	capture.figures = mew_os_reserve((STACKS + 1) * sizeof *capture.figures);
	if (capture.set != NULL && capture.figures != NULL && mew_modules_renew() == 0)
		return 0;
	mew_heap_capture_close();
	return -1;
}

void mew_heap_capture_reset(void)
{
	if (!mew_heap_lock(&mew_heap.lock))
		return;
	memset(&mew_heap.counts, 0, sizeof mew_heap.counts);
	mew_heap.live = 0;
	mew_heap.peak = 0;
	capture.peaks = 0;
	mew_heap_unlock(&mew_heap.lock);
}

void mew_heap_capture_finish(void)
{
	if (!mew_heap_lock(&mew_heap.lock))
		return;
	mew_heap_window_close();
	if (mew_heap.live > mew_heap.peak) {
		mew_heap.peak = mew_heap.live;
		capture.peaks++;
	}
	mew_heap.counts.lost += mew_stackset_lost(capture.set);
	mew_heap_unlock(&mew_heap.lock);
}

void mew_heap_capture_close(void)
{
	mew_stackset_free(capture.set);
	capture.set = NULL;
	mew_os_unmap(capture.figures, (STACKS + 1) * sizeof *capture.figures);
	capture.figures = NULL;
}

/* Stacks of threads that were started in the capture end where the hooks call the thread's function. */
static size_t depth_in_thread(const uintptr_t *pcs, size_t n, const struct mew_hooks_api *api)
{
	for (size_t i = 1; i < n; i++)
		if (pcs[i] >= api->thread_lo && pcs[i] < api->thread_hi)
			return i;
	return n;
}

void mew_heap_capture_drain(struct mew_sink *sink, const struct mew_hooks_api *api)
{
	static const uintptr_t nowhere = 0;
	uint32_t count = mew_stackset_count(capture.set);
	const struct mew_modules *modules;

	/* names for libraries that were opened without a word to the listener; without memory the old list must do */
	(void)mew_modules_renew();
	modules = mew_modules_current();
	for (uint32_t id = 0; id <= count; id++) {
		const struct stack_figures *f = &capture.figures[id];
		const uintptr_t *pcs = &nowhere;
		struct mew_heap_stack row = {
			.peak_bytes = (uint64_t)(f->at_peak + (f->seen != capture.peaks ? f->since : 0)),
			.cumulative_bytes = f->cumulative_bytes,
			.allocations = f->allocations,
			.net_bytes = (uint64_t)(f->at_peak + f->since),
		};
		size_t n = 1;

		if (f->allocations == 0)
			continue;
		if (id != 0)
			pcs = mew_stackset_frames(capture.set, id, &n);
		row.stack = mew_sink_stack(sink, modules, pcs, depth_in_thread(pcs, n, api));
		mew_sink_heap(sink, &row);
	}
}
