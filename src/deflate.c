/*
 * deflate.c - see deflate.h.
 * Layer L5. Any thread, after the windows.
 */
#include "config.h"

#include "deflate.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BEST 9
#define STORED_MAX ((size_t)65535) /* of one stored block */

typedef int compress_fn(unsigned char *to, unsigned long *to_bytes, const unsigned char *from, unsigned long bytes, int level);
typedef unsigned long bound_fn(unsigned long bytes);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static compress_fn *compress_by_zlib;
static bound_fn *bound_by_zlib;

static void load(void)
{
	void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL), *compress, *bound;

	if (zlib == NULL)
		return;
	compress = dlsym(zlib, "compress2");
	bound = dlsym(zlib, "compressBound");
	if (compress == NULL || bound == NULL)
		return;
	memcpy(&bound_by_zlib, &bound, sizeof bound_by_zlib); /* ISO C has no conversion from data to function pointers */
	memcpy(&compress_by_zlib, &compress, sizeof compress_by_zlib);
}

static unsigned char *by_zlib(const void *data, size_t bytes, size_t *packed)
{
	unsigned long n = bound_by_zlib((unsigned long)bytes);
	unsigned char *out = malloc(n);

	if (out == NULL || compress_by_zlib(out, &n, data, (unsigned long)bytes, BEST) != 0) {
		free(out);
		return NULL;
	}
	*packed = n;
	return out;
}

static uint32_t adler32(const unsigned char *data, size_t bytes)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < bytes; i++) {
		a = (a + data[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

/* Two bytes of head, stored blocks of at most 65535 bytes with five bytes of head each, four bytes of checksum. */
static unsigned char *stored(const unsigned char *data, size_t bytes, size_t *packed)
{
	size_t blocks = bytes / STORED_MAX + 1, at = 2;
	unsigned char *out = malloc(bytes + blocks * 5 + 6);
	uint32_t sum = adler32(data, bytes);

	if (out == NULL)
		return NULL;
	out[0] = 0x78;
	out[1] = 0x01;
	for (size_t i = 0; i < blocks; i++) {
		size_t n = i + 1 < blocks ? STORED_MAX : bytes - i * STORED_MAX;

		out[at++] = i + 1 == blocks;
		out[at++] = (unsigned char)(n & 0xff);
		out[at++] = (unsigned char)(n >> 8);
		out[at++] = (unsigned char)(~n & 0xff);
		out[at++] = (unsigned char)(~n >> 8 & 0xff);
		memcpy(out + at, data + i * STORED_MAX, n);
		at += n;
	}
	for (int shift = 24; shift >= 0; shift -= 8)
		out[at++] = (unsigned char)(sum >> shift & 0xff);
	*packed = at;
	return out;
}

unsigned char *mew_deflate(const void *data, size_t bytes, size_t *packed)
{
	(void)pthread_once(&once, load);
	return compress_by_zlib != NULL ? by_zlib(data, bytes, packed) : stored(data, bytes, packed);
}
