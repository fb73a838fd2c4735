/*
 * trace_samples.c - see trace_samples.h.
 * Layer L5. The thread that finished the model.
 */
#include "config.h"

#include "trace_samples.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"
#include "error.h"
#include "os.h"
#include "stacks.h"
#include "trace.h"
#include "trace_log.h"
#include "writer.h"

#define CHUNK 1000u /* samples of one event */
#define FILES_MAX 4096u

struct node { /* in the tree of the profile that is being written */
	uint32_t parent, function;
};

struct tree {
	struct node *nodes; /* node i has the id i + 1 */
	uint32_t n, said, capacity;
	uint32_t *slots;    /* ids by parent and function; open addressing, 0 is free */
	size_t nslots;
	uint32_t *of_stack; /* id of the innermost node; 0: not yet */
};

struct job {
	const struct mew_model *m;
	struct mew_trace_samples *s;
	struct mew_shown_functions shown;
	struct tree tree;
	struct mew_writer *w;
	uint64_t stride, nodes; /* every so manieth sample; nodes of all trees so far */
	uint32_t profiles;      /* of the file */
	bool failed;
};

/* --- the tree --------------------------------------------------------------------------------------------------- */

static bool tree_init(struct tree *t, const struct mew_model *m)
{
	*t = (struct tree){ .nslots = 1024, .capacity = 256 };
	t->nodes = calloc(t->capacity, sizeof *t->nodes);
	t->slots = calloc(t->nslots, sizeof *t->slots);
	t->of_stack = calloc(m->nstacks + 1, sizeof *t->of_stack);
	return t->nodes != NULL && t->slots != NULL && t->of_stack != NULL;
}

static void tree_fini(struct tree *t)
{
	free(t->nodes);
	free(t->slots);
	free(t->of_stack);
}

static size_t slot_of(const struct tree *t, uint32_t parent, uint32_t function)
{
	uint64_t hash = (((uint64_t)parent << 32 | function) + 1) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(hash >> 32) & (t->nslots - 1);

	while (t->slots[at] != 0 &&
	       (t->nodes[t->slots[at] - 1].parent != parent || t->nodes[t->slots[at] - 1].function != function))
		at = (at + 1) & (t->nslots - 1);
	return at;
}

static bool tree_grow(struct tree *t)
{
	uint32_t *slots = calloc(t->nslots * 2, sizeof *slots), capacity = t->capacity > 0 ? t->capacity * 2 : 256;
	struct node *nodes = slots != NULL ? realloc(t->nodes, capacity * sizeof *nodes) : NULL;

	if (nodes == NULL) {
		free(slots);
		return false;
	}
	t->nodes = nodes;
	t->capacity = capacity;
	free(t->slots);
	t->slots = slots;
	t->nslots *= 2;
	for (uint32_t i = 0; i < t->n; i++)
		t->slots[slot_of(t, t->nodes[i].parent, t->nodes[i].function)] = i + 1;
	return true;
}

/* The id of a node, which is made where it is not there; 0 when there is no room for one more. */
static uint32_t node_of(struct job *j, uint32_t parent, uint32_t function)
{
	struct tree *t = &j->tree;
	size_t at = slot_of(t, parent, function);

	if (t->slots[at] != 0)
		return t->slots[at];
	if (j->nodes >= j->s->nodes_max)
		return 0;
	if (t->n == t->capacity) {
		if (!tree_grow(t)) {
			j->failed = true;
			return 0;
		}
		at = slot_of(t, parent, function);
	}
	t->nodes[t->n++] = (struct node){ parent, function };
	j->nodes++;
	return t->slots[at] = t->n;
}

#define ROOT 1u /* its id */

/* A profile has a tree of its own: ids begin with 1 again. */
static bool tree_begin(struct job *j)
{
	struct tree *t = &j->tree;

	t->n = t->said = 0;
	memset(t->slots, 0, t->nslots * sizeof *t->slots);
	memset(t->of_stack, 0, (j->m->nstacks + 1) * sizeof *t->of_stack);
	return node_of(j, 0, MEW_NO_FUNCTION) == ROOT;
}

static uint32_t leaf_of(struct job *j, uint32_t stack)
{
	uint32_t *known = &j->tree.of_stack[stack < j->m->nstacks ? stack : j->m->nstacks], id = ROOT;
	struct mew_stack_walk walk;
	struct mew_stack_frame frame;

	if (*known != 0)
		return *known;
	if (!mew_stack_known(j->m, stack))
		return *known = node_of(j, ROOT, j->shown.missing);
	walk = mew_stack_begin(j->m, stack);
	while (id != 0 && mew_stack_next(&walk, &frame))
		id = node_of(j, id, mew_stack_function(&j->shown, &frame));
	return *known = id;
}

/* --- events ----------------------------------------------------------------------------------------------------- */

struct profile { /* the samples of one thread of a case */
	const struct mew_case *c;
	const struct mew_cpu_sample **samples;
	size_t n;
	int tid;
	uint64_t opened_ns; /* since the process's zero */
	uint64_t shown_us;  /* time of the last sample, since the window opened */
};

static void put_event(struct job *j, const struct profile *p, const char *name, uint64_t ns)
{
	mew_writef(j->w, "{\"ph\":\"P\",\"pid\":%d,\"tid\":%d,\"cat\":\"disabled-by-default-v8.cpu_profiler\",\"name\":\"%s\"",
		   p->c->window.pid, p->tid, name);
	mew_writef(j->w, ",\"id\":\"0x%" PRIx32 "\",\"ts\":", j->profiles);
	mew_write_us(j->w, p->opened_ns + ns);
	mew_write_text(j->w, ",\"args\":{\"data\":{");
}

static void put_frame(struct job *j, const char *name, const char *url, uint32_t line)
{
	mew_write_text(j->w, "\"callFrame\":{\"functionName\":\"");
	mew_write_json_escaped(j->w, name);
	mew_write_text(j->w, "\",\"scriptId\":0,\"url\":\"");
	mew_write_json_escaped(j->w, url);
	if (line != 0)
		mew_writef(j->w, "\",\"lineNumber\":%" PRIu32 ",\"columnNumber\":0}}", line - 1); /* V8 counts from 0 */
	else
		mew_write_text(j->w, "\"}}");
}

static void put_node(struct job *j, const struct profile *p, uint32_t id)
{
	const struct node *node = &j->tree.nodes[id - 1];
	const struct mew_shown_function *f;

	mew_writef(j->w, "%s{\"id\":%" PRIu32 ",", id > j->tree.said + 1 ? "," : "", id);
	if (node->parent == 0) {
		put_frame(j, p->c->key, "", 0);
		return;
	}
	mew_writef(j->w, "\"parent\":%" PRIu32 ",", node->parent);
	f = &j->shown.all[node->function];
	put_frame(j, f->name,
		  f->file[0] != '\0' || f->module >= j->m->nmodules ? f->file : j->m->modules[f->module].path, f->line);
}

static void put_nodes(struct job *j, const struct profile *p)
{
	if (j->tree.said == j->tree.n)
		return;
	mew_write_text(j->w, "\"nodes\":[");
	for (uint32_t id = j->tree.said + 1; id <= j->tree.n; id++)
		put_node(j, p, id);
	mew_write_text(j->w, "],");
	j->tree.said = j->tree.n;
}

static void put_numbers(struct job *j, const char *name, const uint64_t *numbers, size_t n, char end)
{
	mew_writef(j->w, "\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			mew_write_char(j->w, ',');
		mew_write_u64(j->w, numbers[i]);
	}
	mew_write_char(j->w, ']');
	mew_write_char(j->w, end);
}

/* Up to CHUNK of the samples as one event. */
static void put_chunk(struct job *j, struct profile *p, const struct mew_cpu_sample *const *samples, size_t n)
{
	uint64_t ids[CHUNK], deltas[CHUNK], weights[CHUNK], blocked[CHUNK];
	bool any = false;
	size_t kept = 0;

	put_event(j, p, "ProfileChunk", samples[0]->time_ns);
	for (size_t i = 0; i < n; i++) {
		uint64_t us = (samples[i]->time_ns + 500) / 1000;

		ids[kept] = leaf_of(j, samples[i]->stack);
		if (ids[kept] == 0) {
			j->s->left_out++;
			continue;
		}
		deltas[kept] = us - p->shown_us;
		weights[kept] = samples[i]->weight_ns;
		blocked[kept++] = samples[i]->blocked;
		any = any || samples[i]->blocked;
		p->shown_us = us;
	}
	mew_write_text(j->w, "\"cpuProfile\":{");
	put_nodes(j, p);
	put_numbers(j, "samples", ids, kept, ',');
	if (any)
		put_numbers(j, "blocked", blocked, kept, ',');
	put_numbers(j, "weights_ns", weights, kept, '}');
	mew_write_char(j->w, ',');
	put_numbers(j, "timeDeltas", deltas, kept, '}');
	mew_write_text(j->w, "}},\n");
	j->s->written += kept;
}

/* startTime moves with `ts` when the file is joined with others: trace_write.c writes it anew. */
static void put_profile(struct job *j, struct profile *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->n; i += j->stride)
		p->samples[kept++] = p->samples[i];
	j->s->left_out += p->n - kept;
	j->profiles++;
	if (!tree_begin(j)) {
		j->s->left_out += kept;
		return;
	}
	put_event(j, p, "Profile", 0);
	mew_writef(j->w, "\"startTime\":%" PRIu64 "}}},\n", (p->opened_ns + 500) / 1000);
	for (size_t i = 0; i < kept && !j->failed; i += CHUNK)
		put_chunk(j, p, p->samples + i, kept - i < CHUNK ? kept - i : CHUNK);
}

/* --- cases and files -------------------------------------------------------------------------------------------- */

static bool has_samples(const struct mew_case *c)
{
	return c->nsamples > 0 && c->window.pid != 0 && c->window.opened_ns >= c->window.zero_ns &&
	       mew_row_has((const struct mew_row_head *)&c->cpu, MEW_FIG_BY_THREAD);
}

/* Benchmark threads of a case with several have a line of their own for all blocks; see trace.h. */
static int shown_tid(const struct mew_case *c, uint32_t thread)
{
	if (c->threads > 1 && thread < c->threads)
		return MEW_TRACE_OWN_TID + (int)thread;
	return thread < c->cpu.nby_thread ? (int)c->cpu.by_thread[thread].tid : c->window.pid;
}

static void put_metadata(struct job *j, const struct mew_case *c, int tid, const char *what)
{
	mew_writef(j->w, "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"args\":{", c->window.pid, tid, what);
}

/* A thread that recorded nothing else has no name yet. The first one is the process's main thread, which has. */
static void name_thread(struct job *j, const struct mew_case *c, uint32_t thread, int tid)
{
	if (thread >= c->cpu.nby_thread || (thread == 0 && c->threads == 1))
		return;
	put_metadata(j, c, tid, "thread_name");
	mew_write_text(j->w, "\"name\":\"");
	mew_write_json_escaped(j->w, c->cpu.by_thread[thread].name);
	mew_write_text(j->w, "\"}},\n");
	if (thread >= c->threads)
		return;
	put_metadata(j, c, tid, "thread_sort_index");
	mew_writef(j->w, "\"sort_index\":%" PRIu32 "}},\n", 2 + thread);
}

static void put_case(struct job *j, const struct mew_case *c)
{
	const struct mew_cpu_sample **order = mew_stack_timeline(c, true);
	size_t end;

	j->failed = j->failed || order == NULL;
	for (size_t i = 0; !j->failed && i < c->nsamples; i = end) {
		uint32_t thread = order[i]->thread;
		struct profile p = { .c = c, .samples = order + i, .tid = shown_tid(c, thread),
				     .opened_ns = c->window.opened_ns - c->window.zero_ns };

		for (end = i; end < c->nsamples && order[end]->thread == thread; end++)
			;
		p.n = end - i;
		name_thread(j, c, thread, p.tid);
		put_profile(j, &p);
	}
	free(order);
}

static bool same_process(const struct mew_case *a, const struct mew_case *b)
{
	return a->window.pid == b->window.pid && a->window.zero_ns == b->window.zero_ns;
}

static void put_process(struct job *j, size_t first)
{
	const struct mew_case *cases = j->m->cases;
	uint64_t before = j->s->left_out;

	mew_writef(j->w, "[\n{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"mew_trace\",\"args\":{\"schema\":1,\"clock\":\"monotonic\",",
		   cases[first].window.pid);
	mew_writef(j->w, "\"zero_ns\":\"%" PRIu64 "\"}},\n", cases[first].window.zero_ns);
	j->profiles = 0;
	for (size_t i = first; i < j->m->ncases; i++)
		if (has_samples(&cases[i]) && same_process(&cases[first], &cases[i]))
			put_case(j, &cases[i]);
	if (j->s->left_out > before)
		mew_writef(j->w, "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"mew_thinned\",\"args\":{\"samples\":%" PRIu64 "}},\n",
			   cases[first].window.pid, j->s->left_out - before);
}

static int put_file(struct job *j, size_t first, int directory, struct mew_error *err)
{
	const struct mew_sample_window *window = &j->m->cases[first].window;
	char name[80];
	int fd = -1, failure;

	/* one for each profile of a process */
	for (unsigned k = 0; k < FILES_MAX && fd < 0 && (k == 0 || errno == EEXIST); k++) {
		(void)snprintf(name, sizeof name, "mew-%d-%" PRIx64 "-samples-%u.json", window->pid, window->zero_ns,
			       k);
		fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return mew_error_errno(err, MEW_E_IO, "the samples cannot be put on the timeline, as '%s'", name);
	mew_writer_fd(j->w, fd);
	put_process(j, first);
	failure = mew_writer_finish(j->w);
	(void)close(fd);
	if (j->failed)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to put the samples on the timeline");
	if (failure == 0)
		return MEW_OK;
	return mew_error_set(err, MEW_E_IO, "the samples cannot be put on the timeline: '%s': %s", name,
			     strerror(failure));
}

static bool is_first(const struct mew_model *m, size_t i)
{
	if (!has_samples(&m->cases[i]))
		return false;
	for (size_t k = 0; k < i; k++)
		if (has_samples(&m->cases[k]) && same_process(&m->cases[k], &m->cases[i]))
			return false;
	return true;
}

static uint64_t stride_of(const struct mew_model *m, uint64_t most)
{
	uint64_t all = 0;

	for (size_t i = 0; i < m->ncases; i++)
		all += has_samples(&m->cases[i]) ? m->cases[i].nsamples : 0;
	return all > most ? (all + most - 1) / most : 1;
}

int mew_trace_samples_write(const struct mew_model *m, int directory, struct mew_trace_samples *s,
			    struct mew_error *err)
{
	struct job j = { .m = m, .s = s, .stride = stride_of(m, s->samples_max), .w = malloc(sizeof *j.w) };
	int status = MEW_OK;

	s->written = s->left_out = 0;
	j.failed = j.w == NULL || !tree_init(&j.tree, m) || mew_shown_functions_init(&j.shown, m, NULL) != 0;
	if (j.failed)
		status = mew_error_set(err, MEW_E_NOMEM, "no memory to put the samples on the timeline");
	for (size_t i = 0; i < m->ncases && status == MEW_OK; i++)
		if (is_first(m, i))
			status = put_file(&j, i, directory, err);
	mew_shown_functions_fini(&j.shown);
	tree_fini(&j.tree);
	free(j.w);
	return status;
}

int mew_trace_samples_show(const struct mew_model *m, int directory, struct mew_error *err)
{
	struct mew_trace_samples s = { .samples_max = MEW_TRACE_SAMPLES_MAX, .nodes_max = MEW_TRACE_NODES_MAX };
	struct mew_trace_args args = { 0 };
	uint64_t start = mew_os_now_ns();
	int status;

	if (directory < 0)
		return MEW_OK;
	status = mew_trace_samples_write(m, directory, &s, err);
	(void)close(directory);
	if (status != MEW_OK)
		mew_trace_arg_text(&args, "failed", err->text);
	mew_trace_arg_number(&args, "written", s.written);
	mew_trace_arg_number(&args, "left_out", s.left_out);
	if (status != MEW_OK || s.written + s.left_out > 0)
		mew_trace_slice(&(struct mew_trace_slice){
			.category = "report", .name = "samples", .start_ns = start, .end_ns = mew_os_now_ns(),
			.args = &args });
	return status;
}
