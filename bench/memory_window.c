/*
 * memory_window.c - opens a window of the memory backend around a workload that knows nothing of mew.
 * For bench/ alone: a library to preload behind libmew_hooks. MEW_BENCH_MODE is "count" (default) or "capture".
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mew.h"
#include "mew/backend.h"
#include "sink.h"

#define EXPORT __attribute__((visibility("default")))

extern const struct mew_backend mew_backend_memory;

EXPORT void bench_window_open(void);
EXPORT void bench_window_close(void);

static struct mew_capture *capture;
static struct mew_error err;

static void give_up(void)
{
	(void)fprintf(stderr, "memory_window: %s\n", err.text);
	exit(2);
}

void bench_window_open(void)
{
	const char *mode = getenv("MEW_BENCH_MODE");
	struct mew_capture_config config = { .pass = MEW_PASS_MEMORY, .threads = 1 };

	config.stacks = mode != NULL && strcmp(mode, "capture") == 0;
	if (mew_backend_memory.open(&capture, &config, &err) != MEW_OK ||
	    mew_backend_memory.thread_begin(capture, 0, &err) != MEW_OK ||
	    mew_backend_memory.begin(capture, &err) != MEW_OK)
		give_up();
}

void bench_window_close(void)
{
	struct mew_model *model = mew_model_new();
	struct mew_sink sink = { .model = model, .kind = MEW_KIND_MEMORY, .iterations = 1 };
	uint64_t sum = 0;

	mew_backend_memory.end(capture);
	mew_backend_memory.thread_end(capture, 0);
	sink.row = model != NULL ? mew_model_case(model, "window", NULL) : NULL;
	if (sink.row == NULL || mew_model_row(model, sink.row, MEW_KIND_MEMORY) == NULL ||
	    mew_backend_memory.drain(capture, &sink, &err) != MEW_OK)
		give_up();
	for (size_t i = 0; i < sink.row->nheap_stacks; i++)
		sum += sink.row->heap_stacks[i].peak_bytes;
	(void)fprintf(stderr, "peak_bytes %llu total_allocations %llu stacks %zu sum_at_peak %llu\n",
		      (unsigned long long)sink.row->memory.peak_bytes,
		      (unsigned long long)sink.row->memory.total_allocations, sink.row->nheap_stacks,
		      (unsigned long long)sum);
	mew_backend_memory.close(capture);
	mew_model_free(model);
}
