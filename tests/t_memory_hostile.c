/*
 * t_memory_hostile.c - the memory backend in programs that do what profilers do not expect: children of every kind,
 * libraries that come and go while another thread allocates, handlers that allocate, deep stacks, callbacks of libc,
 * an allocator that fails. Every test runs twice: counting and with stacks.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fx_alloc_rig.h"
#include "memory.h"

#define SECONDS_VARIABLE "MEW_TEST_SECONDS" /* how long the race lasts; make check-long sets it */

extern char **environ;

static void run(struct alloc_rig *rig, void **state, alloc_body_fn *body)
{
	rig->stacks = *state != NULL;
	rig->body = body;
	assert_int_equal(alloc_rig_run(rig), MEW_OK);
}

/* --- children ----------------------------------------------------------------------------------------------------- */

static unsigned failed;

static void wait_for(pid_t child, int code)
{
	int status = 0;

	if (child <= 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != code)
		failed++;
}

static void have_children(struct alloc_rig *rig, unsigned thread)
{
	char shell[] = "sh", flag[] = "-c", script[] = "exit 3", *const spawned[] = { shell, flag, script, NULL };
	pid_t child;

	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 5; i++) {
		void *mine = fx_malloc(100);

		child = vfork(); /* NOLINT: this is what is tested */
		if (child == 0) {
			(void)execv("/bin/sh", spawned);
			_exit(9);
		}
		wait_for(child, 3);
		if (posix_spawn(&child, "/bin/sh", NULL, NULL, spawned, environ) != 0)
			child = -1;
		wait_for(child, 3);
		child = fork();
		if (child == 0) {
			fx_free(mine); /* and more, none of which the parent may see */
			mew_keep(fx_malloc(5000));
			(void)execv("/bin/sh", spawned);
			_exit(9);
		}
		wait_for(child, 3);
		fx_free(mine);
	}
}

static void test_children_leave_the_figures_alone(void **state)
{
	struct alloc_rig rig = { .data = NULL };

	failed = 0;
	run(&rig, state, have_children);
	assert_int_equal(failed, 0);
	assert_int_equal(rig.figures->peak_bytes, 100);
	assert_int_equal(rig.figures->total_allocations, 5);
	assert_int_equal(rig.figures->frees, 5);
	alloc_rig_free(&rig);
}

/* --- libraries ---------------------------------------------------------------------------------------------------- */

static bool stop;

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* libm is not needed by this program, and every libc has it. */
static void load_or_allocate(struct alloc_rig *rig, unsigned thread)
{
	const char *seconds = getenv(SECONDS_VARIABLE);
	double end = now() + (seconds != NULL ? strtod(seconds, NULL) : 1);
	unsigned *loads = rig->data;

	while (thread != 0 && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
		fx_free(fx_realloc(fx_malloc(64), 3000));
	while (thread == 0 && now() < end) {
		void *handle = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);

		if (handle == NULL)
			handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
		if (handle == NULL || dlclose(handle) != 0)
			break;
		(*loads)++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
}

static void test_libraries_come_and_go_while_a_thread_allocates(void **state)
{
	unsigned loads = 0;
	struct alloc_rig rig = { .threads = 2, .data = &loads };

	__atomic_store_n(&stop, false, __ATOMIC_RELAXED);
	(void)alarm(300); /* a deadlock ends here */
	run(&rig, state, load_or_allocate);
	(void)alarm(0);
	assert_true(loads > 10);
	assert_int_equal(rig.figures->lost, 0);
	alloc_rig_free(&rig);
}

/* --- signal handlers ---------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t handled;

static void allocate_in_handler(int signal)
{
	(void)signal;
	fx_free(fx_malloc(40));
	handled++;
}

static void signal_myself(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 50; i++) {
		void *mine = fx_malloc(60);

		(void)raise(SIGUSR1);
		fx_free(mine);
	}
}

static void test_a_handler_may_allocate(void **state)
{
	struct sigaction action = { .sa_handler = allocate_in_handler }, old;
	struct alloc_rig rig = { .data = NULL };

	handled = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	run(&rig, state, signal_myself);
	(void)sigaction(SIGUSR1, &old, NULL);
	assert_int_equal(handled, 50);
	assert_int_equal(rig.figures->total_allocations, 100);
	assert_int_equal(rig.figures->peak_bytes, 100);
	assert_int_equal(rig.figures->net_bytes, 0);
	alloc_rig_free(&rig);
}

#define TURNS 100000u

struct interrupted {
	pthread_t thread; /* the one that ends turns */
	atomic_bool there, done;
};

/* Thread 0 does nothing but end turns, which look at all threads; the other one interrupts it as often as it can. */
static void turn_or_interrupt(struct alloc_rig *rig, unsigned thread)
{
	struct interrupted *i = rig->data;

	if (thread == 0) {
		i->thread = pthread_self();
		atomic_store(&i->there, true);
		for (unsigned turn = 0; turn < TURNS; turn++)
			mew_backend_memory.turn(rig->capture, 0, 1);
		atomic_store(&i->done, true);
		return;
	}
	while (!atomic_load(&i->there))
		(void)sched_yield();
	while (!atomic_load(&i->done))
		(void)pthread_kill(i->thread, SIGUSR1);
}

/* What it allocated in a turn's end cannot be entered, and then the row says so; but nothing waits for itself. */
static void test_a_handler_may_allocate_at_the_end_of_a_turn(void **state)
{
	struct sigaction action = { .sa_handler = allocate_in_handler }, old;
	struct interrupted data = { .done = false };
	struct alloc_rig rig = { .threads = 2, .body = turn_or_interrupt, .data = &data, .stacks = *state != NULL };
	int status;

	handled = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	(void)alarm(120); /* a deadlock ends here */
	status = alloc_rig_run(&rig);
	(void)alarm(0);
	(void)sigaction(SIGUSR1, &old, NULL);
	assert_true(handled > 0);
	if (status != MEW_OK) {
		assert_int_equal(status, MEW_E_LOST);
		assert_non_null(strstr(rig.error.text, "does a signal handler allocate?"));
	}
	alloc_rig_free(&rig);
}

/* --- late threads ------------------------------------------------------------------------------------------------- */

static void do_nothing(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
}

/* A thread that was in the allocator when the window closed, and comes out of it when the capture is gone too. */
static void test_an_event_may_end_behind_its_capture(void **state)
{
	const struct mew_malloc_family *family = *state != NULL ? &mew_heap_capture_family : &mew_heap_count_family;
	struct alloc_rig rig = { .data = NULL };
	void *block;

	run(&rig, state, do_nothing);
	block = family->do_malloc(100);
	assert_non_null(block);
	family->do_free(block);
	alloc_rig_free(&rig);
}

/* --- stacks ------------------------------------------------------------------------------------------------------- */

static MEW_NOINLINE void *dive(unsigned depth)
{
	void *p = depth == 0 ? fx_malloc(10) : dive(depth - 1);

	mew_clobber(); /* keeps the call from becoming a jump */
	return p;
}

static void dive_deep(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 20; i++)
		fx_free(dive(100 + i * 40));
}

/* A stack of more frames than are kept is cut, not lost: its bytes are still somebody's. */
static void test_stacks_of_hundreds_of_frames(void **state)
{
	struct alloc_rig rig = { .data = NULL };

	run(&rig, state, dive_deep);
	assert_int_equal(rig.figures->total_allocations, 20);
	assert_int_equal(rig.figures->cumulative_bytes, 200);
	assert_int_equal(rig.figures->lost, 0);
	alloc_rig_free(&rig);
}

#define MANY_STACKS ((1u << 18) + 5000u) /* the table of stacks holds 2^18 */

static void *branch_right(unsigned depth, unsigned path);

static MEW_NOINLINE void *branch_left(unsigned depth, unsigned path)
{
	void *p = depth == 0 ? fx_malloc(10) : (path & 1) != 0 ? branch_right(depth - 1, path >> 1) :
								  branch_left(depth - 1, path >> 1);

	mew_clobber();
	return p;
}

static MEW_NOINLINE void *branch_right(unsigned depth, unsigned path)
{
	void *p = depth == 0 ? fx_malloc(10) : (path & 1) != 0 ? branch_right(depth - 1, path >> 1) :
								  branch_left(depth - 1, path >> 1);

	mew_clobber();
	return p;
}

static void branch_often(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < MANY_STACKS; i++)
		fx_free(branch_left(19, i));
}

/* What found no room keeps its bytes, and the row says how many have no stack. The rig compares all sums. */
static void test_more_stacks_than_the_table_holds(void **state)
{
	struct alloc_rig rig = { .data = NULL };

#ifndef __x86_64__
	print_message("stacks are walked on x86-64 only\n");
	skip();
#endif
	run(&rig, state, branch_often);
	assert_int_equal(rig.figures->total_allocations, MANY_STACKS);
	assert_int_equal(rig.figures->lost, 0);
	assert_non_null(rig.figures->reason);
	assert_non_null(strstr(rig.figures->reason, "have no stack"));
	alloc_rig_free(&rig);
}

static int compare_and_allocate(const void *a, const void *b)
{
	fx_free(fx_malloc(8));
	return *(const int *)a - *(const int *)b;
}

static MEW_NOINLINE void sort_numbers(struct alloc_rig *rig, unsigned thread)
{
	int numbers[] = { 3, 1, 2 };

	(void)rig;
	(void)thread;
	qsort(numbers, MEW_COUNTOF(numbers), sizeof numbers[0], compare_and_allocate);
	mew_clobber();
}

/* Does a stack have a frame in the function that begins at `start`? They are small: 256 bytes reach over one. */
static bool passes(const struct alloc_rig *rig, const struct mew_heap_stack *s, uintptr_t start)
{
	const struct mew_stack *stack = &rig->model->stacks[s->stack];
	Dl_info info;

	if (dladdr((const void *)start, &info) == 0)
		return false;
	for (uint32_t i = 0; i < stack->depth; i++) {
		const struct mew_location *l = &rig->model->locations[rig->model->frames[stack->first + i]];
		uint64_t offset = l->offset - (start - (uintptr_t)info.dli_fbase);

		if (l->module != MEW_NO_MODULE && offset < 256)
			return true;
	}
	return false;
}

/* Debian's libc has no frame pointers: who trusts them loses the caller of qsort. */
static void test_a_callback_of_libc_reaches_its_caller(void **state)
{
	struct alloc_rig rig = { .data = NULL };
	unsigned reached = 0;

	run(&rig, state, sort_numbers);
	assert_in_range(rig.figures->total_allocations, 2, 3);
	for (size_t i = 0; i < rig.row->nheap_stacks; i++)
		reached += passes(&rig, &rig.row->heap_stacks[i], (uintptr_t)compare_and_allocate) &&
			   passes(&rig, &rig.row->heap_stacks[i], (uintptr_t)sort_numbers);
#ifdef __x86_64__
	assert_int_equal(reached, rig.row->nheap_stacks);
#endif
	alloc_rig_free(&rig);
}

/* --- an allocator that fails -------------------------------------------------------------------------------------- */

static void ask_too_much(struct alloc_rig *rig, unsigned thread)
{
	struct rlimit old, limit;
	void *blocks[64];
	unsigned n = 0;

	(void)thread;
	(void)getrlimit(RLIMIT_AS, &old);
	limit = old;
	limit.rlim_cur = (rlim_t)1 << 20; /* less than there is: nothing more can be mapped */
	(void)setrlimit(RLIMIT_AS, &limit);
	while (n < 64 && (blocks[n] = fx_malloc((size_t)32 << 20)) != NULL)
		n++;
	(void)setrlimit(RLIMIT_AS, &old);
	*(unsigned *)rig->data = n;
	for (unsigned i = 0; i < n; i++)
		fx_free(blocks[i]);
}

static void test_no_memory_counts_as_failed(void **state)
{
	unsigned got = 0;
	struct alloc_rig rig = { .data = &got };

	run(&rig, state, ask_too_much);
	assert_int_equal(rig.figures->failed, got < 64);
	assert_int_equal(rig.figures->total_allocations, got);
	alloc_rig_free(&rig);
}

/* --- mew's own memory --------------------------------------------------------------------------------------------- */

static void allocate_a_little(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 1000; i++)
		fx_free(fx_malloc(i));
}

/* What the backend needs comes from the kernel, is said in the row and is in no other figure. */
static void test_bookkeeping_is_said_and_apart(void **state)
{
	struct alloc_rig rig = { .data = NULL };

	run(&rig, state, allocate_a_little);
	assert_int_equal(rig.figures->total_allocations, 1000);
	assert_int_equal(rig.figures->peak_bytes, 999);
	assert_in_range(rig.figures->bookkeeping_bytes, 4096, 64 << 20);
	alloc_rig_free(&rig);
}

#define BOTH(test) cmocka_unit_test_prestate(test, NULL), cmocka_unit_test_prestate(test, &with_stacks)

int main(void)
{
	static int with_stacks;
	const struct CMUnitTest tests[] = {
		BOTH(test_children_leave_the_figures_alone),
		BOTH(test_a_handler_may_allocate),
		BOTH(test_stacks_of_hundreds_of_frames),
		cmocka_unit_test_prestate(test_a_callback_of_libc_reaches_its_caller, &with_stacks),
		cmocka_unit_test_prestate(test_more_stacks_than_the_table_holds, &with_stacks),
		BOTH(test_no_memory_counts_as_failed),
		BOTH(test_bookkeeping_is_said_and_apart),
		BOTH(test_libraries_come_and_go_while_a_thread_allocates),
		BOTH(test_a_handler_may_allocate_at_the_end_of_a_turn),
		BOTH(test_an_event_may_end_behind_its_capture),
	};

	return cmocka_run_group_tests_name("memory_hostile", tests, NULL, NULL);
}
