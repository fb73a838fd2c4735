/*
 * deflate.h - zlib and gzip streams, by the system's zlib where there is one.
 * Layer L5.
 */
#ifndef MEW_DEFLATE_H
#define MEW_DEFLATE_H

#include "base.h"

/*
 * Pack bytes into a zlib stream (RFC 1950). zlib is loaded when the first report needs it, so that libmew depends on
 * libc alone and a measured process carries no compressor; without it the stream is valid too, but not smaller.
 *
 * data     borrowed
 * packed   returned: its length
 * Returns  bytes that the caller frees with free(); NULL without memory. The same bytes and the same zlib give the same stream
 * Context  any thread, outside windows
 */
unsigned char *mew_deflate(const void *data, size_t bytes, size_t *packed);

/*
 * The same as a gzip file (RFC 1952) without a name or a date.
 *
 * Context  any thread, outside windows
 */
unsigned char *mew_gzip(const void *data, size_t bytes, size_t *packed);

/*
 * Unpack a gzip file.
 *
 * fd       at its start; borrowed
 * most     bytes that it may have; more is a failure
 * bytes    returned: how many it has
 * why      returned with NULL: a clause with the remedy
 * Returns  bytes that the caller frees with free(), one more than *bytes; NULL
 * Context  any thread, outside windows
 */
char *mew_gunzip(int fd, size_t most, size_t *bytes, const char **why);

#endif
