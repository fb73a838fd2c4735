/*
 * span.c - the public side of spans and budgets: arguments, the verdict, the handler.
 * Layer L6. Any thread; no lock is held and no call is open when the user's handler runs.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "error.h"
#include "memory_span.h"
#include "mew.h"
#include "span_registry.h"
#include "span_text.h"
#include "worker.h"

#define NO_MEMORY_TEXT "a budget of allocations failed, and there is no memory to say more\n"

/* --- spans ------------------------------------------------------------------------------------------------------ */

MEW_NOINLINE int mew_span_begin(struct mew_span *span, enum mew_span_scope scope)
{
	struct mew_error *err = mew_error_thread();

	if (span == NULL)
		return mew_error_set(err, MEW_E_INVALID, "mew_span_begin() was given no span");
	if (scope != MEW_SPAN_THREAD && scope != MEW_SPAN_PROCESS)
		return mew_error_set(err, MEW_E_INVALID, "%d is no scope of a span: use MEW_SPAN_THREAD or "
							 "MEW_SPAN_PROCESS", (int)scope);
	return mew_spans_begin(span, (int)scope, MEW_SPAN_NO_LIMIT, __builtin_frame_address(0), err);
}

MEW_NOINLINE int mew_span_end(struct mew_span *span)
{
	struct mew_error *err = mew_error_thread();

	if (span == NULL)
		return mew_error_set(err, MEW_E_INVALID, "mew_span_end() was given no span");
	return mew_spans_end(span, __builtin_frame_address(0), NULL, NULL, err);
}

/* --- the handler ------------------------------------------------------------------------------------------------ */

static void print_and_abort(const struct mew_span_failure *failure, void *data)
{
	(void)data;
	(void)fputs(failure->text, stderr);
	abort();
}

static struct {
	pthread_mutex_t lock;
	mew_span_failure_fn *call;
	void *data;
} handler = { .lock = PTHREAD_MUTEX_INITIALIZER };

void mew_span_on_failure(mew_span_failure_fn *call, void *data)
{
	(void)pthread_mutex_lock(&handler.lock);
	handler.call = call;
	handler.data = data;
	(void)pthread_mutex_unlock(&handler.lock);
}

/* --- the failure of this thread --------------------------------------------------------------------------------- */

static _Thread_local struct mew_span_failure last;
static pthread_once_t text_once = PTHREAD_ONCE_INIT;
static pthread_key_t text_key; /* the text goes with its thread */
static bool text_key_exists;

static void make_text_key(void)
{
	text_key_exists = pthread_key_create(&text_key, free) == 0;
}

/* The handler may never return, so the text stays until the next one. */
static const char *keep_text(char *text)
{
	char *old;

	(void)pthread_once(&text_once, make_text_key);
	if (text != NULL && text_key_exists) {
		old = pthread_getspecific(text_key);
		if (pthread_setspecific(text_key, text) == 0) {
			free(old);
			return text;
		}
	}
	free(text);
	return NO_MEMORY_TEXT;
}

static const struct mew_span_failure *fail(const struct mew_budget_ *b, int status, const char *why,
					   const struct mew_span_stack *stacks, size_t n)
{
	bool was_out = mew_spans_keep_out(true);

	last = (struct mew_span_failure){ .status = status, .budget = b->limit, .file = b->file, .line = b->line };
	last.count = status == MEW_OK ? b->span.allocations : 0;
	last.text = keep_text(mew_span_text(&last, why, stacks, n));
	(void)pthread_mutex_lock(&handler.lock);
	last.handler_ = handler.call != NULL ? handler.call : print_and_abort;
	last.data_ = handler.data;
	(void)pthread_mutex_unlock(&handler.lock);
	(void)mew_spans_keep_out(was_out);
	return &last;
}

/* --- budgets ---------------------------------------------------------------------------------------------------- */

/* This worker has another malloc before the hooks, for the native speed of timing and sampling. Atomic. */
static bool is_displaced;

/* Does the block run unchecked without a word, because mew itself has the hooks, or put them aside? */
static bool is_exempt(int status)
{
	if (status == MEW_E_BUSY)
		return mew_spans_must_wait();
	if (status != MEW_E_UNSUPPORTED || !mew_worker_is_running())
		return false;
	__atomic_store_n(&is_displaced, true, __ATOMIC_RELAXED); /* a timing loop need not pay for the question again */
	return true;
}

MEW_NOINLINE const struct mew_span_failure *mew_budget_open_(struct mew_budget_ *b)
{
	struct mew_error *err = mew_error_thread();
	const struct mew_span_failure *failure = NULL;
	int saved = errno, status;

	if (__atomic_load_n(&is_displaced, __ATOMIC_RELAXED)) {
		b->stage = MEW_BUDGET_DONE_;
		return NULL;
	}
	if (b->limit > INT64_MAX)
		status = mew_error_set(err, MEW_E_INVALID, "a budget cannot be negative");
	else
		status = mew_spans_begin(&b->span, MEW_SPAN_THREAD, b->limit, __builtin_frame_address(0), err);
	b->stage = status == MEW_OK ? MEW_BUDGET_COUNTS_ : MEW_BUDGET_DONE_;
	if (status != MEW_OK && !is_exempt(status))
		failure = fail(b, status, err->text, NULL, 0);
	errno = saved;
	return failure;
}

MEW_NOINLINE const struct mew_span_failure *mew_budget_close_(struct mew_budget_ *b)
{
	struct mew_span_stack stacks[MEW_SPAN_STACKS];
	struct mew_error *err = mew_error_thread();
	const struct mew_span_failure *failure = NULL;
	int saved = errno, status;
	size_t n = 0;

	if (b->stage != MEW_BUDGET_COUNTS_)
		return NULL;
	b->stage = MEW_BUDGET_DONE_;
	status = mew_spans_end(&b->span, __builtin_frame_address(0), stacks, &n, err);
	if (status != MEW_OK)
		failure = fail(b, status, err->text, NULL, 0);
	else if (b->span.allocations > b->limit)
		failure = fail(b, MEW_OK, NULL, stacks, n);
	errno = saved;
	return failure;
}

MEW_NOINLINE void mew_budget_drop_(struct mew_budget_ *b)
{
	b->stage = MEW_BUDGET_DONE_;
	mew_spans_drop(&b->span, __builtin_frame_address(0));
}
