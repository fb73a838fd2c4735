/*
 * t_budget.c - budgets: when the handler is called, what it is told, and every way out of a block.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fx_alloc_rig.h"
#include "span_registry.h"

static struct {
	unsigned calls;
	struct mew_span_failure failure;
	char text[8192];
	bool hooks_held;
} told;

static void listen(const struct mew_span_failure *failure, void *data)
{
	assert_ptr_equal(data, &told);
	told.calls++;
	told.failure = *failure;
	(void)snprintf(told.text, sizeof told.text, "%s", failure->text);
	told.hooks_held = mew_spans_hold_hooks();
}

static int start_listening(void **state)
{
	(void)state;
	memset(&told, 0, sizeof told);
	mew_span_on_failure(listen, &told);
	return 0;
}

__attribute__((noinline)) static void make_blocks(unsigned n, size_t size)
{
	for (unsigned i = 0; i < n; i++)
		fx_free(fx_malloc(size + i));
}

/* Without libmew_symbols the stacks have places instead of names. */
static bool names_are_there(void)
{
	const char *library = getenv("MEW_SYMBOLS");

	return library != NULL && access(library, R_OK) == 0;
}

static unsigned count_text(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
		n++;
	return n;
}

/* --- the verdict -------------------------------------------------------------------------------------------------- */

static void test_within_the_budget_is_silent(void **state)
{
	(void)state;
	mew_assert_allocs_le(3)
		make_blocks(3, 10);
	mew_assert_no_alloc
		make_blocks(0, 10);
	assert_int_equal(told.calls, 0);
	assert_false(mew_spans_hold_hooks());
}

static void test_beyond_the_budget_is_told(void **state)
{
	int line;

	(void)state;
	mew_assert_allocs_le(2)
		make_blocks(5, 10);
	line = __LINE__ - 2;
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.failure.status, MEW_OK);
	assert_int_equal(told.failure.count, 5);
	assert_int_equal(told.failure.budget, 2);
	assert_int_equal(told.failure.line, line);
	assert_string_equal(told.failure.file, __FILE__);
	assert_false(told.hooks_held); /* everything was closed before */
	assert_non_null(strstr(told.text, ": 5 allocations where at most 2 are allowed\n"));
}

static void test_the_first_beyond_it_have_stacks(void **state)
{
	(void)state;
	mew_assert_allocs_le(2)
		make_blocks(9, 10);
	assert_int_equal(count_text(told.text, "  allocation "), 4);
	assert_non_null(strstr(told.text, "allocation 3, 12 bytes:\n"));
	assert_non_null(strstr(told.text, "allocation 6, 15 bytes:\n"));
	assert_non_null(strstr(told.text, "and 3 more\n"));
	if (!names_are_there())
		return;
	assert_int_equal(count_text(told.text, "    make_blocks (t_budget.c:"), 4);
	assert_int_equal(count_text(told.text, "    test_the_first_beyond_it_have_stacks (t_budget.c:"), 4);
	assert_int_equal(count_text(told.text, "    main (t_budget.c:"), 4); /* and nothing below it */
	assert_null(strstr(told.text, "_start"));
}

static void test_no_allocation_at_all(void **state)
{
	(void)state;
	mew_assert_no_alloc
		make_blocks(1, 10);
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.failure.budget, 0);
	assert_non_null(strstr(told.text, ": 1 allocation where none is allowed\n"));
	assert_null(strstr(told.text, "more"));
}

static void test_budgets_nest(void **state)
{
	(void)state;
	mew_assert_allocs_le(4) {
		make_blocks(2, 10);
		mew_assert_allocs_le(1)
			make_blocks(3, 10);
		assert_int_equal(told.calls, 1);
		assert_int_equal(told.failure.count, 3);
		assert_int_equal(told.failure.budget, 1);
		make_blocks(1, 10);
	}
	/* what it takes to tell about the inner one is not counted in the outer one */
	assert_int_equal(told.calls, 2);
	assert_int_equal(told.failure.count, 6);
	assert_int_equal(count_text(told.text, "  allocation "), 2);
	assert_non_null(strstr(told.text, "allocation 5, 12 bytes:\n"));
	assert_non_null(strstr(told.text, "allocation 6, 10 bytes:\n"));
}

static void test_the_budget_is_evaluated_once(void **state)
{
	unsigned n = 1;

	(void)state;
	mew_assert_allocs_le(n++)
		make_blocks(1, 10);
	assert_int_equal(n, 2);
	assert_int_equal(told.calls, 0);
}

static void test_a_block_runs_once_and_keeps_errno(void **state)
{
	unsigned turns = 0;

	(void)state;
	errno = ELOOP;
	mew_assert_no_alloc {
		turns++;
		make_blocks(1, 10);
		errno = EDOM;
	}
	assert_int_equal(errno, EDOM);
	assert_int_equal(turns, 1);
	assert_int_equal(told.calls, 1);
}

static void test_a_negative_budget_is_no_budget(void **state)
{
	bool ran = false;

	(void)state;
	mew_assert_allocs_le(-1)
		ran = told.calls == 1; /* told before the block */
	assert_true(ran);
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.failure.status, MEW_E_INVALID);
	assert_non_null(strstr(told.text, "negative"));
}

/* --- ways out ----------------------------------------------------------------------------------------------------- */

static unsigned leave(unsigned way)
{
	mew_assert_no_alloc {
		make_blocks(1, 10);
		switch (way) {
		case 0: return 1;
		case 1: goto out;
		default: break;
		}
		if (way == 2)
			break;
		continue;
	}
	return 2;
out:
	return 3;
}

static void test_every_way_out_closes(void **state)
{
	static const unsigned want[] = { 1, 3, 2 };

	(void)state;
	for (unsigned way = 0; way < MEW_COUNTOF(want); way++) {
		assert_int_equal(leave(way), want[way]);
		assert_int_equal(told.calls, 0); /* left early: no verdict */
		assert_false(mew_spans_hold_hooks());
	}
	assert_int_equal(leave(3), 2);
	assert_int_equal(told.calls, 1); /* continue is the end of the block */
}

static jmp_buf way_out;

static void jump(const struct mew_span_failure *failure, void *data)
{
	(void)failure;
	(void)data;
	longjmp(way_out, 1);
}

static void test_the_handler_may_not_return(void **state)
{
	volatile unsigned jumps = 0;

	(void)state;
	mew_span_on_failure(jump, NULL);
	for (unsigned i = 0; i < 100; i++) {
		if (setjmp(way_out) == 0) {
			mew_assert_no_alloc
				make_blocks(1, 10);
			fail_msg("the handler returned");
		} else {
			jumps++;
		}
	}
	assert_int_equal(jumps, 100);
	assert_false(mew_spans_hold_hooks());
}

/* --- where it cannot be checked ----------------------------------------------------------------------------------- */

static void body_with_budget(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
	mew_assert_no_alloc
		make_blocks(2, 10);
}

static void test_in_a_memory_pass_it_is_left_to_the_figures(void **state)
{
	const struct alloc_figures want = { .peak = 11, .allocations = 2, .cumulative = 21, .frees = 2 };
	struct alloc_rig rig = { .body = body_with_budget };

	(void)state;
	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_int_equal(alloc_rig_compare(&rig, &want), 0);
	alloc_rig_free(&rig);
	assert_int_equal(told.calls, 0);
}

static void nothing(struct alloc_rig *rig, unsigned thread)
{
	(void)rig;
	(void)thread;
}

static void test_a_memory_pass_inside_it_is_told(void **state)
{
	struct alloc_rig rig = { .body = nothing };

	(void)state;
	mew_assert_allocs_le(1000000) {
		assert_int_equal(alloc_rig_run(&rig), MEW_OK);
		alloc_rig_free(&rig);
	}
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.failure.status, MEW_E_LOST);
	assert_non_null(strstr(told.text, "cannot be checked"));
}

/* --- other programs ----------------------------------------------------------------------------------------------- */

struct output {
	char text[16384];
	int status;
};

/* What a child prints on both of its outputs. */
static void run_child(struct output *out, void (*body)(void))
{
	size_t used = 0;
	int ends[2];
	pid_t id;

	assert_int_equal(pipe(ends), 0);
	id = fork();
	if (id == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)dup2(ends[1], STDERR_FILENO);
		body();
		_exit(99);
	}
	(void)close(ends[1]);
	for (ssize_t n = 1; n > 0 && used < sizeof out->text - 1; used += n > 0 ? (size_t)n : 0)
		n = read(ends[0], out->text + used, sizeof out->text - 1 - used);
	out->text[used] = '\0';
	(void)close(ends[0]);
	assert_int_equal(waitpid(id, &out->status, 0), id);
}

static void exceed_without_handler(void)
{
	(void)signal(SIGABRT, SIG_DFL); /* cmocka catches it */
	mew_span_on_failure(NULL, NULL);
	mew_assert_no_alloc
		make_blocks(1, 10);
}

static void test_without_a_handler_the_process_ends(void **state)
{
	static struct output out;

	(void)state;
	run_child(&out, exceed_without_handler);
	assert_true(WIFSIGNALED(out.status));
	assert_int_equal(WTERMSIG(out.status), SIGABRT);
	assert_non_null(strstr(out.text, "1 allocation where none is allowed"));
}

static void start_fixture(const char *name, const char *flag)
{
	const char *folder = getenv("builddir");
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/tests/%s", folder != NULL ? folder : ".", name);
	(void)execl(path, path, flag, "--max-time=0.02", (char *)NULL);
}

static void start_cmocka(void)
{
	(void)setenv("CMOCKA_MESSAGE_OUTPUT", "stdout", 1);
	start_fixture("fx_span_cmocka", "");
}

static void start_timing(void)
{
	start_fixture("fx_span_bench", "--repetitions=2");
}

static void start_memory(void)
{
	start_fixture("fx_span_bench", "--memory");
}

static void test_cmocka_reports_the_offender(void **state)
{
	static struct output out;

	(void)state;
	run_child(&out, start_cmocka);
	assert_true(WIFEXITED(out.status));
	assert_int_equal(WEXITSTATUS(out.status), 2); /* cmocka's exit status is the number of failed tests */
	assert_non_null(strstr(out.text, "fx_span_cmocka.c:"));
	assert_non_null(strstr(out.text, ": 7 allocations where at most 1 is allowed"));
	assert_non_null(strstr(out.text, "allocation 2, 101 bytes:"));
	assert_non_null(strstr(out.text, "  FAILED  ] test_beyond"));
	assert_non_null(strstr(out.text, "  FAILED  ] test_cmocka_fails_inside"));
	assert_non_null(strstr(out.text, "       OK ] test_after"));
	assert_non_null(strstr(out.text, "       OK ] test_profile_after"));
	if (!names_are_there())
		return;
	assert_non_null(strstr(out.text, "greedy_reader (fx_span_cmocka.c:"));
	assert_non_null(strstr(out.text, "test_beyond (fx_span_cmocka.c:"));
}

/* Timing leaves the hooks aside, and budgets with them; the memory pass checks them in its warm-up. */
static void test_a_benchmark_is_checked_by_its_memory_pass(void **state)
{
	static struct output out;

	(void)state;
	run_child(&out, start_timing);
	assert_true(WIFEXITED(out.status));
	assert_int_equal(WEXITSTATUS(out.status), 0);
	assert_null(strstr(out.text, "none is allowed"));
	run_child(&out, start_memory);
	assert_true(WIFEXITED(out.status));
	assert_int_equal(WEXITSTATUS(out.status), 1);
	assert_non_null(strstr(out.text, "beyond  failed"));
	assert_null(strstr(out.text, "within  failed"));
	assert_non_null(strstr(out.text, "1 allocation where none is allowed"));
	if (names_are_there())
		assert_non_null(strstr(out.text, "mew_body_beyond (fx_span_bench.c:"));
	assert_null(strstr(out.text, "runner.c")); /* stacks end at the body */
}

#define LISTENING(test) cmocka_unit_test_setup(test, start_listening)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LISTENING(test_within_the_budget_is_silent),
		LISTENING(test_beyond_the_budget_is_told),
		LISTENING(test_the_first_beyond_it_have_stacks),
		LISTENING(test_no_allocation_at_all),
		LISTENING(test_budgets_nest),
		LISTENING(test_the_budget_is_evaluated_once),
		LISTENING(test_a_block_runs_once_and_keeps_errno),
		LISTENING(test_a_negative_budget_is_no_budget),
		LISTENING(test_every_way_out_closes),
		LISTENING(test_the_handler_may_not_return),
		LISTENING(test_in_a_memory_pass_it_is_left_to_the_figures),
		LISTENING(test_a_memory_pass_inside_it_is_told),
		cmocka_unit_test(test_without_a_handler_the_process_ends),
		cmocka_unit_test(test_cmocka_reports_the_offender),
		cmocka_unit_test(test_a_benchmark_is_checked_by_its_memory_pass),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
