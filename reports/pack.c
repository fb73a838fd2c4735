/*
 * pack.c - numbers into bytes, bytes through deflate into base64, so that no name can end the page's data element.
 * Layer L5. Any thread.
 */
#include "config.h"

#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "deflate.h"

#define NUMBER_BYTES 10 /* of the longest 64-bit number */

static bool reserve(struct mew_pack *p, size_t more)
{
	size_t size = p->size == 0 ? 4096 : p->size;
	unsigned char *data;

	if (p->failed)
		return false;
	if (more <= p->size - p->used)
		return true;
	while (size - p->used < more) {
		if (!mew_mul_size(size, 2, &size)) {
			p->failed = true;
			return false;
		}
	}
	data = realloc(p->data, size);
	if (data == NULL) {
		p->failed = true;
		return false;
	}
	p->data = data;
	p->size = size;
	return true;
}

void mew_pack_number(struct mew_pack *p, uint64_t value)
{
	if (!reserve(p, NUMBER_BYTES))
		return;
	while (value > 127) {
		p->data[p->used++] = (unsigned char)(value | 128);
		value >>= 7;
	}
	p->data[p->used++] = (unsigned char)value;
}

void mew_pack_bytes(struct mew_pack *p, const void *data, size_t bytes)
{
	if (bytes == 0 || !reserve(p, bytes))
		return;
	memcpy(p->data + p->used, data, bytes);
	p->used += bytes;
}

void mew_pack_fini(struct mew_pack *p)
{
	free(p->data);
	*p = (struct mew_pack){ 0 };
}

static void write_base64(struct mew_writer *w, const unsigned char *data, size_t bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t three = (uint32_t)data[i] << 16;
		char four[4];

		if (left > 1)
			three |= (uint32_t)data[i + 1] << 8;
		if (left > 2)
			three |= data[i + 2];
		four[0] = digits[three >> 18];
		four[1] = digits[three >> 12 & 63];
		four[2] = left > 1 ? digits[three >> 6 & 63] : '=';
		four[3] = left > 2 ? digits[three & 63] : '=';
		mew_write_bytes(w, four, sizeof four);
	}
}

int mew_pack_line(struct mew_writer *w, const void *data, size_t bytes)
{
	size_t packed_bytes;
	unsigned char *packed = mew_deflate(data, bytes, &packed_bytes);

	if (packed == NULL)
		return -1;
	write_base64(w, packed, packed_bytes);
	mew_write_char(w, '\n');
	free(packed);
	return 0;
}
