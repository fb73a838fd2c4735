/*
 * t_trace.c - the reader and the merge of the timeline, on clocks that the test sets, and the samples on it.
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

#include <sys/stat.h>

#include "fx_trace_rig.h"
#include "trace_check.h"
#include "trace_merge.h"
#include "trace_samples.h"

#define SECOND ((int64_t)1000000000)
#define EPOCH (1700000000 * SECOND)
#define ZERO (500 * SECOND)

static void put(const char *name, const char *text)
{
	char path[200];

	(void)snprintf(path, sizeof path, "%s/%s", rig_folder, name);
	rig_put_file(path, text);
}

#define OWN                                                                                                            \
	"[\n{\"ph\":\"M\",\"pid\":10,\"tid\":0,\"name\":\"mew_trace\",\"args\":{\"schema\":1,\"clock\":\"monotonic\","  \
	"\"zero_ns\":\"500000000000\"}},\n"                                                                             \
	"{\"ph\":\"M\",\"pid\":10,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"mew\"}},\n"                    \
	"{\"ph\":\"M\",\"pid\":10,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"run\"}},\n"                     \
	"{\"ph\":\"X\",\"pid\":10,\"tid\":1,\"cat\":\"case\",\"name\":\"a\",\"ts\":1000.001,\"dur\":5000.000},\n"          \
	"{\"ph\":\"X\",\"pid\":10,\"tid\":1,\"cat\":\"run\",\"name\":\"run\",\"ts\":0.000,\"dur\":9000000.000},\n"

/* The text of the merged file; the caller frees it. */
static char *merge(const struct mew_clock_pair *pairs, size_t npairs, struct mew_trace_merge *out)
{
	char own[200], output[200];
	struct mew_trace_verdict verdict;
	struct mew_error err;
	struct mew_trace_merge m = {
		.own = own, .directory = rig_directory, .output = output, .zero_ns = ZERO, .pairs = pairs, .npairs = npairs,
		.say = rig_say, .fixed_clock = true,
	};
	char before[sizeof rig_said];

	(void)snprintf(own, sizeof own, "%s.own", rig_folder);
	(void)snprintf(output, sizeof output, "%s.out", rig_folder);
	rig_put_file(own, OWN);
	assert_int_equal(mew_trace_merge(&m, &err), MEW_OK);
	memcpy(before, rig_said, sizeof rig_said);
	assert_int_equal(mew_trace_check(output, rig_say, &verdict, &err), MEW_OK);
	if (verdict.faults > 0)
		fail_msg("%s", rig_said);
	memcpy(rig_said, before, sizeof rig_said);
	if (out != NULL)
		*out = m;
	return rig_get_file(output);
}

static const struct mew_clock_pair steady[] = { { ZERO, EPOCH, ZERO }, { ZERO + 10 * SECOND, EPOCH + 10 * SECOND, ZERO + 10 * SECOND } };

static void has_and_free(char *text, const char *part)
{
	rig_has(text, part);
	free(text);
}

/* --- the merge -------------------------------------------------------------------------------------------------- */

static void same_as_the_golden_file(void **data)
{
	const char *srcdir = getenv("srcdir");
	char path[1000], *text, *golden;

	(void)data;
	put("1.json", "[{\"ph\":\"X\",\"pid\":20,\"tid\":3,\"name\":\"over\",\"ts\":1700000001000000,\"dur\":10},"
		      "{\"ph\":\"X\",\"pid\":20,\"tid\":3,\"name\":\"lap\",\"ts\":\"1700000001000005.125\",\"dur\":10},"
		      "{\"ph\":\"b\",\"pid\":20,\"tid\":3,\"cat\":\"c\",\"name\":\"span\",\"id\":\"7\",\"ts\":1700000001000000},"
		      "{\"ph\":\"e\",\"pid\":20,\"tid\":3,\"cat\":\"c\",\"name\":\"span\",\"id\":\"7\",\"ts\":1700000001000001}]");
	put("2.json", "{\"traceEvents\":[{\"ph\":\"C\",\"pid\":21,\"name\":\"n\",\"ts\":1700000002000000,\"args\":{\"v\":1.5}},"
		      "{\"ph\":\"X\",\"pid\":21,\"name\":\"f\",\"ts\":1700000002000000,\"dur\":0,\"bind_id\":5,\"flow_out\":true}]}");
	text = merge(steady, 2, NULL);
	(void)snprintf(path, sizeof path, "%s/tests/golden/trace.json", srcdir != NULL ? srcdir : ".");
	if (getenv("MEW_GOLDEN_UPDATE") != NULL)
		rig_put_file(path, text);
	golden = rig_get_file(path);
	assert_string_equal(text, golden);
	free(golden);
	free(text);
}

static void exact_to_the_nanosecond(void **data)
{
	char *text;

	(void)data;
	put("1.json", "[{\"ph\":\"i\",\"pid\":20,\"name\":\"i\",\"ts\":\"1700000003000000.123\"}]");
	text = merge(steady, 2, NULL);
	rig_has(text, "\"ts\":3000000.123");
	rig_has(text, "\"ts\":1000.001,\"dur\":5000.000");
	free(text);
}

static void a_clock_step_moves_only_what_came_before_it(void **data)
{
	/* at 5 s the time of day jumps an hour ahead */
	const struct mew_clock_pair pairs[] = { { ZERO, EPOCH, ZERO }, { ZERO + 4 * SECOND, EPOCH + 4 * SECOND, ZERO + 4 * SECOND },
						{ ZERO + 6 * SECOND, EPOCH + 3606 * SECOND, ZERO + 6 * SECOND } };
	struct mew_trace_merge m;
	char *text;

	(void)data;
	put("1.json", "[{\"ph\":\"i\",\"pid\":20,\"name\":\"before\",\"ts\":1700000003000000},"
		      "{\"ph\":\"i\",\"pid\":20,\"name\":\"after\",\"ts\":1700003607000000}]");
	text = merge(pairs, 3, &m);
	rig_has(text, "\"name\":\"before\",\"ts\":3000000.000");
	rig_has(text, "\"name\":\"after\",\"ts\":7000000.000");
	rig_has(text, "\"clock_step_ns\":3600000000000");
	rig_has(rig_said, "was set by 3600.000 s");
	free(text);
}

static void a_sleep_is_said(void **data)
{
	const struct mew_clock_pair pairs[] = { { ZERO, EPOCH, ZERO }, { ZERO + SECOND, EPOCH + 31 * SECOND, ZERO + 31 * SECOND } };
	char *text;

	(void)data;
	text = merge(pairs, 2, NULL);
	rig_has(text, "\"suspended_ns\":30000000000");
	rig_has(rig_said, "slept for 30.000 s");
	free(text);
}

static void what_lies_before_the_run_moves_all(void **data)
{
	char *text;

	(void)data;
	put("1.json", "[{\"ph\":\"X\",\"pid\":20,\"name\":\"early\",\"ts\":1699999999000000,\"dur\":1}]");
	text = merge(steady, 2, NULL);
	rig_has(text, "\"name\":\"early\",\"ts\":0.000");
	rig_has(text, "\"name\":\"run\",\"ts\":1000000.000");
	rig_has(text, "\"rebased_ns\":1000000000");
	free(text);
}

static void times_of_no_known_clock_are_dropped(void **data)
{
	struct mew_trace_merge m;

	(void)data;
	put("1.json", "[{\"ph\":\"i\",\"pid\":20,\"name\":\"i\",\"ts\":5}]");
	free(merge(steady, 2, &m));
	assert_int_equal(m.dropped, 1);
	assert_int_equal(m.far, 1);
}

static void what_is_dropped_ends_nothing(void **data)
{
	struct mew_trace_merge m;

	(void)data;
	put("1.json", "[{\"ph\":\"B\",\"pid\":20,\"tid\":3,\"name\":\"open\",\"ts\":1700000001000000},"
		      "{\"ph\":\"i\",\"pid\":20,\"tid\":3,\"name\":\"far\",\"ts\":1800000000000000}]");
	has_and_free(merge(steady, 2, &m), "\"name\":\"open\",\"ts\":1000000.000,\"dur\":0.001");
	assert_int_equal(m.far, 1);
}

static void a_clock_beyond_all_numbers_is_not_ours(void **data)
{
	struct mew_trace_merge m;

	(void)data;
	put("mew-1.json", "[{\"ph\":\"M\",\"pid\":20,\"name\":\"mew_trace\",\"args\":{\"zero_ns\":\"9223372036854775807\"}},"
			  "{\"ph\":\"i\",\"pid\":20,\"name\":\"kept\",\"ts\":1700000003000000}]");
	has_and_free(merge(steady, 2, &m), "\"name\":\"kept\",\"ts\":3000000.000");
	assert_int_equal(m.dropped, 0);
}

static void files_of_one_process_stay_together(void **data)
{
	char *text, *b, *c;

	(void)data;
	put("a.json", "[{\"ph\":\"M\",\"pid\":20,\"name\":\"process_name\",\"args\":{\"name\":\"one\"}},"
		      "{\"ph\":\"i\",\"pid\":20,\"name\":\"a\",\"ts\":1700000003000000}]");
	for (const char *name = "b\0c\0"; *name != '\0'; name += 2) {
		char file[20], events[300];

		(void)snprintf(file, sizeof file, "%s.json", name);
		(void)snprintf(events, sizeof events, "[{\"ph\":\"M\",\"pid\":20,\"name\":\"process_name\",\"args\":{\"name\":\"two\"}},"
			       "{\"ph\":\"i\",\"pid\":20,\"tid\":7,\"name\":\"%s\",\"ts\":1700000003000000}]", name);
		put(file, events);
	}
	text = merge(steady, 2, NULL);
	rig_has(text, "\"pid\":20,\"tid\":0,\"cat\":\"other\",\"name\":\"a\"");
	b = strstr(text, ",\"tid\":7,\"cat\":\"other\",\"name\":\"b\"");
	c = strstr(text, ",\"tid\":7,\"cat\":\"other\",\"name\":\"c\"");
	assert_non_null(b);
	assert_non_null(c);
	assert_memory_equal(b - 8, c - 8, 8); /* 16777216 */
	free(text);
}

static void a_file_that_breaks_off_in_a_line_is_said(void **data)
{
	struct mew_trace_merge m;

	(void)data;
	put("mew-20-1.json", "[\n{\"ph\":\"M\",\"pid\":20,\"tid\":0,\"name\":\"mew_trace\",\"args\":{\"zero_ns\":\"500000000000\"}},\n"
			     "{\"ph\":\"i\",\"pid\":20,\"tid\":1,\"name\":\"whole\",\"s\":\"t\",\"ts\":1.000},\n{\"ph\":\"i\",\"pi");
	has_and_free(merge(steady, 2, &m), "\"name\":\"whole\"");
	assert_int_equal(m.torn, 1);
	rig_has(rig_said, "mew-20-1.json: it breaks off in a line");
}

/* One end is looked for in all events of the process: not for each thread again, or this would take an hour. */
static void many_threads_may_leave_their_begins_open(void **data)
{
	struct mew_trace_merge m;
	char path[200];
	FILE *f;

	(void)data;
	(void)snprintf(path, sizeof path, "%s/b.json", rig_folder);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("[", f);
	for (int i = 0; i < 300000; i++)
		(void)fprintf(f, "{\"ph\":\"B\",\"pid\":20,\"tid\":%d,\"name\":\"b\",\"ts\":1700000001000000},", i + 1);
	assert_int_equal(fclose(f), 0);
	free(merge(steady, 2, &m));
	assert_int_equal(m.dropped, 0);
}

static void more_processes_than_fit_have_no_names_either(void **data)
{
	struct mew_trace_merge m;
	char path[200];
	FILE *f;

	(void)data;
	(void)snprintf(path, sizeof path, "%s/p.json", rig_folder);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("[", f);
	for (int i = 0; i < 4100; i++)
		(void)fprintf(f, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"p\"}},",
			      100 + i);
	assert_int_equal(fclose(f), 0);
	free(merge(steady, 2, &m));
	assert_int_equal(m.beyond, 5); /* 4096 fit, and one of them is mew's own */
	assert_int_equal(m.events, 4095 + 4);
}

/* --- samples ---------------------------------------------------------------------------------------------------- */

#define WORKER_ZERO (ZERO + 2 * SECOND)

static void add_samples(struct mew_model *m, struct mew_case *c, const uint32_t *stacks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct mew_cpu_sample s = { .stack = stacks[i % 3], .thread = i % 4 == 3, .time_ns = (i + 1) * 100400,
						  .weight_ns = 100000 + i, .blocked = i == 2 };

		assert_int_equal(mew_model_add_sample(c, &s), 0);
	}
	assert_non_null(mew_model_row(m, c, MEW_KIND_CPU));
}

/* A case of one thread, and one that it made itself, in a process whose clock began two seconds into the run. */
static struct mew_model *sampled(size_t n)
{
	static const struct mew_cpu_thread_figures threads[] = { { .name = "benchmark thread 0", .tid = 30 },
								 { .name = "\"helper\"", .tid = 31 } };
	struct mew_model *m = mew_model_new();
	struct mew_case *c = mew_model_case(m, "a \"case\"", "prog");
	uint32_t module = mew_model_module(m, "/bin/prog", "", 0x1000, false), places[2], stacks[3] = { 0, 0, MEW_NO_STACK };

	assert_non_null(c);
	for (uint32_t i = 0; i < 2; i++) {
		const struct mew_line line = { mew_model_function(m, i == 0 ? "leaf" : "caller", "a.c", 10 + i, module), 12 };

		places[i] = mew_model_location(m, module, 0x100 + i);
		assert_int_equal(mew_model_set_lines(m, places[i], &line, 1), 0);
	}
	stacks[0] = mew_model_stack(m, places, 2);
	stacks[1] = mew_model_stack(m, places + 1, 1);
	c->threads = 1;
	c->window = (struct mew_sample_window){ 30, WORKER_ZERO, WORKER_ZERO + 1000000 };
	add_samples(m, c, stacks, n);
	mew_model_list(m, c, MEW_KIND_CPU, MEW_FIG_BY_THREAD, threads, 2);
	return m;
}

static void put_worker(void)
{
	char text[400];

	(void)snprintf(text, sizeof text, "[{\"ph\":\"M\",\"pid\":30,\"name\":\"mew_trace\",\"args\":{\"zero_ns\":\"%lld\"}},\n"
		       "{\"ph\":\"M\",\"pid\":30,\"name\":\"process_name\",\"args\":{\"name\":\"worker\"}},\n"
		       "{\"ph\":\"X\",\"pid\":30,\"tid\":30,\"name\":\"phase\",\"ts\":1000.000,\"dur\":9000.000},\n", (long long)WORKER_ZERO);
	put("mew-30-1.json", text);
}

static void write_samples(size_t n, struct mew_trace_samples *s)
{
	struct mew_model *m = sampled(n);
	struct mew_error err;

	put_worker();
	assert_int_equal(mew_trace_samples_write(m, rig_directory, s, &err), MEW_OK);
	mew_model_free(m);
}

static void samples_are_on_the_line_of_their_thread(void **data)
{
	struct mew_trace_samples s = { .samples_max = 100, .nodes_max = 100 };
	struct mew_trace_merge m;
	char *text;

	(void)data;
	write_samples(5, &s);
	assert_int_equal(s.written, 5);
	assert_int_equal(s.left_out, 0);
	text = merge(steady, 2, &m);
	assert_int_equal(m.thinned, 0);
	rig_has(text, "\"pid\":30,\"tid\":30,\"cat\":\"disabled-by-default-v8.cpu_profiler\",\"name\":\"Profile\",\"ts\":2001000.000,"
		  "\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":2001000}}");
	rig_has(text, "\"functionName\":\"a \\\"case\\\"\"");
	rig_has(text, "{\"id\":2,\"parent\":1,\"callFrame\":{\"functionName\":\"caller\",\"scriptId\":0,\"url\":\"a.c\",\"lineNumber\":10,");
	/* of times 100.4, 200.8, 301.2 and 502.0 us: the error of one is not added to the next */
	rig_has(text, "\"samples\":[3,2,4,2],\"blocked\":[0,0,1,0],\"weights_ns\":[100000,100001,100002,100004]},"
		  "\"timeDeltas\":[100,101,100,201]");
	rig_has(text, "\"pid\":30,\"tid\":31,\"name\":\"thread_name\",\"args\":{\"name\":\"\\\"helper\\\"\"}");
	rig_has(text, "\"samples\":[3],\"weights_ns\":[100003]},\"timeDeltas\":[402]");
	free(text);
}

static void more_samples_than_fit_are_thinned_and_counted(void **data)
{
	struct mew_trace_samples s = { .samples_max = 1000, .nodes_max = 100 };
	struct mew_trace_merge m;
	char *text;

	(void)data;
	write_samples(2500, &s);
	assert_in_range(s.written, 800, 1000);
	assert_int_equal(s.written + s.left_out, 2500);
	text = merge(steady, 2, &m);
	assert_int_equal(m.thinned, s.left_out);
	rig_has(text, "\"samples_left_out\":16");
	free(text);
}

static void trees_are_bounded_too(void **data)
{
	struct mew_trace_samples s = { .samples_max = 1000, .nodes_max = 2 };
	struct mew_trace_merge m;

	(void)data;
	write_samples(3, &s); /* the second stack is the root and one node; the others need one more */
	assert_int_equal(s.written, 1);
	assert_int_equal(s.left_out, 2);
	free(merge(steady, 2, &m));
	assert_int_equal(m.thinned, 2);
}

static void profiles_of_other_programs_move_with_their_file(void **data)
{
	struct mew_trace_merge m;
	char *text;

	(void)data;
	put("node.json", "[{\"ph\":\"P\",\"pid\":20,\"tid\":3,\"cat\":\"v8\",\"name\":\"Profile\",\"id\":7,\"ts\":1700000001000050,"
			 "\"args\":{\"data\":{\"startTime\":1700000001000000}}},"
			 "{\"ph\":\"P\",\"pid\":20,\"tid\":3,\"cat\":\"v8\",\"name\":\"ProfileChunk\",\"id\":7,\"ts\":1700000001000060,"
			 "\"args\":{\"data\":{\"cpuProfile\":{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"}}],\"samples\":[1]},"
			 "\"timeDeltas\":[5]}}},"
			 "{\"ph\":\"P\",\"pid\":20,\"tid\":3,\"name\":\"ProfileChunk\",\"id\":8,\"ts\":1700000001000070,\"args\":{\"data\":{}}},"
			 "{\"ph\":\"P\",\"pid\":20,\"tid\":3,\"name\":\"ProfileChunk\",\"id\":7,\"ts\":1700000001000080,"
			 "\"args\":{\"data\":{\"cpuProfile\":{\"samples\":[1,1]},\"timeDeltas\":[5]}}},"
			 "{\"ph\":\"P\",\"pid\":20,\"tid\":3,\"name\":\"V8Sample\",\"id\":7,\"ts\":1700000001000090,\"args\":{\"data\":{}}}]");
	text = merge(steady, 2, &m);
	rig_has(text, "\"ts\":1000050.000,\"id\":\"0x1\",\"args\":{\"data\":{\"startTime\":1000000}}");
	assert_int_equal(m.dropped, 1); /* the chunk without a begin */
	assert_int_equal(m.bad, 2);     /* the one that does not add up, and what is neither */
	free(text);
}

/* Its begin has a sane time of its own, and would push all others away by half a century. */
static void a_profile_of_another_clock_moves_nothing(void **data)
{
	struct mew_trace_merge m;
	char *text;

	(void)data;
	put("node.json", "[{\"ph\":\"P\",\"pid\":20,\"tid\":3,\"name\":\"Profile\",\"id\":7,\"ts\":1700000001000050,"
			 "\"args\":{\"data\":{\"startTime\":0}}},"
			 "{\"ph\":\"X\",\"pid\":20,\"tid\":3,\"name\":\"work\",\"ts\":1700000001000060,\"dur\":1}]");
	text = merge(steady, 2, &m);
	rig_has(text, "\"ts\":1000060.000");
	assert_int_equal(m.dropped, 1);
	free(text);
}
/* 1,000 cases of 5 phases: counted, since a clock would judge the machine. */
static void a_large_run_is_small(void **data)
{
	struct mew_trace_merge m;
	char path[200];
	struct stat st;
	FILE *f;

	(void)data;
	(void)snprintf(path, sizeof path, "%s/mew-20-1.json", rig_folder);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fprintf(f, "[{\"ph\":\"M\",\"pid\":20,\"tid\":0,\"name\":\"mew_trace\",\"args\":{\"zero_ns\":\"%lld\"}},\n", (long long)ZERO);
	for (int i = 0; i < 5000; i++)
		(void)fprintf(f, "{\"ph\":\"X\",\"pid\":20,\"tid\":20,\"cat\":\"phase\",\"name\":\"measurement/value\",\"ts\":%d.000,"
				 "\"dur\":99.500,\"args\":{\"case\":\"group/case:%d\"}},\n", i * 100, i / 5);
	assert_int_equal(fclose(f), 0);
	free(merge(steady, 2, &m));
	assert_int_equal(m.events, 5000 + 4); /* and two names and two slices of its own */
	(void)snprintf(path, sizeof path, "%s.out", rig_folder);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < 5000 * 400);
}

int main(void)
{
	const struct CMUnitTest trace[] = {
		cmocka_unit_test(same_as_the_golden_file),
		cmocka_unit_test(exact_to_the_nanosecond),
		cmocka_unit_test(a_clock_step_moves_only_what_came_before_it),
		cmocka_unit_test(a_sleep_is_said),
		cmocka_unit_test(what_lies_before_the_run_moves_all),
		cmocka_unit_test(times_of_no_known_clock_are_dropped),
		cmocka_unit_test(what_is_dropped_ends_nothing),
		cmocka_unit_test(a_clock_beyond_all_numbers_is_not_ours),
		cmocka_unit_test(files_of_one_process_stay_together),
		cmocka_unit_test(a_file_that_breaks_off_in_a_line_is_said),
		cmocka_unit_test(many_threads_may_leave_their_begins_open),
		cmocka_unit_test(more_processes_than_fit_have_no_names_either),
		cmocka_unit_test(samples_are_on_the_line_of_their_thread),
		cmocka_unit_test(more_samples_than_fit_are_thinned_and_counted),
		cmocka_unit_test(trees_are_bounded_too),
		cmocka_unit_test(profiles_of_other_programs_move_with_their_file),
		cmocka_unit_test(a_profile_of_another_clock_moves_nothing),
		cmocka_unit_test(a_large_run_is_small),
	};
	struct CMUnitTest with_folder[MEW_COUNTOF(trace)];

	for (size_t i = 0; i < MEW_COUNTOF(trace); i++) {
		with_folder[i] = trace[i];
		with_folder[i].setup_func = rig_make_folder;
		with_folder[i].teardown_func = rig_remove_folder;
	}
	return _cmocka_run_group_tests("trace", with_folder, MEW_COUNTOF(with_folder), NULL, NULL);
}
