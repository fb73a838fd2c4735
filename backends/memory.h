/*
 * memory.h - what the files of the memory backend share: the running capture, the calling thread, the locks.
 * Layer L3. Events come from inside malloc on any thread; everything else is called outside the window.
 */
#ifndef MEW_MEMORY_H
#define MEW_MEMORY_H

#include "base.h"
#include "mew/backend.h"

#include "hooks/hooks.h"

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define MEW_ONE_THREAD_KNOWN 1
#endif
#endif

struct mew_stackset;
struct mew_unwind_thread;
struct mew_kept_static; /* kept.h */

/* Code of every event: whatever the compiler thinks of its size, a call and a switch cost more than the event. */
#define MEW_HEAP_INLINE static inline __attribute__((always_inline))

#pragma GCC visibility push(hidden)

/* --- figures ---------------------------------------------------------------------------------------------------- */

#define MEW_HEAP_EXACT 64u                        /* sizes below have a class each */
#define MEW_HEAP_CLASSES (MEW_HEAP_EXACT + 64 - 6) /* then one for each power of two */

struct mew_heap_counts {
	uint64_t cumulative_bytes, frees, temporary, reallocs_moved, reallocs_in_place;
	uint64_t failed, foreign_frees, adopted, lost;
	uint64_t sizes[MEW_HEAP_CLASSES]; /* allocations by size: their sum is the number of allocations */
};

MEW_HEAP_INLINE unsigned mew_heap_class(size_t size)
{
	unsigned power = MEW_HEAP_EXACT + 57 - (unsigned)__builtin_clzll((unsigned long long)size | 1);

	return size < MEW_HEAP_EXACT ? (unsigned)size : power; /* both are ready: sizes are hard to predict */
}

enum mew_heap_event {
	MEW_HEAP_JOIN,           /* a new block */
	MEW_HEAP_LEAVE,          /* a tracked block was freed */
	MEW_HEAP_MOVE,           /* a tracked block was resized and moved */
	MEW_HEAP_RESIZE,         /* ... and stayed where it was */
	MEW_HEAP_ADOPT_MOVED,    /* an untracked block was resized: all of it joins */
	MEW_HEAP_ADOPT_IN_PLACE,
	MEW_HEAP_SHRINK,         /* a tracked block was resized in a pause: what it lost leaves, nothing joins */
	MEW_HEAP_FOREIGN,        /* an untracked block was freed */
	MEW_HEAP_FAILED          /* nothing was returned */
};

/* A block as the table knows it; all zero stands for none. */
struct mew_heap_block {
	size_t size, usable;
	uint32_t stack;
};

/* One event, in numbers; `event` is a constant wherever this is inlined. */
MEW_HEAP_INLINE void mew_heap_note(struct mew_heap_counts *c, enum mew_heap_event event, size_t size)
{
	switch (event) {
	case MEW_HEAP_LEAVE: c->frees++; return;
	case MEW_HEAP_FOREIGN: c->foreign_frees++; return;
	case MEW_HEAP_FAILED: c->failed++; return;
	case MEW_HEAP_SHRINK: return;
	case MEW_HEAP_JOIN: break;
	case MEW_HEAP_MOVE: c->reallocs_moved++; break;
	case MEW_HEAP_RESIZE: c->reallocs_in_place++; break;
	case MEW_HEAP_ADOPT_MOVED: c->reallocs_moved++; c->adopted++; break;
	case MEW_HEAP_ADOPT_IN_PLACE: c->reallocs_in_place++; c->adopted++; break;
	}
	c->sizes[mew_heap_class(size)]++;
	c->cumulative_bytes += size;
}

/* Does the event leave a block in the table? */
MEW_HEAP_INLINE bool mew_heap_enters(enum mew_heap_event event)
{
	return event != MEW_HEAP_LEAVE && event != MEW_HEAP_FOREIGN && event != MEW_HEAP_FAILED;
}

uint64_t mew_heap_allocations(const struct mew_heap_counts *c);

/* --- the capture -------------------------------------------------------------------------------------------------- */

struct mew_heap { /* one per process */
	/* read by every event */
	int open;           /* atomic: the window */
	int alone;          /* atomic: the window is open and no event yet came while the process had threads */
	unsigned session;   /* number of the capture; 0 before the first */
	struct mew_malloc_family next; /* a copy: one load less a call */
	int pid;            /* of the process that opened it */
	bool stacks;        /* which of the two ways of entering events */
	bool has_headers;   /* a block's size stands in front of it, as glibc's do */

	/* written by events: by the one thread, or under `lock` */
	unsigned lock __attribute__((aligned(64)));
	struct mew_heap_counts counts; /* of the one thread, and of threads that are gone */
	int64_t live, usable;           /* bytes of the tracked blocks: as asked for, and as the allocator made them */
	int64_t peak, peak_usable;      /* both at the moment when `live` was highest, once it has fallen */
	uint64_t signals;   /* atomic: calls from a signal handler in the middle of an event */
};
extern struct mew_heap mew_heap;

enum mew_heap_busy {
	MEW_HEAP_FREE,       /* the program's own code runs */
	MEW_HEAP_ALLOCATOR,  /* the allocator, or mew's set-up: calls are theirs and pass uncounted */
	MEW_HEAP_ACCOUNTING  /* an event is being entered: a call can only come from a signal handler */
};

struct mew_heap_share; /* memory_count.c */

struct mew_heap_thread {
	unsigned char busy; /* enum mew_heap_busy; these two first, for mew_heap_admits() */
	bool paused;
	bool ended;         /* its function has returned; TSD destructors and libc's own clean-up follow */
	unsigned session;   /* that `share` belongs to */
	const void *last;   /* the block it allocated last, if that is not freed */
	struct mew_heap_share *share;
	struct mew_unwind_thread *unwind;
	uint64_t allocations; /* by this thread, where there are several; of all captures */
	uint64_t before_turn; /* allocations before the running turn of the loop */
	bool has_turned;      /* it has completed a turn */
};
extern MEW_HOT_TLS struct mew_heap_thread mew_heap_self;

/* Is the window open, and may this event be entered without a lock, since no other thread exists? Context: malloc. */
MEW_HEAP_INLINE bool mew_heap_alone(void)
{
#ifdef MEW_ONE_THREAD_KNOWN
	return MEW_LIKELY(__atomic_load_n(&mew_heap.alone, __ATOMIC_RELAXED)) && MEW_LIKELY(__libc_single_threaded);
#else
	return false;
#endif
}

/* A call came while this thread was busy. Context: malloc. */
MEW_HEAP_INLINE void mew_heap_nested(const struct mew_heap_thread *self)
{
	if (self->busy == MEW_HEAP_ACCOUNTING)
		(void)__atomic_fetch_add(&mew_heap.signals, 1, __ATOMIC_RELAXED);
}

/* May a call of this thread bring a block? It is neither in a pause nor inside mew: one comparison. Context: malloc. */
MEW_HEAP_INLINE bool mew_heap_admits(const struct mew_heap_thread *self)
{
	uint16_t both;

	__builtin_memcpy(&both, self, sizeof both);
	if (MEW_LIKELY(both == 0))
		return true;
	mew_heap_nested(self);
	return false;
}

/*
 * Usable size of a block, as the allocator says it. glibc's own function also looks at the block behind, which is a
 * cache miss more (on 4096 blocks of mixed sizes 10 ns); where the word in front of a block was seen to hold the same
 * figure (memory.c tries before each capture), that word is read. Context: malloc.
 */
#define MEW_HEAP_HEADER_FLAGS ((size_t)7)
#define MEW_HEAP_HEADER_MAPPED ((size_t)2)
MEW_HEAP_INLINE size_t mew_heap_header_usable(const void *block)
{
	size_t header = ((const size_t *)block)[-1];

	return (header & ~MEW_HEAP_HEADER_FLAGS) -
	       ((header & MEW_HEAP_HEADER_MAPPED) != 0 ? 2 * sizeof header : sizeof header);
}

MEW_HEAP_INLINE size_t mew_heap_usable(const void *block)
{
	if (MEW_LIKELY(mew_heap.has_headers))
		return mew_heap_header_usable(block);
	return mew_heap.next.do_usable_size((void *)(uintptr_t)block);
}

/* Is `block`, which is being freed, the one this thread allocated last? Context: malloc. */
MEW_HEAP_INLINE bool mew_heap_is_temporary(struct mew_heap_thread *self, const void *block)
{
	if (self->last != block)
		return false;
	self->last = NULL; /* another thread may get the same address */
	return true;
}

/* The peak is complete when something goes that counted for it. Call before `live` falls. */
MEW_HEAP_INLINE bool mew_heap_crest(void)
{
	if (MEW_LIKELY(mew_heap.live <= mew_heap.peak))
		return false;
	mew_heap.peak = mew_heap.live;
	mew_heap.peak_usable = mew_heap.usable;
	return true;
}

/*
 * Short spin locks; waiting threads give their processor away.
 *
 * Returns  false in a forked child whose parent held the lock in a thread that the child does not have
 * Context  malloc
 */
bool mew_heap_lock_slow(unsigned *lock);
MEW_HEAP_INLINE bool mew_heap_lock(unsigned *lock)
{
	return MEW_LIKELY(!__atomic_exchange_n(lock, 1u, __ATOMIC_ACQUIRE)) || mew_heap_lock_slow(lock);
}
MEW_HEAP_INLINE void mew_heap_unlock(unsigned *lock)
{
	__atomic_store_n(lock, 0u, __ATOMIC_RELEASE);
}

/*
 * Around a lock that events take too, held outside of one: a signal handler that calls the allocator in between would
 * wait for its own thread for ever. Its calls are passed on and count as lost. Returns what end is given. Context: any.
 */
MEW_HEAP_INLINE unsigned char mew_heap_account_begin(void)
{
	unsigned char was = mew_heap_self.busy;

	mew_heap_self.busy = MEW_HEAP_ACCOUNTING;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return was;
}
MEW_HEAP_INLINE void mew_heap_account_end(unsigned char was)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	mew_heap_self.busy = was;
}

/* --- counting (memory_count.c) ------------------------------------------------------------------------------------ */

extern const struct mew_malloc_family mew_heap_count_family;

/* Open and close the window. Context: outside events; close: under mew_heap.lock, for whoever is past `alone`. */
void mew_heap_window_open(void);
void mew_heap_window_close(void);
/*
 * The window of another process, whose variable is mapped here; or of this one, in the middle of an event. Context:
 * any.
 */
void mew_heap_open_from_outside(struct mew_heap *heap);

/* Give the calling thread its share before the window, or take it back at the thread's end. Context: outside events. */
void mew_heap_count_join(struct mew_heap_thread *self);
void mew_heap_count_leave(struct mew_heap_thread *self);
/* Zero everything, threads ready. Context: no window. */
void mew_heap_count_reset(void);
/* Close the window; all figures of all threads are in mew_heap afterwards. */
void mew_heap_count_finish(void);
/* Forget the threads. Context: no window. */
void mew_heap_count_close(void);

/* Allocations and live bytes of all threads so far. Context: a thread in the window, outside events. */
void mew_heap_totals(uint64_t *allocations, int64_t *live);

/* --- iterations (memory_turns.c) ---------------------------------------------------------------------------------- */

/* Begin a window of so many benchmark threads. */
void mew_heap_turns_begin(unsigned threads);
/* The calling benchmark thread begins, or ended one turn of the loop with `iterations`. Context: in the window. */
void mew_heap_turns_join(struct mew_heap_thread *self);
void mew_heap_turn(struct mew_heap_thread *self, uint64_t iterations);

struct mew_sink;
void mew_heap_turns_drain(struct mew_sink *sink);

/* --- stacks (memory_capture.c) ------------------------------------------------------------------------------------ */

extern const struct mew_malloc_family mew_heap_capture_family;

/*
 * Reserve the tables. They stay until the capture after the next is opened: events that began in the window may end
 * late. Returns 0 or -1 without memory.
 */
int mew_heap_capture_open(uintptr_t entry_lo, uintptr_t entry_hi);
/* Learn the calling thread's stack. Returns 0 or -1. Context: outside events; may allocate. */
int mew_heap_capture_join(struct mew_heap_thread *self);
void mew_heap_capture_leave(struct mew_heap_thread *self);
void mew_heap_capture_reset(void);
void mew_heap_capture_finish(void);
void mew_heap_capture_static(struct mew_kept_static *s);

/* Push every stack and its figures. Context: drain; allocates. */
void mew_heap_capture_drain(struct mew_sink *sink, const struct mew_hooks_api *api);
/* Allocations whose stack found no room; bytes of memory in use for stacks. */
uint64_t mew_heap_capture_stackless(void);
size_t mew_heap_capture_bytes(void);

/* --- jemalloc's own figures (memory_jemalloc.c) ------------------------------------------------------------------- */

/* Read them at the edges of the window, if the allocator is jemalloc. Context: hooks not armed; may allocate. */
void mew_heap_jemalloc_open(const struct mew_hooks_api *api);
void mew_heap_jemalloc_close(void);
/* Push them, or why there are none. Context: drain. */
void mew_heap_jemalloc_drain(struct mew_sink *sink);

/* --- mappings (memory_mapped.c) and pools (memory_pools.c) -------------------------------------------------------- */

/*
 * Open and close the window of the series, and push its figures: with a reason where they cannot be had, which leaves
 * the rest of the row valid. What a series needs for its set of ranges or blocks is given back by close.
 *
 * Context  outside events; drain allocates
 */
void mew_heap_mapped_begin(const struct mew_hooks_api *api);
void mew_heap_mapped_end(const struct mew_hooks_api *api);
void mew_heap_mapped_drain(struct mew_sink *sink);
void mew_heap_mapped_close(void);
void mew_heap_mapped_static(struct mew_kept_static *s);
size_t mew_heap_mapped_bytes(void); /* in use for it; after the window */
/*
 * What was begun counts or not from now on; `variable`: of mew_heap_mapped_static() in another process, NULL: of this
 * one. Context: any.
 */
void mew_heap_mapped_gate(void *variable, bool open);

void mew_heap_pools_begin(const struct mew_hooks_api *api);
void mew_heap_pools_end(const struct mew_hooks_api *api);
void mew_heap_pools_drain(struct mew_sink *sink);
void mew_heap_pools_close(void);
void mew_heap_pools_static(struct mew_kept_static *s);
size_t mew_heap_pools_bytes(void);
void mew_heap_pools_gate(void *variable, bool open); /* as mew_heap_mapped_gate() */
#pragma GCC visibility pop

#endif
