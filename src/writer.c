/*
 * writer.c - numbers and text into a buffer, the buffer into a stream, a descriptor or memory; whole files by rename.
 * Layer L5. Any thread, one at a time for each writer; never inside a window.
 */
#include "config.h"

#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

static void init(struct mew_writer *w, int (*flush)(struct mew_writer *, const char *, size_t), void *target)
{
	w->flush = flush;
	w->target = target;
	w->error = 0;
	w->used = 0;
	w->total = 0;
}

static int flush_file(struct mew_writer *w, const char *data, size_t bytes)
{
	errno = 0;
	if (fwrite(data, 1, bytes, w->target) == bytes && fflush(w->target) == 0)
		return 0;
	return errno != 0 ? errno : EIO;
}

static int flush_fd(struct mew_writer *w, const char *data, size_t bytes)
{
	int fd = (int)(intptr_t)w->target;

	while (bytes > 0) {
		ssize_t n = write(fd, data, bytes);

		if (n >= 0) {
			data += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) { /* another program may have made the terminal or pipe non-blocking */
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			if (poll(&p, 1, -1) < 0 && errno != EINTR)
				return errno;
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

struct memory {
	char *text;
	size_t used, size;
};

static int flush_memory(struct mew_writer *w, const char *data, size_t bytes)
{
	struct memory *m = w->target;
	size_t need;

	if (m == NULL)
		m = w->target = calloc(1, sizeof *m);
	if (m == NULL)
		return ENOMEM;
	if (bytes >= SIZE_MAX / 4 - m->used)
		return ENOMEM;
	need = m->used + bytes + 1;
	if (m->text == NULL || need > m->size) {
		size_t size = need > 2 * m->size ? need : 2 * m->size;
		char *text = realloc(m->text, size);

		if (text == NULL)
			return ENOMEM;
		m->text = text;
		m->size = size;
	}
	memcpy(m->text + m->used, data, bytes);
	m->used += bytes;
	m->text[m->used] = '\0';
	return 0;
}

void mew_writer_file(struct mew_writer *w, FILE *to)
{
	init(w, flush_file, to);
}

void mew_writer_fd(struct mew_writer *w, int fd)
{
	init(w, flush_fd, (void *)(intptr_t)fd);
}

void mew_writer_memory(struct mew_writer *w)
{
	init(w, flush_memory, NULL);
}

static void flush_buffer(struct mew_writer *w)
{
	if (w->error == 0)
		w->error = w->flush(w, w->buffer, w->used);
	w->used = 0;
}

void mew_write_bytes(struct mew_writer *w, const void *data, size_t bytes)
{
	const char *from = data;

	if (w->error != 0)
		return;
	w->total += bytes;
	while (bytes > 0) {
		size_t room = sizeof w->buffer - w->used, n = bytes < room ? bytes : room;

		memcpy(w->buffer + w->used, from, n);
		w->used += n;
		from += n;
		bytes -= n;
		if (w->used == sizeof w->buffer)
			flush_buffer(w);
	}
}

void mew_write_text(struct mew_writer *w, const char *text)
{
	if (text != NULL)
		mew_write_bytes(w, text, strlen(text));
}

void mew_write_char(struct mew_writer *w, char c)
{
	mew_write_bytes(w, &c, 1);
}

void mew_write_u64(struct mew_writer *w, uint64_t value)
{
	char digits[20];
	size_t at = sizeof digits;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	mew_write_bytes(w, digits + at, sizeof digits - at);
}

void mew_write_i64(struct mew_writer *w, int64_t value)
{
	if (value < 0)
		mew_write_char(w, '-');
	mew_write_u64(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* One for all numbers: while LOCPATH is set, newlocale() of glibc loses a few bytes at each call. */
static locale_t numbers; /* 0: no memory for it */
static pthread_once_t numbers_made = PTHREAD_ONCE_INIT;

static void make_numbers(void)
{
	numbers = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* uselocale() touches this thread alone; setlocale() in another one cannot put a comma in between the two calls. */
static void format_f64(char *text, size_t size, double value)
{
	locale_t before = (locale_t)0;

	(void)pthread_once(&numbers_made, make_numbers);
	if (numbers != (locale_t)0)
		before = uselocale(numbers);
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, size, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	if (numbers != (locale_t)0)
		(void)uselocale(before);
}

void mew_write_f64(struct mew_writer *w, double value)
{
	char text[32];

	if (!isfinite(value)) {
		mew_write_char(w, '0');
	} else if (fabs(value) < 1e15 && value == (double)(int64_t)value && !signbit(value)) {
		mew_write_u64(w, (uint64_t)value);
	} else {
		format_f64(text, sizeof text, value);
		mew_write_text(w, text);
	}
}

void mew_write_us(struct mew_writer *w, uint64_t ns)
{
	char point[4] = { '.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10), (char)('0' + ns % 10) };

	mew_write_u64(w, ns / 1000);
	mew_write_bytes(w, point, sizeof point);
}

/* Too long for the buffer: by way of the heap. */
MEW_PRINTF(3, 0)
static void write_long(struct mew_writer *w, size_t bytes, const char *format, va_list ap)
{
	char *text = malloc(bytes + 1);

	if (text == NULL) {
		w->error = ENOMEM;
		return;
	}
	(void)vsnprintf(text, bytes + 1, format, ap);
	mew_write_bytes(w, text, bytes);
	free(text);
}

void mew_writef(struct mew_writer *w, const char *format, ...)
{
	size_t room = sizeof w->buffer - w->used;
	va_list ap;
	int n;

	if (w->error != 0)
		return;
	va_start(ap, format);
	n = vsnprintf(w->buffer + w->used, room, format, ap);
	va_end(ap);
	if (n < 0) {
		w->error = errno != 0 ? errno : EINVAL;
	} else if ((size_t)n < room) {
		w->used += (size_t)n;
		w->total += (size_t)n;
	} else {
		va_start(ap, format);
		write_long(w, (size_t)n, format, ap);
		va_end(ap);
	}
}

int mew_writer_finish(struct mew_writer *w)
{
	if (w->used > 0)
		flush_buffer(w);
	return w->error;
}

char *mew_writer_take(struct mew_writer *w, size_t *bytes)
{
	struct memory *m;
	char *text = NULL;

	if (w->error == 0)
		flush_buffer(w); /* an empty one too: it makes the text */
	m = w->target;
	if (m != NULL && w->error == 0) {
		text = m->text;
		if (bytes != NULL)
			*bytes = m->used;
	} else if (m != NULL) {
		free(m->text);
	}
	free(m);
	w->target = NULL;
	return text;
}

/* --- whole files ------------------------------------------------------------------------------------------------ */

#define TRIES 100u /* names that a crashed process with the same number may have left */

struct whole {
	const char *shown; /* as the user wrote it, for messages */
	char *path;        /* where it goes: `shown`, or what that links to */
	char *temporary;   /* NULL when written in place */
	int fd;
};

static int failed(const struct whole *f, struct mew_error *err)
{
	return mew_error_errno(err, MEW_E_IO, "cannot write '%s', free some space or choose another file", f->shown);
}

/* The name is short and in the same directory whatever the target is called: a long name plus a suffix may not fit. */
static int open_temporary(struct whole *f)
{
	static atomic_uint serial;
	const char *slash = strrchr(f->path, '/');
	int directory = slash == NULL ? 0 : (int)(slash - f->path) + 1;

	for (unsigned i = 0; i < TRIES; i++) {
		unsigned number = atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed);
		char *name;
		int cause;

		if (asprintf(&name, "%.*s.mew-%ld-%u.tmp", directory, f->path, (long)getpid(), number) < 0) {
			errno = ENOMEM;
			return -1;
		}
		f->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		cause = errno;
		if (f->fd >= 0) {
			f->temporary = name;
			return 0;
		}
		free(name);
		errno = cause;
		if (cause != EEXIST)
			return -1;
	}
	return -1;
}

/* The standard stream that goes to this file, as /dev/stdout says; -1: none. */
static int stream_to(const struct stat *file)
{
	struct stat st;

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino)
			return fd;
	return -1;
}

/* Devices and pipes are written in place: a rename would put a plain file where /dev/null was. */
static int open_whole(struct whole *f, const char *path, struct mew_error *err)
{
	struct stat st;
	bool exists = stat(path, &st) == 0;
	int stream;

	*f = (struct whole){ .shown = path, .fd = -1 };
	if (exists && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		return mew_error_errno(err, MEW_E_IO, "cannot write '%s', name a file in it", path);
	}
	if (exists && (stream = stream_to(&st)) >= 0) { /* a rename would take away what it has already */
		(void)fflush(stream == STDOUT_FILENO ? stdout : stderr);
		f->fd = fcntl(stream, F_DUPFD_CLOEXEC, 0);
		return f->fd >= 0 ? MEW_OK : failed(f, err);
	}
	if (exists && !S_ISREG(st.st_mode)) {
		f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return f->fd >= 0 ? MEW_OK : failed(f, err);
	}
	f->path = exists ? realpath(path, NULL) : strdup(path);
	if (f->path == NULL)
		return failed(f, err);
	if (open_temporary(f) != 0)
		return mew_error_errno(err, MEW_E_IO, "cannot create a file beside '%s', use another directory", path);
	return MEW_OK;
}

/* Some file systems have no fsync; that is not a reason to lose the report. */
static int settle(struct whole *f)
{
	int closed;

	if (f->temporary != NULL && fsync(f->fd) != 0 && errno != EINVAL && errno != ENOSYS)
		return -1;
	closed = close(f->fd);
	f->fd = -1;
	if (closed != 0 && errno != EINTR)
		return -1;
	if (f->temporary == NULL)
		return 0;
	if (rename(f->temporary, f->path) != 0)
		return -1;
	free(f->temporary);
	f->temporary = NULL;
	return 0;
}

static void close_whole(struct whole *f)
{
	if (f->fd >= 0)
		(void)close(f->fd);
	if (f->temporary != NULL)
		(void)unlink(f->temporary);
	free(f->temporary);
	free(f->path);
}

static int write_stdout(mew_write_body_fn *body, void *data, struct mew_error *err)
{
	struct mew_writer w;
	int status;

	mew_writer_file(&w, stdout);
	status = body(&w, data, err);
	errno = mew_writer_finish(&w);
	if (status == MEW_OK && errno != 0)
		status = mew_error_errno(err, MEW_E_IO, "cannot write to standard output, name a file instead of '-'");
	return status;
}

int mew_write_file(const char *path, mew_write_body_fn *body, void *data, struct mew_error *err)
{
	struct mew_writer w;
	struct whole f;
	int status;

	if (strcmp(path, "-") == 0)
		return write_stdout(body, data, err);
	status = open_whole(&f, path, err);
	if (status != MEW_OK)
		goto out;
	mew_writer_fd(&w, f.fd);
	status = body(&w, data, err);
	if (status != MEW_OK)
		goto out;
	errno = mew_writer_finish(&w);
	if (errno != 0 || settle(&f) != 0)
		status = failed(&f, err);
out:
	close_whole(&f);
	return status;
}

int mew_write_file_check(const char *path, struct mew_error *err)
{
	struct whole f;
	struct stat st;
	int status;

	if (strcmp(path, "-") == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return MEW_OK;
	status = open_whole(&f, path, err);
	close_whole(&f);
	return status;
}
