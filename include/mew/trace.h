/*
 * mew/trace.h - a program's own records on the timeline of a traced run (`mew run --trace`, mew(1)).
 * Layer L0. Where no trace is asked for, each of these is one load and one branch.
 *
 * Names are not copied: they are literals, or come from mew_trace_name(). Times are nanoseconds of mew_trace_now().
 * Records wait in a ring of fixed size for each thread and are written between the bodies of benchmarks and at exit;
 * what does not fit is dropped and counted. Nothing here allocates or takes a lock, but for mew_trace_name(). In a
 * child made by fork(), which may leave by _exit() or a signal, each record is written at once instead, by system
 * calls.
 */
#ifndef MEW_TRACE_H
#define MEW_TRACE_H

#include <mew.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Private: not 0 while records are taken. */
extern MEW_API int mew_trace_active_;

struct mew_section { /* private members */
	const char *name_;
	const char *stream_;
	uint64_t start_; /* 0: not recorded */
};
struct mew_stream {
	const char *name_;
};

/* CLOCK_MONOTONIC, never 0. Context: any thread. */
MEW_API uint64_t mew_trace_now(void);

/*
 * A name that lives as long as the process, for names that are made at run time; equal texts share one.
 *
 * text     copied
 * Returns  never NULL: without memory a constant text
 * Context  any thread, outside timing loops: allocates
 */
MEW_API const char *mew_trace_name(const char *text);

/* Private: the halves that act. */
MEW_API uint64_t mew_section_open_(const char *name);
MEW_API void mew_section_put_(const struct mew_section *s);
MEW_API void mew_mark_put_(const char *name);
MEW_API int mew_stream_put_(const char *stream, const char *name, uint64_t start_ns, uint64_t end_ns);

/*
 * A stretch of the calling thread's time. Sections nest; one that overlaps its neighbour in part is drawn on a line of
 * its own. Both ends are to be on one thread: one that ends on another is drawn on a line of its own, and stays open on
 * the thread it began on. One that is never ended, since a longjmp or a failed assertion left it, ends
 * where one around it ends, or the body, or the thread, and is marked `unfinished`. Context: any thread, also in a
 * timing loop.
 */
static inline struct mew_section mew_section_begin(const char *name)
{
	struct mew_section s = { name, MEW_NULL_, 0 };

	if (__builtin_expect(mew_trace_active_, 0))
		s.start_ = mew_section_open_(name);
	return s;
}
static inline void mew_section_end(struct mew_section *s)
{
	if (__builtin_expect(s->start_ != 0, 0))
		mew_section_put_(s);
	s->start_ = 0;
}

/*
 * mew_section(name) { ... }   the block is a section, on every way out of it; a break leaves this block only
 */
#define mew_section(name) MEW_SECTION_IN_(name, MEW_JOIN_(mew_section_, __LINE__), MEW_JOIN_(mew_once_, __LINE__))
#define MEW_SECTION_IN_(name, section, once)                                                                           \
	for (struct mew_section section __attribute__((cleanup(mew_section_end))) = mew_section_begin(name),           \
	     *once = &section;                                                                                         \
	     once; once = MEW_NULL_)

/* A moment of the calling thread. Context: any thread, also in a timing loop. */
static inline void mew_mark(const char *name)
{
	if (__builtin_expect(mew_trace_active_, 0))
		mew_mark_put_(name);
}

/*
 * A line of its own for what belongs to no thread, such as requests: its sections may overlap, begin on one thread and
 * end on another (mew_section_end() ends them), or lie in the past.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* g++ would warn that it has the name of a constructor */
static inline struct mew_stream mew_stream(const char *name)
{
	struct mew_stream s = { name };

	return s;
}
#pragma GCC diagnostic pop
static inline struct mew_section mew_stream_begin(struct mew_stream stream, const char *name)
{
	struct mew_section s = { name, stream.name_, 0 };

	if (__builtin_expect(mew_trace_active_, 0))
		s.start_ = mew_trace_now();
	return s;
}

/*
 * A section of a stream whose ends are known.
 *
 * start_ns, end_ns  of mew_trace_now()'s clock; may lie before the trace
 * Returns  MEW_OK; MEW_E_INVALID for an empty name or an end before its start
 * Context  any thread
 */
static inline int mew_stream_section(struct mew_stream stream, const char *name, uint64_t start_ns, uint64_t end_ns)
{
	if (__builtin_expect(mew_trace_active_, 0))
		return mew_stream_put_(stream.name_, name, start_ns, end_ns);
	return MEW_OK;
}

#ifdef __cplusplus
}
#endif

#endif
