/*
 * memory_mapped.c - what the program itself maps in the window: live and highest bytes, apart from the heap.
 * Layer L3; the functions of the family run in place of mmap, munmap and mremap: any thread, signal handlers too.
 *
 * The tracked address space is a set of ranges: whatever is added covers what was there, so a fixed mapping replaces
 * and a partial release splits. Neighbours are joined, as the kernel joins them. The array is sorted downwards, for
 * that is the order in which the kernel hands addresses out: a new range mostly goes to its end.
 *
 * Order against other threads, who may get an address the moment it is released: what leaves is taken out before the
 * system call, and put back where that failed; what comes is entered after it. The lock is never held over the call.
 */
#include "config.h"

#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kept.h"
#include "os.h"
#include "sink.h"

#include "hotpath.h"

#define FIRST_BYTES ((size_t)65536)
#define TAKEN_MAX 16u

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

struct range {
	uintptr_t lo, hi;
};

/* What was taken out of the set, to be put back or moved; `bytes` counts all of it, `n` what there was room for. */
struct taken {
	size_t n, bytes;
	bool cut;
	struct range piece[TAKEN_MAX];
};

static struct mapped {
	unsigned lock;
	int pid;             /* of the process that opened the window */
	bool open;           /* atomic where the lock is not held */
	int armed;           /* what arm_maps() answered; other than 0: nothing is seen */
	const struct mew_map_family *next;
	uintptr_t page_mask; /* bytes of a page less one */
	struct range *ranges; /* downwards; no two touch */
	size_t n, capacity;
	uint64_t live, peak;
	uint64_t lost;       /* ranges that could not be entered, calls out of signal handlers in the middle of an event */
} mapped;

/* Something is not in the figures, so they would be wrong. */
static void lose(void)
{
	(void)__atomic_fetch_add(&mapped.lost, 1, __ATOMIC_RELAXED);
}

/* --- the set; all under the lock ---------------------------------------------------------------------------------- */

static bool grow(void)
{
	size_t bytes = mapped.capacity * sizeof(struct range), wanted = bytes != 0 ? 2 * bytes : FIRST_BYTES;
	int saved = errno;
	struct range *larger = mew_os_map(wanted);

	errno = saved;
	if (larger == NULL)
		return false;
	if (bytes != 0)
		memcpy(larger, mapped.ranges, mapped.n * sizeof(struct range));
	mew_os_unmap(mapped.ranges, bytes);
	mapped.ranges = larger;
	mapped.capacity = wanted / sizeof(struct range);
	return true;
}

/* The first range that ends at `address` or below; all before it end above. */
static size_t first_ending_at(uintptr_t address)
{
	size_t begin = 0, end = mapped.n;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (mapped.ranges[middle].hi > address)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

/* Put `n` ranges, at most two, in the place of those from `first` up to `last`. False: no memory, nothing changed. */
static bool splice(size_t first, size_t last, const struct range *with, size_t n)
{
	size_t after = mapped.n - last;

	if (mapped.n + n - (last - first) > mapped.capacity && !grow())
		return false;
	memmove(mapped.ranges + first + n, mapped.ranges + last, after * sizeof(struct range));
	memcpy(mapped.ranges + first, with, n * sizeof(struct range));
	mapped.n = first + n + after;
	return true;
}

static void note_taken(struct taken *taken, uintptr_t lo, uintptr_t hi)
{
	taken->bytes += hi - lo;
	if (taken->n < TAKEN_MAX)
		taken->piece[taken->n++] = (struct range){ lo, hi };
	else
		taken->cut = true;
}

/* Take everything between lo and hi out of the set. */
static void take(uintptr_t lo, uintptr_t hi, struct taken *taken)
{
	size_t last = first_ending_at(lo), first, n = 0;
	struct range rest[2];

	*taken = (struct taken){ .n = 0 };
	for (first = last; first > 0 && mapped.ranges[first - 1].lo < hi; first--) {
		struct range r = mapped.ranges[first - 1];

		note_taken(taken, r.lo > lo ? r.lo : lo, r.hi < hi ? r.hi : hi);
	}
	if (first == last)
		return;
	if (mapped.ranges[first].hi > hi)
		rest[n++] = (struct range){ hi, mapped.ranges[first].hi };
	if (mapped.ranges[last - 1].lo < lo)
		rest[n++] = (struct range){ mapped.ranges[last - 1].lo, lo };
	if (!splice(first, last, rest, n)) {
		lose();
		(void)splice(first, last, rest, 1); /* in place of the one that was to be split */
	}
}

/* Put a range into the set, over whatever is there. Returns by how much the set grew. */
static size_t cover(uintptr_t lo, uintptr_t hi)
{
	struct range joined = { lo, hi };
	struct taken covered;
	size_t first, last;

	take(lo, hi, &covered);
	first = last = first_ending_at(lo);
	if (last < mapped.n && mapped.ranges[last].hi == lo)
		joined.lo = mapped.ranges[last++].lo;
	if (first > 0 && mapped.ranges[first - 1].lo == hi)
		joined.hi = mapped.ranges[--first].hi;
	if (!splice(first, last, &joined, 1))
		lose();
	return hi - lo - covered.bytes;
}

/* Pieces back into the set, moved by `by`, as far as they then lie below `limit`. Returns by how much the set grew. */
static size_t cover_taken(const struct taken *taken, uintptr_t by, uintptr_t limit)
{
	size_t bytes = 0;

	if (taken->cut)
		lose();
	for (size_t i = 0; i < taken->n; i++) {
		uintptr_t lo = taken->piece[i].lo + by, hi = taken->piece[i].hi + by;

		hi = hi < limit ? hi : limit;
		if (lo < hi)
			bytes += cover(lo, hi);
	}
	return bytes;
}

/* One step of the series. */
static void change(size_t more, size_t less)
{
	mapped.live = mapped.live + more - less;
	if (mapped.live > mapped.peak)
		mapped.peak = mapped.live;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

/* The allocator maps for itself; a signal handler in the middle of an event cannot be entered, and that is said. */
static bool is_of_program(const struct mew_heap_thread *self)
{
	if (MEW_LIKELY(self->busy == MEW_HEAP_FREE))
		return true;
	if (self->busy == MEW_HEAP_ACCOUNTING)
		lose();
	return false;
}

/* False outside the window, and in a forked child; then there is no lock to give back. */
static bool begin_event(struct mew_heap_thread *self)
{
	self->busy = MEW_HEAP_ACCOUNTING;
	if (mew_heap_lock(&mapped.lock)) {
		if (mapped.open)
			return true;
		mew_heap_unlock(&mapped.lock);
	}
	self->busy = MEW_HEAP_FREE;
	return false;
}

static void end_event(struct mew_heap_thread *self)
{
	mew_heap_unlock(&mapped.lock);
	self->busy = MEW_HEAP_FREE;
}

/* Whole pages from `address`. False: the kernel will refuse them. */
static bool whole_pages(const void *address, size_t bytes, struct range *out)
{
	uintptr_t lo = (uintptr_t)address;

	if (bytes == 0 || bytes + mapped.page_mask < bytes || (lo & mapped.page_mask) != 0)
		return false;
	bytes = (bytes + mapped.page_mask) & ~mapped.page_mask;
	*out = (struct range){ lo, lo + bytes };
	return out->hi > lo;
}

/* A range was mapped, in place of whatever was there. */
static void enter_new(struct mew_heap_thread *self, const struct range *r)
{
	struct taken replaced;

	if (!self->paused) {
		change(cover(r->lo, r->hi), 0);
		return;
	}
	take(r->lo, r->hi, &replaced);
	change(0, replaced.bytes);
}

static void *hook_map(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset)
{
	struct mew_heap_thread *self = &mew_heap_self;
	void *block = mapped.next->do_map(address, bytes, protection, flags, fd, offset);
	struct range r;

	if (block == MAP_FAILED || !is_of_program(self) || !whole_pages(block, bytes, &r) || !begin_event(self))
		return block;
	enter_new(self, &r);
	end_event(self);
	return block;
}

static int hook_unmap(void *address, size_t bytes)
{
	struct mew_heap_thread *self = &mew_heap_self;
	struct taken taken;
	struct range r;
	int status;

	if (!is_of_program(self) || !whole_pages(address, bytes, &r) || !begin_event(self))
		return mapped.next->do_unmap(address, bytes);
	take(r.lo, r.hi, &taken);
	change(0, taken.bytes);
	end_event(self);
	status = mapped.next->do_unmap(address, bytes);
	if (status != 0 && taken.bytes != 0 && begin_event(self)) {
		change(cover_taken(&taken, 0, UINTPTR_MAX), 0);
		end_event(self);
	}
	return status;
}

/*
 * The second half of a remap. Growth admits the new size as a whole, as a realloc does, unless its thread is paused;
 * otherwise what was tracked goes along, and nothing else.
 *
 * stayed  bytes of `taken` that are still in `live`
 */
static void enter_remapped(struct mew_heap_thread *self, const struct range *old, const struct range *new,
			   const struct taken *taken, size_t stayed)
{
	struct taken replaced;

	if (!self->paused && new->hi - new->lo > old->hi - old->lo) {
		change(cover(new->lo, new->hi), stayed);
		return;
	}
	take(new->lo, new->hi, &replaced);
	change(cover_taken(taken, new->lo - old->lo, new->hi), replaced.bytes + stayed);
}

/* Bytes of the pieces at `limit` and above. */
static size_t bytes_from(const struct taken *taken, uintptr_t limit)
{
	size_t bytes = 0;

	for (size_t i = 0; i < taken->n; i++)
		if (taken->piece[i].hi > limit)
			bytes += taken->piece[i].hi - (taken->piece[i].lo > limit ? taken->piece[i].lo : limit);
	return bytes;
}

/* A remap that leaves nothing where it was. What a shrinking one cuts off is released before the call. */
static void *move(struct mew_heap_thread *self, const struct range *old, size_t bytes, int flags, void *target)
{
	size_t old_bytes = old->hi - old->lo, released = 0;
	struct taken taken;
	struct range new;
	void *block;

	take(old->lo, old->hi, &taken);
	if (bytes < old_bytes)
		released = bytes_from(&taken, old->lo + bytes);
	change(0, released);
	end_event(self);
	block = mapped.next->do_remap((void *)old->lo, old_bytes, bytes, flags, target);
	if (!begin_event(self))
		return block;
	if (block == MAP_FAILED)
		change(cover_taken(&taken, 0, UINTPTR_MAX), taken.bytes - released);
	else if (whole_pages(block, bytes, &new))
		enter_remapped(self, old, &new, &taken, taken.bytes - released);
	end_event(self);
	return block;
}

static void *hook_remap(void *address, size_t old_bytes, size_t bytes, int flags, void *target)
{
	struct mew_heap_thread *self = &mew_heap_self;
	bool stays = old_bytes == 0 || (flags & MREMAP_DONTUNMAP) != 0; /* a second mapping, and the old one too */
	struct range r, new;
	void *block;

	if (!is_of_program(self))
		return mapped.next->do_remap(address, old_bytes, bytes, flags, target);
	if (!stays && whole_pages(address, old_bytes, &r) && whole_pages(address, bytes, &new) && begin_event(self))
		return move(self, &r, new.hi - new.lo, flags, target);
	block = mapped.next->do_remap(address, old_bytes, bytes, flags, target);
	if (stays && block != MAP_FAILED && whole_pages(block, bytes, &r) && begin_event(self)) {
		enter_new(self, &r);
		end_event(self);
	}
	return block;
}

/* --- the window --------------------------------------------------------------------------------------------------- */

static const struct mew_map_family family = { .do_map = hook_map, .do_unmap = hook_unmap, .do_remap = hook_remap };

/* A lock that a thread of the parent holds is nobody's in a forked child which measures on its own. */
static bool lock_for_window(void)
{
	int pid = (int)getpid();

	if (mapped.pid != pid)
		__atomic_store_n(&mapped.lock, 0, __ATOMIC_RELAXED);
	mapped.pid = pid;
	return mew_heap_lock(&mapped.lock);
}

void mew_heap_mapped_begin(const struct mew_hooks_api *api)
{
	unsigned char was;

	mapped.next = api->next_maps;
	mapped.page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	mapped.armed = api->arm_maps(&family);
	if (mapped.armed != 0)
		return;
	was = mew_heap_account_begin();
	if (lock_for_window()) {
		mapped.n = 0;
		mapped.live = mapped.peak = 0;
		__atomic_store_n(&mapped.lost, 0, __ATOMIC_RELAXED);
		mapped.open = true;
		mew_heap_unlock(&mapped.lock);
	}
	mew_heap_account_end(was);
}

void mew_heap_mapped_end(const struct mew_hooks_api *api)
{
	unsigned char was = mew_heap_account_begin();
	bool locked = mapped.armed == 0 && mew_heap_lock(&mapped.lock);

	if (locked) {
		mapped.open = false;
		mew_heap_unlock(&mapped.lock);
	}
	mew_heap_account_end(was);
	if (locked)
		api->disarm_maps();
}

void mew_heap_mapped_gate(void *variable, bool open)
{
	struct mapped *m = variable != NULL ? variable : &mapped;

	__atomic_store_n(&m->open, open && m->armed == 0, __ATOMIC_RELEASE);
}

void mew_heap_mapped_static(struct mew_kept_static *s)
{
	*s = (struct mew_kept_static){ &mapped, sizeof mapped };
}

void mew_heap_mapped_drain(struct mew_sink *sink)
{
	if (mapped.armed == -2)
		mew_sink_absent(sink, MEW_FIG_MAPPED_PEAK_BYTES, "another library's mmap comes before that of "
				"libmew_hooks: link -lmew_hooks first, or use `mew run`");
	else if (mapped.armed != 0)
		mew_sink_absent(sink, MEW_FIG_MAPPED_PEAK_BYTES, "libmew_hooks watches mappings for another capture");
	else if (mapped.lost != 0)
		mew_sink_absent(sink, MEW_FIG_MAPPED_PEAK_BYTES, "mappings could not be entered: is address space "
				"limited (ulimit -v), or does a signal handler map memory?");
	else
		mew_sink_u64(sink, MEW_FIG_MAPPED_PEAK_BYTES, mapped.peak);
}

void mew_heap_mapped_close(void)
{
	if (!mew_heap_lock(&mapped.lock))
		return;
	mew_os_unmap(mapped.ranges, mapped.capacity * sizeof(struct range));
	mapped.ranges = NULL;
	mapped.n = mapped.capacity = 0;
	mew_heap_unlock(&mapped.lock);
}

size_t mew_heap_mapped_bytes(void)
{
	return mapped.capacity * sizeof(struct range);
}
