/*
 * budget_cmocka.c - a cmocka test with a budget of allocations, and a span where the figures themselves are asserted.
 * cc budget_cmocka.c $(pkg-config --cflags --libs mew cmocka)
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <mew.h>

/* A budget that is exceeded fails the test, with the stacks; fail_msg() may leave by longjmp. */
static void fail_test(const struct mew_span_failure *failure, void *data)
{
	(void)data;
	fail_msg("%s", failure->text);
}

static char *join(const char *a, const char *b)
{
	char *both = malloc(strlen(a) + strlen(b) + 1);

	return both != NULL ? strcat(strcpy(both, a), b) : NULL;
}

static void test_join_allocates_once(void **state)
{
	char *both = NULL;

	(void)state;
	mew_assert_allocs_le(1)
	{
		both = join("left ", "right");
	}
	assert_string_equal(both, "left right");
	free(both);
}

static void test_join_asks_for_its_length(void **state)
{
	struct mew_span span;

	(void)state;
	assert_int_equal(mew_span_begin(&span, MEW_SPAN_THREAD), MEW_OK);
	free(join("abc", "defg"));
	assert_int_equal(mew_span_end(&span), MEW_OK);
	assert_int_equal(span.cumulative_bytes, 8);
	assert_int_equal(span.net_blocks, 0);
}

/* What a budget says that is exceeded: run with --exceed. */
static void test_join_without_any(void **state)
{
	(void)state;
	mew_assert_no_alloc
	{
		free(join("one ", "too many"));
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join_allocates_once),
		cmocka_unit_test(test_join_asks_for_its_length),
	};
	const struct CMUnitTest exceeding[] = {
		cmocka_unit_test(test_join_without_any),
	};

	mew_span_on_failure(fail_test, NULL);
	if (argc > 1 && strcmp(argv[1], "--exceed") == 0)
		return cmocka_run_group_tests(exceeding, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
