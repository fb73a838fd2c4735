/*
 * writer.h - the byte sink of every report: buffered, locale-free, with one sticky error.
 * Layer L5.
 */
#ifndef MEW_WRITER_H
#define MEW_WRITER_H

#include "base.h"
#include "mew.h"

struct mew_writer {
	/* Returns 0, or an errno value. */
	int (*flush)(struct mew_writer *w, const char *data, size_t bytes);
	void *target;
	int error; /* errno of the first failure; later writes do nothing */
	size_t used;    /* of buffer */
	uint64_t total; /* bytes taken since the start, those in the buffer included */
	char buffer[16384];
};

/* To a stream (borrowed), a file descriptor (borrowed), or growing memory (mew_writer_take). */
void mew_writer_file(struct mew_writer *w, FILE *to);
void mew_writer_fd(struct mew_writer *w, int fd);
void mew_writer_memory(struct mew_writer *w);

void mew_write_bytes(struct mew_writer *w, const void *data, size_t bytes);
void mew_write_text(struct mew_writer *w, const char *text); /* NULL writes nothing */
void mew_write_char(struct mew_writer *w, char c);
void mew_write_u64(struct mew_writer *w, uint64_t value);
void mew_write_i64(struct mew_writer *w, int64_t value);
/*
 * Shortest of 15, 16 or 17 digits that reads back as the same double, with a '.' in every locale; no exponent for whole
 * numbers below 1e15. The caller never passes NaN or infinity (writes 0).
 */
void mew_write_f64(struct mew_writer *w, double value);
/* Nanoseconds as exact decimal microseconds, "12.345". */
void mew_write_us(struct mew_writer *w, uint64_t ns);
/* printf without floating point or locale; for integers and strings. */
void mew_writef(struct mew_writer *w, const char *format, ...) MEW_PRINTF(2, 3);

/* Flush; returns 0 or the sticky errno. */
int mew_writer_finish(struct mew_writer *w);
/* Finish a memory writer: NUL-ended text that the caller frees with free(); NULL without memory. *bytes may be NULL. */
char *mew_writer_take(struct mew_writer *w, size_t *bytes);

/*
 * Write a file whole or not at all: a temporary file beside `path`, flushed to the disk and renamed over it.
 *
 * path     "-" is standard output; a device or pipe is written in place; of a link to a file the target is replaced
 * body     called once; returns MEW_OK or a status with err filled
 * Returns  MEW_OK, MEW_E_IO with the path and the system's reason, or what body returned; on failure nothing is left
 */
typedef int mew_write_body_fn(struct mew_writer *w, void *data, struct mew_error *err);
int mew_write_file(const char *path, mew_write_body_fn *body, void *data, struct mew_error *err);

/*
 * Could mew_write_file() begin now? What a long measurement asks before it starts.
 *
 * path     as there; devices and pipes are not opened, since their reader would see an end
 * Returns  MEW_OK, or what mew_write_file() would say; nothing is left behind
 */
int mew_write_file_check(const char *path, struct mew_error *err);

#endif
