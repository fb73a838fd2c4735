/*
 * t_gate_growth.c - which functions a gate says have grown: told apart by their whole names, and never from a figure that
 * the base does not have.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyse.h"
#include "gate_explain.h"
#include "gate_files.h"

#define SAMPLES 100000u
#define ITERATIONS 10u

/* --- what the list takes from the rest of the gate, without its bounds and escapes ---------------------------------- */

const struct mew_verdict *mew_gate_time(const struct mew_gate_case *c)
{
	return &c->verdicts[0];
}

void mew_gate_put_escaped(struct mew_writer *w, const char *text)
{
	mew_write_text(w, text);
}

bool mew_gate_put_piece(struct mew_writer *w, struct mew_writer *piece, uint64_t most)
{
	bool fits = w->total + piece->total <= most;
	size_t bytes;
	char *text = mew_writer_take(piece, &bytes);

	assert_non_null(text);
	if (fits)
		mew_write_bytes(w, text, bytes);
	free(text);
	return fits;
}

/* --- two sides of cases --------------------------------------------------------------------------------------------- */

static struct mew_gate_options options = { .html = "page.html" };
static struct mew_gate gate;
static struct mew_gate_case cases[16];
static char keys[16][8];

static int open_gate(void **state)
{
	(void)state;
	gate = (struct mew_gate){ .options = &options, .cases = cases, .html = "page.html" };
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		gate.profiles[side] = mew_model_new();
	return gate.profiles[MEW_BASE] != NULL && gate.profiles[MEW_HEAD] != NULL ? 0 : -1;
}

static int close_gate(void **state)
{
	(void)state;
	mew_model_free(gate.profiles[MEW_BASE]);
	mew_model_free(gate.profiles[MEW_HEAD]);
	return 0;
}

/* A case of 1000 ns in both sides, without a profile. */
static void add_case(void)
{
	struct mew_gate_case *c = &cases[gate.ncases];

	(void)snprintf(keys[gate.ncases], sizeof keys[0], "case%zu", gate.ncases);
	*c = (struct mew_gate_case){ .key = keys[gate.ncases++] };
	c->verdicts[0] = (struct mew_verdict){ .base = 1000, .head = 1000 };
}

static struct mew_case *last_case(enum mew_side side)
{
	struct mew_case *c = mew_model_case(gate.profiles[side], keys[gate.ncases - 1], NULL);

	assert_non_null(c);
	return c;
}

static void profile_cpu(enum mew_side side, const struct mew_cpu_function *functions, size_t n)
{
	struct mew_model *m = gate.profiles[side];
	struct mew_case *c = last_case(side);

	assert_non_null(mew_model_row(m, c, MEW_KIND_CPU));
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_SAMPLE_COUNT, SAMPLES);
	mew_model_list(m, c, MEW_KIND_CPU, MEW_FIG_CPU_BY_FUNCTION, functions, n);
}

static void profile_memory(enum mew_side side, uint64_t bytes, const struct mew_memory_function *functions, size_t n)
{
	struct mew_model *m = gate.profiles[side];
	struct mew_case *c = last_case(side);

	assert_non_null(mew_model_row(m, c, MEW_KIND_MEMORY));
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MEMORY_ITERATIONS, ITERATIONS);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_CUMULATIVE_BYTES, bytes);
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_BY_FUNCTION, functions, n);
}

static void says(const char *wanted, bool is_there)
{
	struct mew_writer w;
	char *text;

	mew_model_seal(gate.profiles[MEW_BASE]);
	mew_model_seal(gate.profiles[MEW_HEAD]);
	mew_writer_memory(&w);
	mew_gate_put_growth(&w, &gate, 20000);
	text = mew_writer_take(&w, NULL);
	assert_non_null(text);
	if ((strstr(text, wanted) != NULL) != is_there)
		fail_msg("\"%s\" is%s in: %s", wanted, is_there ? " not" : "", text);
	free(text);
}

/* --- time ----------------------------------------------------------------------------------------------------------- */

/* A hundred functions of 1 % each: by chance the two sides list others of them. */
static void flat(enum mew_side side, const char *first, double share)
{
	struct mew_cpu_function list[MEW_MOST_BY_FUNCTION];
	char names[MEW_MOST_BY_FUNCTION][24];

	for (size_t i = 0; i < MEW_COUNTOF(list); i++) {
		(void)snprintf(names[i], sizeof names[i], "%s%zu (a.c:1)", side == MEW_BASE ? "b" : "h", i);
		list[i] = (struct mew_cpu_function){ .function = names[i], .share = 0.01 };
	}
	list[0] = (struct mew_cpu_function){ .function = first, .share = share };
	profile_cpu(side, list, MEW_COUNTOF(list));
}

static void what_the_base_does_not_list_has_not_grown(void **state)
{
	(void)state;
	add_case();
	flat(MEW_BASE, "b0 (a.c:1)", 0.01);
	flat(MEW_HEAD, "h0 (a.c:1)", 0.01);
	says("No single function takes more", true);
}

static void what_grew_beyond_the_list_did_so_at_least(void **state)
{
	(void)state;
	add_case();
	flat(MEW_BASE, "b0 (a.c:1)", 0.01);
	flat(MEW_HEAD, "grown (a.c:1)", 0.5);
	says("| grown (a.c:1) | ns/iteration | at most 10 | 500 | at least +490 |", true);
	says("h1 ", false);
}

static void what_a_whole_list_lacks_was_not_there(void **state)
{
	const struct mew_cpu_function base = { .function = "old (a.c:1)", .share = 1 };
	const struct mew_cpu_function head[] = { { .function = "old (a.c:9)", .share = 0.6 },
						 { .function = "new (a.c:1)", .share = 0.4 } };

	(void)state;
	add_case();
	profile_cpu(MEW_BASE, &base, 1);
	profile_cpu(MEW_HEAD, head, 2);
	says("| new (a.c:1) | ns/iteration | 0 | 400 | +400 |", true);
	says("| old ", false);
}

static void names_are_told_apart_to_their_end(void **state)
{
	const struct mew_cpu_function base[] = { { .function = "void (anonymous namespace)::f<int>(int) (a.cc:3)", .share = 0.9 },
						 { .function = "void (anonymous namespace)::g<int>(int) (a.cc:7)", .share = 0.1 } };
	const struct mew_cpu_function head[] = { { .function = "void (anonymous namespace)::g<int>(int) (b.cc:8)", .share = 0.7 },
						 { .function = "void (anonymous namespace)::f<int>(int) (b.cc:4)", .share = 0.3 } };

	(void)state;
	add_case();
	profile_cpu(MEW_BASE, base, 2);
	profile_cpu(MEW_HEAD, head, 2);
	says("::g<int>(int) (b.cc:8) | ns/iteration | 100 | 700 | +600 |", true);
	says("::f<int>", false);
}

/* Two files have a static function of that name each; what one of them takes says nothing of the other. */
static void namesakes_are_told_apart_by_their_files(void **state)
{
	const struct mew_cpu_function base[] = { { .function = "work (a.c:1)", .share = 0.6 },
						 { .function = "work (b.c:1)", .share = 0.4 } };
	const struct mew_cpu_function head[] = { { .function = "work (b.c:9)", .share = 0.7 },
						 { .function = "work (a.c:9)", .share = 0.3 } };

	(void)state;
	add_case();
	profile_cpu(MEW_BASE, base, 2);
	profile_cpu(MEW_HEAD, head, 2);
	says("| work (b.c:9) | ns/iteration | 400 | 700 | +300 |", true);
	says("| work (a.c:9) |", false);
}

/* --- allocations ---------------------------------------------------------------------------------------------------- */

/* The list has the largest peaks; what stands behind it may have allocated more. */
static void bytes_that_the_base_may_have_had_are_no_growth(void **state)
{
	struct mew_memory_function list[MEW_MOST_BY_FUNCTION];
	const struct mew_memory_function head[] = { { "small (a.c:1)", 1, 5000, 1, 0 }, { "large (a.c:1)", 1, 90000, 1, 0 } };
	char names[MEW_MOST_BY_FUNCTION][24];

	(void)state;
	add_case();
	for (size_t i = 0; i < MEW_COUNTOF(list); i++) {
		(void)snprintf(names[i], sizeof names[i], "b%zu (a.c:1)", i);
		list[i] = (struct mew_memory_function){ names[i], 100, 1000, 1, 0 };
	}
	profile_memory(MEW_BASE, MEW_MOST_BY_FUNCTION * 1000 + 6000, list, MEW_COUNTOF(list));
	profile_memory(MEW_HEAD, 95000, head, 2);
	says("small", false);
	says("| large (a.c:1) | bytes/iteration | at most 600 | 9000 | at least +8400 |", true);
}

static void namesakes_allocate_by_themselves(void **state)
{
	const struct mew_memory_function base[] = { { "work (a.c:1)", 1, 6000, 1, 0 }, { "work (b.c:1)", 1, 4000, 1, 0 } };
	const struct mew_memory_function head[] = { { "work (b.c:9)", 1, 7000, 1, 0 }, { "work (a.c:9)", 1, 3000, 1, 0 } };

	(void)state;
	add_case();
	profile_memory(MEW_BASE, 10000, base, 2);
	profile_memory(MEW_HEAD, 10000, head, 2);
	says("| work (b.c:9) | bytes/iteration | 400 | 700 | +300 |", true);
	says("| work (a.c:9) |", false);
}

/* --- what could not be looked at ------------------------------------------------------------------------------------ */

static void what_could_not_be_compared_is_not_called_equal(void **state)
{
	const struct mew_cpu_function one = { .function = "f (a.c:1)", .share = 1 };

	(void)state;
	add_case();
	profile_cpu(MEW_BASE, &one, 1);
	profile_cpu(MEW_HEAD, &one, 1);
	mew_model_fail(gate.profiles[MEW_HEAD], last_case(MEW_HEAD), MEW_KIND_CPU, MEW_E_BODY, "it failed");
	says("could not be compared", true);
	says("than chance explains", false);
}

static void cases_without_room_are_counted(void **state)
{
	const struct mew_cpu_function one = { .function = "f (a.c:1)", .share = 1 };

	(void)state;
	for (int i = 0; i < 13; i++) {
		add_case();
		profile_cpu(MEW_BASE, &one, 1);
		profile_cpu(MEW_HEAD, &one, 1);
	}
	says("\n3 more cases are in the page alone.\n", true);
}

int main(void)
{
	const struct CMUnitTest gate_growth[] = {
		cmocka_unit_test_setup_teardown(what_the_base_does_not_list_has_not_grown, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(what_grew_beyond_the_list_did_so_at_least, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(what_a_whole_list_lacks_was_not_there, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(names_are_told_apart_to_their_end, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(namesakes_are_told_apart_by_their_files, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(namesakes_allocate_by_themselves, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(bytes_that_the_base_may_have_had_are_no_growth, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(what_could_not_be_compared_is_not_called_equal, open_gate, close_gate),
		cmocka_unit_test_setup_teardown(cases_without_room_are_counted, open_gate, close_gate),
	};

	return cmocka_run_group_tests_name("gate growth", gate_growth, NULL, NULL);
}
