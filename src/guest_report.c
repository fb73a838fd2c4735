/*
 * guest_report.c - from the block that a framework reports to a row of the model, and over the channel to the command.
 * Layer L4. The framework's main thread, between bodies.
 */
#include "config.h"

#include "guest.h"

#include "environment.h"
#include "error.h"
#include "memory_hooks.h"
#include "sink.h"
#include "trace_log.h"
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_PASS_ITERATIONS 16u

static struct mew_guest_block *const b = &mew_guest_block;
static bool in_memory_pass;

bool mew_guest_in_memory_pass(void)
{
	return in_memory_pass;
}

/* --- the channel -------------------------------------------------------------------------------------------------- */

/* The number in the environment may be something else by now: a program may close and open as it likes. */
static struct mew_guest_channel *map_channel(void)
{
	const char *text = getenv(MEW_GUEST_ENVIRONMENT);
	struct mew_guest_channel *channel;
	struct stat st;
	int fd = text != NULL ? atoi(text) : -1;

	if (fd < 0 || fstat(fd, &st) != 0 || (uint64_t)st.st_size != MEW_GUEST_BYTES)
		return NULL;
	channel = mmap(NULL, MEW_GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (channel == MAP_FAILED)
		return NULL;
	/* a core file would have the pages that nobody wrote, too */
	(void)madvise(channel, MEW_GUEST_BYTES, MADV_DONTDUMP);
	if (channel->magic == MEW_GUEST_MAGIC && channel->bytes == MEW_GUEST_BYTES)
		return channel;
	(void)munmap(channel, MEW_GUEST_BYTES);
	return NULL;
}

static struct mew_guest_channel *channel;

struct mew_guest_channel *mew_guest_channel(void)
{
	return channel;
}

/*
 * The descriptor stays open: a program that executes itself again (Google Benchmark does, without ASLR) needs it once
 * more.
 */
static void __attribute__((constructor)) find_channel(void)
{
	uint32_t nobody = 0;

	channel = map_channel();
	if (channel == NULL)
		return;
	(void)__atomic_compare_exchange_n(&channel->loaded, &nobody, (uint32_t)getpid(), false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED);
	mew_guest_find_page(channel);
}

/* Not reached where the process became another program, which then has no libmew_guest. */
static void __attribute__((destructor)) leave_channel(void)
{
	uint32_t self = (uint32_t)getpid();

	if (channel != NULL)
		(void)__atomic_compare_exchange_n(&channel->loaded, &self, MEW_GUEST_LEFT, false, __ATOMIC_RELAXED,
						  __ATOMIC_RELAXED);
}

enum mew_guest_pass mew_guest_pass(void)
{
	return channel != NULL ? (enum mew_guest_pass)channel->pass : MEW_GUEST_ALONE;
}

static bool is_owner(void)
{
	return channel != NULL && __atomic_load_n(&channel->owner, __ATOMIC_RELAXED) == (uint32_t)getpid();
}

static void put_frame(const void *data, size_t bytes)
{
	uint64_t used = channel->used, length = bytes, room = channel->bytes - sizeof *channel;
	unsigned char *at = (unsigned char *)(channel + 1) + used;

	if (used + sizeof length > room || bytes > room - used - sizeof length) {
		__atomic_store_n(&channel->full, 1, __ATOMIC_RELAXED);
		return;
	}
	memcpy(at, &length, sizeof length);
	memcpy(at + sizeof length, data, bytes);
	__atomic_store_n(&channel->used, used + sizeof length + bytes, __ATOMIC_RELEASE);
}

static void put_model(const struct mew_model *m)
{
	struct mew_wire w;

	mew_wire_init(&w);
	mew_wire_put_model(&w, m);
	if (!w.failed)
		put_frame(w.data, w.size);
	else
		__atomic_store_n(&channel->full, 1, __ATOMIC_RELAXED);
	mew_wire_fini(&w);
}

/* A first window costs many times a later one, and the framework would count that as time of its first loop. */
static void warm_up(void)
{
	void *volatile block;

	mew_guest_begin_whole();
	block = malloc(1); /* for the unwinder */
	free(block);
	mew_guest_end_whole();
	mew_guest_drop();
}

int mew_guest_begin(void)
{
	uint32_t nobody = 0;
	struct mew_model *facts;

	if (channel == NULL)
		return MEW_GUEST_ALONE;
	if (!__atomic_compare_exchange_n(&channel->owner, &nobody, (uint32_t)getpid(), false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED)) {
		if (!is_owner())
			channel = NULL; /* a program that the benchmark started: not what the command asked about */
		return mew_guest_pass();
	}
	facts = mew_model_new();
	if (facts != NULL) {
		mew_environment_process(facts);
		put_model(facts);
		mew_model_free(facts);
	}
	mew_guest_trace_process(mew_guest_pass());
	channel->untraced = mew_trace_log_failed();
	if (mew_guest_pass() == MEW_GUEST_MEMORY || mew_guest_pass() == MEW_GUEST_CPU)
		warm_up();
	return mew_guest_pass();
}

void mew_guest_takes_counts(void)
{
	if (channel != NULL)
		channel->counted = 1;
}

void mew_guest_names(const char *lines)
{
	if (is_owner())
		put_frame(lines, strlen(lines));
}

void mew_guest_refuse(const char *why)
{
	if (channel != NULL && channel->refusal[0] == '\0')
		(void)snprintf(channel->refusal, sizeof channel->refusal, "%s", why);
}

/* --- a captured block --------------------------------------------------------------------------------------------- */

/* What only a loop of mew's shows: the turns of this one are inlined into the program. */
static void drop_turns(struct mew_model *m, struct mew_case *c)
{
	static const int figures[] = {
		MEW_FIG_ALLOCATIONS_FIRST, MEW_FIG_ALLOCATIONS_MIN, MEW_FIG_ALLOCATIONS_MAX, MEW_FIG_STEADY,
		MEW_FIG_LEAK_BYTES_PER_ITERATION, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW,
		MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, MEW_FIG_LIVE_BY_ITERATION,
	};

	for (size_t i = 0; i < MEW_COUNTOF(figures); i++)
		mew_model_absent(m, c, MEW_KIND_MEMORY, figures[i],
				 "the single iterations of Google Benchmark's loop cannot be seen from outside");
	mew_model_absent(m, c, MEW_KIND_MEMORY, MEW_FIG_RSS_PEAK_DELTA_BYTES,
			 "the table of blocks would be part of it, and Google Benchmark calls the body once");
}

static int drain(struct mew_model *m, struct mew_case *c, enum mew_kind kind, uint64_t iterations,
		 struct mew_error *err)
{
	uint64_t *thread_ns = calloc(b->threads, sizeof *thread_ns);
	struct mew_sink sink = { .model = m, .row = c, .kind = kind, .iterations = iterations, .thread_ns = thread_ns };
	struct mew_row_head *row = mew_model_row(m, c, kind);
	int status = MEW_E_NOMEM;

	if (thread_ns != NULL && row != NULL) {
		row->profiler = b->backend->name;
		for (unsigned i = 0; i < b->threads; i++) {
			sink.window_ns += b->slots[i].window_ns / b->threads;
			thread_ns[i] = b->slots[i].window_ns;
		}
		status = b->backend->drain(b->capture, &sink, err);
	}
	free(thread_ns);
	if (status == MEW_E_NOMEM || (status == MEW_OK && sink.failed))
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the result");
	return status;
}

static int put_run(struct mew_model *m, struct mew_case *c, const struct mew_guest_run *from, int phase, uint64_t loops,
		   double real_ns, double cpu_ns)
{
	uint64_t real = real_ns > 0 ? (uint64_t)(real_ns + 0.5) : 0, cpu = cpu_ns > 0 ? (uint64_t)(cpu_ns + 0.5) : 0;
	struct mew_run run = {
		.phase = phase,
		.process = channel->process,
		.repetition = from->repetition,
		.loops = loops != 0 ? loops : 1,
		.nsamples = 1,
		.real_ns = &real,
		.cpu_ns = cpu_ns >= 0 ? &cpu : NULL,
	};

	return mew_model_add_run(m, c, &run);
}

/* Google Benchmark's own memory pass has one thread and at most 16 iterations. */
static uint64_t iterations_of(const struct mew_guest_run *run)
{
	uint64_t each = run->iterations / run->threads;

	if (!b->whole)
		return mew_guest_iterations();
	return each < MEMORY_PASS_ITERATIONS ? each : MEMORY_PASS_ITERATIONS;
}

/* The row of the memory or CPU pass. Returns MEW_OK or why it has no figures. */
static int fill_captured(struct mew_model *m, struct mew_case *c, enum mew_kind kind, const struct mew_guest_run *run,
			 struct mew_error *err)
{
	uint64_t iterations = iterations_of(run);
	int phase = kind == MEW_KIND_CPU ? MEW_PHASE_CPU_VALUE : MEW_PHASE_MEMORY_VALUE, status;
	const char *why;

	if (!mew_guest_is_complete(&why))
		return mew_error_set(err, b->status != MEW_OK ? b->status : b->backend == NULL ? MEW_E_UNSUPPORTED :
				     MEW_E_LOOP, "%s", why);
	if (!b->whole && (b->threads != run->threads || (run->iterations != 0 && iterations != run->iterations)))
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "the loop that ran last is another one (%llu iterations on %u threads, reported "
				     "are %llu on %u): switch random interleaving off", (unsigned long long)iterations,
				     b->threads, (unsigned long long)run->iterations, run->threads);
	status = drain(m, c, kind, iterations, err);
	if (status != MEW_OK)
		return status;
	if (kind == MEW_KIND_MEMORY)
		drop_turns(m, c);
	if (b->whole)
		mew_model_note(m, c, kind, "the edges of its loop were not seen: the figures are those of Google "
					   "Benchmark's memory pass as a whole, with its own state and what the body "
					   "does around the loop");
	else if (put_run(m, c, run, phase, iterations / b->threads, (double)b->slots[0].window_ns, -1) != 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the result");
	return MEW_OK;
}

/* --- the row of time ---------------------------------------------------------------------------------------------- */

static int fill_time(struct mew_model *m, struct mew_case *c, const struct mew_guest_run *run, struct mew_error *err)
{
	uint64_t loops = run->is_aggregate ? 1 : run->iterations / run->threads;

	if (put_run(m, c, run, MEW_PHASE_MEASUREMENT_VALUE, loops, run->real_ns, run->cpu_ns) != 0 ||
	    mew_model_row(m, c, MEW_KIND_TIME) == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the result");
	c->time.profiler = "gbench";
	if (run->is_aggregate)
		mew_model_note(m, c, MEW_KIND_TIME, "Google Benchmark reports aggregates only: this is its median");
	return MEW_OK;
}

/* --- a report ----------------------------------------------------------------------------------------------------- */

static void copy_memory(const struct mew_case *c, uint64_t iterations, struct mew_guest_memory *out)
{
	*out = (struct mew_guest_memory){
		.allocations = c->memory.total_allocations,
		.bytes = c->memory.cumulative_bytes,
		.peak_bytes = c->memory.peak_bytes,
		.net_bytes = (int64_t)c->memory.net_bytes,
		.iterations = iterations,
	};
}

static enum mew_kind kind_of_pass(void)
{
	enum mew_guest_pass pass = mew_guest_pass();

	return pass == MEW_GUEST_CPU ? MEW_KIND_CPU : pass == MEW_GUEST_TIME ? MEW_KIND_TIME : MEW_KIND_MEMORY;
}

static int fill(struct mew_model *m, struct mew_case *c, const struct mew_guest_run *run, struct mew_error *err)
{
	enum mew_kind kind = kind_of_pass();

	c->threads = run->threads;
	c->label = mew_model_string(m, run->label);
	for (size_t i = 0; i < run->ncounters; i++)
		(void)mew_model_add_counter(m, c, run->counters[i].name, run->counters[i].value);
	if (run->outcome == MEW_GUEST_FAILED)
		return mew_error_set(err, MEW_E_BODY, "%s", run->why != NULL ? run->why : "it failed");
	if (run->outcome == MEW_GUEST_SKIPPED)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "skipped: %s", run->why != NULL ? run->why : "");
	return kind == MEW_KIND_TIME ? fill_time(m, c, run, err) : fill_captured(m, c, kind, run, err);
}

int mew_guest_report(const struct mew_guest_run *run, struct mew_guest_memory *memory)
{
	struct mew_model *m = is_owner() ? mew_model_new() : NULL;
	struct mew_case *c;
	struct mew_error err;
	int filled = 0;

	if (m == NULL)
		return 0;
	mew_guest_end_turns();
	mew_guest_trace_case(run);
	c = mew_model_case(m, run->key, NULL);
	if (c != NULL) {
		int status = fill(m, c, run, &err);

		if (status != MEW_OK) {
			mew_model_fail(m, c, kind_of_pass(), status, err.text);
		} else if (memory != NULL && kind_of_pass() == MEW_KIND_MEMORY) {
			copy_memory(c, iterations_of(run), memory);
			filled = 1;
		}
		put_model(m);
	}
	if (kind_of_pass() != MEW_KIND_TIME)
		mew_guest_drop();
	mew_model_free(m);
	return filled;
}

/* --- the framework's memory pass ---------------------------------------------------------------------------------- */

int mew_guest_can_count(const char **why)
{
	static struct mew_error err;
	const struct mew_hooks_api *api;
	int status = mew_memory_find_hooks(&api, &err);

	if (why != NULL)
		*why = status != MEW_OK ? err.text : NULL;
	return status;
}

void mew_guest_memory_start(void)
{
	mew_guest_drop();
	in_memory_pass = true;
	if (!mew_guest_has_edges())
		mew_guest_begin_whole();
}

/* Through a model like any other block: the figures have one source. */
static bool read_memory(struct mew_guest_memory *out)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = m != NULL ? mew_model_case(m, "pass", NULL) : NULL;
	struct mew_error err;
	uint64_t iterations = mew_guest_iterations();
	bool ok = c != NULL && drain(m, c, MEW_KIND_MEMORY, iterations, &err) == MEW_OK;

	if (ok)
		copy_memory(c, iterations, out);
	mew_model_free(m);
	return ok;
}

int mew_guest_memory_stop(struct mew_guest_memory *out)
{
	const char *why;
	int answer = -1;

	*out = (struct mew_guest_memory){ 0 };
	mew_guest_end_whole();
	in_memory_pass = false;
	if (mew_guest_pass() == MEW_GUEST_MEMORY) /* the report will ask for the block */
		return b->whole ? 0 : 1;
	if (mew_guest_is_complete(&why) && read_memory(out))
		answer = b->whole ? 0 : 1;
	mew_guest_drop();
	return answer;
}
