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

/* Code of every event: whatever the compiler thinks of its size, a call and a switch cost more than the event. */
#define MEW_HEAP_INLINE static inline __attribute__((always_inline))

#pragma GCC visibility push(hidden)

/* --- figures ---------------------------------------------------------------------------------------------------- */

struct mew_heap_counts {
	uint64_t allocations, cumulative_bytes, frees, reallocs_moved, reallocs_in_place;
	uint64_t failed, foreign_frees, adopted, lost;
};

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
	c->allocations++;
	c->cumulative_bytes += size;
}

/* Does the event leave a block in the table? */
MEW_HEAP_INLINE bool mew_heap_enters(enum mew_heap_event event)
{
	return event != MEW_HEAP_LEAVE && event != MEW_HEAP_FOREIGN && event != MEW_HEAP_FAILED;
}

/* --- the capture -------------------------------------------------------------------------------------------------- */

struct mew_heap { /* one per process */
	/* read by every event */
	int open;           /* atomic: the window */
	int alone;          /* atomic: the window is open and no event yet came while the process had threads */
	unsigned session;   /* number of the capture; 0 before the first */
	const struct mew_malloc_family *next;
	int pid;            /* of the process that opened it */
	bool stacks;        /* which of the two ways of entering events */

	/* written by events: by the one thread, or under `lock` */
	unsigned lock __attribute__((aligned(64)));
	struct mew_heap_counts counts; /* of the one thread, and of threads that are gone */
	int64_t live, peak;
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
	unsigned char busy; /* enum mew_heap_busy */
	bool paused;
	bool ended;         /* its function has returned; TSD destructors and libc's own clean-up follow */
	unsigned session;   /* that `share` belongs to */
	struct mew_heap_share *share;
	struct mew_unwind_thread *unwind;
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

/* --- counting (memory_count.c) ------------------------------------------------------------------------------------ */

extern const struct mew_malloc_family mew_heap_count_family;

/* Open and close the window. Context: outside events; close: under mew_heap.lock, for whoever is past `alone`. */
void mew_heap_window_open(void);
void mew_heap_window_close(void);

/* Give the calling thread its share before the window, or take it back at the thread's end. Context: outside events. */
void mew_heap_count_join(struct mew_heap_thread *self);
void mew_heap_count_leave(struct mew_heap_thread *self);
/* Zero everything, threads ready. Context: no window. */
void mew_heap_count_reset(void);
/* Close the window; all figures of all threads are in mew_heap afterwards. */
void mew_heap_count_finish(void);
/* Forget the threads. Context: no window. */
void mew_heap_count_close(void);

/* --- stacks (memory_capture.c) ------------------------------------------------------------------------------------ */

extern const struct mew_malloc_family mew_heap_capture_family;

/* Reserve the tables. Returns 0 or -1 without memory. */
int mew_heap_capture_open(uintptr_t entry_lo, uintptr_t entry_hi);
/* Learn the calling thread's stack. Returns 0 or -1. Context: outside events; may allocate. */
int mew_heap_capture_join(struct mew_heap_thread *self);
void mew_heap_capture_leave(struct mew_heap_thread *self);
void mew_heap_capture_reset(void);
void mew_heap_capture_finish(void);
void mew_heap_capture_close(void);

struct mew_sink;
/* Push every stack and its figures. Context: drain; allocates. */
void mew_heap_capture_drain(struct mew_sink *sink, const struct mew_hooks_api *api);
#pragma GCC visibility pop

#endif
