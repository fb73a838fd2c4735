/*
 * kept.c - see kept.h: a bump allocator over one shared mapping, with a short list of what came back.
 * Layer L0. Any thread; without malloc.
 */
#include "config.h"

#include "kept.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os.h"

#define PAGE ((size_t)65536) /* a multiple of every page size that Linux has */
#define RETURNED 1536u /* as many threads as are sampled may end at once, each with records of its own */

struct piece {
	char *memory;
	size_t bytes;
};

static struct {
	unsigned lock;
	char *place;
	size_t size, used;
	struct piece returned[RETURNED];
} kept;

static void lock(void)
{
	while (__atomic_exchange_n(&kept.lock, 1u, __ATOMIC_ACQUIRE))
		(void)sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&kept.lock, 0u, __ATOMIC_RELEASE);
}

void mew_kept_place(void *memory, size_t bytes)
{
	lock();
	kept.place = memory;
	kept.size = bytes;
	kept.used = 0;
	for (size_t i = 0; i < RETURNED; i++)
		kept.returned[i].memory = NULL;
	unlock();
}

static bool is_in_place(const void *memory)
{
	return kept.place != NULL && (uintptr_t)memory - (uintptr_t)kept.place < kept.size;
}

/* With the lock. */
static void *take(size_t bytes)
{
	char *memory;

	for (size_t i = 0; i < RETURNED; i++) {
		memory = kept.returned[i].memory;
		if (memory == NULL || kept.returned[i].bytes != bytes)
			continue;
		kept.returned[i].memory = NULL;
		return memory;
	}
	if (bytes > kept.size - kept.used)
		return NULL;
	memory = kept.place + kept.used;
	kept.used += bytes;
	return memory;
}

void *mew_kept_map(size_t bytes)
{
	void *memory;
	size_t whole;

	if (kept.place == NULL)
		return mew_os_reserve(bytes);
	if (!mew_add_size(bytes, PAGE - 1, &whole))
		return NULL;
	lock();
	memory = take(whole & ~(PAGE - 1));
	unlock();
	return memory;
}

void mew_kept_unmap(void *memory, size_t bytes)
{
	if (!is_in_place(memory)) {
		mew_os_unmap(memory, bytes);
		return;
	}
	bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
	/* without room in the list, or with pages that cannot be given back, the addresses are not used again */
	if (syscall(SYS_madvise, memory, bytes, MADV_REMOVE) != 0)
		return;
	lock();
	for (size_t i = 0; i < RETURNED; i++) {
		if (kept.returned[i].memory != NULL)
			continue;
		kept.returned[i] = (struct piece){ memory, bytes };
		break;
	}
	unlock();
}
