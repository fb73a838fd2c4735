/*
 * trace_log.c - see trace_log.h.
 * Layer L2. Outside windows. A process that finds MEW_TRACE_DIR set when it starts takes part by itself.
 */
#include "config.h"

#include "trace_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mew/trace.h"
#include "os.h"
#include "trace_fragment.h"
#include "trace_text.h"

#define RECORDS_MAX ((uint64_t)32 << 20) /* bytes that a process writes of its rings; half of what is read of a file */

static struct {
	pthread_mutex_t lock;
	int pid;             /* of the process that began it: a forked child must not write for it */
	bool is_main, is_forked; /* forked: each record is written at once */
	struct mew_trace_fragment file;
	uint64_t zero_ns, lost_before, lost_said, spans; /* lost before this trace, and said to be in its file */
	struct mew_trace_text text;
	uint64_t *unwritten; /* records that forked children could not write; shared with them, atomic. NULL: no memory */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .file = { .fd = -1 } };

/* --- the file --------------------------------------------------------------------------------------------------- */

static void flush(void)
{
	mew_trace_fragment_write(&state.file, state.text.data, state.text.used);
	state.text.used = 0;
}

static int shown_tid(void)
{
	return state.is_main && mew_os_tid() == state.pid ? MEW_TRACE_MAIN_TID : mew_os_tid();
}

static void event(const char *phase, const char *category, const char *name, int tid)
{
	struct mew_trace_text *t = &state.text;

	if (t->used > sizeof t->data / 2)
		flush();
	mew_trace_text_add(t, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,", phase, state.pid, tid);
	if (category != NULL) {
		mew_trace_text_add(t, "\"cat\":");
		mew_trace_text_string(t, category);
		mew_trace_text_add(t, ",");
	}
	mew_trace_text_add(t, "\"name\":");
	mew_trace_text_string(t, name != NULL ? name : "?");
}

static void at(const char *member, uint64_t ns)
{
	mew_trace_text_add(&state.text, ",\"%s\":%" PRIu64 ".%03u", member, ns / 1000, (unsigned)(ns % 1000));
}

/* Streams may lie in the past, before this file's zero. */
static void at_time(uint64_t ns)
{
	if (ns >= state.zero_ns) {
		at("ts", ns - state.zero_ns);
		return;
	}
	ns = state.zero_ns - ns;
	mew_trace_text_add(&state.text, ",\"ts\":-%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void done(void)
{
	mew_trace_text_add(&state.text, "},\n");
}

static void metadata(const char *what, int tid, const char *key, const char *text)
{
	event("M", NULL, what, tid);
	mew_trace_text_add(&state.text, ",\"args\":{\"%s\":", key);
	mew_trace_text_string(&state.text, text);
	mew_trace_text_add(&state.text, "}");
	done();
}

static void sort_index(const char *what, int tid, int place)
{
	event("M", NULL, what, tid);
	mew_trace_text_add(&state.text, ",\"args\":{\"sort_index\":%d}", place);
	done();
}

static void head(void)
{
	char name[300];

	mew_trace_text_add(&state.text, "[\n");
	event("M", NULL, "mew_trace", 0);
	mew_trace_text_add(&state.text,
			   ",\"args\":{\"schema\":1,\"clock\":\"monotonic\",\"zero_ns\":\"%" PRIu64 "\"%s}",
			   state.zero_ns, state.is_forked ? "" : ",\"ends\":true");
	done();
	if (state.is_main) {
		metadata("process_name", 0, "name", "mew");
		sort_index("process_sort_index", 0, 0);
		metadata("thread_name", MEW_TRACE_MAIN_TID, "name", "run");
	} else {
		(void)snprintf(name, sizeof name, "%s%s", program_invocation_short_name,
			       state.is_forked ? " (forked)" : "");
		metadata("process_name", 0, "name", name);
		metadata("thread_name", state.pid, "name", "main thread");
		sort_index("thread_sort_index", state.pid, 1);
	}
	flush();
}

/* Lock held on return when true. */
static bool ready(void)
{
	if (!mew_trace_is_on() || state.pid != (int)getpid())
		return false;
	(void)pthread_mutex_lock(&state.lock);
	if (state.file.fd < 0 && mew_trace_fragment_make(&state.file, state.pid))
		head();
	if (!state.file.failed && state.file.fd >= 0)
		return true;
	(void)pthread_mutex_unlock(&state.lock);
	return false;
}

static void release(void)
{
	flush();
	(void)pthread_mutex_unlock(&state.lock);
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

static void share_count(void)
{
	void *page = mmap(NULL, sizeof *state.unwritten, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	state.unwritten = page != MAP_FAILED ? page : NULL;
}

static mew_trace_write_fn write_at_once;

/*
 * A forked child of a process with a fragment writes one of its own; one of the process that asked for the trace has
 * none.
 */
static void begin_in_child(void)
{
	if (!mew_trace_is_on())
		return;
	state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	mew_trace_fragment_fork(&state.file);
	state.pid = (int)getpid();
	state.is_forked = true;
	state.text.used = 0;
	state.lost_before = state.lost_said = 0;
	mew_trace_forked();
	mew_trace_at_once(write_at_once);
	if (state.is_main)
		__atomic_store_n(&mew_trace_active_, 0, __ATOMIC_RELEASE);
}

/* Of threads without a place, of full rings and files, and of children. */
static uint64_t count_lost(void)
{
	uint64_t lost = __atomic_load_n(&mew_trace_threads_.lost, __ATOMIC_RELAXED);

	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++)
		lost += mew_ring_dropped(&mew_trace_threads_.list[i].ring);
	if (!state.is_forked && state.unwritten != NULL)
		lost += __atomic_load_n(state.unwritten, __ATOMIC_RELAXED);
	return lost - state.lost_before;
}

int mew_trace_log_begin(const char *directory, const char *path, struct mew_error *err)
{
	static bool watches_forks;
	int status;

	mew_trace_log_end();
	status = directory == NULL ? mew_trace_fragment_open(&state.file, path, err) :
				     mew_trace_fragment_into(&state.file, directory, err);
	if (status != MEW_OK)
		return status;
	state.pid = (int)getpid();
	state.zero_ns = mew_os_now_ns();
	state.is_main = path != NULL;
	state.is_forked = false;
	mew_trace_at_once(NULL);
	if (!watches_forks)
		watches_forks = pthread_atfork(NULL, NULL, begin_in_child) == 0;
	if (state.unwritten == NULL)
		share_count();
	state.lost_before += count_lost();
	state.lost_said = 0;
	state.text.used = 0;
	if (path != NULL)
		head();
	__atomic_store_n(&mew_trace_active_, 1, __ATOMIC_RELEASE);
	return MEW_OK;
}

/* A lock of flock() is held by all descriptors that were made of one another. */
int mew_trace_log_hold(void)
{
	return state.pid == (int)getpid() && state.file.fd >= 0 ? fcntl(state.file.fd, F_DUPFD_CLOEXEC, 0) : -1;
}

int mew_trace_log_directory(void)
{
	return mew_trace_is_on() && state.pid == (int)getpid() ? mew_trace_fragment_directory(&state.file) : -1;
}

bool mew_trace_log_failed(void)
{
	return mew_trace_is_on() && state.pid == (int)getpid() && state.file.failed;
}

uint64_t mew_trace_log_zero(void)
{
	return mew_trace_is_on() && state.pid == (int)getpid() ? state.zero_ns : 0;
}

__attribute__((constructor)) static void begin_by_environment(void)
{
	const char *directory = secure_getenv(MEW_TRACE_DIR_VARIABLE);

	if (directory != NULL && directory[0] != '\0')
		(void)mew_trace_log_begin(directory, NULL, NULL); /* a directory that is not there: this process adds nothing */
}

__attribute__((destructor)) static void end_by_exit(void)
{
	mew_trace_log_end();
}

/* --- events ----------------------------------------------------------------------------------------------------- */

static void put_args(const struct mew_trace_args *args)
{
	if (args != NULL && args->used > 0)
		mew_trace_text_add(&state.text, ",\"args\":{%s}", args->text);
}

static void put_span(const struct mew_trace_record *r, int tid, const struct mew_trace_args *args)
{
	uint64_t id = ++state.spans;

	event("b", r->group, r->name, tid);
	mew_trace_text_add(&state.text, ",\"id2\":{\"local\":\"0x%" PRIx64 "\"}", id);
	at_time(r->time_ns);
	put_args(args);
	done();
	event("e", r->group, r->name, tid);
	mew_trace_text_add(&state.text, ",\"id2\":{\"local\":\"0x%" PRIx64 "\"}", id);
	at_time(r->time_ns + (r->value > 0 ? r->value : 1));
	done();
}

static void put_counter(const struct mew_trace_record *r)
{
	event("C", NULL, r->name, 0);
	at_time(r->time_ns);
	mew_trace_text_add(&state.text, ",\"args\":{\"%s\":%" PRIu64 "}", r->group, r->value);
	done();
}

static void put_record(const struct mew_trace_record *r, int tid, const struct mew_trace_args *args)
{
	static const struct mew_trace_args unfinished = { .used = 1, .text = "\"unfinished\":true" };
	bool is_slice = r->kind == MEW_TRACE_SLICE || r->kind == MEW_TRACE_UNFINISHED;
	bool is_end = r->kind == MEW_TRACE_END || r->kind == MEW_TRACE_UNFINISHED_END;

	if (r->kind == MEW_TRACE_ASYNC) {
		put_span(r, tid, args);
		return;
	}
	if (r->kind == MEW_TRACE_COUNTER) {
		put_counter(r);
		return;
	}
	event(is_slice ? "X" : is_end ? "E" : r->kind == MEW_TRACE_BEGIN ? "B" : "i", r->group, r->name, tid);
	if (r->kind == MEW_TRACE_MARK)
		mew_trace_text_add(&state.text, ",\"s\":\"t\"");
	at_time(is_end ? r->time_ns + r->value : r->time_ns);
	if (is_slice)
		at("dur", r->value > 0 ? r->value : 1);
	put_args(r->kind == MEW_TRACE_UNFINISHED || r->kind == MEW_TRACE_UNFINISHED_END ? &unfinished : args);
	done();
}

/* On the calling thread's line. */
static void put_here(const struct mew_trace_record *r, const struct mew_trace_args *args)
{
	if (!ready())
		return;
	put_record(r, shown_tid(), args);
	release();
}

void mew_trace_slice(const struct mew_trace_slice *s)
{
	put_here(&(struct mew_trace_record){ MEW_TRACE_SLICE, s->category, s->name, s->start_ns,
					     s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0 }, s->args);
}

void mew_trace_mark(const char *category, const char *name, uint64_t time_ns, const struct mew_trace_args *args)
{
	put_here(&(struct mew_trace_record){ MEW_TRACE_MARK, category, name, time_ns, 0 }, args);
}

void mew_trace_span(const char *category, const char *name, uint64_t start_ns, uint64_t end_ns,
		    const struct mew_trace_args *args)
{
	put_here(&(struct mew_trace_record){ MEW_TRACE_ASYNC, category, name, start_ns,
					     end_ns > start_ns ? end_ns - start_ns : 0 }, args);
}

void mew_trace_counter(const char *name, const char *series, uint64_t time_ns, uint64_t value)
{
	put_here(&(struct mew_trace_record){ MEW_TRACE_COUNTER, series, name, time_ns, value }, NULL);
}

int mew_trace_track(void)
{
	return shown_tid();
}

void mew_trace_thread(const char *name, int place)
{
	if (!ready())
		return;
	metadata("thread_name", shown_tid(), "name", name);
	sort_index("thread_sort_index", shown_tid(), place);
	release();
}

void mew_trace_arrow(const char *name, uint64_t from_ns, uint64_t to_ns)
{
	mew_trace_arrow_from(name, shown_tid(), from_ns, to_ns);
}

void mew_trace_arrow_from(const char *name, int track, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t id;

	if (!ready())
		return;
	id = ++state.spans;
	event("s", "flow", name, track);
	mew_trace_text_add(&state.text, ",\"id\":\"0x%" PRIx64 "\"", id);
	at_time(from_ns - 1);
	done();
	event("f", "flow", name, shown_tid());
	mew_trace_text_add(&state.text, ",\"id\":\"0x%" PRIx64 "\",\"bp\":\"e\"", id);
	at_time(to_ns);
	done();
	release();
}

void mew_trace_resident(void)
{
	uint64_t bytes = mew_trace_is_on() ? mew_os_resident_of((int)getpid()) : 0;

	if (bytes > 0)
		mew_trace_counter("resident memory", "bytes", mew_os_now_ns(), bytes);
}

void mew_trace_process(const char *name, int place)
{
	if (!ready())
		return;
	metadata("process_name", 0, "name", name);
	sort_index("process_sort_index", 0, place);
	release();
}

/* --- draining --------------------------------------------------------------------------------------------------- */

static bool is_gone(int tid)
{
	return syscall(SYS_tgkill, state.pid, tid, 0) != 0 && errno == ESRCH;
}

static void announce(struct mew_trace_thread *t)
{
	if (t->announced)
		return;
	t->announced = true;
	if (t->tid == state.pid)
		return; /* the head names it */
	metadata("thread_name", t->tid, "name", t->name);
	if (t->tid >= MEW_TRACE_OWN_TID)
		sort_index("thread_sort_index", t->tid, 2 + t->tid - MEW_TRACE_OWN_TID);
}

static void put_of(struct mew_trace_thread *t, const struct mew_trace_record *r)
{
	if (state.file.written >= RECORDS_MAX) { /* more than is read makes a file that nobody sees */
		if (r->kind != MEW_TRACE_BEGIN) /* its end counts */
			(void)__atomic_fetch_add(&mew_trace_threads_.lost, 1, __ATOMIC_RELAXED);
		return;
	}
	announce(t);
	put_record(r, state.is_main && t->tid == state.pid ? MEW_TRACE_MAIN_TID : t->tid, NULL);
}

static void drain_thread(struct mew_trace_thread *t)
{
	int use = __atomic_load_n(&t->use, __ATOMIC_ACQUIRE);
	enum mew_trace_kind unfinished = state.is_forked ? MEW_TRACE_UNFINISHED_END : MEW_TRACE_UNFINISHED;
	bool gone;
	struct mew_trace_record r;

	if (use != MEW_TRACE_USED && use != MEW_TRACE_LEFT)
		return;
	gone = use == MEW_TRACE_LEFT || is_gone(t->owner); /* before the ring is emptied: nothing can follow */
	while (mew_ring_pop(&t->ring, &r))
		put_of(t, &r);
	while (gone && t->nopen > 0) {
		const struct mew_trace_open *o = &t->open[--t->nopen];

		announce(t);
		put_record(&(struct mew_trace_record){ unfinished, "section", o->name, o->start_ns,
						       mew_os_now_ns() - o->start_ns },
			   t->tid, NULL);
	}
	if (gone) {
		__atomic_store_n(&t->use, MEW_TRACE_FREE, __ATOMIC_RELEASE);
		(void)__atomic_fetch_add(&mew_trace_threads_.freed, 1, __ATOMIC_RELEASE);
	}
}

static bool anything_waits(void)
{
	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++) {
		const struct mew_trace_thread *t = &mew_trace_threads_.list[i];
		int use = __atomic_load_n(&t->use, __ATOMIC_ACQUIRE);

		if (use == MEW_TRACE_LEFT ||
		    (use == MEW_TRACE_USED && __atomic_load_n(&t->ring.head, __ATOMIC_ACQUIRE) != t->ring.tail))
			return true;
	}
	return count_lost() != state.lost_said;
}

/*
 * A line for each record that is lost would fill the file of a child, which writes at once: there, when it has doubled.
 */
static void say_lost(bool at_end)
{
	uint64_t lost = count_lost();

	if (lost == state.lost_said || (state.is_forked && !at_end && lost / 2 < state.lost_said))
		return;
	event("M", NULL, "mew_dropped", 0);
	mew_trace_text_add(&state.text, ",\"args\":{\"records\":%" PRIu64 "}", lost);
	done();
	state.lost_said = lost;
}

/* A record of a forked child, which may leave by _exit(), exec or a signal: then nothing would write it later. */
static void write_at_once(struct mew_trace_thread *t, const struct mew_trace_record *r)
{
	struct mew_trace_thread nameless = { .tid = mew_os_tid(), .announced = true };
	int saved = errno, cancel;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (ready()) {
		put_of(t != NULL ? t : &nameless, r);
		if (state.file.written >= RECORDS_MAX)
			say_lost(false);
		release();
	}
	if (state.file.failed && state.unwritten != NULL && r->kind != MEW_TRACE_BEGIN)
		(void)__atomic_fetch_add(state.unwritten, 1, __ATOMIC_RELAXED);
	(void)pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

void mew_trace_drain(void)
{
	if (!mew_trace_is_on() || !anything_waits() || !ready())
		return;
	for (unsigned i = 0; i < MEW_TRACE_THREADS; i++)
		drain_thread(&mew_trace_threads_.list[i]);
	say_lost(false);
	release();
}

void mew_trace_log_end(void)
{
	if (!mew_trace_is_on())
		return;
	mew_trace_settle(0);
	mew_trace_drain();
	if (state.file.fd >= 0 && ready()) {
		say_lost(true);
		metadata("mew_end", 0, "by", "exit");
		release();
	}
	__atomic_store_n(&mew_trace_active_, 0, __ATOMIC_RELEASE);
	if (state.pid == (int)getpid())
		mew_trace_fragment_close(&state.file);
}
