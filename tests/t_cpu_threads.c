/*
 * t_cpu_threads.c - the CPU backend and the threads that a case makes itself: who is sampled, how long, and what is said.
 * Test program, built twice: with libmew_hooks, whose wrapper announces threads, and as t_cpu_scan (SCAN_ONLY) without,
 * where mew has to look for them.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cpu_crew.h"
#include "fx_cpu_threads.h"
#include "hooks_link.h"
#include "os.h"

/* --- born and dying in the loop ----------------------------------------------------------------------------------- */

#define ROUNDS 8u
#ifdef SCAN_ONLY
#define UNIT_US 60000u /* who looks every two milliseconds must come to do so */
#else
#define UNIT_US 20000u
#endif

struct rounds {
	struct job one[ROUNDS], three[ROUNDS];
};

FX_IN(fx_body) static void rounds_body(struct rig *r, unsigned thread, void *arg)
{
	struct rounds *all = arg;

	(void)r;
	(void)thread;
	for (unsigned i = 0; i < ROUNDS; i++) {
		all->one[i] = (struct job){ .name = "one", .work = fx_one, .us = UNIT_US };
		all->three[i] = (struct job){ .name = "three", .work = fx_two, .us = 3 * UNIT_US };
		start(&all->one[i]);
		start(&all->three[i]);
		join(&all->one[i]);
		join(&all->three[i]);
	}
}

/* Weights and wall time of all threads of one name against what they really took. */
static bool check_share(const struct rig *r, const struct job *jobs, const char *name, struct fx_range leaf)
{
	double truth = 0, weight = 0, wall = 0;
	bool ok;

	for (unsigned i = 0; i < ROUNDS; i++)
		truth += seconds(jobs[i].spent);
	for (size_t i = 0; i < r->row->cpu.nby_thread; i++) {
		const struct mew_cpu_thread_figures *t = &r->row->cpu.by_thread[i];

		if (strcmp(t->name, name) != 0)
			continue;
		assert_true(t->sample_count > 0);
		assert_true(t->tid > 0);
		weight += t->sample_weight;
		wall += t->wall_time;
	}
	ok = is_near(name, rig_self(r, leaf), truth, 2 * ROUNDS);
	ok = is_near("all of its samples", weight, truth, 2 * ROUNDS) && ok;
	return is_near("its wall time", wall, truth, 2 * ROUNDS) && ok;
}

static bool try_rounds(void)
{
	static struct rounds all;
	struct rig r = { .body = rounds_body, .arg = &all };
	uint64_t strays = mew_cpu_signal_strays();
	bool ok;

	rig_run(&r);
	assert_ran(&r);
#ifdef SCAN_ONLY
	if (count_rows(&r, "one") != ROUNDS || count_rows(&r, "three") != ROUNDS) { /* nobody promises it */
		printf("# found: %zu and %zu of %u\n", count_rows(&r, "one"), count_rows(&r, "three"), ROUNDS);
		rig_fini(&r);
		return false;
	}
#endif
	assert_int_equal(count_rows(&r, "one"), ROUNDS);
	assert_int_equal(count_rows(&r, "three"), ROUNDS);
	assert_int_equal(r.row->cpu.nby_thread, 2 * ROUNDS + 1);
	ok = check_share(&r, all.one, "one", FX_RANGE(fx_one));
	ok = check_share(&r, all.three, "three", FX_RANGE(fx_two)) && ok;
	ok = is_near("the benchmark's own thread", rig_thread(&r, 0), r.row->cpu.wall_time, 2) && ok;
	rig_fini(&r);
	(void)fx_after(fx_us(5000));
	assert_int_equal(mew_cpu_signal_strays(), strays);
	if (rig_timers() >= 0)
		assert_int_equal(rig_timers(), 0);
	return ok;
}

static void t_born_and_dying(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_rounds());
}

/* The figures of all threads make those of the row. */
static void t_sums(void **state)
{
	static struct rounds all;
	struct rig r = { .body = rounds_body, .arg = &all };
	const struct mew_cpu_case *cpu;
	double weight = 0, cpu_time = 0, wall = 0;
	uint64_t samples = 0, stops = 0;

	(void)state;
	rig_run(&r);
	assert_ran(&r);
	cpu = &r.row->cpu;
	for (size_t i = 0; i < cpu->nby_thread; i++) {
		weight += cpu->by_thread[i].sample_weight;
		samples += cpu->by_thread[i].sample_count;
		cpu_time += cpu->by_thread[i].cpu_time;
		wall += cpu->by_thread[i].wall_time;
	}
	assert_true(fabs(weight - cpu->sample_weight) < 1e-6);
	assert_int_equal(samples, cpu->sample_count);
	assert_true(fabs(wall - cpu->effective_interval * (double)samples) < 1e-6);
	assert_string_equal(cpu->by_thread[0].name, "benchmark thread 0");
	assert_true(fabs(cpu->by_thread[0].wall_time - cpu->wall_time) < 1e-9);
#ifdef SCAN_ONLY
	assert_true(says(&r, "mew run"));
	assert_non_null(strstr(rig_why(&r, MEW_FIG_CPU_TIME), "ended unseen"));
	assert_true(cpu_time >= 0);
#else
	if (cpu->reason != NULL) /* a busy machine may slow the sampling, which is said; of the threads there is nothing to say */
		printf("# %s\n", cpu->reason);
	assert_false(says(&r, "thread") || says(&r, "mew run"));
	assert_null(rig_why(&r, MEW_FIG_CPU_TIME));
	assert_true(fabs(cpu_time - cpu->cpu_time) < 1e-6);
	assert_true(cpu_time > 1e-6 * UNIT_US * ROUNDS * 4 * 0.5);
#endif
	for (size_t i = 0; i < cpu->nstops; i++) {
		stops += cpu->stops[i].samples;
		assert_true(i == 0 || cpu->stops[i].samples <= cpu->stops[i - 1].samples);
	}
	assert_int_equal(stops, samples);
	assert_string_equal(cpu->stops[0].reason, "complete");
	assert_int_equal(samples - cpu->stops[0].samples, cpu->truncated);
	rig_fini(&r);
}

/* --- a pool from the set-up --------------------------------------------------------------------------------------- */

static pthread_barrier_t gate;
static volatile int quit;

FX_IN(fx_root) static void *work_in_pool(void *data)
{
	struct job *job = data;

	(void)prctl(PR_SET_NAME, job->name);
	for (;;) {
		(void)pthread_barrier_wait(&gate);
		if (quit)
			return NULL;
		job->spent = job->work(fx_us(job->us));
		(void)pthread_barrier_wait(&gate);
	}
}

FX_IN(fx_body) static void pool_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	(void)pthread_barrier_wait(&gate);
	(void)pthread_barrier_wait(&gate);
}

static bool pool_is_right(const struct rig *r, const struct job *jobs)
{
	bool ok = true;

	assert_ran(r);
	assert_int_equal(r->row->cpu.nby_thread, 3);
	assert_int_equal(count_rows(r, "stranger"), 0); /* it was there before the case */
	for (unsigned i = 0; i < 2; i++) {
		const struct mew_cpu_thread_figures *t = row_of(r, jobs[i].name);

		ok = is_near("wall time of a thread of the pool", t->wall_time, r->row->cpu.wall_time, 2) && ok;
		ok = is_near("its weight", t->sample_weight, t->wall_time, 2) && ok;
	}
	ok = is_near("one", rig_self(r, FX_RANGE(fx_one)), seconds(jobs[0].spent), 2) && ok;
	ok = is_near("three", rig_self(r, FX_RANGE(fx_two)), seconds(jobs[1].spent), 2) && ok;
	/* whose stack is not known at first is known soon */
	if (passing(r, FX_RANGE(fx_two), FX_RANGE(fx_root)) * 10 < rig_hits(r, FX_RANGE(fx_two)) * 8) {
		printf("# %zu of %zu stacks lead to the thread's function\n",
		       passing(r, FX_RANGE(fx_two), FX_RANGE(fx_root)), rig_hits(r, FX_RANGE(fx_two)));
		ok = false;
	}
	return ok;
}

/* Two windows of one case, with the same pool. */
static bool try_pool(void)
{
	struct job jobs[2] = { { .name = "pool-one", .work = fx_one, .us = 60000 },
			       { .name = "pool-three", .work = fx_two, .us = 180000 } };
	struct job stranger = { .name = "stranger", .work = fx_hog, .us = 600000 };
	bool ok = true;

	quit = 0;
	(void)pthread_barrier_init(&gate, NULL, 3);
	start(&stranger);
	mew_backend_cpu.case_begin();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&jobs[i].id, NULL, work_in_pool, &jobs[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct rig r = { .body = pool_body };

		rig_run(&r);
		ok = pool_is_right(&r, jobs) && ok;
		rig_fini(&r);
	}
	quit = 1;
	(void)pthread_barrier_wait(&gate);
	for (unsigned i = 0; i < 2; i++)
		join(&jobs[i]);
	mew_backend_cpu.case_end();
	join(&stranger);
	(void)pthread_barrier_destroy(&gate);
	return ok;
}

static void t_pool_of_the_setup(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_pool());
}

/* --- a thread that outlives the loop ------------------------------------------------------------------------------ */

static volatile int released;

FX_IN(fx_root) static void *outlive(void *data)
{
	(void)data;
	(void)prctl(PR_SET_NAME, "outlives");
	while (!released)
		(void)fx_seven(fx_us(1000));
	(void)fx_after(fx_us(20000));
	return NULL;
}

FX_IN(fx_body) static void outlived_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	assert_int_equal(pthread_create(arg, NULL, outlive, NULL), 0);
	(void)fx_one(fx_us(60000));
}

static void release(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	released = 1;
}

static bool try_outlives(void)
{
	pthread_t id;
	struct rig r = { .body = outlived_body, .after = release, .arg = &id };
	uint64_t strays = mew_cpu_signal_strays();
	const struct mew_cpu_thread_figures *t;
	bool ok;

	released = 0;
	rig_run(&r);
	assert_int_equal(pthread_join(id, NULL), 0);
	assert_ran(&r);
	t = row_of(&r, "outlives");
	assert_null(rig_why(&r, MEW_FIG_CPU_TIME));
	ok = t->wall_time <= r.row->cpu.wall_time * 1.1 + 0.001; /* the window's end ended it */
	ok = is_near("weight of the one that outlives", t->sample_weight, t->wall_time, 2) && ok;
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_after)), 0);
	rig_fini(&r);
	assert_int_equal(mew_cpu_signal_strays(), strays);
	return ok;
}

static void t_outlives_the_loop(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(try_outlives());
}

/* --- a full house ------------------------------------------------------------------------------------------------- */

static struct mew_cpu_thread *held[MEW_CPU_SLOTS];

/* More threads than slots: said, and nothing else happens. */
static void t_more_threads_than_slots(void **state)
{
	struct job jobs[2] = { { .name = "pool-one", .work = fx_one, .us = 20000 },
			       { .name = "pool-two", .work = fx_two, .us = 20000 } };
	struct rig r = { .body = pool_body };
	size_t n = 0;

	(void)state;
	quit = 0;
	(void)pthread_barrier_init(&gate, NULL, 3);
	mew_backend_cpu.case_begin();
	while (n < MEW_CPU_SLOTS - 2) /* left: one for the benchmark's thread, one for a helper */
		held[n++] = mew_cpu_slot_take();
#ifdef SCAN_ONLY
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&jobs[i].id, NULL, work_in_pool, &jobs[i]), 0);
#else
	assert_int_equal(pthread_create(&jobs[0].id, NULL, work_in_pool, &jobs[0]), 0);
	while (mew_cpu_slot_next(held[n - 1]) == NULL) /* it has one */
		(void)usleep(1000);
	held[n] = mew_cpu_slot_take();
	assert_non_null(held[n]);
	assert_int_equal(pthread_create(&jobs[1].id, NULL, work_in_pool, &jobs[1]), 0);
	(void)usleep(50000);
	mew_cpu_slot_give(held[n]);
#endif
	rig_run(&r);
	quit = 1;
	(void)pthread_barrier_wait(&gate);
	for (unsigned i = 0; i < 2; i++)
		join(&jobs[i]);
	mew_backend_cpu.case_end();
	while (n > 0)
		mew_cpu_slot_give(held[--n]);
	(void)pthread_barrier_destroy(&gate);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(r.row->cpu.nby_thread, 2);
	assert_true(says(&r, "1 threads of the case are not in these figures"));
	rig_fini(&r);
}

static int check_wrapper(void **state)
{
	(void)state;
#ifdef SCAN_ONLY
	return mew_threads_link() == NULL ? 0 : -1;
#else
	return mew_threads_link() != NULL ? 0 : -1;
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_born_and_dying),
		cmocka_unit_test(t_sums),
		cmocka_unit_test(t_pool_of_the_setup),
		cmocka_unit_test(t_outlives_the_loop),
		cmocka_unit_test(t_more_threads_than_slots),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_threads", tests, check_wrapper, NULL);
}
