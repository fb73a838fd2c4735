/*
 * fx_cpu_rig.c - a small runner for the CPU backend.
 * Test fixture.
 */
#include "config.h"

#include "fx_cpu_rig.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu_ladder.h"
#include "modules.h"
#include "sink.h"

FX_IN(fx_body) void rig_short_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	(void)fx_one(fx_us(100000));
	__asm__ volatile("" : : : "memory");
}

FX_BOUNDS(fx_entry);

struct rig_thread {
	struct rig *rig;
	unsigned index;
	uint64_t start_ns, paused_ns, paused_at_ns, spent_ns;
	uint64_t pauses;
	int status;
	struct mew_error error;
	pthread_t thread;
};

static pthread_barrier_t barrier;

uint64_t rig_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t rig_thread_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t rig_pick(uint64_t *state, uint64_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % below;
}

bool rig_was_judged;

bool rig_is_quick(void)
{
	return getenv("MEW_TEST_QUICK") != NULL;
}

bool rig_skips_all(void)
{
	if (!rig_is_quick())
		return false;
	puts("1..0 # SKIP accuracy is judged in the reference build, where nothing else runs");
	return true;
}

bool rig_has(int engine)
{
	char reason[MEW_CPU_REASON_BYTES];
	struct mew_error err;
	int found;

	return mew_backend_cpu.probe(&err) == MEW_OK &&
	       mew_cpu_ladder(MEW_CLOCK_CPU, engine, &found, reason, &err) == MEW_OK;
}

void rig_pause(struct rig *r, unsigned thread)
{
	mew_backend_cpu.pause(r->capture, thread);
	r->each[thread].pauses++;
	r->each[thread].paused_at_ns = rig_now_ns();
}

void rig_resume(struct rig *r, unsigned thread)
{
	r->each[thread].paused_ns += rig_now_ns() - r->each[thread].paused_at_ns;
	mew_backend_cpu.resume(r->capture, thread);
}

/* --- running ----------------------------------------------------------------------------------------------------- */

static void meet(const struct rig *r)
{
	if (r->threads > 1)
		(void)pthread_barrier_wait(&barrier);
}

/* Stacks end below this frame. */
FX_IN(fx_entry) static void enter(struct rig_thread *t)
{
	struct rig *r = t->rig;

	if (r->threads > 1)
		mew_backend_cpu.resume(r->capture, t->index);
	t->start_ns = rig_now_ns();
	r->body(r, t->index, r->arg);
	t->spent_ns = rig_now_ns() - t->start_ns - t->paused_ns;
	if (r->threads > 1)
		mew_backend_cpu.pause(r->capture, t->index);
}

static void *run_thread(void *arg)
{
	struct rig_thread *t = arg;
	struct rig *r = t->rig;

	t->status = mew_backend_cpu.thread_begin(r->capture, t->index, &t->error);
	if (r->threads > 1 && t->status == MEW_OK) /* waiting for the others is no part of the case */
		mew_backend_cpu.pause(r->capture, t->index);
	meet(r);
	if (t->index == 0)
		r->status = mew_backend_cpu.begin(r->capture, &r->error);
	meet(r);
	if (r->status == MEW_OK && t->status == MEW_OK)
		enter(t);
	meet(r);
	if (t->index == 0)
		mew_backend_cpu.end(r->capture);
	meet(r);
	if (r->after != NULL)
		r->after(r, t->index, r->arg);
	mew_backend_cpu.thread_end(r->capture, t->index);
	return NULL;
}

static void run_threads(struct rig *r)
{
	r->each = calloc(r->threads, sizeof *r->each);
	for (unsigned i = 0; i < r->threads; i++)
		r->each[i] = (struct rig_thread){ .rig = r, .index = i };
	if (r->threads == 1) {
		(void)run_thread(&r->each[0]);
	} else {
		(void)pthread_barrier_init(&barrier, NULL, r->threads);
		for (unsigned i = 0; i < r->threads; i++)
			if (pthread_create(&r->each[i].thread, NULL, run_thread, &r->each[i]) != 0)
				exit(70); /* the others would wait for ever */
		for (unsigned i = 0; i < r->threads; i++)
			(void)pthread_join(r->each[i].thread, NULL);
		(void)pthread_barrier_destroy(&barrier);
	}
	for (unsigned i = 0; i < r->threads; i++) {
		r->window_ns += r->each[i].spent_ns / r->threads;
		r->pauses += r->each[i].pauses;
		if (r->status == MEW_OK && r->each[i].status != MEW_OK) {
			r->status = r->each[i].status;
			r->error = r->each[i].error;
		}
	}
}

void rig_run(struct rig *r)
{
	struct mew_capture_config config = { .pass = MEW_PASS_CPU, .pause_cpu = r->pause_cpu,
					     .clock = r->clock, .engine = r->engine };
	struct mew_case *row;

	if (r->threads == 0)
		r->threads = 1;
	if (r->interval_ns == 0)
		r->interval_ns = 100000;
	config.threads = r->threads;
	config.interval_ns = r->interval_ns;
	config.entry_lo = FX_RANGE(fx_entry).lo;
	config.entry_hi = FX_RANGE(fx_entry).hi;
	r->status = mew_backend_cpu.open(&r->capture, &config, &r->error);
	if (r->status != MEW_OK)
		return;
	run_threads(r);
	r->model = mew_model_new();
	row = mew_model_case(r->model, "case", NULL);
	(void)mew_model_row(r->model, row, MEW_KIND_CPU);
	r->row = row;
	if (r->status == MEW_OK) {
		struct mew_sink sink = { .model = r->model, .row = row, .kind = MEW_KIND_CPU, .iterations = 1,
					 .window_ns = r->window_ns };

		r->status = mew_backend_cpu.drain(r->capture, &sink, &r->error);
	}
	mew_backend_cpu.close(r->capture);
}

void rig_fini(struct rig *r)
{
	mew_model_free(r->model);
	free(r->each);
}

/* --- adding up --------------------------------------------------------------------------------------------------- */

static bool location_in(const struct rig *r, uint32_t location, struct fx_range range)
{
	const struct mew_location *l = &r->model->locations[location];
	const struct mew_module_map *map = mew_modules_find(mew_modules_current(), range.lo);

	if (map == NULL || l->module == MEW_NO_MODULE || strcmp(r->model->modules[l->module].path, map->path) != 0)
		return false;
	return l->offset + map->bias >= range.lo && l->offset + map->bias < range.hi;
}

bool rig_frame_in(const struct rig *r, const struct mew_cpu_sample *s, int depth, struct fx_range range)
{
	const struct mew_stack *stack;

	if (s->stack == MEW_NO_STACK)
		return false;
	stack = &r->model->stacks[s->stack];
	if (depth >= (int)stack->depth)
		return false;
	return location_in(r, r->model->frames[stack->first + (depth < 0 ? stack->depth - 1 : (uint32_t)depth)], range);
}

bool rig_passes(const struct rig *r, const struct mew_cpu_sample *s, struct fx_range range)
{
	if (s->stack == MEW_NO_STACK)
		return false;
	for (uint32_t i = 0; i < r->model->stacks[s->stack].depth; i++)
		if (rig_frame_in(r, s, (int)i, range))
			return true;
	return false;
}

double rig_self(const struct rig *r, struct fx_range range)
{
	double sum = 0;

	for (size_t i = 0; i < r->row->nsamples; i++)
		if (rig_frame_in(r, &r->row->samples[i], 0, range))
			sum += (double)r->row->samples[i].weight_ns * 1e-9;
	return sum;
}

double rig_total(const struct rig *r, struct fx_range range)
{
	double sum = 0;

	for (size_t i = 0; i < r->row->nsamples; i++)
		if (rig_passes(r, &r->row->samples[i], range))
			sum += (double)r->row->samples[i].weight_ns * 1e-9;
	return sum;
}

double rig_thread(const struct rig *r, unsigned thread)
{
	double sum = 0;

	for (size_t i = 0; i < r->row->nsamples; i++)
		if (r->row->samples[i].thread == thread)
			sum += (double)r->row->samples[i].weight_ns * 1e-9;
	return sum;
}

size_t rig_hits(const struct rig *r, struct fx_range leaf)
{
	size_t n = 0;

	for (size_t i = 0; i < r->row->nsamples; i++)
		n += rig_frame_in(r, &r->row->samples[i], 0, leaf);
	return n;
}

const char *rig_why(const struct rig *r, enum mew_cpu_figure figure)
{
	return mew_row_why((const struct mew_row_head *)&r->row->cpu, (int)figure);
}

/*
 * A cell that is all running or all paused is counted exactly; one that is partly paused is a coin, with a deviation
 * of at most half a cell. A pause makes two such cells.
 */
bool rig_adds_up(const struct rig *r)
{
	double interval = (double)r->interval_ns * 1e-9, wall = (double)r->window_ns * 1e-9 * r->threads;
	double coins = 2.0 * (double)r->pauses, tolerance;

	tolerance = 0.01 * wall + 2 * interval * r->threads + 4 * 0.5 * interval * sqrt(coins);
	if (fabs(r->row->cpu.sample_weight - wall) <= tolerance)
		return true;
	printf("# weights %.6f s, unpaused wall time %.6f s, tolerance %.6f s\n", r->row->cpu.sample_weight, wall,
	       tolerance);
	return false;
}

bool rig_run_until_it_adds_up(struct rig *r)
{
	const struct rig given = *r;

	for (int i = 0; i < 3; i++) {
		if (i > 0)
			rig_fini(r);
		*r = given;
		rig_run(r);
		if (r->status != MEW_OK || rig_adds_up(r))
			return r->status == MEW_OK;
	}
	return false;
}

/* --- surroundings ------------------------------------------------------------------------------------------------ */

static pid_t competitors[16];
static unsigned ncompetitors;

void rig_compete(unsigned n)
{
	for (ncompetitors = 0; ncompetitors < n; ncompetitors++) {
		competitors[ncompetitors] = fork();
		if (competitors[ncompetitors] != 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			__asm__ volatile("");
	}
}

void rig_compete_end(void)
{
	for (unsigned i = 0; i < ncompetitors; i++) {
		(void)kill(competitors[i], SIGKILL);
		(void)waitpid(competitors[i], NULL, 0);
	}
	ncompetitors = 0;
}

int rig_timers(void)
{
	char text[4096], *at = text;
	int fd = open("/proc/self/timers", O_RDONLY), n = 0;
	ssize_t got;

	if (fd < 0)
		return -1;
	got = read(fd, text, sizeof text - 1);
	(void)close(fd);
	if (got < 0)
		return -1;
	text[got] = '\0';
	while ((at = strstr(at, "ID: ")) != NULL) {
		n++;
		at++;
	}
	return n;
}
