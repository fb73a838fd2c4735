/*
 * os.h - what mew needs of the operating system: clocks, threads, maps.
 * Layer L0. Its body for Linux is os_linux.c.
 */
#ifndef MEW_OS_H
#define MEW_OS_H

#include "base.h"

#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC; about 22 ns through the vDSO. Context: any thread, signal, malloc. */
static inline uint64_t mew_os_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU nanoseconds of the calling thread; a system call, about 150 ns. Context: any thread, signal, malloc. */
static inline uint64_t mew_os_thread_cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same of the process; 0 when it cannot be read. */
static inline uint64_t mew_os_process_cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Kernel id of the calling thread. Context: any thread, signal, malloc. */
int mew_os_tid(void);

/*
 * Map zeroed private memory straight from the kernel; unmap it.
 *
 * bytes    rounded up to pages by the kernel
 * Returns  page-aligned memory; NULL when the kernel refuses (errno is set)
 * Context  any thread, signal, malloc
 */
void *mew_os_map(size_t bytes);
/* The same, but pages are charged only when touched, so it may be far larger than memory. */
void *mew_os_reserve(size_t bytes);
/*
 * The same as mew_os_reserve() for memory that will be filled: in huge pages where the kernel has them, a fault for
 * each instead of one for 4 KiB. What is left over from whole ones gets small pages, so ask for a multiple.
 */
#define MEW_HUGE_BYTES ((size_t)1 << 21) /* a huge page of x86-64, and of arm64 with pages of 4 KiB */
void *mew_os_map_huge(size_t bytes);
/* Rounded up to whole huge pages; false when that is more than can be. */
static inline bool mew_os_whole_huge(size_t *bytes)
{
	return mew_add_size(*bytes, MEW_HUGE_BYTES - 1, bytes) && (*bytes &= ~(MEW_HUGE_BYTES - 1)) != 0;
}
void mew_os_unmap(void *memory, size_t bytes);
/* All of this will be read soon: let the kernel map the pages of a file at once. Only a hint. */
void mew_os_will_read(const void *memory, size_t bytes);
/*
 * A regular file as bytes to read: by the raw call too, so that no hook takes it for a map of the program's. A pipe is
 * not waited for.
 *
 * bytes    returned
 * Returns  for mew_os_unmap(); NULL where it is empty, no regular file, or cannot be opened or mapped
 * Context  any thread, signal, malloc
 */
void *mew_os_map_file(const char *path, size_t *bytes);
/* Bytes of such memory that are really there. 0 when the kernel does not say. Context: outside windows. */
size_t mew_os_resident(const void *memory, size_t bytes);
/* Resident memory of a process, in bytes; 0: it is gone. Context: any thread; allocates. */
uint64_t mew_os_resident_of(int pid);

/*
 * Bounds of the calling thread's stack.
 *
 * lo, hi   returned; hi is one past the highest address
 * Returns  0, or -1 when they cannot be found
 * Context  any thread; may read /proc and allocate: never inside a window
 */
int mew_os_stack_bounds(uintptr_t *lo, uintptr_t *hi);

/*
 * The same by /proc/self/maps (os_maps.c): for a thread that is first seen inside malloc, where the C library may hold
 * a lock of its own, and would allocate. On a fiber it is the thread's own stack all the same.
 *
 * Context  any thread, signal, malloc; reads a file, so once for each thread
 */
int mew_os_stack_bounds_by_maps(uintptr_t *lo, uintptr_t *hi);

/*
 * The readable and writable mapping that holds an address, cut where a stack cannot reach.
 *
 * lo, hi   returned
 * Returns  false when there is none, or /proc cannot be read
 * Context  any thread, signal, malloc
 */
bool mew_os_mapping_of(uintptr_t address, uintptr_t *lo, uintptr_t *hi);

/* Processors that this process may use, at least 1. Context: any thread. */
unsigned mew_os_processors(void);

/* Events of the calling thread since it started, for differences. Context: any thread; a system call. */
struct mew_os_events {
	uint64_t context_switches, page_faults;
	int cpu; /* the processor it runs on now, or -1 */
};
void mew_os_events(struct mew_os_events *out);

#endif
