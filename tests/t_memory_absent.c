/*
 * t_memory_absent.c - without libmew_hooks the memory backend and spans measure nothing, and say what is missing.
 * This program is linked without the hooks on purpose.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "mew/backend.h"

extern const struct mew_backend mew_backend_memory;

static void test_probe_names_the_remedy(void **state)
{
	struct mew_error err = { .status = MEW_OK };

	(void)state;
	assert_int_equal(mew_backend_memory.probe(&err), MEW_E_UNSUPPORTED);
	assert_int_equal(err.status, MEW_E_UNSUPPORTED);
	assert_non_null(strstr(err.text, "-lmew_hooks"));
	assert_non_null(strstr(err.text, "mew run"));
}

static void test_open_refuses_and_leaves_nothing_behind(void **state)
{
	struct mew_capture_config config = { .pass = MEW_PASS_MEMORY, .threads = 1 };
	struct mew_capture *capture = NULL;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_memory.open(&capture, &config, &err), MEW_E_UNSUPPORTED);
	assert_null(capture);
	assert_int_equal(mew_backend_memory.open(&capture, &config, &err), MEW_E_UNSUPPORTED); /* and not BUSY */
}

static void test_a_span_names_the_same_remedy(void **state)
{
	struct mew_span span;
	struct mew_error err;

	(void)state;
	assert_int_equal(mew_backend_memory.probe(&err), MEW_E_UNSUPPORTED);
	assert_int_equal(mew_span_begin(&span, MEW_SPAN_THREAD), MEW_E_UNSUPPORTED);
	assert_string_equal(mew_last_error()->text, err.text);
	assert_int_equal(mew_span_end(&span), MEW_E_INVALID);
}

static unsigned ran, told;

static void listen(const struct mew_span_failure *failure, void *data)
{
	(void)data;
	assert_int_equal(failure->status, MEW_E_UNSUPPORTED);
	assert_non_null(strstr(failure->text, "cannot be checked"));
	assert_non_null(strstr(failure->text, "-lmew_hooks"));
	told++;
}

static void test_a_budget_that_cannot_be_checked_is_no_pass(void **state)
{
	(void)state;
	mew_span_on_failure(listen, NULL);
	mew_assert_no_alloc
		ran++;
	assert_int_equal(told, 1);
	assert_int_equal(ran, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_names_the_remedy),
		cmocka_unit_test(test_open_refuses_and_leaves_nothing_behind),
		cmocka_unit_test(test_a_span_names_the_same_remedy),
		cmocka_unit_test(test_a_budget_that_cannot_be_checked_is_no_pass),
	};

	return cmocka_run_group_tests_name("memory_absent", tests, NULL, NULL);
}
