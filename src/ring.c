/*
 * ring.c - a ring of fixed records for one producer and one consumer, without locks.
 * Layer L1. push runs in a signal handler; head and tail only ever grow, so neither side waits for the other.
 */
#include "config.h"

#include "ring.h"

#include <string.h>

#include "kept.h"

#include "hotpath.h"

int mew_ring_init(struct mew_ring *r, size_t record_bytes, size_t capacity)
{
	size_t rounded = 1, bytes;

	*r = (struct mew_ring){ .record_bytes = record_bytes };
	while (rounded < capacity && rounded <= SIZE_MAX / 2)
		rounded *= 2;
	if (rounded < capacity || record_bytes == 0 || !mew_mul_size(rounded, record_bytes, &bytes))
		return -1;
	r->records = mew_kept_map(bytes);
	if (r->records == NULL)
		return -1;
	r->capacity = rounded;
	return 0;
}

void mew_ring_fini(struct mew_ring *r)
{
	mew_kept_unmap(r->records, r->capacity * r->record_bytes);
	*r = (struct mew_ring){ .records = NULL };
}

static void *place(const struct mew_ring *r, uint64_t number)
{
	return r->records + (size_t)(number & (r->capacity - 1)) * r->record_bytes;
}

bool mew_ring_push(struct mew_ring *r, const void *record)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);

	if (head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= r->capacity) {
		__atomic_store_n(&r->dropped, __atomic_load_n(&r->dropped, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
		return false;
	}
	memcpy(place(r, head), record, r->record_bytes);
	__atomic_store_n(&r->head, head + 1, __ATOMIC_RELEASE);
	return true;
}

bool mew_ring_pop(struct mew_ring *r, void *record)
{
	uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_RELAXED);

	if (tail == __atomic_load_n(&r->head, __ATOMIC_ACQUIRE))
		return false;
	memcpy(record, place(r, tail), r->record_bytes);
	__atomic_store_n(&r->tail, tail + 1, __ATOMIC_RELEASE);
	return true;
}

uint64_t mew_ring_dropped(const struct mew_ring *r)
{
	return __atomic_load_n(&r->dropped, __ATOMIC_RELAXED);
}
