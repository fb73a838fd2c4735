/*
 * trace_merge.c - see trace_merge.h: one clock, one space of process ids, one file.
 * Layer L6. The thread that asked for the trace, after the measurement.
 */
#include "config.h"

#include "trace_merge.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deflate.h"
#include "error.h"
#include "os.h"
#include "trace_log.h"
#include "trace_tracks.h"
#include "trace_write.h"

#define DAY_NS ((int64_t)86400 * 1000000000)
#define STEP_NS 5000000 /* clocks drift apart by less while a run lasts */

/* --- clocks ----------------------------------------------------------------------------------------------------- */

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void mew_clock_pair_read(struct mew_clock_pair *out)
{
	int64_t width = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		int64_t before = read_clock(CLOCK_MONOTONIC), real = read_clock(CLOCK_REALTIME),
			after = read_clock(CLOCK_MONOTONIC);

		if (after - before >= width)
			continue;
		width = after - before;
		*out = (struct mew_clock_pair){ before + width / 2, real, 0 };
	}
	out->boottime_ns = out->monotonic_ns + read_clock(CLOCK_BOOTTIME) - read_clock(CLOCK_MONOTONIC);
}

static int64_t distance(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

/* The time of day on the run's clock, by the pair that is nearest: one clock step moves only what came before it. */
static int64_t from_epoch(const struct mew_trace_merge *m, int64_t epoch_ns)
{
	const struct mew_clock_pair *best = &m->pairs[0];

	for (size_t i = 1; i < m->npairs; i++)
		if (distance(m->pairs[i].realtime_ns, epoch_ns) < distance(best->realtime_ns, epoch_ns))
			best = &m->pairs[i];
	return epoch_ns - best->realtime_ns + best->monotonic_ns - m->zero_ns;
}

static int64_t offset(const struct mew_clock_pair *p)
{
	return p->realtime_ns - p->monotonic_ns;
}

static int64_t step_of(const struct mew_trace_merge *m)
{
	int64_t most = 0;

	for (size_t i = 1; i < m->npairs; i++)
		if (distance(offset(&m->pairs[i]), offset(&m->pairs[i - 1])) > distance(most, 0))
			most = offset(&m->pairs[i]) - offset(&m->pairs[i - 1]);
	return distance(most, 0) >= STEP_NS ? most : 0;
}

static int64_t sleep_of(const struct mew_trace_merge *m)
{
	const struct mew_clock_pair *a = &m->pairs[0], *b = &m->pairs[m->npairs - 1];
	int64_t slept = b->boottime_ns - b->monotonic_ns - (a->boottime_ns - a->monotonic_ns);

	return slept >= STEP_NS ? slept : 0;
}

static bool is_far(int64_t ns, int64_t end)
{
	return ns < -DAY_NS || ns > end + DAY_NS;
}

/* All on the run's clock; what lies a day or more outside is on no clock we know. */
static void shift(const struct mew_trace_merge *m, struct mew_trace_events *events, const struct mew_trace_files *files)
{
	int64_t end = m->pairs[m->npairs - 1].monotonic_ns - m->zero_ns;

	for (size_t i = 0; i < events->n; i++) {
		struct mew_trace_event *e = &events->list[i];
		const struct mew_trace_source *s = &files->list[e->file];
		int64_t before;

		if (e->phase == 'M' || e->dropped)
			continue;
		before = e->ts_ns;
		e->ts_ns = s->is_ours ? e->ts_ns + s->zero_ns - m->zero_ns : from_epoch(m, e->ts_ns);
		e->start_ns += e->ts_ns - before;
		if (is_far(e->ts_ns, end) || (e->has_start && is_far(e->start_ns, end))) {
			e->dropped = true;
			events->dropped++;
			events->far++;
		}
	}
}

/* Nothing is before zero in the file. Returns how far all was moved. */
static int64_t rebase(struct mew_trace_events *events)
{
	int64_t least = 0;

	for (size_t i = 0; i < events->n; i++) {
		const struct mew_trace_event *e = &events->list[i];

		if (e->phase != 'M' && !e->dropped && e->ts_ns < least)
			least = e->ts_ns;
		if (e->has_start && !e->dropped && e->start_ns < least)
			least = e->start_ns;
	}
	for (size_t i = 0; i < events->n; i++) {
		if (events->list[i].phase == 'M')
			continue;
		events->list[i].ts_ns -= least;
		events->list[i].start_ns -= least;
	}
	return -least;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

struct job {
	struct mew_trace_merge *m;
	struct mew_trace_events events;
	struct mew_trace_files files;
	int64_t started_ns, rebased_ns;
	bool has_own; /* the first file is mew's own */
};

/* The last slice: what reading, joining and writing the trace took, up to this line. */
static void write_own_cost(struct mew_writer *w, const struct job *j)
{
	const struct mew_trace_merge *m = j->m;
	int64_t last = 0, start = j->started_ns - m->zero_ns + j->rebased_ns, length, pid = getpid();
	bool found = false;

	for (size_t i = 0; i < j->events.n; i++) {
		const struct mew_trace_event *e = &j->events.list[i];

		if (e->phase != 'M' && e->ts_ns + e->duration_ns > last)
			last = e->ts_ns + e->duration_ns;
		if (j->has_own && !found && e->file == 0) {
			found = true;
			pid = e->pid;
		}
	}
	if (!found) { /* nothing else is left of the process */
		mew_trace_write_name(w, "process_name", pid, 0, "mew", pid);
		mew_trace_write_name(w, "thread_name", pid, MEW_TRACE_MAIN_TID, "run", pid);
	}
	length = m->fixed_clock ? 1000 : (int64_t)mew_os_now_ns() - j->started_ns;
	mew_writef(w, "{\"ph\":\"X\",\"pid\":%lld,\"tid\":%d,\"cat\":\"mew\",\"name\":\"trace: write\",\"ts\":",
		   (long long)pid, MEW_TRACE_MAIN_TID);
	mew_write_us(w, (uint64_t)(start > last ? start : last));
	mew_write_text(w, ",\"dur\":");
	mew_write_us(w, (uint64_t)(length > 0 ? length : 1));
	mew_writef(w, ",\"args\":{\"events\":%zu}}\n", j->events.n);
}

static void write_other(struct mew_writer *w, const struct job *j)
{
	const struct mew_trace_merge *m = j->m;
	int64_t epoch = m->pairs[0].realtime_ns - m->pairs[0].monotonic_ns + m->zero_ns - j->rebased_ns;

	mew_writef(w, "],\"otherData\":{\"mew\":\"%s\",\"epoch_ns\":\"%lld\",\"fragments\":%zu,\"bad_events\":%llu,",
		   MEW_VERSION, (long long)epoch, m->fragments, (unsigned long long)m->bad);
	mew_writef(w, "\"dropped_events\":%llu,\"lost_records\":%llu,\"torn_fragments\":%llu,\"unended_fragments\":%llu,\"rebased_ns\":%lld,",
		   (unsigned long long)m->dropped, (unsigned long long)m->lost,
		   (unsigned long long)m->torn, (unsigned long long)m->unended, (long long)j->rebased_ns);
	mew_writef(w, "\"samples_left_out\":%llu,", (unsigned long long)m->thinned);
	mew_writef(w, "\"clock_step_ns\":%lld,\"suspended_ns\":%lld}}\n", (long long)step_of(m),
		   (long long)sleep_of(m));
}

static void write_text(struct mew_writer *w, struct job *j)
{
	mew_write_text(w, "{\"traceEvents\":[\n");
	mew_trace_write_missing_names(w, &j->events);
	for (size_t i = 0; i < j->events.n; i++) {
		mew_trace_write_event(w, &j->events.list[i]);
		mew_write_text(w, ",\n");
	}
	write_own_cost(w, j);
	write_other(w, j);
}

static int write_body(struct mew_writer *w, void *data, struct mew_error *err)
{
	struct job *j = data;
	size_t n = strlen(j->m->output), bytes, packed;
	unsigned char *gzip = NULL;
	struct mew_writer *memory;
	char *text;

	if (n < 3 || strcmp(j->m->output + n - 3, ".gz") != 0) {
		write_text(w, j);
		return MEW_OK;
	}
	memory = malloc(sizeof *memory);
	if (memory == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to pack the trace; choose a name without .gz");
	mew_writer_memory(memory);
	write_text(memory, j);
	text = mew_writer_take(memory, &bytes);
	free(memory);
	if (text != NULL)
		gzip = mew_gzip(text, bytes, &packed);
	if (gzip != NULL)
		mew_write_bytes(w, gzip, packed);
	free(text);
	if (gzip == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to pack the trace; choose a name without .gz");
	free(gzip);
	return MEW_OK;
}

static void warn_of_clocks(const struct mew_trace_merge *m)
{
	char line[200];

	if (step_of(m) != 0) {
		(void)snprintf(line, sizeof line,
			       "the time of day was set by %.3f s during the run; events of other programs from "
						  "about then may be off by that", (double)step_of(m) / 1e9);
		m->say(line);
	}
	if (sleep_of(m) != 0) {
		(void)snprintf(line, sizeof line,
			       "the machine slept for %.3f s during the run; the timeline leaves that out",
			       (double)sleep_of(m) / 1e9);
		m->say(line);
	}
}

static int read_files(struct job *j, struct mew_error *err)
{
	struct mew_trace_merge *m = j->m;
	int status = mew_trace_files_read(&j->files, AT_FDCWD, m->own, MEW_FRAGMENTS_MAX, &j->events, err);

	j->has_own = status == MEW_OK;
	if (status == MEW_OK)
		mew_trace_files_tell(&j->files.list[0], m->say);
	if (status != MEW_OK && status != MEW_E_NOMEM) {
		m->say(err->text); /* what the children left is still worth a file */
		status = MEW_OK;
	}
	if (status == MEW_OK)
		status = mew_trace_files_sweep(&j->files, m->directory, &j->events, m->say, err);
	for (size_t i = 0; i < j->files.n; i++) {
		m->torn += j->files.list[i].torn;
		m->unended += j->files.list[i].unended;
		m->bad += j->files.list[i].bad;
		m->lost += j->files.list[i].lost;
		m->thinned += j->files.list[i].thinned;
	}
	m->fragments = j->files.n;
	return status;
}

static int join_events(struct job *j, struct mew_error *err)
{
	int status = mew_trace_renumber(&j->events, &j->files);

	shift(j->m, &j->events, &j->files);
	j->rebased_ns = rebase(&j->events);
	if (status == MEW_OK) {
		mew_trace_drop_old_names(&j->events);
		mew_trace_pair(&j->events);
		mew_trace_nest(&j->events);
		mew_trace_sort(&j->events);
	}
	j->m->events = j->events.n;
	j->m->dropped = j->events.dropped;
	j->m->far = j->events.far;
	j->m->beyond = j->events.beyond;
	if (status != MEW_OK || j->events.failed)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to join the fragments of the trace");
	return MEW_OK;
}

int mew_trace_merge(struct mew_trace_merge *m, struct mew_error *err)
{
	struct job j = { .m = m, .started_ns = m->fixed_clock ? m->pairs[m->npairs - 1].monotonic_ns :
			 (int64_t)mew_os_now_ns() };
	int status = read_files(&j, err);

	if (status == MEW_OK)
		status = join_events(&j, err);
	if (status == MEW_OK) {
		warn_of_clocks(m);
		status = mew_write_file(m->output, write_body, &j, err);
	}
	mew_trace_events_fini(&j.events);
	mew_trace_files_fini(&j.files);
	return status;
}
