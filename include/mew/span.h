/*
 * mew/span.h - allocation figures of a piece of code outside benchmarks, and budgets on them in any unit test.
 * Part of mew.h, which includes it; not to be included alone. Layer L2.
 *
 * Needs libmew_hooks in the process, as the memory pass does. Only one of the two counts at a time: see mew_span_end().
 */
#ifndef MEW_SPAN_H
#define MEW_SPAN_H

#ifndef MEW_H
#error "include <mew.h>, which brings this file in"
#endif

enum mew_span_scope {
	MEW_SPAN_THREAD = 0, /* calls of the thread that begins the span */
	MEW_SPAN_PROCESS = 1 /* calls of all threads */
};

/*
 * The calls of the malloc family between mew_span_begin() and mew_span_end(), which fills it; all figures are exact.
 *
 * allocations       calls that returned a block: malloc, calloc, the aligned family, and every successful realloc
 * cumulative_bytes  what these calls asked for, added up
 * frees             calls that released a block, older blocks included; realloc(p, 0) where the allocator frees then
 * net_blocks        blocks that came minus blocks that went; below zero when more older blocks went
 */
struct mew_span {
	uint64_t allocations, cumulative_bytes, frees;
	int64_t net_blocks;
	const void *self_;
	uint64_t serial_;
	uint64_t reserved_[2];
};

/*
 * Begin to count. Spans nest, may overlap in any order, and may be open on several threads at once; what an inner span
 * counts, the outer ones count too.
 *
 * span     borrowed until mew_span_end(); zeroed; must not move. One in a stack frame that is left by longjmp, or on a
 *          thread that ends, is discarded; one in static or heap memory stays open until it is ended
 * scope    enum mew_span_scope
 * Returns  MEW_OK; MEW_E_INVALID; MEW_E_UNSUPPORTED when libmew_hooks is not in the process or not first; MEW_E_BUSY
 *          while a memory pass of mew runs in this process; MEW_E_NOMEM
 * Context  any thread, not signal
 */
MEW_API int mew_span_begin(struct mew_span *span, enum mew_span_scope scope);

/*
 * Stop counting and fill the figures.
 *
 * Returns  MEW_OK; MEW_E_INVALID for a span that is not open (one of another thread, unless its scope is the process);
 *          MEW_E_LOST, without figures, when a memory pass took the hooks in between, or in a forked child
 * Context  a span of the thread: that thread; one of the process: any thread
 */
MEW_API int mew_span_end(struct mew_span *span);

/* --- budgets ---------------------------------------------------------------------------------------------------- */

/* What a budget's block did. Read through the pointer only; new members come at the end. */
struct mew_span_failure {
	int status;       /* MEW_OK: more allocations than allowed; else they cannot be counted, and text says why */
	uint64_t count;   /* allocations of the block; 0 when they cannot be counted */
	uint64_t budget;
	const char *file; /* of the block */
	int line;
	const char *text; /* a sentence, then the stacks of the first allocations beyond the budget; many lines */
	void (*handler_)(const struct mew_span_failure *failure, void *data);
	void *data_;
};

/*
 * Is told of every budget that was exceeded, on the thread of its block and after everything was closed: it may longjmp
 * (cmocka's fail_msg does) or throw. When it returns, the program goes on behind the block. A budget that cannot be
 * checked is told before its block, which then runs unchecked.
 *
 * failure  lives until the next failure of this thread
 */
typedef void mew_span_failure_fn(const struct mew_span_failure *failure, void *data);

/*
 * Choose who is told, for the whole process. Without a handler (NULL) the text goes to standard error and abort() ends
 * the process. Context: any thread.
 */
MEW_API void mew_span_on_failure(mew_span_failure_fn *handler, void *data);

/*
 * mew_assert_allocs_le(n) { ... }   the block makes at most n allocations on this thread, or the handler is called
 * mew_assert_no_alloc { ... }       none
 *
 * n is evaluated once. Budgets nest. A block that is left by break, return, goto or an exception is closed without a
 * verdict; continue ends it with one. Where nothing can be counted the handler is called too, with a status, since a
 * budget that was not checked is not a pass. Exempt are blocks in a benchmark's body where mew itself has the hooks or
 * put them aside: in the window of a memory pass (its warm-up checks them), and in the passes of mew_main() and `mew
 * run` for time and CPU, which run at the native speed of malloc.
 */
#define mew_assert_allocs_le(n) MEW_BUDGET_IN_(n, MEW_JOIN_(mew_budget_, __LINE__))
#define mew_assert_no_alloc mew_assert_allocs_le(0)
#define MEW_BUDGET_IN_(n, budget)                                                                                      \
	for (struct mew_budget_ budget __attribute__((cleanup(mew_budget_leave_))) =                                   \
		     mew_budget_make_(MEW_CAST_(uint64_t, n), __FILE__, __LINE__);                                     \
	     mew_budget_turn_(&budget);)

/* Private: what the macros expand to. */
struct mew_budget_ {
	struct mew_span span;
	uint64_t limit;
	const char *file;
	int line;
	int stage;
};
enum mew_budget_stage_ { MEW_BUDGET_NEW_ = 0, MEW_BUDGET_COUNTS_ = 1, MEW_BUDGET_DONE_ = 2 };
MEW_API const struct mew_span_failure *mew_budget_open_(struct mew_budget_ *b);
MEW_API const struct mew_span_failure *mew_budget_close_(struct mew_budget_ *b);
MEW_API void mew_budget_drop_(struct mew_budget_ *b);

static inline struct mew_budget_ mew_budget_make_(uint64_t limit, const char *file, int line)
{
	struct mew_budget_ b;

	__builtin_memset(&b, 0, sizeof b);
	b.limit = limit;
	b.file = file;
	b.line = line;
	return b;
}

/* The handler is called from here, so that what it throws passes no frame of the library. */
static inline int mew_budget_turn_(struct mew_budget_ *b)
{
	int is_new = b->stage == MEW_BUDGET_NEW_;
	const struct mew_span_failure *failure = is_new ? mew_budget_open_(b) : mew_budget_close_(b);

	if (failure != MEW_NULL_)
		failure->handler_(failure, failure->data_);
	return is_new;
}

static inline void mew_budget_leave_(struct mew_budget_ *b)
{
	if (b->stage == MEW_BUDGET_COUNTS_)
		mew_budget_drop_(b);
}

#endif
