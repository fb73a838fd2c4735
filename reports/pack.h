/*
 * pack.h - growing bytes, variable-length numbers, and one compressed line of the HTML report's data.
 * Layer L5.
 */
#ifndef MEW_PACK_H
#define MEW_PACK_H

#include "base.h"
#include "writer.h"

struct mew_pack { /* begin with { 0 } */
	unsigned char *data;
	size_t used, size;
	bool failed; /* no memory: later calls do nothing */
};

/* Append a number, seven bits a byte, low bits first, the top bit set in all but the last byte (LEB128). */
void mew_pack_number(struct mew_pack *p, uint64_t value);

/* Append bytes as they are. */
void mew_pack_bytes(struct mew_pack *p, const void *data, size_t bytes);

/* Give the memory back; the pack is empty and usable again. */
void mew_pack_fini(struct mew_pack *p);

/*
 * Write bytes as one line: zlib stream, base64, line end. The same bytes give the same line.
 *
 * data     borrowed
 * Returns  0, or -1 without memory; what the writer meets stays in the writer
 */
int mew_pack_line(struct mew_writer *w, const void *data, size_t bytes);

#endif
