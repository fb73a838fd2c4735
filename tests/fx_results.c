/*
 * fx_results.c - the model that the reports' golden files show.
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

#include "fx_results.h"
#include "writer.h"

#define LIB "/usr/lib/libz.so.1"

static struct mew_case *add_case(struct mew_model *m, const char *key, const char *label, const char *tags)
{
	struct mew_case *c = mew_model_case(m, key, "./bench/codec_bench");

	assert_non_null(c);
	c->label = mew_model_string(m, label);
	c->tags = mew_model_string(m, tags);
	c->threads = 1;
	return c;
}

static void add_time(struct mew_model *m, struct mew_case *c, double median, double spread)
{
	const double share[] = { 1, 1 - spread, 1 + spread, 1.01, 0.02, 0.008, 0.97, 1.31, 1.05, 1.2, 0.998 };

	mew_model_row(m, c, MEW_KIND_TIME)->profiler = "loop";
	for (int bit = MEW_FIG_MEDIAN_NS; bit <= MEW_FIG_CPU_NS; bit++)
		mew_model_f64(c, MEW_KIND_TIME, bit, median * share[bit]);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_ITERATIONS, 120 * 64);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_LOOPS, 64);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_SAMPLES, 120);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_REPETITIONS, 1);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_PROCESSES, 1);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_CONTEXT_SWITCHES, 0.025);
	mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_MIGRATIONS, "the kernel does not tell this thread's migrations");
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_LOOP_OVERHEAD_NS, 0.3125);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_CLOCK_COST_NS, 21.5);
}

static void add_memory(struct mew_model *m, struct mew_case *c, uint64_t peak, uint64_t allocations)
{
	mew_model_row(m, c, MEW_KIND_MEMORY)->profiler = "hooks";
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES, peak);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_TOTAL_BYTES, peak);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_TOTAL_ALLOCATIONS, allocations);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MEMORY_ITERATIONS, 100);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_ALLOCATIONS_PER_ITERATION, (double)allocations / 100);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_CUMULATIVE_BYTES, 100 * peak);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_BYTES_PER_ITERATION, (double)peak);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_FREES, allocations);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_NET_BYTES, 0);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_NET_BLOCKS, 0);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MEMORY_LOST, 0);
}

static void add_memory_lists(struct mew_model *m, struct mew_case *c)
{
	static const struct mew_size_class sizes[] = { { 16, 16, 100 }, { 64, 127, 1200 }, { 32768, 65535, 1 } };
	static const struct mew_memory_function functions[] = {
		{ "inflateInit2_ (/src/inflate.c:203)", 7160, 716000, 100, 0 },
		{ "grow<std::vector<unsigned char, std::allocator<unsigned char>>, Growth::Doubling> (buffer.hpp:41)", 152, 33152,
		  400, 0 },
	};
	static const struct mew_memory_pool pools[] = { { "apr", 8192, 12, 16384, 0 } };

	mew_model_text(m, c, MEW_KIND_MEMORY, MEW_FIG_MODE, "capture");
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION, 24);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW, 23.5);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, 24.25);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_STEADY, 1);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_TEMPORARY_ALLOCATIONS, 100);
	mew_model_absent(m, c, MEW_KIND_MEMORY, MEW_FIG_RSS_PEAK_DELTA_BYTES, "the kernel has no clear_refs");
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_SIZE_HISTOGRAM, sizes, MEW_COUNTOF(sizes));
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_BY_FUNCTION, functions, MEW_COUNTOF(functions));
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_BY_POOL, pools, MEW_COUNTOF(pools));
}

static void add_cpu(struct mew_model *m, struct mew_case *c, const char *top, double share, uint64_t lost)
{
	mew_model_row(m, c, MEW_KIND_CPU)->profiler = "wall";
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_WALL_TIME, 0.125);
	mew_model_absent(m, c, MEW_KIND_CPU, MEW_FIG_CPU_TIME, "the case pauses; ask for pause_cpu");
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_SAMPLE_COUNT, 1250);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_SAMPLE_WEIGHT, 0.1251);
	mew_model_text(m, c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION, top);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, 0.1251 * share);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE, share);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE_LOW, share - 0.028);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE_HIGH, share + 0.028);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_INTERVAL, 0.0001);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_EFFECTIVE_INTERVAL, 0.0001);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_CPU_ITERATIONS, 1000);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_CPU_LOST, lost);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_TRUNCATED, 0);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_UNRESOLVED, 2 * lost);
}

static void add_cpu_functions(struct mew_model *m, struct mew_case *c)
{
	static const struct mew_cpu_function functions[] = {
		{ "inflate_fast (inffast.c:50)", 0.0914, 0.731, 0.703, 0.759 },
		{ "grow<std::vector<unsigned char, std::allocator<unsigned char>>, Growth::Doubling> (buffer.hpp:41)", 0.025, 0.2,
		  0.178, 0.223 },
		{ "adler32 (libz.so.1)", 0.00865, 0.0685, 0.056, 0.084 },
		{ "memcpy (libc.so.6)", 0.0001, 0.0005, 0.0001, 0.0045 },
	};

	mew_model_list(m, c, MEW_KIND_CPU, MEW_FIG_CPU_BY_FUNCTION, functions, MEW_COUNTOF(functions));
}

static void add_runs(struct mew_model *m, struct mew_case *c)
{
	static const uint64_t calibration[] = { 41, 52, 90, 181 }, real[] = { 204800, 205001, 204790 },
			      cpu[] = { 204100, 204999, 204700 };
	const struct mew_run runs[] = {
		{ MEW_PHASE_CALIBRATION_LOOPS, 0, 0, 1, 4, calibration, NULL, 0, 0, 2 },
		{ MEW_PHASE_MEASUREMENT_WARMUP, 0, 0, 64, 1, real, cpu, 0, 0, 0 },
		{ MEW_PHASE_MEASUREMENT_VALUE, 0, 0, 64, 3, real, cpu, 1, 0, 3 },
		{ MEW_PHASE_MEASUREMENT_VALUE, 1, 1, 64, 2, real, NULL, 0, 1, 0 },
	};

	for (size_t i = 0; i < MEW_COUNTOF(runs); i++)
		assert_int_equal(mew_model_add_run(m, c, &runs[i]), 0);
	assert_int_equal(mew_model_add_phase_data(m, c, MEW_PHASE_MEASUREMENT_VALUE, "temperature", "51 \xc2\xb0"
				 "C"), 0);
}

/* Functions 0..3; an inlined one sits in inflate. Locations: 0 main, 1 inflate + copy, 2 without a name, 3 in no
 * module. */
static void add_symbols(struct mew_model *m)
{
	uint32_t program = mew_model_module(m, "/home/me/codec_bench", "00aabb", 40960, false);
	uint32_t library = mew_model_module(m, LIB, "", 122880, true);
	uint32_t main_fn = mew_model_function(m, "main", "bench.c", 120, program);
	uint32_t inflate = mew_model_function(m, "inflate", "/src/inflate.c", 622, library);
	uint32_t copy = mew_model_function(m, "copy;<match>\n", "/src/inffast.c", 50, library);
	uint32_t nameless = mew_model_function(m, "", "", 0, MEW_NO_MODULE);
	const uint64_t offsets[] = { 0x1139, 0x8f00, 0xbeef, UINT64_MAX - 15 };
	const uint32_t modules[] = { program, library, library, MEW_NO_MODULE };
	const struct mew_line inlined[] = { { copy, 61 }, { inflate, 700 } };

	for (uint32_t i = 0; i < MEW_COUNTOF(offsets); i++)
		assert_int_equal(mew_model_location(m, modules[i], offsets[i]), i);
	assert_int_equal(mew_model_set_lines(m, 0, &(struct mew_line){ main_fn, 130 }, 1), 0);
	assert_int_equal(mew_model_set_lines(m, 1, inlined, 2), 0);
	m->locations[2].why = mew_model_string(m, "the file has no symbol there");
	m->locations[2].start = 0xbe00;
	assert_int_equal(mew_model_location(m, library, 0x9000), 4);
	assert_int_equal(mew_model_set_lines(m, 4, &(struct mew_line){ nameless, 0 }, 1), 0);
	assert_int_equal(mew_model_location(m, library, 0x8f40), 5); /* another place in the same functions as 1 */
	assert_int_equal(mew_model_set_lines(m, 5, inlined, 2), 0);
}

static void add_stacks(struct mew_model *m, struct mew_case *c)
{
	static const uint32_t frames[][3] = { { 1, 0 }, { 2, 1, 0 }, { 3, 0 }, { 4, 0 }, { 5, 0 } };
	static const size_t depths[] = { 2, 3, 2, 2, 2 };
	static const struct mew_cpu_sample samples[] = {
		{ 0, 0, 100000, 100000, false }, { 1, 0, 200000, 100000, false },
		{ 4, 0, 300000, 150000, false }, { 2, 1, 310000, 7, false },
		{ MEW_NO_STACK, 1, 400000, 100000, false }, { 3, 1, 500000, 100000, true },
	};
	static const struct mew_heap_stack heap[] = { { 0, 4096, 8192, 2, 0 }, { 1, 512, 512, 1, 512 },
						      { 2, 0, 640, 10, 0 } };

	for (size_t i = 0; i < MEW_COUNTOF(depths); i++)
		assert_int_equal(mew_model_stack(m, frames[i], depths[i]), i);
	for (size_t i = 0; i < MEW_COUNTOF(samples); i++)
		assert_int_equal(mew_model_add_sample(c, &samples[i]), 0);
	for (size_t i = 0; i < MEW_COUNTOF(heap); i++)
		assert_int_equal(mew_model_add_heap_stack(c, &heap[i]), 0);
}

static void add_family(struct mew_model *m)
{
	struct mew_case *c = add_case(m, "zlib/inflate/case:0", "1k", "codec quick");

	add_time(m, c, 3200, 0.004);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_BYTES_PER_SECOND, 3.2e8);
	add_memory(m, c, 40312, 500);
	add_memory_lists(m, c);
	add_cpu(m, c, "inflate_fast (inffast.c:50)", 0.731, 0);
	add_cpu_functions(m, c);
	add_runs(m, c);
	add_stacks(m, c);
	assert_int_equal(mew_model_add_counter(m, c, "ratio", 3.25), 0);
	assert_int_equal(mew_model_add_counter(m, c, "blocks", -12), 0);
	c->bytes_per_iteration = 1024;

	c = add_case(m, "zlib/inflate/case:1", "64k", "codec");
	add_time(m, c, 204800, 0.012);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_BYTES_PER_SECOND, 3.2e8);
	add_memory(m, c, 40312 + 65536, 501);
	add_cpu(m, c, "inflate_fast (inffast.c:50)", 0.912, 3);
	assert_int_equal(mew_model_add_counter(m, c, "ratio", 3.5), 0);
}

static void add_odd_ones(struct mew_model *m)
{
	struct mew_case *c = add_case(m, "parse/document \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e with a name that is long "
					 "enough to be cut in the middle", NULL, NULL);

	add_time(m, c, 98000, 0.0001);
	add_memory(m, c, 1032, 12);
	add_cpu(m, c, "std::__detail::_Scanner<char>::_M_advance_with_a_long_tail (regex_scanner.tcc:98)", 0.24, 0);
	c = add_case(m, "empty", NULL, NULL);
	add_time(m, c, 0.9, 0.03);
	mew_case_row(c, MEW_KIND_TIME)->reason = "the body does nothing that the compiler kept";
	add_memory(m, c, 0, 0);
	c = add_case(m, "broken", NULL, NULL);
	mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_LOOP,
		       "the body left its loop early; every way out of MEW_LOOP must be its end");
	c->output = mew_model_string(m, "opening \"data.bin\"\ndata.bin: no such file\n");
	c = add_case(m, "avx512", NULL, NULL);
	mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_UNSUPPORTED, "skipped: this processor has no AVX-512");
	mew_model_fail(m, c, MEW_KIND_MEMORY, MEW_E_UNSUPPORTED, "the hooks are not loaded, link libmew_hooks first");
}

struct mew_model *fx_results_open(void)
{
	struct mew_model *m = mew_model_new();

	assert_non_null(m);
	add_symbols(m);
	add_family(m);
	add_odd_ones(m);
	assert_int_equal(mew_model_add_fact(m, "cpu_model", "Imaginary 9000"), 0);
	assert_int_equal(mew_model_add_fact(m, "cpu_count", "2"), 0);
	assert_int_equal(mew_model_add_fact(m, "virtual_machine", "yes"), 0);
	assert_int_equal(mew_model_add_fact(m, "kernel", "Linux 6.1.0"), 0);
	assert_int_equal(mew_model_add_fact(m, "libc", "glibc 2.36"), 0);
	m->grade = 'C';
	m->grade_reason = mew_model_string(m, "other programs keep the processors busy");
	m->hooks = mew_model_string(m, "temperature");
	return m;
}

struct mew_model *fx_results(void)
{
	struct mew_model *m = fx_results_open();

	mew_model_seal(m);
	return m;
}

char *fx_report(const struct mew_report *report, const struct mew_report_input *in, size_t *bytes)
{
	struct mew_error err;
	struct mew_writer w;
	char *text;

	mew_writer_memory(&w);
	if (report->write(in, &w, &err) != MEW_OK)
		fail_msg("%s: %s", report->name, err.text);
	text = mew_writer_take(&w, bytes);
	assert_non_null(text);
	return text;
}

/* --- golden files --------------------------------------------------------------------------------------------------
 */

static char *golden_path(const char *name)
{
	const char *srcdir = getenv("srcdir");
	char *path = NULL;

	if (asprintf(&path, "%s/tests/golden/%s", srcdir != NULL ? srcdir : ".", name) < 0)
		fail_msg("no memory for the path of %s", name);
	return path;
}

static void update(const char *path, const char *text)
{
	FILE *to = fopen(path, "we");

	if (to == NULL || fputs(text, to) < 0 || fclose(to) != 0)
		fail_msg("%s cannot be written", path);
}

static char *golden_text(const char *path)
{
	FILE *from = fopen(path, "re");
	size_t room = (size_t)1 << 20, bytes;
	char *text = malloc(room);

	assert_non_null(text);
	if (from == NULL)
		fail_msg("%s is missing; make it with MEW_GOLDEN_UPDATE=1", path);
	bytes = fread(text, 1, room - 1, from);
	text[bytes] = '\0';
	(void)fclose(from);
	return text;
}

void fx_golden(const char *name, const char *text)
{
	char *path = golden_path(name), *want;
	size_t line = 1, start = 0;

	if (getenv("MEW_GOLDEN_UPDATE") != NULL) {
		update(path, text);
		free(path);
		return;
	}
	want = golden_text(path);
	for (size_t i = 0; text[i] == want[i] && text[i] != '\0'; i++)
		if (text[i] == '\n') {
			line++;
			start = i + 1;
		}
	if (strcmp(text, want) != 0)
		fail_msg("%s, line %zu:\n  has   %.*s\n  wants %.*s\n(MEW_GOLDEN_UPDATE=1 accepts what is written now)",
			 path, line, (int)strcspn(text + start, "\n"), text + start, (int)strcspn(want + start, "\n"),
			 want + start);
	free(want);
	free(path);
}
