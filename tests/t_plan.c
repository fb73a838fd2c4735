/*
 * t_plan.c - what the plan asks for: a driver that runs nothing answers as a case of known speed would, so that a minute
 * of measuring takes no time.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "plan.h"

struct asked { /* of the last block of a phase */
	uint64_t loops, exact, max_samples, max_ns;
	unsigned blocks;
};

struct told { /* the case that the driver plays */
	double real_ns, wall_ns; /* an iteration: measured, and with its pauses */
	double warmed_ns;        /* with its pauses, in all warm-ups */
	struct asked asked[MEW_PHASE_CPU_VALUE + 1];
	unsigned processes; /* that can be had behind the first */
};

static int told_open(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	(void)data;
	(void)item;
	(void)pass;
	(void)err;
	return MEW_OK;
}

static int told_close(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	return told_open(data, item, pass, err);
}

/* As state.c would: samples until the block is complete. */
static size_t samples_of(const struct told *t, const struct mew_block_plan *p)
{
	double real = t->real_ns * (double)p->loops, wall = t->wall_ns * (double)p->loops;
	size_t n = 0;

	while (n < p->max_samples || p->min_samples > p->max_samples) {
		n++;
		if (p->exact != 0 && n * p->loops >= p->exact)
			break;
		if (p->exact == 0 && p->max_ns != 0 && (double)n * wall >= (double)p->max_ns)
			break;
		if (n > p->max_samples) /* no more are kept, and they do not count */
			continue;
		if (p->exact == 0 && n >= p->min_samples && (double)n * real >= (double)p->min_ns)
			break;
	}
	return n;
}

static int told_run(void *data, const struct mew_request *rq, struct mew_model *out, struct mew_error *err)
{
	struct told *t = data;
	struct asked *a = &t->asked[rq->phase];
	struct mew_case *row = mew_model_case(out, "case", NULL);
	struct mew_run run = { .phase = rq->phase, .repetition = rq->repetition, .loops = rq->plan.loops, .nsamples = 1 };
	uint64_t *real;

	(void)err;
	*a = (struct asked){ rq->plan.loops, rq->plan.exact, rq->plan.max_samples, rq->plan.max_ns, a->blocks + 1 };
	if (run.loops == 0) /* a calibration ends at a fair part of its target */
		run.loops = (uint64_t)((double)rq->plan.target_ns / 2 / t->real_ns) + 1;
	else
		run.nsamples = samples_of(t, &rq->plan);
	if (rq->phase == MEW_PHASE_MEASUREMENT_WARMUP)
		t->warmed_ns += (double)run.loops * (double)run.nsamples * t->wall_ns;
	if (run.nsamples > rq->plan.max_samples)
		run.nsamples = rq->plan.max_samples;
	real = calloc(run.nsamples + 1, sizeof *real);
	assert_non_null(row);
	assert_non_null(real);
	for (size_t i = 0; i < run.nsamples; i++)
		real[i] = (uint64_t)(t->real_ns * (double)run.loops);
	run.real_ns = real;
	assert_int_equal(mew_model_add_run(out, row, &run), 0);
	free(real);
	return MEW_OK;
}

static int told_renew(void *data, struct mew_error *err)
{
	struct told *t = data;

	(void)err;
	if (t->processes == 0)
		return MEW_E_INVALID;
	t->processes--;
	return MEW_OK;
}

static struct mew_model *plan(struct told *t, const struct mew_plan_options *o, unsigned threads)
{
	const struct mew_driver d = { .data = t, .open = told_open, .run = told_run, .close = told_close };
	struct mew_plan_case c = { .key = "case", .label = "case", .threads = threads };
	struct mew_model *m = mew_model_new();
	struct mew_error err;

	assert_non_null(m);
	assert_int_equal(mew_plan_run(&d, &c, 1, MEW_PASS_TIME, o, m, &err), MEW_OK);
	assert_int_equal(m->ncases, 1);
	assert_int_equal(m->cases[0].time.status, MEW_OK);
	return m;
}

static struct mew_plan_options options(double min_time)
{
	struct mew_plan_options o;

	mew_plan_defaults(&o);
	o.min_time = min_time;
	return o;
}

static double measured_s(const struct mew_model *m, int phase)
{
	double ns = 0;

	for (size_t i = 0; i < m->cases[0].nruns; i++)
		for (size_t k = 0; m->cases[0].runs[i].phase == phase && k < m->cases[0].runs[i].nsamples; k++)
			ns += (double)m->cases[0].runs[i].real_ns[k];
	return ns / 1e9;
}

/* --- how long --------------------------------------------------------------------------------------------------- */

static void min_time_is_measured_however_long(void **state)
{
	static const double times[] = { 0.2, 10, 60, 3600 };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(times); i++) {
		for (unsigned threads = 1; threads <= 4; threads *= 4) {
			struct told t = { .real_ns = 50, .wall_ns = 50 };
			const struct mew_plan_options o = options(times[i]);
			struct mew_model *m = plan(&t, &o, threads);

			if (measured_s(m, MEW_PHASE_MEASUREMENT_VALUE) < times[i])
				fail_msg("%g s are measured of %g", measured_s(m, MEW_PHASE_MEASUREMENT_VALUE), times[i]);
			assert_null(m->cases[0].time.reason);
			mew_model_free(m);
		}
	}
}

static void a_short_run_has_short_samples(void **state)
{
	struct told t = { .real_ns = 50, .wall_ns = 50 };
	const struct mew_plan_options o = options(5);

	(void)state;
	mew_model_free(plan(&t, &o, 1));
	assert_int_equal(t.asked[MEW_PHASE_MEASUREMENT_VALUE].loops, 4000); /* 200 us: a preempted sample is an outlier */
}

static void a_long_warm_up_is_run(void **state)
{
	struct told t = { .real_ns = 50, .wall_ns = 50 };
	struct mew_plan_options o = options(0);
	struct mew_model *m;

	(void)state;
	o.min_warmup_time = 60;
	m = plan(&t, &o, 1);
	assert_true(measured_s(m, MEW_PHASE_MEASUREMENT_WARMUP) >= 60);
	mew_model_free(m);
}

/* Samples of one iteration, which 65,536 do not fill it with: by --latency, or for the number that was asked for. */
static void a_warm_up_of_single_calls_is_as_long(void **state)
{
	static const struct told cases[] = {
		{ .real_ns = 50, .wall_ns = 50 }, { .real_ns = 50, .wall_ns = 1000 }, { .real_ns = 0, .wall_ns = 100 },
	};

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(cases); i++) {
		struct told t = cases[i];
		struct mew_plan_options o = options(0);
		struct mew_model *m;

		o.min_warmup_time = 2;
		o.latency = i == 0;
		o.iterations = 20;
		m = plan(&t, &o, 1);
		if (t.warmed_ns < 2e9 || t.warmed_ns > 2.1e9)
			fail_msg("case %zu: %g s of warm-up, not 2", i, t.warmed_ns / 1e9);
		assert_int_equal(m->cases[0].time.iterations, 20);
		mew_model_free(m);
	}
}

static void the_shortest_warm_up_ends(void **state)
{
	struct told t = { .real_ns = 50, .wall_ns = 50 };
	struct mew_plan_options o = options(0);
	struct mew_model *m;

	(void)state;
	o.min_warmup_time = 1e-12;
	m = plan(&t, &o, 1);
	assert_int_equal(m->cases[0].runs[2].phase, MEW_PHASE_MEASUREMENT_WARMUP);
	assert_int_equal(m->cases[0].runs[2].nsamples, 1);
	mew_model_free(m);
}

static void long_iterations_fill_min_time_and_no_more(void **state)
{
	struct told t = { .real_ns = 300000000, .wall_ns = 300000000 };
	const struct mew_plan_options o = options(1);
	struct mew_model *m = plan(&t, &o, 1);

	(void)state;
	assert_true(measured_s(m, MEW_PHASE_MEASUREMENT_VALUE) > 1.19 && measured_s(m, MEW_PHASE_MEASUREMENT_VALUE) < 1.21);
	mew_model_free(m);
}

/* 100 ns measured and 1 ms paused: two seconds of that would be five hours. */
static void min_time_is_not_waited_for_for_ever(void **state)
{
	struct told t = { .real_ns = 100, .wall_ns = 1000000 };
	static const struct {
		double min_time;
		uint64_t max_ns;
		const char *says;
	} rows[] = { { 0.2, 500000000, "not reached in 0.5 s" }, { 2, 20000000000u, "not reached in 20 s" } };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(rows); i++) {
		const struct mew_plan_options o = options(rows[i].min_time);
		struct mew_model *m = plan(&t, &o, 1);

		assert_int_equal(t.asked[MEW_PHASE_MEASUREMENT_VALUE].max_ns, rows[i].max_ns);
		assert_non_null(m->cases[0].time.reason);
		assert_non_null(strstr(m->cases[0].time.reason, rows[i].says));
		mew_model_free(m);
	}
}

/* One thread takes four times as long as the mean of all: nothing is paused, and the case ends before it measured enough. */
static void threads_that_wait_for_a_slower_one_are_said(void **state)
{
	struct told t = { .real_ns = 250, .wall_ns = 1000 };
	const struct mew_plan_options o = options(0.3);

	(void)state;
	for (unsigned threads = 1; threads <= 4; threads *= 4) {
		struct mew_model *m = plan(&t, &o, threads);
		const char *reason = m->cases[0].time.reason;

		assert_non_null(reason);
		assert_non_null(strstr(reason, "not reached in 0.5 s"));
		assert_int_equal(strstr(reason, "threads for a slower one") != NULL, threads > 1);
		mew_model_free(m);
	}
}

/* --- single calls ----------------------------------------------------------------------------------------------- */

static void calls_that_are_too_many_to_keep_are_said_once(void **state)
{
	struct told t = { .real_ns = 60, .wall_ns = 60 };
	struct mew_plan_options o = options(1);
	struct mew_model *m;
	const char *said;

	(void)state;
	o.latency = true;
	o.repetitions = 2;
	m = plan(&t, &o, 1);
	said = m->cases[0].time.reason;
	assert_non_null(said);
	assert_non_null(strstr(said, "1048576 samples"));
	assert_null(strstr(strstr(said, "1048576 samples") + 1, "1048576 samples"));
	mew_model_free(m);
}

static void every_single_call_that_was_asked_for_is_kept(void **state)
{
	struct told t = { .real_ns = 60, .wall_ns = 60 };
	struct mew_plan_options o = options(0);
	struct mew_model *m;

	(void)state;
	o.latency = true;
	o.iterations = 2000000;
	m = plan(&t, &o, 1);
	assert_int_equal(m->cases[0].time.samples, 2000000);
	assert_int_equal(m->cases[0].time.iterations, 2000000);
	assert_null(m->cases[0].time.reason);
	mew_model_free(m);
}

static void calls_that_are_lost_are_counted(void **state)
{
	struct told t = { .real_ns = 60, .wall_ns = 60 };
	struct mew_plan_options o = options(0);
	struct mew_model *m;

	(void)state;
	o.latency = true;
	o.iterations = 17000000;
	m = plan(&t, &o, 1);
	assert_non_null(m->cases[0].time.reason);
	assert_non_null(strstr(m->cases[0].time.reason, "the first 16777216 of 17000000"));
	mew_model_free(m);
}

/* --- processes -------------------------------------------------------------------------------------------------- */

static void figures_of_earlier_processes_stay_when_there_are_no_more(void **state)
{
	struct told t = { .real_ns = 60, .wall_ns = 60, .processes = 2 };
	const struct mew_driver d = { .data = &t, .open = told_open, .run = told_run, .close = told_close,
				      .renew = told_renew };
	struct mew_plan_case c = { .key = "case", .label = "small", .tags = "few", .threads = 2 };
	struct mew_plan_options o = options(0);
	struct mew_model *m = mew_model_new();
	struct mew_error err;

	(void)state;
	o.processes = 20;
	assert_non_null(m);
	assert_int_equal(mew_plan_run(&d, &c, 1, MEW_PASS_TIME, &o, m, &err), MEW_E_INVALID);
	assert_int_equal(m->ncases, 1);
	assert_int_equal(m->cases[0].time.status, MEW_OK);
	assert_true(m->cases[0].time.median_ns > 59 && m->cases[0].time.median_ns < 61);
	assert_int_equal(m->cases[0].threads, 2);
	assert_string_equal(m->cases[0].label, "small");
	assert_string_equal(m->cases[0].tags, "few");
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(min_time_is_measured_however_long),
		cmocka_unit_test(a_short_run_has_short_samples),
		cmocka_unit_test(a_long_warm_up_is_run),
		cmocka_unit_test(a_warm_up_of_single_calls_is_as_long),
		cmocka_unit_test(the_shortest_warm_up_ends),
		cmocka_unit_test(long_iterations_fill_min_time_and_no_more),
		cmocka_unit_test(min_time_is_not_waited_for_for_ever),
		cmocka_unit_test(threads_that_wait_for_a_slower_one_are_said),
		cmocka_unit_test(calls_that_are_too_many_to_keep_are_said_once),
		cmocka_unit_test(every_single_call_that_was_asked_for_is_kept),
		cmocka_unit_test(calls_that_are_lost_are_counted),
		cmocka_unit_test(figures_of_earlier_processes_stay_when_there_are_no_more),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
