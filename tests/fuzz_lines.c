/*
 * fuzz_lines.c - libFuzzer target: any bytes as .debug_line, .debug_line_str and .debug_str give rows or a complaint.
 * Test program: clang -fsanitize=fuzzer,address,undefined; the first two bytes are the lengths of the texts.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own, so that a read past the end is seen. */
static struct mew_bytes copy(const uint8_t *data, size_t size)
{
	unsigned char *bytes = malloc(size > 0 ? size : 1);

	if (bytes == NULL)
		abort();
	memcpy(bytes, data, size);
	return (struct mew_bytes){ bytes, bytes + size };
}

bool mew_elf_is_code(const struct mew_elf_module *m, uint64_t address)
{
	(void)m;
	return address < UINT64_MAX / 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t addresses[] = { 0, 1, 16, 0x1000, 0x1010, 0x401000, UINT64_MAX };
	struct mew_line_row rows[sizeof addresses / sizeof addresses[0]];
	struct mew_line_sections s;
	struct mew_line_program p;
	size_t first, second;

	if (size < 2)
		return 0;
	first = data[0] < size - 2 ? data[0] : size - 2;
	second = data[1] < size - 2 - first ? data[1] : size - 2 - first;
	s.line_str = copy(data + 2, first);
	s.str = copy(data + 2 + first, second);
	s.line = copy(data + 2 + first + second, size - 2 - first - second);
	memset(rows, 0, sizeof rows);
	if (mew_line_program_open(&p, &s, 0, "/source") == NULL) {
		(void)mew_line_program_run(&p, NULL, 0, addresses, sizeof addresses / sizeof addresses[0], rows);
		for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
			if (rows[i].is_found)
				(void)mew_line_program_file(&p, rows[i].file);
	}
	mew_line_program_close(&p);
	free((void *)(uintptr_t)s.line.at);
	free((void *)(uintptr_t)s.line_str.at);
	free((void *)(uintptr_t)s.str.at);
	return 0;
}
