/*
 * fx_alloc_rig.h - a small runner for the memory backend: one window around a body on one or more threads.
 * Test fixture. Everything of the rig's own happens outside the window or without the heap.
 */
#ifndef FX_ALLOC_RIG_H
#define FX_ALLOC_RIG_H

#include "base.h"
#include "mew.h"
#include "mew/backend.h"
#include "model.h"

extern const struct mew_backend mew_backend_memory;

struct alloc_rig;
typedef void alloc_body_fn(struct alloc_rig *rig, unsigned thread);

struct alloc_rig {
	bool stacks;
	unsigned threads;       /* 0 means 1, the caller's */
	uint64_t iterations;    /* said to the backend; 0 means 1 */
	alloc_body_fn *body;
	void *data;             /* the body's */

	struct mew_capture *capture;
	struct mew_model *model;
	struct mew_case *row;   /* of `model` */
	const struct mew_memory_case *figures;
	struct mew_error error;
};

/*
 * Run the body in a window. Afterwards row and figures are set, and every figure is present.
 * Where stacks were captured their sums have been compared with the figures already.
 *
 * Returns  the backend's status; `error` has its text, which is printed
 */
int alloc_rig_run(struct alloc_rig *rig);
void alloc_rig_free(struct alloc_rig *rig);

struct alloc_figures { /* expected; what is not named must be 0, and so must `lost` */
	uint64_t peak, allocations, cumulative, frees, moved, in_place, failed, foreign, adopted, net_bytes, net_blocks;
};

/* Compare all figures; differences are printed. Returns how many there are. */
unsigned alloc_rig_compare(const struct alloc_rig *rig, const struct alloc_figures *want);

/* For bodies: in and out of a pause. */
void alloc_rig_pause(struct alloc_rig *rig, unsigned thread);
void alloc_rig_resume(struct alloc_rig *rig, unsigned thread);

/* The allocator, through pointers that no compiler may look through. */
extern void *(*volatile fx_malloc)(size_t);
extern void *(*volatile fx_calloc)(size_t, size_t);
extern void *(*volatile fx_realloc)(void *, size_t);
extern void (*volatile fx_free)(void *);

#endif
