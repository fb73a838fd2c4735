/*
 * deflate.c - see deflate.h.
 * Layer L5. Any thread, after the windows.
 */
#include "config.h"

#include "deflate.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEST 9
#define STORED_MAX ((size_t)65535) /* of one stored block */

typedef int compress_fn(unsigned char *to, unsigned long *to_bytes, const unsigned char *from, unsigned long bytes,
			int level);
typedef unsigned long bound_fn(unsigned long bytes);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static compress_fn *compress_by_zlib;
static bound_fn *bound_by_zlib;
static struct {
	void *(*open)(int fd, const char *mode);
	int (*read)(void *file, void *to, unsigned bytes);
	int (*close)(void *file);
} unpacking; /* open is NULL without zlib */

/* ISO C has no conversion from data to function pointers. */
static bool find(void *library, const char *name, void *function)
{
	void *at = dlsym(library, name);

	memcpy(function, &at, sizeof at);
	return at != NULL;
}

static void load(void)
{
	void *zlib = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);

	if (zlib == NULL)
		return;
	if (!find(zlib, "gzdopen", &unpacking.open) || !find(zlib, "gzread", &unpacking.read) ||
	    !find(zlib, "gzclose", &unpacking.close))
		unpacking.open = NULL;
	if (!find(zlib, "compressBound", &bound_by_zlib) || !find(zlib, "compress2", &compress_by_zlib))
		compress_by_zlib = NULL;
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

/* --- gzip: the same compressed blocks between another head and another checksum ---------------------------------- */

#define ZLIB_HEAD ((size_t)2)
#define ZLIB_TAIL ((size_t)4)
#define GZIP_TAIL ((size_t)8)

static uint32_t crc32_of(const unsigned char *data, size_t bytes)
{
	uint32_t table[256], crc = UINT32_MAX;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (0xedb88320u & (0 - (table[i] & 1)));
	}
	for (size_t i = 0; i < bytes; i++)
		crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
	return ~crc;
}

static void put_u32(unsigned char *to, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (unsigned char)(value >> 8 * i & 0xff);
}

unsigned char *mew_gzip(const void *data, size_t bytes, size_t *packed)
{
	/* deflate; no name; no date; nothing told of the effort; made on an unknown system */
	static const unsigned char head[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff };
	size_t n, blocks;
	unsigned char *zlib = mew_deflate(data, bytes, &n), *out = NULL;

	if (zlib == NULL)
		return NULL;
	blocks = n - ZLIB_HEAD - ZLIB_TAIL;
	out = malloc(sizeof head + blocks + GZIP_TAIL);
	if (out != NULL) {
		memcpy(out, head, sizeof head);
		memcpy(out + sizeof head, zlib + ZLIB_HEAD, blocks);
		put_u32(out + sizeof head + blocks, crc32_of(data, bytes));
		put_u32(out + sizeof head + blocks + 4, (uint32_t)bytes);
		*packed = sizeof head + blocks + GZIP_TAIL;
	}
	free(zlib);
	return out;
}

#define STEP ((size_t)1 << 20)

static char *read_packed(void *file, size_t most, size_t *bytes, const char **why)
{
	size_t size = 0;
	char *text = NULL, *more;
	int n;

	*bytes = 0;
	do {
		if (size - *bytes < STEP + 1) {
			size = 2 * size + 2 * STEP;
			more = realloc(text, size);
			if (more == NULL) {
				*why = "no memory to unpack it";
				break;
			}
			text = more;
		}
		n = unpacking.read(file, text + *bytes, (unsigned)STEP);
		if (n == 0)
			return text;
		*bytes += n > 0 ? (size_t)n : 0;
		*why = n < 0 ? "the gzip file is damaged; write it again" : "unpacked, it is too much to be read";
	} while (n > 0 && *bytes <= most);
	free(text);
	return NULL;
}

char *mew_gunzip(int fd, size_t most, size_t *bytes, const char **why)
{
	int ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	void *file = NULL;
	char *text = NULL;

	(void)pthread_once(&once, load);
	*why = unpacking.open == NULL ? "there is no zlib to unpack it: use gzip -d first" :
					"no memory or descriptor to unpack it";
	if (ours >= 0 && unpacking.open != NULL)
		file = unpacking.open(ours, "r");
	if (file != NULL) {
		text = read_packed(file, most, bytes, why);
		if (unpacking.close(file) != 0 && text != NULL) { /* gzread() takes what breaks off for an end */
			free(text);
			text = NULL;
			*why = "the gzip file breaks off; write it again";
		}
	} else if (ours >= 0) {
		(void)close(ours);
	}
	return text;
}
