/*
 * t_html.c - the HTML report as bytes: what the page holds, that names cannot leave its data, and what its data say.
 * The page itself is tried in a browser by browser.sh.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "fx_html.h"
#include "mew/report.h"
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

/* --- reading a page --------------------------------------------------------------------------------------------- */

static struct mew_writer writer;

static char *page_of(const struct mew_model *m, size_t *bytes)
{
	const struct mew_report_input in = { .model = m };
	struct mew_error err;
	char *page;

	mew_writer_memory(&writer);
	assert_int_equal(mew_report_html.write(&in, &writer, &err), MEW_OK);
	page = mew_writer_take(&writer, bytes);
	assert_non_null(page);
	return page;
}

static const char data_tag[] = "<script type=\"application/octet-stream\" id=\"mew-data\">\n";

static const char *data_of(const char *page)
{
	const char *at = strstr(page, data_tag);

	assert_non_null(at);
	return at + sizeof data_tag - 1;
}

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at == NULL ? -1 : (int)(at - digits);
}

/* Line `number` of the data, unpacked and ended by a NUL. Taken by the caller. */
static unsigned char *line_of(const char *page, int number, size_t *bytes)
{
	const char *line = data_of(page);
	uLongf room = 64 << 20;
	unsigned char *packed, *out = malloc(room);
	size_t n = 0, length;
	uint32_t bits = 0;

	for (; number > 0; number--)
		line = strchr(line, '\n') + 1;
	length = strcspn(line, "\n");
	assert_int_equal(length % 4, 0);
	packed = malloc(length + 1);
	assert_true(packed != NULL && out != NULL);
	for (size_t i = 0; i < length && line[i] != '='; i++) {
		assert_int_not_equal(digit_of(line[i]), -1);
		bits = bits << 6 | (uint32_t)digit_of(line[i]);
		if (i % 4 != 0)
			packed[n++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
	}
	assert_int_equal(uncompress(out, &room, packed, (uLong)n), Z_OK);
	free(packed);
	out[room] = '\0';
	*bytes = room;
	return out;
}

static json_t *header_of(const char *page)
{
	size_t bytes;
	unsigned char *text = line_of(page, 0, &bytes);
	json_error_t error;
	json_t *header = json_loadb((const char *)text, bytes, JSON_ALLOW_NUL, &error);

	if (header == NULL)
		fail_msg("the header is not JSON: %s", error.text);
	free(text);
	return header;
}

struct frame {
	int64_t level;
	const char *name;
	bool inlined;
	int64_t line;
	uint64_t self[4];
};

static uint64_t take(const unsigned char **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 127) << shift;
		if ((*(*at)++ & 128) == 0)
			return value;
	}
}

/* The samples in their order add up, frame by frame, to the column of weights and to that of counts. */
static void take_samples(const unsigned char **next, size_t n, const struct frame *frames)
{
	uint64_t *sums = calloc(n + 1, sizeof *sums), *counts = calloc(n + 1, sizeof *counts);
	size_t threads = (size_t)take(next);
	int64_t last = -1;

	assert_true(sums != NULL && counts != NULL);
	for (size_t t = 0; t < threads; t++) {
		int64_t number = (int64_t)take(next), at = 0;
		size_t samples = (size_t)take(next), *leaf = calloc(samples + 1, sizeof *leaf);

		assert_non_null(leaf);
		assert_true(number > last);
		last = number;
		for (size_t i = 0; i < samples; i++) {
			uint64_t code = take(next);

			at += (code & 1) != 0 ? -(int64_t)((code + 1) / 2) : (int64_t)(code / 2);
			assert_in_range(at, 1, n);
			leaf[i] = (size_t)at;
		}
		for (size_t i = 0; i < samples; i++) {
			sums[leaf[i]] += take(next);
			counts[leaf[i]]++;
		}
		free(leaf);
	}
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(sums[i + 1], frames[i].self[0]);
		assert_int_equal(counts[i + 1], frames[i].self[1]);
	}
	free(sums);
	free(counts);
}

/* The frames of a case's tree in preorder; ended by a null name. Taken by the caller; names are the header's. */
static struct frame *tree_of(const char *page, json_t *header, size_t at, const char *kind, size_t *count)
{
	json_t *functions = json_object_get(header, "functions"),
	       *which = json_array_get(json_object_get(header, "cases"), at);
	size_t bytes, n, metrics;
	unsigned char *text =
		line_of(page, (int)json_integer_value(json_object_get(json_object_get(which, "data"), kind)), &bytes);
	const unsigned char *next = text;
	struct frame *frames;
	int64_t level = 0;

	n = (size_t)take(&next);
	metrics = (size_t)take(&next);
	frames = calloc(n + 1, sizeof *frames);
	assert_non_null(frames);
	for (size_t i = 0; i < n; i++)
		frames[i].level = level = level + 1 - (int64_t)take(&next);
	for (size_t i = 0; i < n; i++) {
		uint64_t key = take(&next);

		frames[i].inlined = (key & 1) != 0;
		frames[i].name =
			json_string_value(json_array_get(json_object_get(functions, "name"), (size_t)key / 2));
		frames[i].line =
			json_integer_value(json_array_get(json_object_get(functions, "line"), (size_t)key / 2));
		assert_non_null(frames[i].name);
	}
	for (size_t i = 0; i < n; i++) {
		int64_t code = (int64_t)take(&next);

		frames[i].line = code == 0 ? 0 : frames[i].line + ((code & 1) != 0 ? code / 2 : -(code / 2));
	}
	for (size_t k = 0; k < metrics; k++)
		for (size_t i = 0; i < n; i++)
			frames[i].self[k] = take(&next);
	if (strcmp(kind, "cpu") == 0)
		take_samples(&next, n, frames);
	assert_int_equal(next - text, bytes);
	free(text);
	*count = n;
	return frames;
}

/* --- tests ------------------------------------------------------------------------------------------------------ */

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
	char *page = page_of(m, &bytes);

	(void)state;
	assert_memory_equal(page, "<!doctype html>", 15);
	assert_non_null(strstr(page, "content=\"default-src 'none'; script-src 'sha256-"));
	assert_null(strstr(page, "unsafe-inline"));
	assert_null(strstr(page, "://"));
	assert_in_range(bytes - strcspn(data_of(page), "\n"), 1, VIEWER_LIMIT_BYTES);
	free(page);
	mew_model_free(m);
}

static void same_model_gives_the_same_bytes(void **state)
{
	struct mew_model *a = fx_html_model("codec", 0), *b = fx_html_model("codec", 0);
	size_t na, nb;
	char *pa = page_of(a, &na), *pb = page_of(b, &nb);

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
	char *a = page_of(hostile, NULL), *b = page_of(empty, NULL);
	const char *data = data_of(a), *after = data;

	(void)state;
	while (digit_of(*after) >= 0 || *after == '=' || *after == '\n')
		after++;
	assert_int_equal(data - a, data_of(b) - b);
	assert_memory_equal(a, b, (size_t)(data - a));
	assert_string_equal(after, strstr(data_of(b), "</script>"));
	free(a);
	free(b);
	mew_model_free(hostile);
	mew_model_free(empty);
}

static bool has_name(json_t *names, const char *name)
{
	size_t i;
	json_t *value;

	json_array_foreach(names, i, value)
	{
		if (strcmp(json_string_value(value), name) == 0)
			return true;
	}
	return false;
}

static void hostile_names_arrive_whole(void **state)
{
	struct mew_model *m = fx_html_model("hostile", 0);
	char *page = page_of(m, NULL);
	json_t *header = header_of(page), *names = json_object_get(json_object_get(header, "functions"), "name");

	(void)state;
	for (size_t i = 0; fx_html_hostile_names[i] != NULL; i++)
		if (strncmp(fx_html_hostile_names[i], "cut short", 9) != 0 && *fx_html_hostile_names[i] != '\0')
			assert_true(has_name(names, fx_html_hostile_names[i]));
	assert_true(has_name(names, "[unknown]"));
	json_decref(header);
	free(page);
	mew_model_free(m);
}

static void header_has_rows_reasons_and_facts(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0);
	char *page = page_of(m, NULL);
	json_t *header = header_of(page), *cases = json_object_get(header, "cases"), *row, *figures;
	const char *text;

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(header, "schema")), 2);
	assert_int_equal(json_array_size(cases), m->ncases);
	assert_int_equal(json_array_size(json_object_get(header, "facts")), m->nfacts);
	assert_string_equal(json_string_value(json_array_get(json_object_get(header, "grade"), 0)), "B");
	row = json_object_get(json_object_get(json_array_get(cases, 0), "rows"), "time");
	figures = json_object_get(json_object_get(header, "figures"), "time");
	assert_int_equal(json_array_size(json_object_get(row, "values")), json_array_size(figures));
	assert_string_equal(json_string_value(json_array_get(json_array_get(figures, 0), 0)), "median_ns");
	assert_true(json_real_value(json_array_get(json_object_get(row, "values"), 0)) == 3184.2);
	assert_true(json_is_null(json_array_get(json_object_get(row, "values"), MEW_FIG_CPU_NS)));
	text = json_string_value(json_object_get(json_object_get(row, "absent"), "10"));
	assert_string_equal(text, "the case pauses; ask for it with .pause_cpu");
	row = json_object_get(json_object_get(json_array_get(cases, 7), "rows"), "memory");
	text = json_string_value(json_object_get(row, "status"));
	assert_string_equal(text, "MEW_E_LOOP");
	assert_null(json_object_get(json_object_get(json_array_get(cases, 7), "rows"), "cpu"));
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* A list has its columns in the catalogue, and its rows, as lists of values, among the values of a row. */
static void lists_have_columns_and_rows(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0);
	char *page = page_of(m, NULL);
	json_t *header = header_of(page), *row, *figure, *line;

	(void)state;
	figure = json_array_get(json_object_get(json_object_get(header, "figures"), "memory"), MEW_FIG_BY_FUNCTION);
	assert_string_equal(json_string_value(json_array_get(figure, 1)), "list");
	assert_int_equal(json_array_size(json_array_get(figure, 3)), 5);
	line = json_array_get(json_array_get(figure, 3), 1);
	assert_string_equal(json_string_value(json_array_get(line, 0)), "peak_bytes");
	row = json_object_get(json_object_get(json_array_get(json_object_get(header, "cases"), 0), "rows"), "memory");
	row = json_array_get(json_object_get(row, "values"), MEW_FIG_BY_FUNCTION);
	assert_int_equal(json_array_size(row), 2);
	line = json_array_get(row, 0);
	assert_string_equal(json_string_value(json_array_get(line, 0)), "inflateInit2_ (inflate.c:203)");
	assert_int_equal(json_integer_value(json_array_get(line, 2)), 71600000);
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* What a tree adds up to is what was pushed, for every metric and case. */
static void trees_add_up(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0);
	char *page = page_of(m, NULL);
	json_t *header = header_of(page);

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		const struct mew_case *c = &m->cases[i];
		uint64_t sums[6] = { 0 }, want[6] = { 0 };
		size_t n;
		struct frame *frames = tree_of(page, header, i, "cpu", &n);

		for (size_t k = 0; k < n; k++) {
			sums[0] += frames[k].self[0];
			sums[1] += frames[k].self[1];
		}
		free(frames);
		frames = tree_of(page, header, i, "memory", &n);
		for (size_t k = 0; k < n; k++)
			for (size_t metric = 0; metric < 4; metric++)
				sums[2 + metric] += frames[k].self[metric];
		free(frames);
		for (size_t k = 0; k < c->nsamples; k++)
			want[0] += c->samples[k].weight_ns;
		want[1] = c->nsamples;
		for (size_t k = 0; k < c->nheap_stacks; k++) {
			want[2] += c->heap_stacks[k].peak_bytes;
			want[3] += c->heap_stacks[k].cumulative_bytes;
			want[4] += c->heap_stacks[k].allocations;
			want[5] += c->heap_stacks[k].net_bytes;
		}
		assert_memory_equal(sums, want, sizeof sums);
	}
	json_decref(header);
	free(page);
	mew_model_free(m);
}

/* A page of two results has the tables of both, and the lines of the base behind those of the head. */
static void base_stands_behind_the_head(void **state)
{
	struct mew_model *m = fx_html_model("codec", 0), *old = fx_html_model("before", 0);
	const struct mew_report_input in = { .model = m, .base = old };
	struct mew_error err;
	char *page;
	json_t *header, *base, *first, *was;

	(void)state;
	mew_writer_memory(&writer);
	assert_int_equal(mew_report_html.write(&in, &writer, &err), MEW_OK);
	page = mew_writer_take(&writer, NULL);
	header = header_of(page);
	base = json_object_get(header, "base");
	assert_int_equal(json_array_size(json_object_get(base, "cases")), old->ncases);
	first = json_object_get(json_array_get(json_object_get(header, "cases"), 0), "data");
	was = json_object_get(json_array_get(json_object_get(base, "cases"), 0), "data");
	assert_int_equal(json_integer_value(json_object_get(first, "time")), 1);
	assert_true(json_integer_value(json_object_get(was, "time")) > 6 * 3 - 1);
	assert_true(has_name(json_object_get(json_object_get(base, "functions"), "name"), "arena_grow_by_page"));
	assert_false(has_name(json_object_get(json_object_get(header, "functions"), "name"), "arena_grow_by_page"));
	assert_null(json_object_get(header, "sources"));
	json_decref(header);
	free(page);
	mew_model_free(m);
	mew_model_free(old);
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
	struct mew_error err;
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
	mew_writer_memory(&writer);
	assert_int_equal(mew_report_html.write(&in, &writer, &err), MEW_OK);
	page = mew_writer_take(&writer, NULL);
	header = header_of(page);
	text = line_of(page, (int)json_integer_value(json_object_get(header, "sources")), &bytes);
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

/* main calls work (with `quick` inlined there) from two lines; a stripped library (two places) and a lost stack beside them. */
static struct mew_model *small_model(void)
{
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "small", NULL);
	uint32_t own = mew_model_module(m, "/bin/small", "aa", 4096, false),
		 blob = mew_model_module(m, "/lib/blob.so", "", 64, false);
	uint32_t fmain = mew_model_function(m, "main", "small.c", 10, own),
		 fwork = mew_model_function(m, "work", "small.c", 30, own);
	uint32_t fquick = mew_model_function(m, "quick", "small.c", 20, own);
	uint32_t main1 = mew_model_location(m, own, 1), main2 = mew_model_location(m, own, 2),
		 work = mew_model_location(m, own, 3);
	uint32_t bare = mew_model_location(m, blob, 0x1234), bare2 = mew_model_location(m, blob, 0x2000);
	const struct mew_line l1 = { fmain, 12 }, l2 = { fmain, 9 }, lw[] = { { fquick, 21 }, { fwork, 33 } };
	const uint32_t s1[] = { work, main1 }, s2[] = { work, main2 }, s3[] = { bare, main1 };
	const uint32_t s4[] = { bare2, main1 };
	const uint32_t stacks[] = { mew_model_stack(m, s1, 2), mew_model_stack(m, s2, 2), mew_model_stack(m, s3, 2),
				    mew_model_stack(m, s4, 2), MEW_NO_STACK };

	assert_int_equal(mew_model_set_lines(m, main1, &l1, 1) | mew_model_set_lines(m, main2, &l2, 1), 0);
	assert_int_equal(mew_model_set_lines(m, work, lw, 2), 0);
	for (uint32_t i = 0; i < MEW_COUNTOF(stacks); i++) {
		const struct mew_cpu_sample s = { stacks[i], 0, i, 100 + i, false };
		const struct mew_heap_stack h = { stacks[i], 1, 2, 3, 4 };

		assert_int_equal(mew_model_add_sample(c, &s) | mew_model_add_heap_stack(c, &h), 0);
	}
	mew_model_seal(m);
	return m;
}

static void assert_frame(const struct frame *f, int64_t level, const char *name, bool is_inlined, int64_t line,
			 uint64_t self)
{
	assert_string_equal(f->name, name);
	assert_int_equal(f->level, level);
	assert_int_equal(f->inlined, is_inlined);
	assert_int_equal(f->line, line);
	assert_int_equal(f->self[0], self);
}

static void samples_merge_by_function(void **state)
{
	struct mew_model *m = small_model();
	char *page = page_of(m, NULL);
	json_t *header = header_of(page), *why = json_object_get(json_object_get(header, "functions"), "why");
	size_t n;
	struct frame *f = tree_of(page, header, 0, "cpu", &n);

	(void)state;
	assert_int_equal(n, 5);
	assert_frame(&f[0], 1, "[no stack]", false, 0, 104);
	assert_frame(&f[1], 1, "main", false, 0, 0);                      /* called from two lines */
	assert_frame(&f[2], 2, "unknown (blob.so)", false, 0, 102 + 103); /* two places */
	assert_frame(&f[3], 2, "work", false, 33, 0);
	assert_frame(&f[4], 3, "quick", true, 21, 201);
	assert_int_equal(json_object_size(why), 2);
	free(f);
	json_decref(header);
	free(page);
	mew_model_free(m);
}

static void allocations_are_told_apart_by_line(void **state)
{
	struct mew_model *m = small_model();
	char *page = page_of(m, NULL);
	json_t *header = header_of(page);
	size_t n;
	struct frame *f = tree_of(page, header, 0, "memory", &n);

	(void)state;
	assert_int_equal(n, 8);
	assert_frame(&f[1], 1, "main", false, 9, 0);
	assert_frame(&f[3], 3, "quick", true, 21, 1);
	assert_frame(&f[4], 1, "main", false, 12, 0);
	assert_int_equal(f[3].self[3], 4);
	free(f);
	json_decref(header);
	free(page);
	mew_model_free(m);
}

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
		cmocka_unit_test(header_has_rows_reasons_and_facts),
		cmocka_unit_test(lists_have_columns_and_rows),
		cmocka_unit_test(trees_add_up),
		cmocka_unit_test(base_stands_behind_the_head),
		cmocka_unit_test(source_is_carried_on_request),
		cmocka_unit_test(samples_merge_by_function),
		cmocka_unit_test(allocations_are_told_apart_by_line),
		cmocka_unit_test(without_memory_it_says_so),
	};

	return cmocka_run_group_tests_name("html", tests, NULL, NULL);
}
