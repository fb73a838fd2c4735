/*
 * span_registry.c - see span_registry.h.
 * Layer L3. Outside malloc; a mutex guards the hooks, the spans of the process and the free slots.
 *
 * A slot is mew's own memory, so nothing ever writes into a span whose frame is gone. One on the stack of its thread is
 * dead when it lies below the frame that calls, when its own marks are overwritten, or when a new one takes its place.
 */
#include "config.h"

#include "span_registry.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "memory_hooks.h"
#include "memory_span.h"
#include "modules.h"
#include "os.h"
#include "unwind.h"

#define BATCH_BYTES ((size_t)16384)

static struct {
	pthread_mutex_t lock;
	const struct mew_hooks_api *api;       /* while armed */
	unsigned session;                      /* rises when open spans lose the hooks */
	unsigned open;                         /* spans of this session */
	bool must_wait;
	struct mew_span_slot *of_process;      /* spans of the process, of all threads */
	struct mew_span_slot *spare;
	uint64_t serial;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static int set_up_error;

bool mew_spans_keep_out(bool out)
{
	bool was = mew_span_self.busy;

	mew_span_self.busy = out;
	return was;
}

/* What both ends of a span do first and last: its own calls do not count, and errno stays. */
struct entered {
	bool was_busy;
	int saved_errno;
};

static struct entered enter(void)
{
	struct entered e = { .saved_errno = errno };

	e.was_busy = mew_spans_keep_out(true);
	(void)pthread_mutex_lock(&registry.lock);
	return e;
}

static void leave(struct entered e)
{
	(void)pthread_mutex_unlock(&registry.lock);
	(void)mew_spans_keep_out(e.was_busy);
	errno = e.saved_errno;
}

/* --- the hooks; under the lock ------------------------------------------------------------------------------------ */

static int take_hooks(struct mew_error *err)
{
	const struct mew_hooks_api *api;
	int status;

	if (registry.api != NULL)
		return MEW_OK;
	status = mew_memory_find_hooks(&api, err);
	if (status != MEW_OK)
		return status;
	mew_span_next = api->next;
	if (api->arm(&mew_span_family) != 0)
		return mew_error_set(err, MEW_E_BUSY, "libmew_hooks is in use by another capture of this process");
	__atomic_store_n(&registry.api, api, __ATOMIC_RELEASE);
	return MEW_OK;
}

static void release_hooks(void)
{
	const struct mew_hooks_api *api = registry.api;

	if (api == NULL || registry.open != 0)
		return;
	__atomic_store_n(&registry.api, NULL, __ATOMIC_RELEASE);
	api->disarm();
}

bool mew_spans_hold_hooks(void)
{
	return __atomic_load_n(&registry.api, __ATOMIC_ACQUIRE) != NULL;
}

/* --- slots; under the lock ---------------------------------------------------------------------------------------- */

static struct mew_span_slot *take_slot(void)
{
	struct mew_span_slot *s = registry.spare, *batch;

	if (s == NULL) {
		batch = mew_os_map(BATCH_BYTES);
		for (size_t i = 0; batch != NULL && i < BATCH_BYTES / sizeof *batch; i++) {
			batch[i].next = registry.spare;
			registry.spare = &batch[i];
		}
		s = registry.spare;
	}
	if (s == NULL)
		return NULL;
	registry.spare = s->next;
	memset(s, 0, sizeof *s);
	return s;
}

static struct mew_span_slot **list_of(int scope)
{
	return scope == MEW_SPAN_PROCESS ? &registry.of_process : &mew_span_self.slots;
}

/* Take a slot out of its list; it is spare, but keeps what it says until the lock is given back. */
static void close_slot(struct mew_span_slot **link)
{
	struct mew_span_slot *s = *link;

	*link = s->next;
	if (s->session == registry.session) {
		registry.open--;
		if (s->scope == MEW_SPAN_PROCESS)
			(void)__atomic_fetch_sub(&mew_span_shared.open, 1, __ATOMIC_RELEASE);
	}
	s->next = registry.spare;
	registry.spare = s;
}

static struct mew_span_slot **find_slot(const struct mew_span *span)
{
	static const int scopes[] = { MEW_SPAN_THREAD, MEW_SPAN_PROCESS };

	for (size_t i = 0; span->self_ == span && i < MEW_COUNTOF(scopes); i++)
		for (struct mew_span_slot **at = list_of(scopes[i]); *at != NULL; at = &(*at)->next)
			if ((*at)->span == span && (*at)->serial == span->serial_)
				return at;
	return NULL;
}

/* --- the dead; under the lock ------------------------------------------------------------------------------------- */

static bool is_on_stack(const struct mew_span_thread *self, const void *at)
{
	return (uintptr_t)at >= self->stack_lo && (uintptr_t)at < self->stack_hi;
}

static bool is_dead(const struct mew_span_thread *self, const struct mew_span_slot *s, const void *frame)
{
	if (s->owner != self || !is_on_stack(self, s->span) || !is_on_stack(self, frame))
		return false;
	return (uintptr_t)s->span < (uintptr_t)frame || s->span->self_ != s->span || s->span->serial_ != s->serial;
}

static bool overlap(const struct mew_span *a, const struct mew_span *b)
{
	return (uintptr_t)a < (uintptr_t)(b + 1) && (uintptr_t)b < (uintptr_t)(a + 1);
}

/* `fresh` is about to be written; NULL for none. */
static void bury(struct mew_span_slot **at, const struct mew_span *fresh, const void *frame)
{
	while (*at != NULL) {
		if (is_dead(&mew_span_self, *at, frame) || (fresh != NULL && overlap(fresh, (*at)->span)))
			close_slot(at);
		else
			at = &(*at)->next;
	}
}

static void bury_all(const struct mew_span *fresh, const void *frame)
{
	bury(&mew_span_self.slots, fresh, frame);
	bury(&registry.of_process, fresh, frame);
	mew_span_set_alarm(&mew_span_self);
}

/* --- threads and children ----------------------------------------------------------------------------------------- */

/* The thread's stack goes, and with it all that lies there; so do the spans that only this thread could end. */
static void end_thread(void *data)
{
	struct mew_span_thread *self = data;
	struct entered e = enter();

	while (self->slots != NULL)
		close_slot(&self->slots);
	for (struct mew_span_slot **at = &registry.of_process; *at != NULL;) {
		if ((*at)->owner == self && is_on_stack(self, (*at)->span))
			close_slot(at);
		else
			at = &(*at)->next;
	}
	self->alarm = 0;
	mew_os_unmap(self->unwind, sizeof *self->unwind);
	self->unwind = NULL;
	self->stack_lo = self->stack_hi = 0;
	release_hooks();
	leave(e);
}

/* The hooks run disarmed in a child; the lock and the lists may be in the hands of a thread that it does not have. */
static void become_child(void)
{
	(void)pthread_mutex_init(&registry.lock, NULL);
	registry.of_process = NULL;
	registry.spare = NULL;
	registry.api = NULL;
	registry.session++;
	registry.open = 0;
	mew_span_shared.open = 0;
	mew_span_self.alarm = 0;
}

static void set_up(void)
{
	set_up_error = pthread_key_create(&thread_key, end_thread);
	if (set_up_error == 0)
		set_up_error = pthread_atfork(NULL, NULL, become_child);
}

static int join(struct mew_error *err)
{
	struct mew_span_thread *self = &mew_span_self;

	if (self->stack_hi != 0)
		return MEW_OK;
	(void)pthread_once(&once, set_up);
	if (set_up_error != 0 || pthread_setspecific(thread_key, self) != 0)
		return mew_error_set(err, MEW_E_NOMEM,
				     "no memory, or no thread key left, to watch for the thread's end");
	if (mew_os_stack_bounds(&self->stack_lo, &self->stack_hi) != 0)
		return mew_error_set(err, MEW_E_NOMEM, "the bounds of this thread's stack cannot be found: is /proc "
						       "mounted?");
	return MEW_OK;
}

/* Stacks are an extra: without memory for them, a budget is still checked. */
static void join_unwinder(void)
{
	struct mew_span_thread *self = &mew_span_self;
	struct mew_unwind_thread *unwind = self->unwind;

	(void)mew_modules_renew();
	if (unwind != NULL)
		return;
	unwind = mew_os_map(sizeof *unwind);
	if (unwind == NULL)
		return;
	unwind->stack_lo = self->stack_lo;
	unwind->stack_hi = self->stack_hi;
	self->unwind = unwind;
}

/* --- begin and end ------------------------------------------------------------------------------------------------ */

static struct mew_span_totals read_totals(int scope)
{
	struct mew_span_totals *shared = &mew_span_shared.totals;

	if (scope == MEW_SPAN_THREAD)
		return mew_span_self.totals;
	return (struct mew_span_totals){
		.allocations = __atomic_load_n(&shared->allocations, __ATOMIC_ACQUIRE),
		.bytes = __atomic_load_n(&shared->bytes, __ATOMIC_ACQUIRE),
		.frees = __atomic_load_n(&shared->frees, __ATOMIC_ACQUIRE),
		.reallocs = __atomic_load_n(&shared->reallocs, __ATOMIC_ACQUIRE),
	};
}

static void fill_slot(struct mew_span_slot *s, struct mew_span *span, int scope, uint64_t limit)
{
	struct mew_span_slot **list = list_of(scope);

	memset(span, 0, sizeof *span);
	span->self_ = span;
	span->serial_ = ++registry.serial;
	s->span = span;
	s->serial = span->serial_;
	s->owner = &mew_span_self;
	s->session = registry.session;
	s->scope = scope;
	s->start = read_totals(scope);
	if (limit == MEW_SPAN_NO_LIMIT || __builtin_add_overflow(s->start.allocations, limit, &s->limit))
		s->limit = UINT64_MAX;
	s->next = *list;
	*list = s;
	registry.open++;
	if (scope == MEW_SPAN_PROCESS)
		(void)__atomic_fetch_add(&mew_span_shared.open, 1, __ATOMIC_RELEASE);
}

static int begin(struct mew_span *span, int scope, uint64_t limit, const void *frame, struct mew_error *err)
{
	struct mew_span_slot *slot;
	int status;

	if (registry.must_wait) /* first: what comes next may allocate, and the capture would count it */
		return mew_error_set(err, MEW_E_BUSY,
				     "a memory pass of mew is running in this process: begin the span after it, or "
				     "outside the benchmark's body");
	status = join(err);
	if (status != MEW_OK)
		return status;
	bury_all(span, frame);
	status = take_hooks(err);
	if (status != MEW_OK)
		return status;
	slot = take_slot();
	if (slot == NULL) {
		release_hooks();
		return mew_error_set(err, MEW_E_NOMEM, "no memory to begin the span");
	}
	if (limit != MEW_SPAN_NO_LIMIT)
		join_unwinder();
	fill_slot(slot, span, scope, limit);
	mew_span_set_alarm(&mew_span_self);
	return MEW_OK;
}

int mew_spans_begin(struct mew_span *span, int scope, uint64_t limit, const void *frame, struct mew_error *err)
{
	struct entered e = enter();
	int status = begin(span, scope, limit, frame, err);

	if (status != MEW_OK)
		memset(span, 0, sizeof *span);
	/* a crash inside the allocator that a test framework left by longjmp must not silence the thread for good */
	e.was_busy = false;
	leave(e);
	return status;
}

static int report(const struct mew_span_slot *s, struct mew_span *span, struct mew_error *err)
{
	struct mew_span_totals now = read_totals(s->scope);

	if (s->session != registry.session)
		return mew_error_set(err, MEW_E_LOST,
				     "a memory pass of mew took the hooks while the span was open, or this is a forked "
				     "child, which is not counted: begin the span after it");
	span->allocations = now.allocations - s->start.allocations;
	span->cumulative_bytes = now.bytes - s->start.bytes;
	span->frees = now.frees - s->start.frees;
	span->net_blocks = (int64_t)(span->allocations - (now.reallocs - s->start.reallocs) - span->frees);
	return MEW_OK;
}

int mew_spans_end(struct mew_span *span, const void *frame, struct mew_span_stack *stacks, size_t *nstacks,
		  struct mew_error *err)
{
	struct entered e = enter();
	struct mew_span_slot **at = find_slot(span);
	int status;

	if (at != NULL) {
		status = report(*at, span, err);
		if (stacks != NULL) {
			*nstacks = (*at)->nstacks;
			memcpy(stacks, (*at)->stacks, (*at)->nstacks * sizeof *stacks);
		}
		close_slot(at);
		span->self_ = NULL;
	} else {
		status = mew_error_set(err, MEW_E_INVALID,
				       "this span is not open here: it was not begun, was ended before, was moved, "
				       "counts another thread, or was begun before a fork");
	}
	bury_all(NULL, frame);
	release_hooks();
	leave(e);
	return status;
}

void mew_spans_sweep(const void *frame)
{
	struct entered e = enter();

	bury_all(NULL, frame);
	release_hooks();
	leave(e);
}

void mew_spans_drop(struct mew_span *span, const void *frame)
{
	struct mew_error unused;

	(void)mew_spans_end(span, frame, NULL, NULL, &unused);
}

/* --- beside a memory capture -------------------------------------------------------------------------------------- */

void mew_spans_give_way(void)
{
	struct entered e = enter();

	registry.must_wait = true;
	if (registry.open != 0) {
		registry.session++;
		registry.open = 0;
		__atomic_store_n(&mew_span_shared.open, 0, __ATOMIC_RELEASE);
	}
	release_hooks();
	leave(e);
}

void mew_spans_come_back(void)
{
	struct entered e = enter();

	registry.must_wait = false;
	leave(e);
}

bool mew_spans_must_wait(void)
{
	struct entered e = enter();
	bool wait = registry.must_wait;

	leave(e);
	return wait;
}
