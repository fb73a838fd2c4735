/*
 * zlib.c - deflate and inflate by level and size, a stream that is used again, and a checksum on two threads.
 * Shows: families, setup, expect, a pause, throughput, tags, threads, skipping.
 */
#include <mew.h>

#include <stdio.h>
#include <string.h>

#include <zlib.h>

#define TEXT_FILE "/usr/share/common-licenses/GPL-3"
#define TEXT_BYTES ((size_t)1 << 20)
#define PACKED_BYTES (TEXT_BYTES + TEXT_BYTES / 512)

struct shape {
	int level;
	size_t bytes;
};

/* The order of the labels is the order of the shapes. */
static const char *const deflate_labels[] = {
	"level1-1k", "level1-64k", "level6-1k", "level6-64k", "level9-1k", "level9-64k", NULL
};
static const struct shape deflate_shapes[] = {
	{ 1, 1 << 10 }, { 1, 64 << 10 }, { 6, 1 << 10 }, { 6, 64 << 10 }, { 9, 1 << 10 }, { 9, 64 << 10 }
};
static const char *const inflate_labels[] = {
	"level1-64k", "level1-1M", "level6-1k", "level6-64k", "level6-1M", "level9-1M", NULL
};
static const struct shape inflate_shapes[] = {
	{ 1, 64 << 10 }, { 1, 1 << 20 }, { 6, 1 << 10 }, { 6, 64 << 10 }, { 6, 1 << 20 }, { 9, 1 << 20 }
};

static unsigned char text[TEXT_BYTES];
static size_t text_bytes; /* 0 where the file is missing */
static unsigned char packed[PACKED_BYTES];
static unsigned char unpacked[TEXT_BYTES];

/* Fill `text` with the file over and over. Runs once per case and pass, outside every figure. */
static void load_text(void *arg)
{
	FILE *file;
	size_t once;

	(void)arg;
	if (text_bytes != 0)
		return;
	file = fopen(TEXT_FILE, "rb");
	if (file == NULL)
		return;
	once = fread(text, 1, TEXT_BYTES, file);
	fclose(file);
	if (once == 0)
		return;
	for (size_t i = once; i < TEXT_BYTES; i++)
		text[i] = text[i - once];
	text_bytes = TEXT_BYTES;
}

static int has_text(struct mew_state *st)
{
	if (text_bytes == 0)
		mew_skip(st, "there is no text to work on: " TEXT_FILE " cannot be read");
	return text_bytes != 0;
}

/* A fast round trip that lost a byte is not a result. */
static const char *round_trip(struct mew_state *st, void *arg)
{
	const struct shape *shape = &inflate_shapes[mew_case_index(st)];

	(void)arg;
	return memcmp(text, unpacked, shape->bytes) == 0 ? NULL : "inflate did not give back what was deflated";
}

/* compress2() makes and drops a stream for every call: look at the allocations. */
MEW_BENCHMARK_NAMED(deflate, "zlib/deflate", .cases = deflate_labels, .tags = "zlib pack", .setup = load_text)
{
	const struct shape *shape = &deflate_shapes[mew_case_index(st)];
	uLongf size = 0;
	int status = Z_OK;

	if (!has_text(st))
		return;
	MEW_LOOP(st) {
		size = PACKED_BYTES;
		status = compress2(packed, &size, text, shape->bytes, shape->level);
		mew_keep(size);
	}
	if (status != Z_OK) {
		mew_fail(st, "compress2 failed");
		return;
	}
	mew_set_bytes(st, (double)shape->bytes);
	mew_set_counter(st, "ratio", (double)shape->bytes / (double)size, MEW_COUNTER_PLAIN);
}

/* The same work with one stream that is reset outside the figures: no allocation is left in the loop. */
MEW_BENCHMARK_NAMED(deflate_again, "zlib/deflate-again", .cases = deflate_labels, .tags = "zlib pack",
		    .setup = load_text)
{
	const struct shape *shape = &deflate_shapes[mew_case_index(st)];
	z_stream stream = { 0 };
	int status = Z_STREAM_END;

	if (!has_text(st))
		return;
	if (deflateInit(&stream, shape->level) != Z_OK) {
		mew_fail(st, "deflateInit failed");
		return;
	}
	MEW_LOOP(st) {
		stream.next_in = text;
		stream.avail_in = (uInt)shape->bytes;
		stream.next_out = packed;
		stream.avail_out = (uInt)PACKED_BYTES;
		status = deflate(&stream, Z_FINISH);
		mew_keep(stream.total_out);
		MEW_PAUSED(st) {
			deflateReset(&stream);
		}
	}
	deflateEnd(&stream);
	if (status != Z_STREAM_END)
		mew_fail(st, "deflate did not reach the end of the text");
	mew_set_bytes(st, (double)shape->bytes);
}

MEW_BENCHMARK_NAMED(inflate, "zlib/inflate", .cases = inflate_labels, .tags = "zlib unpack", .setup = load_text,
		    .expect = round_trip)
{
	const struct shape *shape = &inflate_shapes[mew_case_index(st)];
	uLongf packed_size = PACKED_BYTES;

	if (!has_text(st))
		return;
	if (compress2(packed, &packed_size, text, shape->bytes, shape->level) != Z_OK) {
		mew_fail(st, "compress2 could not make the input");
		return;
	}
	memset(unpacked, 0, shape->bytes);
	MEW_LOOP(st) {
		uLongf size = TEXT_BYTES;

		mew_keep(uncompress(unpacked, &size, packed, packed_size));
	}
	mew_set_bytes(st, (double)shape->bytes);
}

MEW_BENCHMARK_NAMED(crc, "zlib/crc32-two-threads", .tags = "zlib check", .threads = 2, .setup = load_text)
{
	if (!has_text(st))
		return;
	MEW_LOOP(st)
		mew_keep(crc32(0, text, 64 << 10));
	mew_set_bytes(st, 64 << 10);
}

MEW_MAIN()
