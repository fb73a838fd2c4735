/*
 * ring.h - fixed records from one producer (a signal handler of one thread) to one consumer; drops are counted.
 * Layer L1. push: signal. pop: any one thread.
 */
#ifndef MEW_RING_H
#define MEW_RING_H

#include "base.h"

struct mew_ring {
	unsigned char *records;
	size_t record_bytes, capacity; /* capacity is a power of two */
	uint64_t head, tail;           /* next to write, next to read */
	uint64_t dropped;
};

/* Returns 0 or -1 without memory. Capacity is rounded up to a power of two. Context: outside windows. */
int mew_ring_init(struct mew_ring *r, size_t record_bytes, size_t capacity);
void mew_ring_fini(struct mew_ring *r);
/* Copies one record; false (and dropped + 1) when full. Context: the producer; signal. */
bool mew_ring_push(struct mew_ring *r, const void *record);
/* Copies the oldest record out; false when empty. Context: the consumer. */
bool mew_ring_pop(struct mew_ring *r, void *record);
uint64_t mew_ring_dropped(const struct mew_ring *r);

#endif
