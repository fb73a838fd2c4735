/*
 * trace_tracks.c - see trace_tracks.h.
 * Layer L6. The thread that asked for the trace, after the measurement.
 */
#include "config.h"

#include "trace_tracks.h"

#include <stdlib.h>
#include <string.h>

#define PROCESSES_MAX 4096u

/* --- process ids ------------------------------------------------------------------------------------------------ */

struct process {
	uint32_t file;
	int64_t pid, shown;
	struct mew_slice name;
	const struct mew_trace_source *source;
};
struct processes {
	struct process *list;
	size_t n, last;
	int64_t next; /* an id that no kernel gives */
};

static struct process *find_process(struct processes *p, uint32_t file, int64_t pid)
{
	if (p->last < p->n && p->list[p->last].file == file && p->list[p->last].pid == pid)
		return &p->list[p->last]; /* most events follow one of their process */
	for (p->last = 0; p->last < p->n; p->last++)
		if (p->list[p->last].file == file && p->list[p->last].pid == pid)
			return &p->list[p->last];
	return NULL;
}

static bool list_processes(struct processes *p, const struct mew_trace_events *events,
			   const struct mew_trace_files *files)
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
			*found = (struct process){ .file = e->file, .pid = e->pid, .shown = e->pid,
						   .source = &files->list[e->file] };
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
	return !a->source->is_ours && !b->source->is_ours &&
	       (a->name.n == 0 || b->name.n == 0 || mew_slice_order(a->name, b->name) == 0);
}

/*
 * That of the process, where another file of it has come before; one that is free, where another process has its own.
 */
static void choose_number(struct processes *p, size_t i)
{
	struct process *one = &p->list[i];
	bool taken = false;

	for (size_t k = 0; k < i; k++) {
		if (p->list[k].file != one->file && p->list[k].pid == one->pid && is_same(&p->list[k], one)) {
			one->shown = p->list[k].shown;
			return;
		}
		taken = taken || (p->list[k].shown == one->pid && p->list[k].file != one->file);
	}
	if (taken)
		one->shown = p->next++;
}

int mew_trace_renumber(struct mew_trace_events *events, const struct mew_trace_files *files)
{
	struct processes p = { .next = 0x1000000 };

	if (!list_processes(&p, events, files)) {
		free(p.list);
		return MEW_E_NOMEM;
	}
	for (size_t i = 0; i < p.n; i++)
		choose_number(&p, i);
	for (size_t i = 0; i < events->n; i++) {
		const struct process *found = find_process(&p, events->list[i].file, events->list[i].pid);

		if (found != NULL)
			events->list[i].pid = found->shown;
		else
			events->list[i].dropped = true;
		events->dropped += found == NULL;
		events->beyond += found == NULL;
	}
	free(p.list);
	return MEW_OK;
}

/* --- names of tracks -------------------------------------------------------------------------------------------- */

static int by_place(const void *x, const void *y)
{
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x,
		*b = *(const struct mew_trace_event *const *)y;
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
	const struct mew_trace_event *a = *(const struct mew_trace_event *const *)x,
		*b = *(const struct mew_trace_event *const *)y;
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

void mew_trace_drop_old_names(struct mew_trace_events *events)
{
	struct mew_trace_event **list = malloc((events->n + 1) * sizeof(struct mew_trace_event *));
	size_t n = 0;

	if (list == NULL) {
		events->failed = true;
		return;
	}
	for (size_t i = 0; i < events->n; i++)
		if (events->list[i].phase == 'M' && !events->list[i].dropped)
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

void mew_trace_write_name(struct mew_writer *w, const char *what, int64_t pid, int64_t tid, const char *kind,
			  int64_t number)
{
	mew_writef(w, "{\"ph\":\"M\",\"pid\":%lld,\"tid\":%lld,\"name\":\"%s\",\"args\":{\"name\":\"%s %lld\"}},\n",
		   (long long)pid, (long long)tid, what, kind, (long long)number);
}

static bool is_named(const struct mew_trace_event *e, size_t n, struct mew_trace_event *const *list, const char *what,
		     bool thread)
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
			mew_trace_write_name(w, "process_name", list[i]->pid, 0, "process", list[i]->pid);
		for (size_t k = i, next; k < end; k = next) {
			bool used = false;

			for (next = k; next < end && list[next]->tid == list[k]->tid; next++)
				used = used || has_thread(list[next]->phase);
			if (used && !is_named(list[k], next - k, list + k, "thread_name", true))
				mew_trace_write_name(w, "thread_name", list[k]->pid, list[k]->tid, "thread",
						     list[k]->tid);
		}
	}
}

void mew_trace_write_missing_names(struct mew_writer *w, struct mew_trace_events *events)
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
