/*
 * memory_pools.c - what named pools announce (mew/pool.h): live, highest and cumulative bytes of each, in the window.
 * Layer L3; announcements come from any thread, also inside malloc and in signal handlers.
 *
 * The table of blocks is open addressing over (pool, address), linear, without gaps: what is taken out is filled from
 * behind. A reset gives its pool another generation and touches no block; those of an old generation are nobody's, and
 * are left behind when the table is built anew. One short lock over all.
 */
#include "config.h"

#include "memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kept.h"
#include "mew/pool.h"
#include "os.h"
#include "sink.h"

#include "hotpath.h"

#define POOLS_MAX 64u
#define NAME_BYTES 64u
#define KNOWN_BITS 8u        /* of mew_pool.known_: the pool's number and 1; the window is above */
#define WINDOW_BITS 24u      /* of the window: its number; the process is above */
#define REFUSED (POOLS_MAX + 1u)
#define FIRST_SLOTS ((size_t)4096)

struct block {
	uintptr_t address; /* 0: an empty slot */
	size_t bytes;
	uint32_t pool, generation;
};

struct pool {
	char name[NAME_BYTES];
	uint32_t generation;
	uint64_t live, peak, allocations, cumulative, blocks;
};

static struct pools {
	unsigned lock;
	int pid;         /* of the process that opened the window */
	bool open, armed;
	uint64_t window; /* process and number; 0 before the first */
	uint64_t lost;   /* atomic: announcements that could not be entered */
	bool refused;    /* there were more than POOLS_MAX */
	uint32_t npools;
	struct pool pool[POOLS_MAX];
	struct block *slots;
	size_t nslots, used; /* a power of two; slots in use, those of old generations too */
} pools;

static void lose(void)
{
	(void)__atomic_fetch_add(&pools.lost, 1, __ATOMIC_RELAXED);
}

/* --- the table; all under the lock -------------------------------------------------------------------------------- */

static size_t home_of(uintptr_t address, uint32_t pool)
{
	uint64_t hash = ((uint64_t)address ^ (uint64_t)pool << 56) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(hash ^ hash >> 32) & (pools.nslots - 1);
}

static bool is_live(const struct block *b)
{
	return b->address != 0 && b->generation == pools.pool[b->pool].generation;
}

/* The slot of a block, or the empty one where it belongs. There is always an empty one. */
static struct block *find_slot(uintptr_t address, uint32_t pool)
{
	size_t i = home_of(address, pool);

	while (pools.slots[i].address != 0 && (pools.slots[i].address != address || pools.slots[i].pool != pool))
		i = (i + 1) & (pools.nslots - 1);
	return &pools.slots[i];
}

/* Room for one more block. False without memory; the table is then as it was. */
static bool make_room(void)
{
	struct block *old = pools.slots;
	size_t nold = pools.nslots, live = 0, wanted = FIRST_SLOTS;
	int saved = errno;

	if (2 * (pools.used + 1) <= nold)
		return true;
	for (uint32_t i = 0; i < pools.npools; i++)
		live += pools.pool[i].blocks;
	while (wanted < 4 * (live + 1))
		wanted *= 2;
	pools.slots = mew_os_map(wanted * sizeof *old);
	errno = saved;
	if (pools.slots == NULL) {
		pools.slots = old;
		return pools.used + 1 < nold; /* slower, but it goes on */
	}
	pools.nslots = wanted;
	pools.used = 0;
	for (size_t i = 0; i < nold; i++) {
		if (!is_live(&old[i]))
			continue;
		*find_slot(old[i].address, old[i].pool) = old[i];
		pools.used++;
	}
	mew_os_unmap(old, nold * sizeof *old);
	return true;
}

/* Empty a slot; blocks behind it that it kept from their home move up. */
static void empty(struct block *slot)
{
	size_t mask = pools.nslots - 1, hole = (size_t)(slot - pools.slots);

	for (size_t i = (hole + 1) & mask; pools.slots[i].address != 0; i = (i + 1) & mask) {
		size_t home = home_of(pools.slots[i].address, pools.slots[i].pool);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		pools.slots[hole] = pools.slots[i];
		hole = i;
	}
	pools.slots[hole].address = 0;
	pools.used--;
}

/* --- which pool --------------------------------------------------------------------------------------------------- */

static bool same_name(const char *kept, const char *name)
{
	for (size_t i = 0; i < NAME_BYTES - 1; i++) {
		if (kept[i] != name[i])
			return false;
		if (kept[i] == '\0')
			return true;
	}
	return true;
}

/* Number and 1 of the pool of this name, registered now if need be; REFUSED when there are too many. */
static uint64_t number_of(const char *name)
{
	struct pool *p;
	size_t i;

	name = name != NULL ? name : "";
	for (i = 0; i < pools.npools; i++)
		if (same_name(pools.pool[i].name, name))
			return i + 1;
	if (pools.npools == POOLS_MAX) {
		pools.refused = true;
		return REFUSED;
	}
	p = &pools.pool[pools.npools++];
	memset(p, 0, sizeof *p);
	for (i = 0; i < NAME_BYTES - 1 && name[i] != '\0'; i++)
		p->name[i] = name[i];
	return pools.npools;
}

/* What the object knows from an earlier call of this window saves the comparison of names. Under the lock. */
static struct pool *pool_of(struct mew_pool *object)
{
	uint64_t known = __atomic_load_n(&object->known_, __ATOMIC_RELAXED), number;

	if (known >> KNOWN_BITS != pools.window) {
		known = pools.window << KNOWN_BITS | number_of(object->name);
		__atomic_store_n(&object->known_, known, __ATOMIC_RELAXED);
	}
	number = known & (((uint64_t)1 << KNOWN_BITS) - 1);
	return number == REFUSED ? NULL : &pools.pool[number - 1];
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/*
 * Enter an event: the lock is held afterwards and `*was` is for end_event(). NULL: nothing to enter, no lock. An
 * announcement of a signal handler in the middle of another event cannot be entered, and that is said.
 */
static struct pool *begin_event(struct mew_pool *object, unsigned char *was)
{
	struct mew_heap_thread *self = &mew_heap_self;
	struct pool *p;

	*was = self->busy;
	if (MEW_UNLIKELY(*was == MEW_HEAP_ACCOUNTING)) {
		lose();
		return NULL;
	}
	self->busy = MEW_HEAP_ACCOUNTING;
	if (mew_heap_lock(&pools.lock)) {
		p = pools.open ? pool_of(object) : NULL;
		if (p != NULL)
			return p;
		mew_heap_unlock(&pools.lock);
	}
	self->busy = *was;
	return NULL;
}

static void end_event(unsigned char was)
{
	mew_heap_unlock(&pools.lock);
	mew_heap_self.busy = was;
}

/* A block ends, if it is one. */
static void leave(struct pool *p, uintptr_t address)
{
	struct block *slot;

	if (pools.nslots == 0)
		return;
	slot = find_slot(address, (uint32_t)(p - pools.pool));
	if (slot->address == 0)
		return;
	if (is_live(slot)) {
		p->live -= slot->bytes;
		p->blocks--;
	}
	empty(slot);
}

static void admit(struct pool *p, uintptr_t address, size_t bytes)
{
	uint32_t number = (uint32_t)(p - pools.pool);

	if (!make_room()) {
		lose();
		return;
	}
	*find_slot(address, number) = (struct block){ address, bytes, number, p->generation };
	pools.used++;
	p->blocks++;
	p->live += bytes;
	p->peak = p->live > p->peak ? p->live : p->peak;
	p->allocations++;
	p->cumulative += bytes;
}

static void note_alloc(struct mew_pool *object, const void *block, size_t bytes)
{
	unsigned char was;
	struct pool *p = block != NULL ? begin_event(object, &was) : NULL;

	if (p == NULL)
		return;
	leave(p, (uintptr_t)block); /* where its release was not announced */
	if (!mew_heap_self.paused)
		admit(p, (uintptr_t)block, bytes);
	end_event(was);
}

static void note_free(struct mew_pool *object, const void *block)
{
	unsigned char was;
	struct pool *p = block != NULL ? begin_event(object, &was) : NULL;

	if (p == NULL)
		return;
	leave(p, (uintptr_t)block);
	end_event(was);
}

static void note_reset(struct mew_pool *object)
{
	unsigned char was;
	struct pool *p = begin_event(object, &was);

	if (p == NULL)
		return;
	p->generation++;
	p->live = 0;
	p->blocks = 0;
	end_event(was);
}

static const struct mew_pool_watch_ watch = { note_alloc, note_free, note_reset };

/* --- the window --------------------------------------------------------------------------------------------------- */

/* A lock that a thread of the parent holds is nobody's in a forked child which measures on its own. */
static bool lock_for_window(void)
{
	int pid = (int)getpid();

	if (pools.pid != pid)
		__atomic_store_n(&pools.lock, 0, __ATOMIC_RELAXED);
	pools.pid = pid;
	return mew_heap_lock(&pools.lock);
}

static void forget_blocks(void)
{
	mew_os_unmap(pools.slots, pools.nslots * sizeof *pools.slots);
	pools.slots = NULL;
	pools.nslots = pools.used = 0;
}

/* Under the lock. */
static void begin_window(const struct mew_hooks_api *api)
{
	forget_blocks();
	pools.npools = 0;
	pools.refused = false;
	__atomic_store_n(&pools.lost, 0, __ATOMIC_RELAXED);
	/* objects of a forked child still know the parent's windows, while its own may be counted from 1 again */
	pools.window = (uint64_t)pools.pid << WINDOW_BITS | ((pools.window + 1) & (((uint64_t)1 << WINDOW_BITS) - 1));
	pools.armed = api->watch_pools(&watch) == 0;
	pools.open = pools.armed;
}

void mew_heap_pools_begin(const struct mew_hooks_api *api)
{
	unsigned char was = mew_heap_account_begin();

	if (lock_for_window()) {
		begin_window(api);
		mew_heap_unlock(&pools.lock);
	}
	mew_heap_account_end(was);
}

void mew_heap_pools_end(const struct mew_hooks_api *api)
{
	unsigned char was = mew_heap_account_begin();
	bool locked = pools.armed && mew_heap_lock(&pools.lock);

	if (locked) {
		pools.open = false;
		mew_heap_unlock(&pools.lock);
	}
	mew_heap_account_end(was);
	if (locked)
		(void)api->watch_pools(NULL);
}

void mew_heap_pools_gate(void *variable, bool open)
{
	struct pools *p = variable != NULL ? variable : &pools;

	__atomic_store_n(&p->open, open && p->armed, __ATOMIC_RELEASE);
}

/* Rows by name; the list is short. Returns how many. */
static size_t sort_rows(struct mew_memory_pool *rows)
{
	size_t n = 0;

	for (; n < pools.npools; n++) {
		const struct pool *p = &pools.pool[n];
		size_t i = n;

		for (; i > 0 && strcmp(rows[i - 1].name, p->name) > 0; i--)
			rows[i] = rows[i - 1];
		rows[i] = (struct mew_memory_pool){ p->name, p->peak, p->allocations, p->cumulative, p->live };
	}
	return n;
}

void mew_heap_pools_static(struct mew_kept_static *s)
{
	*s = (struct mew_kept_static){ &pools, sizeof pools };
}

void mew_heap_pools_drain(struct mew_sink *sink)
{
	struct mew_memory_pool rows[POOLS_MAX];
	size_t n;

	if (!pools.armed) {
		mew_sink_absent(sink, MEW_FIG_BY_POOL, "libmew_hooks watches pools for another capture");
		return;
	}
	if (__atomic_load_n(&pools.lost, __ATOMIC_RELAXED) != 0) {
		mew_sink_absent(sink, MEW_FIG_BY_POOL, "announcements of pools could not be entered: is address space "
				"limited (ulimit -v), or does a signal handler use a pool?");
		return;
	}
	n = sort_rows(rows);
	if (n == 0) {
		mew_sink_absent(sink, MEW_FIG_BY_POOL, "the loop announced no pool (see mew/pool.h)");
		return;
	}
	mew_sink_list(sink, MEW_FIG_BY_POOL, rows, n);
	if (pools.refused)
		mew_sink_note(sink, "pools after the first 64 are not shown: use fewer names");
}

void mew_heap_pools_close(void)
{
	if (!mew_heap_lock(&pools.lock))
		return;
	forget_blocks();
	mew_heap_unlock(&pools.lock);
}

size_t mew_heap_pools_bytes(void)
{
	return pools.nslots * sizeof *pools.slots;
}
