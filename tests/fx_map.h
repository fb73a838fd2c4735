/*
 * fx_map.h - maps in pages, and what a body left mapped: its peak when something much larger is mapped then, the probe.
 * Test fixture of t_memory_mapped.c and t_memory_mapped_hostile.c.
 */
#ifndef FX_MAP_H
#define FX_MAP_H

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fx_alloc_rig.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define PROBE ((size_t)1 << 20) /* pages */

static inline char *map_at(char *at, size_t pages, int flags)
{
	return mmap(at, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static inline char *map(size_t pages)
{
	return map_at(NULL, pages, 0);
}

static inline int unmap(char *at, size_t pages)
{
	return munmap(at, pages * PAGE);
}

static inline char *remap(char *at, size_t old, size_t pages, int flags, char *target)
{
	return mremap(at, old * PAGE, pages * PAGE, flags, target);
}

static inline void probe(void)
{
	char *p = map(PROBE);

	if (p == MAP_FAILED)
		abort();
	(void)unmap(p, PROBE);
}

/* Run a body and compare its highest with so many pages. */
static inline void expect_peak(alloc_body_fn *body, void *data, bool stacks, size_t pages)
{
	struct alloc_rig rig = { .stacks = stacks, .body = body, .data = data };

	assert_int_equal(alloc_rig_run(&rig), MEW_OK);
	assert_true(rig.figures->present >> MEW_FIG_MAPPED_PEAK_BYTES & 1);
	assert_int_equal(rig.figures->mapped_peak_bytes, pages * PAGE);
	assert_int_equal(rig.figures->lost, 0);
	alloc_rig_free(&rig);
}

/* The same for a body that ends in a probe: `pages` are then what it left mapped. */
static inline void expect_left(alloc_body_fn *body, void *data, size_t pages)
{
	expect_peak(body, data, false, PROBE + pages);
}

static inline unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

static inline void map_and_unmap(struct alloc_rig *rig, unsigned thread)
{
	char *a, *b;

	(void)rig;
	(void)thread;
	for (unsigned i = 0; i < 10; i++) {
		a = mmap(NULL, 2 * PAGE + 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* 3 pages */
		b = map(4);
		(void)munmap(a, 2 * PAGE + 1);
		(void)unmap(b, 4);
	}
}

static inline void *do_nothing(void *data)
{
	return data;
}

/* Memory that the C library and mew map for themselves: large blocks, a thread's stack, tables of blocks and stacks. */
static inline void map_nothing(struct alloc_rig *rig, unsigned thread)
{
	static void *blocks[20000];
	pthread_t id;

	(void)rig;
	(void)thread;
	for (size_t i = 0; i < 20000; i++)
		blocks[i] = fx_malloc(i % 100 == 0 ? 300000 : 100);
	for (size_t i = 0; i < 20000; i++)
		fx_free(blocks[i]);
	if (pthread_create(&id, NULL, do_nothing, NULL) == 0)
		(void)pthread_join(id, NULL);
}

#endif
