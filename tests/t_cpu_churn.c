/*
 * t_cpu_churn.c - a sampled program that does all that is known to hang, crash or leak under a sampler, at once.
 * Test program. MEW_TEST_SECONDS is how long it runs; 3 unless set. A deadlock ends in SIGALRM.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "fx_cpu_rig.h"

#define THREADS 2
#define INTERVAL_NS 50000
#define STACK_BYTES ((size_t)65536)

extern char **environ;
int fx_throw(int depth);

struct churn { /* one thread's own */
	char *signal_stack, *fiber_stack;
	jmp_buf back;
	ucontext_t here, fiber;
};

static struct churn churns[THREADS];
static _Atomic unsigned unclean; /* children, exceptions, threads that did not come out as they should */

static void expect(bool ok)
{
	if (!ok)
		atomic_fetch_add(&unclean, 1);
}

static void reap(pid_t child)
{
	int status = 0;

	expect(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* --- what it does ------------------------------------------------------------------------------------------------ */

static void do_fork(struct churn *c)
{
	pid_t child = fork();

	(void)c;
	if (child == 0) {
		(void)fx_two(fx_us(200)); /* four intervals: a signal that came would be its end */
		_exit(rig_timers() <= 0 ? 0 : 1);
	}
	reap(child);
}

static void do_vfork(struct churn *c)
{
	pid_t child = vfork();

	(void)c;
	if (child == 0) {
		(void)execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	reap(child);
}

static void do_spawn(struct churn *c)
{
	char name[] = "true";
	char *arguments[] = { name, NULL };
	pid_t child = -1;

	(void)c;
	expect(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
	reap(child);
}

static void do_dlopen(struct churn *c)
{
	static const char *const names[] = { "libresolv.so.2", "libcrypt.so.1", "libthread_db.so.1", "libz.so.1" };
	void *library = NULL;

	(void)c;
	for (size_t i = 0; i < MEW_COUNTOF(names) && library == NULL; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	expect(library != NULL && dlclose(library) == 0);
}

static void *be_born(void *arg)
{
	void *p = malloc(1000);

	(void)fx_two(fx_us(50));
	free(p);
	return arg;
}

static void do_thread(struct churn *c)
{
	pthread_t thread;
	void *result = NULL;

	expect(pthread_create(&thread, NULL, be_born, c) == 0 && pthread_join(thread, &result) == 0 && result == c);
}

static void do_throw(struct churn *c)
{
	(void)c;
	for (int i = 0; i < 20; i++)
		expect(fx_throw(12) == 13);
}

static void do_malloc(struct churn *c)
{
	void *blocks[100];

	(void)c;
	for (size_t i = 0; i < 100; i++)
		blocks[i] = malloc(16 + 97 * i * i % 5000);
	for (size_t i = 0; i < 100; i++)
		blocks[i] = realloc(blocks[i], 64 + i * 131 % 9000);
	for (size_t i = 0; i < 100; i++)
		free(blocks[i]);
}

__attribute__((noinline)) static int jump_from(struct churn *c, int depth)
{
	if (depth < 0)
		return depth;
	if (depth == 0)
		longjmp(c->back, 1);
	return jump_from(c, depth - 1) + 1;
}

static void do_longjmp(struct churn *c)
{
	for (volatile int i = 0; i < 100; i++)
		if (setjmp(c->back) == 0)
			expect(jump_from(c, 20) < 0);
}

static void on_own_stack(int number)
{
	(void)number;
	(void)fx_two(fx_us(200));
}

static void do_signal_stack(struct churn *c)
{
	stack_t stack = { .ss_sp = c->signal_stack, .ss_size = STACK_BYTES }, former;

	expect(sigaltstack(&stack, &former) == 0 && raise(SIGUSR2) == 0);
	expect(sigaltstack(&former, NULL) == 0);
}

static void run_fiber(unsigned index)
{
	for (;;) {
		(void)fx_two(fx_us(50));
		(void)swapcontext(&churns[index].fiber, &churns[index].here);
	}
}

static void do_fiber(struct churn *c)
{
	for (int i = 0; i < 10; i++)
		expect(swapcontext(&c->here, &c->fiber) == 0);
}

static void (*const acts[])(struct churn *) = {
	do_fork, do_vfork, do_spawn, do_dlopen, do_thread, do_throw, do_malloc, do_longjmp, do_signal_stack, do_fiber,
};

/* --- the storm --------------------------------------------------------------------------------------------------- */

FX_IN(fx_body) static void churn_body(struct rig *r, unsigned thread, void *arg)
{
	uint64_t until = rig_now_ns() + *(const uint64_t *)arg, turns = 0;
	struct churn *c = &churns[thread];

	for (; rig_now_ns() < until; turns++) {
		acts[turns % MEW_COUNTOF(acts)](c);
		if (turns % 7 != 0)
			continue;
		rig_pause(r, thread);
		acts[turns / 7 % MEW_COUNTOF(acts)](c);
		rig_resume(r, thread);
	}
	expect(turns > MEW_COUNTOF(acts)); /* each came at least once */
}

static void prepare(struct churn *c, unsigned index)
{
	char *memory = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	c->signal_stack = memory;
	c->fiber_stack = memory + STACK_BYTES;
	assert_int_equal(getcontext(&c->fiber), 0);
	c->fiber.uc_stack = (stack_t){ .ss_sp = c->fiber_stack, .ss_size = STACK_BYTES };
	makecontext(&c->fiber, (void (*)(void))run_fiber, 1, index);
}

static uint64_t seconds_asked(void)
{
	const char *text = getenv("MEW_TEST_SECONDS");
	uint64_t seconds = text != NULL ? strtoull(text, NULL, 10) : 0;

	return seconds > 0 && seconds <= 3600 ? seconds : 3;
}

static void t_churn(void **state)
{
	uint64_t ns = seconds_asked() * 1000000000;
	struct sigaction action = { .sa_handler = on_own_stack, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct rig r = { .body = churn_body, .arg = &ns, .threads = THREADS, .interval_ns = INTERVAL_NS };

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		prepare(&churns[i], i);
	assert_int_equal(sigaction(SIGUSR2, &action, NULL), 0);
	(void)alarm((unsigned)(ns / 1000000000) + 120);
	rig_run(&r);
	(void)alarm(0);
	assert_int_equal(r.status, MEW_OK);
	assert_int_equal(unclean, 0);
	assert_true(rig_timers() <= 0);
	assert_true(r.row->cpu.sample_count > 100); /* the handlers really ran; how often is the machine's affair */
	assert_null(rig_why(&r, MEW_FIG_WALL_TIME));
	assert_null(rig_why(&r, MEW_FIG_SAMPLE_WEIGHT));
	assert_null(rig_why(&r, MEW_FIG_EFFECTIVE_INTERVAL));
	assert_true(rig_hits(&r, FX_RANGE(fx_two)) > 0);
	printf("# %llu samples, %llu cut short, %llu lost\n", (unsigned long long)r.row->cpu.sample_count,
	       (unsigned long long)r.row->cpu.truncated, (unsigned long long)r.row->cpu.lost);
	rig_fini(&r);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(munmap(churns[i].signal_stack, 2 * STACK_BYTES), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_churn),
	};

	(void)fx_us(1); /* measured before any window */
	return cmocka_run_group_tests_name("cpu_churn", tests, NULL, NULL);
}
