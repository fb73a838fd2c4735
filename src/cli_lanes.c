/*
 * cli_lanes.c - `--jobs`: the memory pass in lanes. The pass behind it starts its worker while the last cases still
 * run, and its first case then waits until it is alone.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_private.h"

#include "cli_trace.h"
#include "lanes.h"
#include "os.h"
#include "summarise.h"
#include "symbolise.h"
#include "trace_command.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>

#define FILES_OF_LANE 4u /* its worker's socket and output, and two more while one starts */
#define FILES_BESIDE 8u  /* the next pass's worker, files of /proc */

struct mew_cli_lanes {
	struct mew_lanes *lanes;
	struct mew_lane_task *tasks; /* in the order in which one lane would run them: that of the results */
	size_t ntasks;
	uint64_t start_ns;
	size_t steps_before;
};

/* --- begin ------------------------------------------------------------------------------------------------------ */

static bool show_progress(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total)
{
	struct mew_cli_run *r = data;

	(void)total;
	return mew_cli_show(r, c, pass, r->lanes->steps_before + done);
}

static void add_task(struct mew_cli_run *r, size_t host, size_t item)
{
	struct mew_cli_lanes *l = r->lanes;

	l->tasks[l->ntasks++] = (struct mew_lane_task){ .c = r->cases[host][item], .host = &r->hosts[host] };
}

/* Allocators take turns in each case. */
static void add_tasks(struct mew_cli_run *r)
{
	size_t n = mew_cli_allocators(r);

	for (size_t i = 0; i < r->nhosts; i += n)
		for (size_t item = 0; item < r->ncases[i]; item++)
			for (size_t k = 0; k < n; k++)
				add_task(r, i + k, item);
}

static struct mew_cli_lanes *make(const struct mew_cli_run *r)
{
	struct mew_cli_lanes *l = calloc(1, sizeof *l);
	size_t n = 0;

	for (size_t i = 0; i < r->nhosts; i++)
		n += r->ncases[i];
	if (l != NULL)
		l->tasks = calloc(n + 1, sizeof *l->tasks);
	if (l != NULL && l->tasks != NULL)
		return l;
	free(l);
	mew_cli_complain("--jobs: no memory for the list of cases: they run one by one");
	return NULL;
}

static void dispose(struct mew_cli_run *r)
{
	free(r->lanes->tasks);
	free(r->lanes);
	r->lanes = NULL;
}

/* Descriptors that are open. */
static uint64_t count_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	for (const struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;)
		n += d->d_name[0] != '.';
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

/* A lane that finds no descriptor would fail its cases. */
static unsigned lanes_that_fit(unsigned wanted)
{
	uint64_t used = count_open_files() + FILES_BESIDE, room;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return wanted;
	room = limit.rlim_cur > used ? (limit.rlim_cur - used) / FILES_OF_LANE : 0;
	if (room >= wanted)
		return wanted;
	mew_cli_complain("--jobs: %llu open files are allowed, too few for %u processes at once: %llu run; "
			 "raise it with `ulimit -n`",
			 (unsigned long long)limit.rlim_cur, wanted, (unsigned long long)(room > 0 ? room : 1));
	return (unsigned)room;
}

bool mew_cli_lanes_begin(struct mew_cli_run *r)
{
	struct mew_plan_options plan = r->cli->plan;
	struct mew_lanes_options o = { .plan = &plan, .cancelled = r->cli->host.cancelled };
	struct mew_error err;

	if (r->cli->jobs < 2 || (r->lanes = make(r)) == NULL)
		return false;
	add_tasks(r);
	o.lanes = lanes_that_fit(r->cli->jobs < r->lanes->ntasks ? r->cli->jobs : (unsigned)r->lanes->ntasks);
	if (o.lanes < 2) {
		dispose(r);
		return false;
	}
	r->lanes->start_ns = mew_os_now_ns();
	r->lanes->steps_before = r->steps_before;
	plan.progress = show_progress;
	if (mew_lanes_start(&r->lanes->lanes, r->lanes->tasks, r->lanes->ntasks, &o, &err) != MEW_OK) {
		mew_cli_complain("--jobs: %s: the cases run one by one", err.text);
		dispose(r);
		return false;
	}
	mew_lanes_await_last(r->lanes->lanes);
	r->steps_before += r->lanes->ntasks;
	return true;
}

/* --- end -------------------------------------------------------------------------------------------------------- */

static void take_over(struct mew_cli_run *r, struct mew_lane_task *task)
{
	struct mew_case *row = mew_model_case_under(r->model, task->c.key, task->c.program, task->c.allocator);
	bool had_threads = row != NULL && row->left_threads;
	const struct mew_case *piece = task->model != NULL && task->model->ncases > 0 ? task->model->cases : NULL;

	if (task->stage == MEW_LANE_ENDED && (task->model == NULL || mew_model_merge(r->model, task->model) != 0)) {
		if (row != NULL)
			mew_model_fail(r->model, row, MEW_KIND_MEMORY, MEW_E_NOMEM, "no memory for its results");
	} else if (had_threads && piece != NULL && !piece->left_threads && piece->memory.status == MEW_OK) {
		mew_summarise_note(r->model, row, MEW_KIND_MEMORY,
				   "it left threads running behind it; join them in the body");
	}
	mew_model_free(task->model);
}

/* Programs may overlap: each is a span from its first case to the end of its last. */
static void show_programs(const struct mew_cli_run *r)
{
	const struct mew_cli_lanes *l = r->lanes;

	for (size_t i = 0; i < r->nhosts; i += mew_cli_allocators(r)) {
		uint64_t start = UINT64_MAX, end = 0;
		char *name;

		for (size_t k = 0; k < l->ntasks; k++) {
			if (l->tasks[k].c.program != r->hosts[i].program || l->tasks[k].end_ns == 0)
				continue;
			start = l->tasks[k].start_ns < start ? l->tasks[k].start_ns : start;
			end = l->tasks[k].end_ns > end ? l->tasks[k].end_ns : end;
		}
		name = end != 0 ? mew_trace_shown_name(mew_base_name(r->hosts[i].program)) : NULL;
		if (end != 0)
			mew_trace_span("benchmark", name, start, end, NULL);
		free(name);
	}
}

void mew_cli_lanes_end(struct mew_cli_run *r, bool is_awaited)
{
	uint64_t asked = mew_os_now_ns();

	if (r->lanes == NULL)
		return;
	mew_lanes_free(r->lanes->lanes);
	if (is_awaited) {
		mew_cli_trace_since(asked, "lane", "wait for the exclusive lane", NULL);
		mew_trace_span("pass", "memory pass", r->lanes->start_ns, mew_os_now_ns(), NULL);
	} else {
		mew_cli_trace_since(r->lanes->start_ns, "pass", "memory pass", NULL);
	}
	show_programs(r);
	for (size_t i = 0; i < r->lanes->ntasks; i++)
		take_over(r, &r->lanes->tasks[i]);
	dispose(r);
}
