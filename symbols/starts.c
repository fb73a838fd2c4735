/*
 * starts.c - see starts.h.
 * Layer L3, inside libmew_symbols. Any thread.
 *
 * .eh_frame_hdr (Linux Standard Base 5.0, 10.6.2): version 1, three encodings, a pointer, a count, then the table
 * sorted by function. Linkers write the encodings 0x1b, 0x03 and 0x3b; others are left alone. A description holds,
 * behind its length and the offset to its common part, the function's address (relative to itself) and its length.
 */
#include "config.h"

#include "starts.h"

#include <string.h>

#include "sections.h"

#define HEAD_BYTES 12

static uint32_t u32(const unsigned char *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof value);
	return value;
}

static uint64_t relative(uint64_t base, const unsigned char *p)
{
	return base + (uint64_t)(int64_t)(int32_t)u32(p);
}

static const Elf_Data *section(Elf *elf, const char *wanted, uint64_t *address)
{
	struct mew_sections s = { .elf = elf };

	while (mew_sections_next(&s)) {
		if (s.header.sh_type == SHT_NOBITS || strcmp(s.name, wanted) != 0)
			continue;
		*address = s.header.sh_addr;
		return elf_rawdata(s.section, NULL);
	}
	return NULL;
}

void mew_starts_init(struct mew_starts *s, const struct mew_elf_module *m)
{
	const Elf_Data *head, *frames;
	const unsigned char *bytes;

	*s = (struct mew_starts){ 0 };
	head = section(m->file.elf, ".eh_frame_hdr", &s->base);
	frames = section(m->file.elf, ".eh_frame", &s->frames_address);
	if (head == NULL || head->d_buf == NULL || head->d_size < HEAD_BYTES || frames == NULL || frames->d_buf == NULL)
		return;
	bytes = head->d_buf;
	if (bytes[0] != 1 || bytes[1] != 0x1b || bytes[2] != 0x03 || bytes[3] != 0x3b)
		return;
	s->table = bytes + HEAD_BYTES;
	s->n = u32(bytes + 8);
	if (s->n > (head->d_size - HEAD_BYTES) / 8)
		s->n = 0;
	s->frames = frames->d_buf;
	s->frames_bytes = frames->d_size;
}

uint64_t mew_starts_find(const struct mew_starts *s, uint64_t address)
{
	size_t low = 0, high = s->n;
	uint64_t start, at;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (relative(s->base, s->table + middle * 8) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	start = relative(s->base, s->table + (low - 1) * 8);
	at = relative(s->base, s->table + (low - 1) * 8 + 4) - s->frames_address;
	if (at > s->frames_bytes || s->frames_bytes - at < 16)
		return 0;
	if (relative(s->frames_address + at + 8, s->frames + at + 8) != start)
		return 0; /* a description of another form */
	return address - start < u32(s->frames + at + 12) ? start : 0;
}
