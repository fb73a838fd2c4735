/*
 * cpu_crew.c - see cpu_crew.h.
 * Layer L3. Runner thread, and the threads of the program at their first and last moment; never in a handler. One lock
 * guards everything here; no handler and no fork handler waits for it.
 */
#include "config.h"

#include "cpu_crew.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "cpu_log.h"
#include "cpu_scan.h"
#include "error.h"
#include "hooks_link.h"
#include "kept.h"
#include "memory_own.h"
#include "modules.h"
#include "os.h"
#include "span_registry.h"

#define RECORDS ((size_t)1 << 18) /* of one thread; the period grows before they run out */
#define SILENT_PERIODS 200u
#define BEFORE_MAX 4096u
#define HIDDEN_MAX 8u

struct mew_cpu_crew {
	const struct mew_cpu_window *window;
	struct mew_cpu_crew_row rows[MEW_CPU_CREW_ROWS];
	uint32_t nrows;
	struct mew_cpu_log log; /* records of threads that left */
	struct mew_cpu_crew_losses losses;
	uint64_t without_slot; /* threads that the last scan found no slot for */
	uint64_t unannounced;  /* libraries, before the window opened */
	bool running;
	struct mew_cpu_scanner *scanner;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool watching, watches_fork;
	const struct mew_threads_api *wrapper; /* that announces threads; NULL: they have to be looked for */
	struct mew_cpu_crew *open;             /* the window */
	int before[BEFORE_MAX];                /* threads that were there when the case was opened; without a wrapper only */
	size_t nbefore;
	uint64_t slotless;                     /* announced, there, and without a slot */
	int hidden[HIDDEN_MAX];
	size_t nhidden;
} crew;

/* The kernel's number for the CPU clock of a thread, as pthread_getcpuclockid() makes it. */
static clockid_t clock_of(int tid)
{
	return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

static bool read_cpu(const struct mew_cpu_thread *t, uint64_t *ns)
{
	struct timespec now;

	if (clock_gettime(t->cpu_clock, &now) != 0)
		return false;
	*ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return true;
}

static uint64_t unannounced(void)
{
	return crew.wrapper != NULL ? crew.wrapper->modules_unannounced() : 0;
}

static bool is_helper(const struct mew_cpu_thread *t)
{
	return atomic_load(&t->taken) != 0 && atomic_load(&t->helper) != 0;
}

static void drop(struct mew_cpu_thread *t)
{
	mew_cpu_thread_disarm(t);
	atomic_store(&t->helper, 0);
	mew_cpu_thread_free(t);
}

/* --- entering the window; with the lock --------------------------------------------------------------------------- */

static void equip(struct mew_cpu_crew *c, struct mew_cpu_thread *t)
{
	t->signal_number = mew_cpu_signal_number(); /* the program may have taken the one it began with */
	if (mew_cpu_thread_equip(t, c->window, RECORDS) != 0) {
		if (c->losses.refused == 0)
			c->losses.refused = errno;
		c->losses.unsampled++;
		return;
	}
	t->entry_lo = !t->found_by_scan && crew.wrapper != NULL ? crew.wrapper->thread_lo : 0;
	t->entry_hi = !t->found_by_scan && crew.wrapper != NULL ? crew.wrapper->thread_hi : 0;
	c->losses.scanned += t->found_by_scan;
}

/* The row of a thread that enters. */
static uint32_t take_row(struct mew_cpu_crew *c, const struct mew_cpu_thread *t)
{
	uint32_t number = c->nrows;
	struct mew_cpu_crew_row *row;

	if (number == MEW_CPU_CREW_ROWS) {
		row = &c->rows[--number];
	} else {
		row = &c->rows[c->nrows++];
		row->has_cpu = true;
		row->tid = t->tid;
	}
	row->threads++;
	return number;
}

/* born: all that it ever did lies in the window. */
static void enter(struct mew_cpu_crew *c, struct mew_cpu_thread *t, uint64_t now, bool born)
{
	if (t->window == NULL)
		return;
	t->number = take_row(c, t);
	t->from_ns = now;
	t->cpu_from_ns = 0;
	t->has_cpu = born || read_cpu(t, &t->cpu_from_ns);
	(void)mew_cpu_thread_arm(t, now); /* fails for a thread that is just gone */
}

/* --- leaving it; with the lock ------------------------------------------------------------------------------------ */

static void keep_records(struct mew_cpu_crew *c, struct mew_cpu_thread *t)
{
	struct mew_cpu_crew_record record = { .number = t->number };

	while (mew_ring_pop(&t->ring, &record.record))
		c->losses.records += !mew_cpu_log_push(&c->log, &record);
	c->losses.records += mew_ring_dropped(&t->ring);
}

/* Asked late, since a thread names itself after it has begun; but what is known of one that is gone stays. */
static void ask_name(struct mew_cpu_crew_row *row, int tid)
{
	char name[sizeof row->name];

	if (row->threads != 1)
		return;
	mew_cpu_scan_name(tid, name, sizeof name);
	if (name[0] != '\0')
		memcpy(row->name, name, sizeof name);
}

/* Out of the window, and what it recorded into the crew. `there`: the thread can still be asked. */
static void leave(struct mew_cpu_crew *c, struct mew_cpu_thread *t, bool there)
{
	struct mew_cpu_crew_row *row = &c->rows[t->number];
	uint64_t wall_ns, cpu_ns = 0, due_ns;

	mew_cpu_thread_disarm(t);
	wall_ns = mew_os_now_ns() - t->from_ns;
	row->wall_ns += wall_ns;
	if (there && t->has_cpu && read_cpu(t, &cpu_ns))
		row->cpu_ns += cpu_ns -= t->cpu_from_ns;
	else
		row->has_cpu = false;
	due_ns = c->window->clock == MEW_CLOCK_CPU ? cpu_ns : wall_ns;
	c->losses.silent += t->ring.head == 0 && due_ns > SILENT_PERIODS * c->window->period_ns;
	if (there)
		ask_name(row, t->tid);
	keep_records(c, t);
	mew_cpu_thread_strip(t);
}

static void retire(struct mew_cpu_thread *t, bool there)
{
	if (t->window != NULL && crew.open != NULL && crew.open->running)
		leave(crew.open, t, there);
	drop(t);
}

/* --- what the wrapper says ---------------------------------------------------------------------------------------- */

static void thread_started(void)
{
	struct mew_cpu_thread *t = mew_cpu_thread_take(mew_os_tid());
	unsigned char was = mew_heap_own_begin(); /* finding the stack allocates */
	bool was_out = mew_spans_keep_out(true);

	if (t != NULL) {
		(void)mew_unwind_thread_init(&t->unwind); /* fails: then only the function itself is seen */
		t->cpu_clock = clock_of(t->tid);
		mew_cpu_thread_unblock(t);
	}
	(void)pthread_mutex_lock(&lock);
	if (t == NULL) {
		crew.slotless++;
		if (crew.open != NULL)
			crew.open->losses.unsampled++;
	} else if (!crew.watching) {
		mew_cpu_thread_free(t);
	} else {
		atomic_store(&t->helper, 1);
		if (crew.open != NULL)
			equip(crew.open, t);
		if (crew.open != NULL && crew.open->running)
			enter(crew.open, t, mew_os_now_ns(), true);
	}
	(void)pthread_mutex_unlock(&lock);
	(void)mew_spans_keep_out(was_out);
	mew_heap_own_end(was);
}

static void thread_exits(void)
{
	struct mew_cpu_thread *t;

	(void)pthread_mutex_lock(&lock);
	t = mew_cpu_slot_of(mew_os_tid());
	if (t != NULL && is_helper(t))
		retire(t, true);
	else
		crew.slotless -= t == NULL && crew.slotless > 0;
	(void)pthread_mutex_unlock(&lock);
}

/* Without this, stacks would end at a library that the loop opened. */
static void modules_changed(void)
{
	struct mew_cpu_thread *t = mew_cpu_slot_of(mew_os_tid());
	bool ours = t != NULL && !is_helper(t); /* a helper's slot could go to another thread meanwhile */

	if (ours)
		mew_cpu_thread_wait(t, true);
	(void)mew_modules_renew();
	if (ours)
		mew_cpu_thread_wait(t, false);
}

static const struct mew_hooks_listener listener = {
	.thread_start = thread_started,
	.thread_exit = thread_exits,
	.modules_changed = modules_changed,
};

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* The child has one thread, and of what the others were in the middle of only half. */
static void after_fork_in_child(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (crew.watching && crew.wrapper != NULL)
		(void)crew.wrapper->set_listener(NULL);
	crew.watching = false;
	if (crew.open != NULL) {
		crew.open->running = false;
		crew.open->scanner = NULL; /* nobody to wait for here */
	}
	crew.open = NULL;
	for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
		atomic_store(&t->helper, 0);
}

static void note_before(int tid, void *unused)
{
	(void)unused;
	if (crew.nbefore < BEFORE_MAX)
		crew.before[crew.nbefore++] = tid;
}

bool mew_cpu_crew_watch_fork(void)
{
	if (!crew.watches_fork)
		crew.watches_fork = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
	return crew.watches_fork;
}

void mew_cpu_crew_watch(void)
{
	struct mew_error ignored;

	mew_cpu_crew_unwatch();
	if (mew_cpu_signal_take(&ignored) != MEW_OK) /* the window will say why */
		return;
	if (!mew_cpu_crew_watch_fork())
		return;
	crew.wrapper = mew_threads_link();
	if (crew.wrapper != NULL && crew.wrapper->set_listener(&listener) != 0)
		crew.wrapper = NULL; /* somebody else listens */
	(void)pthread_mutex_lock(&lock);
	crew.watching = true;
	crew.nbefore = 0;
	crew.slotless = 0;
	if (crew.wrapper == NULL)
		(void)mew_cpu_scan_tasks(note_before, NULL);
	(void)pthread_mutex_unlock(&lock);
}

void mew_cpu_crew_unwatch(void)
{
	(void)pthread_mutex_lock(&lock);
	if (crew.watching && crew.wrapper != NULL)
		(void)crew.wrapper->set_listener(NULL);
	crew.watching = false;
	for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
		if (is_helper(t))
			retire(t, true);
	(void)pthread_mutex_unlock(&lock);
}

bool mew_cpu_crew_is_watching(void)
{
	return crew.watching; /* asked by the thread that opens and closes cases */
}

void mew_cpu_crew_forget(void)
{
	struct mew_cpu_thread *t;

	(void)pthread_mutex_lock(&lock);
	t = mew_cpu_slot_of(mew_os_tid());
	if (t != NULL && is_helper(t)) {
		mew_cpu_thread_detach(t); /* the signal mask as it was */
		drop(t);
	}
	(void)pthread_mutex_unlock(&lock);
}

void mew_cpu_crew_hide(void)
{
	mew_cpu_crew_forget();
	(void)pthread_mutex_lock(&lock);
	crew.hidden[crew.nhidden++ % HIDDEN_MAX] = mew_os_tid();
	(void)pthread_mutex_unlock(&lock);
}

/* --- looking for threads; with the lock --------------------------------------------------------------------------- */

static bool is_among(const int *tids, size_t n, int tid)
{
	for (size_t i = 0; i < n; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

static void find_thread(int tid, void *data)
{
	struct mew_cpu_crew *c = data;
	struct mew_cpu_thread *t;

	if (is_among(crew.before, crew.nbefore, tid) || is_among(crew.hidden, HIDDEN_MAX, tid))
		return;
	t = mew_cpu_slot_of(tid);
	if (t == NULL) {
		t = mew_cpu_thread_take(tid);
		if (t == NULL) {
			c->without_slot++;
			return;
		}
		t->cpu_clock = clock_of(tid);
		t->found_by_scan = true;
		atomic_store(&t->helper, 1);
		if (c->running) {
			equip(c, t);
			enter(c, t, mew_os_now_ns(), true);
		}
	}
	t->present = true;
}

/* A tick has left its stack pointer: learn what it points into. The upper end last, the handler asks for it first. */
static void find_stack(struct mew_cpu_thread *t)
{
	uintptr_t sp = atomic_exchange(&t->sp_seen, 0), lo, hi;

	/* a walk that may allocate must not be a thread's first one in a handler */
	if (sp == 0 || t->unwind.stack_hi != 0 || mew_unwind_may_allocate() || !mew_os_mapping_of(sp, &lo, &hi))
		return;
	t->unwind.stack_lo = lo;
	__atomic_store_n(&t->unwind.stack_hi, hi, __ATOMIC_RELEASE);
}

/* Nobody says when one ends: ask again and again, more and more seldom. */
static void renew_name(struct mew_cpu_crew *c, struct mew_cpu_thread *t)
{
	t->looks++;
	if ((t->looks & (t->looks - 1)) == 0 && t->window != NULL && c->running)
		ask_name(&c->rows[t->number], t->tid);
}

static void look(struct mew_cpu_crew *c)
{
	struct mew_cpu_thread *t;

	c->without_slot = 0;
	for (t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
		if (is_helper(t))
			t->present = false;
	if (mew_cpu_scan_tasks(find_thread, c) != 0)
		return;
	if (c->without_slot > c->losses.unsampled)
		c->losses.unsampled = c->without_slot;
	for (t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t)) {
		if (!is_helper(t))
			continue;
		if (t->present) {
			find_stack(t);
			renew_name(c, t);
		} else {
			retire(t, false);
		}
	}
}

bool mew_cpu_crew_scan(struct mew_cpu_crew *c)
{
	bool open;

	(void)pthread_mutex_lock(&lock);
	open = crew.open == c && c->running;
	if (open)
		look(c);
	(void)pthread_mutex_unlock(&lock);
	return open;
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

struct mew_cpu_crew *mew_cpu_crew_new(const struct mew_cpu_window *window)
{
	struct mew_cpu_crew *c = mew_kept_map(sizeof *c);

	if (c != NULL)
		c->window = window;
	return c;
}

void mew_cpu_crew_free(struct mew_cpu_crew *c)
{
	if (c == NULL)
		return;
	mew_cpu_crew_end(c);
	mew_cpu_log_fini(&c->log);
	mew_kept_unmap(c, sizeof *c);
}

void mew_cpu_crew_prepare(struct mew_cpu_crew *c)
{
	(void)pthread_mutex_lock(&lock);
	if (crew.watching && crew.open == NULL) {
		crew.open = c;
		c->losses.unsampled += crew.slotless;
		if (crew.wrapper == NULL)
			look(c);
		for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
			if (is_helper(t) && t->window == NULL)
				equip(c, t);
	}
	(void)pthread_mutex_unlock(&lock);
}

void mew_cpu_crew_start(struct mew_cpu_crew *c)
{
	bool scans;

	(void)pthread_mutex_lock(&lock);
	if (crew.open == c) {
		c->running = true;
		c->unannounced = unannounced();
		for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL; t = mew_cpu_slot_next(t))
			if (is_helper(t))
				enter(c, t, c->window->opened_ns, false);
	}
	scans = c->running && crew.wrapper == NULL;
	(void)pthread_mutex_unlock(&lock);
	if (scans)
		c->scanner = mew_cpu_scanner_start(c);
}

void mew_cpu_crew_end(struct mew_cpu_crew *c)
{
	struct mew_cpu_thread *t;

	(void)pthread_mutex_lock(&lock);
	for (t = mew_cpu_slot_next(NULL); t != NULL && crew.open == c; t = mew_cpu_slot_next(t)) {
		if (!is_helper(t) || t->window == NULL)
			continue;
		if (c->running)
			leave(c, t, true);
		else
			mew_cpu_thread_strip(t);
	}
	if (c->running)
		c->losses.unannounced = unannounced() - c->unannounced;
	crew.open = crew.open == c ? NULL : crew.open;
	c->running = false;
	(void)pthread_mutex_unlock(&lock);
	if (c->scanner == NULL)
		return;
	mew_cpu_scanner_join(c->scanner);
	c->scanner = NULL;
	memset(crew.hidden, 0, sizeof crew.hidden); /* its id may be given to a thread of the program */
}

void mew_cpu_crew_bury(struct mew_cpu_crew *c, uint64_t ended_ns)
{
	for (struct mew_cpu_thread *t = mew_cpu_slot_next(NULL); t != NULL && c->running; t = mew_cpu_slot_next(t)) {
		if (!is_helper(t) || t->window != c->window || t->number >= c->nrows)
			continue;
		c->rows[t->number].wall_ns += ended_ns > t->from_ns ? ended_ns - t->from_ns : 0;
		c->rows[t->number].has_cpu = false;
		keep_records(c, t);
	}
	c->running = false;
}

/* --- after the window --------------------------------------------------------------------------------------------- */

size_t mew_cpu_crew_rows(const struct mew_cpu_crew *c, const struct mew_cpu_crew_row **rows)
{
	*rows = c->rows;
	return c->nrows;
}

bool mew_cpu_crew_pop(struct mew_cpu_crew *c, struct mew_cpu_crew_record *record)
{
	return mew_cpu_log_pop(&c->log, record);
}

struct mew_cpu_crew_losses mew_cpu_crew_losses(const struct mew_cpu_crew *c)
{
	return c->losses;
}
