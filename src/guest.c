/*
 * guest.c - windows around loops that a framework drives: threads come in, the last opens, the last closes.
 * Layer L4. The framework's threads at the edges of their loops; the lock is never held while a loop runs.
 */
#include "config.h"

#include "guest.h"

#include "allocator.h"
#include "error.h"
#include "modules.h"
#include "os.h"
#include "registry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

struct mew_guest_block mew_guest_block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static bool has_edges; /* atomic */
static __thread struct mew_guest_slot *self; /* NULL outside a block */
static __thread unsigned first_of;           /* the first thread of a loop of so many; 0: another */

static struct mew_guest_block *const b = &mew_guest_block;

static unsigned index_of(const struct mew_guest_slot *s)
{
	return (unsigned)(s - b->slots);
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

static void detach(struct mew_guest_slot *s)
{
	if (s->attached)
		b->backend->thread_end(b->capture, index_of(s));
	s->attached = false;
}

/* Threads that left their loop early are gone by now, or are this one. */
static void drop(void)
{
	int tid = mew_os_tid();

	if (b->capture != NULL) {
		if (b->opened && !b->closed)
			b->backend->end(b->capture);
		for (unsigned i = 0; i < b->threads; i++)
			if (b->slots[i].tid == tid)
				detach(&b->slots[i]);
		b->backend->close(b->capture);
	}
	free(b->slots);
	*b = (struct mew_guest_block){ 0 };
	self = NULL;
}

void mew_guest_drop(void)
{
	(void)pthread_mutex_lock(&lock);
	drop();
	(void)pthread_mutex_unlock(&lock);
}

/* Stacks end in the shared library of the framework: what calls the body there has no name that can be relied on. */
static void find_caller(struct mew_capture_config *config)
{
	void *run = dlsym(RTLD_DEFAULT, "_ZN9benchmark8internal17FunctionBenchmark3RunERNS_5StateE");
	const struct mew_module_map *map;

	if (run == NULL || mew_allocator_in_program((uintptr_t)run) || mew_modules_renew() != 0)
		return;
	map = mew_modules_find(mew_modules_current(), (uintptr_t)run);
	if (map == NULL)
		return;
	config->entry_lo = map->lo;
	config->entry_hi = map->hi;
}

static int open_backend(void)
{
	const struct mew_guest_channel *channel = mew_guest_channel();
	struct mew_capture_config config = {
		.pass = mew_guest_pass() == MEW_GUEST_CPU ? MEW_PASS_CPU : MEW_PASS_MEMORY,
		.threads = b->threads,
		.pause_cpu = 1,
	};
	int status;

	if (channel != NULL) {
		config.interval_ns = channel->interval_ns;
		config.stacks = (int)channel->stacks;
		config.clock = (enum mew_clock)channel->clock;
	}
	find_caller(&config);
	status = b->backend->probe(&b->error);
	return status != MEW_OK ? status : b->backend->open(&b->capture, &config, &b->error);
}

static void begin_block(unsigned threads)
{
	drop();
	b->backend = mew_backend_for(mew_guest_pass() == MEW_GUEST_CPU ? MEW_PASS_CPU : MEW_PASS_MEMORY);
	b->threads = threads;
	b->slots = calloc(threads, sizeof *b->slots);
	if (b->slots == NULL) {
		b->threads = 0;
		b->status = mew_error_set(&b->error, MEW_E_NOMEM, "no memory for %u threads", threads);
		return;
	}
	b->status = open_backend();
}

static void attach(unsigned thread)
{
	struct mew_guest_slot *s = &b->slots[thread];
	struct mew_error err;
	int status;

	s->entered = true;
	s->tid = mew_os_tid();
	b->entered++;
	self = s;
	if (b->capture == NULL)
		return;
	status = b->backend->thread_begin(b->capture, thread, &err);
	s->attached = status == MEW_OK;
	if (status != MEW_OK && b->status == MEW_OK) {
		b->status = status;
		b->error = err;
	}
}

static void open_window(void)
{
	b->decided = true;
	if (b->status == MEW_OK)
		b->status = b->backend->begin(b->capture, &b->error);
	b->opened = b->status == MEW_OK;
}

static void close_window(void)
{
	if (b->opened && !b->closed)
		b->backend->end(b->capture);
	b->closed = true;
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

static bool records(void)
{
	enum mew_guest_pass pass = mew_guest_pass();

	return pass == MEW_GUEST_MEMORY || pass == MEW_GUEST_CPU || mew_guest_in_memory_pass();
}

int mew_guest_has_edges(void)
{
	return __atomic_load_n(&has_edges, __ATOMIC_RELAXED);
}

void mew_guest_enter(unsigned threads, unsigned thread)
{
	__atomic_store_n(&has_edges, true, __ATOMIC_RELAXED);
	self = NULL;
	first_of = thread == 0 ? threads : 0;
	if (first_of > 0)
		mew_guest_first_enters();
	if (!records())
		return;
	if (mew_guest_in_memory_pass()) { /* the framework says how many threads the case has, and runs one */
		threads = 1;
		thread = 0;
	}
	if (thread >= threads)
		return;
	(void)pthread_mutex_lock(&lock);
	if (b->backend == NULL || b->whole || b->threads != threads || b->slots[thread].entered)
		begin_block(threads);
	if (thread < b->threads)
		attach(thread);
	(void)pthread_mutex_unlock(&lock);
}

static void say_wait(bool waits)
{
	if (self->attached && b->backend->wait != NULL)
		b->backend->wait(b->capture, index_of(self), waits);
}

void mew_guest_start(void)
{
	if (self == NULL)
		return;
	say_wait(true);
	(void)pthread_mutex_lock(&lock);
	self->started = true;
	if (++b->started == b->entered) { /* the framework's barrier is behind us: nobody else will come */
		open_window();
		(void)pthread_cond_broadcast(&turned);
	}
	while (!b->decided)
		(void)pthread_cond_wait(&turned, &lock);
	(void)pthread_mutex_unlock(&lock);
	say_wait(false);
	self->start_ns = mew_os_now_ns();
}

static bool is_inside(void)
{
	return self != NULL && self->started && !self->finished;
}

/* What a thread does behind its loop is no part of it, though others are still in theirs: it counts as paused. */
void mew_guest_finish(void)
{
	uint64_t now = mew_os_now_ns();

	if (!is_inside())
		return;
	if (self->paused)
		self->paused_ns += now - self->paused_at_ns;
	else if (self->attached)
		b->backend->pause(b->capture, index_of(self));
	self->window_ns = now - self->start_ns - self->paused_ns;
	(void)pthread_mutex_lock(&lock);
	self->finished = true;
	if (++b->finished == b->started)
		close_window();
	(void)pthread_mutex_unlock(&lock);
}

void mew_guest_leave(uint64_t iterations)
{
	if (first_of > 0)
		mew_guest_first_leaves(first_of, iterations);
	first_of = 0;
	if (self == NULL)
		return;
	self->iterations = iterations;
	(void)pthread_mutex_lock(&lock);
	detach(self);
	(void)pthread_mutex_unlock(&lock);
	self = NULL;
}

void mew_guest_pause(void)
{
	if (!is_inside() || self->paused)
		return;
	if (self->attached)
		b->backend->pause(b->capture, index_of(self));
	self->paused = true;
	self->paused_at_ns = mew_os_now_ns();
}

void mew_guest_resume(void)
{
	if (!is_inside() || !self->paused)
		return;
	if (self->attached)
		b->backend->resume(b->capture, index_of(self));
	self->paused = false;
	self->paused_ns += mew_os_now_ns() - self->paused_at_ns;
}

/* --- the block afterwards ----------------------------------------------------------------------------------------- */

void mew_guest_begin_whole(void)
{
	(void)pthread_mutex_lock(&lock);
	begin_block(1);
	if (b->threads == 1) {
		attach(0);
		b->whole = true;
		b->started = 1;
		self->started = true;
		open_window();
	}
	self = NULL; /* edges that come after all must not take it for theirs */
	(void)pthread_mutex_unlock(&lock);
}

void mew_guest_end_whole(void)
{
	(void)pthread_mutex_lock(&lock);
	if (b->whole) {
		close_window();
		b->slots[0].finished = true;
		b->finished = 1;
		detach(&b->slots[0]);
	}
	(void)pthread_mutex_unlock(&lock);
}

bool mew_guest_is_complete(const char **why)
{
	if (b->backend == NULL)
		*why = "its loop was not seen: is the program linked with -flto, or with Google Benchmark as an archive and "
		       "without the wrapping flags of `pkg-config --variable=wrap mew-gbench`?";
	else if (b->status != MEW_OK)
		*why = b->error.text;
	else if (!b->opened || !b->closed || b->finished != b->threads)
		*why = "it left its loop early on some thread (break, return or an exception), so its window has no end";
	else
		return true;
	return false;
}

uint64_t mew_guest_iterations(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < b->threads; i++)
		n += b->slots[i].iterations;
	return n;
}
