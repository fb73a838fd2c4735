/*
 * trace.h - records of the timeline, taken without locks or heap: a ring for each thread.
 * Layer L1. Any thread, also in a window; not in signal handlers. trace_log.h writes them to a file.
 */
#ifndef MEW_TRACE_RING_H
#define MEW_TRACE_RING_H

#include "ring.h"

#define MEW_TRACE_THREADS 256u
#define MEW_TRACE_RECORDS 16384u       /* in each ring */
#define MEW_TRACE_OWN_TID 0x800000     /* benchmark thread i of any block; above what the kernel hands out */

enum mew_trace_kind {
	MEW_TRACE_SLICE,
	MEW_TRACE_UNFINISHED,
	MEW_TRACE_BEGIN,          /* of a section, where mew_trace_at_once() asks for it; then one of these two ends it: */
	MEW_TRACE_END,
	MEW_TRACE_UNFINISHED_END,
	MEW_TRACE_ASYNC,
	MEW_TRACE_MARK,
	MEW_TRACE_COUNTER
};

struct mew_trace_record {
	enum mew_trace_kind kind;
	const char *group; /* category; of a stream its name, of a counter its series */
	const char *name;
	uint64_t time_ns;
	uint64_t value;    /* duration in ns, or the counter's value */
};

enum mew_trace_use { MEW_TRACE_FREE, MEW_TRACE_CLAIMED, MEW_TRACE_USED, MEW_TRACE_LEFT };

#define MEW_TRACE_OPEN 64u /* sections inside each other that are remembered */
struct mew_trace_open { /* a section that has begun */
	const char *name;
	uint64_t start_ns;
};

struct mew_trace_thread { /* use is atomic; the rest is written before it becomes USED */
	int use;
	int owner;      /* kernel id of the thread */
	int tid;        /* shown */
	char name[32];
	bool announced; /* its name is in the file; the log's */
	struct mew_ring ring;
	struct mew_trace_open open[MEW_TRACE_OPEN]; /* outermost first; the thread's own until it is gone */
	unsigned nopen, beyond; /* there; and deeper than that */
	uint64_t entered_ns;    /* of a benchmark thread; 0: it is none */
	uint64_t settled_ns;    /* what began before this and is not open was ended for it */
};

struct mew_trace_threads {
	struct mew_trace_thread list[MEW_TRACE_THREADS];
	uint64_t lost; /* records of threads beyond the list, and those that the file has no room for; atomic */
	unsigned freed; /* how often a place became free; atomic */
};
extern struct mew_trace_threads mew_trace_threads_;

/* Whether records are taken: one load. */
bool mew_trace_is_on(void);

/* Take a record; dropped and counted when the ring is full. */
void mew_trace_push(const struct mew_trace_record *record);

/* The calling thread has its ring from now on, so that its first record in a window maps nothing. */
void mew_trace_thread_ready(void);

/*
 * Benchmark thread `index` of a block: it has its ring before the window, and the same line of the timeline in all
 * blocks. leave: the thread ends, and what it did since then is a slice called `name`; call it on the same thread.
 */
void mew_trace_thread_enter(unsigned index);
void mew_trace_thread_leave(const char *name);

/* In a forked child: what was recorded before is the parent's, and the calling thread is the only one. */
void mew_trace_forked(void);

/*
 * From now on `write` takes each record, on its thread (NULL: one that found no place), and a section that begins is a
 * record too: for a process that may end without a word. NULL: records wait in the rings.
 */
typedef void mew_trace_write_fn(struct mew_trace_thread *thread, const struct mew_trace_record *record);
void mew_trace_at_once(mew_trace_write_fn *write);

/* Sections that are open on the calling thread. */
unsigned mew_trace_sections(void);
/* End, as unfinished, those that were opened since there were so many. Context: outside windows. */
void mew_trace_settle(unsigned sections);

#endif
