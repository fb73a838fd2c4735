/*
 * firefox.c - a processed profile for profiler.firefox.com, one file for all cases.
 * Layer L5. Reads a sealed model; the same model gives the same bytes.
 *
 * Version 57 of the processed format: a reader refuses what is newer than itself and upgrades what is older, and this
 * is the newest that readers outside the Profiler take too. A case is a process and has these threads:
 *
 *   "CASE, thread N"             samples in time order, weights in milliseconds; time on a processor is 0 for samples
 *                                whose thread was blocked
 *   "CASE, memory at the peak"   weights in bytes, a row for each stack, without a time of their own; its native
 *                                allocations are all bytes that the loop allocated
 *   "CASE, allocations" and "CASE, memory alive at the end" likewise, where there are any
 *
 * Times are exact decimal milliseconds since the window opened. Threads have tables of their own (firefox_tables.h);
 * their texts are in one list for the file, so that it comes last.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "firefox_tables.h"
#include "mew/report.h"
#include "stacks.h"
#include "symbolise.h"
#include "textual.h"

#define PRETTY 3u           /* members of a thread on a line each */
#define PROCESSED_VERSION 57u
#define GECKO_VERSION 27u   /* of the unprocessed format that it would have come from */
#define ROW_NS ((uint64_t)1000) /* between rows that have no time: a range of no length cannot be shown */
#define GUID_BYTES 16u

struct row {
	uint32_t stack;
	bool blocked;
	uint64_t time_ns, weight;
};

struct thread {
	char *name;
	const char *weights; /* "tracing-ms", "bytes" or "samples" */
	struct row *rows;
	size_t n;
	const struct mew_stack_sum *allocated; /* NULL: no native allocations */
	size_t nallocated;
};

struct file {
	struct mew_json j;
	const struct mew_model *m;
	const struct mew_case *c; /* whose threads are written */
	struct mew_shown_functions shown;
	struct mew_strings strings;
	uint64_t pid, tid;
	bool failed;
};

/* --- small members ---------------------------------------------------------------------------------------------- */

static void put_empty(struct mew_json *j, const char *key)
{
	mew_firefox_column(j, key);
	mew_json_array_end(j);
}

/* --- the head --------------------------------------------------------------------------------------------------- */

static void put_categories(struct mew_json *j)
{
	static const char *const categories[][2] = {
		[MEW_FIREFOX_OTHER] = { "Other", "grey" },
		[MEW_FIREFOX_PROGRAM] = { "Program", "blue" },
		[MEW_FIREFOX_LIBRARY] = { "Library", "green" },
		[MEW_FIREFOX_UNNAMED] = { "No name", "orange" },
	};

	mew_firefox_column(j, "categories");
	for (size_t i = 0; i < MEW_COUNTOF(categories); i++) {
		mew_json_object(j);
		mew_json_put_text(j, "name", categories[i][0]);
		mew_json_put_text(j, "color", categories[i][1]);
		mew_firefox_column(j, "subcategories");
		mew_json_string(j, "Other");
		mew_json_array_end(j);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static uint64_t least_interval_ns(const struct mew_model *m)
{
	uint64_t least = 0;

	for (size_t i = 0; i < m->ncases; i++) {
		uint64_t interval = mew_stack_interval_ns(&m->cases[i]);

		if (interval != 0 && (least == 0 || interval < least))
			least = interval;
	}
	return least != 0 ? least : 1000000;
}

static void put_meta(struct file *f)
{
	struct mew_json *j = &f->j;

	mew_json_key(j, "meta");
	mew_json_object(j);
	mew_json_key(j, "interval");
	mew_json_ms(j, least_interval_ns(f->m));
	mew_json_put_u64(j, "startTime", 0);
	mew_json_put_u64(j, "processType", 0);
	mew_json_put_text(j, "product", "mew");
	mew_json_put_text(j, "importedFrom", "mew " MEW_VERSION);
	mew_json_put_u64(j, "stackwalk", 1);
	mew_json_put_u64(j, "version", GECKO_VERSION);
	mew_json_put_u64(j, "preprocessedProfileVersion", PROCESSED_VERSION);
	mew_json_put_bool(j, "symbolicated", true);
	mew_json_put_bool(j, "usesOnlyOneStackType", true);
	mew_json_put_bool(j, "sourceCodeIsNotOnSearchfox", true);
	mew_json_put_bool(j, "keepProfileThreadOrder", true);
	mew_firefox_column(j, "initialSelectedThreads"); /* there is one: a file without stacks is not written */
	mew_json_u64(j, 0);
	mew_json_array_end(j);
	if (mew_model_fact(f->m, "cpu_model") != NULL)
		mew_json_put_text(j, "CPUName", mew_model_fact(f->m, "cpu_model"));
	if (mew_model_fact(f->m, "kernel") != NULL)
		mew_json_put_text(j, "oscpu", mew_model_fact(f->m, "kernel"));
	mew_json_key(j, "sampleUnits");
	mew_json_object(j);
	mew_json_put_text(j, "time", "ms");
	mew_json_put_text(j, "eventDelay", "ms");
	mew_json_put_text(j, "threadCPUDelta", "ns");
	mew_json_object_end(j);
	put_empty(j, "markerSchema");
	put_categories(j);
	mew_json_object_end(j);
}

static unsigned hex_digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 0;
}

/*
 * The build id as symbol servers of Breakpad know it: its first sixteen bytes as a GUID, whose first three fields are
 * numbers and turn round, and the age 0.
 */
static void breakpad_id(const char *build_id, char out[2 * GUID_BYTES + 2])
{
	static const unsigned char order[GUID_BYTES] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	static const char digits[] = "0123456789ABCDEF";
	unsigned char bytes[GUID_BYTES] = { 0 };

	for (size_t i = 0; i < GUID_BYTES && build_id[2 * i] != '\0' && build_id[2 * i + 1] != '\0'; i++)
		bytes[i] = (unsigned char)(hex_digit(build_id[2 * i]) << 4 | hex_digit(build_id[2 * i + 1]));
	for (size_t i = 0; i < GUID_BYTES; i++) {
		out[2 * i] = digits[bytes[order[i]] >> 4];
		out[2 * i + 1] = digits[bytes[order[i]] & 15];
	}
	memcpy(out + (size_t)2 * GUID_BYTES, "0", 2);
}

static void put_libs(struct file *f)
{
	struct mew_json *j = &f->j;

	mew_firefox_column(j, "libs");
	for (uint32_t i = 0; i < f->m->nmodules; i++) {
		const struct mew_module *module = &f->m->modules[i];
		char id[2 * GUID_BYTES + 2] = "";

		if (module->build_id[0] != '\0')
			breakpad_id(module->build_id, id);
		mew_json_object(j);
		mew_json_put_text(j, "arch", "");
		mew_json_put_text(j, "name", mew_module_name(f->m, i));
		mew_json_put_text(j, "path", module->path);
		mew_json_put_text(j, "debugName", mew_module_name(f->m, i));
		mew_json_put_text(j, "debugPath", module->path);
		mew_json_put_text(j, "breakpadId", id);
		mew_json_put_text(j, "codeId", module->build_id[0] != '\0' ? module->build_id : NULL);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

/* --- a thread --------------------------------------------------------------------------------------------------- */

static void put_node(struct file *f, const struct mew_firefox_tables *t, uint32_t stack)
{
	mew_json_u64(&f->j, t->node_of[mew_firefox_stack(f->m, stack)]);
}

static void put_samples(struct file *f, const struct mew_firefox_tables *t, const struct thread *thread)
{
	struct mew_json *j = &f->j;
	bool timed = strcmp(thread->weights, "tracing-ms") == 0;

	mew_json_key(j, "samples");
	mew_json_object(j);
	mew_json_put_u64(j, "length", thread->n);
	mew_json_put_text(j, "weightType", thread->weights);
	mew_firefox_column(j, "stack");
	for (size_t i = 0; i < thread->n; i++)
		put_node(f, t, thread->rows[i].stack);
	mew_json_array_end(j);
	mew_firefox_column(j, "time");
	for (size_t i = 0; i < thread->n; i++)
		mew_json_ms(j, thread->rows[i].time_ns);
	mew_json_array_end(j);
	mew_firefox_column(j, "weight");
	for (size_t i = 0; i < thread->n; i++)
		if (timed)
			mew_json_ms(j, thread->rows[i].weight);
		else
			mew_json_u64(j, thread->rows[i].weight);
	mew_json_array_end(j);
	if (timed) {
		mew_firefox_column(j, "threadCPUDelta");
		for (size_t i = 0; i < thread->n; i++)
			mew_json_u64(j, thread->rows[i].blocked ? 0 : thread->rows[i].weight);
		mew_json_array_end(j);
	}
	mew_json_object_end(j);
}

/* Rows without an address: sums of a stack, not single blocks, so that readers do not look for the frees of each. */
static void put_native_allocations(struct file *f, const struct mew_firefox_tables *t, const struct thread *thread)
{
	enum { STACK, TIME, WEIGHT, COLUMNS };
	static const char *const keys[COLUMNS] = { "stack", "time", "weight" };
	struct mew_json *j = &f->j;
	size_t n = 0;

	mew_json_key(j, "nativeAllocations");
	mew_json_object(j);
	mew_json_put_text(j, "weightType", "bytes");
	for (int column = 0; column < COLUMNS; column++) {
		mew_firefox_column(j, keys[column]);
		n = 0;
		for (size_t i = 0; i < thread->nallocated; i++) {
			const struct mew_stack_sum *sum = &thread->allocated[i];

			if (sum->values[MEW_STACK_CUMULATIVE] == 0)
				continue;
			if (column == STACK)
				put_node(f, t, sum->stack);
			else if (column == TIME)
				mew_json_ms(j, n * ROW_NS);
			else
				mew_json_u64(j, sum->values[MEW_STACK_CUMULATIVE]);
			n++;
		}
		mew_json_array_end(j);
	}
	mew_json_put_u64(j, "length", n);
	mew_json_object_end(j);
}

static void put_no_markers(struct mew_json *j)
{
	static const char *const columns[] = { "data", "name", "startTime", "endTime", "phase", "category" };

	mew_json_key(j, "markers");
	mew_json_object(j);
	mew_json_put_u64(j, "length", 0);
	for (size_t i = 0; i < MEW_COUNTOF(columns); i++)
		put_empty(j, columns[i]);
	mew_json_object_end(j);
}

static void put_thread_head(struct file *f, const struct thread *thread, const char *process)
{
	struct mew_json *j = &f->j;
	char pid[24];

	(void)snprintf(pid, sizeof pid, "%llu", (unsigned long long)f->pid);
	mew_json_put_text(j, "name", thread->name);
	mew_json_put_text(j, "processName", process);
	mew_json_put_text(j, "processType", "default");
	mew_json_put_text(j, "pid", pid);
	mew_json_put_u64(j, "tid", f->tid++);
	mew_json_put_bool(j, "isMainThread", true); /* of the thread, not only the first: others are hidden at first */
	mew_json_put_u64(j, "registerTime", 0);
	mew_json_key(j, "unregisterTime");
	mew_json_null(j);
	mew_json_put_u64(j, "processStartupTime", 0);
	mew_json_key(j, "processShutdownTime");
	mew_json_null(j);
	put_empty(j, "pausedRanges");
}

static bool *used_stacks(const struct file *f, const struct thread *thread)
{
	bool *used = calloc(f->m->nstacks + 1, sizeof *used);

	if (used == NULL)
		return NULL;
	for (size_t i = 0; i < thread->n; i++)
		used[mew_firefox_stack(f->m, thread->rows[i].stack)] = true;
	for (size_t i = 0; i < thread->nallocated; i++)
		if (thread->allocated[i].values[MEW_STACK_CUMULATIVE] != 0)
			used[mew_firefox_stack(f->m, thread->allocated[i].stack)] = true;
	return used;
}

static void put_thread(struct file *f, const struct thread *thread, const char *process)
{
	struct mew_firefox_tables t = {
		.m = f->m, .shown = &f->shown, .strings = &f->strings, .program = mew_stack_program(f->m, f->c)
	};
	bool *used = thread->rows == NULL ? NULL : used_stacks(f, thread);

	if (used == NULL || thread->name == NULL || mew_firefox_tables_init(&t, used) != 0) {
		f->failed = true;
	} else {
		mew_json_object(&f->j);
		put_thread_head(f, thread, process);
		put_samples(f, &t, thread);
		if (thread->allocated != NULL)
			put_native_allocations(f, &t, thread);
		put_no_markers(&f->j);
		if (mew_firefox_put_tables(&f->j, &t) != 0)
			f->failed = true;
		mew_json_object_end(&f->j);
	}
	mew_firefox_tables_fini(&t);
	free(used);
}

/* --- the threads of a case -------------------------------------------------------------------------------------- */

/* "CASE, WHAT"; NULL without memory. */
static char *thread_name(const char *process, const char *what)
{
	char *name;

	return asprintf(&name, "%s, %s", process, what) < 0 ? NULL : name;
}

/* The first n samples of `order` are those of one thread. */
static void put_cpu_thread(struct file *f, const char *process, const struct mew_cpu_sample **order, size_t n)
{
	struct thread thread = { .weights = "tracing-ms", .rows = calloc(n + 1, sizeof *thread.rows), .n = n };
	char what[32];

	for (size_t i = 0; thread.rows != NULL && i < n; i++)
		thread.rows[i] = (struct row){ order[i]->stack, order[i]->blocked, order[i]->time_ns,
					       mew_stack_plus(order[i]->weight_ns, 0) };
	(void)snprintf(what, sizeof what, "thread %u", order[0]->thread);
	thread.name = thread_name(process, what);
	put_thread(f, &thread, process);
	free(thread.name);
	free(thread.rows);
}

static void put_cpu(struct file *f, const char *process)
{
	const struct mew_cpu_sample **order = mew_stack_timeline(f->c, true);

	if (order == NULL)
		f->failed = true;
	for (size_t first = 0, n; !f->failed && first < f->c->nsamples; first += n) {
		for (n = 1; first + n < f->c->nsamples && order[first + n]->thread == order[first]->thread; n++)
			;
		put_cpu_thread(f, process, order + first, n);
	}
	free(order);
}

static void put_metric(struct file *f, const char *process, const struct mew_stack_metric *metric,
		       const struct mew_stack_sum *sums, size_t n, struct row *rows)
{
	struct thread thread = { .weights = metric->bytes ? "bytes" : "samples", .rows = rows };

	for (size_t i = 0; i < n; i++)
		if (sums[i].values[metric->value] != 0) {
			rows[thread.n] = (struct row){ sums[i].stack, false, thread.n * ROW_NS,
						       sums[i].values[metric->value] };
			thread.n++;
		}
	if (metric->value == MEW_STACK_PEAK) {
		thread.allocated = sums;
		thread.nallocated = n;
	} else if (thread.n == 0 || metric->value == MEW_STACK_CUMULATIVE) {
		return;
	}
	thread.name = thread_name(process, metric->what);
	put_thread(f, &thread, process);
	free(thread.name);
}

static void put_memory(struct file *f, const char *process)
{
	size_t n = 0;
	struct mew_stack_sum *sums = mew_stack_sums(f->m, f->c, MEW_KIND_MEMORY, false, &n);
	struct row *rows = calloc(n + 1, sizeof *rows);

	if (sums == NULL || rows == NULL)
		f->failed = true;
	for (size_t i = 0; !f->failed && n > 0 && i < MEW_MEMORY_METRICS; i++)
		put_metric(f, process, &mew_memory_metrics[i], sums, n, rows);
	free(rows);
	free(sums);
}

static void put_threads(struct file *f)
{
	mew_firefox_column(&f->j, "threads");
	for (size_t i = 0; !f->failed && i < f->m->ncases; i++) {
		char *process = mew_case_title(f->m, &f->m->cases[i]);

		f->c = &f->m->cases[i];
		f->pid = i + 1;
		if (process == NULL) {
			f->failed = true;
			break;
		}
		put_cpu(f, process);
		if (!f->failed)
			put_memory(f, process);
		free(process);
	}
	mew_json_array_end(&f->j);
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static void put_file(struct file *f)
{
	struct mew_json *j = &f->j;

	mew_json_object(j);
	put_meta(f);
	put_libs(f);
	put_empty(j, "pages");
	put_empty(j, "counters");
	put_empty(j, "profilerOverhead");
	put_threads(f);
	mew_json_key(j, "shared");
	mew_json_object(j);
	mew_firefox_column(j, "stringArray");
	for (uint32_t i = 0; i < f->strings.n; i++)
		mew_json_string(j, f->strings.all[i]);
	mew_json_array_end(j);
	mew_json_object_end(j);
	mew_json_object_end(j);
	mew_write_char(j->w, '\n');
	f->failed = f->failed || f->strings.failed;
}

static int write_firefox(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct file f = { .m = in->model, .tid = 1 };

	if (!mew_stack_any(in->model))
		return mew_error_set(err, MEW_E_INVALID,
				     "--firefox: there are no stacks to write; add --memory or --cpu");
	mew_json_init(&f.j, w, PRETTY);
	f.failed = mew_shown_functions_init(&f.shown, in->model, NULL) != 0;
	if (!f.failed)
		put_file(&f);
	mew_shown_functions_fini(&f.shown);
	mew_strings_fini(&f.strings);
	return f.failed ? mew_error_set(err, MEW_E_NOMEM, "the Firefox profile could not be written: out of memory") :
	       MEW_OK;
}

const struct mew_report mew_report_firefox = {
	.abi = MEW_REPORT_ABI,
	.name = "firefox",
	.help = "samples and memory of all cases for profiler.firefox.com, one file",
	.suffix = ".firefox.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 1,
	.write = write_firefox,
};
