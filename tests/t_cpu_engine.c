/*
 * t_cpu_engine.c - which engine samples where others are refused, and why; perf events among forks, pauses and blocked
 * signals.
 * Test program. What is timed gets five tries on a noisy machine; the tolerances stay.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu_ladder.h"
#include "fx_cpu_rig.h"

/* --- refusals ---------------------------------------------------------------------------------------------------- */

#define REFUSE(number, error)                                                                                          \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

static bool filter(const struct sock_filter *program, unsigned short n)
{
	struct sock_fprog f = { n, (struct sock_filter *)(uintptr_t)program };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f) == 0;
}

static bool refuse_perf(int error)
{
	const struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_perf_event_open, (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return filter(program, MEW_COUNTOF(program));
}

/* Timers of CLOCK_MONOTONIC alone: a filter may look at arguments. */
static bool refuse_wall_timers(void)
{
	const struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		REFUSE(CLOCK_MONOTONIC, EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return filter(program, MEW_COUNTOF(program));
}

/* What a child saw, in shared memory. */
struct outcome {
	int status;
	char text[sizeof((struct mew_error *)0)->text];
	char engine[16], reason[MEW_CPU_REASON_BYTES];
	double cpu_time, weight;
	uint64_t samples, lost;
};

static void run_into(struct outcome *o, struct rig *r)
{
	rig_run(r);
	o->status = r->status;
	if (r->status != MEW_OK) {
		(void)snprintf(o->text, sizeof o->text, "%s", r->error.text);
		return;
	}
	(void)snprintf(o->engine, sizeof o->engine, "%s", r->row->cpu.engine);
	if (rig_why(r, MEW_FIG_ENGINE_REASON) == NULL)
		(void)snprintf(o->reason, sizeof o->reason, "%s", r->row->cpu.engine_reason);
	o->samples = r->row->cpu.sample_count;
	o->cpu_time = r->row->cpu.cpu_time;
	o->weight = r->row->cpu.sample_weight;
	o->lost = r->row->cpu.lost;
}

enum { REFUSE_PERF = 1, REFUSE_WALL_TIMERS = 2, DROP_UID = 4, NO_QUEUE = 8 };

FX_IN(fx_body) static void no_queue_body(struct rig *r, unsigned thread, void *arg)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_SIGPENDING, &none);
	rig_short_body(r, thread, arg);
}

static bool give_up_rights(int refused, int error)
{
	if ((refused & DROP_UID) != 0 && (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0))
		return false;
	if ((refused & REFUSE_PERF) != 0 && !refuse_perf(error))
		return false;
	return (refused & REFUSE_WALL_TIMERS) == 0 || refuse_wall_timers();
}

/* Run in a child that has fewer rights. Skips the test where they cannot be taken away. */
static struct outcome run_refused(enum mew_clock clock, int refused, int error)
{
	struct outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), got;
	pid_t child;
	int status;

	assert_true(o != MAP_FAILED);
	(void)fx_us(1);
	(void)fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct rig r = { .body = (refused & NO_QUEUE) != 0 ? no_queue_body : rig_short_body, .clock = clock };

		if (!give_up_rights(refused, error))
			_exit(77);
		run_into(o, &r);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	got = *o;
	(void)munmap(o, sizeof *o);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("# rights cannot be taken away here: %s\n", strerror(errno));
		skip();
	}
	if (!WIFEXITED(status))
		fail_msg("the child was killed by signal %d", WTERMSIG(status));
	return got;
}

static void t_refused_perf(void **state)
{
	static const struct {
		int error;
		const char *name, *remedy;
	} refusals[] = { { EPERM, "EPERM", "seccomp" }, { EACCES, "EACCES", "perf_event_paranoid" },
			 { ENOSYS, "ENOSYS", "seccomp" } };

	(void)state;
	for (size_t i = 0; i < MEW_COUNTOF(refusals); i++) {
		struct outcome o = run_refused(MEW_CLOCK_CPU, REFUSE_PERF, refusals[i].error);

		assert_int_equal(o.status, MEW_OK);
		assert_string_equal(o.engine, "timer");
		assert_non_null(strstr(o.reason, "perf_event_open"));
		assert_non_null(strstr(o.reason, refusals[i].name));
		assert_non_null(strstr(o.reason, refusals[i].remedy));
		assert_true(o.samples > 100);
	}
}

/* Asked for the engine without signals: the next ones follow, and the reasons of both stand in the row. */
static void t_refused_ring(void **state)
{
	struct outcome o;

	(void)state;
	assert_int_equal(setenv("MEW_SAMPLER", "ring", 1), 0);
	o = run_refused(MEW_CLOCK_CPU, REFUSE_PERF, EACCES);
	assert_int_equal(unsetenv("MEW_SAMPLER"), 0);
	assert_int_equal(o.status, MEW_OK);
	assert_string_equal(o.engine, "timer");
	assert_non_null(strstr(o.reason, "perf_event_open with a ring: EACCES"));
	assert_non_null(strstr(o.reason, "PERF_COUNT_SW_TASK_CLOCK"));
	assert_true(o.samples > 100);
}

static void t_refused_twice(void **state)
{
	struct outcome o = run_refused(MEW_CLOCK_CPU, REFUSE_PERF | REFUSE_WALL_TIMERS, EPERM);

	(void)state;
	assert_int_equal(o.status, MEW_OK);
	assert_string_equal(o.engine, "cpu-timer");
	assert_non_null(strstr(o.reason, "perf_event_open"));
	assert_non_null(strstr(o.reason, "timer_create(CLOCK_MONOTONIC): EPERM"));
	assert_true(o.samples > 5);
}

static void t_refused_wall(void **state)
{
	struct outcome o = run_refused(MEW_CLOCK_WALL, REFUSE_WALL_TIMERS, EPERM);

	(void)state;
	assert_int_equal(o.status, MEW_E_DENIED);
	assert_non_null(strstr(o.text, "timer_create(CLOCK_MONOTONIC): EPERM"));
	assert_non_null(strstr(o.text, "seccomp"));
}

/* Without rights the kernel's part cannot be sampled by perf: the next engine does it, and the sum is whole. */
static void t_nobody(void **state)
{
	struct outcome o;

	(void)state;
	if (geteuid() != 0) {
		printf("# only root can become nobody\n");
		skip();
	}
	o = run_refused(MEW_CLOCK_CPU, DROP_UID, 0);
	assert_int_equal(o.status, MEW_OK);
	if (strcmp(o.engine, "perf") == 0) {
		printf("# kernel.perf_event_paranoid lets nobody sample the kernel here\n");
		skip();
	}
	assert_string_equal(o.engine, "timer");
	assert_non_null(strstr(o.reason, "EACCES"));
	assert_non_null(strstr(o.reason, "perf_event_paranoid"));
}

/* The queue of pending signals is full: the kernel sends SIGIO, which must neither end the process nor the sampling. */
static void t_full_queue(void **state)
{
	struct outcome o;

	(void)state;
	if (!rig_has(MEW_CPU_ENGINE_PERF))
		skip();
	o = run_refused(MEW_CLOCK_CPU, NO_QUEUE, 0);
	assert_int_equal(o.status, MEW_OK);
	assert_string_equal(o.engine, "perf");
	assert_true(o.samples > 100);
}

static void t_best_engine_has_no_reason(void **state)
{
	struct rig r = { .body = rig_short_body };

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_string_equal(r.row->cpu.clock, "wall");
	assert_non_null(rig_why(&r, MEW_FIG_ENGINE_REASON));
	rig_fini(&r);
	r = (struct rig){ .body = rig_short_body, .engine = MEW_CPU_ENGINE_PERF }; /* none of the wall's */
	rig_run(&r);
	assert_int_equal(r.status, MEW_E_INVALID);
	rig_fini(&r);
}

/* --- a perf event through pauses, fork and blocked signals ------------------------------------------------------- */

FX_IN(fx_body) static void hostile_body(struct rig *r, unsigned thread, void *arg)
{
	sigset_t all, former;

	(void)arg;
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (child == 0) {
			(void)fx_one(fx_us(1000));
			_exit(0);
		}
		(void)waitpid(child, NULL, 0);
		(void)fx_one(fx_us(5000));
		rig_pause(r, thread);
		(void)fx_hog(fx_us(10000)); /* long enough to switch the ticks off */
		rig_resume(r, thread);
		(void)fx_two(fx_us(5000));
		(void)sigfillset(&all);
		(void)sigprocmask(SIG_BLOCK, &all, &former);
		(void)fx_one(fx_us(5000));
		(void)sigprocmask(SIG_SETMASK, &former, NULL);
	}
}

static bool survives(int engine)
{
	struct rig r = { .body = hostile_body, .clock = MEW_CLOCK_CPU, .engine = engine, .pause_cpu = 1 };
	bool ok;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_hog)), 0);
	assert_true(rig_hits(&r, FX_RANGE(fx_two)) > 200);
	ok = fabs(r.row->cpu.sample_weight - r.row->cpu.cpu_time) <= 0.02 * r.row->cpu.cpu_time + 0.0002 * 20;
	printf("# %s: weight %.4f s, CPU time %.4f s, %llu samples\n", r.row->cpu.engine, r.row->cpu.sample_weight,
	       r.row->cpu.cpu_time, (unsigned long long)r.row->cpu.sample_count);
	rig_fini(&r);
	return ok;
}

static void t_hostile(void **state)
{
	static const int engines[] = { MEW_CPU_ENGINE_PERF, MEW_CPU_ENGINE_TIMER };

	(void)state;
	for (size_t k = 0; k < MEW_COUNTOF(engines); k++) {
		bool ok = false;

		for (int i = 0; i < RIG_TRIES && !ok && rig_has(engines[k]); i++)
			ok = survives(engines[k]);
		assert_true(ok || !rig_has(engines[k]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_best_engine_has_no_reason),
		cmocka_unit_test(t_refused_perf),
		cmocka_unit_test(t_refused_ring),
		cmocka_unit_test(t_refused_twice),
		cmocka_unit_test(t_refused_wall),
		cmocka_unit_test(t_nobody),
		cmocka_unit_test(t_full_queue),
		cmocka_unit_test(t_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
