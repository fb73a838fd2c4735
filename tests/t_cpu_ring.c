/*
 * t_cpu_ring.c - the engine without signals: how it is asked for, what it makes of pauses, deep stacks, blocked signals,
 * forks and threads, and what it says when samples are lost.
 * Test program. Skips where perf_event_open is refused. The program is linked so that the naps of mew's thread can be long.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu_timer.h"
#include "fx_cpu_rig.h"
#include "fx_cpu_threads.h"

static _Atomic int drainer_oversleeps;

int __real_nanosleep(const struct timespec *request, struct timespec *left);
int __wrap_nanosleep(const struct timespec *request, struct timespec *left);

int __wrap_nanosleep(const struct timespec *request, struct timespec *left)
{
	static const struct timespec long_nap = { 0, 300000000 };
	char name[16] = "";

	if (atomic_load(&drainer_oversleeps) != 0 && prctl(PR_GET_NAME, name) == 0 && strcmp(name, "mew:samples") == 0)
		return __real_nanosleep(&long_nap, left);
	return __real_nanosleep(request, left);
}

static void need_ring(void)
{
	if (rig_has(MEW_CPU_ENGINE_RING))
		return;
	printf("# perf_event_open with a ring is refused here\n");
	skip();
}

/* --- asking for it ------------------------------------------------------------------------------------------------ */

static struct rig run_with(const char *sampler, enum mew_clock clock)
{
	struct rig r = { .body = rig_short_body, .clock = clock };

	assert_int_equal(setenv("MEW_SAMPLER", sampler, 1), 0);
	rig_run(&r);
	assert_int_equal(unsetenv("MEW_SAMPLER"), 0);
	return r;
}

static void t_asked_for(void **state)
{
	struct rig r;

	(void)state;
	need_ring();
	r = run_with("ring", MEW_CLOCK_CPU);
	assert_int_equal(r.status, MEW_OK);
	assert_string_equal(r.row->cpu.engine, "ring");
	assert_string_equal(r.row->cpu.engine_reason, "it was asked for");
	rig_fini(&r);
	r = run_with("signal", MEW_CLOCK_CPU);
	assert_int_equal(r.status, MEW_OK);
	assert_string_not_equal(r.row->cpu.engine, "ring");
	rig_fini(&r);
}

/* Perf has no wall clock: the row says so, and the timer does it. */
static void t_not_for_wall_time(void **state)
{
	struct rig r = run_with("ring", MEW_CLOCK_WALL);

	(void)state;
	assert_int_equal(r.status, MEW_OK);
	assert_string_equal(r.row->cpu.engine, "timer");
	assert_non_null(strstr(r.row->cpu.engine_reason, "MEW_SAMPLER=ring"));
	assert_non_null(strstr(r.row->cpu.engine_reason, "--clock cpu"));
	rig_fini(&r);
}

static void t_wrong_name(void **state)
{
	struct rig r = run_with("rings", MEW_CLOCK_CPU);

	(void)state;
	assert_int_equal(r.status, MEW_E_INVALID);
	assert_non_null(strstr(r.error.text, "MEW_SAMPLER is \"rings\""));
	rig_fini(&r);
}

/* --- stacks ------------------------------------------------------------------------------------------------------- */

FX_IN(fx_body) static void sort_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t random = 88172645463325252u;
	int numbers[64];

	(void)r;
	(void)thread;
	(void)arg;
	for (int turn = 0; turn < 20; turn++) {
		for (size_t i = 0; i < 64; i++)
			numbers[i] = (int)rig_pick(&random, 1000);
		fx_sort(numbers, 64, fx_us(20));
	}
}

/* Through the C library, which has no frame pointers, down to the body; the table walks the copy as it does a stack. */
static void t_whole_stacks(void **state)
{
	struct rig r = { .body = sort_body, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };
	size_t whole = 0;

	(void)state;
	need_ring();
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	for (size_t i = 0; i < r.row->nsamples; i++)
		whole += rig_frame_in(&r, &r.row->samples[i], -1, FX_RANGE(fx_body)) &&
			 rig_passes(&r, &r.row->samples[i], FX_RANGE(fx_sort));
	printf("# %zu of %zu stacks are whole, %llu cut\n", whole, r.row->nsamples,
	       (unsigned long long)r.row->cpu.truncated);
	assert_true(r.row->nsamples > 100);
	assert_true(whole >= r.row->nsamples - r.row->nsamples / 100); /* the first and last are in the body itself */
	assert_true(rig_self(&r, FX_RANGE(fx_compare)) > 0.5 * r.row->cpu.sample_weight);
	rig_fini(&r);
}

FX_IN(fx_body) static void deep_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	/* uses 24 KiB */
	(void)fx_deep((uintptr_t)__builtin_frame_address(0) - 32768, 8192, fx_us(100000));
	(void)arg;
}

static void t_stack_deeper_than_the_copy(void **state)
{
	struct rig r = { .body = deep_body, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };
	bool is_said = false;

	(void)state;
	need_ring();
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_true(r.row->cpu.truncated > r.row->cpu.sample_count * 9 / 10);
	for (size_t i = 0; i < r.row->cpu.nstops; i++)
		is_said = is_said || strstr(r.row->cpu.stops[i].reason, "copied 8 KiB") != NULL;
	assert_true(is_said);
	/* where it was is known all the same */
	assert_true(rig_self(&r, FX_RANGE(fx_one)) > 0.9 * r.row->cpu.sample_weight);
	rig_fini(&r);
}

/* --- pauses ------------------------------------------------------------------------------------------------------- */

#define PAUSES 1500

FX_IN(fx_body) static void paused_body(struct rig *r, unsigned thread, void *arg)
{
	(void)arg;
	for (int i = 0; i < PAUSES; i++) {
		(void)fx_one(fx_us(200));
		rig_pause(r, thread);
		(void)fx_hog(fx_us(300));
		rig_resume(r, thread);
	}
}

static bool pauses_are_out(void)
{
	struct rig r = { .body = paused_body, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING, .pause_cpu = 1 };
	double cpu, chance = 4 * 0.5 * 1.5e-4 * sqrt(2.0 * PAUSES), got;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_hog)), 0);
	cpu = r.row->cpu.cpu_time;
	got = r.row->cpu.sample_weight;
	printf("# %.4f s of weight, %.4f s of unpaused CPU time, %.4f s of chance\n", got, cpu, chance);
	rig_fini(&r);
	return fabs(got - cpu) <= 0.01 * cpu + chance;
}

static void t_pauses(void **state)
{
	(void)state;
	need_ring();
	RIG_ASSERT_IN_TRIES(pauses_are_out());
}

/* More pauses than the log holds between two looks: a pause then waits, and nothing of it is charged. */
FX_IN(fx_body) static void many_pauses_body(struct rig *r, unsigned thread, void *arg)
{
	(void)arg;
	for (int i = 0; i < 200000; i++) {
		rig_pause(r, thread);
		rig_resume(r, thread);
	}
}

static void t_many_pauses(void **state)
{
	struct rig r = { .body = many_pauses_body, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };

	(void)state;
	need_ring();
	atomic_store(&drainer_oversleeps, 1);
	rig_run(&r);
	atomic_store(&drainer_oversleeps, 0);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(r.pauses, 200000);
	rig_fini(&r);
}

/* --- what is lost ------------------------------------------------------------------------------------------------- */

FX_IN(fx_body) static void long_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	(void)fx_one(fx_us(1000000));
	__asm__ volatile("" : : : "memory");
}

static void t_lost_is_counted(void **state)
{
	struct rig r = { .body = long_body, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };
	double due;

	(void)state;
	need_ring();
	atomic_store(&drainer_oversleeps, 1);
	rig_run(&r);
	atomic_store(&drainer_oversleeps, 0);
	assert_int_equal(r.status, MEW_OK);
	due = r.row->cpu.cpu_time / 1e-4;
	printf("# %llu samples and %llu lost of %.0f due\n", (unsigned long long)r.row->cpu.sample_count,
	       (unsigned long long)r.row->cpu.lost, due);
	assert_true(r.row->cpu.lost > 0);
	assert_true((double)(r.row->cpu.sample_count + r.row->cpu.lost) > 0.8 * due);
	assert_true(r.row->cpu.sample_weight <= 1.02 * r.row->cpu.cpu_time);
	rig_fini(&r);
}

/* --- the program around it ---------------------------------------------------------------------------------------- */

/* What takes a signal engine its samples is nothing to this one. */
FX_IN(fx_body) static void blocking_body(struct rig *r, unsigned thread, void *arg)
{
	sigset_t all, former;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &former);
	rig_short_body(r, thread, arg);
	(void)pthread_sigmask(SIG_SETMASK, &former, NULL);
}

static bool signals_do_not_matter(void)
{
	struct rig r = { .body = blocking_body, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };
	bool ok;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	ok = fabs(r.row->cpu.sample_weight - r.row->cpu.cpu_time) <= 0.02 * r.row->cpu.cpu_time + 2e-4;
	printf("# %.4f s of weight, %.4f s of CPU time\n", r.row->cpu.sample_weight, r.row->cpu.cpu_time);
	rig_fini(&r);
	return ok;
}

static void t_blocked_signals(void **state)
{
	(void)state;
	need_ring();
	RIG_ASSERT_IN_TRIES(signals_do_not_matter());
}

/* A child has neither ring nor thread of mew: it must not wait for them, nor touch the parent's. */
FX_IN(fx_body) static void fork_body(struct rig *r, unsigned thread, void *arg)
{
	int *bad = arg;

	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status = 0;

		if (child == 0) {
			rig_pause(r, thread);
			rig_resume(r, thread);
			_exit(7);
		}
		(void)fx_one(fx_us(2000));
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
			++*bad;
	}
}

static void t_fork(void **state)
{
	int bad = 0;
	struct rig r = { .body = fork_body, .arg = &bad, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };

	(void)state;
	need_ring();
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(bad, 0);
	assert_true(r.row->cpu.sample_count > 100);
	rig_fini(&r);
}

FX_IN(fx_body) static void threads_body(struct rig *r, unsigned thread, void *arg)
{
	struct job *jobs = arg;

	(void)r;
	(void)thread;
	start(&jobs[0]);
	start(&jobs[1]);
	(void)fx_seven(fx_us(50000));
	join(&jobs[0]);
	join(&jobs[1]);
}

static bool try_threads(void)
{
	struct job jobs[] = { { .name = "first", .work = fx_one, .us = 100000 },
			      { .name = "second", .work = fx_two, .us = 200000 } };
	struct rig r = { .body = threads_body, .arg = jobs, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_RING };
	double one, two;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	if (r.row->cpu.lost > 0) { /* the ring was read too late, on a busy machine: the rest cannot be in proportion */
		printf("# %llu samples lost\n", (unsigned long long)r.row->cpu.lost);
		rig_fini(&r);
		return false;
	}
	rig_was_judged = true;
	assert_int_equal(r.row->cpu.nby_thread, 3); /* mew's own is none of them */
	one = rig_self(&r, FX_RANGE(fx_one));
	two = rig_self(&r, FX_RANGE(fx_two));
	printf("# of the case's threads: %.4f and %.4f s of weight\n", one, two);
	assert_true(row_of(&r, "first")->sample_count > 0 && row_of(&r, "second")->sample_count > 0);
	rig_fini(&r);
	return one > 0.08 && fabs(two / one - 2) <= 0.3; /* found up to 2 ms late, and others disturb them unequally */
}

static void t_threads_of_the_case(void **state)
{
	(void)state;
	if (rig_is_quick())
		skip(); /* judged where nothing else runs */
	need_ring();
	RIG_ASSERT_IF_JUDGED(try_threads(), "samples were lost in every try");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_asked_for),
		cmocka_unit_test(t_not_for_wall_time),
		cmocka_unit_test(t_wrong_name),
		cmocka_unit_test(t_whole_stacks),
		cmocka_unit_test(t_stack_deeper_than_the_copy),
		cmocka_unit_test(t_pauses),
		cmocka_unit_test(t_many_pauses),
		cmocka_unit_test(t_lost_is_counted),
		cmocka_unit_test(t_blocked_signals),
		cmocka_unit_test(t_fork),
		cmocka_unit_test(t_threads_of_the_case),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_ring", tests, NULL, NULL);
}
