/*
 * memory.c - the memory backend: what the loop allocates, exactly, and with stacks on request.
 * Layer L3. Called by the runner outside malloc; the events themselves are in memory_count.c and memory_capture.c.
 */
#include "config.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "allocator.h"
#include "dead.h"
#include "error.h"
#include "memory_hooks.h"
#include "modules.h"
#include "shadow.h"
#include "sink.h"
#include "span_registry.h"
#include "unwinder.h"

#define LIBC_GRANULE_BITS 4u  /* MALLOC_ALIGNMENT of glibc on 64-bit machines */
#define OTHER_GRANULE_BITS 3u /* jemalloc, tcmalloc and mimalloc have a class of 8 bytes */

struct mew_capture {
	const struct mew_hooks_api *api;
	bool stacks;
	bool open; /* the window */
	uint64_t unannounced; /* libraries that were opened unseen, before it opened */
};

static struct mew_capture *running; /* atomic; one per process */

/* --- can it work here --------------------------------------------------------------------------------------------- */

static int memory_probe(struct mew_error *err)
{
	const struct mew_hooks_api *api;

	if (__atomic_load_n(&running, __ATOMIC_ACQUIRE) != NULL)
		return mew_error_set(err, MEW_E_BUSY, "a memory capture is running in this process");
	return mew_memory_find_hooks(&api, err);
}

/* --- threads of the process --------------------------------------------------------------------------------------- */

static void begin_thread(void)
{
	struct mew_heap_thread *self = &mew_heap_self;

	self->ended = false;
	mew_heap_count_join(self);
	if (mew_heap.stacks)
		(void)mew_heap_capture_join(self); /* tried again at its first allocation */
}

static void end_thread(void)
{
	struct mew_heap_thread *self = &mew_heap_self;

	self->ended = true;
	mew_heap_count_leave(self);
	mew_heap_capture_leave(self);
}

static void modules_changed(void)
{
	/* without memory the old snapshot stays, and stacks end at the new module */
	(void)mew_modules_renew();
}

static const struct mew_hooks_listener count_listener = { .thread_start = begin_thread, .thread_exit = end_thread };
static const struct mew_hooks_listener capture_listener = {
	.thread_start = begin_thread,
	.thread_exit = end_thread,
	.modules_changed = modules_changed,
};

/* --- the contract ------------------------------------------------------------------------------------------------- */

/* Does the word in front of blocks of all kinds say what the allocator says? Only glibc's are looked at. */
static bool has_headers(const struct mew_hooks_api *api)
{
	static const size_t sizes[] = { 0, 1, 24, 25, 64, 1000, 1040, 5000, 70000, 200000, 1 << 20, 40 << 20 };
	void *blocks[2 * MEW_COUNTOF(sizes)];
	size_t n = 0;
	bool same = true;

	if (!api->next_is_libc())
		return false;
	for (size_t i = 0; i < MEW_COUNTOF(sizes); i++) {
		blocks[n++] = api->next->do_malloc(sizes[i]);
		blocks[n++] = api->next->do_memalign(256, sizes[i]);
	}
	for (size_t i = 0; i < n; i++) {
		same = same && blocks[i] != NULL &&
		       mew_heap_header_usable(blocks[i]) == api->next->do_usable_size(blocks[i]);
		api->next->do_free(blocks[i]);
	}
	return same;
}

static int prepare(struct mew_capture *c, const struct mew_capture_config *config, struct mew_error *err)
{
	int status = c->stacks ? mew_unwinder_choose(err) : MEW_OK;

	if (status == MEW_OK)
		status = mew_memory_find_hooks(&c->api, err);
	if (status != MEW_OK)
		return status;
	if (mew_shadow_init(c->api->next_is_libc() ? LIBC_GRANULE_BITS : OTHER_GRANULE_BITS) != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no address space for the table of blocks: raise `ulimit -v`");
	mew_heap.next = *c->api->next;
	mew_heap.has_headers = has_headers(c->api);
	mew_heap.pid = (int)getpid();
	mew_heap.session++;
	mew_heap.stacks = c->stacks;
	mew_heap_turns_begin(config->threads);
	if (c->stacks && mew_heap_capture_open(config->entry_lo, config->entry_hi) != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no address space for the stacks: raise `ulimit -v`");
	if (c->api->set_listener(c->stacks ? &capture_listener : &count_listener) == 0)
		return MEW_OK;
	return mew_error_set(err, MEW_E_BUSY, "libmew_hooks is in use by another capture of this process");
}

static int memory_open(struct mew_capture **out, const struct mew_capture_config *config, struct mew_error *err)
{
	struct mew_capture *none = NULL, *c;
	int status;

	c = calloc(1, sizeof *c);
	if (c == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to open the memory capture");
	c->stacks = config->stacks != 0;
	if (!__atomic_compare_exchange_n(&running, &none, c, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
		free(c);
		return mew_error_set(err, MEW_E_BUSY, "a memory capture is running in this process");
	}
	mew_spans_give_way();
	status = prepare(c, config, err);
	if (status != MEW_OK) {
		mew_spans_come_back();
		__atomic_store_n(&running, NULL, __ATOMIC_RELEASE);
		free(c);
		return status;
	}
	*out = c;
	return MEW_OK;
}

static int memory_thread_begin(struct mew_capture *c, unsigned thread, struct mew_error *err)
{
	struct mew_heap_thread *self = &mew_heap_self;

	(void)thread;
	self->paused = false;
	self->ended = false;
	self->last = NULL;
	mew_heap_turns_join(self);
	if (!c->stacks)
		mew_heap_count_join(self);
	else if (mew_heap_capture_join(self) != 0)
		return mew_error_set(err, MEW_E_NOMEM,
				     "the stack bounds of benchmark thread %u cannot be found: is /proc mounted?",
				     thread);
	return MEW_OK;
}

static int memory_begin(struct mew_capture *c, struct mew_error *err)
{
	if (c->stacks && mew_modules_renew() != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the list of loaded libraries");
	mew_shadow_next_epoch();
	if (c->stacks)
		mew_heap_capture_reset();
	else
		mew_heap_count_reset();
	__atomic_store_n(&mew_heap.signals, 0, __ATOMIC_RELAXED);
	mew_heap_jemalloc_open(c->api);
	if (c->api->arm(c->stacks ? &mew_heap_capture_family : &mew_heap_count_family) != 0)
		return mew_error_set(err, MEW_E_BUSY, "libmew_hooks is in use by another capture of this process");
	c->open = true;
	c->unannounced = c->api->modules_unannounced();
	mew_heap_pools_begin(c->api);
	mew_heap_mapped_begin(c->api);
	mew_heap_window_open();
	return MEW_OK;
}

static void memory_pause(struct mew_capture *c, unsigned thread)
{
	(void)c;
	(void)thread;
	mew_heap_self.paused = true;
}

static void memory_resume(struct mew_capture *c, unsigned thread)
{
	(void)c;
	(void)thread;
	mew_heap_self.paused = false;
}

static void memory_turn(struct mew_capture *c, unsigned thread, uint64_t iterations)
{
	(void)c;
	(void)thread;
	mew_heap_turn(&mew_heap_self, iterations);
}

static void memory_end(struct mew_capture *c)
{
	if (!c->open)
		return;
	c->open = false;
	mew_heap_mapped_end(c->api);
	mew_heap_pools_end(c->api);
	if (c->stacks)
		mew_heap_capture_finish();
	else
		mew_heap_count_finish();
	c->api->disarm();
	mew_heap_jemalloc_close();
	mew_heap.counts.lost += __atomic_load_n(&mew_heap.signals, __ATOMIC_RELAXED);
}

static void memory_thread_end(struct mew_capture *c, unsigned thread)
{
	(void)c;
	(void)thread;
	mew_heap_self.paused = false; /* a loop may end while paused */
}

static void push_sizes(struct mew_sink *sink)
{
	struct mew_size_class rows[MEW_HEAP_CLASSES];
	size_t n = 0;

	for (unsigned i = 0; i < MEW_HEAP_CLASSES; i++) {
		uint64_t low = i < MEW_HEAP_EXACT ? i : (uint64_t)MEW_HEAP_EXACT << (i - MEW_HEAP_EXACT);

		if (mew_heap.counts.sizes[i] != 0)
			rows[n++] = (struct mew_size_class){ low, i < MEW_HEAP_EXACT ? low : 2 * low - 1,
							     mew_heap.counts.sizes[i] };
	}
	mew_sink_list(sink, MEW_FIG_SIZE_HISTOGRAM, rows, n);
}

static void push_rates(struct mew_sink *sink, uint64_t allocations)
{
	if (sink->iterations == 0) {
		mew_sink_absent(sink, MEW_FIG_ALLOCATIONS_PER_ITERATION, "no iteration was completed in the window");
		mew_sink_absent(sink, MEW_FIG_BYTES_PER_ITERATION, "no iteration was completed in the window");
		return;
	}
	mew_sink_f64(sink, MEW_FIG_ALLOCATIONS_PER_ITERATION, (double)allocations / (double)sink->iterations);
	mew_sink_f64(sink, MEW_FIG_BYTES_PER_ITERATION,
		     (double)mew_heap.counts.cumulative_bytes / (double)sink->iterations);
}

static void push_figures(struct mew_sink *sink)
{
	const struct mew_heap_counts *f = &mew_heap.counts;
	uint64_t allocations = mew_heap_allocations(f);
	/* every allocation that was not the new size of a tracked block brought one */
	uint64_t joined = allocations - (f->reallocs_moved + f->reallocs_in_place - f->adopted);

	mew_sink_u64(sink, MEW_FIG_PEAK_BYTES, (uint64_t)mew_heap.peak);
	mew_sink_u64(sink, MEW_FIG_TOTAL_BYTES, (uint64_t)mew_heap.peak); /* the heap alive then, which is all here */
	mew_sink_u64(sink, MEW_FIG_PEAK_USABLE_BYTES, (uint64_t)mew_heap.peak_usable);
	mew_sink_u64(sink, MEW_FIG_TOTAL_ALLOCATIONS, allocations);
	mew_sink_u64(sink, MEW_FIG_CUMULATIVE_BYTES, f->cumulative_bytes);
	mew_sink_u64(sink, MEW_FIG_FREES, f->frees);
	mew_sink_u64(sink, MEW_FIG_TEMPORARY_ALLOCATIONS, f->temporary);
	mew_sink_u64(sink, MEW_FIG_REALLOCS_MOVED, f->reallocs_moved);
	mew_sink_u64(sink, MEW_FIG_REALLOCS_IN_PLACE, f->reallocs_in_place);
	mew_sink_u64(sink, MEW_FIG_FAILED, f->failed);
	mew_sink_u64(sink, MEW_FIG_FOREIGN_FREES, f->foreign_frees);
	mew_sink_u64(sink, MEW_FIG_ADOPTED, f->adopted);
	mew_sink_u64(sink, MEW_FIG_NET_BYTES, (uint64_t)mew_heap.live);
	mew_sink_u64(sink, MEW_FIG_NET_BLOCKS, joined - f->frees);
	mew_sink_u64(sink, MEW_FIG_MEMORY_LOST, f->lost);
	mew_sink_u64(sink, MEW_FIG_MEMORY_ITERATIONS, sink->iterations);
	push_sizes(sink);
	push_rates(sink, allocations);
	mew_heap_turns_drain(sink);
}

/*
 * C++ under an allocator with operators of its own is counted only where it calls malloc: the row must not hide that.
 */
static void note_operators(struct mew_sink *sink, const struct mew_hooks_api *api)
{
	const char *path = mew_allocator_own_operators(api);
	char text[320];

	if (path == NULL)
		return;
	(void)snprintf(text, sizeof text,
		       "operator new is that of %.80s and is not counted: link -lmew_hooks_cxx too, or run it with "
		       "`mew run`",
		       mew_allocator_base_name(path));
	mew_sink_note(sink, text);
}

/* Their bytes are in the figures, and in the pictures under no name. */
static void note_stackless(struct mew_sink *sink)
{
	uint64_t n = mew_heap_capture_stackless();
	char text[160];

	if (n == 0)
		return;
	(void)snprintf(text, sizeof text,
		       "%llu allocations have no stack, since there are more different ones than the table of stacks "
		       "holds: profile less at once", (unsigned long long)n);
	mew_sink_note(sink, text);
}

static int judge_drain(struct mew_sink *sink, struct mew_error *err)
{
	if (sink->failed)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to keep what the memory capture saw");
	if (mew_heap.counts.lost != 0)
		return mew_error_set(err, MEW_E_LOST,
				     "%llu allocation records were lost, so the figures would be wrong: is address "
				     "space limited (ulimit -v), or does a signal handler allocate?",
				     (unsigned long long)mew_heap.counts.lost);
	return MEW_OK;
}

static void drain_rest(struct mew_sink *sink, const struct mew_hooks_api *api, bool stacks)
{
	mew_sink_text(sink, MEW_FIG_MODE, stacks ? "capture" : "count");
	push_figures(sink);
	mew_heap_mapped_drain(sink);
	mew_heap_pools_drain(sink);
	if (!stacks)
		return;
	mew_heap_capture_drain(sink, api);
	note_stackless(sink);
	if (mew_unwinder_note() != NULL)
		mew_sink_note(sink, mew_unwinder_note());
}

static int memory_drain(struct mew_capture *c, struct mew_sink *sink, struct mew_error *err)
{
	mew_sink_u64(sink, MEW_FIG_BOOKKEEPING_BYTES,
		     mew_shadow_bytes() + (c->stacks ? mew_heap_capture_bytes() : 0) + mew_heap_mapped_bytes() +
			     mew_heap_pools_bytes());
	mew_heap_jemalloc_drain(sink);
	note_operators(sink, c->api);
	mew_sink_note_libraries(sink, c->stacks ? c->api->modules_unannounced() - c->unannounced : 0,
				c->api->deepbind_dropped());
	drain_rest(sink, c->api, c->stacks);
	return judge_drain(sink, err);
}

/* The process may have ended inside an event: nobody will give its locks back. */
int mew_memory_drain_dead(struct mew_sink *sink, uintptr_t thread_lo, uintptr_t thread_hi, struct mew_error *err)
{
	const struct mew_hooks_api api = { .thread_lo = thread_lo, .thread_hi = thread_hi };

	mew_heap.pid = (int)getpid();
	mew_heap.lock = 0;
	mew_heap_capture_finish();
	mew_heap.counts.lost += mew_heap.signals;
	mew_sink_absent(sink, MEW_FIG_BOOKKEEPING_BYTES, "the process is gone, and its tables with it");
	for (int f = MEW_FIG_JEMALLOC_ALLOCATED_OPEN; f <= MEW_FIG_JEMALLOC_FRAGMENTATION_CLOSE; f++)
		mew_sink_absent(sink, f, "the process is gone, and its allocator cannot be asked any more");
	drain_rest(sink, &api, true);
	return judge_drain(sink, err);
}

static void memory_close(struct mew_capture *c)
{
	if (c == NULL)
		return;
	memory_end(c);
	(void)c->api->set_listener(NULL);
	mew_heap_count_close();
	mew_heap_mapped_close();
	mew_heap_pools_close();
	mew_spans_come_back();
	__atomic_store_n(&running, NULL, __ATOMIC_RELEASE);
	free(c);
}

extern const struct mew_backend mew_backend_memory; /* the registry declares it for itself */

const struct mew_backend mew_backend_memory = {
	.abi = MEW_BACKEND_ABI,
	.name = "hooks",
	.help = "allocations of the loop through an interposed malloc family, exact",
	.pass = MEW_PASS_MEMORY,
	.probe = memory_probe,
	.open = memory_open,
	.thread_begin = memory_thread_begin,
	.begin = memory_begin,
	.pause = memory_pause,
	.resume = memory_resume,
	.end = memory_end,
	.thread_end = memory_thread_end,
	.drain = memory_drain,
	.close = memory_close,
	.turn = memory_turn,
};
