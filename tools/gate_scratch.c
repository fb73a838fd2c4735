/*
 * gate_scratch.c - see gate_scratch.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_scratch.h"

#include "error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int mew_scratch_open(struct mew_scratch *s, const struct mew_gate *g, struct mew_error *err)
{
	const char *parent = getenv("TMPDIR");
	char real[PATH_MAX];
	int n = snprintf(s->root, sizeof s->root, "%s/mew-gate-XXXXXX",
			 parent != NULL && parent[0] == '/' ? parent : "/tmp");

	if (n >= (int)sizeof s->root || mkdtemp(s->root) == NULL) {
		s->root[0] = '\0';
		return mew_error_errno(err, MEW_E_IO, "no scratch folder can be made below %.80s: set TMPDIR to one "
						      "that can be written",
				       parent != NULL ? parent : "/tmp");
	}
	if (g->options->output != NULL && realpath(g->options->output, real) == NULL)
		return mew_error_errno(err, MEW_E_IO, "--output %.80s cannot be followed", g->options->output);
	n = snprintf(s->logs, sizeof s->logs, "%s/logs", g->options->output != NULL ? real : s->root);
	if (n >= (int)sizeof s->logs)
		return mew_error_set(err, MEW_E_IO, "--output %.80s is too long a name", g->options->output);
	return mew_scratch_folder(s->logs, false, err);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)at;
	if (kind == FTW_DNR)
		(void)chmod(path, 0700);
	return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)at;
	/* a command may have left folders that not even their owner may change */
	if ((kind == FTW_D || kind == FTW_DNR) && (st->st_mode & S_IRWXU) != S_IRWXU)
		(void)chmod(path, 0700);
	return 0;
}

static int remove_tree(const char *path)
{
	(void)nftw(path, open_up, 16, FTW_PHYS);
	return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void mew_scratch_close(struct mew_scratch *s)
{
	if (s->root[0] != '\0')
		(void)remove_tree(s->root);
	s->root[0] = '\0';
}

int mew_scratch_folder(const char *path, bool empty, struct mew_error *err)
{
	if (empty)
		(void)remove_tree(path);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return mew_error_errno(err, MEW_E_IO, "%.200s cannot be made", path);
	return MEW_OK;
}

unsigned mew_scratch_unexpected(const char *folder, unsigned n)
{
	DIR *dir = opendir(folder);
	unsigned found = 0, strange = 0;

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		char name[32], *end;
		unsigned long i = strtoul(e->d_name, &end, 10);

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		(void)snprintf(name, sizeof name, "%lu.json", i);
		if (i < n && strcmp(name, e->d_name) == 0)
			found++;
		else
			strange++;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return strange + (n - found);
}

static int copy_bytes(int in, int out)
{
	char block[16384];
	ssize_t n, done = 0;

	while ((n = read(in, block, sizeof block)) > 0)
		for (ssize_t at = 0; at < n; at += done) {
			done = write(out, block + at, (size_t)(n - at));
			if (done < 0)
				return -1;
		}
	return n < 0 ? -1 : 0;
}

int mew_scratch_copy(const char *from, const char *to, struct mew_error *err)
{
	int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK), out, failed;
	struct stat st;

	if (in < 0)
		return MEW_OK;
	if (fstat(in, &st) != 0 || !S_ISREG(st.st_mode)) {
		(void)close(in);
		return mew_error_set(err, MEW_E_IO, "%.180s is no regular file: name files as artefacts", from);
	}
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	failed = out < 0 || copy_bytes(in, out) != 0;
	(void)close(in);
	if (out >= 0 && close(out) != 0)
		failed = 1;
	return failed ? mew_error_errno(err, MEW_E_IO, "%.90s cannot be copied to %.90s", from, to) : MEW_OK;
}
