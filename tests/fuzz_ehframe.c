/*
 * fuzz_ehframe.c - libFuzzer target: any bytes as .eh_frame_hdr and .eh_frame make a sound table or none.
 * Test program: clang -fsanitize=fuzzer,address,undefined; the first byte is the header's length,
 * the number of bytes says for which machine.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "fx_ehframe.h"

#define CODE 0x10000000u
#define CODE_BYTES 0x20000u
#define HEADER 0x10030000u
#define FRAMES 0x10031000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own, so that a read past the end is seen. */
static struct mew_span copy(const uint8_t *data, size_t size, uintptr_t address)
{
	uint8_t *bytes = malloc(size > 0 ? size : 1);

	if (bytes == NULL)
		abort();
	memcpy(bytes, data, size);
	return (struct mew_span){ bytes, size, address };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mew_machine machines[] = {
		{ .ra = 16, .sp = 7, .bp = 6, .bx = 3, .last = 15, .ra_offset = -8 },
		{ .ra = 30, .sp = 31, .bp = 29, .bx = 30, .last = 30, .signs_returns = true, .letters = "BG" },
	};
	const struct mew_unwind_table *table;
	struct mew_arena arena;
	struct mew_ehframe in = { .lo = CODE, .hi = CODE + CODE_BYTES };
	size_t header;

	if (size == 0)
		return 0;
	header = data[0] < size - 1 ? data[0] : size - 1;
	in.header = copy(data + 1, header, HEADER);
	in.frames = copy(data + 1 + header, size - 1 - header, FRAMES);
	in.machine = &machines[size % MEW_COUNTOF(machines)];
	mew_arena_init(&arena, 0);
	(void)mew_ehframe_address(&in.header);
	if (mew_ehframe_compile(&in, &arena, &table) == 0 && table != NULL && !fx_table_is_sound(table, in.lo, in.hi))
		abort();
	mew_arena_fini(&arena);
	free((void *)(uintptr_t)in.header.bytes);
	free((void *)(uintptr_t)in.frames.bytes);
	return 0;
}
