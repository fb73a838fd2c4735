/*
 * t_json_list.c - the list that is read item by item: found where a parser would find it, walked to its end, and every
 * fault in or around it named with its line.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "error.h"
#include "json_list.h"
#include "read_json.h"

/* The items of "list" with a bar behind each, in an object that must hold it. */
static void holds(const char *text, const char *items)
{
	struct mew_json_span list, item;
	char got[256] = "";
	size_t at, used = 0;

	if (!mew_json_find_list(text, strlen(text), "list", &list))
		fail_msg("not found: %s", text);
	at = list.from;
	while (mew_json_next_item(text, &list, &at, &item)) {
		assert_true(used + (item.to - item.from) + 2 < sizeof got);
		memcpy(got + used, text + item.from, item.to - item.from);
		used += item.to - item.from;
		got[used++] = '|';
	}
	got[used] = '\0';
	assert_string_equal(got, items);
}

static void lacks(const char *text)
{
	struct mew_json_span list;

	for (size_t bytes = strlen(text) + 1; bytes-- > 0;)
		if (mew_json_find_list(text, bytes, "list", &list))
			fail_msg("found in the first %zu bytes of %s", bytes, text);
}

static void found_and_walked(void **state)
{
	(void)state;
	holds("{\"list\":[]}", "");
	holds(" { \"list\" : [ \n ] } ", "");
	holds("{\"list\":[1]}", "1|");
	holds("{\"a\":{\"list\":[9]},\"list\":[{\"x\":[1,2]},\"],\\\"}\",[[]]],\"b\":\"\\\\\"}", "{\"x\":[1,2]}|\"],\\\"}\"|[[]]|");
	holds("{\"list\":[1],\"list\":[2, 3]}", "2| 3|");
	holds("{\"list\":[1,]}", "1||");
	holds("{\"list\":[,1]}", "|1|");
}

static void not_there(void **state)
{
	(void)state;
	lacks("");
	lacks("[{\"list\":[]}]");
	lacks("{\"lis\":[],\"listing\":[],\"a\":\"list\"}");
	lacks("{\"list\":{\"a\":[1]}}");
	lacks("{\"list\":[1],\"list\":7}");
	lacks("{\"list\":[1]");
	lacks("{\"list\":[1}}");
	lacks("{\"list\" [1]}");
	lacks("{list:[1]}");
	lacks("{\"list\":[\"\\");
}

#define CASE(key) "{\"key\": \"" key "\", \"threads\": 1, \"bytes_per_iteration\": 0, \"items_per_iteration\": 0}"
#define HEAD "{\n\"schema\": 1,\n\"mew\": \"0\",\n\"cases\": "

static void refused(const char *text, const char *why)
{
	struct mew_error err = { .status = MEW_OK };

	if (mew_read_json_text("x.json", text, strlen(text), &err) != NULL)
		fail_msg("taken: %s", text);
	if (strstr(err.text, why) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, why);
}

static void faults_have_their_line(void **state)
{
	(void)state;
	refused(HEAD "[\n" CASE("a") ",\n{\"key\": }]}", "line 6, column 9");
	refused(HEAD "[\n" CASE("a") ",\n\n" CASE("b") "],\n\"hooks\": }", "line 8, column 10");
	refused(HEAD "[" CASE("a") ",]}", "not sound JSON: line 4");
	refused(HEAD "[" CASE("a") " " CASE("b") "]}", "not sound JSON: line 4");
	refused(HEAD "[" CASE("a") ",\n" CASE("b"), "not sound JSON: line 5");
	refused(HEAD "[" CASE("a") ", 7]}", "case 1");
	refused("{\"schema\": 1, \"c\\u0061ses\": [" CASE("a") "]}", "'cases' must be a list under a name without escapes");
}

static void order_does_not_matter(void **state)
{
	static const char text[] = "{\"cases\": [" CASE("a") "," CASE("b") "], \"mew\": \"0\", \"schema\": 1}";
	struct mew_error err = { .status = MEW_OK };
	struct mew_model *m = mew_read_json_text("x.json", text, sizeof text - 1, &err);

	(void)state;
	if (m == NULL)
		fail_msg("%s", err.text);
	assert_int_equal(m->ncases, 2);
	assert_string_equal(m->cases[1].key, "b");
	mew_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_and_walked),
		cmocka_unit_test(not_there),
		cmocka_unit_test(faults_have_their_line),
		cmocka_unit_test(order_does_not_matter),
	};

	return cmocka_run_group_tests_name("json_list", tests, NULL, NULL);
}
