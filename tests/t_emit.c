/*
 * t_emit.c - what the emitter writes is JSON to a strict parser (jansson), whatever text and numbers go in.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

#define BAD "\xef\xbf\xbd"

static struct mew_writer writer;

static void begin(struct mew_json *j, unsigned pretty_depth)
{
	mew_writer_memory(&writer);
	mew_json_init(j, &writer, pretty_depth);
}

static char *end(void)
{
	char *text = mew_writer_take(&writer, NULL);

	assert_non_null(text);
	return text;
}

static void end_as(const char *want)
{
	char *text = end();

	assert_string_equal(text, want);
	free(text);
}

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *v = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);

	if (v == NULL)
		fail_msg("%s at byte %d of %s", e.text, e.position, text);
	return v;
}

static void mixed(struct mew_json *j)
{
	mew_json_object(j);
	mew_json_key(j, "name");
	mew_json_string(j, "a");
	mew_json_key(j, "none");
	mew_json_string(j, NULL);
	mew_json_key(j, "empty");
	mew_json_array(j);
	mew_json_array_end(j);
	mew_json_key(j, "list");
	mew_json_array(j);
	mew_json_u64(j, 1);
	mew_json_i64(j, -2);
	mew_json_f64(j, 0.5);
	mew_json_object(j);
	mew_json_object_end(j);
	mew_json_bool(j, true);
	mew_json_bool(j, false);
	mew_json_null(j);
	mew_json_array_end(j);
	mew_json_key(j, "in");
	mew_json_object(j);
	mew_json_key(j, "x");
	mew_json_u64(j, 3);
	mew_json_object_end(j);
	mew_json_object_end(j);
}

/* Exact, without a point where there is nothing behind it. */
static void test_milliseconds(void **state)
{
	static const uint64_t ns[] = { 0, 1, 100000, 1000000, 12345678, 1000000001, UINT64_MAX };
	struct mew_json j;

	(void)state;
	begin(&j, 0);
	mew_json_array(&j);
	for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
		mew_json_ms(&j, ns[i]);
	mew_json_array_end(&j);
	end_as("[0,0.000001,0.1,1,12.345678,1000.000001,18446744073709.551615]");
}

static void test_compact(void **state)
{
	struct mew_json j;

	(void)state;
	begin(&j, 0);
	mixed(&j);
	end_as("{\"name\":\"a\",\"none\":null,\"empty\":[],\"list\":[1,-2,0.5,{},true,false,null],\"in\":{\"x\":3}}");
}

static void test_pretty(void **state)
{
	struct mew_json j;

	(void)state;
	begin(&j, 1);
	mixed(&j);
	end_as("{\n\t\"name\": \"a\",\n\t\"none\": null,\n\t\"empty\": [],\n"
	       "\t\"list\": [1,-2,0.5,{},true,false,null],\n"
	       "\t\"in\": {\"x\":3}\n}");
	begin(&j, 2);
	mixed(&j);
	end_as("{\n\t\"name\": \"a\",\n\t\"none\": null,\n\t\"empty\": [],\n"
	       "\t\"list\": [\n\t\t1,\n\t\t-2,\n\t\t0.5,\n\t\t{},\n"
	       "\t\ttrue,\n\t\tfalse,\n\t\tnull\n\t],\n\t\"in\": {\n\t\t\"x\": 3\n\t}\n}");
}

static void test_pretty_changes_nothing(void **state)
{
	json_t *want = NULL;

	(void)state;
	for (unsigned depth = 0; depth < 5; depth++) {
		struct mew_json j;
		json_t *v;
		char *text;

		begin(&j, depth);
		mixed(&j);
		text = end();
		v = parse(text);
		if (want == NULL)
			want = json_incref(v);
		assert_true(json_equal(v, want));
		json_decref(v);
		free(text);
	}
	json_decref(want);
}

/* Text goes in as a value and as a key; the parser must give `want` back. */
static void reads_back(const char *text, const char *want)
{
	struct mew_json j;
	json_t *v;
	char *out;

	begin(&j, 0);
	mew_json_object(&j);
	mew_json_key(&j, text);
	mew_json_string(&j, text);
	mew_json_object_end(&j);
	out = end();
	v = parse(out);
	assert_int_equal(json_object_size(v), 1);
	assert_string_equal(json_object_iter_key(json_object_iter(v)), want);
	assert_string_equal(json_string_value(json_object_iter_value(json_object_iter(v))), want);
	assert_null(strstr(out, "</"));
	assert_null(strstr(out, "<!"));
	json_decref(v);
	free(out);
}

static void test_hostile_text(void **state)
{
	static const char wide[] = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x88 \xe2\x80\xa8";
	static const char edges[] = "\x7f \xc2\x80 \xef\xbf\xbf \xf4\x8f\xbf\xbf";
	char every[256];

	(void)state;
	for (int i = 1; i < 128; i++)
		every[i - 1] = (char)i;
	every[127] = '\0';
	reads_back(every, every);
	reads_back("", "");
	reads_back("say \"no\" to C:\\dir\\", "say \"no\" to C:\\dir\\");
	reads_back("</script><!--<script>", "</script><!--<script>");
	reads_back("std::vector<int> <", "std::vector<int> <");
	reads_back(wide, wide);
	reads_back(edges, edges);
}

static void test_escapes_as_written(void **state)
{
	struct mew_writer *w = &writer;

	(void)state;
	mew_writer_memory(w);
	mew_write_json_escaped(w, "a\n\t\r\b\f\x01\x1f\"\\/<b></b><!");
	end_as("a\\n\\t\\r\\b\\f\\u0001\\u001f\\\"\\\\/<b>\\u003c/b>\\u003c!");
}

/* Chapter 3.9 of the Unicode standard, tables 3-8 to 3-11: one U+FFFD for each maximal part. */
static void test_bad_utf8(void **state)
{
	(void)state;
	reads_back("\x80", BAD);
	reads_back("a\xff\xfe z", "a" BAD BAD " z");
	reads_back("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82 A", BAD BAD BAD BAD BAD BAD BAD BAD " A");
	reads_back("\xed\xa0\x80\xed\xbf\xbf", BAD BAD BAD BAD BAD BAD);
	reads_back("\xf4\x91\x92\x93\xf5 A", BAD BAD BAD BAD BAD " A");
	reads_back("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf A", BAD BAD BAD BAD " A");
	reads_back("cut \xe2\x82", "cut " BAD);
	reads_back("cut \xf0\x9f\x90", "cut " BAD);
	reads_back("\xe2\"\xc3\\\xf0\n", BAD "\"" BAD "\\" BAD "\n");
}

static void test_random_bytes(void **state)
{
	uint32_t x = 2463534242u;

	(void)state;
	for (int turn = 0; turn < 3000; turn++) {
		unsigned char text[41];
		struct mew_json j;
		char *out;

		for (size_t i = 0; i < sizeof text - 1; i++) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
			text[i] = (unsigned char)((x >> 8) % 255 + 1);
			if (turn % 2 != 0) /* mostly lead and continuation bytes */
				text[i] |= 0x80;
		}
		text[sizeof text - 1] = '\0';
		begin(&j, 0);
		mew_json_string(&j, (const char *)text);
		out = end();
		json_decref(parse(out));
		free(out);
	}
}

static void test_numbers(void **state)
{
	static const double odd[] = { 0, -0.0, 1e15, -1e300, 5e-324, 1.7976931348623157e308, 0.1 };
	struct mew_json j;
	json_t *v;
	char *out;

	(void)state;
	begin(&j, 0);
	mew_json_array(&j);
	for (size_t i = 0; i < MEW_COUNTOF(odd); i++)
		mew_json_f64(&j, odd[i]);
	mew_json_f64(&j, (double)NAN);
	mew_json_f64(&j, (double)INFINITY);
	mew_json_f64(&j, -(double)INFINITY);
	mew_json_i64(&j, INT64_MIN);
	mew_json_i64(&j, INT64_MAX);
	mew_json_array_end(&j);
	out = end();
	v = parse(out);
	for (size_t i = 0; i < MEW_COUNTOF(odd); i++)
		assert_true(json_number_value(json_array_get(v, i)) == odd[i]);
	for (size_t i = 0; i < 3; i++)
		assert_true(json_is_null(json_array_get(v, MEW_COUNTOF(odd) + i)));
	assert_true(json_integer_value(json_array_get(v, MEW_COUNTOF(odd) + 3)) == INT64_MIN);
	assert_true(json_integer_value(json_array_get(v, MEW_COUNTOF(odd) + 4)) == INT64_MAX);
	json_decref(v);
	free(out);
	begin(&j, 0);
	mew_json_u64(&j, UINT64_MAX);
	end_as("18446744073709551615");
}

static void test_a_document_a_line(void **state)
{
	struct mew_json j;

	(void)state;
	begin(&j, 0);
	mew_json_object(&j);
	mew_json_object_end(&j);
	mew_json_array(&j);
	mew_json_array_end(&j);
	mew_json_u64(&j, 7);
	end_as("{}\n[]\n7");
}

/* 63 levels work; one more, an end too many, or a key without a value fail the document instead of spoiling it. */
static void test_misuse_is_an_error(void **state)
{
	struct mew_json j;
	char *out;

	(void)state;
	begin(&j, 0);
	for (int i = 0; i < 63; i++)
		mew_json_array(&j);
	for (int i = 0; i < 63; i++)
		mew_json_array_end(&j);
	out = end();
	json_decref(parse(out));
	free(out);
	begin(&j, 0);
	for (int i = 0; i < 64; i++)
		mew_json_array(&j);
	assert_int_equal(mew_writer_finish(&writer), EOVERFLOW);
	assert_null(mew_writer_take(&writer, NULL));
	begin(&j, 0);
	mew_json_array_end(&j);
	assert_int_equal(mew_writer_finish(&writer), EINVAL);
	assert_null(mew_writer_take(&writer, NULL));
	begin(&j, 0);
	mew_json_object(&j);
	mew_json_key(&j, "k");
	mew_json_object_end(&j);
	assert_int_equal(mew_writer_finish(&writer), EINVAL);
	assert_null(mew_writer_take(&writer, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_milliseconds),
		cmocka_unit_test(test_pretty),
		cmocka_unit_test(test_pretty_changes_nothing),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_escapes_as_written),
		cmocka_unit_test(test_bad_utf8),
		cmocka_unit_test(test_random_bytes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_a_document_a_line),
		cmocka_unit_test(test_misuse_is_an_error),
	};

	return cmocka_run_group_tests_name("emit", tests, NULL, NULL);
}
