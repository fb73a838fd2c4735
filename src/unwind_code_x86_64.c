/*
 * unwind_code_x86_64.c - what the bytes of the code say where it has no unwind rules.
 * Layer L1. Any thread, signal, malloc.
 */
#include "config.h"

#include "unwind_code_x86_64.h"

#include "hotpath.h"

/* It reads code, and a page of that is all that is known to be there. */
#define READS_CODE __attribute__((no_sanitize("address", "thread")))

/* A byte of the code that was interrupted; 0 in another page, which may not be there. */
READS_CODE static unsigned code_byte(uintptr_t ip, int at)
{
	uintptr_t byte = ip + (uintptr_t)(intptr_t)at;

	return (byte ^ ip) >> 12 == 0 ? *(const volatile uint8_t *)byte : 0;
}

static bool code_is(uintptr_t ip, int at, unsigned first, unsigned second)
{
	return code_byte(ip, at) == first && code_byte(ip, at + 1) == second;
}

/*
 * Forms of a stub, each perhaps behind endbr64 and bnd:
 *
 *	entry    jmp *m (ff 25); push n (68 and 4 bytes); jmp head (e9)
 *	head     push *m (ff 35 and 4 bytes); jmp *m
 */
uintptr_t mew_code_stub_words(uintptr_t ip)
{
	int at = code_is(ip, 0, 0xf3, 0x0f) && code_is(ip, 2, 0x1e, 0xfa) ? 4 : 0;
	int behind;

	at += code_byte(ip, at) == 0xf2;
	behind = at == 1 ? 1 : 0;
	if (code_is(ip, at, 0xff, 0x25))
		return code_is(ip, at - behind - 6, 0xff, 0x35) ? 3 : 1;
	if (code_is(ip, at, 0xff, 0x35))
		return code_is(ip, at + 6, 0xff, 0x25) || code_is(ip, at + 7, 0xff, 0x25) ? 2 : 0;
	if (code_byte(ip, at) == 0x68)
		return code_byte(ip, at + 5) == 0xe9 || code_is(ip, at + 5, 0xf2, 0xe9) ? 1 : 0;
	return code_byte(ip, at) == 0xe9 && code_byte(ip, at - behind - 5) == 0x68 ? 2 : 0;
}

/* mov $15, %rax; syscall */
bool mew_code_returns_from_signal(uintptr_t ip)
{
	return code_is(ip, 0, 0x48, 0xc7) && code_is(ip, 2, 0xc0, 0x0f) && code_is(ip, 4, 0, 0) &&
	       code_is(ip, 6, 0, 0x0f) && code_byte(ip, 8) == 0x05;
}

/* call, with 4 bytes of distance from the return address */
bool mew_code_called(uintptr_t return_address, uintptr_t *target)
{
	uint32_t distance = 0;

	for (int i = 1; i <= 4; i++)
		distance = distance << 8 | code_byte(return_address - 1, 1 - i);
	*target = return_address + (uintptr_t)(intptr_t)(int32_t)distance;
	return code_byte(return_address - 1, -4) == 0xe8;
}
