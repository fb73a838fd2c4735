/*
 * os_maps.c - the stack of a thread by /proc/self/maps, where asking the C library is not safe.
 * Layer L0. Any thread, signal, malloc: raw system calls, for those of the C library can be cancelled; no heap.
 */
#include "config.h"

#include "os.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hotpath.h"

#define STACK_MAX_BYTES ((uintptr_t)8 << 20)

struct map_reader {
	char buffer[1024];
	int fd;
	long have, at;
};

struct mapping {
	uintptr_t lo, hi;
	uintptr_t below; /* the end of the one before it */
	bool usable;     /* may be read and written */
};

static bool open_maps(struct map_reader *r)
{
	*r = (struct map_reader){ .fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	return r->fd >= 0;
}

static void close_maps(const struct map_reader *r)
{
	(void)syscall(SYS_close, r->fd);
}

static int next_char(struct map_reader *r)
{
	if (r->at == r->have) {
		r->have = syscall(SYS_read, r->fd, r->buffer, sizeof r->buffer);
		r->at = 0;
		if (r->have <= 0)
			return r->have = 0, -1;
	}
	return r->buffer[r->at++];
}

/* A hexadecimal number and the one character behind it, which is returned; -1 at the end of the file. */
static int next_address(struct map_reader *r, uintptr_t *address)
{
	int c;

	for (*address = 0; (c = next_char(r)) > 0;) {
		if (c >= '0' && c <= '9')
			*address = *address << 4 | (uintptr_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*address = *address << 4 | (uintptr_t)(c - 'a' + 10);
		else
			break;
	}
	return c;
}

/* One line: "lo-hi rw-p ...". m is zeroed, or the mapping before. Returns false at the end. */
static bool next_mapping(struct map_reader *r, struct mapping *m)
{
	int read, write, c;

	m->below = m->hi;
	if (next_address(r, &m->lo) != '-' || next_address(r, &m->hi) != ' ')
		return false;
	read = next_char(r);
	write = next_char(r);
	m->usable = read == 'r' && write == 'w';
	do
		c = next_char(r);
	while (c >= 0 && c != '\n');
	return true;
}

static bool holds(const struct mapping *m, uintptr_t address)
{
	return address >= m->lo && address < m->hi;
}

bool mew_os_mapping_of(uintptr_t address, uintptr_t *lo, uintptr_t *hi)
{
	struct mapping m = { .lo = 0 };
	struct map_reader reader;
	bool found = false;

	if (!open_maps(&reader))
		return false;
	while (!found && next_mapping(&reader, &m))
		found = holds(&m, address);
	close_maps(&reader);
	*lo = m.lo;
	/* a stack may have grown together with what lies above it: no more of that than a stack has */
	*hi = found && m.hi - address > STACK_MAX_BYTES ? address + STACK_MAX_BYTES : m.hi;
	return found && m.usable;
}

/*
 * The stack that the kernel made for the process holds the random bytes that it gave it, and grows down to whatever
 * lies below. The C library puts a thread's own block at the top of its stack. A forked child goes on where its parent
 * was: which of the two is meant is seen by where the caller stands, and only on a stack of neither kind, a fiber's, by
 * the thread's id.
 */
int mew_os_stack_bounds_by_maps(uintptr_t *lo, uintptr_t *hi)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), block = (uintptr_t)pthread_self(),
		  given = (uintptr_t)getauxval(AT_RANDOM);
	struct mapping m = { .lo = 0 }, first = m, thread = m;
	struct map_reader reader;
	bool is_first;

	if (!open_maps(&reader))
		return -1;
	while (next_mapping(&reader, &m)) {
		if (holds(&m, given))
			first = m;
		if (holds(&m, block))
			thread = m;
	}
	close_maps(&reader);
	first.lo = first.below;
	thread.hi = block;
	is_first = holds(&first, here) || (!holds(&thread, here) && mew_os_tid() == getpid());
	*lo = is_first ? first.lo : thread.lo;
	*hi = is_first ? first.hi : thread.hi;
	return (is_first ? first : thread).usable ? 0 : -1;
}
