/*
 * trace_write.c - see trace_write.h.
 * Layer L6. After the measurement.
 */
#include "config.h"

#include "trace_write.h"

#include <stdlib.h>
#include <string.h>

#include "deflate.h"

static void put_slice(struct mew_writer *w, const char *key, struct mew_slice value)
{
	if (value.n == 0)
		return;
	mew_writef(w, ",\"%s\":", key);
	mew_write_bytes(w, value.p, value.n);
}

static void put_time(struct mew_writer *w, const char *key, int64_t ns)
{
	mew_writef(w, ",\"%s\":%s", key, ns < 0 ? "-" : "");
	mew_write_us(w, ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns);
}

static void put_args(struct mew_writer *w, const struct mew_trace_event *e)
{
	if (!e->unfinished) {
		put_slice(w, "args", e->args);
		return;
	}
	mew_write_text(w, ",\"args\":{\"unfinished\":true");
	if (e->args.n > 2) {
		const char *p = e->args.p + 1;

		while (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')
			p++;
		mew_write_text(w, *p == '}' ? "" : ",");
		mew_write_bytes(w, p, e->args.n - (size_t)(p - e->args.p));
	} else {
		mew_write_char(w, '}');
	}
}

static void put_partner(struct mew_writer *w, const struct mew_trace_event *e)
{
	if (e->phase == 'b' || e->phase == 'e')
		mew_writef(w, ",\"id2\":{\"local\":\"0x%llx\"}", (unsigned long long)e->number);
	else if (e->phase == 's' || e->phase == 't' || e->phase == 'f')
		mew_writef(w, ",\"id\":\"0x%llx\"%s", (unsigned long long)e->number, e->phase == 'f' ? ",\"bp\":\"e\"" : "");
	else if (e->flow_in || e->flow_out)
		mew_writef(w, ",\"bind_id\":\"0x%llx\"%s%s", (unsigned long long)e->number, e->flow_in ? ",\"flow_in\":true" : "",
			   e->flow_out ? ",\"flow_out\":true" : "");
}

void mew_trace_write_event(struct mew_writer *w, const struct mew_trace_event *e)
{
	mew_writef(w, "{\"ph\":\"%c\",\"pid\":%lld,\"tid\":%lld", e->phase, (long long)e->pid, (long long)e->tid);
	put_slice(w, "cat", e->category);
	if (e->category.n == 0 && e->phase != 'M' && e->phase != 'C')
		mew_write_text(w, ",\"cat\":\"other\"");
	put_slice(w, "name", e->name);
	if (e->phase != 'M')
		put_time(w, "ts", e->ts_ns);
	if (e->phase == 'X')
		put_time(w, "dur", e->duration_ns);
	if (e->phase == 'i')
		mew_writef(w, ",\"s\":\"%c\"", e->scope);
	put_partner(w, e);
	put_args(w, e);
	mew_write_char(w, '}');
}

/* --- gzip ------------------------------------------------------------------------------------------------------- */

static uint32_t crc32_of(const unsigned char *p, size_t n)
{
	uint32_t table[256], crc = 0xffffffffu;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
		table[i] = value;
	}
	while (n-- > 0)
		crc = table[(crc ^ *p++) & 0xff] ^ crc >> 8;
	return ~crc;
}

static void put_u32(unsigned char *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(value >> 8 * i);
}

/* A zlib stream is two bytes, the deflated data, and a checksum of four. */
unsigned char *mew_trace_gzip(const void *text, size_t bytes, size_t *packed)
{
	static const unsigned char head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	size_t n;
	unsigned char *stream = mew_deflate(text, bytes, &n), *out;

	if (stream == NULL || n < 6)
		return stream != NULL ? (free(stream), NULL) : NULL;
	n -= 6;
	out = malloc(sizeof head + n + 8);
	if (out != NULL) {
		memcpy(out, head, sizeof head);
		memcpy(out + sizeof head, stream + 2, n);
		put_u32(out + sizeof head + n, crc32_of(text, bytes));
		put_u32(out + sizeof head + n + 4, (uint32_t)bytes);
		*packed = sizeof head + n + 8;
	}
	free(stream);
	return out;
}
