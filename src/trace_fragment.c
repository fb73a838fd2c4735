/*
 * trace_fragment.c - see trace_fragment.h.
 * Layer L2. Outside windows.
 */
#include "config.h"

#include "trace_fragment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"

static bool note_file(struct mew_trace_fragment *f)
{
	struct stat st;

	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return false;
	f->device = st.st_dev;
	f->inode = st.st_ino;
	return true;
}

static bool is_ours(const struct mew_trace_fragment *f, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode;
}

/* --- in the directory ------------------------------------------------------------------------------------------- */

int mew_trace_fragment_into(struct mew_trace_fragment *f, const char *directory, struct mew_error *err)
{
	struct stat st;

	*f = (struct mew_trace_fragment){ .fd = -1 };
	if (strlen(directory) >= sizeof f->directory)
		return mew_error_set(err, MEW_E_INVALID, "MEW_TRACE_DIR: \"%.60s...\" is too long: at most %zu bytes",
				     directory, sizeof f->directory - 1);
	if (lstat(directory, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return mew_error_set(err, MEW_E_INVALID,
				     "MEW_TRACE_DIR: \"%.120s\" is not a directory of this user's own "
				     "(links are refused)", directory);
	(void)strcpy(f->directory, directory);
	return MEW_OK;
}

/* Files are opened through it, which may not be a link. */
int mew_trace_fragment_directory(const struct mew_trace_fragment *f)
{
	return f->directory[0] != '\0' ? open(f->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
}

/* A program that closed its standard streams would print into it. */
static int above_streams(int fd)
{
	int moved;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	(void)close(fd);
	return moved;
}

static int open_in_directory(const struct mew_trace_fragment *f, int flags)
{
	int folder = mew_trace_fragment_directory(f), fd;

	if (folder < 0)
		return -1;
	fd = above_streams(openat(folder, f->name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0600));
	(void)close(folder);
	return fd;
}

bool mew_trace_fragment_make(struct mew_trace_fragment *f, int pid)
{
	struct timespec t;

	if (f->failed || f->directory[0] == '\0')
		return false;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	(void)snprintf(f->name, sizeof f->name, "mew-%d-%08lx.json", pid,
		       (unsigned long)t.tv_nsec ^ (unsigned long)t.tv_sec << 8);
	f->fd = open_in_directory(f, O_CREAT | O_EXCL);
	f->failed = !note_file(f);
	return !f->failed;
}

/* --- beside the trace ------------------------------------------------------------------------------------------- */

/* The other command may have removed the file between our open() and our lock. */
static bool has_name(const struct mew_trace_fragment *f, const char *path)
{
	struct stat named;

	return lstat(path, &named) == 0 && named.st_dev == f->device && named.st_ino == f->inode;
}

int mew_trace_fragment_open(struct mew_trace_fragment *f, const char *path, struct mew_error *err)
{
	*f = (struct mew_trace_fragment){ .fd = -1 };
	for (int tries = 0; tries < 10; tries++) {
		f->fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
		if (!note_file(f))
			return mew_error_errno(err, MEW_E_IO, "the trace cannot be written beside its file, as '%s'",
					       path);
		if (flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
			break; /* other failures: no locks on this file system */
		if (has_name(f, path) && ftruncate(f->fd, 0) == 0)
			return MEW_OK;
		mew_trace_fragment_close(f);
	}
	mew_trace_fragment_close(f);
	return mew_error_set(err, MEW_E_BUSY, "another run writes its trace to '%s' now: choose another file", path);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

static bool open_again(struct mew_trace_fragment *f)
{
	f->fd = f->name[0] != '\0' ? open_in_directory(f, O_APPEND) : -1;
	if (f->fd >= 0 && is_ours(f, f->fd))
		return true;
	if (f->fd >= 0)
		(void)close(f->fd); /* another file has the name now */
	f->fd = -1;
	return false;
}

/* What is beyond the limit would bring SIGXFSZ to the program. */
static size_t that_fit(const struct mew_trace_fragment *f, size_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
	    f->written + bytes <= limit.rlim_cur)
		return bytes;
	return f->written < limit.rlim_cur ? (size_t)(limit.rlim_cur - f->written) : 0;
}

void mew_trace_fragment_write(struct mew_trace_fragment *f, const char *text, size_t bytes)
{
	size_t all = bytes;

	if (f->failed || bytes == 0)
		return;
	bytes = that_fit(f, bytes);
	f->failed = !is_ours(f, f->fd) && !open_again(f);
	while (bytes > 0 && !f->failed) {
		ssize_t n = write(f->fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			f->failed = true;
		} else {
			text += n;
			bytes -= (size_t)n;
			all -= (size_t)n;
			f->written += (size_t)n;
		}
	}
	f->failed = f->failed || all > 0;
}

void mew_trace_fragment_close(struct mew_trace_fragment *f)
{
	if (f->fd >= 0 && is_ours(f, f->fd))
		(void)close(f->fd);
	f->fd = -1;
}

void mew_trace_fragment_fork(struct mew_trace_fragment *f)
{
	mew_trace_fragment_close(f);
	f->name[0] = '\0';
	f->failed = false;
	f->written = 0;
}
