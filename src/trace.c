/*
 * trace.c - the rings of the timeline and the calls of mew/trace.h that fill them.
 * Layer L1. Any thread, also in a window: no locks, no heap; a thread's first record maps its ring. In a forked child
 * each record is written at once.
 */
#include "config.h"

#include "trace.h"

#include <string.h>
#include <sys/prctl.h>

#include "error.h"
#include "mew/trace.h"
#include "os.h"

#include "hotpath.h"

int mew_trace_active_;
struct mew_trace_threads mew_trace_threads_;

static MEW_HOT_TLS struct mew_trace_thread *mine;

bool mew_trace_is_on(void)
{
	return __atomic_load_n(&mew_trace_active_, __ATOMIC_RELAXED) != 0;
}

static mew_trace_write_fn *write_at_once;

void mew_trace_at_once(mew_trace_write_fn *write)
{
	write_at_once = write;
}

static MEW_HOT_TLS unsigned refused; /* 1 more than `freed` was when there was no place */

/* A free place becomes this thread's; NULL when there is none: then it looks again when one was freed. */
static struct mew_trace_thread *join(void)
{
	unsigned freed = __atomic_load_n(&mew_trace_threads_.freed, __ATOMIC_ACQUIRE);

	if (refused == freed + 1)
		return NULL;
	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++) {
		struct mew_trace_thread *t = &mew_trace_threads_.list[i];
		int expected = MEW_TRACE_FREE;

		if (!__atomic_compare_exchange_n(&t->use, &expected, MEW_TRACE_CLAIMED, false, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		if (t->ring.records == NULL &&
		    mew_ring_init(&t->ring, sizeof(struct mew_trace_record), MEW_TRACE_RECORDS) != 0) {
			__atomic_store_n(&t->use, MEW_TRACE_FREE, __ATOMIC_RELEASE);
			return NULL;
		}
		t->owner = t->tid = mew_os_tid();
		t->announced = false;
		t->nopen = t->beyond = 0;
		t->entered_ns = t->settled_ns = 0;
		(void)prctl(PR_GET_NAME, t->name);
		__atomic_store_n(&t->use, MEW_TRACE_USED, __ATOMIC_RELEASE);
		return t;
	}
	refused = freed + 1;
	return NULL;
}

void mew_trace_push(const struct mew_trace_record *record)
{
	if (mine == NULL)
		mine = join();
	if (write_at_once != NULL)
		write_at_once(mine, record);
	else if (mine != NULL)
		(void)mew_ring_push(&mine->ring, record);
	else
		(void)__atomic_fetch_add(&mew_trace_threads_.lost, 1, __ATOMIC_RELAXED);
}

void mew_trace_thread_ready(void)
{
	if (mew_trace_is_on() && mine == NULL)
		mine = join();
}

void mew_trace_thread_enter(unsigned index)
{
	unsigned rest = index, at = sizeof "benchmark thread " - 1;

	if (!mew_trace_is_on())
		return;
	if (mine == NULL)
		mine = join();
	if (mine == NULL)
		return;
	mine->tid = MEW_TRACE_OWN_TID + (int)index;
	mine->entered_ns = mew_trace_now();
	memcpy(mine->name, "benchmark thread ", at);
	for (unsigned power = 1000; power > 0; power /= 10) /* at most 1024 of them */
		if (index >= power || power == 1) {
			mine->name[at++] = (char)('0' + rest / power);
			rest %= power;
		}
	mine->name[at] = '\0';
}

uint64_t mew_trace_now(void)
{
	uint64_t now = mew_os_now_ns();

	return now != 0 ? now : 1;
}

void mew_trace_thread_leave(const char *name)
{
	struct mew_trace_record r = { .kind = MEW_TRACE_SLICE, .group = "body", .name = name };

	if (mine == NULL)
		return;
	mew_trace_settle(0);
	r.time_ns = mine->entered_ns;
	r.value = mew_os_now_ns() - r.time_ns;
	if (r.time_ns != 0)
		mew_trace_push(&r);
	__atomic_store_n(&mine->use, MEW_TRACE_LEFT, __ATOMIC_RELEASE);
	mine = NULL;
}

void mew_trace_forked(void)
{
	mew_trace_threads_.lost = 0;
	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++) {
		struct mew_trace_thread *t = &mew_trace_threads_.list[i];

		t->ring.tail = t->ring.head;
		t->ring.dropped = 0;
		t->nopen = t->beyond = 0;
		t->entered_ns = 0;
		t->announced = false;
		t->use = t == mine ? MEW_TRACE_USED : MEW_TRACE_FREE;
	}
	mew_trace_threads_.freed++; /* the thread that forked may have found no place */
	if (mine == NULL)
		return;
	mine->owner = mine->tid = mew_os_tid();
	mine->settled_ns = mew_trace_now(); /* sections that are open now are the parent's to end */
}

/* --- sections --------------------------------------------------------------------------------------------------- */

uint64_t mew_section_open_(const char *name)
{
	uint64_t now;

	if (mine == NULL)
		mine = join();
	now = mew_trace_now();
	if (mine != NULL && mine->nopen < MEW_TRACE_OPEN) {
		mine->open[mine->nopen++] = (struct mew_trace_open){ name, now };
		if (write_at_once != NULL)
			mew_trace_push(&(struct mew_trace_record){ MEW_TRACE_BEGIN, "section", name, now, 0 });
	} else if (mine != NULL) {
		mine->beyond++;
	}
	return now;
}

/* What is deeper than `depth` was left without its end. */
static void leave(unsigned depth, uint64_t end_ns)
{
	if (mine->beyond > 0) { /* deeper than all that are remembered */
		(void)__atomic_fetch_add(&mew_trace_threads_.lost, mine->beyond, __ATOMIC_RELAXED);
		mine->beyond = 0;
	}
	while (mine->nopen > depth) {
		const struct mew_trace_open *o = &mine->open[--mine->nopen];
		struct mew_trace_record r = {
			.kind = write_at_once != NULL ? MEW_TRACE_UNFINISHED_END : MEW_TRACE_UNFINISHED,
			.group = "section",
			.name = o->name,
			.time_ns = o->start_ns,
			.value = end_ns - o->start_ns,
		};

		mew_trace_push(&r);
	}
}

enum closing { SHOWN_ALREADY, IN_ORDER, TOO_DEEP, BEGUN_ELSEWHERE };

/* Takes a section off the open ones. */
static enum closing close_section(const struct mew_section *s, uint64_t end_ns)
{
	unsigned at;

	if (mine == NULL) /* it has begun nothing */
		return BEGUN_ELSEWHERE;
	for (at = mine->nopen; at > 0; at--)
		if (mine->open[at - 1].start_ns == s->start_ && mine->open[at - 1].name == s->name_)
			break;
	if (at > 0) {
		leave(at, end_ns);
		mine->nopen--;
	} else if (mine->beyond > 0) {
		mine->beyond--;
		return TOO_DEEP;
	} else {
		return s->start_ >= mine->settled_ns ? BEGUN_ELSEWHERE : SHOWN_ALREADY;
	}
	return IN_ORDER;
}

unsigned mew_trace_sections(void)
{
	return mine != NULL ? mine->nopen : 0;
}

void mew_trace_settle(unsigned sections)
{
	if (mine == NULL || mine->nopen <= sections)
		return;
	mine->settled_ns = mew_trace_now();
	leave(sections, mine->settled_ns);
}

void mew_section_put_(const struct mew_section *s)
{
	struct mew_trace_record r = {
		.kind = s->stream_ != NULL ? MEW_TRACE_ASYNC : MEW_TRACE_SLICE,
		.group = s->stream_ != NULL ? s->stream_ : "section",
		.name = s->name_,
		.time_ns = s->start_,
		.value = mew_os_now_ns() - s->start_,
	};
	enum closing how = TOO_DEEP;

	if (s->stream_ == NULL)
		how = close_section(s, r.time_ns + r.value);
	if (how == IN_ORDER && write_at_once != NULL)
		r.kind = MEW_TRACE_END;
	if (how == BEGUN_ELSEWHERE) /* this thread did something else meanwhile */
		r.kind = MEW_TRACE_ASYNC;
	if (how != SHOWN_ALREADY)
		mew_trace_push(&r);
}

void mew_mark_put_(const char *name)
{
	struct mew_trace_record r = { .kind = MEW_TRACE_MARK, .group = "mark", .name = name,
				      .time_ns = mew_os_now_ns() };

	mew_trace_push(&r);
}

int mew_stream_put_(const char *stream, const char *name, uint64_t start_ns, uint64_t end_ns)
{
	struct mew_trace_record r = { MEW_TRACE_ASYNC, stream, name, start_ns, end_ns - start_ns };

	if (stream == NULL || stream[0] == '\0' || name == NULL)
		return mew_error_set(mew_error_thread(), MEW_E_INVALID,
				     "a section of a stream needs the names of both");
	if (end_ns < start_ns)
		return mew_error_set(mew_error_thread(), MEW_E_INVALID,
				     "section \"%.80s\" of stream \"%.80s\" ends before it starts; swap its times",
				     name, stream);
	mew_trace_push(&r);
	return MEW_OK;
}
