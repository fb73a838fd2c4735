/*
 * fx_html.c - models for the tests of the HTML report.
 * Test fixture. The same arguments give the same model.
 */
#include "config.h"

#include "fx_html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mew/report.h"
#include "writer.h"

extern const struct mew_report mew_report_html;

const char *const fx_html_hostile_names[] = {
	"<img src=x onerror=\"window.broken=1\">",
	"</script><script>window.broken=2</script>",
	"\"'`${window.broken=3}` & &amp; &lt;b&gt;",
	"tab\there, line\nend, bell\a, escape\x1b[31m, delete\x7f",
	"cut short \xe2\x82, lone \xff, overlong \xc0\xaf, surrogate \xed\xa0\x80",
	"right\xe2\x80\xaeto left, zero\xe2\x80\x8bwidth",
	"mark\xd8\x9c, soft\xc2\xadhyphen, isolate\xe2\x81\xa6, tag\xf3\xa0\x81\x81",
	"\xe6\xb8\xac\xe8\xa9\xa6 \xf0\x9f\x90\x88 \xc3\xa9t\xc3\xa9",
	"__proto__",
	"constructor",
	"javascript:window.broken=4",
	"",
	NULL,
};

/* --- building blocks -------------------------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*state >> 8) * below >> 24);
}

/* One place for each call of this; `inlined` (or NULL) is what was inlined there. */
static uint32_t place(struct mew_model *m, uint32_t module, uint64_t offset, const char *name, const char *file,
		      uint32_t line, const char *inlined)
{
	uint32_t location = mew_model_location(m, module, offset);
	struct mew_line lines[2];
	size_t n = 0;

	if (inlined != NULL)
		lines[n++] =
			(struct mew_line){ mew_model_function(m, inlined, file, line + 100, module), line + 103 };
	lines[n++] = (struct mew_line){ mew_model_function(m, name, file, line, module),
					line + 1 + (uint32_t)(offset & 7) };
	(void)mew_model_set_lines(m, location, lines, n);
	return location;
}

static void set_time(struct mew_model *m, struct mew_case *c, double median, uint32_t *seed)
{
	uint64_t ns[200], loops = median > 1e6 ? 1 : (uint64_t)(2e6 / median) + 1;

	(void)mew_model_row(m, c, MEW_KIND_TIME);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_LOOPS, loops);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_SAMPLES, 3 * MEW_COUNTOF(ns));
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, median);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_LOW_NS, median * 0.996);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_HIGH_NS, median * 1.007);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEAN_NS, median * 1.012);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_P99_NS, median * 1.09);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_LOOP_OVERHEAD_NS, 0.6);
	for (int bit = MEW_FIG_STDDEV_NS; bit <= MEW_FIG_P90_NS; bit++)
		mew_model_f64(c, MEW_KIND_TIME, bit,
			      median * (bit < MEW_FIG_MIN_NS ? 0.01 : 1 + 0.01 * (bit - MEW_FIG_MIN_NS)));
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_ITERATIONS, 3 * MEW_COUNTOF(ns) * loops);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_REPETITIONS, 3);
	mew_model_u64(c, MEW_KIND_TIME, MEW_FIG_PROCESSES, 1);
	for (int bit = MEW_FIG_BYTES_PER_SECOND; bit <= MEW_FIG_PAGE_FAULTS; bit++)
		mew_model_f64(c, MEW_KIND_TIME, bit, 0);
	mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_BYTES_PER_SECOND, "the body did not call mew_set_bytes()");
	mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_ITEMS_PER_SECOND, "the body did not call mew_set_items()");
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_CLOCK_COST_NS, 21.5);
	mew_model_absent(m, c, MEW_KIND_TIME, MEW_FIG_CPU_NS, "the case pauses; ask for it with .pause_cpu");
	for (unsigned r = 0; r < 3; r++) {
		struct mew_run run = { .phase = MEW_PHASE_MEASUREMENT_VALUE,
				       .repetition = r,
				       .loops = loops,
				       .nsamples = MEW_COUNTOF(ns),
				       .real_ns = ns };

		for (size_t i = 0; i < MEW_COUNTOF(ns); i++) {
			double noise =
				0.99 + next_random(seed, 1000) / 50000.0 + (next_random(seed, 40) == 0 ? 0.08 : 0);

			ns[i] = (uint64_t)(median * noise * (double)loops);
		}
		(void)mew_model_add_run(m, c, &run);
	}
}

static void set_cpu(struct mew_model *m, struct mew_case *c, const char *top, double share)
{
	double weight = 0;

	(void)mew_model_row(m, c, MEW_KIND_CPU);
	for (size_t i = 0; i < c->nsamples; i++)
		weight += (double)c->samples[i].weight_ns * 1e-9;
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_WALL_TIME, weight * 1.002);
	mew_model_absent(m, c, MEW_KIND_CPU, MEW_FIG_CPU_TIME, "the case pauses; ask for it with .pause_cpu");
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_SAMPLE_COUNT, c->nsamples);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_SAMPLE_WEIGHT, weight);
	mew_model_text(m, c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION, top);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE, share);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE_LOW, share - 0.013);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE_HIGH, share + 0.013);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, weight * share);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_INTERVAL, 1e-4);
	mew_model_f64(c, MEW_KIND_CPU, MEW_FIG_EFFECTIVE_INTERVAL, 1.004e-4);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_CPU_ITERATIONS,
		      c->time.median_ns > 0 ? (uint64_t)(weight * 1e9 / c->time.median_ns) : 1000);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_CPU_LOST, 0);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_TRUNCATED, 3);
	mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_UNRESOLVED, 2);
}

static void set_memory_lists(struct mew_model *m, struct mew_case *c)
{
	static const struct mew_size_class sizes[] = { { 0, 0, 1 }, { 24, 24, 120000 }, { 1048576, 2097151, 30000 } };
	static const struct mew_memory_function functions[] = {
		{ "inflateInit2_ (inflate.c:203)", 716000, 71600000, 10000, 64 },
		{ "<script>alert(1)</script> (evil.c:1)", 512, 1024, 2, 0 },
	};
	struct mew_live_point live[50];

	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_SIZE_HISTOGRAM, sizes, MEW_COUNTOF(sizes));
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_BY_FUNCTION, functions, MEW_COUNTOF(functions));
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_BY_POOL, NULL, 0);
	for (uint64_t i = 0; i < MEW_COUNTOF(live); i++)
		live[i] = (struct mew_live_point){ (i + 1) * 2, 20000 + i * 900 };
	mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_LIVE_BY_ITERATION, live, MEW_COUNTOF(live));
}

static void set_memory(struct mew_model *m, struct mew_case *c)
{
	uint64_t peak = 0, all = 0, count = 0, net = 0;

	(void)mew_model_row(m, c, MEW_KIND_MEMORY);
	for (size_t i = 0; i < c->nheap_stacks; i++) {
		peak += c->heap_stacks[i].peak_bytes;
		all += c->heap_stacks[i].cumulative_bytes;
		count += c->heap_stacks[i].allocations;
		net += c->heap_stacks[i].net_bytes;
	}
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_PEAK_BYTES, peak);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_TOTAL_BYTES, peak);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_TOTAL_ALLOCATIONS, count);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MEMORY_ITERATIONS, 100);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_ALLOCATIONS_PER_ITERATION, (double)count / 100);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_CUMULATIVE_BYTES, all);
	mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_BYTES_PER_ITERATION, (double)all / 100);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_NET_BYTES, net);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_NET_BLOCKS, net / 64);
	for (int bit = MEW_FIG_FREES; bit <= MEW_FIG_ADOPTED; bit++)
		mew_model_u64(c, MEW_KIND_MEMORY, bit, bit == MEW_FIG_FREES ? count - net / 64 : 0);
	mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MEMORY_LOST, 0);
	set_memory_lists(m, c);
}

/* --- "codec" ---------------------------------------------------------------------------------------------------- */

static const char *const callers[] = {
	"mew_body_codec",
	"codec_run",
	"stream_process",
	"inflate_block",
	"decode_symbols",
	"window_refill",
	"copy_match",
	"crc_update",
	"huffman_build",
	"sort_lengths",
	"reader_next",
	"void std::__introsort_loop<unsigned char*, long, lengths_less>(unsigned char*, unsigned char*, long)",
	"output_flush",
	"arena_grow",
	"table_insert",
	"string_append"
};
static const char *const inlined[] = {
	NULL,        NULL, "min_size", NULL,
	"bits_peek", NULL, NULL,       "load_le32",
	NULL,        NULL, NULL,       "lengths_less::operator()(unsigned char, unsigned char) const",
	NULL,        NULL, "hash_mix", NULL
};

struct program {
	uint32_t own, libc, blob;
	uint32_t leaf[3]; /* places in libc, and one without a name */
	const char *path;
	bool before;
};

static uint32_t codec_stack(struct mew_model *m, const struct program *p, uint32_t *seed)
{
	uint32_t outward[16], places[16];
	size_t depth = 0, f = 0, more = 3 + next_random(seed, 7);

	while (depth < more) {
		outward[depth++] = place(m, p->own, f * 64 + next_random(seed, 2),
					 p->before && f == 13 ? "arena_grow_by_page" : callers[f], "src/codec/inflate.c",
					 (uint32_t)(40 + f * 37), inlined[f]);
		f = f < 3 ? f + 1 :
			    3 + (f * 5 + next_random(seed, 3) * (depth < 5 ? 2 : 3)) % (MEW_COUNTOF(callers) - 3);
	}
	if (next_random(seed, 3) == 0)
		outward[depth++] = p->leaf[next_random(seed, 12) == 0 ? 2 : next_random(seed, 2)];
	for (size_t i = 0; i < depth; i++)
		places[i] = outward[depth - 1 - i];
	return mew_model_stack(m, places, depth);
}

static void codec_case(struct mew_model *m, const struct program *p, struct mew_case *c, size_t samples,
		       uint32_t *seed)
{
	for (size_t i = 0; i < samples; i++) {
		struct mew_cpu_sample s = { codec_stack(m, p, seed), samples > 10000 ? (uint32_t)(i % 3) : 0, i * 100000,
					    100000 + (next_random(seed, 50) == 0 ? 100000 : 0), false };

		if (i % 997 == 996)
			s.stack = MEW_NO_STACK;
		(void)mew_model_add_sample(c, &s);
	}
	for (size_t i = 0; i < samples / 40; i++) {
		uint64_t count = 100 + next_random(seed, 900), bytes = 16u << next_random(seed, 8);
		struct mew_heap_stack h = { codec_stack(m, p, seed), bytes * (1 + next_random(seed, 9)),
					    bytes * count, count, next_random(seed, 9) == 0 ? bytes * 4 : 0 };

		(void)mew_model_add_heap_stack(c, &h);
	}
}

/* What another build had: the program lies elsewhere, and of two functions it has others. */
static void codec_places(struct mew_model *m, struct program *p, bool before)
{
	uint32_t unnamed;

	p->path = before ? "./bench_old" : "./bench_codec";
	p->before = before;
	p->own =
		mew_model_module(m, before ? "/opt/old/bench_old" : "/usr/local/bin/bench_codec", "5d41402abc4b2a76b9719d911017c592", 1 << 20, false);
	p->libc = mew_model_module(m, "/lib/x86_64-linux-gnu/libc.so.6", "7d793037a0760186574b0282f2f435e7", 1 << 21,
				   false);
	p->blob = mew_model_module(m, "/opt/vendor/libblob.so.3", "", 1 << 16, false);
	p->leaf[0] =
		place(m, p->libc, 0x900, "__memmove_avx_unaligned_erms", "memmove-vec-unaligned-erms.S", 262, NULL);
	p->leaf[1] = place(m, p->libc, 0xa00, "_int_malloc", "malloc.c", 3772, NULL);
	unnamed = mew_model_location(m, p->blob, 0x1c40);
	m->locations[unnamed].why = mew_model_string(m, "libblob.so.3 is stripped and no debug file was found");
	p->leaf[2] = unnamed;
}

static void codec_failures(struct mew_model *m, const char *program)
{
	struct mew_case *c = mew_model_case(m, "codec/truncated", program);

	for (enum mew_kind kind = 0; kind < MEW_KINDS; kind++)
		mew_model_fail(m, c, kind, MEW_E_BODY,
			       "the decoder returned -3 for input 7: expected 4,096 bytes, got 4,090");
	c->output = mew_model_string(m, "inflate: invalid distance too far back\nat offset 0x1f3\n");
	c = mew_model_case(m, "codec/early_break", program);
	mew_model_fail(m, c, MEW_KIND_TIME, MEW_E_LOOP,
		       "the body left its loop early: remove the break, or use mew_skip()");
	mew_model_fail(m, c, MEW_KIND_MEMORY, MEW_E_LOOP,
		       "the body left its loop early: remove the break, or use mew_skip()");
}

static void codec_facts(struct mew_model *m)
{
	static const char *const facts[][2] = {
		{ "date", "2026-01-15T09:30:00Z" },
		{ "cpu_model", "AMD EPYC 7B13" },
		{ "cpu_count", "8" },
		{ "governor", "performance" },
		{ "turbo", "off" },
		{ "virtual_machine", "no" },
		{ "aslr", "on" },
		{ "load_1min", "0.12" },
		{ "kernel", "Linux 6.1.0-26-amd64" },
		{ "machine", "x86_64" },
		{ "libc", "glibc 2.36" },
		{ "compiler", "gcc 12.2.0" },
		{ "optimized", "yes" },
		{ "allocator", "/lib/x86_64-linux-gnu/libc.so.6" },
	};

	for (size_t i = 0; i < MEW_COUNTOF(facts); i++)
		(void)mew_model_add_fact(m, facts[i][0], facts[i][1]);
	m->grade = 'B';
	m->grade_reason = mew_model_string(m, "address space layout is random: layouts differ between processes");
}

/* Samples that stand for less time each, every fifth allocation twice as large, half the iterations. */
static void make_older(struct mew_case *c)
{
	for (size_t i = 0; i < c->nsamples; i++)
		c->samples[i].thread = 0;
	for (size_t i = 0; i < c->nheap_stacks; i += 5)
		c->heap_stacks[i].peak_bytes *= 2;
}

static void build_codec(struct mew_model *m, bool before)
{
	static const struct {
		const char *key, *label;
		double median;
		size_t samples;
		const char *top;
		double share;
	} cases[] = {
		{ "codec/inflate/case:0", "1k", 3184.2, 4200, "copy_match (inflate.c:262)", 0.183 },
		{ "codec/inflate/case:1", "64k", 151220.7, 12000, "copy_match (inflate.c:262)", 0.214 },
		{ "codec/inflate/case:2", "1M", 2411650.0, 9000,
		  "__memmove_avx_unaligned_erms (memmove-vec-unaligned-erms.S:262)", 0.164 },
		{ "codec/huffman_build", NULL, 842.9, 2400, "sort_lengths (inflate.c:373)", 0.127 },
		{ "codec/crc32", NULL, 7.31, 60, "crc_update (inflate.c:299)", 0.31 },
		{ "codec/reader/next", NULL, 61.8, 1500, "reader_next (inflate.c:410)", 0.22 },
	};
	struct program p;
	uint32_t seed = 7;

	codec_places(m, &p, before);
	for (size_t i = 0; i < MEW_COUNTOF(cases); i++) {
		struct mew_case *c = mew_model_case(m, before && i == 5 ? "codec/retired" : cases[i].key, p.path);

		c->label = mew_model_string(m, cases[i].label);
		codec_case(m, &p, c, cases[i].samples, &seed);
		if (before)
			make_older(c);
		if (i == 4)
			c->nheap_stacks = 0;
		set_time(m, c, cases[i].median * (before && i != 3 ? 1.2 : 1), &seed);
		set_memory(m, c);
		set_cpu(m, c, cases[i].top, cases[i].share);
		if (i < 3)
			mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_BYTES_PER_SECOND, 312e6);
	}
	(void)mew_model_add_counter(m, &m->cases[1], "ratio", 3.42);
	codec_failures(m, p.path);
	codec_facts(m);
}

static void build_recorded(struct mew_model *m)
{
	struct program p;
	uint32_t seed = 11;

	codec_places(m, &p, false);
	for (unsigned i = 0; i < 2; i++) {
		struct mew_case *c = mew_model_case(m, i == 0 ? "bench_codec" : "bench_codec/2", NULL);
		const struct mew_memory_case *row = &c->memory;

		c->label = mew_model_string(m, "./bench_codec --level 9 corpus.tar");
		codec_case(m, &p, c, i == 0 ? 3000 : 40, &seed);
		set_memory(m, c);
		set_cpu(m, c, "copy_match (inflate.c:262)", 0.214);
		mew_model_u64(c, MEW_KIND_MEMORY, MEW_FIG_MEMORY_ITERATIONS, 1);
		mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_ALLOCATIONS_PER_ITERATION, (double)row->total_allocations);
		mew_model_f64(c, MEW_KIND_MEMORY, MEW_FIG_BYTES_PER_ITERATION, (double)row->cumulative_bytes);
		mew_model_list(m, c, MEW_KIND_MEMORY, MEW_FIG_LIVE_BY_ITERATION, NULL, 0);
		mew_model_u64(c, MEW_KIND_CPU, MEW_FIG_CPU_ITERATIONS, 1);
	}
	(void)mew_model_add_fact(m, MEW_FACT_RECORDED, "whole programs");
	codec_facts(m);
}

/* --- "twins" ---------------------------------------------------------------------------------------------------- */

/* Two functions of one name, in two files; times of a clock that knows but two. */
static void twin_case(struct mew_model *m, const char *key, const char *path)
{
	static const uint64_t ns[] = { 20, 30, 30, 30 };
	const struct mew_run run = { .phase = MEW_PHASE_MEASUREMENT_VALUE,
				     .loops = 1,
				     .nsamples = MEW_COUNTOF(ns),
				     .real_ns = ns };
	struct mew_case *c = mew_model_case(m, key, path);
	uint32_t module = mew_model_module(m, path, "", 1 << 16, false);

	for (unsigned i = 0; i < 2; i++) {
		uint32_t places[] = {
			place(m, module, 0x100 + i * 16, "work", i == 0 ? "a.c" : "b.c", 5, NULL),
			place(m, module, 0x200 + i * 16, i == 0 ? "from_a" : "from_b", "body.c", 20, NULL),
		};
		uint64_t bytes = i == 0 ? 1000 : 10;
		const struct mew_heap_stack h = { mew_model_stack(m, places, MEW_COUNTOF(places)), bytes, bytes, 1, 0 };

		(void)mew_model_add_heap_stack(c, &h);
	}
	set_memory(m, c);
	(void)mew_model_row(m, c, MEW_KIND_TIME);
	mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, 30);
	(void)mew_model_add_run(m, c, &run);
}

static void build_twins(struct mew_model *m, bool before)
{
	static const char *const keys[] = { "twin/same_name", "twin/other_name" };

	for (size_t i = 0; i < MEW_COUNTOF(keys); i++) {
		if (before) {
			twin_case(m, keys[i], i == 0 ? "/opt/old/second" : "/opt/old/third");
			continue;
		}
		twin_case(m, keys[i], "/usr/local/bin/first");
		twin_case(m, keys[i], "/usr/local/bin/second");
	}
}

/* --- the other shapes ------------------------------------------------------------------------------------------- */

static void build_hostile(struct mew_model *m)
{
	struct mew_case *c;
	uint32_t module = mew_model_module(m, "/tmp/<b>lib</b>.so", "", 4096, false), places[16], n = 0;
	char *lengthy = malloc(1000001);

	for (size_t i = 0; fx_html_hostile_names[i] != NULL; i++) {
		const char *name = fx_html_hostile_names[i];

		places[n++] = place(m, module, i * 64, name, name, (uint32_t)i, NULL);
		(void)mew_model_add_fact(m, name, name);
	}
	if (lengthy != NULL) {
		memset(lengthy, 'n', 1000000);
		lengthy[1000000] = '\0';
		places[n++] = place(m, module, 4000, lengthy, "long.c", 1, NULL);
		free(lengthy);
	}
	for (uint32_t depth = 1; depth <= n; depth++) {
		const struct mew_cpu_sample s = { mew_model_stack(m, places + n - depth, depth), 0, depth, 1000, false };
		const struct mew_heap_stack h = { s.stack, 10, 20, 1, 10 };

		c = mew_model_case(m, fx_html_hostile_names[1], fx_html_hostile_names[0]);
		(void)mew_model_add_sample(c, &s);
		(void)mew_model_add_heap_stack(c, &h);
	}
	c = mew_model_case(m, fx_html_hostile_names[1], fx_html_hostile_names[0]);
	c->label = mew_model_string(m, fx_html_hostile_names[0]);
	set_memory(m, c);
	set_cpu(m, c, fx_html_hostile_names[1], 0.5);
	c = mew_model_case(m, "__proto__", NULL);
	mew_model_fail(m, c, MEW_KIND_CPU, MEW_E_BODY, fx_html_hostile_names[0]);
	c->output = mew_model_string(m, fx_html_hostile_names[1]);
}

static void build_many(struct mew_model *m, size_t cases)
{
	char key[32];

	for (size_t i = 0; i < cases; i++) {
		struct mew_case *c;

		(void)snprintf(key, sizeof key, "many/%07zu", i);
		c = mew_model_case(m, key, "./many");
		(void)mew_model_row(m, c, MEW_KIND_TIME);
		mew_model_f64(c, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, 100 + (double)i);
	}
}

static void build_large(struct mew_model *m, size_t frames)
{
	struct mew_case *c = mew_model_case(m, "large", "./large");
	uint32_t module = mew_model_module(m, "/usr/local/bin/large", "00", 1 << 30, false), seed = 12345, places[64];
	uint32_t functions = frames / 20 < 300 ? 300 : frames / 20 > 20000 ? 20000 : (uint32_t)(frames / 20);
	char name[80];

	for (uint32_t i = 0; i < functions; i++) {
		(void)snprintf(name, sizeof name, "ns%u::Module%u::do_work_%u(int, char const*)", i % 37, i % 211, i);
		(void)place(m, module, i * 8ull, name, "work.cc", i, NULL);
	}
	for (size_t made = 0; made < frames;) {
		uint32_t depth = 8 + next_random(&seed, 52), f = next_random(&seed, 4);
		struct mew_cpu_sample s = { 0, 0, made, 1000 * (1 + next_random(&seed, 100)), false };

		for (uint32_t i = 0; i < depth; i++) {
			places[depth - 1 - i] = f; /* locations are numbered as they were made */
			f = (uint32_t)((f * 7919ull +
					(uint64_t)next_random(&seed, 12) * next_random(&seed, 2) * 104729u + 13) %
				       functions);
		}
		s.stack = mew_model_stack(m, places, depth);
		(void)mew_model_add_sample(c, &s);
		made += depth - 4; /* the rest of a stack is new to the tree */
	}
	set_cpu(m, c, "ns0::Module0::do_work_0 (work.cc:1)", 0.1);
}

struct mew_model *fx_html_model(const char *shape, size_t frames)
{
	struct mew_model *m = mew_model_new();

	if (m == NULL)
		return NULL;
	if (strcmp(shape, "codec") == 0) {
		build_codec(m, false);
	} else if (strcmp(shape, "before") == 0) {
		build_codec(m, true);
	} else if (strcmp(shape, "recorded") == 0) {
		build_recorded(m);
	} else if (strcmp(shape, "twins") == 0) {
		build_twins(m, false);
	} else if (strcmp(shape, "older_twins") == 0) {
		build_twins(m, true);
	} else if (strcmp(shape, "hostile") == 0) {
		build_hostile(m);
	} else if (strcmp(shape, "many") == 0) {
		build_many(m, frames);
	} else if (strcmp(shape, "large") == 0) {
		build_large(m, frames);
	} else if (strcmp(shape, "empty") != 0) {
		mew_model_free(m);
		return NULL;
	}
	mew_model_seal(m);
	return m;
}

static int write_page(struct mew_writer *w, void *data, struct mew_error *err)
{
	return mew_report_html.write(data, w, err);
}

int fx_html_write(const struct mew_model *m, const struct mew_model *base, const char *path)
{
	struct mew_report_input in = { .model = m, .base = base, .embed_source = 1 };
	struct mew_error err;

	return mew_write_file(path, write_page, &in, &err);
}
