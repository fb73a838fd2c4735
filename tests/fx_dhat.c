/*
 * fx_dhat.c - compares the memory figures of one case with what valgrind's DHAT recorded of the same loop. A test
 * program, driven by dhat.sh:
 *
 *   fx_dhat [-p] [-u UNIT] KEY BODY LINES TIME.json MEMORY.json PROFILE
 *
 * KEY's row in MEMORY.json is judged by the blocks of PROFILE that function BODY asked for at one of LINES ("7 8 9"),
 * the lines of its loop; TIME.json tells how often that loop ran under valgrind. -p: the peak too, which must be that
 * of the process. -u: mew's bytes may be more by UNIT an iteration, or a few times that. Exit codes: 0 equal, 1 not,
 * 2 unreadable, 77 no line numbers to find the loop by; the text says what.
 */
#include "config.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_UNITS 16

enum { EQUAL = 0, DIFFERENT = 1, UNREADABLE = 2, CANNOT = 77 };

struct loop {
	const char *body;
	const char *lines;
	bool seen_line; /* a frame of the body that names its line */
};

struct sums {
	json_int_t blocks, bytes, peak;
};

static json_t *load(const char *path)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);

	if (root == NULL) {
		printf("%s:%d: %s\n", path, error.line, error.text);
		exit(UNREADABLE);
	}
	return root;
}

static json_int_t integer(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_integer(value)) {
		printf("there is no integer \"%s\" where one is expected\n", name);
		exit(UNREADABLE);
	}
	return json_integer_value(value);
}

static bool has_line(const char *lines, long line)
{
	char *end;

	for (long known = strtol(lines, &end, 10); end != lines; known = strtol(lines, &end, 10)) {
		if (known == line)
			return true;
		lines = end;
	}
	return false;
}

/* The line of the body that a frame like "0x1092B3: mew_body_dump (jansson.c:98)" stands at; 0 for another frame. */
static long body_line(const struct loop *loop, const char *frame)
{
	size_t length = strlen(loop->body);
	const char *name = strchr(frame, ' '), *colon = strrchr(frame, ':');

	if (name == NULL || strncmp(name + 1, loop->body, length) != 0 || strncmp(name + 1 + length, " (", 2) != 0)
		return 0;
	return colon > name && isdigit((unsigned char)colon[1]) ? strtol(colon + 1, NULL, 10) : 0;
}

static bool is_in_loop(struct loop *loop, const json_t *frames, const json_t *stack)
{
	for (size_t i = 0; i < json_array_size(stack); i++) {
		size_t number = (size_t)json_integer_value(json_array_get(stack, i));
		const char *frame = json_string_value(json_array_get(frames, number));
		long line = frame != NULL ? body_line(loop, frame) : 0;

		if (line != 0) {
			loop->seen_line = true;
			return has_line(loop->lines, line);
		}
	}
	return false;
}

static struct sums sum_profile(struct loop *loop, const json_t *profile)
{
	const json_t *frames = json_object_get(profile, "ftbl"), *points = json_object_get(profile, "pps");
	struct sums sums = { 0, 0, 0 };

	if (integer(profile, "dhatFileVersion") != 2 || !json_is_array(frames) || !json_is_array(points)) {
		printf("the profile is not of the format that is known, DHAT's second\n");
		exit(UNREADABLE);
	}
	for (size_t i = 0; i < json_array_size(points); i++) {
		const json_t *point = json_array_get(points, i);

		if (!is_in_loop(loop, frames, json_object_get(point, "fs")))
			continue;
		sums.blocks += integer(point, "tbk");
		sums.bytes += integer(point, "tb");
		sums.peak += integer(point, "gb");
	}
	return sums;
}

/* The figures of one kind, "time" or "memory", of a case. */
static const json_t *row_of(const json_t *results, const char *key, const char *kind)
{
	const json_t *cases = json_object_get(results, "cases");

	for (size_t i = 0; i < json_array_size(cases); i++) {
		const json_t *one = json_array_get(cases, i), *row = json_object_get(one, kind);
		const char *name = json_string_value(json_object_get(one, "key"));
		const char *status = json_string_value(json_object_get(row, "status"));
		const char *reason = json_string_value(json_object_get(row, "reason"));

		if (name == NULL || strcmp(name, key) != 0)
			continue;
		if (status != NULL && strcmp(status, "MEW_OK") == 0)
			return row;
		printf("%s\n", reason != NULL ? reason : "it has no figures");
		exit(UNREADABLE);
	}
	printf("there is no case \"%s\"\n", key);
	exit(UNREADABLE);
}

static bool agree(const char *what, json_int_t mew, json_int_t dhat)
{
	printf("%s: mew %" JSON_INTEGER_FORMAT ", DHAT %" JSON_INTEGER_FORMAT "%s\n", what, mew, dhat,
	       mew == dhat ? "" : ": they differ");
	return mew == dhat;
}

/* Are mew's bytes those of DHAT, but for a whole number of units that is told? */
static bool agree_by_units(json_int_t mew, json_int_t dhat, json_int_t unit)
{
	json_int_t more = unit > 0 && mew > dhat ? (mew - dhat) / unit : 0;

	if (more > 0 && more <= MAX_UNITS && more * unit == mew - dhat) {
		printf("of mew's bytes %" JSON_INTEGER_FORMAT " x %" JSON_INTEGER_FORMAT " are explained\n", more,
		       unit);
		mew = dhat;
	}
	return agree("bytes", mew, dhat);
}

/* The quotients a user reads are those of the totals just judged. */
static bool is_mean(const json_t *memory, const char *mean, const char *total)
{
	double found = json_number_value(json_object_get(memory, mean));
	double expected = (double)integer(memory, total) / (double)integer(memory, "iterations");

	if (found < expected || found > expected)
		printf("%s: mew %.17g, not the mean of %s, %.17g\n", mean, found, total, expected);
	return found >= expected && found <= expected;
}

static int compare(const json_t *time, const json_t *memory, const struct sums *dhat, bool with_peak, json_int_t unit)
{
	json_int_t iterations = integer(memory, "iterations");
	bool good = agree("iterations", iterations, integer(time, "iterations"));

	good = agree("allocations", integer(memory, "total_allocations"), dhat->blocks) && good;
	good = agree_by_units(integer(memory, "cumulative_bytes"), dhat->bytes, unit * iterations) && good;
	good = is_mean(memory, "allocations_per_iteration", "total_allocations") && good;
	good = is_mean(memory, "bytes_per_iteration", "cumulative_bytes") && good;
	if (with_peak)
		good = agree("peak", integer(memory, "peak_bytes"), dhat->peak) && good;
	return good ? EQUAL : DIFFERENT;
}

int main(int argc, char **argv)
{
	json_t *time, *memory, *profile;
	json_int_t unit = 0;
	bool with_peak = false;
	struct sums sums;
	struct loop loop;
	int option, verdict;

	while ((option = getopt(argc, argv, "pu:")) != -1) {
		with_peak = with_peak || option == 'p';
		if (option == 'u')
			unit = strtol(optarg, NULL, 10);
	}
	if (argc - optind != 6)
		return UNREADABLE;
	argv += optind;
	loop = (struct loop){ .body = argv[1], .lines = argv[2] };
	time = load(argv[3]);
	memory = load(argv[4]);
	profile = load(argv[5]);
	sums = sum_profile(&loop, profile);
	verdict = compare(row_of(time, argv[0], "time"), row_of(memory, argv[0], "memory"), &sums, with_peak, unit);
	if (!loop.seen_line) {
		printf("the profile has no line numbers of the body: build with -g\n");
		verdict = CANNOT;
	}
	json_decref(profile);
	json_decref(memory);
	json_decref(time);
	return verdict;
}
