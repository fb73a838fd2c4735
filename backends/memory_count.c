/*
 * memory_count.c - exact figures of the tracked blocks, without stacks.
 * Layer L3; the hooks here run inside malloc on any thread.
 *
 * One thread: plain counters. Several: each has a share with a lock of its own, which nobody else wants as a rule. The
 * peak of the whole process stays exact, because a share may move on its own only where no new peak is possible:
 *
 *   falling  the sum of all `live` and all `room` is at most the peak. An event that adds needs room in its own share,
 *            one that removes makes room. When the room does not suffice, all shares are locked and looked at together:
 *            either what is left below the peak is dealt out anew, or a new peak has begun, and all shares are
 *   rising   additions are free, since a peak is only complete when something is removed. The first removal locks all
 *            shares, takes the sum as the peak if it is higher, deals out what is left below it: falling again.
 *
 * Lock order: mew_heap.lock, then shares in the order of the list. A thread never holds its own share's lock and waits.
 */
#include "config.h"

#include "memory.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory_own.h"
#include "os.h"
#include "shadow.h"

#include "hotpath.h"

#define SHARE_BATCH_BYTES ((size_t)65536)
#define SPINS 100
#define YIELDS_PER_CHECK 64u

struct mew_heap_share {
	unsigned lock;
	bool rising;
	int64_t room; /* bytes it may add alone; no meaning while rising */
	int64_t live; /* bytes it added minus bytes it removed: below 0 where it frees what others allocated */
	int64_t usable; /* the same of usable sizes */
	struct mew_heap_counts counts;
	struct mew_heap_share *next;
} __attribute__((aligned(64)));

struct mew_heap mew_heap;
MEW_HOT_TLS struct mew_heap_thread mew_heap_self;

static struct mew_heap_share late;            /* of threads past their end, and when memory for shares ran out */
static struct mew_heap_share *shares = &late; /* all of the capture, under mew_heap.lock */
static struct mew_heap_share *spare;          /* never unmapped: a late thread may still hold one */
static bool rising = true;                    /* under mew_heap.lock */

/* --- locks -------------------------------------------------------------------------------------------------------- */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("" : : : "memory");
#endif
}

bool mew_heap_lock_slow(unsigned *lock)
{
	for (unsigned yields = 1;; yields++) {
		for (int i = 0; i < SPINS; i++) {
			if (!__atomic_load_n(lock, __ATOMIC_RELAXED) &&
			    !__atomic_exchange_n(lock, 1u, __ATOMIC_ACQUIRE))
				return true;
			relax();
		}
		(void)syscall(SYS_sched_yield);
		if (yields % YIELDS_PER_CHECK == 0 && (int)syscall(SYS_getpid) != mew_heap.pid)
			return false;
	}
}

static bool lock_all(void)
{
	if (!mew_heap_lock(&mew_heap.lock))
		return false;
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next)
		if (!mew_heap_lock(&s->lock))
			return false;
	return true;
}

static void unlock_all(void)
{
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next)
		mew_heap_unlock(&s->lock);
	mew_heap_unlock(&mew_heap.lock);
}

/* --- shares ------------------------------------------------------------------------------------------------------- */

static void refill_spare(void)
{
	int saved = errno;
	struct mew_heap_share *batch = mew_os_map(SHARE_BATCH_BYTES);

	errno = saved;
	for (size_t i = 0; batch != NULL && i < SHARE_BATCH_BYTES / sizeof *batch; i++) {
		batch[i].next = spare;
		spare = &batch[i];
	}
}

/* A fresh share in the list; `late` when there is no memory. Under mew_heap.lock. */
static struct mew_heap_share *take_share(void)
{
	struct mew_heap_share *s;

	if (spare == NULL)
		refill_spare();
	s = spare;
	if (s == NULL || !mew_heap_lock(&s->lock))
		return &late;
	spare = s->next;
	s->rising = rising;
	s->room = 0;
	s->live = 0;
	s->usable = 0;
	memset(&s->counts, 0, sizeof s->counts);
	s->next = shares;
	shares = s;
	mew_heap_unlock(&s->lock);
	return s;
}

static MEW_NOINLINE bool join(struct mew_heap_thread *self)
{
	unsigned char was = mew_heap_account_begin();
	bool locked = mew_heap_lock(&mew_heap.lock);

	if (locked) {
		__atomic_store_n(&mew_heap.alone, 0, __ATOMIC_RELAXED);
		self->share = take_share();
		self->session = mew_heap.session;
		mew_heap_unlock(&mew_heap.lock);
	}
	mew_heap_account_end(was);
	return locked;
}

static bool one_thread(void)
{
#ifdef MEW_ONE_THREAD_KNOWN
	return __libc_single_threaded;
#else
	return false;
#endif
}

unsigned char mew_heap_own_begin(void)
{
	unsigned char was = mew_heap_self.busy;

	mew_heap_self.busy = MEW_HEAP_ALLOCATOR;
	return was;
}

void mew_heap_own_end(unsigned char was)
{
	mew_heap_self.busy = was;
}

void mew_heap_forget_thread(void)
{
	memset(&mew_heap_self, 0, sizeof mew_heap_self);
}

void mew_memory_shut_window(void)
{
	mew_heap_window_close();
	mew_heap_mapped_gate(NULL, false);
	mew_heap_pools_gate(NULL, false);
}

void mew_memory_open_window(void)
{
	mew_heap_window_open();
	mew_heap_mapped_gate(NULL, true);
	mew_heap_pools_gate(NULL, true);
}

void mew_heap_open_from_outside(struct mew_heap *heap)
{
	__atomic_store_n(&heap->open, 1, __ATOMIC_RELEASE); /* not `alone`: the process may be in the middle of an event */
}

void mew_heap_window_open(void)
{
	__atomic_store_n(&mew_heap.open, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&mew_heap.alone, one_thread(), __ATOMIC_RELEASE);
}

void mew_heap_window_close(void)
{
	__atomic_store_n(&mew_heap.alone, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&mew_heap.open, 0, __ATOMIC_RELAXED);
}

void mew_heap_count_join(struct mew_heap_thread *self)
{
	if (!one_thread() && (self->share == NULL || self->session != mew_heap.session))
		(void)join(self);
}

static void add_counts(struct mew_heap_counts *to, const struct mew_heap_counts *from)
{
	for (unsigned i = 0; i < MEW_HEAP_CLASSES; i++)
		to->sizes[i] += from->sizes[i];
	to->cumulative_bytes += from->cumulative_bytes;
	to->frees += from->frees;
	to->temporary += from->temporary;
	to->reallocs_moved += from->reallocs_moved;
	to->reallocs_in_place += from->reallocs_in_place;
	to->failed += from->failed;
	to->foreign_frees += from->foreign_frees;
	to->adopted += from->adopted;
	to->lost += from->lost;
}

/* Move what a share holds to the common figures. Under both locks. Its room is given up, which only lowers the sum. */
static void fold(struct mew_heap_share *s)
{
	add_counts(&mew_heap.counts, &s->counts);
	memset(&s->counts, 0, sizeof s->counts);
	mew_heap.live += s->live;
	mew_heap.usable += s->usable;
	s->live = 0;
	s->usable = 0;
	s->room = 0;
}

static void leave(struct mew_heap_thread *self)
{
	struct mew_heap_share *s = self->share, **link = &shares;

	if (!mew_heap_lock(&mew_heap.lock) || !mew_heap_lock(&s->lock))
		return;
	fold(s);
	mew_heap_unlock(&s->lock);
	while (*link != NULL && *link != s)
		link = &(*link)->next;
	if (*link == s) {
		*link = s->next;
		s->next = spare;
		spare = s;
	}
	self->share = &late;
	mew_heap_unlock(&mew_heap.lock);
}

void mew_heap_count_leave(struct mew_heap_thread *self)
{
	unsigned char was;

	if (self->share == NULL || self->share == &late || self->session != mew_heap.session)
		return;
	was = mew_heap_account_begin();
	leave(self);
	mew_heap_account_end(was);
}

/* --- the peak of several threads ---------------------------------------------------------------------------------- */

MEW_HEAP_INLINE bool fits(const struct mew_heap_share *s, int64_t change)
{
	return s->rising ? change >= 0 : change <= s->room;
}

/* Deal out what is left below the peak. Under all locks. */
static void deal(struct mew_heap_share *first, int64_t slack)
{
	int64_t n = 0, part;

	for (struct mew_heap_share *s = shares; s != NULL; s = s->next)
		n++;
	if (n == 0) /* `first` is one of them */
		return;
	part = slack / n;
	rising = false;
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next) {
		s->rising = false;
		s->room = part;
	}
	first->room += slack - part * n;
}

/* What an event changes. */
struct change {
	int64_t live, usable;
};

/* An event that does not fit its share. Under all locks. */
static void settle(struct mew_heap_share *mine, struct change change)
{
	int64_t live = mew_heap.live, usable = mew_heap.usable;

	for (struct mew_heap_share *s = shares; s != NULL; s = s->next) {
		live += s->live;
		usable += s->usable;
	}
	mine->live += change.live;
	mine->usable += change.usable;
	if (change.live < 0 && live > mew_heap.peak) {
		mew_heap.peak = live;
		mew_heap.peak_usable = usable;
	}
	if (live + change.live <= mew_heap.peak) {
		deal(mine, mew_heap.peak - live - change.live);
		return;
	}
	rising = true;
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next)
		s->rising = true;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Without stacks an entry has room for what the allocator gave beyond the size, so that a free need not ask for it. */
#define SLACK_UNKNOWN (((uint32_t)1 << MEW_SHADOW_STACK_BITS) - 1)

MEW_HEAP_INLINE bool put(const void *block, size_t size, size_t usable)
{
	size_t slack = usable - size;

	return mew_shadow_put(block, size, MEW_LIKELY(slack < SLACK_UNKNOWN) ? (uint32_t)slack : SLACK_UNKNOWN);
}

MEW_HEAP_INLINE bool take(const void *block, struct mew_heap_block *old)
{
	uint32_t slack;

	if (!mew_shadow_take(block, &old->size, &slack))
		return false;
	old->stack = 0;
	old->usable = old->size + slack;
	if (MEW_UNLIKELY(slack == SLACK_UNKNOWN))
		old->usable = mew_heap_usable(block);
	return true;
}

MEW_HEAP_INLINE void put_back(const void *block, const struct mew_heap_block *old)
{
	(void)put(block, old->size, old->usable); /* it was there, so its leaf is */
}

/*
 * The table entry, the numbers and the thread's last block. False: the block could not be entered, the event counts as
 * lost.
 */
MEW_HEAP_INLINE bool record(struct mew_heap_thread *self, struct mew_heap_counts *counts, enum mew_heap_event event,
			    const void *block, size_t size, size_t usable)
{
	if (mew_heap_enters(event)) {
		if (MEW_UNLIKELY(!put(block, size, usable))) {
			counts->lost++;
			return false;
		}
		if (event != MEW_HEAP_SHRINK)
			self->last = block;
	} else if (event == MEW_HEAP_LEAVE && mew_heap_is_temporary(self, block)) {
		counts->temporary++;
	}
	mew_heap_note(counts, event, size);
	return true;
}

/* --- events of several threads ------------------------------------------------------------------------------------ */

static MEW_NOINLINE void enter_together(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
					size_t size, size_t usable, struct change change)
{
	struct mew_heap_share *s = self->share;

	if (!lock_all())
		return; /* a forked child; nobody asks for its figures */
	if (__atomic_load_n(&mew_heap.open, __ATOMIC_RELAXED) && record(self, &s->counts, event, block, size, usable))
		settle(s, change);
	unlock_all();
}

MEW_HEAP_INLINE void enter_share(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				 size_t size, size_t usable, struct change change)
{
	struct mew_heap_share *s;

	if (MEW_UNLIKELY(self->session != mew_heap.session || self->share == NULL) && !join(self))
		return;
	if (mew_heap_enters(event) && event != MEW_HEAP_SHRINK)
		self->allocations++;
	s = self->share;
	if (MEW_UNLIKELY(!mew_heap_lock(&s->lock)))
		return;
	if (MEW_UNLIKELY(!fits(s, change.live))) {
		mew_heap_unlock(&s->lock);
		enter_together(self, event, block, size, usable, change);
		return;
	}
	if (MEW_LIKELY(__atomic_load_n(&mew_heap.open, __ATOMIC_RELAXED)) &&
	    record(self, &s->counts, event, block, size, usable)) {
		s->live += change.live;
		s->usable += change.usable;
		s->room -= change.live;
	}
	mew_heap_unlock(&s->lock);
}

/* Of its own for the two events that matter for speed. */
static MEW_NOINLINE void enter_join(struct mew_heap_thread *self, const void *block, size_t size, size_t usable)
{
	enter_share(self, MEW_HEAP_JOIN, block, size, usable, (struct change){ (int64_t)size, (int64_t)usable });
}

static MEW_NOINLINE void enter_leave(struct mew_heap_thread *self, const void *block, size_t size, size_t usable)
{
	enter_share(self, MEW_HEAP_LEAVE, block, 0, 0, (struct change){ -(int64_t)size, -(int64_t)usable });
}

static MEW_NOINLINE void enter_other(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				     size_t size, size_t usable, struct change change)
{
	enter_share(self, event, block, size, usable, change);
}

/* --- one event ---------------------------------------------------------------------------------------------------- */

MEW_HEAP_INLINE void enter_alone(struct mew_heap_thread *self, enum mew_heap_event event, const void *block,
				 size_t size, size_t usable, const struct mew_heap_block *old)
{
	if (!record(self, &mew_heap.counts, event, block, size, usable))
		return;
	if (event != MEW_HEAP_JOIN && old->size > size)
		(void)mew_heap_crest();
	mew_heap.live += (int64_t)size - (int64_t)old->size;
	mew_heap.usable += (int64_t)usable - (int64_t)old->usable;
}

MEW_HEAP_INLINE void enter(struct mew_heap_thread *self, enum mew_heap_event event, const void *block, size_t size,
			   size_t usable, const struct mew_heap_block *old, const void *caller)
{
	struct change change = { (int64_t)size - (int64_t)old->size, (int64_t)usable - (int64_t)old->usable };

	(void)caller;
	if (MEW_LIKELY(mew_heap_alone()))
		enter_alone(self, event, block, size, usable, old);
	else if (event == MEW_HEAP_JOIN)
		enter_join(self, block, size, usable);
	else if (event == MEW_HEAP_LEAVE)
		enter_leave(self, block, old->size, old->usable);
	else
		enter_other(self, event, block, size, usable, change);
}

#include "memory_family.h"

const struct mew_malloc_family mew_heap_count_family = MEW_HEAP_FAMILY;

/* --- the window --------------------------------------------------------------------------------------------------- */

void mew_heap_count_reset(void)
{
	(void)lock_all();
	memset(&mew_heap.counts, 0, sizeof mew_heap.counts);
	mew_heap.live = mew_heap.usable = 0;
	mew_heap.peak = mew_heap.peak_usable = 0;
	rising = true;
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next) {
		s->rising = true;
		s->room = 0;
		s->live = 0;
		s->usable = 0;
		memset(&s->counts, 0, sizeof s->counts);
	}
	unlock_all();
}

void mew_heap_count_finish(void)
{
	unsigned char was = mew_heap_account_begin();

	(void)lock_all();
	mew_heap_window_close();
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next)
		fold(s);
	(void)mew_heap_crest();
	unlock_all();
	mew_heap_account_end(was);
}

uint64_t mew_heap_allocations(const struct mew_heap_counts *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MEW_HEAP_CLASSES; i++)
		sum += c->sizes[i];
	return sum;
}

void mew_heap_totals(uint64_t *allocations, int64_t *live)
{
	*allocations = 0;
	*live = 0;
	if (!lock_all())
		return; /* a forked child */
	*allocations = mew_heap_allocations(&mew_heap.counts);
	*live = mew_heap.live;
	for (struct mew_heap_share *s = shares; s != NULL; s = s->next) {
		*allocations += mew_heap_allocations(&s->counts);
		*live += s->live;
	}
	unlock_all();
}

void mew_heap_count_close(void)
{
	struct mew_heap_share *s;

	if (!mew_heap_lock(&mew_heap.lock))
		return;
	while (shares != NULL) {
		s = shares;
		shares = s->next;
		if (s != &late) {
			s->next = spare;
			spare = s;
		}
	}
	late.next = NULL;
	shares = &late;
	mew_heap_unlock(&mew_heap.lock);
}
