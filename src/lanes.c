/*
 * lanes.c - see lanes.h. One lock over the list of cases; everything else belongs to one lane, or to the thread that
 * waits. Layer L4. The command's thread, and one for each lane: the kernel ends a worker with the thread that started
 * it.
 */
#include "config.h"

#include "lanes.h"

#include "error.h"
#include "host_internal.h"
#include "os.h"
#include "plan_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 50000000u /* between two looks at the terminal and at an interrupt */

struct lane {
	struct mew_lanes *all;
	unsigned number;
	pthread_t thread;
	struct mew_host host;      /* workers of the program that it serves */
	const struct mew_host *of; /* NULL: none yet */
	int status;                /* of beginning the pass there */
	struct mew_error error;
	uint64_t free_since_ns;
};

struct mew_lanes {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mew_lane_task *tasks;
	size_t n, first;           /* all before `first` are taken */
	size_t *order;             /* in which they were taken */
	size_t taken, shown, ended;
	unsigned nlanes;
	const volatile int *cancelled; /* may be NULL */
	struct mew_plan_options plan; /* of the lanes */
	bool (*progress)(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total);
	void *progress_data;
	int wake_fd;               /* readable once cancelled */
	bool woken;
	unsigned started, left;
	struct lane lanes[];
};

static bool is_cancelled(const struct mew_lanes *l)
{
	return l->cancelled != NULL && *l->cancelled != 0;
}

static bool go_on(void *data, const struct mew_plan_case *c, enum mew_pass pass, size_t done, size_t total)
{
	(void)c;
	(void)pass;
	(void)done;
	(void)total;
	return !is_cancelled(data);
}

/* --- the list --------------------------------------------------------------------------------------------------- */

static bool comes_after(const struct mew_lane_task *task, const struct mew_lane_task *other)
{
	return task->host == other->host && task->c.after != NULL && mew_plan_comes_first(task->c.after, other->c.key);
}

static void prepare(struct mew_lanes *l)
{
	uint64_t now = mew_os_now_ns();

	for (size_t i = 0; i < l->n; i++) {
		struct mew_lane_task *task = &l->tasks[i];

		task->stage = MEW_LANE_WAITS;
		task->ready_ns = now;
		task->blockers = 0;
		task->model = NULL;
		for (size_t k = 0; k < i; k++)
			task->blockers += comes_after(task, &l->tasks[k]);
	}
}

/* The first case that waits for nothing but a lane; NULL when there is none now. Lock held. */
static struct mew_lane_task *first_ready(struct mew_lanes *l)
{
	while (l->first < l->n && l->tasks[l->first].stage != MEW_LANE_WAITS)
		l->first++;
	for (size_t i = l->first; i < l->n; i++)
		if (l->tasks[i].stage == MEW_LANE_WAITS && l->tasks[i].blockers == 0)
			return &l->tasks[i];
	return NULL;
}

/* The next case of a lane; NULL when there is none any more. */
static struct mew_lane_task *take(struct lane *lane)
{
	struct mew_lanes *l = lane->all;
	struct mew_lane_task *task = NULL;

	(void)pthread_mutex_lock(&l->lock);
	while (!is_cancelled(l) && l->taken < l->n && (task = first_ready(l)) == NULL)
		(void)pthread_cond_wait(&l->changed, &l->lock);
	if (task != NULL) {
		task->stage = MEW_LANE_RUNS;
		task->start_ns = mew_os_now_ns();
		task->has_waited = task->ready_ns < lane->free_since_ns;
		l->order[l->taken++] = (size_t)(task - l->tasks);
		(void)pthread_cond_broadcast(&l->changed);
	}
	(void)pthread_mutex_unlock(&l->lock);
	return task;
}

static void end(struct lane *lane, struct mew_lane_task *task)
{
	struct mew_lanes *l = lane->all;

	(void)pthread_mutex_lock(&l->lock);
	task->stage = MEW_LANE_ENDED;
	lane->free_since_ns = mew_os_now_ns();
	for (struct mew_lane_task *other = task + 1; other < l->tasks + l->n; other++)
		if (comes_after(other, task) && --other->blockers == 0)
			other->ready_ns = lane->free_since_ns;
	l->ended++;
	(void)pthread_cond_broadcast(&l->changed);
	(void)pthread_mutex_unlock(&l->lock);
}

/* --- a lane ----------------------------------------------------------------------------------------------------- */

/* Workers of the program in the memory pass. One that cannot begin it is not tried again for each of its cases. */
static int serve_program(struct lane *lane, struct mew_host *host, struct mew_error *err)
{
	if (lane->of != host) {
		if (lane->of != NULL)
			mew_host_close(&lane->host);
		lane->of = host;
		lane->status = mew_host_share(&lane->host, host, &lane->error);
		lane->host.wake_fd = lane->all->wake_fd;
		if (lane->status == MEW_OK)
			lane->status = mew_host_begin_pass(&lane->host, MEW_PASS_MEMORY, &lane->error);
	}
	if (lane->status != MEW_OK)
		*err = lane->error;
	return lane->status;
}

static void fail(struct mew_model *m, const struct mew_plan_case *c, const struct mew_error *err)
{
	struct mew_case *row = mew_plan_row(m, c);

	if (row != NULL)
		mew_model_fail(m, row, MEW_KIND_MEMORY, err->status, err->text);
}

static void run(struct lane *lane, struct mew_lane_task *task)
{
	struct mew_driver driver = mew_host_driver(&lane->host);
	struct mew_plan_options plan = lane->all->plan;
	struct mew_model *m = mew_model_new();
	struct mew_error err;
	int status;

	if (m == NULL)
		return; /* the one who takes over says so */
	plan.ready_ns = task->has_waited ? task->ready_ns : 0;
	status = serve_program(lane, task->host, &err);
	if (status == MEW_OK)
		(void)mew_plan_run(&driver, &task->c, 1, MEW_PASS_MEMORY, &plan, m, &err);
	else if (!is_cancelled(lane->all))
		fail(m, &task->c, &err);
	task->end_ns = mew_os_now_ns();
	task->model = m;
}

/* From the cases that have ended before it. They change no more. */
static void show_arrows(const struct lane *lane, struct mew_lane_task *task)
{
	task->track = mew_trace_track();
	for (const struct mew_lane_task *other = lane->all->tasks; mew_trace_is_on() && other < task; other++)
		if (comes_after(task, other) && other->c.end_ns != 0 && task->c.start_ns != 0)
			mew_trace_arrow_from("after", other->track, other->c.end_ns, task->c.start_ns);
}

static void *work(void *data)
{
	struct lane *lane = data;
	struct mew_lanes *l = lane->all;
	struct mew_lane_task *task;
	char name[40];

	(void)snprintf(name, sizeof name, "memory lane %u", lane->number);
	mew_trace_thread(name, (int)lane->number);
	while ((task = take(lane)) != NULL) {
		run(lane, task);
		show_arrows(lane, task);
		end(lane, task);
	}
	if (lane->of != NULL)
		mew_host_close(&lane->host);
	(void)pthread_mutex_lock(&l->lock);
	l->left++;
	(void)pthread_cond_broadcast(&l->changed);
	(void)pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* --- the thread that waits -------------------------------------------------------------------------------------- */

/* Lock held; it is released while the terminal is written to. */
static void show(struct mew_lanes *l)
{
	size_t from = l->shown, to = l->taken, ended = l->ended;

	if (from == to && from > 0)
		from--; /* the line is drawn anew */
	l->shown = to;
	(void)pthread_mutex_unlock(&l->lock);
	for (; l->progress != NULL && from < to; from++)
		(void)l->progress(l->progress_data, &l->tasks[l->order[from]].c, MEW_PASS_MEMORY, ended, l->n);
	(void)pthread_mutex_lock(&l->lock);
}

static void wake_all(struct mew_lanes *l)
{
	const uint64_t one = 1;

	l->woken = l->woken || write(l->wake_fd, &one, sizeof one) == (ssize_t)sizeof one;
	(void)pthread_cond_broadcast(&l->changed);
}

static void await_change(struct mew_lanes *l)
{
	struct timespec t;
	uint64_t until = mew_os_now_ns() + LOOK_NS;

	t = (struct timespec){ (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
	(void)pthread_cond_timedwait(&l->changed, &l->lock, &t);
	show(l);
	if (is_cancelled(l))
		wake_all(l);
}

void mew_lanes_await_last(struct mew_lanes *l)
{
	(void)pthread_mutex_lock(&l->lock);
	while (l->taken < l->n && l->left < l->started)
		await_change(l);
	(void)pthread_mutex_unlock(&l->lock);
}

static void dispose(struct mew_lanes *l)
{
	(void)pthread_cond_destroy(&l->changed);
	(void)pthread_mutex_destroy(&l->lock);
	if (l->wake_fd >= 0)
		(void)close(l->wake_fd);
	free(l->order);
	free(l);
}

void mew_lanes_free(struct mew_lanes *l)
{
	(void)pthread_mutex_lock(&l->lock);
	while (l->left < l->started)
		await_change(l);
	(void)pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < l->started; i++)
		(void)pthread_join(l->lanes[i].thread, NULL);
	dispose(l);
}

/* --- start ------------------------------------------------------------------------------------------------------ */

static struct mew_lanes *make(struct mew_lane_task *tasks, size_t n, const struct mew_lanes_options *o)
{
	unsigned lanes = o->lanes < n ? o->lanes : (unsigned)n;
	struct mew_lanes *l = calloc(1, sizeof *l + lanes * sizeof l->lanes[0]);
	pthread_condattr_t monotonic;

	if (l == NULL)
		return NULL;
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&l->changed, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
	l->tasks = tasks;
	l->n = n;
	l->nlanes = lanes;
	l->cancelled = o->cancelled;
	l->plan = *o->plan;
	l->progress = l->plan.progress;
	l->progress_data = l->plan.progress_data;
	l->plan.progress = go_on;
	l->plan.progress_data = l;
	l->order = calloc(n + 1, sizeof *l->order);
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->order != NULL && l->wake_fd >= 0)
		return l;
	dispose(l);
	return NULL;
}

int mew_lanes_start(struct mew_lanes **out, struct mew_lane_task *tasks, size_t n, const struct mew_lanes_options *o,
		    struct mew_error *err)
{
	struct mew_lanes *l = make(tasks, n, o);
	int failed = 0;

	if (l == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory or no descriptor is left for %u lanes", o->lanes);
	for (size_t i = 0; i < n; i++)
		mew_host_retire(tasks[i].host);
	prepare(l);
	while (l->started < l->nlanes && failed == 0) {
		struct lane *lane = &l->lanes[l->started];

		*lane = (struct lane){ .all = l, .number = l->started + 1, .free_since_ns = tasks[0].ready_ns };
		failed = pthread_create(&lane->thread, NULL, work, lane);
		l->started += failed == 0;
	}
	*out = l;
	if (l->started > 0)
		return MEW_OK;
	dispose(l);
	return mew_error_set(err, MEW_E_NOMEM, "no thread for a lane: %s", strerror(failed));
}
