/*
 * stackset.h - intern a stack to a 32-bit id.
 * Layer L1. Any thread, signal, malloc: lock-free insert over mapped memory, fixed capacity, overflow counted.
 */
#ifndef MEW_STACKSET_H
#define MEW_STACKSET_H

#include "base.h"

struct mew_stackset;

/* At most max_stacks stacks with max_frames frames together. Returns NULL without memory. Context: outside windows. */
struct mew_stackset *mew_stackset_new(size_t max_stacks, size_t max_frames);
void mew_stackset_free(struct mew_stackset *s); /* NULL is fine */

/*
 * Intern; equal stacks get equal ids.
 *
 * pcs      n addresses, leaf first; 1 <= n
 * Returns  id in 1 .. max_stacks; 0 when the set is full (counted in mew_stackset_lost)
 */
uint32_t mew_stackset_intern(struct mew_stackset *s, const uintptr_t *pcs, size_t n);

/* The id of a stack that is in the set, else 0. */
uint32_t mew_stackset_find(struct mew_stackset *s, const uintptr_t *pcs, size_t n);

/* The frames of an id that intern returned; *n is returned. Context: any thread. */
const uintptr_t *mew_stackset_frames(const struct mew_stackset *s, uint32_t id, size_t *n);
uint32_t mew_stackset_count(const struct mew_stackset *s);
uint64_t mew_stackset_lost(const struct mew_stackset *s);
/* Bytes mapped for it. */
size_t mew_stackset_bytes(const struct mew_stackset *s);

#endif
