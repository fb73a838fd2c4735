/*
 * cfi_read.c - the bounded reader of unwind information: numbers and pointers in the forms that it is written in.
 * Layer L1. Outside windows. The input is not trusted: no read leaves its span.
 */
#include "config.h"

#include "cfi.h"

#include "hotpath.h"

uint64_t mew_read_long_uleb(struct mew_reader *r)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (r->at < r->end) {
		uint8_t byte = *r->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			return value;
	}
	r->bad = true;
	return 0;
}

int64_t mew_read_long_sleb(struct mew_reader *r)
{
	uint64_t value = 0;
	unsigned shift = 0;

	while (r->at < r->end) {
		uint8_t byte = *r->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (shift < 64 && (byte & 0x40))
				value |= ~(uint64_t)0 << shift;
			return (int64_t)value;
		}
	}
	r->bad = true;
	return 0;
}

uintptr_t mew_read_pointer(struct mew_reader *r, uint8_t encoding, uintptr_t data)
{
	uintptr_t here = r->address + (uintptr_t)(r->at - r->base);
	uint64_t value = 0;

	if (encoding == 0xff)
		return 0;
	switch (encoding & 0x0f) {
	case 0x00: case 0x04: case 0x0c: value = mew_read_bytes(r, 8); break;
	case 0x01: value = mew_read_uleb(r); break;
	case 0x02: value = mew_read_bytes(r, 2); break;
	case 0x03: value = mew_read_bytes(r, 4); break;
	case 0x09: value = (uint64_t)mew_read_sleb(r); break;
	case 0x0a: value = (uint64_t)(int64_t)(int16_t)mew_read_bytes(r, 2); break;
	case 0x0b: value = (uint64_t)(int64_t)(int32_t)mew_read_bytes(r, 4); break;
	default: r->bad = true;
	}
	switch (encoding & 0xf0) {
	case 0x00: break;
	case 0x10: value = value != 0 ? value + here : 0; break;
	case 0x30: value = value != 0 ? value + data : 0; break;
	default: r->bad = true; /* relative to text or function, aligned, or through a pointer */
	}
	return r->bad ? 0 : (uintptr_t)value;
}
