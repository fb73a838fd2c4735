/*
 * fx_alloc_rig.c - a small runner for the memory backend.
 * Test fixture.
 */
#include "config.h"

#include "fx_alloc_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "sink.h"

#define THREADS_MAX 64u

void *(*volatile fx_malloc)(size_t) = malloc;
void *(*volatile fx_calloc)(size_t, size_t) = calloc;
void *(*volatile fx_realloc)(void *, size_t) = realloc;
void (*volatile fx_free)(void *) = free;

struct seat {
	struct alloc_rig *rig;
	unsigned index;
	pthread_t id;
	int status;
	struct mew_error error;
};

static pthread_barrier_t barrier;

void alloc_rig_pause(struct alloc_rig *rig, unsigned thread)
{
	mew_backend_memory.pause(rig->capture, thread);
}

void alloc_rig_resume(struct alloc_rig *rig, unsigned thread)
{
	mew_backend_memory.resume(rig->capture, thread);
}

static void meet(const struct alloc_rig *rig)
{
	if (rig->threads > 1)
		(void)pthread_barrier_wait(&barrier);
}

static void *sit(void *data)
{
	struct seat *seat = data;
	struct alloc_rig *rig = seat->rig;

	seat->status = mew_backend_memory.thread_begin(rig->capture, seat->index, &seat->error);
	meet(rig);
	if (seat->index == 0 && seat->status == MEW_OK)
		seat->status = mew_backend_memory.begin(rig->capture, &seat->error);
	meet(rig);
	if (seat->status == MEW_OK)
		rig->body(rig, seat->index);
	meet(rig);
	if (seat->index == 0)
		mew_backend_memory.end(rig->capture);
	meet(rig);
	mew_backend_memory.thread_end(rig->capture, seat->index);
	return NULL;
}

static int run_threads(struct alloc_rig *rig)
{
	static struct seat seats[THREADS_MAX];
	int status = MEW_OK;

	memset(seats, 0, sizeof seats);
	if (rig->threads > 1 && pthread_barrier_init(&barrier, NULL, rig->threads) != 0)
		return MEW_E_NOMEM;
	for (unsigned i = 0; i < rig->threads; i++) {
		seats[i].rig = rig;
		seats[i].index = i;
		if (rig->threads > 1 && pthread_create(&seats[i].id, NULL, sit, &seats[i]) != 0) {
			(void)fprintf(stderr, "the fixture cannot start %u threads\n", rig->threads);
			abort();
		}
	}
	if (rig->threads == 1)
		(void)sit(&seats[0]);
	for (unsigned i = 0; i < rig->threads; i++) {
		if (rig->threads > 1)
			(void)pthread_join(seats[i].id, NULL);
		if (status == MEW_OK && seats[i].status != MEW_OK) {
			status = seats[i].status;
			rig->error = seats[i].error;
		}
	}
	if (rig->threads > 1)
		(void)pthread_barrier_destroy(&barrier);
	return status;
}

static void must_equal(const char *what, uint64_t sum, uint64_t figure)
{
	if (sum == figure)
		return;
	(void)fprintf(stderr, "over all stacks %s is %llu, the figure is %llu\n", what, (unsigned long long)sum,
		      (unsigned long long)figure);
	abort();
}

static void compare_sums(const struct mew_case *row)
{
	uint64_t peak = 0, cumulative = 0, allocations = 0, net = 0;

	for (size_t i = 0; i < row->nheap_stacks; i++) {
		peak += row->heap_stacks[i].peak_bytes;
		cumulative += row->heap_stacks[i].cumulative_bytes;
		allocations += row->heap_stacks[i].allocations;
		net += row->heap_stacks[i].net_bytes;
	}
	must_equal("peak_bytes", peak, row->memory.peak_bytes);
	must_equal("cumulative_bytes", cumulative, row->memory.cumulative_bytes);
	must_equal("allocations", allocations, row->memory.total_allocations);
	must_equal("net_bytes", net, row->memory.net_bytes);
}

static int drain(struct alloc_rig *rig)
{
	struct mew_sink sink = { .model = rig->model, .kind = MEW_KIND_MEMORY, .iterations = rig->iterations };
	int status;

	rig->row = mew_model_case(rig->model, "rig", NULL);
	if (rig->row == NULL || mew_model_row(rig->model, rig->row, MEW_KIND_MEMORY) == NULL)
		return MEW_E_NOMEM;
	sink.row = rig->row;
	status = mew_backend_memory.drain(rig->capture, &sink, &rig->error);
	rig->figures = &rig->row->memory;
	if (status == MEW_OK && rig->stacks)
		compare_sums(rig->row);
	return status;
}

int alloc_rig_run(struct alloc_rig *rig)
{
	struct mew_capture_config config = { .pass = MEW_PASS_MEMORY, .stacks = rig->stacks };
	int status;

	rig->threads = rig->threads == 0 ? 1 : rig->threads;
	rig->iterations = rig->iterations == 0 ? 1 : rig->iterations;
	config.threads = rig->threads;
	mew_error_clear(&rig->error);
	rig->model = mew_model_new();
	if (rig->model == NULL || rig->threads > THREADS_MAX)
		return MEW_E_NOMEM;
	status = mew_backend_memory.open(&rig->capture, &config, &rig->error);
	if (status == MEW_OK) {
		status = run_threads(rig);
		if (status == MEW_OK)
			status = drain(rig);
		mew_backend_memory.close(rig->capture);
	}
	if (status != MEW_OK)
		(void)fprintf(stderr, "the backend said: %s\n", rig->error.text);
	return status;
}

void alloc_rig_free(struct alloc_rig *rig)
{
	mew_model_free(rig->model);
	rig->model = NULL;
}

static unsigned differs(const char *name, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	(void)fprintf(stderr, "%s is %llu, not %llu\n", name, (unsigned long long)got, (unsigned long long)want);
	return 1;
}

unsigned alloc_rig_compare(const struct alloc_rig *rig, const struct alloc_figures *want)
{
	const struct mew_memory_case *got = rig->figures;

	return differs("peak_bytes", got->peak_bytes, want->peak) +
	       differs("total_bytes", got->total_bytes, want->peak) +
	       differs("total_allocations", got->total_allocations, want->allocations) +
	       differs("cumulative_bytes", got->cumulative_bytes, want->cumulative) +
	       differs("frees", got->frees, want->frees) + differs("reallocs_moved", got->reallocs_moved, want->moved) +
	       differs("reallocs_in_place", got->reallocs_in_place, want->in_place) +
	       differs("failed", got->failed, want->failed) +
	       differs("foreign_frees", got->foreign_frees, want->foreign) +
	       differs("adopted", got->adopted, want->adopted) +
	       differs("net_bytes", got->net_bytes, want->net_bytes) +
	       differs("net_blocks", got->net_blocks, want->net_blocks) + differs("lost", got->lost, 0);
}
