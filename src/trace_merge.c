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
#include "trace_files.h"
#include "trace_log.h"
#include "trace_write.h"

#define DAY_NS ((int64_t)86400 * 1000000000)
#define PROCESSES_MAX 4096u
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
		int64_t before = read_clock(CLOCK_MONOTONIC), real = read_clock(CLOCK_REALTIME), after = read_clock(CLOCK_MONOTONIC);

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

		if (e->phase == 'M')
			continue;
		before = e->ts_ns;
		e->ts_ns = s->is_ours ? e->ts_ns + s->zero_ns - m->zero_ns : from_epoch(m, e->ts_ns);
		e->start_ns += e->ts_ns - before;
		if (is_far(e->ts_ns, end) || (e->has_start && is_far(e->start_ns, end))) {
			e->dropped = true;
			events->dropped++;
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

/* --- process ids ------------------------------------------------------------------------------------------------ */

struct process {
	uint32_t file;
	int64_t pid, shown;
	struct mew_slice name;
	const struct mew_trace_source *source;
};
struct processes {
	struct process *list;
	size_t n;
	int64_t next; /* an id that no kernel gives */
};

static struct process *find_process(struct processes *p, uint32_t file, int64_t pid)
{
	for (size_t i = p->n; i-- > 0;) /* a file's events follow each other: its processes are the last ones */
		if (p->list[i].file == file && p->list[i].pid == pid)
			return &p->list[i];
	return NULL;
}

static bool list_processes(struct processes *p, const struct mew_trace_events *events, const struct mew_trace_files *files)
{
	for (size_t i = 0; i < events->n; i++) {
		const struct mew_trace_event *e = &events->list[i];
		struct process *found = find_process(p, e->file, e->pid);

		if (found == NULL && p->n == PROCESSES_MAX)
			continue; /* a hostile file; what is not in the list is left out */
		if (found == NULL) {
			struct process *list = realloc(p->list, (p->n + 1) * sizeof *list);

			if (list == NULL)
				return false;
			p->list = list;
			found = &list[p->n++];
			*found = (struct process){ .file = e->file, .pid = e->pid, .shown = e->pid, .source = &files->list[e->file] };
		}
		if (e->phase == 'M' && mew_slice_is(e->name, "process_name"))
			found->name = e->args;
	}
	return true;
}

/*
 * One process may drop several files. The same number under another name is another process; files of mew are of one
 * process when they also have one zero.
 */
static bool is_same(const struct process *a, const struct process *b)
{
	if (a->source->is_ours && b->source->is_ours)
		return a->source->zero_ns == b->source->zero_ns;
	return !a->source->is_ours && !b->source->is_ours && (a->name.n == 0 || b->name.n == 0 || mew_slice_order(a->name, b->name) == 0);
}

static int renumber_processes(struct mew_trace_events *events, const struct mew_trace_files *files)
{
	struct processes p = { .next = 0x1000000 };

	if (!list_processes(&p, events, files)) {
		free(p.list);
		return MEW_E_NOMEM;
	}
	for (size_t i = 0; i < p.n; i++)
		for (size_t k = 0; k < i; k++)
			if (p.list[k].shown == p.list[i].shown && p.list[k].file != p.list[i].file && !is_same(&p.list[k], &p.list[i])) {
				p.list[i].shown = p.next++;
				break;
			}
	for (size_t i = 0; i < events->n; i++) {
		const struct process *found = find_process(&p, events->list[i].file, events->list[i].pid);

		if (found != NULL)
			events->list[i].pid = found->shown;
		else
			events->list[i].dropped = true;
		events->dropped += found == NULL;
	}
	free(p.list);
	return MEW_OK;
}

/* --- names of tracks -------------------------------------------------------------------------------------------- */

static int by_place(const void *x, const void *y)
{
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x, *b = *(const struct mew_trace_event *const *)y;
	int order = (a->pid > b->pid) - (a->pid < b->pid);

	if (order == 0)
		order = (a->tid > b->tid) - (a->tid < b->tid);
	return order;
}

static bool names_process(const struct mew_trace_event *e)
{
	return mew_slice_is(e->name, "process_name") || mew_slice_is(e->name, "process_sort_index") ||
	       mew_slice_is(e->name, "process_labels");
}

static bool names_thread(const struct mew_trace_event *e)
{
	return mew_slice_is(e->name, "thread_name") || mew_slice_is(e->name, "thread_sort_index");
}

/* By what they name; of one thing the last word comes last. */
static int by_subject(const void *x, const void *y)
{
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x, *b = *(const struct mew_trace_event *const *)y;
	int order = (a->pid > b->pid) - (a->pid < b->pid);

	if (order == 0)
		order = mew_slice_order(a->name, b->name);
	if (order == 0 && !names_process(a))
		order = (a->tid > b->tid) - (a->tid < b->tid);
	return order != 0 ? order : (a->serial > b->serial) - (a->serial < b->serial);
}

static bool is_same_subject(const struct mew_trace_event *a, const struct mew_trace_event *b)
{
	return a->pid == b->pid && mew_slice_order(a->name, b->name) == 0 && (names_process(a) || a->tid == b->tid);
}

static void drop_old_names(struct mew_trace_events *events)
{
	struct mew_trace_event **list = malloc((events->n + 1) * sizeof(struct mew_trace_event *));
	size_t n = 0;

	if (list == NULL) {
		events->failed = true;
		return;
	}
	for (size_t i = 0; i < events->n; i++)
		if (events->list[i].phase == 'M')
			list[n++] = &events->list[i];
	qsort(list, n, sizeof(struct mew_trace_event *), by_subject);
	for (size_t i = 0; i < n; i++)
		list[i]->dropped = (!names_process(list[i]) && !names_thread(list[i])) ||
				   (i + 1 < n && is_same_subject(list[i], list[i + 1]));
	free(list);
}

static bool has_thread(char phase)
{
	return strchr("XistfP", phase) != NULL;
}

static void write_name(struct mew_writer *w, const char *what, int64_t pid, int64_t tid, const char *kind, int64_t number)
{
	mew_writef(w, "{\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"name\":\"%s\",\"args\":{\"name\":\"%s %lld\"}},\n", (long long)pid,
		   (long long)tid, what, kind, (long long)number);
}

static bool is_named(const struct mew_trace_event *e, size_t n, struct mew_trace_event *const *list, const char *what, bool thread)
{
	for (size_t i = 0; i < n; i++)
		if (list[i]->phase == 'M' && mew_slice_is(list[i]->name, what) && (!thread || list[i]->tid == e->tid))
			return true;
	return false;
}

static void name_tracks(struct mew_writer *w, struct mew_trace_event **list, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && list[end]->pid == list[i]->pid; end++)
			;
		if (!is_named(list[i], end - i, list + i, "process_name", false))
			write_name(w, "process_name", list[i]->pid, 0, "process", list[i]->pid);
		for (size_t k = i, next; k < end; k = next) {
			bool used = false;

			for (next = k; next < end && list[next]->tid == list[k]->tid; next++)
				used = used || has_thread(list[next]->phase);
			if (used && !is_named(list[k], next - k, list + k, "thread_name", true))
				write_name(w, "thread_name", list[k]->pid, list[k]->tid, "thread", list[k]->tid);
		}
	}
}

/* Tracks that nobody named get their number for a name. */
static void write_missing_names(struct mew_writer *w, struct mew_trace_events *events)
{
	struct mew_trace_event **list = malloc((events->n + 1) * sizeof(struct mew_trace_event *));

	if (list == NULL) {
		events->failed = true;
		return;
	}
	for (size_t i = 0; i < events->n; i++)
		list[i] = &events->list[i];
	qsort(list, events->n, sizeof(struct mew_trace_event *), by_place);
	name_tracks(w, list, events->n);
	free(list);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

struct job {
	struct mew_trace_merge *m;
	struct mew_trace_events events;
	struct mew_trace_files files;
	int64_t started_ns, rebased_ns;
};

/* The last slice: what reading, joining and writing the trace took, up to this line. */
static void write_own_cost(struct mew_writer *w, const struct job *j)
{
	const struct mew_trace_merge *m = j->m;
	int64_t last = 0, start = j->started_ns - m->zero_ns + j->rebased_ns, length;
	const struct mew_trace_event *own = NULL;

	for (size_t i = 0; i < j->events.n; i++) {
		const struct mew_trace_event *e = &j->events.list[i];

		if (e->phase != 'M' && e->ts_ns + e->duration_ns > last)
			last = e->ts_ns + e->duration_ns;
		if (own == NULL && e->file == 0)
			own = e;
	}
	if (own == NULL)
		return;
	length = m->fixed_clock ? 1000 : (int64_t)mew_os_now_ns() - j->started_ns;
	mew_writef(w, "{\"ph\":\"X\",\"pid\":%lld,\"tid\":%d,\"cat\":\"mew\",\"name\":\"trace: write\",\"ts\":", (long long)own->pid,
		   MEW_TRACE_MAIN_TID);
	mew_write_us(w, (uint64_t)(start > last ? start : last));
	mew_write_text(w, ",\"dur\":");
	mew_write_us(w, (uint64_t)(length > 0 ? length : 1));
	mew_writef(w, ",\"args\":{\"events\":%zu}}\n", j->events.n);
}

static void write_other(struct mew_writer *w, const struct job *j)
{
	const struct mew_trace_merge *m = j->m;
	int64_t epoch = m->pairs[0].realtime_ns - m->pairs[0].monotonic_ns + m->zero_ns - j->rebased_ns;

	mew_writef(w, "],\"otherData\":{\"mew\":\"%s\",\"epoch_ns\":\"%lld\",\"fragments\":%zu,\"bad_events\":%llu,", MEW_VERSION,
		   (long long)epoch, m->fragments, (unsigned long long)m->bad);
	mew_writef(w, "\"dropped_events\":%llu,\"lost_records\":%llu,\"rebased_ns\":%lld,", (unsigned long long)m->dropped,
		   (unsigned long long)m->lost, (long long)j->rebased_ns);
	mew_writef(w, "\"samples_left_out\":%llu,", (unsigned long long)m->thinned);
	mew_writef(w, "\"clock_step_ns\":%lld,\"suspended_ns\":%lld}}\n", (long long)step_of(m), (long long)sleep_of(m));
}

static void write_text(struct mew_writer *w, struct job *j)
{
	mew_write_text(w, "{\"traceEvents\":[\n");
	write_missing_names(w, &j->events);
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
		(void)snprintf(line, sizeof line, "the time of day was set by %.3f s during the run; events of other programs from "
						  "about then may be off by that", (double)step_of(m) / 1e9);
		m->say(line);
	}
	if (sleep_of(m) != 0) {
		(void)snprintf(line, sizeof line, "the machine slept for %.3f s during the run; the timeline leaves that out",
			       (double)sleep_of(m) / 1e9);
		m->say(line);
	}
}

static int read_files(struct job *j, struct mew_error *err)
{
	struct mew_trace_merge *m = j->m;
	int status = mew_trace_files_read(&j->files, AT_FDCWD, m->own, MEW_FRAGMENTS_MAX, &j->events, err);

	if (status != MEW_OK && status != MEW_E_NOMEM) {
		m->say(err->text); /* what the children left is still worth a file */
		status = MEW_OK;
	}
	if (status == MEW_OK)
		status = mew_trace_files_sweep(&j->files, m->directory, &j->events, m->say, err);
	for (size_t i = 0; i < j->files.n; i++) {
		m->bad += j->files.list[i].bad;
		m->lost += j->files.list[i].lost;
		m->thinned += j->files.list[i].thinned;
	}
	m->fragments = j->files.n;
	return status;
}

static int join_events(struct job *j, struct mew_error *err)
{
	int status = renumber_processes(&j->events, &j->files);

	shift(j->m, &j->events, &j->files);
	j->rebased_ns = rebase(&j->events);
	if (status == MEW_OK) {
		drop_old_names(&j->events);
		mew_trace_pair(&j->events);
		mew_trace_nest(&j->events);
		mew_trace_sort(&j->events);
	}
	j->m->events = j->events.n;
	j->m->dropped = j->events.dropped;
	if (status != MEW_OK || j->events.failed)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to join the fragments of the trace");
	return MEW_OK;
}

int mew_trace_merge(struct mew_trace_merge *m, struct mew_error *err)
{
	struct job j = { .m = m, .started_ns = m->fixed_clock ? m->pairs[m->npairs - 1].monotonic_ns : (int64_t)mew_os_now_ns() };
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
