/*
 * fuzz_symbols.c - libFuzzer target: a damaged ELF file with DWARF, through the whole symboliser, gives names or reasons.
 * Test program: clang -fsanitize=fuzzer,address,undefined; the corpus begins with small libraries, whole
 * (.symtab, .debug_info, .debug_abbrev and all else), for libFuzzer to damage.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESSES 48

struct seen { /* by offset: every one must have a frame or a reason */
	bool is_answered[ADDRESSES];
};

static int take_frame(void *data, const struct mew_symbols_frame *f)
{
	struct seen *s = data;

	if (f->index >= ADDRESSES || f->function == NULL || f->file == NULL || f->function[0] == '\0')
		abort();
	s->is_answered[f->index] = true;
	return 0;
}

static int take_note(void *data, size_t index, const char *why)
{
	struct seen *s = data;

	if (index >= ADDRESSES || why == NULL || why[0] == '\0')
		abort();
	s->is_answered[index] = true;
	return 0;
}

static int take_start(void *data, size_t index, uint64_t start)
{
	(void)data;
	(void)start;
	if (index >= ADDRESSES)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t offsets[ADDRESSES];
	struct seen seen = { { false } };
	char path[64];
	struct mew_symbols_query q = { .abi = MEW_SYMBOLS_ABI, .path = path, .build_id = "", .offsets = offsets,
				       .n = ADDRESSES, .frame = take_frame, .note = take_note, .start = take_start,
				       .data = &seen };
	int file = memfd_create("fuzz", MFD_CLOEXEC);

	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	/* the code of a small library lies at its first pages */
	for (size_t i = 0; i < ADDRESSES; i++)
		offsets[i] = i < ADDRESSES / 2 ? i * 8 : 0x1000 + (i - ADDRESSES / 2) * 16;
	if (mew_symbols_resolve(&q) == 0)
		for (size_t i = 0; i < ADDRESSES; i++)
			if (!seen.is_answered[i])
				abort();
	(void)close(file);
	return 0;
}
