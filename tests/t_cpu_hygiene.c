/*
 * t_cpu_hygiene.c - does a tick keep to what a signal handler may do: no system call but its own two, no heap, no lock;
 * and what when the program takes the signal away.
 * Test program. Linked with --wrap for the heap, the locks and mew_unwind_walk. A filter of the kernel ends the sampled
 * process at any other system call, so it runs in a child.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cpu_timer.h"
#include "fx_cpu_rig.h"
#include "os.h"
#include "stackset.h"
#include "unwind.h"

#define FEW 20u /* samples that must have come */

enum verdict { CLEAN, NO_FILTER, NO_SAMPLES, NOT_READY, TRAPPED }; /* exit codes of a child */

/* --- traps ------------------------------------------------------------------------------------------------------- */

static volatile bool in_loop, misbehaves;
static volatile unsigned trapped;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);
void __real_free(void *p);
void __wrap_free(void *p);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);

void *__wrap_malloc(size_t bytes)
{
	trapped += in_loop;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	trapped += in_loop;
	return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
	trapped += in_loop;
	return __real_realloc(p, bytes);
}

void __wrap_free(void *p)
{
	trapped += in_loop;
	__real_free(p);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	trapped += in_loop;
	return __real_pthread_mutex_lock(m);
}

size_t __real_mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			      uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop);
size_t __wrap_mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			      uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop);

/* A tick that misbehaves, to see that the filter would catch one. */
size_t __wrap_mew_unwind_walk(struct mew_unwind_thread *t, const struct mew_unwind_regs *regs, uintptr_t entry_lo,
			      uintptr_t entry_hi, uintptr_t *pcs, size_t max, enum mew_unwind_stop *stop)
{
	if (in_loop && misbehaves)
		(void)syscall(SYS_getppid);
	return __real_mew_unwind_walk(t, regs, entry_lo, entry_hi, pcs, max, stop);
}

/* From here on only these calls; exit_group is how the child ends. */
static int forbid_calls(void)
{
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW(number)                                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter code[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_timer_settime),
		ALLOW(SYS_exit_group),
		ALLOW(SYS_clock_gettime),
		ALLOW(SYS_getrusage), /* both of a tick that came late */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { .len = MEW_COUNTOF(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* --- children ---------------------------------------------------------------------------------------------------- */

/* Exit code of a child that runs this, or minus the signal that ended it. */
static int in_child(int run(void))
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(run());
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int read_clock(void)
{
	if (forbid_calls() != 0)
		return NO_FILTER;
	return mew_os_now_ns() != 0 ? CLEAN : NOT_READY;
}

/* A window with running, a short pause, one so long that the timer goes to sleep, and running again. */
static int be_sampled(void)
{
	struct mew_cpu_window window = { .period_ns = 100000, .stacks = mew_stackset_new(1024, 65536) };
	struct mew_cpu_thread *t;
	struct mew_error err;
	uint64_t half = fx_us(20000), few = fx_us(50), many = fx_us(30000);

	if (window.stacks == NULL || mew_cpu_signal_take(&err) != MEW_OK ||
	    mew_cpu_thread_new(&t, &window, &err) != MEW_OK)
		return NOT_READY;
	window.opened_ns = mew_os_now_ns();
	if (forbid_calls() != 0)
		return NO_FILTER;
	in_loop = true;
	if (mew_cpu_thread_arm(t, window.opened_ns) != 0)
		return NOT_READY;
	(void)fx_one(half);
	mew_cpu_thread_pause(t);
	(void)fx_hog(few);
	mew_cpu_thread_resume(t);
	mew_cpu_thread_pause(t);
	(void)fx_hog(many);
	mew_cpu_thread_resume(t);
	(void)fx_two(half);
	mew_cpu_thread_disarm(t);
	in_loop = false;
	if (trapped != 0)
		return TRAPPED;
	return t->ring.head >= FEW ? CLEAN : NO_SAMPLES;
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void need_filter(void)
{
	if (in_child(read_clock) != NO_FILTER)
		return;
	printf("# this system has no seccomp filters, or does not allow one\n");
	skip();
}

/*
 * Two calls, and two more by which a tick that came late, or into a system call, tells running from sleep: the thread's
 * CPU clock (also the clock itself where it has no fast path in user space) and its context switches.
 */
static void t_calls_in_the_handler(void **state)
{
	(void)state;
	need_filter();
	misbehaves = false;
	assert_int_equal(in_child(be_sampled), CLEAN);
}

static void t_filter_would_catch_one(void **state)
{
	(void)state;
	need_filter();
	misbehaves = true;
	assert_int_equal(in_child(be_sampled), -SIGSYS);
	misbehaves = false;
}

/* --- the signal itself ------------------------------------------------------------------------------------------- */

static struct sigaction saved;

static void on_foreign(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
}

/* In the middle of the window the program takes the signal for itself; *arg says which. */
FX_IN(fx_body) static void stealing_body(struct rig *r, unsigned thread, void *arg)
{
	struct sigaction action = { .sa_sigaction = on_foreign, .sa_flags = SA_SIGINFO };

	(void)r;
	(void)thread;
	(void)fx_one(fx_us(20000));
	(void)sigaction(*(const int *)arg, &action, &saved);
	(void)fx_one(fx_us(20000));
}

FX_IN(fx_body) static void lending_body(struct rig *r, unsigned thread, void *arg)
{
	stealing_body(r, thread, arg);
	(void)sigaction(*(const int *)arg, &saved, NULL);
}

static void t_stolen_signal_fails_the_row(void **state)
{
	int number;
	struct rig r = { .body = stealing_body, .arg = &number };
	struct mew_error err;
	char name[16];

	(void)state;
	assert_int_equal(mew_backend_cpu.probe(&err), MEW_OK);
	number = mew_cpu_signal_number();
	rig_run(&r);
	assert_int_equal(r.status, MEW_E_LOST);
	(void)snprintf(name, sizeof name, "signal %d", number);
	assert_non_null(strstr(r.error.text, name));
	assert_int_equal(sigaction(number, &saved, NULL), 0);
	rig_fini(&r);
}

/* Given back before the end: the handler is mew's again, but the weights do not add up, and the row says so. */
static bool lent_signal_is_noted(void)
{
	int number = mew_cpu_signal_number();
	struct rig r = { .body = lending_body, .arg = &number };
	bool is_noted;

	rig_run(&r);
	assert_int_equal(r.status, MEW_OK);
	is_noted = r.row->cpu.reason != NULL && strstr(r.row->cpu.reason, "% of the loop") != NULL;
	rig_fini(&r);
	return is_noted;
}

static void t_lent_signal_is_noted(void **state)
{
	(void)state;
	RIG_ASSERT_IN_TRIES(lent_signal_is_noted()); /* where the first half waits for long, it is most of the loop */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_calls_in_the_handler),
		cmocka_unit_test(t_filter_would_catch_one),
		cmocka_unit_test(t_stolen_signal_fails_the_row),
		cmocka_unit_test(t_lent_signal_is_noted),
	};

	(void)fx_us(1); /* measured before any filter */
	return cmocka_run_group_tests_name("cpu_hygiene", tests, NULL, NULL);
}
