/*
 * maps.c - mmap, munmap, mremap of the program, in front of those of the C library.
 * Below all layers; any thread, before main, inside malloc, in signal handlers. Each call ends in the system call
 * itself: an allocator maps memory before anything can be looked up, and a look-up would want its memory. What libc
 * maps for itself never comes here.
 */
#include "config.h"

#include "hooks.h"

#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

/* A static link may take this file for mmap alone; without the api nobody could arm it. */
__attribute__((used)) static const struct mew_hooks_api *(*const keep_api)(unsigned version) = mew_hooks_api;

static const struct mew_map_family *armed;   /* atomic; NULL: straight on */
static uintptr_t allocator_lo, allocator_hi; /* atomic; both 0 where the allocator is libc's */

/* --- straight on -------------------------------------------------------------------------------------------------- */

static void *raw_map(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset)
{
#ifdef SYS_mmap2
	if (offset % 4096 != 0) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap2, address, bytes, protection, flags, fd, (unsigned long)(offset / 4096));
#else
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
#endif
}

static int raw_unmap(void *address, size_t bytes)
{
	return (int)syscall(SYS_munmap, address, bytes);
}

static void *raw_remap(void *address, size_t old_bytes, size_t bytes, int flags, void *target)
{
	return (void *)syscall(SYS_mremap, address, old_bytes, bytes, flags, target);
}

const struct mew_map_family mew_hooks_maps_next = {
	.do_map = raw_map,
	.do_unmap = raw_unmap,
	.do_remap = raw_remap,
};

/* --- whose call is it --------------------------------------------------------------------------------------------- */

/* Called by the allocator itself, also where no call of the malloc family is under way (a thread that purges)? */
static bool is_of_allocator(const void *caller)
{
	uintptr_t lo = __atomic_load_n(&allocator_lo, __ATOMIC_RELAXED);
	uintptr_t hi = __atomic_load_n(&allocator_hi, __ATOMIC_RELAXED);

	return (uintptr_t)caller >= lo && (uintptr_t)caller < hi;
}

struct search {
	uintptr_t inside, lo, hi;
};

static int look_at_module(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct search *s = data;
	uintptr_t lo = UINTPTR_MAX, hi = 0;

	(void)bytes;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD)
			continue;
		lo = begin < lo ? begin : lo;
		hi = begin + segment->p_memsz > hi ? begin + segment->p_memsz : hi;
	}
	if (s->inside < lo || s->inside >= hi)
		return 0;
	s->lo = lo;
	s->hi = hi;
	return 1;
}

/*
 * libc does not map memory through the symbol, so a return address in it is that of a program's function which ends in
 * the call and was itself called by libc: a thread's, a comparator.
 */
static void find_allocator(bool is_libc)
{
	struct search s = { (uintptr_t)mew_hooks_next.do_malloc, 0, 0 };

	if (!is_libc)
		(void)dl_iterate_phdr(look_at_module, &s);
	__atomic_store_n(&allocator_lo, s.lo, __ATOMIC_RELAXED);
	__atomic_store_n(&allocator_hi, s.hi, __ATOMIC_RELAXED);
}

bool mew_hooks_maps_arm(const struct mew_map_family *family, bool is_libc)
{
	const struct mew_map_family *none = NULL;

	find_allocator(is_libc);
	return __atomic_compare_exchange_n(&armed, &none, family, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void mew_hooks_maps_disarm(void)
{
	__atomic_store_n(&armed, NULL, __ATOMIC_RELEASE);
}

/* --- the names ---------------------------------------------------------------------------------------------------- */

static inline const struct mew_map_family *family_for(const void *caller)
{
	const struct mew_map_family *family = __atomic_load_n(&armed, __ATOMIC_ACQUIRE);

	return family == NULL || is_of_allocator(caller) ? &mew_hooks_maps_next : family;
}

/*
 * Under names of their own here: <sys/mman.h> renames mmap where files may be large. With a 64-bit off_t both names are
 * one function.
 */
MEW_HOOKS_EXPORT void *map64(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset)
	__asm__("mmap64");
MEW_HOOKS_EXPORT void *map_long(void *address, size_t bytes, int protection, int flags, int fd, long offset)
	__asm__("mmap");
MEW_HOOKS_EXPORT int unmap(void *address, size_t bytes) __asm__("munmap");
MEW_HOOKS_EXPORT void *remap(void *address, size_t old_bytes, size_t bytes, int flags, ...) __asm__("mremap");

void *map64(void *address, size_t bytes, int protection, int flags, int fd, int64_t offset)
{
	return family_for(__builtin_return_address(0))->do_map(address, bytes, protection, flags, fd, offset);
}

void *map_long(void *address, size_t bytes, int protection, int flags, int fd, long offset)
{
	return family_for(__builtin_return_address(0))->do_map(address, bytes, protection, flags, fd, offset);
}

int unmap(void *address, size_t bytes)
{
	return family_for(__builtin_return_address(0))->do_unmap(address, bytes);
}

/* Only MREMAP_FIXED promises a fifth argument; to MREMAP_DONTUNMAP it is a hint, which older libraries drop too. */
void *remap(void *address, size_t old_bytes, size_t bytes, int flags, ...)
{
	void *target = NULL;
	va_list arguments;

	if ((flags & MREMAP_FIXED) != 0) {
		va_start(arguments, flags);
		target = va_arg(arguments, void *);
		va_end(arguments);
	}
	return family_for(__builtin_return_address(0))->do_remap(address, old_bytes, bytes, flags, target);
}
