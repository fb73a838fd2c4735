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

#include "kept.h"
#include "modules.h"
#include "os.h"
#include "shadow.h"
#include "sink.h"
#include "stackset.h"
#include "unwind.h"
#include "unwind_memo.h"

#include "hotpath.h"

#define FRAMES_MAX 256u
#define OWN_FRAMES_MAX 8u /* of mew, between the walk and the hook's caller */
#define STACKS ((size_t)1 << 18) /* reserved, not touched: more would spread the hash over more pages */
#define FRAMES ((size_t)1 << 23)
#define LAYOUTS ((size_t)1 << 14)
#define LAYOUT_WORDS ((size_t)1 << 20)

_Static_assert(STACKS < (size_t)1 << MEW_SHADOW_STACK_BITS, "a table entry must hold every stack's number");

struct stack_figures {
	int64_t at_peak, since;
	uint64_t seen; /* number of the last peak that at_peak knows */
	uint64_t cumulative_bytes, allocations;
	uint32_t layout; /* that a walk found this stack with last; 0 for none (unwind_memo.h) */
};

#define FIGURES_BYTES ((STACKS + 1) * sizeof(struct stack_figures))

static struct {
	struct mew_stackset *set, *layouts;
	struct stack_figures *figures; /* by id; 0 is what found no room in the set */
	uintptr_t entry_lo, entry_hi;
	uint64_t peaks;
} capture;

/* Of the capture before: a thread that began an event in its window may still be about to read them. */
static struct tables {
	struct mew_stackset *set, *layouts;
	struct stack_figures *figures;
} retired;

/* --- the unwinder of each thread ---------------------------------------------------------------------------------- */

struct unwinder {
	struct mew_unwind_thread state; /* first: a thread has its address */
	struct mew_unwind_memo memo;
	unsigned session; /* that the memo belongs to */
	struct unwinder *next;
};
static struct unwinder *spare_unwinders; /* never unmapped: a late thread may still walk with one */
static unsigned spare_lock;

static struct unwinder *take_unwinder(void)
{
	struct unwinder *u = NULL;

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

static void give_unwinder_back(struct unwinder *u)
{
	if (!mew_heap_lock(&spare_lock))
		return;
	u->next = spare_unwinders;
	spare_unwinders = u;
	mew_heap_unlock(&spare_lock);
}

static int join_by(struct mew_heap_thread *self, int (*init)(struct mew_unwind_thread *))
{
	unsigned char was = self->busy;
	int saved = errno;
	struct unwinder *u;

	if (self->unwind != NULL)
		return 0;
	self->busy = MEW_HEAP_ALLOCATOR; /* finding the stack may allocate: not the program's calls */
	u = take_unwinder();
	if (u != NULL && init(&u->state) != 0) {
		give_unwinder_back(u);
		u = NULL;
	}
	if (u != NULL)
		self->unwind = &u->state;
	self->busy = was;
	errno = saved;
	return u != NULL ? 0 : -1;
}

int mew_heap_capture_join(struct mew_heap_thread *self)
{
	return join_by(self, mew_unwind_thread_init);
}

void mew_heap_capture_leave(struct mew_heap_thread *self)
{
	struct unwinder *u = (struct unwinder *)self->unwind;

	self->unwind = NULL;
	if (u != NULL)
		give_unwinder_back(u);
}

/*
 * The stack above a hook, by a walk. Its leaf is the call of the allocator: that call's last byte, so that it reads as
 * an exact place. Of its own and out of line, for the room that its notes need on the stack.
 *
 * regs     where the walk begins; sp in the frame of the caller
 * Returns  the stack's number; 0 for none
 */
static MEW_NOINLINE uint32_t walk(struct mew_heap_thread *self, const struct mew_unwind_regs *regs, const void *caller)
{
	uintptr_t pcs[FRAMES_MAX], slots[FRAMES_MAX], alone = (uintptr_t)caller - 1;
	struct unwinder *u = (struct unwinder *)self->unwind;
	unsigned char was = self->busy;
	struct mew_unwind_trail trail;
	enum mew_unwind_stop stop;
	uint32_t id, layout;
	size_t n;

	trail.slots = slots;
	if (mew_unwind_may_allocate())
		self->busy = MEW_HEAP_ALLOCATOR; /* that would be none of the program's calls */
	n = mew_unwind_walk_trail(&u->state, regs, capture.entry_lo, capture.entry_hi, pcs, FRAMES_MAX, &stop, &trail);
	self->busy = was;
	for (size_t i = 1; i < n && i < OWN_FRAMES_MAX; i++) {
		if (pcs[i] != (uintptr_t)caller)
			continue;
		layout = mew_memo_learn(&u->memo, capture.layouts, regs, pcs, i, n, &trail);
		pcs[i]--;
		id = mew_stackset_intern(capture.set, &pcs[i], n - i);
		if (id != 0)
			__atomic_store_n(&capture.figures[id].layout, layout, __ATOMIC_RELAXED);
		return id;
	}
	return mew_stackset_intern(capture.set, &alone, 1); /* the walk does not get that far */
}

static MEW_NOINLINE bool get_unwinder(struct mew_heap_thread *self)
{
	struct unwinder *u = (struct unwinder *)self->unwind;

	/* a thread that was here before the capture: this is inside the allocator */
	if (u == NULL && (self->ended || join_by(self, mew_unwind_thread_init_inside) != 0))
		return false;
	u = (struct unwinder *)self->unwind;
	memset(&u->memo, 0, sizeof u->memo); /* what it holds belongs to another capture */
	u->session = mew_heap.session;
	return true;
}

/* The number of the stack above a hook: recognised if possible, else walked. No lock is held. */
MEW_HEAP_INLINE uint32_t stack_of(struct mew_heap_thread *self, const void *caller)
{
	const struct unwinder *u = (const struct unwinder *)self->unwind;
	uintptr_t pcs[FRAMES_MAX];
	struct mew_unwind_regs regs;
	uint32_t id, layout = 0;
	size_t n;

	if (MEW_UNLIKELY(u == NULL || u->session != mew_heap.session) && !get_unwinder(self)) {
		pcs[0] = (uintptr_t)caller - 1;
		return mew_stackset_intern(capture.set, pcs, 1);
	}
	u = (const struct unwinder *)self->unwind;
	mew_unwind_here(&regs);
	n = mew_memo_recall(&u->memo, &regs, (uintptr_t)caller, pcs, &layout);
	if (MEW_LIKELY(n != 0)) {
		pcs[0]--;
		id = mew_stackset_find(capture.set, pcs, n);
		if (MEW_LIKELY(id != 0 && __atomic_load_n(&capture.figures[id].layout, __ATOMIC_RELAXED) == layout))
			return id;
	}
	return walk(self, &regs, caller);
}

/* --- events, in one order ----------------------------------------------------------------------------------------- */

MEW_HEAP_INLINE void change(uint32_t id, int64_t bytes)
{
	struct stack_figures *f = &capture.figures[id];

	if (bytes < 0 && mew_heap_crest())
		capture.peaks++;
	mew_heap.live += bytes;
	if (f->seen != capture.peaks) {
		f->at_peak += f->since;
		f->since = 0;
		f->seen = capture.peaks;
	}
	f->since += bytes;
}

/* Returns whether to unlock afterwards; *may_enter is false outside the window. */
MEW_HEAP_INLINE bool begin_event(bool *may_enter)
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

MEW_HEAP_INLINE void record(struct mew_heap_thread *self, enum mew_heap_event event, const void *block, size_t size,
		   size_t usable, const struct mew_heap_block *old, uint32_t id)
{
	struct stack_figures *f = &capture.figures[id];

	if (!mew_shadow_put(block, size, id)) {
		mew_heap.counts.lost++;
		return;
	}
	self->last = block;
	self->allocations++;
	mew_heap_note(&mew_heap.counts, event, size);
	if (event == MEW_HEAP_MOVE || event == MEW_HEAP_RESIZE)
		change(old->stack, -(int64_t)old->size);
	change(id, (int64_t)size);
	mew_heap.usable += (int64_t)usable - (int64_t)old->usable;
	f->allocations++;
	f->cumulative_bytes += size;
}

MEW_HEAP_INLINE void enter_with_stack(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				      size_t size, size_t usable, const struct mew_heap_block *old, const void *caller)
{
	uint32_t id = stack_of(self, caller);
	bool may_enter, locked = begin_event(&may_enter);

	if (may_enter)
		record(self, event, block, size, usable, old, id);
	if (locked)
		mew_heap_unlock(&mew_heap.lock);
}

/* Events without a stack of their own: what leaves, leaves the stack that it came by. */
MEW_HEAP_INLINE void enter_without(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				   size_t size, size_t usable, const struct mew_heap_block *old)
{
	bool may_enter, locked = begin_event(&may_enter);

	if (may_enter) {
		if (event == MEW_HEAP_SHRINK && !mew_shadow_put(block, size, old->stack))
			mew_heap.counts.lost++;
		if (event == MEW_HEAP_LEAVE && mew_heap_is_temporary(self, block))
			mew_heap.counts.temporary++;
		mew_heap_note(&mew_heap.counts, event, size);
		if (event == MEW_HEAP_LEAVE || event == MEW_HEAP_SHRINK) {
			change(old->stack, (int64_t)size - (int64_t)old->size);
			mew_heap.usable += (int64_t)usable - (int64_t)old->usable;
		}
	}
	if (locked)
		mew_heap_unlock(&mew_heap.lock);
}

/* Out of line, and each of the two events that matter for speed with code of its own. */
static MEW_NOINLINE void enter_join(struct mew_heap_thread *self, const void *block, size_t size, size_t usable,
				    const void *caller)
{
	enter_with_stack(self, MEW_HEAP_JOIN, block, size, usable, &(const struct mew_heap_block){ 0 }, caller);
}

static MEW_NOINLINE void enter_block(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				     size_t size, size_t usable, const struct mew_heap_block *old, const void *caller)
{
	enter_with_stack(self, event, block, size, usable, old, caller);
}

static MEW_NOINLINE void enter_leave(struct mew_heap_thread *self, const void *block, const struct mew_heap_block *old)
{
	enter_without(self, MEW_HEAP_LEAVE, block, 0, 0, old);
}

static MEW_NOINLINE void enter_rest(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				    size_t size, size_t usable, const struct mew_heap_block *old)
{
	enter_without(self, event, block, size, usable, old);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

MEW_HEAP_INLINE bool take(const void *block, struct mew_heap_block *old)
{
	if (!mew_shadow_take(block, &old->size, &old->stack))
		return false;
	old->usable = mew_heap_usable(block);
	return true;
}

MEW_HEAP_INLINE void put_back(const void *block, const struct mew_heap_block *old)
{
	(void)mew_shadow_put(block, old->size, old->stack); /* it was there, so its leaf is */
}

MEW_HEAP_INLINE void enter(struct mew_heap_thread *self, enum mew_heap_event event, const void *block, size_t size,
			   size_t usable, const struct mew_heap_block *old, const void *caller)
{
	if (event == MEW_HEAP_JOIN)
		enter_join(self, block, size, usable, caller);
	else if (event == MEW_HEAP_LEAVE)
		enter_leave(self, block, old);
	else if (event == MEW_HEAP_SHRINK || !mew_heap_enters(event))
		enter_rest(self, event, block, size, usable, old);
	else
		enter_block(self, event, block, size, usable, old, caller);
}

#include "memory_family.h"

const struct mew_malloc_family mew_heap_capture_family = MEW_HEAP_FAMILY;

/* --- the window --------------------------------------------------------------------------------------------------- */

static void give_back(struct tables *t)
{
	mew_stackset_free(t->set);
	mew_stackset_free(t->layouts);
	mew_kept_unmap(t->figures, FIGURES_BYTES);
	*t = (struct tables){ NULL, NULL, NULL };
}

int mew_heap_capture_open(uintptr_t entry_lo, uintptr_t entry_hi)
{
	struct tables fresh;

	give_back(&retired);
	fresh.set = mew_stackset_new(STACKS, FRAMES);
	fresh.layouts = mew_stackset_new(LAYOUTS, LAYOUT_WORDS);
	fresh.figures = mew_kept_map(FIGURES_BYTES);
	if (fresh.set == NULL || fresh.layouts == NULL || fresh.figures == NULL || mew_modules_renew() != 0) {
		give_back(&fresh);
		return -1;
	}
	retired = (struct tables){ capture.set, capture.layouts, capture.figures };
	capture.set = fresh.set;
	capture.layouts = fresh.layouts;
	capture.figures = fresh.figures;
	capture.entry_lo = entry_lo;
	capture.entry_hi = entry_hi;
	return 0;
}

void mew_heap_capture_reset(void)
{
	if (!mew_heap_lock(&mew_heap.lock))
		return;
	memset(&mew_heap.counts, 0, sizeof mew_heap.counts);
	mew_heap.live = mew_heap.usable = 0;
	mew_heap.peak = mew_heap.peak_usable = 0;
	capture.peaks = 0;
	mew_heap_unlock(&mew_heap.lock);
}

void mew_heap_capture_finish(void)
{
	unsigned char was = mew_heap_account_begin();

	if (mew_heap_lock(&mew_heap.lock)) {
		mew_heap_window_close();
		if (mew_heap_crest())
			capture.peaks++;
		mew_heap_unlock(&mew_heap.lock);
	}
	mew_heap_account_end(was);
}

void mew_heap_capture_static(struct mew_kept_static *s)
{
	*s = (struct mew_kept_static){ &capture, sizeof capture };
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

uint64_t mew_heap_capture_stackless(void)
{
	return mew_stackset_lost(capture.set);
}

size_t mew_heap_capture_bytes(void)
{
	return mew_os_resident(capture.set, mew_stackset_bytes(capture.set)) +
	       mew_os_resident(capture.layouts, mew_stackset_bytes(capture.layouts)) +
	       mew_os_resident(capture.figures, FIGURES_BYTES);
}
