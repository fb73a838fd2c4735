/*
 * os_linux.c - the body of os.h for Linux.
 * Layer L0. Everything but mew_os_stack_bounds() is safe inside malloc and in a signal handler.
 */
#include "config.h"

#include "os.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14; before, it is refused */
#define MADV_POPULATE_READ 22
#endif

int mew_os_tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* The raw call: an mmap wrapper of the program under test must not see mew's own maps. */
static void *map(size_t bytes, int flags)
{
	long p = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0L);

	return p == -1 ? NULL : (void *)p;
}

void *mew_os_map_file(const char *path, size_t *bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	long p = -1;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		*bytes = (size_t)st.st_size;
		p = syscall(SYS_mmap, NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0L);
	}
	(void)close(fd);
	return p == -1 ? NULL : (void *)p;
}

void *mew_os_map(size_t bytes)
{
	return map(bytes, 0);
}

void *mew_os_reserve(size_t bytes)
{
	return map(bytes, MAP_NORESERVE);
}

void *mew_os_map_huge(size_t bytes)
{
	char *memory;
	size_t size, before;

	if (!mew_add_size(bytes, MEW_HUGE_BYTES, &size))
		return NULL;
	size = (size + 4095) & ~(size_t)4095;
	memory = map(size, MAP_NORESERVE);
	if (memory == NULL)
		return NULL;
	before = (size_t)(-(uintptr_t)memory & (MEW_HUGE_BYTES - 1));
	if (before > 0)
		(void)syscall(SYS_munmap, memory, before);
	memory += before;
	bytes = (bytes + 4095) & ~(size_t)4095;
	if (size - before > bytes)
		(void)syscall(SYS_munmap, memory + bytes, size - before - bytes);
	(void)syscall(SYS_madvise, memory, bytes, MADV_HUGEPAGE);
	return memory;
}

void mew_os_will_read(const void *memory, size_t bytes)
{
	uintptr_t from = (uintptr_t)memory & ~(uintptr_t)4095;

	if (bytes > 0)
		(void)syscall(SYS_madvise, from, (uintptr_t)memory + bytes - from, MADV_POPULATE_READ);
}

void mew_os_unmap(void *memory, size_t bytes)
{
	if (memory != NULL)
		(void)syscall(SYS_munmap, memory, bytes);
}

size_t mew_os_resident(const void *memory, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page, found = 0;
	unsigned char present[4096];

	for (size_t first = 0; first < pages; first += sizeof present) {
		size_t n = pages - first < sizeof present ? pages - first : sizeof present;

		if (syscall(SYS_mincore, (const char *)memory + first * page, n * page, present) != 0)
			return 0;
		for (size_t i = 0; i < n; i++)
			found += present[i] & 1u;
	}
	return found * page;
}

uint64_t mew_os_resident_of(int pid)
{
	unsigned long size, resident;
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/statm", pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	(void)fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

int mew_os_stack_bounds(uintptr_t *lo, uintptr_t *hi)
{
	pthread_attr_t attr;
	void *base;
	size_t size;
	int failed;

	if (pthread_getattr_np(pthread_self(), &attr) != 0)
		return -1;
	failed = pthread_attr_getstack(&attr, &base, &size);
	(void)pthread_attr_destroy(&attr);
	if (failed)
		return -1;
	*lo = (uintptr_t)base;
	*hi = (uintptr_t)base + size;
	return 0;
}

void mew_os_events(struct mew_os_events *out)
{
	struct rusage usage;

	*out = (struct mew_os_events){ .cpu = sched_getcpu() };
	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		return;
	out->context_switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	out->page_faults = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

unsigned mew_os_processors(void)
{
	cpu_set_t set;
	long n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);

	return n > 1 ? (unsigned)n : 1;
}
