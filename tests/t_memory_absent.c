/*
 * t_memory_absent.c - without libmew_hooks the memory backend measures nothing, and says what is missing.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe_names_the_remedy),
		cmocka_unit_test(test_open_refuses_and_leaves_nothing_behind),
	};

	return cmocka_run_group_tests_name("memory_absent", tests, NULL, NULL);
}
