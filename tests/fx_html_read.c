/*
 * fx_html_read.c - see fx_html_read.h.
 * Test fixture; what it cannot read fails the test.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fx_html_read.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "writer.h"

extern const struct mew_report mew_report_html;

static struct mew_writer writer;

char *fx_html_page(const struct mew_report_input *in, size_t *bytes)
{
	struct mew_error err;
	char *page;

	mew_writer_memory(&writer);
	assert_int_equal(mew_report_html.write(in, &writer, &err), MEW_OK);
	page = mew_writer_take(&writer, bytes);
	assert_non_null(page);
	return page;
}

static const char data_tag[] = "<script type=\"application/octet-stream\" id=\"mew-data\">\n";

const char *fx_html_data(const char *page)
{
	const char *at = strstr(page, data_tag);

	assert_non_null(at);
	return at + sizeof data_tag - 1;
}

int fx_html_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c == '\0' ? NULL : strchr(digits, c);

	return at == NULL ? -1 : (int)(at - digits);
}

/* Line `number` of the data, unpacked and ended by a NUL. Taken by the caller. */
unsigned char *fx_html_line(const char *page, int number, size_t *bytes)
{
	const char *line = fx_html_data(page);
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
		assert_int_not_equal(fx_html_digit(line[i]), -1);
		bits = bits << 6 | (uint32_t)fx_html_digit(line[i]);
		if (i % 4 != 0)
			packed[n++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
	}
	assert_int_equal(uncompress(out, &room, packed, (uLong)n), Z_OK);
	free(packed);
	out[room] = '\0';
	*bytes = room;
	return out;
}

json_t *fx_html_header(const char *page)
{
	size_t bytes;
	unsigned char *text = fx_html_line(page, 0, &bytes);
	json_error_t error;
	json_t *header = json_loadb((const char *)text, bytes, JSON_ALLOW_NUL, &error);

	if (header == NULL)
		fail_msg("the header is not JSON: %s", error.text);
	free(text);
	return header;
}

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
static void take_samples(const unsigned char **next, size_t n, const struct fx_frame *frames)
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
struct fx_frame *fx_html_tree(const char *page, json_t *header, size_t at, const char *kind, size_t *count)
{
	json_t *functions = json_object_get(header, "functions"),
	       *which = json_array_get(json_object_get(header, "cases"), at);
	size_t bytes, n, metrics;
	unsigned char *text =
		fx_html_line(page, (int)json_integer_value(json_object_get(json_object_get(which, "data"), kind)), &bytes);
	const unsigned char *next = text;
	struct fx_frame *frames;
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

bool fx_html_has(json_t *names, const char *name)
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
