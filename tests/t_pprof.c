/*
 * t_pprof.c - profiles of pprof, taken apart by a reader of their own: what pprof refuses, and what it silently gets
 * wrong.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fx_results.h"
#include "textual.h"
#include "writer.h"

extern const struct mew_report mew_report_pprof;

/* --- the wire format ------------------------------------------------------------------------------------------------
 */

#define MANY 256

struct bytes {
	const unsigned char *at, *end;
};

struct field {
	unsigned number;
	uint64_t value;    /* of a number */
	struct bytes data; /* of anything else */
};

static uint64_t number(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		assert_true(b->at < b->end && shift < 64);
		value |= (uint64_t)(*b->at & 127) << shift;
		if ((*b->at++ & 128) == 0)
			return value;
	}
}

static bool next(struct bytes *b, struct field *f)
{
	uint64_t tag, length;

	if (b->at == b->end)
		return false;
	tag = number(b);
	f->number = (unsigned)(tag >> 3);
	assert_true(f->number > 0 && ((tag & 7) == 0 || (tag & 7) == 2));
	if ((tag & 7) == 0) {
		f->value = number(b);
		return true;
	}
	length = number(b);
	assert_true(length <= (uint64_t)(b->end - b->at));
	f->data = (struct bytes){ b->at, b->at + length };
	b->at += length;
	return true;
}

/* The number that a message has in a field; 0 when it has none. */
static uint64_t value_of(struct bytes message, unsigned wanted)
{
	struct field f;
	uint64_t value = 0;

	while (next(&message, &f))
		if (f.number == wanted)
			value = f.value;
	return value;
}

/* The nth sub-message or packed list of a field; NULL at the end. */
static struct bytes *part_of(struct bytes message, unsigned wanted, size_t n, struct bytes *part)
{
	struct field f;

	while (next(&message, &f))
		if (f.number == wanted && n-- == 0) {
			*part = f.data;
			return part;
		}
	return NULL;
}

static size_t count_of(struct bytes message, unsigned wanted)
{
	struct field f;
	size_t n = 0;

	while (next(&message, &f))
		n += f.number == wanted;
	return n;
}

/* --- a profile ------------------------------------------------------------------------------------------------------
 */

enum { TYPES = 1, SAMPLES, MAPPINGS, LOCATIONS, FUNCTIONS, STRINGS, DURATION = 10, PERIOD_TYPE, PERIOD, COMMENTS, SHOWN };

struct profile {
	unsigned char *gzip, *data;
	size_t packed;
	struct bytes all;
	char *strings[MANY];
	size_t nstrings;
};

static void unpack(struct profile *p)
{
	z_stream z = { .next_in = p->gzip, .avail_in = (uInt)p->packed };
	size_t room = (size_t)1 << 22;

	p->data = malloc(room);
	assert_non_null(p->data);
	z.next_out = p->data;
	z.avail_out = (uInt)room;
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END); /* checks length and checksum */
	assert_int_equal(z.avail_in, 0);
	p->all = (struct bytes){ p->data, p->data + z.total_out };
	assert_int_equal(inflateEnd(&z), Z_OK);
}

static struct profile read_profile(const struct mew_model *m, size_t i, enum mew_kind kind)
{
	struct profile p = { 0 };
	struct bytes text;

	p.gzip = (unsigned char *)fx_report(&mew_report_pprof,
					    &(struct mew_report_input){ .model = m, .only_case = i, .only_kind = (int)kind },
					    &p.packed);
	unpack(&p);
	while (part_of(p.all, STRINGS, p.nstrings, &text) != NULL) {
		assert_true(p.nstrings < MANY);
		p.strings[p.nstrings++] = strndup((const char *)text.at, (size_t)(text.end - text.at));
	}
	return p;
}

static void free_profile(struct profile *p)
{
	while (p->nstrings > 0)
		free(p->strings[--p->nstrings]);
	free(p->data);
	free(p->gzip);
}

static const char *text(const struct profile *p, struct bytes message, unsigned field)
{
	uint64_t n = value_of(message, field);

	assert_true(n < p->nstrings);
	return p->strings[n];
}

/* The message of a table with this id. Fails when there is none, or more than one. */
static struct bytes by_id(const struct profile *p, unsigned table, uint64_t id)
{
	struct bytes message, found = { NULL, NULL };

	assert_true(id != 0);
	for (size_t i = 0; part_of(p->all, table, i, &message) != NULL; i++)
		if (value_of(message, 1) == id) {
			assert_null(found.at);
			found = message;
		}
	assert_non_null(found.at);
	return found;
}

static size_t values_of(struct bytes sample, unsigned field, uint64_t *out)
{
	struct bytes list;
	size_t n = 0;

	if (part_of(sample, field, 0, &list) == NULL)
		return 0;
	while (list.at < list.end) {
		assert_true(n < MANY);
		out[n++] = number(&list);
	}
	return n;
}

/* "inner<outer<...": the functions of a sample, innermost first. */
static void stack_of(const struct profile *p, struct bytes sample, char *out, size_t size)
{
	uint64_t ids[MANY];
	size_t n = values_of(sample, 1, ids), used = 0;

	*out = '\0';
	for (size_t i = 0; i < n; i++) {
		struct bytes location = by_id(p, LOCATIONS, ids[i]), line;

		for (size_t k = 0; part_of(location, 4, k, &line) != NULL; k++)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used == 0 ? "" : "<",
						 text(p, by_id(p, FUNCTIONS, value_of(line, 1)), 2));
	}
}

static uint64_t sum_of(const struct profile *p, const char *type)
{
	size_t column = MANY;
	struct bytes message;
	uint64_t sum = 0, values[MANY];

	for (size_t i = 0; part_of(p->all, TYPES, i, &message) != NULL; i++)
		if (strcmp(text(p, message, 1), type) == 0)
			column = i;
	assert_true(column < MANY);
	for (size_t i = 0; part_of(p->all, SAMPLES, i, &message) != NULL; i++) {
		assert_true(values_of(message, 2, values) > column);
		sum += values[column];
	}
	return sum;
}

/* --- what pprof refuses, or takes and gets wrong --------------------------------------------------------------------
 */

static void check_strings(const struct profile *p)
{
	assert_true(p->nstrings > 0);
	assert_string_equal(p->strings[0], "");
	for (size_t i = 0; i < p->nstrings; i++)
		for (size_t n, at = 0; p->strings[i][at] != '\0'; at += n) {
			uint32_t code = mew_utf8_next(p->strings[i] + at, &n);

			assert_true(code != MEW_BAD_CHARACTER && code >= 0x20 && code != 0x7f);
		}
}

static void check_location(const struct profile *p, struct bytes location)
{
	uint64_t mapping = value_of(location, 2), address = value_of(location, 3);
	struct bytes line;

	assert_true(count_of(location, 4) > 0); /* shown as [binary] otherwise */
	for (size_t i = 0; part_of(location, 4, i, &line) != NULL; i++)
		assert_string_not_equal(text(p, by_id(p, FUNCTIONS, value_of(line, 1)), 2), "");
	if (mapping != 0) {
		struct bytes m = by_id(p, MAPPINGS, mapping);

		assert_true(address >= value_of(m, 2) && address < value_of(m, 3));
	}
}

static void check_samples(const struct profile *p)
{
	size_t types = count_of(p->all, TYPES);
	struct bytes sample, label;
	uint64_t list[MANY];

	for (size_t i = 0; part_of(p->all, SAMPLES, i, &sample) != NULL; i++) {
		size_t n = values_of(sample, 1, list);

		assert_true(n > 0);
		while (n > 0)
			check_location(p, by_id(p, LOCATIONS, list[--n]));
		assert_int_equal(values_of(sample, 2, list), types);
		for (n = 0; part_of(sample, 3, n, &label) != NULL; n++) {
			assert_string_not_equal(text(p, label, 1), "");
			for (size_t k = 0; k < n; k++) { /* one value for each key */
				struct bytes other;

				assert_non_null(part_of(sample, 3, k, &other));
				assert_true(value_of(other, 1) != value_of(label, 1));
			}
		}
	}
}

static void check_profile(const struct profile *p)
{
	struct bytes a, b;

	check_strings(p);
	check_samples(p);
	for (size_t i = 0; part_of(p->all, TYPES, i, &a) != NULL; i++)
		for (size_t k = 0; k < i; k++) { /* of two types of one name the second cannot be reached */
			assert_non_null(part_of(p->all, TYPES, k, &b));
			assert_true(value_of(a, 1) != value_of(b, 1));
		}
	assert_true(value_of(p->all, SHOWN) == value_of(a, 1)); /* the last */
	for (size_t i = 0; part_of(p->all, MAPPINGS, i, &a) != NULL; i++)
		for (unsigned field = 7; field <= 10; field++) /* else pprof looks names up by itself */
			assert_int_equal(value_of(a, field), 1);
	for (unsigned table = MAPPINGS; table <= FUNCTIONS; table++)
		for (size_t i = 0; part_of(p->all, table, i, &a) != NULL; i++)
			(void)by_id(p, table, value_of(a, 1));
}

/* --- tests ----------------------------------------------------------------------------------------------------------
 */

static struct profile sample(enum mew_kind kind)
{
	struct mew_model *m = fx_results();
	struct profile p = read_profile(m, 0, kind);

	mew_model_free(m);
	check_profile(&p);
	return p;
}

static void sums_are_kept(void **state)
{
	struct profile cpu = sample(MEW_KIND_CPU), memory = sample(MEW_KIND_MEMORY);

	(void)state;
	assert_int_equal(sum_of(&cpu, "samples"), 6);
	assert_int_equal(sum_of(&cpu, "wall"), 550007);
	assert_int_equal(sum_of(&memory, "alloc_objects"), 13);
	assert_int_equal(sum_of(&memory, "alloc_space"), 9344);
	assert_int_equal(sum_of(&memory, "inuse_space"), 512);
	assert_int_equal(sum_of(&memory, "peak_space"), 4608);
	assert_string_equal(cpu.strings[value_of(cpu.all, SHOWN)], "wall");
	assert_string_equal(memory.strings[value_of(memory.all, SHOWN)], "peak_space");
	free_profile(&cpu);
	free_profile(&memory);
}

static void inlined_functions_come_before_their_callers(void **state)
{
	struct profile p = sample(MEW_KIND_CPU);
	struct bytes message;
	char stack[1024];

	(void)state;
	assert_non_null(part_of(p.all, SAMPLES, 1, &message));
	stack_of(&p, message, stack, sizeof stack);
	assert_string_equal(stack, "libz.so.1+0xbe00<copy;<match> <inflate<main");
	free_profile(&p);
}

static void period_and_clock_are_the_samplers(void **state)
{
	struct mew_model *m = fx_results_open();
	struct profile p = sample(MEW_KIND_CPU);
	struct bytes type;

	(void)state;
	assert_int_equal(value_of(p.all, PERIOD), 100000);
	assert_int_equal(value_of(p.all, DURATION), 125000000);
	assert_non_null(part_of(p.all, PERIOD_TYPE, 0, &type));
	assert_string_equal(text(&p, type, 1), "wall");
	assert_string_equal(text(&p, type, 2), "nanoseconds");
	free_profile(&p);
	mew_model_text(m, &m->cases[0], MEW_KIND_CPU, MEW_FIG_CLOCK, "cpu");
	mew_model_seal(m);
	p = read_profile(m, 0, MEW_KIND_CPU);
	assert_int_equal(sum_of(&p, "cpu"), 550007);
	free_profile(&p);
	mew_model_free(m);
}

static void modules_are_mappings_the_program_first(void **state)
{
	struct profile p = sample(MEW_KIND_CPU);
	struct bytes first;

	(void)state;
	assert_int_equal(count_of(p.all, MAPPINGS), 2);
	assert_non_null(part_of(p.all, MAPPINGS, 0, &first));
	assert_string_equal(text(&p, first, 5), "/home/me/codec_bench");
	assert_string_equal(text(&p, first, 6), "00aabb");
	free_profile(&p);
}

/* Same stack, other thread or state: a sample of its own. */
static void threads_and_states_are_labels(void **state)
{
	struct profile p = sample(MEW_KIND_CPU);
	struct bytes one, label;
	size_t blocked = 0, second = 0;

	(void)state;
	for (size_t i = 0; part_of(p.all, SAMPLES, i, &one) != NULL; i++)
		for (size_t k = 0; part_of(one, 3, k, &label) != NULL; k++) {
			blocked += strcmp(text(&p, label, 2), "blocked") == 0;
			second += strcmp(text(&p, label, 1), "thread") == 0 && strcmp(text(&p, label, 2), "1") == 0;
		}
	assert_int_equal(blocked, 1);
	assert_int_equal(second, 3);
	free_profile(&p);
}

/* Names that are no text, places that are in no address space, weights that no signed number holds. */
static void nothing_in_a_model_breaks_the_file(void **state)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "\xff\n", NULL);
	uint32_t module = mew_model_module(m, "/lib/\xc3(.so", "ab", UINT64_MAX, false), locations[4];
	struct profile p;

	(void)state;
	mew_model_row(m, c, MEW_KIND_CPU);
	locations[0] = mew_model_location(m, module, UINT64_MAX);
	locations[1] = mew_model_location(m, module, 0);
	locations[2] = mew_model_location(m, MEW_NO_MODULE, UINT64_MAX);
	locations[3] = mew_model_location(m, module, 77);
	assert_int_equal(mew_model_set_lines(m, locations[3], &(struct mew_line){
				 mew_model_function(m, "f\t\xed\xa0\x80\x01", "\xf0", UINT32_MAX, module), UINT32_MAX }, 1), 0);
	assert_int_equal(mew_model_stack(m, locations, 4), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ .weight_ns = UINT64_MAX - i }), 0);
	assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ .stack = 12345, .weight_ns = 1 }), 0);
	mew_model_seal(m);
	p = read_profile(m, 0, MEW_KIND_CPU);
	check_profile(&p);
	assert_int_equal(sum_of(&p, "wall"), (uint64_t)INT64_MAX + 1); /* the row that is full, and the one without a stack */
	free_profile(&p);
	mew_model_free(m);
}

static void same_model_same_bytes(void **state)
{
	struct profile a = sample(MEW_KIND_MEMORY), b = sample(MEW_KIND_MEMORY);

	(void)state;
	assert_int_equal(a.packed, b.packed);
	assert_memory_equal(a.gzip, b.gzip, a.packed);
	assert_memory_equal(a.gzip + 4, "\0\0\0\0", 4); /* no date */
	free_profile(&a);
	free_profile(&b);
}

static void no_stacks_is_a_profile_without_samples(void **state)
{
	struct mew_model *m = fx_results();
	struct profile p = read_profile(m, 3, MEW_KIND_CPU);

	(void)state;
	check_strings(&p);
	assert_int_equal(count_of(p.all, SAMPLES), 0);
	assert_int_equal(count_of(p.all, TYPES), 2);
	free_profile(&p);
	mew_model_free(m);
}

static void other_kinds_are_refused(void **state)
{
	struct mew_model *m = fx_results();
	struct mew_report_input in = { .model = m, .only_kind = MEW_KIND_TIME };
	struct mew_error err = { .status = MEW_OK };
	struct mew_writer w;

	(void)state;
	mew_writer_memory(&w);
	assert_int_equal(mew_report_pprof.write(&in, &w, &err), MEW_E_INVALID);
	assert_non_null(strstr(err.text, "--cpu"));
	in = (struct mew_report_input){ .model = m, .only_case = 99, .only_kind = MEW_KIND_CPU };
	assert_int_equal(mew_report_pprof.write(&in, &w, &err), MEW_E_INVALID);
	free(mew_writer_take(&w, NULL));
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_kept),
		cmocka_unit_test(inlined_functions_come_before_their_callers),
		cmocka_unit_test(period_and_clock_are_the_samplers),
		cmocka_unit_test(modules_are_mappings_the_program_first),
		cmocka_unit_test(threads_and_states_are_labels),
		cmocka_unit_test(nothing_in_a_model_breaks_the_file),
		cmocka_unit_test(same_model_same_bytes),
		cmocka_unit_test(no_stacks_is_a_profile_without_samples),
		cmocka_unit_test(other_kinds_are_refused),
	};

	return cmocka_run_group_tests_name("pprof", tests, NULL, NULL);
}
