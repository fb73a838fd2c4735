/*
 * plan_time.c - see plan_private.h: calibration, warm-up and repetitions of the timing pass.
 * Layer L4. The plan's thread.
 */
#include "config.h"

#include "plan_private.h"

#include <stdio.h>
#include <string.h>

#include "os.h"
#include "plan_trace.h"
#include "summarise.h"

#define SAMPLE_NS 200000u          /* short against a scheduler's slice: a preempted sample stays a rare outlier */
#define SAMPLE_THREADED_NS 2000000u /* threads must start and stop together: a longer sample hides the rendezvous */
#define MIN_SAMPLES 10u
#define MAX_LATENCY_SAMPLES ((uint64_t)1 << 20)
#define MAX_EXACT_CALLS ((uint64_t)1 << 24) /* timed one by one; kept in memory by the case and by who asks for it */
#define EXACT_SAMPLES 64u
#define PATIENCE 10     /* times min_time, for a body that pauses or sets its own time */
#define COLD_FACTOR 64u /* a first iteration may take so many times a warm one */

static uint64_t exact_of(const struct mew_plan_pass *r, const struct mew_plan_case *c)
{
	return c->iterations != 0 ? c->iterations : c->min_time > 0 ? 0 : r->o->iterations;
}

static double min_time_of(const struct mew_plan_pass *r, const struct mew_plan_case *c)
{
	return c->min_time > 0 ? c->min_time : r->o->min_time;
}

/*
 * Longer where so many samples as a block keeps would not fill the time that was asked for; twice, since samples vary.
 */
static uint64_t sample_ns(const struct mew_plan_pass *r, const struct mew_plan_case *c)
{
	double time = min_time_of(r, c);
	uint64_t ns = c->threads > 1 ? SAMPLE_THREADED_NS : SAMPLE_NS, least;

	if (time < r->o->min_warmup_time)
		time = r->o->min_warmup_time;
	least = mew_plan_ns(time) / (MEW_PLAN_SAMPLES_MAX / 2);
	return ns > least ? ns : least;
}

/* Find the iterations per sample; once per case. */
static void calibrate(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	struct mew_request rq = mew_plan_request(r, c, MEW_PHASE_CALIBRATION_WARMUP, 0);
	struct mew_case *row;
	uint64_t exact = exact_of(r, c);

	if (r->o->dry_run || exact != 0 || r->o->latency) {
		c->loops = exact > EXACT_SAMPLES && !r->o->latency ? (exact + EXACT_SAMPLES - 1) / EXACT_SAMPLES : 1;
		return;
	}
	rq.plan.loops = rq.plan.max_samples = 1;
	row = mew_plan_block(r, c, &rq);
	if (row == NULL)
		return;
	c->loops = 1;
	if (mew_plan_last_run(row) == NULL || mew_plan_last_run(row)->real_ns[0] >= sample_ns(r, c) * COLD_FACTOR)
		return;
	rq = mew_plan_request(r, c, MEW_PHASE_CALIBRATION_LOOPS, 0);
	rq.plan.target_ns = sample_ns(r, c);
	row = mew_plan_block(r, c, &rq);
	if (row == NULL)
		return;
	c->loops = mew_plan_loops(row, sample_ns(r, c));
	c->calibrated_ns = mew_trace_is_on() ? mew_os_now_ns() : 0;
}

static uint64_t measured_ns(const struct mew_run *run)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < run->nsamples; i++)
		ns += run->real_ns[i];
	return ns;
}

static void warm_up(struct mew_plan_pass *r, struct mew_plan_case *c, unsigned repetition)
{
	struct mew_request rq = mew_plan_request(r, c, MEW_PHASE_MEASUREMENT_WARMUP, repetition);

	if (r->o->dry_run || r->o->min_warmup_time <= 0)
		return;
	rq.plan.loops = c->loops;
	rq.plan.min_samples = rq.plan.max_samples + 1; /* it ends by the time alone, of which pauses are a part */
	rq.plan.target_ns = sample_ns(r, c);
	rq.plan.max_ns = mew_plan_ns(r->o->min_warmup_time) + 1; /* 0 would be no end */
	(void)mew_plan_block(r, c, &rq);
}

/* Repetitions end alike: one note is enough. */
static void note_once(struct mew_plan_pass *r, struct mew_case *row, const char *note)
{
	const struct mew_row_head *head = mew_case_row(row, r->kind);

	if (head->reason == NULL || strstr(head->reason, note) == NULL)
		mew_summarise_note(r->model, row, r->kind, note);
}

/* The block did not measure min_ns: what is measured is the mean of the threads, and what ends it the slowest of them. */
static void note_time(struct mew_plan_pass *r, const struct mew_plan_case *c, struct mew_case *row,
		      const struct mew_block_plan *p, const struct mew_run *run)
{
	char note[200];

	if (measured_ns(run) >= p->min_ns)
		return;
	if (run->nsamples == p->max_samples)
		(void)snprintf(note, sizeof note, "%llu samples, the most that are kept, ended it before --min-time",
			       (unsigned long long)p->max_samples);
	else
		(void)snprintf(note, sizeof note,
			       "--min-time was not reached in %g s, since pauses, or what its own time leaves out%s, do "
			       "not count: raise --max-time", (double)p->max_ns / 1e9,
			       c->threads > 1 ? ", or the wait of threads for a slower one" : "");
	note_once(r, row, note);
}

/* The block did not keep all of its single calls. */
static void note_calls(struct mew_plan_pass *r, struct mew_case *row, const struct mew_block_plan *p,
		       const struct mew_run *run)
{
	uint64_t kept = run->loops * run->nsamples;
	char note[120];

	if (run->nsamples < p->max_samples || kept >= p->exact)
		return;
	(void)snprintf(note, sizeof note, "the first %llu of %llu single calls are kept: ask for fewer",
		       (unsigned long long)kept, (unsigned long long)p->exact);
	note_once(r, row, note);
}

/* Samples of single calls: all of an exact number, since those that are not kept are in no figure. */
static uint64_t latency_samples(uint64_t exact)
{
	if (exact <= MAX_LATENCY_SAMPLES)
		return MAX_LATENCY_SAMPLES;
	return exact < MAX_EXACT_CALLS ? exact : MAX_EXACT_CALLS;
}

static void measure(struct mew_plan_pass *r, struct mew_plan_case *c, unsigned repetition)
{
	struct mew_request rq = mew_plan_request(r, c, MEW_PHASE_MEASUREMENT_VALUE, repetition);
	struct mew_block_plan *p = &rq.plan;
	const struct mew_run *run;
	struct mew_case *row;
	double min_time = min_time_of(r, c);
	double share = r->o->max_time / mew_plan_repetitions(r, c) / r->o->processes;

	p->loops = c->loops;
	p->exact = r->o->dry_run ? 1 : exact_of(r, c);
	p->max_samples = r->o->latency ? latency_samples(p->exact) : MEW_PLAN_SAMPLES_MAX;
	p->min_ns = mew_plan_ns(min_time);
	/*
	 * a longer min_time goes before max_time and is all that is waited for, though not for ever where most is
	 * paused
	 */
	p->max_ns = mew_plan_ns(share > min_time ? share : min_time * PATIENCE);
	p->min_samples = share > min_time ? MIN_SAMPLES : 1;
	p->precision = share > min_time ? r->o->precision : 0;
	row = mew_plan_block(r, c, &rq);
	run = row != NULL ? mew_plan_last_run(row) : NULL;
	if (run != NULL && p->exact != 0)
		note_calls(r, row, p, run);
	else if (run != NULL)
		note_time(r, c, row, p, run);
}

static void time_repetition(struct mew_plan_pass *r, struct mew_plan_case *c, unsigned repetition)
{
	uint64_t start = mew_trace_is_on() ? mew_os_now_ns() : 0;

	if (!mew_plan_go_on(r, c))
		return;
	warm_up(r, c, repetition);
	if (!c->dead)
		measure(r, c, repetition);
	r->done++;
	mew_plan_trace_repetition(c, r->process, repetition, start);
}

static void time_prepare(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	mew_plan_open_case(r, c);
	if (c->open && !c->dead && c->loops == 0)
		calibrate(r, c);
}

void mew_plan_time_case(struct mew_plan_pass *r, struct mew_plan_case *c)
{
	time_prepare(r, c);
	for (unsigned k = 0; k < mew_plan_repetitions(r, c); k++)
		time_repetition(r, c, k);
	mew_plan_close_case(r, c);
}

void mew_plan_time_interleaved(struct mew_plan_pass *r)
{
	unsigned most = 0;

	for (size_t i = 0; i < r->n; i++) {
		time_prepare(r, &r->cases[i]);
		if (mew_plan_repetitions(r, &r->cases[i]) > most)
			most = mew_plan_repetitions(r, &r->cases[i]);
	}
	for (unsigned k = 0; k < most; k++)
		for (size_t i = 0; i < r->n; i++)
			if (k < mew_plan_repetitions(r, &r->cases[i])) {
				mew_plan_trace_begin(r->all, r->nall, &r->cases[i], r->free_ns);
				time_repetition(r, &r->cases[i], k);
				mew_plan_show_case(r, &r->cases[i]);
			}
	for (size_t i = 0; i < r->n; i++)
		mew_plan_close_case(r, &r->cases[i]);
}
