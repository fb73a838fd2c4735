/*
 * probe.c - see probe.h: moving the first instructions of a function, and the code that stands in their place.
 * Layer L1. Outside windows; raw calls and no malloc, since it also runs inside a wrapper of dlopen.
 */
#include "config.h"

#include "probe.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "code_x86_64.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#if defined(__x86_64__) && defined(__LP64__)

#define JUMP_BYTES 5u
#define MOVED_MAX (JUMP_BYTES - 1 + MEW_CODE_BYTES)
#define PAGE ((size_t)4096)
#define REACH ((intptr_t)0x60000000) /* well inside of 2 GiB, so that operands near the function are within reach too */
#define STEP ((intptr_t)1 << 20)

bool mew_probe_is_known(void)
{
	return true;
}

struct patch {
	const unsigned char *from; /* first instruction that is moved */
	unsigned moved;            /* bytes */
	const unsigned char *end;  /* of the function */
	unsigned char *code;       /* of the page of code, where the next byte goes */
	const char *why;
};

static bool refuse(struct patch *p, const char *why)
{
	p->why = why;
	return false;
}

/* --- may it be moved ---------------------------------------------------------------------------------------------- */

/*
 * How much is moved: whole instructions, at least a jump's length. A short function may be followed by padding alone.
 */
static bool measure(struct patch *p)
{
	const unsigned char *at = p->from;
	bool ended = false;
	struct mew_code c;

	for (; at < p->from + JUMP_BYTES; at += c.bytes) {
		ended = ended || at >= p->end;
		if (!mew_code_read(at, MEW_CODE_BYTES, &c))
			return refuse(p, "its first instructions are not understood");
		if (ended && !c.is_padding)
			return refuse(p, "it is shorter than a jump");
		/*
		 * a call that returns to the page would be a caller without unwind tables there; a direct one is remade
		 */
		if (c.kind == MEW_CODE_LOOP || c.is_indirect_call ||
		    (c.prefixed && c.kind >= MEW_CODE_CALL && c.kind <= MEW_CODE_BRANCH))
			return refuse(p, "its first instructions cannot be moved");
		ended = ended || c.kind == MEW_CODE_END || c.kind == MEW_CODE_JUMP;
	}
	p->moved = (unsigned)(at - p->from);
	return true;
}

/* Does the function jump into what would be moved? */
static bool is_target(struct patch *p)
{
	struct mew_code c;
	uintptr_t target;

	for (const unsigned char *at = p->from; at < p->end; at += c.bytes) {
		if (!mew_code_read(at, (size_t)(p->end - at) + MEW_CODE_BYTES, &c))
			return !refuse(p, "its code is not understood");
		if (c.kind < MEW_CODE_CALL || c.kind == MEW_CODE_END)
			continue;
		target = mew_code_target(&c, at, (uintptr_t)at);
		if (target > (uintptr_t)p->from && target < (uintptr_t)p->from + p->moved)
			return !refuse(p, "it jumps back into its first instructions");
	}
	return false;
}

/* --- the code on the page ----------------------------------------------------------------------------------------- */

static void put(struct patch *p, const void *bytes, size_t n)
{
	memcpy(p->code, bytes, n);
	p->code += n;
}

/* A displacement that ends `behind` bytes before the end of its instruction. */
static bool put_distance(struct patch *p, uintptr_t target, unsigned behind)
{
	intptr_t distance = (intptr_t)(target - ((uintptr_t)p->code + 4 + behind));
	int32_t near = (int32_t)distance;

	if (near != distance)
		return refuse(p, "what it refers to is too far away");
	put(p, &near, sizeof near);
	return true;
}

static bool put_jump(struct patch *p, uintptr_t target)
{
	put(p, "\xe9", 1);
	return put_distance(p, target, 0);
}

/* The return address is that of the function, so that stacks are walked as ever. */
static bool put_call(struct patch *p, uintptr_t back, uintptr_t target)
{
	uint32_t low = (uint32_t)back, high = (uint32_t)(back >> 32);

	put(p, "\x68", 1); /* push */
	put(p, &low, sizeof low);
	put(p, "\xc7\x44\x24\x04", 4); /* mov to 4(%rsp) */
	put(p, &high, sizeof high);
	return put_jump(p, target);
}

static bool put_branch(struct patch *p, unsigned condition, uintptr_t target)
{
	const unsigned char opcode[2] = { 0x0f, (unsigned char)(0x80 | condition) };

	put(p, opcode, sizeof opcode);
	return put_distance(p, target, 0);
}

static bool put_moved(struct patch *p, const unsigned char *at, const struct mew_code *c)
{
	uintptr_t target = c->width != 0 ? mew_code_target(c, at, (uintptr_t)at) : 0;

	if (c->width == 0) {
		put(p, at, c->bytes);
		return true;
	}
	if (c->kind == MEW_CODE_CALL)
		return put_call(p, (uintptr_t)at + c->bytes, target);
	if (c->kind == MEW_CODE_JUMP)
		return put_jump(p, target);
	if (c->kind == MEW_CODE_BRANCH)
		return put_branch(p, at[c->width == 1 ? 0 : 1] & 0x0fu, target);
	put(p, at, c->at);
	if (!put_distance(p, target, c->bytes - c->at - 4))
		return false;
	put(p, at + c->at + 4, c->bytes - c->at - 4);
	return true;
}

/*
 * Flags are not changed on the way past a probe that is not armed: rcx is kept, loaded, and tested by jrcxz. Else what
 * a call may change is kept, the stack is aligned, and the probe is the first argument.
 */
static const unsigned char keep[] = {
	0x9c,                                           /* pushf */
	0x50, 0x52, 0x56, 0x57,                         /* push rax, rdx, rsi, rdi */
	0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, /* push r8 to r11 */
	0x55, 0x48, 0x89, 0xe5,                         /* push rbp; mov rsp, rbp */
	0x48, 0x83, 0xe4, 0xf0, 0xfc,                   /* and -16, rsp; cld */
	0x48, 0x89, 0xcf,                               /* mov rcx, rdi */
	0xff, 0x15                                      /* call *(hit) */
};
static const unsigned char give_back[] = {
	0x48, 0x89, 0xec, 0x5d,                         /* mov rbp, rsp; pop rbp */
	0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, /* pop r11 to r8 */
	0x5f, 0x5e, 0x5a, 0x58,                         /* pop rdi, rsi, rdx, rax */
	0x9d                                            /* popf */
};

static bool write_page(struct patch *p, const struct mew_probe *probe)
{
	const unsigned char skip[2] = { 0xe3, sizeof keep + 4 + sizeof give_back }; /* jrcxz */
	struct mew_code c;

	put(p, "\x51\x48\x8b\x0d", 4); /* push rcx; mov (armed), rcx */
	if (!put_distance(p, (uintptr_t)&probe->armed, 0))
		return false;
	put(p, skip, sizeof skip);
	put(p, keep, sizeof keep);
	if (!put_distance(p, (uintptr_t)&probe->hit, 0))
		return false;
	put(p, give_back, sizeof give_back);
	put(p, "\x59", 1); /* pop rcx */
	for (const unsigned char *at = p->from; at < p->from + p->moved; at += c.bytes) {
		if (!mew_code_read(at, MEW_CODE_BYTES, &c) || !put_moved(p, at, &c))
			return false;
		if (c.kind >= MEW_CODE_CALL && c.kind <= MEW_CODE_JUMP)
			return true; /* what follows is padding, or comes back to where it was */
	}
	return put_jump(p, (uintptr_t)p->from + p->moved);
}

/* --- pages and the jump ------------------------------------------------------------------------------------------- */

static unsigned char *map_at(uintptr_t address)
{
	long got = syscall(SYS_mmap, address, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0L);

	if (got == -1 || (uintptr_t)got == address)
		return got == -1 ? NULL : (unsigned char *)got;
	(void)syscall(SYS_munmap, got, 2 * PAGE); /* a kernel that takes the address for a wish */
	return NULL;
}

/* Below the file first: above the program's own lies its heap. */
static unsigned char *map_near(uintptr_t entry)
{
	uintptr_t place = entry & ~(uintptr_t)(STEP - 1);
	unsigned char *got = NULL;

	for (intptr_t d = STEP; d < REACH && got == NULL && place > (uintptr_t)d + STEP; d += STEP)
		got = map_at(place - (uintptr_t)d);
	for (intptr_t d = REACH; d > STEP && got == NULL; d -= STEP)
		got = map_at(place + (uintptr_t)d);
	return got;
}

/* By the kernel, which needs no page that is writable and code at once; else by making it so for a moment. */
static bool overwrite(unsigned char *at, const unsigned char *bytes, size_t n)
{
	uintptr_t first = (uintptr_t)at & ~(uintptr_t)(PAGE - 1),
		last = ((uintptr_t)at + n - 1) & ~(uintptr_t)(PAGE - 1);
	size_t length = last - first + PAGE;
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	bool done = fd >= 0 && pwrite(fd, bytes, n, (off_t)(uintptr_t)at) == (ssize_t)n;

	if (fd >= 0)
		(void)close(fd);
	if (done)
		return true;
	if (syscall(SYS_mprotect, first, length, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		return false;
	memcpy(at, bytes, n);
	(void)syscall(SYS_mprotect, first, length, PROT_READ | PROT_EXEC);
	return true;
}

static bool lead_away(struct patch *p, uintptr_t page)
{
	intptr_t distance = (intptr_t)(page - ((uintptr_t)p->from + JUMP_BYTES));
	int32_t near = (int32_t)distance;
	unsigned char jump[JUMP_BYTES] = { 0xe9 };

	memcpy(jump + 1, &near, sizeof near);
	if (near != distance || !overwrite((unsigned char *)(uintptr_t)p->from, jump, sizeof jump))
		return refuse(p, "the system forbids changing its code");
	return true;
}

struct mew_probe *mew_probe_place(uintptr_t entry, size_t bytes, mew_probe_fn *hit, void *data, const char **why)
{
	static const unsigned char endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct patch p = { .from = (const unsigned char *)entry, .end = (const unsigned char *)entry + bytes };
	struct mew_probe *probe;
	unsigned char *pages;

	if (bytes == 0) {
		*why = "its size is not known";
		return NULL;
	}
	if (bytes >= sizeof endbr64 && memcmp(p.from, endbr64, sizeof endbr64) == 0)
		p.from += sizeof endbr64;
	*why = NULL;
	if (!measure(&p) || is_target(&p)) {
		*why = p.why;
		return NULL;
	}
	pages = map_near(entry);
	*why = "no memory near it can be had";
	if (pages == NULL)
		return NULL;
	probe = (struct mew_probe *)(void *)(pages + PAGE);
	*probe = (struct mew_probe){ .hit = hit, .data = data, .entry = entry };
	p.code = pages;
	p.why = *why;
	if (write_page(&p, probe) && syscall(SYS_mprotect, pages, PAGE, PROT_READ | PROT_EXEC) == 0 &&
	    lead_away(&p, (uintptr_t)pages))
		return probe;
	*why = p.why;
	(void)syscall(SYS_munmap, pages, 2 * PAGE);
	return NULL;
}

#else

bool mew_probe_is_known(void)
{
	return false;
}

struct mew_probe *mew_probe_place(uintptr_t entry, size_t bytes, mew_probe_fn *hit, void *data, const char **why)
{
	(void)entry;
	(void)bytes;
	(void)hit;
	(void)data;
	*why = "functions cannot be watched on this machine";
	return NULL;
}

#endif
