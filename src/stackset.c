/*
 * stackset.c - an open-addressed hash set of stacks that only grows, without locks.
 * Layer L1. Any thread, signal, malloc. A stack is written first and its slot filled by one compare-and-swap after
 * that, so whoever finds an id finds its frames; an interrupted insert leaves nothing half visible and nobody waits.
 */
#include "config.h"

#include "stackset.h"

#include <stdatomic.h>

#include "kept.h"

#include "hotpath.h"

#define RECENT 1024u

struct entry {
	uint32_t first, n; /* frames */
};

struct mew_stackset {
	size_t bytes; /* of the map that begins with this struct */
	size_t max_stacks, max_frames;
	size_t mask;                  /* slots - 1 */
	_Atomic uint64_t used;        /* ids given out in the upper half, frames in the lower */
	_Atomic uint64_t lost;
	_Atomic uint64_t *slots;      /* 0, or hash tag in the upper half and id in the lower */
	struct entry *entries;        /* by id - 1 */
	uintptr_t *frames;
	_Atomic uint32_t recent[RECENT]; /* ids by hash: a hint that is close together, where the slots are far apart */
};

#define ONE_ID ((uint64_t)1 << 32)

static size_t align_line(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

struct mew_stackset *mew_stackset_new(size_t max_stacks, size_t max_frames)
{
	const size_t limit = UINT32_MAX; /* what ids and frame numbers can name */
	size_t nslots = 16, slots, entries, frames, bytes;
	struct mew_stackset *s;

	if (max_stacks == 0 || max_stacks >= limit || max_frames >= limit)
		return NULL;
	while (nslots < 2 * max_stacks)
		nslots *= 2;
	slots = align_line(sizeof *s);
	entries = slots + align_line(nslots * sizeof *s->slots);
	frames = entries + align_line(max_stacks * sizeof *s->entries);
	bytes = frames + max_frames * sizeof *s->frames;
	s = mew_kept_map(bytes);
	if (s == NULL)
		return NULL;
	s->bytes = bytes;
	s->max_stacks = max_stacks;
	s->max_frames = max_frames;
	s->mask = nslots - 1;
	s->slots = (_Atomic uint64_t *)((char *)s + slots);
	s->entries = (struct entry *)((char *)s + entries);
	s->frames = (uintptr_t *)((char *)s + frames);
	return s;
}

void mew_stackset_free(struct mew_stackset *s)
{
	if (s != NULL)
		mew_kept_unmap(s, s->bytes);
}

/* Four chains side by side, so that their multiplications overlap: a stack is hashed about as fast as it is read. */
static inline uint64_t hash(const uintptr_t *pcs, size_t n)
{
	const uint64_t mix = 0x9e3779b97f4a7c15u;
	uint64_t a = n, b = 1, c = 2, d = 3;
	size_t i = 0;

	for (; i + 4 <= n; i += 4) {
		a = (a ^ pcs[i]) * mix;
		b = (b ^ pcs[i + 1]) * mix;
		c = (c ^ pcs[i + 2]) * mix;
		d = (d ^ pcs[i + 3]) * mix;
	}
	for (; i < n; i++)
		a = (a ^ pcs[i]) * mix;
	a ^= a >> 32;
	a = (a ^ b) * 0xff51afd7ed558ccdu;
	a = (a ^ a >> 32 ^ c) * 0xff51afd7ed558ccdu;
	a = (a ^ a >> 32 ^ d) * 0xff51afd7ed558ccdu;
	return a ^ a >> 32;
}

static inline bool same(const struct mew_stackset *s, uint32_t id, const uintptr_t *pcs, size_t n)
{
	const struct entry *e = &s->entries[id - 1];
	const uintptr_t *have = s->frames + e->first;

	uintptr_t differences = 0;

	if (e->n != n)
		return false;
	for (size_t i = 0; i < n; i++) /* the hashes are equal, so nothing is gained by stopping early */
		differences |= have[i] ^ pcs[i];
	return differences == 0;
}

/* Take the next id and n frames in one step; false when either has run out. */
static bool take(struct mew_stackset *s, size_t n, uint64_t *before)
{
	uint64_t used = atomic_load_explicit(&s->used, memory_order_relaxed);

	do {
		if (used >> 32 >= s->max_stacks || n > s->max_frames - (uint32_t)used)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&s->used, &used, used + ONE_ID + n, memory_order_acq_rel,
							memory_order_relaxed));
	*before = used;
	return true;
}

/*
 * Another thread was first with the same stack. What was taken is given back when nobody took more since; else the id
 * stays as a second name of these frames that nobody was told.
 */
static void give_back(struct mew_stackset *s, size_t n, uint64_t before)
{
	uint64_t used = before + ONE_ID + n;

	(void)atomic_compare_exchange_strong_explicit(&s->used, &used, before, memory_order_acq_rel,
						      memory_order_relaxed);
}

static uint32_t write_stack(struct mew_stackset *s, const uintptr_t *pcs, size_t n, uint64_t before)
{
	uint32_t id = (uint32_t)(before >> 32) + 1;
	struct entry *e = &s->entries[id - 1];

	*e = (struct entry){ (uint32_t)before, (uint32_t)n };
	for (size_t i = 0; i < n; i++)
		s->frames[e->first + i] = pcs[i];
	return id;
}

static uint32_t lose(struct mew_stackset *s)
{
	atomic_fetch_add_explicit(&s->lost, 1, memory_order_relaxed);
	return 0;
}

#define TAG 0xffffffff00000000u

static inline size_t first_slot(const struct mew_stackset *s, uint64_t h)
{
	return (size_t)h & s->mask;
}

uint32_t mew_stackset_find(struct mew_stackset *s, const uintptr_t *pcs, size_t n)
{
	uint64_t h = hash(pcs, n), slot;
	_Atomic uint32_t *recent = &s->recent[h % RECENT];
	uint32_t id = atomic_load_explicit(recent, memory_order_acquire);

	if (MEW_LIKELY(id != 0) && MEW_LIKELY(same(s, id, pcs, n)))
		return id;
	for (size_t at = first_slot(s, h);; at = (at + 1) & s->mask) { /* ends: at least half of the slots are empty */
		slot = atomic_load_explicit(&s->slots[at], memory_order_acquire);
		if (slot == 0)
			return 0;
		if (((slot ^ h) & TAG) == 0 && same(s, (uint32_t)slot, pcs, n)) {
			atomic_store_explicit(recent, (uint32_t)slot, memory_order_release);
			return (uint32_t)slot;
		}
	}
}

uint32_t mew_stackset_intern(struct mew_stackset *s, const uintptr_t *pcs, size_t n)
{
	uint64_t h = hash(pcs, n), tag = h & TAG, before = 0;
	size_t at = first_slot(s, h);
	uint32_t id = 0;

	if (n == 0 || n > s->max_frames)
		return lose(s);
	for (;; at = (at + 1) & s->mask) { /* ends: at least half of the slots stay empty */
		uint64_t slot = atomic_load_explicit(&s->slots[at], memory_order_acquire);

		if (slot == 0) {
			if (id == 0) {
				if (!take(s, n, &before))
					return lose(s);
				id = write_stack(s, pcs, n, before);
			}
			if (atomic_compare_exchange_strong_explicit(&s->slots[at], &slot, tag | id,
								    memory_order_acq_rel, memory_order_acquire))
				return id;
		}
		if ((slot & TAG) == tag && same(s, (uint32_t)slot, pcs, n)) {
			if (id != 0)
				give_back(s, n, before);
			return (uint32_t)slot;
		}
	}
}

const uintptr_t *mew_stackset_frames(const struct mew_stackset *s, uint32_t id, size_t *n)
{
	if (id == 0 || id > mew_stackset_count(s)) {
		*n = 0;
		return NULL;
	}
	*n = s->entries[id - 1].n;
	return s->frames + s->entries[id - 1].first;
}

uint32_t mew_stackset_count(const struct mew_stackset *s)
{
	return (uint32_t)(atomic_load_explicit(&s->used, memory_order_relaxed) >> 32);
}

uint64_t mew_stackset_lost(const struct mew_stackset *s)
{
	return atomic_load_explicit(&s->lost, memory_order_relaxed);
}

size_t mew_stackset_bytes(const struct mew_stackset *s)
{
	return s->bytes;
}
