/*
 * t_duo.c - two functions on one thread: who runs when, what happens when one ends first, and that the stacks are whole.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "duo.h"

struct part {
	struct mew_duo *duo;
	char name;
	int turns;
	bool saw_end;
	char *said;
};

static void say(struct part *p)
{
	size_t n = strlen(p->said);

	p->said[n] = p->name;
	p->said[n + 1] = '\0';
}

static void take_turns(void *data)
{
	struct part *p = data;

	for (int i = 0; i < p->turns; i++) {
		say(p);
		p->saw_end = !mew_duo_yield(p->duo);
	}
}

static void run(int a, int b, const char *wanted, bool a_saw_end, bool b_saw_end)
{
	char said[64] = "";
	struct mew_duo *duo = mew_duo_new();
	struct part parts[2] = { { duo, 'a', a, false, said }, { duo, 'b', b, false, said } };
	void *const data[2] = { &parts[0], &parts[1] };

	assert_non_null(duo);
	for (int again = 0; again < 2; again++) { /* one duo serves many calls */
		said[0] = '\0';
		mew_duo_run(duo, take_turns, data);
		assert_string_equal(said, wanted);
		assert_int_equal(parts[0].saw_end, a_saw_end);
		assert_int_equal(parts[1].saw_end, b_saw_end);
	}
	mew_duo_free(duo);
}

static void they_alternate(void **state)
{
	(void)state;
	run(3, 3, "ababab", false, false); /* the first ends while the other gives way to it */
}

static void one_that_ends_leaves_the_rest_to_the_other(void **state)
{
	(void)state;
	run(1, 4, "abbbb", false, true);
	run(4, 1, "abaaa", true, false);
	run(0, 2, "bb", false, true);
	run(2, 0, "aa", true, false);
	run(0, 0, "", false, false);
}

struct deep {
	struct mew_duo *duo;
	unsigned char mark;
	bool whole;
};

/* Fill half a megabyte, let the other do the same, and look again. */
static void fill_the_stack(void *data)
{
	struct deep *d = data;
	volatile unsigned char block[512 * 1024];

	for (size_t i = 0; i < sizeof block; i++)
		block[i] = d->mark;
	(void)mew_duo_yield(d->duo);
	d->whole = true;
	for (size_t i = 0; i < sizeof block; i++)
		d->whole = d->whole && block[i] == d->mark;
	(void)mew_duo_yield(d->duo);
}

static void each_has_a_stack_of_its_own(void **state)
{
	struct mew_duo *duo = mew_duo_new();
	struct deep parts[2] = { { duo, 0x55, false }, { duo, 0xaa, false } };
	void *const data[2] = { &parts[0], &parts[1] };

	(void)state;
	assert_non_null(duo);
	mew_duo_run(duo, fill_the_stack, data);
	assert_true(parts[0].whole && parts[1].whole);
	mew_duo_free(duo);
	mew_duo_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_alternate),
		cmocka_unit_test(one_that_ends_leaves_the_rest_to_the_other),
		cmocka_unit_test(each_has_a_stack_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
