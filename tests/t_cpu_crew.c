/*
 * t_cpu_crew.c - threads of a case that a wrapper announces: many short ones, C11's, forks, threads at rest, cut stacks.
 * Test program, with libmew_hooks.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu_crew.h"
#include "fx_cpu_threads.h"

/* --- what only the wrapper can do exactly -------------------------------------------------------------------------- */

#define SHORT 500u

FX_IN(fx_body) static void churn_body(struct rig *r, unsigned thread, void *arg)
{
	struct job *jobs = arg;

	(void)r;
	(void)thread;
	for (unsigned i = 0; i < SHORT; i++) {
		jobs[i] = (struct job){ .name = "short", .work = fx_one, .us = 300 };
		start(&jobs[i]);
		join(&jobs[i]);
	}
}

static bool try_churn(void)
{
	static struct job jobs[SHORT];
	struct rig r = { .body = churn_body, .arg = jobs };
	uint64_t strays = mew_cpu_signal_strays();
	double truth = 0;
	bool ok;

	rig_run(&r);
	assert_ran(&r);
	for (unsigned i = 0; i < SHORT; i++)
		truth += seconds(jobs[i].spent);
	assert_int_equal(r.row->cpu.nby_thread, SHORT + 1);
	assert_false(says(&r, "thread")); /* a busy machine may slow the sampling, which is said */
	assert_null(rig_why(&r, MEW_FIG_CPU_TIME));
	ok = is_near("500 short threads", rig_self(&r, FX_RANGE(fx_one)), truth, 2 * SHORT);
	rig_fini(&r);
	assert_int_equal(mew_cpu_signal_strays(), strays);
	if (rig_timers() >= 0)
		assert_int_equal(rig_timers(), 0);
	return ok;
}

static void t_churn(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_churn());
}

static void *nothing(void *data)
{
	return data;
}

FX_IN(fx_body) static void crowd_body(struct rig *r, unsigned thread, void *arg)
{
	pthread_t id;

	(void)r;
	(void)thread;
	(void)arg;
	for (unsigned i = 0; i < MEW_CPU_CREW_ROWS + 9; i++) {
		assert_int_equal(pthread_create(&id, NULL, nothing, NULL), 0);
		assert_int_equal(pthread_join(id, NULL), 0);
	}
}

/* Far more threads than rows: the last row has those that have none. */
static void t_more_threads_than_rows(void **state)
{
	struct rig r = { .body = crowd_body };
	const struct mew_cpu_case *cpu;

	(void)state;
	rig_run(&r);
	assert_ran(&r);
	cpu = &r.row->cpu;
	assert_int_equal(cpu->nby_thread, MEW_CPU_CREW_ROWS + 1);
	assert_string_equal(cpu->by_thread[cpu->nby_thread - 1].name, "10 more threads");
	rig_fini(&r);
}

FX_IN(fx_root) static int run_c11(void *data)
{
	(void)run_job(data);
	return 42;
}

FX_IN(fx_body) static void c11_body(struct rig *r, unsigned thread, void *arg)
{
	thrd_t id;
	int result = 0;

	(void)r;
	(void)thread;
	assert_int_equal(thrd_create(&id, run_c11, arg), thrd_success);
	assert_int_equal(thrd_join(id, &result), thrd_success);
	assert_int_equal(result, 42);
}

static void t_c11_thread(void **state)
{
	struct job job = { .name = "c11", .work = fx_one, .us = 20000 };
	struct rig r = { .body = c11_body, .arg = &job };

	(void)state;
	rig_run(&r);
	assert_ran(&r);
	assert_int_equal(count_rows(&r, "c11"), 1);
	assert_true(passing(&r, FX_RANGE(fx_one), FX_RANGE(fx_root)) > 20);
	rig_fini(&r);
}

FX_IN(fx_body) static void one_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	start(arg);
	join(arg);
}

/* A stack of such a thread ends at its own function: what starts threads is nobody's hot spot. */
static void t_stacks_end_at_the_function(void **state)
{
	struct job job = { .name = "one", .work = fx_one, .us = 60000 };
	struct rig r = { .body = one_body, .arg = &job };
	size_t hits, ended = 0;

	(void)state;
	rig_run(&r);
	assert_ran(&r);
	for (size_t i = 0; i < r.row->nsamples; i++)
		ended += rig_frame_in(&r, &r.row->samples[i], 0, FX_RANGE(fx_one)) &&
			 rig_frame_in(&r, &r.row->samples[i], -1, FX_RANGE(fx_root));
	hits = rig_hits(&r, FX_RANGE(fx_one));
	assert_true(hits > 100 && ended >= hits - hits / 20);
	rig_fini(&r);
}

/* A thread of the case forks under its armed timer; the child makes threads of its own. */
static void *fork_and_wait(void *data)
{
	pthread_t id;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(pthread_create(&id, NULL, nothing, NULL) == 0 && pthread_join(id, NULL) == 0 ? 0 : 1);
	(void)waitpid(pid, &status, 0);
	*(int *)data = status;
	return NULL;
}

FX_IN(fx_body) static void forking_body(struct rig *r, unsigned thread, void *arg)
{
	pthread_t ids[4];
	int status[4];

	(void)r;
	(void)thread;
	(void)arg;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, fork_and_wait, &status[i]), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(ids[i], NULL), 0);
		assert_int_equal(status[i], 0);
	}
}

static void t_forking_threads(void **state)
{
	struct rig r = { .body = forking_body, .interval_ns = 20000 };

	(void)state;
	for (int i = 0; i < 10; i++) {
		rig_run(&r);
		assert_ran(&r);
		assert_int_equal(r.row->cpu.nby_thread, 5);
		rig_fini(&r);
		r = (struct rig){ .body = forking_body, .interval_ns = 20000 };
	}
}

/* --- threads at rest, and threads that block signals ---------------------------------------------------------------- */

FX_IN(fx_root) static void *block_signals(void *data)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, NULL);
	return run_job(data);
}

FX_IN(fx_body) static void blocking_body(struct rig *r, unsigned thread, void *arg)
{
	struct job *job = arg;

	(void)r;
	(void)thread;
	assert_int_equal(pthread_create(&job->id, NULL, block_signals, job), 0);
	join(job);
}

/* A sample may come between the birth and the block. */
static bool try_blocked(void)
{
	struct job job = { .name = "deaf", .work = fx_one, .us = 60000 };
	struct rig r = { .body = blocking_body, .arg = &job };
	bool ok;

	rig_run(&r);
	assert_ran(&r);
	ok = row_of(&r, "deaf")->sample_count == 0;
	if (ok)
		assert_true(says(&r, "1 threads of the case gave no sample: do they block signal"));
	rig_fini(&r);
	return ok;
}

static void t_blocked_signals_are_said(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_blocked());
}

/* Idle for most of the time, woken seldom: yet weighed rightly, and so is the work it does in between. */
FX_IN(fx_root) static void *rest_and_work(void *data)
{
	struct job *job = data;

	(void)prctl(PR_SET_NAME, job->name);
	for (unsigned i = 0; i < 4; i++) {
		(void)usleep(150000);
		job->spent += fx_one(fx_us(job->us));
	}
	return NULL;
}

FX_IN(fx_body) static void resting_body(struct rig *r, unsigned thread, void *arg)
{
	struct job *job = arg;

	(void)r;
	(void)thread;
	assert_int_equal(pthread_create(&job->id, NULL, rest_and_work, job), 0);
	join(job);
}

static bool try_rest(void)
{
	struct job job = { .name = "rests", .us = 100000 };
	struct rig r = { .body = resting_body, .arg = &job };
	const struct mew_cpu_thread_figures *t;
	bool ok;

	rig_run(&r);
	assert_ran(&r);
	t = row_of(&r, "rests");
	ok = is_near("weight of one that rests", t->sample_weight, t->wall_time, 2);
	ok = is_near("its work", rig_self(&r, FX_RANGE(fx_one)), seconds(job.spent), 8 * 32 * 32) && ok;
	/* 0.6 s of rest would be 6,000 wake-ups */
	if (rig_hits(&r, FX_RANGE(fx_one)) * 2 < t->sample_count) {
		printf("# %llu samples, %zu of them of its work\n", (unsigned long long)t->sample_count,
		       rig_hits(&r, FX_RANGE(fx_one)));
		ok = false;
	}
	rig_fini(&r);
	return ok;
}

static void t_rest_is_sampled_seldom(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_rest());
}

/* --- waiting at the end of the loop -------------------------------------------------------------------------------- */

static void uneven(struct mew_state *st, void *arg)
{
	(void)arg;
	MEW_LOOP(st)
		(void)fx_one(fx_us(mew_thread_index(st) == 0 ? 500 : 2000));
}

/* The one that is done first waits for the other one, and must not be sampled while it does. */
static bool try_uneven(void)
{
	const struct mew_entry entries[] = { { .name = "uneven", .run = uneven, .threads = 2 }, { 0 } };
	struct mew_cpu_profiles *p = mew_cpu_profile(entries, .inner_iterations = 100);
	const struct mew_cpu_case *cpu;
	bool ok = true;

	assert_non_null(p);
	cpu = mew_cpu_at(p, 0);
	assert_int_equal(cpu->status, MEW_OK);
	assert_int_equal(cpu->nby_thread, 2);
	assert_null(mew_cpu_why(cpu, MEW_FIG_CPU_TIME)); /* it is no pause */
	for (unsigned i = 0; i < 2; i++)
		ok = is_near("weight of a benchmark thread", cpu->by_thread[i].sample_weight,
			     cpu->by_thread[i].wall_time, 2) && ok;
	ok = cpu->by_thread[0].wall_time < cpu->by_thread[1].wall_time && ok;
	mew_cpu_free(p);
	return ok;
}

static void t_waiting_is_not_sampled(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_uneven());
}

/* --- stacks that are cut ------------------------------------------------------------------------------------------- */

static ucontext_t home, elsewhere;

static void work_elsewhere(void)
{
	(void)fx_one(fx_us(50000));
}

FX_IN(fx_body) static void elsewhere_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	(void)swapcontext(&home, &elsewhere);
}

static void t_cut_stacks_are_said(void **state)
{
	static char stack[262144];
	struct rig r = { .body = elsewhere_body };
	const struct mew_cpu_case *cpu;

	(void)state;
	assert_int_equal(getcontext(&elsewhere), 0);
	elsewhere.uc_stack.ss_sp = stack;
	elsewhere.uc_stack.ss_size = sizeof stack;
	elsewhere.uc_link = &home;
	makecontext(&elsewhere, work_elsewhere, 0);
	rig_run(&r);
	assert_ran(&r);
	cpu = &r.row->cpu;
	assert_true(cpu->truncated * 2 > cpu->sample_count);
	assert_string_equal(cpu->stops[0].reason, "outside the known stack");
	assert_true(says(&r, "of the stacks are cut (most: outside the known stack)"));
	rig_fini(&r);
}

/* --- what mew does on a new thread --------------------------------------------------------------------------------- */

static uint64_t allocations_of_a_thread(void)
{
	struct mew_span span;
	pthread_t id;

	assert_int_equal(mew_span_begin(&span, MEW_SPAN_PROCESS), MEW_OK);
	assert_int_equal(pthread_create(&id, NULL, nothing, NULL), 0);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_int_equal(mew_span_end(&span), MEW_OK);
	return span.allocations;
}

static void t_its_allocations_are_in_no_span(void **state)
{
	uint64_t alone;

	(void)state;
	(void)allocations_of_a_thread(); /* what only the first thread of a process needs */
	alone = allocations_of_a_thread();
	mew_cpu_crew_watch();
	assert_int_equal(allocations_of_a_thread(), alone);
	mew_cpu_crew_unwatch();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_churn),
		cmocka_unit_test(t_more_threads_than_rows),
		cmocka_unit_test(t_c11_thread),
		cmocka_unit_test(t_stacks_end_at_the_function),
		cmocka_unit_test(t_forking_threads),
		cmocka_unit_test(t_blocked_signals_are_said),
		cmocka_unit_test(t_rest_is_sampled_seldom),
		cmocka_unit_test(t_waiting_is_not_sampled),
		cmocka_unit_test(t_cut_stacks_are_said),
		cmocka_unit_test(t_its_allocations_are_in_no_span),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_crew", tests, NULL, NULL);
}
