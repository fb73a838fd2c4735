/*
 * t_folded.c - collapsed stacks: what flame graph tools would otherwise misread or lose.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "fx_results.h"
#include "writer.h"

extern const struct mew_report mew_report_folded;

static char *folded_of(const struct mew_model *m, size_t i, enum mew_kind kind)
{
	return fx_report(&mew_report_folded,
			 &(struct mew_report_input){ .model = m, .only_case = i, .only_kind = (int)kind }, NULL);
}

static char *sample(enum mew_kind kind)
{
	struct mew_model *m = fx_results();
	char *text = folded_of(m, 0, kind);

	mew_model_free(m);
	return text;
}

/* The count of the line with exactly this stack; 0 when there is none. */
static uint64_t count_of(const char *text, const char *stack)
{
	size_t length = strlen(stack);

	for (; *text != '\0'; text += strcspn(text, "\n") + 1)
		if (strncmp(text, stack, length) == 0 && text[length] == ' ')
			return strtoull(text + length, NULL, 10);
	return 0;
}

static uint64_t sum_of(const char *text)
{
	uint64_t sum = 0;

	for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
		char *line = strndup(text, strcspn(text, "\n")), *count = strrchr(line, ' '), *end;

		assert_non_null(count);
		sum += strtoull(count + 1, &end, 10);
		assert_true(*end == '\0' && end > count + 1); /* a whole number after the last blank */
		free(line);
	}
	return sum;
}

static void looks_as_agreed(void **state)
{
	char *cpu = sample(MEW_KIND_CPU), *memory = sample(MEW_KIND_MEMORY);

	(void)state;
	fx_golden("cpu.folded", cpu);
	fx_golden("memory.folded", memory);
	free(cpu);
	free(memory);
}

static void sums_are_kept(void **state)
{
	char *cpu = sample(MEW_KIND_CPU), *memory = sample(MEW_KIND_MEMORY);

	(void)state;
	assert_int_equal(sum_of(cpu), 550007);   /* nanoseconds of all samples */
	assert_int_equal(sum_of(memory), 4608); /* bytes at the high-water mark */
	free(cpu);
	free(memory);
}

/* Two places in the same functions read alike: one line. Inlined functions stand inside the one they were inlined into.
 */
static void inlined_functions_are_frames(void **state)
{
	char *text = sample(MEW_KIND_CPU);

	(void)state;
	assert_int_equal(count_of(text, "zlib/inflate [1k];main;inflate;copy:<match> "), 250000);
	free(text);
}

static void nameless_places_are_told_apart(void **state)
{
	char *text = sample(MEW_KIND_CPU);

	(void)state;
	assert_int_equal(count_of(text, "zlib/inflate [1k];main;inflate;copy:<match> ;libz.so.1+0xbe00"), 100000);
	assert_int_equal(count_of(text, "zlib/inflate [1k];main;[unknown]"), 100000); /* an empty name */
	assert_int_equal(count_of(text, "zlib/inflate [1k];main;0xfffffffffffffff0"), 7);
	assert_int_equal(count_of(text, "zlib/inflate [1k];[no stack: it could not be unwound]"), 100000);
	free(text);
}

static void zeros_are_left_out(void **state)
{
	char *text = sample(MEW_KIND_MEMORY);

	(void)state;
	assert_null(strstr(text, " 0\n"));
	assert_null(strstr(text, "0xfffffffffffffff0")); /* nothing alive there at the peak */
	free(text);
}

static void no_name_can_break_a_line(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "a;b\n\xff", NULL);
	const uint32_t location = mew_model_location(m, MEW_NO_MODULE, 1);
	char *text;

	(void)state;
	mew_model_row(m, c, MEW_KIND_CPU);
	assert_int_equal(mew_model_set_lines(m, location, &(struct mew_line){
				 mew_model_function(m, "f\r\n\tg; 12", "", 0, MEW_NO_MODULE), 0 }, 1), 0);
	assert_int_equal(mew_model_stack(m, &location, 1), 0);
	assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ .weight_ns = 5 }), 0);
	mew_model_seal(m);
	text = folded_of(m, 0, MEW_KIND_CPU);
	assert_string_equal(text, "a:b \xef\xbf\xbd;f   g: 12 5\n");
	free(text);
	mew_model_free(m);
}

static void order_does_not_depend_on_the_run(void **state)
{
	struct mew_model *m[2];
	char *text[2];

	(void)state;
	for (uint32_t k = 0; k < 2; k++) {
		struct mew_case *c;

		m[k] = mew_model_new();
		c = mew_model_case(m[k], "case", NULL);
		for (uint32_t i = 0; i < 50; i++) {
			uint32_t location = mew_model_location(m[k], MEW_NO_MODULE, k == 0 ? i : 49 - i);
			uint32_t stack = mew_model_stack(m[k], &location, 1);
			struct mew_cpu_sample s = { .stack = stack, .weight_ns = 1 };

			assert_int_equal(mew_model_add_sample(c, &s), 0);
		}
		mew_model_seal(m[k]);
		text[k] = folded_of(m[k], 0, MEW_KIND_CPU);
	}
	assert_string_equal(text[0], text[1]);
	for (int k = 0; k < 2; k++) {
		free(text[k]);
		mew_model_free(m[k]);
	}
}

static void nothing_is_an_empty_file(void **state)
{
	struct mew_model *m = fx_results();
	char *text = folded_of(m, 3, MEW_KIND_CPU);

	(void)state;
	assert_string_equal(text, "");
	free(text);
	mew_model_free(m);
}

static void other_kinds_are_refused(void **state)
{
	struct mew_model *m = fx_results();
	struct mew_error err = { .status = MEW_OK };
	struct mew_writer w;

	(void)state;
	mew_writer_memory(&w);
	assert_int_equal(
		mew_report_folded.write(&(struct mew_report_input){ .model = m, .only_kind = MEW_KIND_TIME }, &w, &err),
		MEW_E_INVALID);
	assert_non_null(strstr(err.text, "--cpu"));
	assert_int_equal(mew_report_folded.write(&(struct mew_report_input){ .model = m, .only_case = 99,
									      .only_kind = MEW_KIND_CPU }, &w, &err),
			 MEW_E_INVALID);
	free(mew_writer_take(&w, NULL));
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks_as_agreed),
		cmocka_unit_test(sums_are_kept),
		cmocka_unit_test(inlined_functions_are_frames),
		cmocka_unit_test(nameless_places_are_told_apart),
		cmocka_unit_test(zeros_are_left_out),
		cmocka_unit_test(no_name_can_break_a_line),
		cmocka_unit_test(order_does_not_depend_on_the_run),
		cmocka_unit_test(nothing_is_an_empty_file),
		cmocka_unit_test(other_kinds_are_refused),
	};

	return cmocka_run_group_tests_name("folded", tests, NULL, NULL);
}
