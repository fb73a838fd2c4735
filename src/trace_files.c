/*
 * trace_files.c - see trace_files.h.
 * Layer L6. Whoever may write into the directory is not trusted.
 */
#include "config.h"

#include "trace_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deflate.h"
#include "error.h"
#include "trace_merge.h"

#define FILES_MAX 4096u

static int read_all(int fd, char *text, size_t bytes)
{
	size_t got = 0;

	while (got < bytes) {
		ssize_t n = read(fd, text + got, bytes - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		got += (size_t)n;
	}
	return 0;
}

static bool is_packed(int fd)
{
	unsigned char magic[2];

	return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic && magic[0] == 0x1f && magic[1] == 0x8b;
}

static int unpack(int fd, const char *name, size_t most, struct mew_trace_source *s, struct mew_error *err)
{
	const char *why;

	s->text = mew_gunzip(fd, most, &s->bytes, &why);
	return s->text != NULL ? MEW_OK : mew_error_set(err, MEW_E_INVALID, "%s: %s", name, why);
}

/* Through a descriptor that was checked: what has the name later makes no difference. */
static int read_text(int fd, const char *name, size_t most, struct mew_trace_source *s, struct mew_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return mew_error_set(err, MEW_E_INVALID, "%s: not a plain file", name);
	if ((uint64_t)st.st_size > most)
		return mew_error_set(err, MEW_E_INVALID, "%s: %llu MiB are too much, at most %zu are read", name,
				     (unsigned long long)st.st_size >> 20, most >> 20);
	if (is_packed(fd))
		return unpack(fd, name, most, s, err);
	s->bytes = (size_t)st.st_size;
	s->text = malloc(s->bytes + 1);
	if (s->text == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "%s: no memory for it", name);
	if (read_all(fd, s->text, s->bytes) != 0)
		return mew_error_errno(err, MEW_E_IO, "%s cannot be read", name);
	return MEW_OK;
}

static int append(struct mew_trace_files *files, const struct mew_trace_source *s)
{
	struct mew_trace_source *list = realloc(files->list, (files->n + 1) * sizeof *list);

	if (list == NULL)
		return MEW_E_NOMEM;
	files->list = list;
	list[files->n++] = *s;
	files->bytes += s->bytes;
	return MEW_OK;
}

int mew_trace_files_read(struct mew_trace_files *files, int directory, const char *name, size_t most,
			 struct mew_trace_events *events, struct mew_error *err)
{
	struct mew_trace_source s = { .name = strdup(name) };
	int fd = openat(directory, name, O_RDONLY | (directory != AT_FDCWD ? O_NOFOLLOW : 0) | O_NONBLOCK | O_CLOEXEC),
		status;

	if (s.name == NULL)
		status = mew_error_set(err, MEW_E_NOMEM, "%s: no memory for it", name);
	else if (fd < 0 && errno == ELOOP)
		status = mew_error_set(err, MEW_E_INVALID, "%s: a link, not a file", name);
	else if (fd < 0)
		status = mew_error_errno(err, MEW_E_IO, "%s cannot be read", name);
	else
		status = read_text(fd, name, most, &s, err);
	if (status == MEW_OK)
		status = mew_trace_load(events, &s, (uint32_t)files->n, err);
	if (status == MEW_OK && append(files, &s) != MEW_OK)
		status = mew_error_set(err, MEW_E_NOMEM, "%s: no memory for it", name);
	if (fd >= 0)
		(void)close(fd);
	if (status != MEW_OK) {
		free(s.text);
		free(s.name);
	}
	return status;
}

/* --- the sweep -------------------------------------------------------------------------------------------------- */

static int is_fragment(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".json") == 0;
}

static bool is_of_mew(const struct dirent *d)
{
	return strncmp(d->d_name, "mew-", 4) == 0;
}

/*
 * By bytes: the order must not depend on the locale. mew's own come first: what others leave takes no room from them.
 */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	int order = (int)is_of_mew(*b) - (int)is_of_mew(*a);

	return order != 0 ? order : strcmp((*a)->d_name, (*b)->d_name);
}

static void complain(void (*say)(const char *), const char *what, const char *why)
{
	char line[400];

	(void)snprintf(line, sizeof line, "%.260s%s", what, why);
	say(line);
}

void mew_trace_files_tell(const struct mew_trace_source *s, void (*say)(const char *text))
{
	char line[400];

	if (s->torn)
		complain(say, s->name, ": it breaks off in a line, since its process was killed or the disk was full; "
				       "what came then is missing");
	else if (s->unended)
		complain(say, s->name,
			 ": its process was killed, or left by _exit() or exec, or the disk was full; what it recorded "
			 "last may be missing");
	if (s->bad == 0)
		return;
	(void)snprintf(line, sizeof line, "%.200s: %llu events left out; %s", s->name, (unsigned long long)s->bad,
		       s->first_bad);
	say(line);
}

int mew_trace_files_sweep(struct mew_trace_files *files, int directory, struct mew_trace_events *events,
			  void (*say)(const char *text), struct mew_error *err)
{
	struct dirent **names = NULL;
	int n = scandirat(directory, ".", &names, is_fragment, by_name), status = MEW_OK;

	if (n < 0) {
		complain(say, "the directory of fragments cannot be read: ", strerror(errno));
		return MEW_OK;
	}
	for (int i = 0; i < n && status != MEW_E_NOMEM; i++) {
		size_t room = files->bytes < MEW_FRAGMENTS_MAX ? MEW_FRAGMENTS_MAX - files->bytes : 0;

		if (i >= (int)FILES_MAX) {
			complain(say, names[i]->d_name,
				 " and those behind it are too many fragments; they are passed over");
			break;
		}
		status = mew_trace_files_read(files, directory, names[i]->d_name,
					      room < MEW_FRAGMENT_MAX ? room : MEW_FRAGMENT_MAX, events, err);
		if (status == MEW_OK)
			mew_trace_files_tell(&files->list[files->n - 1], say);
		else if (status != MEW_E_NOMEM)
			complain(say, err->text, "; it is passed over");
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return status == MEW_E_NOMEM ? status : MEW_OK;
}

void mew_trace_files_fini(struct mew_trace_files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(files->list[i].text);
		free(files->list[i].name);
	}
	free(files->list);
	*files = (struct mew_trace_files){ NULL, 0, 0 };
}
