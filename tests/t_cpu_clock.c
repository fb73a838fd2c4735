/*
 * t_cpu_clock.c - the clocks of the CPU backend and what makes its ticks: CPU time by each engine, sleep under either
 * clock, refusals and their reasons, counters.
 * Test program. What is timed gets five tries on a noisy machine; the tolerances stay.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
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
#include <time.h>
#include <unistd.h>

#include "cpu_counters.h"
#include "cpu_ladder.h"
#include "fx_cpu_rig.h"
#include "sink.h"

#define TRIES 5

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool has(int engine)
{
	char reason[MEW_CPU_REASON_BYTES];
	struct mew_error err;
	int found;

	assert_int_equal(mew_backend_cpu.probe(&err), MEW_OK);
	return mew_cpu_ladder(MEW_CLOCK_CPU, engine, &found, reason, &err) == MEW_OK;
}

/* --- CPU time by each engine ------------------------------------------------------------------------------------- */

enum loop { LOOP_USER, LOOP_GETPPID, LOOP_READ, LOOPS };
static const char *const loops[] = { "user", "getppid", "read" };

struct spent {
	enum loop loop;
	uint64_t cpu_ns;
};

/* 1 s of CPU time, by the clock that the samples are measured against. */
FX_IN(fx_body) static void spend_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t from = thread_cpu_ns(), passed;
	static char bytes[65536];
	struct spent *s = arg;
	FILE *zeros = fopen("/dev/zero", "re");

	(void)r;
	(void)thread;
	do {
		if (s->loop == LOOP_USER)
			(void)fx_one(fx_us(500));
		for (int i = 0; s->loop == LOOP_GETPPID && i < 200; i++)
			(void)syscall(SYS_getppid);
		for (int i = 0; s->loop == LOOP_READ && zeros != NULL && i < 20; i++)
			if (read(fileno(zeros), bytes, sizeof bytes) < 0)
				break;
		passed = thread_cpu_ns() - from;
	} while (passed < 1000000000);
	s->cpu_ns = passed;
	if (zeros != NULL)
		(void)fclose(zeros);
}

static bool cpu_adds_up(int engine, enum loop loop)
{
	struct spent s = { .loop = loop };
	struct rig r = { .body = spend_body, .arg = &s, .clock = MEW_CLOCK_CPU, .engine = engine };
	const struct mew_cpu_case *cpu;
	bool ok;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	cpu = &r.row->cpu;
	ok = fabs(cpu->sample_weight - (double)s.cpu_ns * 1e-9) <= 0.01 * (double)s.cpu_ns * 1e-9 &&
	     fabs(cpu->effective_interval * (double)cpu->sample_count - cpu->cpu_time) <= 0.01 * cpu->cpu_time;
	printf("# %s, %s loop: %.4f s of weight for %.4f s of CPU time, %llu samples, interval %.6f s\n", cpu->engine,
	       loops[loop], cpu->sample_weight, (double)s.cpu_ns * 1e-9, (unsigned long long)cpu->sample_count,
	       cpu->effective_interval);
	assert_string_equal(cpu->clock, "cpu");
	assert_string_equal(cpu->engine, mew_cpu_engine_name(engine));
	assert_true(cpu->effective_interval >= 0.98 * cpu->interval); /* never more often than asked */
	assert_non_null(rig_why(&r, MEW_FIG_BLOCKED_WEIGHT));
	rig_fini(&r);
	return ok;
}

static void check_engine(int engine)
{
	if (!has(engine)) {
		printf("# there is no such engine here\n");
		skip();
	}
	for (int loop = 0; loop < LOOPS; loop++) {
		bool ok = false;

		for (int i = 0; i < TRIES && !ok; i++)
			ok = cpu_adds_up(engine, (enum loop)loop);
		if (!ok)
			fail_msg("%s loop: five tries, each outside of its tolerance (above)", loops[loop]);
	}
}

static void t_perf_adds_up(void **state)
{
	(void)state;
	check_engine(MEW_CPU_ENGINE_PERF);
}

static void t_timer_adds_up(void **state)
{
	(void)state;
	check_engine(MEW_CPU_ENGINE_TIMER);
}

static void t_cpu_timer_adds_up(void **state)
{
	(void)state;
	check_engine(MEW_CPU_ENGINE_CPU_TIMER);
}

/* The figure is what came, not what was asked for: this engine goes by the kernel's tick, and says so. */
static void t_coarse_engine_is_honest(void **state)
{
	struct spent s = { .loop = LOOP_USER };
	struct rig r = { .body = spend_body, .arg = &s, .clock = MEW_CLOCK_CPU, .engine = MEW_CPU_ENGINE_CPU_TIMER };

	(void)state;
	if (!has(MEW_CPU_ENGINE_CPU_TIMER))
		skip();
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_non_null(strstr(r.row->cpu.engine_reason, "kernel's tick"));
	assert_true((double)r.row->cpu.sample_count * r.row->cpu.effective_interval < 1.02 * r.row->cpu.sample_weight);
	assert_true(r.row->cpu.interval == 0.0001);
	rig_fini(&r);
}

/* --- shares under the CPU clock: two equal halves in step with the period ---------------------------------------- */

FX_IN(fx_body) static void halves_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t until = thread_cpu_ns() + 1000000000, *ticks = arg;

	(void)r;
	(void)thread;
	while (thread_cpu_ns() < until) {
		for (int i = 0; i < 20; i++) {
			ticks[0] += fx_one(fx_us(200));
			ticks[1] += fx_two(fx_us(200));
		}
	}
}

static bool halves_are_equal(int engine)
{
	uint64_t ticks[2] = { 0, 0 };
	struct rig r = { .body = halves_body, .arg = ticks, .clock = MEW_CLOCK_CPU, .engine = engine,
			 .interval_ns = 400000 };
	double got;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	got = rig_self(&r, FX_RANGE(fx_one)) / (rig_self(&r, FX_RANGE(fx_one)) + rig_self(&r, FX_RANGE(fx_two)));
	printf("# first of two equal halves: %.3f of the weight\n", got);
	rig_fini(&r);
	return fabs(got - 0.5) <= 0.03;
}

static void check_halves(int engine)
{
	bool ok = false;

	if (!has(engine))
		skip();
	for (int i = 0; i < TRIES && !ok; i++)
		ok = halves_are_equal(engine);
	assert_true(ok);
}

static void t_perf_is_not_in_step(void **state)
{
	(void)state;
	check_halves(MEW_CPU_ENGINE_PERF);
}

static void t_timer_is_not_in_step(void **state)
{
	(void)state;
	check_halves(MEW_CPU_ENGINE_TIMER);
}

/* --- sleep ------------------------------------------------------------------------------------------------------- */

FX_BOUNDS(fx_nap);
/* Sleeps on until all of it has passed, as a program under signals must. Returns what it took. */
FX_IN(fx_nap) static uint64_t nap(uint64_t ns)
{
	struct timespec left = { 0, (long)ns };
	uint64_t from = rig_now_ns();

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	__asm__ volatile("" : : : "memory");
	return rig_now_ns() - from;
}

struct mix {
	uint64_t asleep_ns, awake_ns; /* by the wall */
};

/* Ten times 30 ms of sleep and 70 ms of work. */
FX_IN(fx_body) static void mix_body(struct rig *r, unsigned thread, void *arg)
{
	struct mix *m = arg;

	(void)r;
	(void)thread;
	*m = (struct mix){ 0, 0 };
	for (int i = 0; i < 10; i++) {
		uint64_t from;

		m->asleep_ns += nap(30000000);
		from = rig_now_ns();
		(void)fx_one(fx_us(70000));
		m->awake_ns += rig_now_ns() - from;
	}
}

/* Percentage points between the share of sleep in the weight and in the time. */
static bool wall_sees_the_sleep(void)
{
	struct mix m;
	struct rig r = { .body = mix_body, .arg = &m };
	double all, slept, got, blocked, off;
	bool ok;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	all = (double)(m.asleep_ns + m.awake_ns) * 1e-9;
	slept = (double)m.asleep_ns * 1e-9;
	got = rig_total(&r, FX_RANGE(fx_nap));
	blocked = r.row->cpu.blocked_weight;
	off = r.row->cpu.off_cpu_time;
	printf("# asleep %.3f of %.3f s: weight there %.3f, blocked %.3f, off the processor %.3f\n", slept, all, got,
	       blocked, off);
	ok = fabs(got - slept) <= 0.03 * all && fabs(blocked - off) <= 0.03 * all &&
	     fabs(r.row->cpu.sample_weight - all) <= 0.01 * all && off >= 0.97 * slept;
	assert_string_equal(r.row->cpu.clock, "wall");
	assert_string_equal(r.row->cpu.engine, "timer");
	rig_fini(&r);
	return ok;
}

static void t_wall_sees_sleep(void **state)
{
	bool ok = false;

	(void)state;
	for (int i = 0; i < TRIES && !ok; i++)
		ok = wall_sees_the_sleep();
	assert_true(ok);
}

static bool running_samples_are_not_blocked(void)
{
	struct mix m;
	struct rig r = { .body = mix_body, .arg = &m };
	double wrong = 0, of = 0;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	for (size_t i = 0; i < r.row->nsamples; i++) {
		const struct mew_cpu_sample *s = &r.row->samples[i];

		if (!rig_passes(&r, s, FX_RANGE(fx_nap)))
			continue;
		of += (double)s->weight_ns;
		wrong += s->blocked ? 0 : (double)s->weight_ns;
	}
	printf("# %.4f of the weight in sleep is marked as running\n", wrong / of);
	rig_fini(&r);
	return wrong <= 0.1 * of;
}

static void t_sleep_is_marked(void **state)
{
	bool ok = false;

	(void)state;
	for (int i = 0; i < TRIES && !ok; i++)
		ok = running_samples_are_not_blocked();
	assert_true(ok);
}

/* Returns the number of samples in ten naps. */
static size_t samples_asleep(int engine)
{
	struct mix m;
	struct rig r = { .body = mix_body, .arg = &m, .clock = MEW_CLOCK_CPU, .engine = engine };
	size_t n = 0;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	for (size_t i = 0; i < r.row->nsamples; i++)
		n += rig_passes(&r, &r.row->samples[i], FX_RANGE(fx_nap));
	printf("# %s: %zu samples in 10 naps, weight %.3f s, CPU time %.3f s\n", r.row->cpu.engine, n,
	       r.row->cpu.sample_weight, r.row->cpu.cpu_time);
	assert_true(fabs(r.row->cpu.sample_weight - r.row->cpu.cpu_time) <= 0.02 * r.row->cpu.cpu_time);
	rig_fini(&r);
	return n;
}

static void t_cpu_clock_skips_sleep(void **state)
{
	static const int engines[] = { MEW_CPU_ENGINE_PERF, MEW_CPU_ENGINE_TIMER };

	(void)state;
	for (size_t k = 0; k < MEW_COUNTOF(engines); k++) {
		size_t n = 11;

		if (!has(engines[k]))
			continue;
		for (int i = 0; i < TRIES && n > 10; i++)
			n = samples_asleep(engines[k]);
		assert_true(n <= 10); /* one for each nap at most */
	}
}

FX_IN(fx_body) static void nap_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	*(uint64_t *)arg = nap(50000000);
}

static void check_nap(enum mew_clock clock, int engine, uint64_t interval_ns)
{
	uint64_t took = UINT64_MAX;

	for (int i = 0; i < TRIES && took > 55000000; i++) {
		struct rig r = { .body = nap_body, .arg = &took, .clock = clock, .engine = engine,
				 .interval_ns = interval_ns };

		rig_run(&r);
		assert_int_equal(r.status, MEW_OK);
		rig_fini(&r);
	}
	printf("# a sleep of 50 ms took %.1f ms\n", (double)took * 1e-6);
	assert_true(took >= 50000000 && took <= 55000000);
}

static void t_sleep_is_not_stretched(void **state)
{
	(void)state;
	check_nap(MEW_CLOCK_WALL, MEW_CPU_ENGINE_BEST, 100000);
	check_nap(MEW_CLOCK_WALL, MEW_CPU_ENGINE_BEST, 20000);
	check_nap(MEW_CLOCK_CPU, MEW_CPU_ENGINE_TIMER, 100000);
}

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

FX_IN(fx_body) static void short_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	(void)fx_one(fx_us(100000));
	__asm__ volatile("" : : : "memory");
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
	short_body(r, thread, arg);
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
		struct rig r = { .body = (refused & NO_QUEUE) != 0 ? no_queue_body : short_body, .clock = clock };

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
	if (!has(MEW_CPU_ENGINE_PERF))
		skip();
	o = run_refused(MEW_CLOCK_CPU, NO_QUEUE, 0);
	assert_int_equal(o.status, MEW_OK);
	assert_string_equal(o.engine, "perf");
	assert_true(o.samples > 100);
}

static void t_best_engine_has_no_reason(void **state)
{
	struct rig r = { .body = short_body };

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_string_equal(r.row->cpu.clock, "wall");
	assert_non_null(rig_why(&r, MEW_FIG_ENGINE_REASON));
	rig_fini(&r);
	r = (struct rig){ .body = short_body, .engine = MEW_CPU_ENGINE_PERF }; /* none of the wall's */
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

		for (int i = 0; i < TRIES && !ok && has(engines[k]); i++)
			ok = survives(engines[k]);
		assert_true(ok || !has(engines[k]));
	}
}

/* --- counters ---------------------------------------------------------------------------------------------------- */

/* Software events count everywhere: page faults are known exactly; the second does not exist. */
static const struct mew_cpu_event countable[MEW_CPU_COUNTERS] = {
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, MEW_FIG_CYCLES },
	{ PERF_TYPE_HARDWARE, 9999, MEW_FIG_INSTRUCTIONS },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, MEW_FIG_CACHE_MISSES },
	{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, MEW_FIG_BRANCH_MISSES },
};

static void touch_pages(size_t n)
{
	char *memory = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	(void)madvise(memory, n * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < n; i++)
		((volatile char *)memory)[i * 4096] = 1;
	(void)munmap(memory, n * 4096);
}

static void t_counters(void **state)
{
	struct mew_cpu_counters c = { .events = NULL };
	const struct mew_cpu_counters *all[] = { &c };
	struct mew_model *m = mew_model_new();
	struct mew_case *row = mew_model_case(m, "case", NULL);
	struct mew_sink sink = { .model = m, .row = row, .kind = MEW_KIND_CPU };

	(void)state;
	(void)mew_model_row(m, row, MEW_KIND_CPU);
	mew_cpu_counters_open(&c, countable);
	if (c.fds[0] < 0) {
		printf("# perf_event_open does not work here: %s\n", strerror(c.failed[0]));
		mew_model_free(m);
		skip();
	}
	touch_pages(50); /* before the window */
	mew_cpu_counters_begin(&c);
	touch_pages(200);
	mew_cpu_counters_end(&c);
	touch_pages(50);
	mew_cpu_counters_put(all, 1, false, &sink);
	assert_true(row->cpu.cycles >= 200 && row->cpu.cycles < 240);
	assert_non_null(mew_row_why((const void *)&row->cpu, MEW_FIG_INSTRUCTIONS));
	assert_true(row->cpu.cache_misses > 0); /* ns of the task clock: the third event is not read as the second */
	assert_true(mew_row_has((const void *)&row->cpu, MEW_FIG_BRANCH_MISSES));
	mew_cpu_counters_put(all, 1, true, &sink);
	assert_non_null(strstr(mew_row_why((const void *)&row->cpu, MEW_FIG_CYCLES), "pauses"));
	mew_cpu_counters_close(&c);
	mew_model_free(m);
}

/* Each is there, or says why not. */
static void t_hardware_counters(void **state)
{
	struct rig r = { .body = short_body };
	const char *why;

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	why = rig_why(&r, MEW_FIG_INSTRUCTIONS);
	if (why == NULL)
		assert_true(r.row->cpu.instructions > 1e6);
	else
		printf("# no count of instructions: %s\n", why);
	for (int i = MEW_FIG_CYCLES; i <= MEW_FIG_BRANCH_MISSES; i++)
		assert_true((r.row->cpu.present >> i & 1) != 0 || rig_why(&r, (enum mew_cpu_figure)i)[0] != '\0');
	rig_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_best_engine_has_no_reason),
		cmocka_unit_test(t_perf_adds_up),
		cmocka_unit_test(t_timer_adds_up),
		cmocka_unit_test(t_cpu_timer_adds_up),
		cmocka_unit_test(t_coarse_engine_is_honest),
		cmocka_unit_test(t_perf_is_not_in_step),
		cmocka_unit_test(t_timer_is_not_in_step),
		cmocka_unit_test(t_wall_sees_sleep),
		cmocka_unit_test(t_sleep_is_marked),
		cmocka_unit_test(t_cpu_clock_skips_sleep),
		cmocka_unit_test(t_sleep_is_not_stretched),
		cmocka_unit_test(t_refused_perf),
		cmocka_unit_test(t_refused_twice),
		cmocka_unit_test(t_refused_wall),
		cmocka_unit_test(t_nobody),
		cmocka_unit_test(t_full_queue),
		cmocka_unit_test(t_hostile),
		cmocka_unit_test(t_counters),
		cmocka_unit_test(t_hardware_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
