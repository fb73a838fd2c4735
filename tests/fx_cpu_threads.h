/*
 * fx_cpu_threads.h - jobs on threads that a body makes, and looking at the rows of threads.
 * Test fixture; for one source file of a program, behind <cmocka.h>.
 */
#ifndef FX_CPU_THREADS_H
#define FX_CPU_THREADS_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "fx_cpu_rig.h"

#define INTERVAL 1e-4

static inline double seconds(uint64_t ticks)
{
	return (double)ticks / (double)fx_us(1000000);
}

/* Within 10 %, or 4 sigma of sampling in `ends` beginnings and ends. */
static inline bool is_near(const char *what, double got, double truth, double ends)
{
	double tolerance = 0.1 * truth, sigma = 0.5 * INTERVAL * sqrt(ends);

	if (tolerance < 4 * sigma)
		tolerance = 4 * sigma;
	if (fabs(got - truth) <= tolerance)
		return true;
	printf("# %s: %.4f s, really %.4f s\n", what, got, truth);
	return false;
}

/* The first row of that name; the test fails when there is none. */
static inline const struct mew_cpu_thread_figures *row_of(const struct rig *r, const char *name)
{
	static const struct mew_cpu_thread_figures none;

	for (size_t i = 0; i < r->row->cpu.nby_thread; i++)
		if (strcmp(r->row->cpu.by_thread[i].name, name) == 0)
			return &r->row->cpu.by_thread[i];
	fail_msg("there is no thread %s", name);
	return &none;
}

static inline size_t count_rows(const struct rig *r, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < r->row->cpu.nby_thread; i++)
		n += strcmp(r->row->cpu.by_thread[i].name, name) == 0;
	return n;
}

static inline bool says(const struct rig *r, const char *text)
{
	return r->row->cpu.reason != NULL && strstr(r->row->cpu.reason, text) != NULL;
}

static inline void assert_ran(const struct rig *r)
{
	if (r->status != MEW_OK)
		printf("# %s\n", r->error.text);
	assert_int_equal(r->status, MEW_OK);
	assert_int_equal(r->row->cpu.lost, 0);
}

/* --- threads of the test ------------------------------------------------------------------------------------------ */

struct job {
	const char *name;
	uint64_t (*work)(uint64_t);
	uint64_t us, spent;
	pthread_t id;
};

FX_BOUNDS(fx_root);

/* Every stack of such a thread passes here. */
FX_IN(fx_root) static __attribute__((unused)) void *run_job(void *data)
{
	struct job *job = data;

	(void)prctl(PR_SET_NAME, job->name);
	job->spent = job->work(fx_us(job->us));
	return NULL;
}

static inline void start(struct job *job)
{
	assert_int_equal(pthread_create(&job->id, NULL, run_job, job), 0);
}

static inline void join(struct job *job)
{
	assert_int_equal(pthread_join(job->id, NULL), 0);
}

static inline size_t passing(const struct rig *r, struct fx_range leaf, struct fx_range root)
{
	size_t n = 0;

	for (size_t i = 0; i < r->row->nsamples; i++)
		n += rig_frame_in(r, &r->row->samples[i], 0, leaf) && rig_passes(r, &r->row->samples[i], root);
	return n;
}

#endif
