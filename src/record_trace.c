/*
 * record_trace.c - see record_trace.h. A fragment has the format of trace_log.h, under the process's own number.
 * Layer L4. The command's thread.
 */
#include "config.h"

#include "record_trace.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error.h"
#include "memory.h"
#include "os.h"
#include "record_window.h"
#include "symbolise.h"
#include "trace_log.h"
#include "trace_text.h"

#define POINTS 8192u
#define THREADS 1024u
#define NAME_NS 1000000000u /* a name that changed is seen within this time */
#define MEW_EVENT "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,"

struct point {
	uint64_t time_ns, live, allocations, resident;
};

struct thread {
	int tid;
	char name[20];
	uint64_t first_ns, last_ns, named_ns; /* seen, seen last, its name read */
};

struct watched { /* one process image */
	int pid, file;
	struct mew_record_root *root; /* and its variables: as they are now; NULL: they cannot be seen */
	const char *data;
	size_t data_bytes, heap_at; /* heap_at: of the counters in it; data_bytes: nowhere */
	char name[256]; /* of its program */
	struct point *points;
	size_t npoints;
	unsigned stride, skipped; /* one look of so many is kept */
	struct thread *threads;
	size_t nthreads;
};

struct mew_record_trace {
	struct watched *list;
	size_t n;
	unsigned written;
};

struct mew_record_trace *mew_record_trace_new(void)
{
	return calloc(1, sizeof(struct mew_record_trace));
}

static void forget(struct watched *w)
{
	if (w->data != NULL)
		(void)munmap((void *)(uintptr_t)w->data, w->data_bytes);
	if (w->root != NULL)
		(void)munmap(w->root, MEW_RECORD_ROOT_BYTES);
	free(w->points);
	free(w->threads);
}

void mew_record_trace_free(struct mew_record_trace *t)
{
	for (size_t i = 0; t != NULL && i < t->n; i++)
		forget(&t->list[i]);
	if (t != NULL)
		free(t->list);
	free(t);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

static void map_variables(struct watched *w)
{
	struct mew_record_root head; /* as it was handed over; what is mapped the process can still write to */
	void *root, *data;
	uint64_t at;

	if (mew_recording_root(w->file, &head, NULL) != MEW_OK || head.data_bytes < sizeof(struct mew_heap))
		return;
	root = mmap(NULL, MEW_RECORD_ROOT_BYTES, PROT_READ, MAP_SHARED, w->file, 0);
	w->root = root != MAP_FAILED ? root : NULL;
	data = mmap(NULL, head.data_bytes, PROT_READ, MAP_SHARED, w->file, (off_t)MEW_RECORD_BYTES);
	if (data == MAP_FAILED || w->root == NULL) {
		if (data != MAP_FAILED)
			(void)munmap(data, head.data_bytes);
		return;
	}
	w->data = data;
	w->data_bytes = head.data_bytes;
	at = head.statics[0].at - head.data_lo;
	w->heap_at = w->data_bytes;
	if (head.statics[0].bytes == sizeof(struct mew_heap) && at <= head.data_bytes - sizeof(struct mew_heap))
		w->heap_at = at;
	(void)snprintf(w->name, sizeof w->name, "%.255s", mew_base_name(head.program));
}

/* The entry of a recording; made at the first look. NULL without memory. */
static struct watched *watched_of(struct mew_record_trace *t, const struct mew_recording *g)
{
	struct watched *list, *w;

	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].file == g->file)
			return &t->list[i];
	list = realloc(t->list, (t->n + 1) * sizeof *list);
	if (list == NULL)
		return NULL;
	t->list = list;
	w = &list[t->n++];
	*w = (struct watched){ .pid = g->pid, .file = g->file, .stride = 1 };
	w->points = malloc(POINTS * sizeof *w->points);
	w->threads = malloc(THREADS * sizeof *w->threads);
	map_variables(w);
	return w;
}

static void read_heap(const struct watched *w, struct point *p)
{
	const struct mew_heap *heap;

	if (w->heap_at == w->data_bytes)
		return;
	heap = (const struct mew_heap *)(const void *)(w->data + w->heap_at);
	p->live = heap->live > 0 ? (uint64_t)heap->live : 0;
	p->allocations = mew_heap_allocations(&heap->counts);
}

/* A long run is drawn by every second point, then by every fourth. */
static void thin(struct watched *w)
{
	for (size_t i = 1; i < POINTS / 2; i++)
		w->points[i] = w->points[2 * i];
	w->npoints = POINTS / 2;
	w->stride *= 2;
}

/* A thread is named early in its life, if ever: at first read it at each look, then at every second one, and so on. */
static void read_name(int pid, struct thread *t)
{
	uint64_t age = t->named_ns - t->first_ns;
	char path[64];
	FILE *f;

	if (t->named_ns != 0 && t->last_ns - t->named_ns < (age < NAME_NS ? age : NAME_NS))
		return;
	t->named_ns = t->last_ns;
	(void)snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, t->tid);
	f = fopen(path, "re");
	if (f != NULL && fgets(t->name, sizeof t->name, f) != NULL)
		t->name[strcspn(t->name, "\n")] = '\0';
	if (f != NULL)
		(void)fclose(f);
}

static void look_at_threads(struct watched *w, uint64_t now)
{
	char path[64];
	DIR *dir;

	(void)snprintf(path, sizeof path, "/proc/%d/task", w->pid);
	dir = opendir(path);
	for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
		int tid = isdigit((unsigned char)d->d_name[0]) ? (int)strtol(d->d_name, NULL, 10) : 0;
		struct thread *found = NULL;

		for (size_t i = 0; i < w->nthreads && found == NULL; i++)
			found = w->threads[i].tid == tid ? &w->threads[i] : NULL;
		if (found == NULL && tid != 0 && w->nthreads < THREADS) {
			found = &w->threads[w->nthreads++];
			*found = (struct thread){ .tid = tid, .first_ns = now };
		}
		if (found == NULL)
			continue;
		found->last_ns = now;
		read_name(w->pid, found);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

/* It became another program, which is a recording of its own: what the pid has now is not of this image. */
static bool is_past(const struct watched *w)
{
	return w->root != NULL && __atomic_load_n(&w->root->became_ns, __ATOMIC_ACQUIRE) != 0;
}

void mew_record_trace_look(struct mew_record_trace *t, const struct mew_recorder *r)
{
	uint64_t now = mew_os_now_ns();

	for (size_t i = 0; i < r->n; i++) {
		struct watched *w = r->list[i].file >= 0 && r->list[i].ended_ns == 0 ? watched_of(t, &r->list[i]) :
				    NULL;
		struct point p = { .time_ns = now };

		if (w == NULL || w->points == NULL || w->threads == NULL || is_past(w) || ++w->skipped < w->stride)
			continue;
		w->skipped = 0;
		read_heap(w, &p);
		p.resident = mew_os_resident_of(w->pid);
		if (w->npoints == POINTS)
			thin(w);
		if (p.resident != 0) /* else it has just ended */
			w->points[w->npoints++] = p;
		look_at_threads(w, now);
	}
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct fragment {
	FILE *to;
	int pid;
	uint64_t zero_ns, ended_ns;
	struct mew_trace_text text;
};

static void put_time(struct fragment *f, const char *member, uint64_t ns)
{
	(void)fprintf(f->to, ",\"%s\":%" PRIu64 ".%03u", member, ns / 1000, (unsigned)(ns % 1000));
}

static const char *quoted(struct fragment *f, const char *text)
{
	f->text.used = 0;
	mew_trace_text_string(&f->text, text);
	return f->text.data;
}

static void put_name(struct fragment *f, const char *what, int tid, const char *name)
{
	(void)fprintf(f->to, MEW_EVENT "\"name\":\"%s\",\"args\":{\"name\":%s}},\n", "M", f->pid, tid, what,
		      quoted(f, name));
}

/* From and to of CLOCK_MONOTONIC, within the process's life. */
static void put_slice(struct fragment *f, int tid, const char *category, const char *name, uint64_t from, uint64_t to,
		      const char *args)
{
	from = from > f->zero_ns ? from : f->zero_ns;
	to = to > f->ended_ns ? f->ended_ns : to;
	(void)fprintf(f->to, MEW_EVENT "\"cat\":\"%s\",\"name\":%s", "X", f->pid, tid, category, quoted(f, name));
	put_time(f, "ts", from - f->zero_ns);
	put_time(f, "dur", to > from ? to - from : 1);
	(void)fprintf(f->to, ",\"args\":{%s}},\n", args);
}

static void put_counter(struct fragment *f, const char *name, const char *series, uint64_t at, uint64_t value)
{
	(void)fprintf(f->to, MEW_EVENT "\"name\":\"%s\"", "C", f->pid, 0, name);
	put_time(f, "ts", at > f->zero_ns ? at - f->zero_ns : 0);
	(void)fprintf(f->to, ",\"args\":{\"%s\":%" PRIu64 "}},\n", series, value);
}

static void put_points(struct fragment *f, const struct watched *w, bool has_heap)
{
	for (size_t i = 0; i < w->npoints; i++) {
		const struct point *p = &w->points[i];

		put_counter(f, "resident memory", "bytes", p->time_ns, p->resident);
		if (!has_heap)
			continue;
		put_counter(f, "live heap", "bytes", p->time_ns, p->live);
		put_counter(f, "allocations", "count", p->time_ns, p->allocations);
	}
}

static void put_threads(struct fragment *f, const struct watched *w)
{
	for (size_t i = 0; i < w->nthreads; i++) {
		const struct thread *t = &w->threads[i];

		if (t->tid == f->pid)
			continue;
		put_name(f, "thread_name", t->tid, t->name);
		put_slice(f, t->tid, "thread", t->name, t->first_ns, t->last_ns, "");
	}
}

static void put_figures(struct fragment *f, const struct mew_record_window *w, const struct mew_case *c)
{
	if (mew_case_has(c, MEW_KIND_MEMORY) && c->memory.status == MEW_OK) {
		put_counter(f, "live heap", "bytes", w->closed_ns, c->memory.net_bytes);
		put_counter(f, "allocations", "count", w->closed_ns, c->memory.total_allocations);
	}
	if (mew_case_has(c, MEW_KIND_CPU) && c->cpu.status == MEW_OK) {
		put_counter(f, "samples", "kept", w->closed_ns, c->cpu.sample_count);
		put_counter(f, "samples lost", "lost", w->closed_ns, c->cpu.lost);
	}
}

static void put_process(struct fragment *f, const struct watched *w, const struct mew_record_orders *o,
			const struct mew_case *c)
{
	struct mew_record_window window;

	(void)fprintf(f->to, "[\n" MEW_EVENT "\"name\":\"mew_trace\",\"args\":{\"schema\":1,\"clock\":\"monotonic\","
		      "\"zero_ns\":\"%" PRIu64 "\"}},\n", "M", f->pid, 0, f->zero_ns);
	put_name(f, "process_name", 0, w->name);
	put_name(f, "thread_name", f->pid, "main thread");
	put_slice(f, f->pid, "process", w->name, f->zero_ns, f->ended_ns, w->root->ended_ns != 0 ? "\"end\":\"exit\"" :
		  is_past(w) ? "\"end\":\"exec\"" : "\"end\":\"_exit, a signal or exec\"");
	mew_record_window_of(w->root, o->from_ns, f->ended_ns, &window);
	if (mew_record_window_opened(w->root, o))
		put_slice(f, f->pid, "window", "window", window.opened_ns, window.closed_ns, "");
	put_threads(f, w);
	put_points(f, w, (w->root->kinds & MEW_RECORD_MEMORY) != 0);
	if (c != NULL)
		put_figures(f, &window, c);
}

/* Through the directory, which may not be a link. */
static FILE *open_fragment(int pid, unsigned number)
{
	const char *directory = getenv(MEW_TRACE_DIR_VARIABLE);
	int folder = directory != NULL ? open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1, fd;
	char name[64];
	FILE *f;

	if (folder < 0)
		return NULL;
	(void)snprintf(name, sizeof name, "record-%d-%u.json", pid, number);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	(void)close(folder);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (f == NULL && fd >= 0)
		(void)close(fd);
	return f;
}

int mew_record_trace_write(struct mew_record_trace *t, const struct mew_recording *g, const struct mew_record_orders *o,
			   const struct mew_case *c, struct mew_error *err)
{
	struct watched *w = g->file >= 0 ? watched_of(t, g) : NULL;
	struct fragment *f;
	bool failed;

	if (w == NULL || w->data == NULL)
		return MEW_OK; /* the report says why it is not recorded */
	f = calloc(1, sizeof *f);
	if (f == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the timeline of process %d", g->pid);
	f->pid = g->pid;
	f->zero_ns = w->root->opened_ns;
	f->ended_ns = mew_record_window_ended(w->root, g->ended_ns);
	f->to = open_fragment(g->pid, t->written++);
	failed = f->to == NULL;
	if (!failed) {
		put_process(f, w, o, c);
		failed = ferror(f->to) != 0;
		failed = fclose(f->to) != 0 || failed;
	}
	free(f);
	if (!failed)
		return MEW_OK;
	return mew_error_errno(err, MEW_E_IO, "the timeline of process %d cannot be written to the directory of %s",
			       g->pid, MEW_TRACE_DIR_VARIABLE);
}
