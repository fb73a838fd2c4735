/*
 * fx_cmocka.c - a group of tests that is run with mew/cmocka.h, or, given an argument, by cmocka itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <mew/cmocka.h>

static int of_group, own;

static int begin_group(void **state)
{
	if (getenv("FX_GROUP_STATE") != NULL)
		*state = &of_group;
	return 0;
}

static int end_group(void **state)
{
	return *state == (getenv("FX_GROUP_STATE") != NULL ? &of_group : NULL) ? 0 : -1;
}

static void gets_its_state(void **state)
{
	assert_ptr_equal(*state, getenv("FX_GROUP_STATE") != NULL ? &of_group : &own);
}

static int make(void **state)
{
	*state = test_malloc(10); /* cmocka checks that it is gone after the teardown */
	return *state == NULL;
}

static void uses_what_was_made(void **state)
{
	assert_non_null(*state);
}

static int drop(void **state)
{
	test_free(*state);
	return 0;
}

static void fails(void **state)
{
	(void)state;
	fail_msg("on purpose");
}

static void is_skipped(void **state)
{
	(void)state;
	skip();
}

static int cannot(void **state)
{
	(void)state;
	return -1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(gets_its_state, &own),
		cmocka_unit_test_setup_teardown(uses_what_was_made, make, drop),
		cmocka_unit_test(fails),
		cmocka_unit_test(is_skipped),
		cmocka_unit_test_setup(fails, cannot),
		{ "a \"quoted\" name", gets_its_state, NULL, NULL, &own },
	};

	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (argc > 1 && argv[1][0] == 'p')
		return cmocka_run_group_tests(tests, begin_group, end_group);
	return mew_cmocka_run_group_tests(tests, begin_group, end_group);
}
