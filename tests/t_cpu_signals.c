/*
 * t_cpu_signals.c - is the CPU backend a good guest: nothing after the window, foreign signals, fork, slow ticks.
 * Test program. Linked with --wrap=mew_unwind_walk and --wrap=mew_cpu_engine_arm, so that a test can make a tick slow,
 * and the setting of a timer.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu_cost.h"
#include "cpu_timer.h"
#include "fx_cpu_rig.h"
#include "os.h"
#include "stackset.h"
#include "unwind.h"

#define TRIES 5

/* --- a walk as slow as a test wants it --------------------------------------------------------------------------- */

size_t __real_mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			      uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop);
size_t __wrap_mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			      uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop);

static volatile uint64_t walk_ticks;

size_t __wrap_mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			      uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop)
{
	uint64_t from = fx_tsc();

	while (fx_tsc() - from < walk_ticks)
		;
	return __real_mew_unwind_walk(t, regs, entry_lo, entry_hi, pcs, max, stop);
}

FX_IN(fx_body) static void spin_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)fx_one(fx_us(*(const uint64_t *)arg));
	__asm__ volatile("" : : : "memory");
}

/* --- a timer that is set as slowly as a test wants it ------------------------------------------------------------ */

int __real_mew_cpu_engine_arm(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now, uint64_t delay_ns);
int __wrap_mew_cpu_engine_arm(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now, uint64_t delay_ns);

static volatile uint64_t arm_ticks; /* of the next one in a window, alone: a trial of an engine is in none */

FX_BOUNDS(fx_arming);

FX_IN(fx_arming) int __wrap_mew_cpu_engine_arm(struct mew_cpu_thread *t, uint64_t now, uint64_t wall_now,
					       uint64_t delay_ns)
{
	uint64_t from = fx_tsc(), ticks = atomic_load(&t->armed) != 0 ? arm_ticks : 0;
	int status;

	if (ticks != 0)
		arm_ticks = 0;
	status = __real_mew_cpu_engine_arm(t, now, wall_now, delay_ns);
	while (fx_tsc() - from < ticks)
		;
	return status;
}

static void arm_slowly(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	(void)fx_one(fx_us(2000));
}

/* What sampling itself takes before the loop is no part of it, whatever interrupts it there. */
static void t_arming_is_not_sampled(void **state)
{
	struct rig r = { .body = arm_slowly };
	size_t seen = 0;
	const char *why;

	(void)state;
	(void)mew_cpu_cost_ns(&why); /* its window comes before that of the case, once */
	arm_ticks = fx_us(5000);
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_true(arm_ticks == 0);
	assert_true(r.row->cpu.sample_count > 0);
	for (size_t i = 0; i < r.row->nsamples; i++)
		seen += rig_passes(&r, &r.row->samples[i], FX_RANGE(fx_arming));
	rig_fini(&r);
	assert_int_equal(seen, 0);
}

/* A runner that says that its thread waits, also while the window opens, says when it goes on. */
static void t_opening_ends_no_wait(void **state)
{
	struct mew_capture_config config = { .pass = MEW_PASS_CPU, .threads = 1, .interval_ns = 100000 };
	const struct mew_cpu_thread *t;
	struct mew_capture *c;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_cpu.open(&c, &config, &err), MEW_OK);
	assert_int_equal(mew_backend_cpu.thread_begin(c, 0, &err), MEW_OK);
	t = mew_cpu_slot_of(mew_os_tid());
	assert_non_null(t);
	mew_backend_cpu.wait(c, 0, true);
	assert_int_equal(mew_backend_cpu.begin(c, &err), MEW_OK);
	assert_int_equal(atomic_load(&t->away), 1);
	mew_backend_cpu.wait(c, 0, false);
	assert_int_equal(atomic_load(&t->away), 0);
	mew_backend_cpu.end(c);
	mew_backend_cpu.thread_end(c, 0);
	mew_backend_cpu.close(c);
}

/* A tick that takes longer than the period would stop the program: the period grows instead, and the row says so. */
static bool try_slow_ticks(void)
{
	uint64_t us = 200000;
	struct rig r = { .body = spin_body, .arg = &us };
	double cpu_time;

	walk_ticks = fx_us(150);
	assert_true(rig_run_until_it_adds_up(&r));
	walk_ticks = 0;
	assert_true(r.row->cpu.effective_interval >= 5 * r.row->cpu.interval);
	assert_non_null(r.row->cpu.reason);
	assert_non_null(strstr(r.row->cpu.reason, "a fifth of the interval"));
	cpu_time = r.row->cpu.cpu_time;
	rig_fini(&r);
	printf("# 0.2 s of work took %.3f s with ticks of 0.15 ms every 0.1 ms\n", cpu_time);
	return cpu_time <= 2 * 0.2;
}

static void t_slow_ticks_back_off(void **state)
{
	bool fast = false;

	(void)state;
	for (int i = 0; i < TRIES && !fast; i++)
		fast = try_slow_ticks();
	assert_true(fast);
}

/* --- after the window -------------------------------------------------------------------------------------------- */

static uint64_t closed_ns;
static int timers_after_end;

static void after_end(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	(void)arg;
	closed_ns = rig_now_ns();
	(void)fx_after(fx_us(20000));
	timers_after_end = rig_timers();
}

static void t_nothing_after_the_window(void **state)
{
	uint64_t us = 20000;
	struct rig r = { .body = spin_body, .after = after_end, .arg = &us };

	(void)state;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_true(rig_hits(&r, FX_RANGE(fx_one)) > 0);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_after)), 0);
	rig_fini(&r);
}

static void t_no_timer_left(void **state)
{
	uint64_t us = 1000;
	struct rig r = { .body = spin_body, .after = after_end, .arg = &us, .threads = 3 };

	(void)state;
	if (rig_timers() < 0) {
		printf("# this kernel has no /proc/self/timers (CONFIG_CHECKPOINT_RESTORE)\n");
		skip();
	}
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_true(timers_after_end >= 1); /* they were there */
	assert_int_equal(rig_timers(), 0);
	rig_fini(&r);
}

/* A thread that blocks every signal is sampled all the same, and has them blocked again afterwards. */
static void t_blocked_signals(void **state)
{
	uint64_t us = 50000;
	struct rig r = { .body = spin_body, .arg = &us };
	sigset_t all, former, now;

	(void)state;
	assert_int_equal(sigfillset(&all), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &former), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &all), 0);
	rig_run(&r);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &former, &now), 0);
	assert_int_equal(r.status, MEW_OK);
	assert_true(r.row->nsamples > 50);
	for (int i = 1; i <= SIGRTMAX; i++)
		assert_int_equal(sigismember(&now, i), sigismember(&all, i));
	rig_fini(&r);
}

/* --- signals of others ------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t foreign, foreign_value;

static void on_foreign(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	foreign++;
	foreign_value = info->si_value.sival_int;
}

FX_IN(fx_body) static void queueing_body(struct rig *r, unsigned thread, void *arg)
{
	(void)r;
	(void)thread;
	for (int i = 0; i < 20; i++) {
		union sigval value = { .sival_int = 1000 + i };

		(void)fx_one(fx_us(2000));
		if (sigqueue(getpid(), *(const int *)arg, value) != 0)
			return;
	}
}

static struct sigaction saved[65];

static void take_all_signals(void)
{
	struct sigaction action = { .sa_sigaction = on_foreign, .sa_flags = SA_SIGINFO | SA_RESTART };

	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		assert_int_equal(sigaction(i, &action, &saved[i]), 0);
}

static int find_taken(void)
{
	struct sigaction now;

	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		if (sigaction(i, NULL, &now) == 0 && now.sa_sigaction != on_foreign)
			return i;
	return 0;
}

/* The program handles every real-time signal: mew takes one over and passes on what is not its own. */
static void t_foreign_signal_is_forwarded(void **state)
{
	int number = 0;
	struct rig r = { .body = queueing_body, .arg = &number };
	struct mew_error err;

	(void)state;
	take_all_signals();
	assert_int_equal(mew_backend_cpu.probe(&err), MEW_OK);
	number = find_taken();
	assert_true(number != 0);
	foreign = 0;
	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(foreign, 20);
	assert_int_equal(foreign_value, 1019);
	assert_true(r.row->nsamples > 100);
	rig_fini(&r);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
		if (i != number)
			assert_int_equal(sigaction(i, &saved[i], NULL), 0);
}

static int first_handled(void)
{
	struct sigaction now;

	for (int i = SIGRTMAX; i >= SIGRTMIN; i--)
		if (sigaction(i, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0)
			return i;
	return 0;
}

/* Nobody handled it before mew: it is dropped, and does not end the process as the default action would. */
static void t_foreign_signal_is_dropped(void **state)
{
	int number;
	struct rig r = { .body = queueing_body, .arg = &number };
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_cpu.probe(&err), MEW_OK);
	number = first_handled();
	assert_true(number != 0);
	assert_true(rig_run_until_it_adds_up(&r));
	rig_fini(&r);
}

/* --- fork -------------------------------------------------------------------------------------------------------- */

struct forks {
	int done, clean;
};

/* A child has no timer and gets no signal in 3 ms of work, although it pauses and resumes like its parent. */
static int run_child(struct rig *r, unsigned thread)
{
	for (int i = 0; i < 30; i++) {
		rig_pause(r, thread);
		rig_resume(r, thread);
		(void)fx_one(fx_us(100));
	}
	return rig_timers() <= 0 ? 0 : 1;
}

/* Runs inside each fork, between mew's own steps: main() registers it first, so it is called last. */
static void fork_slowly(void)
{
	(void)fx_after(fx_us(500));
}

/* The ballast makes a fork last many periods; it is not interrupted, and its time is charged when it is over. */
FX_IN(fx_body) static void fork_body(struct rig *r, unsigned thread, void *arg)
{
	struct forks *f = arg;
	int status;

	*f = (struct forks){ 0, 0 };
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(run_child(r, thread));
		f->done += child > 0;
		if (child > 0 && waitpid(child, &status, 0) == child)
			f->clean += WIFEXITED(status) && WEXITSTATUS(status) == 0;
		(void)fx_one(fx_us(1000));
	}
}

static void t_fork(void **state)
{
	const size_t ballast = (size_t)128 << 20;
	struct forks f = { 0, 0 };
	struct rig r = { .body = fork_body, .arg = &f, .interval_ns = 20000 };
	void *memory = mmap(NULL, ballast, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(memory != MAP_FAILED);
	memset(memory, 1, ballast);
	(void)alarm(120); /* a fork that never ends is a failure, not a hang */
	assert_true(rig_run_until_it_adds_up(&r));
	(void)alarm(0);
	assert_int_equal(munmap(memory, ballast), 0);
	assert_int_equal(f.done, 10);
	assert_int_equal(f.clean, 10);
	assert_int_equal(rig_hits(&r, FX_RANGE(fx_after)), 0);
	rig_fini(&r);
}

/* --- pauses ------------------------------------------------------------------------------------------------------ */

/* Counts in *arg how often a sleep of 0.4 s inside a pause is interrupted at 10,000 samples a second. */
FX_IN(fx_body) static void long_pause_body(struct rig *r, unsigned thread, void *arg)
{
	struct timespec left = { 0, 400000000 };

	*(int *)arg = 0;
	(void)fx_one(fx_us(20000));
	rig_pause(r, thread);
	while (nanosleep(&left, &left) != 0)
		++*(int *)arg;
	rig_resume(r, thread);
	(void)fx_two(fx_us(20000));
}

static void t_long_pause_is_left_alone(void **state)
{
	int interrupted = 0;
	struct rig r = { .body = long_pause_body, .arg = &interrupted };

	(void)state;
	assert_true(rig_run_until_it_adds_up(&r));
	assert_true(interrupted <= 60); /* 4,000 are due */
	assert_true(rig_hits(&r, FX_RANGE(fx_two)) > 20);
	rig_fini(&r);
}

/* Leaves in arg[0] the time of a pause and resume, in arg[1] that of one clock read; the fewest of 20 rounds each. */
FX_IN(fx_body) static void pause_cost_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t *least = arg;

	least[0] = least[1] = UINT64_MAX;
	for (int round = 0; round < 20; round++) {
		uint64_t from = fx_tsc(), pairs, clocks;

		for (int i = 0; i < 1000; i++) {
			mew_backend_cpu.pause(r->capture, thread);
			mew_backend_cpu.resume(r->capture, thread);
		}
		pairs = fx_tsc() - from;
		from = fx_tsc();
		for (int i = 0; i < 1000; i++)
			(void)mew_os_now_ns();
		clocks = fx_tsc() - from;
		least[0] = pairs < least[0] ? pairs : least[0];
		least[1] = clocks < least[1] ? clocks : least[1];
	}
}

static void t_pause_is_cheap(void **state)
{
	uint64_t least[2] = { 1, 0 };

	(void)state;
	for (int i = 0; i < TRIES && least[0] > least[1] / 2; i++) {
		struct rig r = { .body = pause_cost_body, .arg = least, .interval_ns = 10000000 };

		rig_run(&r);
		assert_int_equal(r.status, MEW_OK);
		rig_fini(&r);
	}
	printf("# a pause and resume cost %.2f of a clock read\n", (double)least[0] / (double)least[1]);
	assert_true(least[0] <= least[1] / 2);
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

/* A run of any length must fit: when half of the records are used, the rest is spent at half the rate. */
static void t_long_run_thins_out(void **state)
{
	struct mew_cpu_window window = { .period_ns = 1000000000, .stacks = mew_stackset_new(16, 4096) };
	struct mew_cpu_thread *t;
	struct mew_error err;
	ucontext_t context;

	(void)state;
	assert_int_equal(mew_cpu_signal_take(&err), MEW_OK);
	assert_int_equal(mew_cpu_thread_new(&t, &window, &err), MEW_OK);
	assert_int_equal(mew_cpu_thread_arm(t, mew_os_now_ns()), 0);
	assert_int_equal(getcontext(&context), 0);
	mew_cpu_thread_tick(t, &context);
	assert_int_equal(t->period_ns, 1000000000);
	t->ring.tail = t->ring.head - t->ring.capacity / 2;
	mew_cpu_thread_tick(t, &context);
	assert_int_equal(t->period_ns, 2000000000);
	assert_int_equal(mew_ring_dropped(&t->ring), 0);
	mew_cpu_thread_disarm(t);
	mew_cpu_thread_detach(t);
	mew_cpu_thread_free(t);
	mew_stackset_free(window.stacks);
}

/* --- the contract ------------------------------------------------------------------------------------------------ */

static void t_refuses_nonsense(void **state)
{
	struct mew_capture_config config = { .pass = MEW_PASS_CPU, .threads = 1 };
	struct mew_capture *c = NULL;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_cpu.open(&c, &config, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "interval"));
	config.interval_ns = 100000;
	config.threads = 0;
	assert_int_equal(mew_backend_cpu.open(&c, &config, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "thread"));
	config.threads = 1;
	assert_int_equal(mew_backend_cpu.open(&c, &config, &err), MEW_OK);
	assert_int_equal(mew_backend_cpu.thread_begin(c, 1, &err), MEW_E_INVALID);
	mew_backend_cpu.close(c);
}

/* Closing without end and thread_end, as after a failure, leaves nothing behind either. */
static void t_close_alone(void **state)
{
	struct mew_capture_config config = { .pass = MEW_PASS_CPU, .threads = 1, .interval_ns = 100000 };
	struct mew_capture *c;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_cpu.open(&c, &config, &err), MEW_OK);
	assert_int_equal(mew_backend_cpu.thread_begin(c, 0, &err), MEW_OK);
	assert_int_equal(mew_backend_cpu.begin(c, &err), MEW_OK);
	(void)fx_one(fx_us(2000));
	mew_backend_cpu.close(c);
	(void)fx_one(fx_us(2000));
	assert_true(rig_timers() <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_foreign_signal_is_dropped),
		cmocka_unit_test(t_foreign_signal_is_forwarded),
		cmocka_unit_test(t_nothing_after_the_window),
		cmocka_unit_test(t_no_timer_left),
		cmocka_unit_test(t_blocked_signals),
		cmocka_unit_test(t_slow_ticks_back_off),
		cmocka_unit_test(t_arming_is_not_sampled),
		cmocka_unit_test(t_opening_ends_no_wait),
		cmocka_unit_test(t_fork),
		cmocka_unit_test(t_long_pause_is_left_alone),
		cmocka_unit_test(t_pause_is_cheap),
		cmocka_unit_test(t_long_run_thins_out),
		cmocka_unit_test(t_refuses_nonsense),
		cmocka_unit_test(t_close_alone),
	};

	(void)fx_us(1); /* measured before any window */
	if (pthread_atfork(fork_slowly, NULL, NULL) != 0)
		return 1;
	return cmocka_run_group_tests_name("cpu_signals", tests, NULL, NULL);
}
