/*
 * t_gate_look.c - when a gate of programs has seen enough of a case, and what it then says of it: a slower head must be
 * found twice, a faster one need not be.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate.h"

/* --- what the rules take from the rest of the gate, without figures but those of time ------------------------------- */

int mew_gate_merged_time(const struct mew_gate *g, const struct mew_gate_case *c, struct mew_verdict *v,
			 struct mew_error *err)
{
	(void)g;
	(void)c;
	(void)v;
	(void)err;
	return MEW_E_INVALID;
}

void mew_gate_settle_counts(struct mew_gate *g, struct mew_gate_case *c)
{
	(void)g;
	(void)c;
}

void mew_gate_settle_exact(struct mew_gate *g, struct mew_gate_case *c)
{
	(void)g;
	(void)c;
}

void mew_calibration_free(struct mew_calibration *c)
{
	(void)c;
}

/* --- a gate of one case --------------------------------------------------------------------------------------------- */

#define MOST 64

static const struct mew_gate_options options = { .pairs = MOST };
static struct mew_gate gate;

static int open_gate(void **state)
{
	struct mew_rules rules = { .alpha = 0 };

	(void)state;
	return mew_gate_init(&gate, &options, &rules) == 0 && mew_gate_add(&gate, "a", NULL) != NULL ? 0 : -1;
}

static int close_gate(void **state)
{
	(void)state;
	mew_gate_fini(&gate);
	return 0;
}

/* Pairs of that log ratio until the case is decided, at most n. */
static void take(size_t n, double log_ratio)
{
	struct mew_gate_observation o = { .log_ratio = log_ratio, .ns = { 100, 100 }, .loops = 1, .rounds = 1 };
	struct mew_gate_case *c = &gate.cases[0];

	for (size_t i = 0; i < n && c->stage != MEW_GATE_DECIDED; i++) {
		assert_int_equal(mew_gate_observe(&c->series, &o), 0);
		assert_int_equal(mew_gate_look(&gate, c, gate.ncases, NULL), MEW_OK);
	}
}

static void ends(enum mew_outcome outcome, int exit_code, bool has_note)
{
	assert_int_equal(mew_gate_settle(&gate, NULL), MEW_OK);
	assert_string_equal(mew_outcome_name(gate.outcome), mew_outcome_name(outcome));
	assert_int_equal(gate.exit_code, exit_code);
	assert_int_equal(gate.cases[0].why[0] != '\0', has_note);
}

/* The first difference: the confirmation begins. */
static void flag(double log_ratio)
{
	while (gate.cases[0].stage == MEW_GATE_LOOKING && gate.cases[0].series.n < MOST)
		take(1, log_ratio);
	assert_int_equal(gate.cases[0].stage, MEW_GATE_CONFIRMING);
}

static void what_is_found_twice_counts(void **state)
{
	(void)state;
	flag(0.5);
	take(MOST, 0.5);
	ends(MEW_OUTCOME_REGRESSED, 1, false);
}

static void what_is_found_twice_counts_for_the_head_too(void **state)
{
	(void)state;
	flag(-0.5);
	take(MOST, -0.5);
	ends(MEW_OUTCOME_IMPROVED, 0, false);
}

/* One pair in between is enough for "not slower" to be certain before "faster" is. */
static void a_faster_head_passes_although_it_was_not_found_twice(void **state)
{
	(void)state;
	flag(-0.5);
	take(1, 0);
	take(MOST, -0.5);
	assert_int_equal(gate.cases[0].stage, MEW_GATE_DECIDED);
	ends(MEW_OUTCOME_PASS, 0, true);
}

static void a_faster_head_passes_although_the_pairs_ran_out(void **state)
{
	(void)state;
	flag(-0.5);
	take(1, -0.5);
	ends(MEW_OUTCOME_PASS, 0, true);
}

static void a_slower_head_that_was_not_found_twice_is_none(void **state)
{
	(void)state;
	flag(0.5);
	take(1, 0.5);
	ends(MEW_OUTCOME_INCONCLUSIVE, 3, true);
}

int main(void)
{
	const struct CMUnitTest gate_look[] = {
		cmocka_unit_test_setup_teardown(what_is_found_twice_counts, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(what_is_found_twice_counts_for_the_head_too, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(a_faster_head_passes_although_it_was_not_found_twice, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(a_faster_head_passes_although_the_pairs_ran_out, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(a_slower_head_that_was_not_found_twice_is_none, open_gate, close_gate),
	};

	return cmocka_run_group_tests_name("gate look", gate_look, NULL, NULL);
}
