/*
 * reader.h - numbers and texts out of bytes that nobody vouches for.
 * Layer L3, inside libmew_symbols. After a read past the end `at` is NULL, and whatever is read then is 0.
 */
#ifndef MEW_SYMBOLS_READER_H
#define MEW_SYMBOLS_READER_H

#include <string.h>

#include "lines.h"

static inline void mew_skip(struct mew_bytes *b, uint64_t n)
{
	if (b->at == NULL || n > (uint64_t)(b->end - b->at))
		b->at = NULL;
	else
		b->at += n;
}

/* 1 to 8 bytes, in the order of this machine, which loaded the file. */
static inline uint64_t mew_read_number(struct mew_bytes *b, unsigned bytes)
{
	const unsigned char *from = b->at;
	uint64_t value = 0;

	mew_skip(b, bytes);
	if (b->at == NULL || bytes > sizeof value)
		return 0;
	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | from[__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? bytes - 1 - i : i];
	return value;
}

static inline uint64_t mew_read_uleb(struct mew_bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0; b->at != NULL; shift += 7) {
		if (b->at == b->end) {
			b->at = NULL;
			break;
		}
		if (shift < 64)
			value |= (uint64_t)(*b->at & 0x7f) << shift;
		if ((*b->at++ & 0x80) == 0)
			return value;
	}
	return 0;
}

static inline int64_t mew_read_sleb(struct mew_bytes *b)
{
	const unsigned char *from = b->at;
	uint64_t value = mew_read_uleb(b);
	unsigned bits = from == NULL || b->at == NULL ? 64 : 7 * (unsigned)(b->at - from);

	if (bits < 64 && (b->at[-1] & 0x40) != 0)
		value |= UINT64_MAX << bits;
	return (int64_t)value;
}

/* A text with its zero; NULL when it has none before the end. */
static inline const char *mew_read_text(struct mew_bytes *b)
{
	const char *text = (const char *)b->at;
	const unsigned char *end = text == NULL || b->at == b->end ? NULL : memchr(b->at, 0, (size_t)(b->end - b->at));

	b->at = end == NULL ? NULL : end + 1;
	return end == NULL ? NULL : text;
}

#endif
