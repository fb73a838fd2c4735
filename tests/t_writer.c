/*
 * t_writer.c - bytes and numbers: what is written is what was asked for, in any locale and to any target.
 */
#include "config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "fx_comma.h"
#include "writer.h"

/* --- helpers ---------------------------------------------------------------------------------------------------- */

static char *take(struct mew_writer *w)
{
	char *text = mew_writer_take(w, NULL);

	assert_non_null(text);
	return text;
}

static void assert_f64(double value, const char *want)
{
	struct mew_writer w;
	char *text;

	mew_writer_memory(&w);
	mew_write_f64(&w, value);
	text = take(&w);
	assert_string_equal(text, want);
	free(text);
}

/* --- numbers ---------------------------------------------------------------------------------------------------- */

static void test_integers(void **state)
{
	struct mew_writer w;
	char *text;

	(void)state;
	mew_writer_memory(&w);
	mew_write_u64(&w, 0);
	mew_write_char(&w, ' ');
	mew_write_u64(&w, UINT64_MAX);
	mew_write_char(&w, ' ');
	mew_write_i64(&w, INT64_MIN);
	mew_write_char(&w, ' ');
	mew_write_i64(&w, INT64_MAX);
	mew_write_char(&w, ' ');
	mew_write_i64(&w, -7);
	text = take(&w);
	assert_string_equal(text, "0 18446744073709551615 -9223372036854775808 9223372036854775807 -7");
	free(text);
}

static void test_microseconds(void **state)
{
	struct mew_writer w;
	char *text;

	(void)state;
	mew_writer_memory(&w);
	mew_write_us(&w, 12345);
	mew_write_char(&w, ' ');
	mew_write_us(&w, 0);
	mew_write_char(&w, ' ');
	mew_write_us(&w, 7);
	mew_write_char(&w, ' ');
	mew_write_us(&w, UINT64_MAX);
	text = take(&w);
	assert_string_equal(text, "12.345 0.000 0.007 18446744073709551.615");
	free(text);
}

static void test_f64(void **state)
{
	(void)state;
	assert_f64(0, "0");
	assert_f64(-0.0, "-0");
	assert_f64(1, "1");
	assert_f64(-17, "-17");
	assert_f64(0.1, "0.1");
	assert_f64(-2.5, "-2.5");
	assert_f64(1.0 / 3, "0.3333333333333333");
	assert_f64(0.1 + 0.2, "0.30000000000000004");
	assert_f64(100000000000000, "100000000000000");
	assert_f64(999999999999999, "999999999999999");
	assert_f64(-123456789012345, "-123456789012345");
	assert_f64(1e15, "1e+15");
	assert_f64(1e300, "1e+300");
	assert_f64(DBL_MAX, "1.7976931348623157e+308");
	assert_f64(DBL_MIN, "2.2250738585072014e-308");
	assert_f64((double)NAN, "0");
	assert_f64((double)INFINITY, "0");
	assert_f64(-(double)INFINITY, "0");
}

/* Any bit pattern reads back as the same double, and 15 digits are used when they are enough. */
static void test_f64_reads_back(void **state)
{
	uint64_t x = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct mew_writer w;
		double value, back;
		char *text, *end, shorter[32];

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(&value, &x, sizeof value);
		if (i % 2 != 0)
			value = (double)(int64_t)(x >> 20) / 1000; /* like measured figures */
		if (!isfinite(value))
			continue;
		mew_writer_memory(&w);
		mew_write_f64(&w, value);
		text = take(&w);
		back = strtod(text, &end);
		assert_true(back == value && *end == '\0');
		snprintf(shorter, sizeof shorter, "%.15g", value);
		if (strtod(shorter, NULL) == value)
			assert_string_equal(text, shorter);
		free(text);
	}
}

static void test_f64_in_a_locale_with_commas(void **state)
{
	char probe[16];

	(void)state;
	if (!fx_set_comma())
		skip();
	assert_f64(1234567.5, "1234567.5");
	assert_f64(0.1, "0.1");
	assert_f64(-1.0 / 3, "-0.3333333333333333");
	snprintf(probe, sizeof probe, "%.1f", 1.5);
	setlocale(LC_ALL, "C");
	assert_string_equal(probe, "1,5"); /* the program's own locale was left alone */
}

/* --- text and targets ------------------------------------------------------------------------------------------- */

static void test_writef(void **state)
{
	static char wide[40000];
	struct mew_writer w;
	size_t bytes;
	char *text;

	(void)state;
	memset(wide, 'w', sizeof wide - 1);
	mew_writer_memory(&w);
	mew_writef(&w, "%s:%d|%5u|%-4s|%llx;", "a", -3, 42u, "b", 255ull);
	mew_writef(&w, "%s", wide);
	assert_int_equal(w.total, 19 + sizeof wide - 1);
	for (int i = 0; i < 10000; i++) /* over the end of the buffer at odd places */
		mew_writef(&w, "%07d", i);
	text = mew_writer_take(&w, &bytes);
	assert_non_null(text);
	assert_int_equal(bytes, 19 + sizeof wide - 1 + 70000);
	assert_memory_equal(text, "a:-3|   42|b   |ff;", 19);
	assert_memory_equal(text + 19, wide, sizeof wide - 1);
	for (int i = 0; i < 10000; i++) {
		char digits[8];

		snprintf(digits, sizeof digits, "%07d", i);
		assert_memory_equal(text + 19 + sizeof wide - 1 + 7 * i, digits, 7);
	}
	free(text);
}

static void test_memory(void **state)
{
	enum { N = 300000 };
	unsigned char *data = malloc(N);
	struct mew_writer w;
	size_t bytes = 99;
	char *text;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < N; i++)
		data[i] = (unsigned char)(i * 2654435761u >> 13);
	mew_writer_memory(&w);
	for (size_t at = 0, n = 1; at < N; at += n, n = n * 3 % 20011 + 1)
		mew_write_bytes(&w, data + at, n < N - at ? n : N - at);
	text = mew_writer_take(&w, &bytes);
	assert_non_null(text);
	assert_int_equal(bytes, N);
	assert_memory_equal(text, data, N);
	assert_int_equal(text[N], '\0');
	free(text);
	free(data);
	mew_writer_memory(&w);
	mew_write_text(&w, NULL);
	text = mew_writer_take(&w, &bytes);
	assert_non_null(text);
	assert_int_equal(bytes, 0);
	assert_string_equal(text, "");
	free(text);
}

static int refuse(struct mew_writer *w, const char *data, size_t bytes)
{
	(void)data;
	(void)bytes;
	++*(int *)w->target;
	return EDQUOT;
}

static void test_error_sticks(void **state)
{
	struct mew_writer w;
	int calls = 0, full;

	(void)state;
	mew_writer_memory(&w);
	w.flush = refuse;
	w.target = &calls;
	for (int i = 0; i < 10000; i++)
		mew_write_text(&w, "0123456789");
	mew_writef(&w, "%d", 1);
	assert_int_equal(mew_writer_finish(&w), EDQUOT);
	assert_int_equal(mew_writer_finish(&w), EDQUOT);
	full = (int)w.total;
	mew_write_text(&w, "later");
	assert_int_equal(w.total, full);
	assert_int_equal(calls, 1); /* not a second try that might write half */
	full = open("/dev/full", O_WRONLY);
	if (full < 0) {
		print_message("no /dev/full here\n");
		skip();
	}
	mew_writer_fd(&w, full);
	mew_write_text(&w, "x");
	assert_int_equal(mew_writer_finish(&w), ENOSPC);
	close(full);
}

static void test_stream_keeps_order(void **state)
{
	struct mew_writer w;
	char got[32];
	FILE *f = tmpfile();

	(void)state;
	assert_non_null(f);
	fputs("first ", f);
	mew_writer_file(&w, f);
	mew_write_text(&w, "second ");
	assert_int_equal(mew_writer_finish(&w), 0);
	fputs("third", f);
	rewind(f);
	assert_non_null(fgets(got, sizeof got, f));
	assert_string_equal(got, "first second third");
	fclose(f);
}

struct reader {
	int fd;
	size_t bytes;
	bool wrong;
};

static void *read_slowly(void *data)
{
	struct reader *r = data;
	char part[1000];
	ssize_t n;

	for (;;) {
		usleep(200);
		n = read(r->fd, part, sizeof part);
		if (n <= 0)
			return NULL;
		for (ssize_t i = 0; i < n; i++)
			r->wrong |= part[i] != (char)('0' + (r->bytes + (size_t)i) % 10);
		r->bytes += (size_t)n;
	}
}

/* A pipe that another program made non-blocking: every byte arrives all the same. */
static void test_nonblocking_pipe(void **state)
{
	struct reader r = { 0 };
	struct mew_writer w;
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, 0), 0);
	r.fd = fds[0];
	mew_writer_fd(&w, fds[1]);
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
	for (int i = 0; i < 10000; i++)
		mew_write_text(&w, "0123456789");
	assert_int_equal(mew_writer_finish(&w), 0);
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
	assert_int_equal(r.bytes, 100000);
	assert_false(r.wrong);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_microseconds),
		cmocka_unit_test(test_f64),
		cmocka_unit_test(test_f64_reads_back),
		cmocka_unit_test(test_f64_in_a_locale_with_commas),
		cmocka_unit_test(test_writef),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_error_sticks),
		cmocka_unit_test(test_stream_keeps_order),
		cmocka_unit_test(test_nonblocking_pipe),
	};

	return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
