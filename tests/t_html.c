/*
 * t_html.c - the HTML report as bytes: what the page holds, that names cannot leave its data, and what it does without memory.
 * The page itself is tried in a browser by browser.sh.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fx_html.h"
#include "fx_html_read.h"
#include "writer.h"

#define VIEWER_LIMIT_BYTES (60 * 1024)

extern const struct mew_report mew_report_html;

/* --- making the n-th allocation fail ---------------------------------------------------------------------------- */

#ifndef __has_feature /* a way to ask clang */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#else
#define OWN_MALLOC 1
#endif

#if OWN_MALLOC
static long allocations_left = -1; /* negative: all succeed */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static bool refuse(void)
{
	if (allocations_left < 0)
		return false;
	if (allocations_left == 0)
		return true;
	allocations_left--;
	return false;
}

void *malloc(size_t bytes)
{
	return refuse() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return refuse() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return refuse() ? NULL : __libc_realloc(old, bytes);
}
#endif

/* --- the page --------------------------------------------------------------------------------------------------- */

static void report_describes_itself(void **state)
{
	(void)state;
	assert_int_equal(mew_report_html.abi, MEW_REPORT_ABI);
	assert_string_equal(mew_report_html.name, "html");
	assert_string_equal(mew_report_html.suffix, ".html");
	assert_int_equal(mew_report_html.shape, MEW_REPORT_FILE);
	assert_int_equal(mew_report_html.needs_symbols, 1);
}

static void viewer_is_small_and_asks_nobody(void **state)
{
	struct mew_model *m = fx_html_model("empty", 0);
	size_t bytes;
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, &bytes);

	(void)state;
	assert_memory_equal(page, "<!doctype html>", 15);
	assert_non_null(strstr(page, "content=\"default-src 'none'; script-src 'sha256-"));
	assert_null(strstr(page, "unsafe-inline"));
	assert_null(strstr(page, "://"));
	assert_in_range(bytes - strcspn(fx_html_data(page), "\n"), 1, VIEWER_LIMIT_BYTES);
	free(page);
	mew_model_free(m);
}

static void same_model_gives_the_same_bytes(void **state)
{
	struct mew_model *a = fx_html_model("codec", 0), *b = fx_html_model("codec", 0);
	size_t na, nb;
	char *pa = fx_html_page(&(struct mew_report_input){ .model = a }, &na), *pb = fx_html_page(&(struct mew_report_input){ .model = b }, &nb);

	(void)state;
	assert_int_equal(na, nb);
	assert_memory_equal(pa, pb, na);
	free(pa);
	free(pb);
	mew_model_free(a);
	mew_model_free(b);
}

/* Whatever the names are, the page around the data is the same. */
static void names_stay_inside_the_data(void **state)
{
	struct mew_model *hostile = fx_html_model("hostile", 0), *empty = fx_html_model("empty", 0);
	char *a = fx_html_page(&(struct mew_report_input){ .model = hostile }, NULL), *b = fx_html_page(&(struct mew_report_input){ .model = empty }, NULL);
	const char *data = fx_html_data(a), *after = data;

	(void)state;
	while (fx_html_digit(*after) >= 0 || *after == '=' || *after == '\n')
		after++;
	assert_int_equal(data - a, fx_html_data(b) - b);
	assert_memory_equal(a, b, (size_t)(data - a));
	assert_string_equal(after, strstr(fx_html_data(b), "</script>"));
	free(a);
	free(b);
	mew_model_free(hostile);
	mew_model_free(empty);
}

static void hostile_names_arrive_whole(void **state)
{
	struct mew_model *m = fx_html_model("hostile", 0);
	char *page = fx_html_page(&(struct mew_report_input){ .model = m }, NULL);
	json_t *header = fx_html_header(page), *names = json_object_get(json_object_get(header, "functions"), "name");

	(void)state;
	for (size_t i = 0; fx_html_hostile_names[i] != NULL; i++)
		if (strncmp(fx_html_hostile_names[i], "cut short", 9) != 0 && *fx_html_hostile_names[i] != '\0')
			assert_true(fx_html_has(names, fx_html_hostile_names[i]));
	assert_true(fx_html_has(names, "[unknown]"));
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* Lines around a place that samples hit are carried, those far from it are not, nor is a file that is not there. */
static void source_is_carried_on_request(void **state)
{
	char name[] = "/tmp/mew-source-XXXXXX";
	FILE *file = fdopen(mkstemp(name), "w");
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "source", NULL);
	uint32_t module = mew_model_module(m, "/bin/x", "", 4096, false), place[2];
	const struct mew_line lines[] = { { mew_model_function(m, "hot", name, 1, module), 50 },
					  { mew_model_function(m, "far", "/nowhere/far.c", 1, module), 3 } };
	const struct mew_report_input in = { .model = m, .embed_source = 1 };
	json_t *header, *source, *span;
	unsigned char *text;
	size_t bytes;
	char *page;

	(void)state;
	assert_non_null(file);
	for (int i = 1; i <= 100; i++)
		(void)fprintf(file, "line %d </script>\n", i);
	assert_int_equal(fclose(file), 0);
	for (uint32_t i = 0; i < 2; i++) {
		place[i] = mew_model_location(m, module, i * 16);
		assert_int_equal(mew_model_set_lines(m, place[i], &lines[i], 1), 0);
	}
	assert_int_equal(mew_model_add_sample(c, &(struct mew_cpu_sample){ mew_model_stack(m, place, 2), 0, 0, 1, false }), 0);
	mew_model_seal(m);
	page = fx_html_page(&in, NULL);
	header = fx_html_header(page);
	text = fx_html_line(page, (int)json_integer_value(json_object_get(header, "sources")), &bytes);
	source = json_loadb((const char *)text, bytes, 0, NULL);
	assert_int_equal(json_object_size(source), 1);
	span = json_array_get(json_object_get(source, name), 0);
	assert_int_equal(json_integer_value(json_array_get(span, 0)), 42);
	assert_int_equal(json_array_size(json_array_get(span, 1)), 17);
	assert_string_equal(json_string_value(json_array_get(json_array_get(span, 1), 8)), "line 50 </script>");
	json_decref(source);
	json_decref(header);
	free(text);
	free(page);
	mew_model_free(m);
	(void)remove(name);
}

static struct mew_writer writer; /* it holds a large buffer */

static void without_memory_it_says_so(void **state)
{
#if OWN_MALLOC
	struct mew_model *m = fx_html_model("codec", 0);
	const struct mew_report_input in = { .model = m };
	struct mew_error err = { .text = "" };
	int status = MEW_E_NOMEM;
	long n = 0;

	(void)state;
	for (; status != MEW_OK && n < 2000; n++) {
		mew_writer_memory(&writer);
		allocations_left = n;
		status = mew_report_html.write(&in, &writer, &err);
		allocations_left = -1;
		free(mew_writer_take(&writer, NULL));
		if (status != MEW_OK) {
			assert_int_equal(status, MEW_E_NOMEM);
			assert_int_equal(err.status, MEW_E_NOMEM);
			assert_non_null(strstr(err.text, "no memory"));
		}
	}
	assert_int_equal(status, MEW_OK);
	assert_in_range(n, 20, 1999);
	mew_model_free(m);
#else
	(void)state;
	print_message("a sanitizer's or another libc's malloc is in the way of making allocations fail\n");
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_describes_itself),
		cmocka_unit_test(viewer_is_small_and_asks_nobody),
		cmocka_unit_test(same_model_gives_the_same_bytes),
		cmocka_unit_test(names_stay_inside_the_data),
		cmocka_unit_test(hostile_names_arrive_whole),
		cmocka_unit_test(source_is_carried_on_request),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests_name("html", tests, NULL, NULL);
}
