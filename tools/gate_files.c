/*
 * gate_files.c - see gate_files.h.
 * Layer L6.
 */
#include "config.h"

#include "gate_files.h"

#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Also the parents; what is there already is fine. */
static int make_path(const char *path, struct mew_error *err)
{
	char *copy = strdup(path);

	if (copy == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the name of %s", path);
	for (char *slash = copy + 1; *slash != '\0'; slash++) {
		if (*slash != '/')
			continue;
		*slash = '\0';
		(void)mkdir(copy, 0777);
		*slash = '/';
	}
	free(copy);
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return mew_error_errno(err, MEW_E_IO, "--output %s cannot be made", path);
	return MEW_OK;
}

static char *name_of(const struct mew_gate *g, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", g->options->output, name) < 0 ? NULL : path;
}

int mew_gate_directory(const struct mew_gate *g, struct mew_error *err)
{
	static const char *const names[] = { "samples.json", "summary.json", "mew-gate.md", "logs" };
	bool taken = false;
	struct stat st;
	int status;

	if (g->options->output == NULL || g->options->resumed != NULL)
		return MEW_OK;
	for (size_t i = 0; i < MEW_COUNTOF(names) && !taken; i++) {
		char *path = name_of(g, names[i]);

		taken = path != NULL && access(path, F_OK) == 0;
		free(path);
	}
	if (taken)
		return mew_error_set(err, MEW_E_INVALID,
				     "--output %s already holds a run: name another directory, or remove it",
				     g->options->output);
	status = make_path(g->options->output, err);
	if (status == MEW_OK && (stat(g->options->output, &st) != 0 || !S_ISDIR(st.st_mode) ||
				 access(g->options->output, W_OK | X_OK) != 0))
		return mew_error_set(err, MEW_E_IO, "--output %s is no directory that can be written to",
				     g->options->output);
	return status;
}

int mew_gate_file(const struct mew_gate *g, const char *name, mew_write_body_fn *body, struct mew_error *err)
{
	union { /* the body only reads it */
		const struct mew_gate *from;
		void *to;
	} data = { .from = g };
	char *path;
	int status;

	if (g->options->output == NULL)
		return MEW_OK;
	path = name_of(g, name);
	if (path == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the name of %s", name);
	status = mew_write_file(path, body, data.to, err);
	free(path);
	return status;
}

int mew_gate_write_all(const struct mew_gate *g, struct mew_error *err)
{
	static int (*const writers[])(const struct mew_gate *, struct mew_error *) = {
		mew_gate_write_samples, mew_gate_write_summary, mew_gate_write_markdown, mew_gate_write_junit,
		mew_gate_write_otlp,
	};

	for (size_t i = 0; i < MEW_COUNTOF(writers); i++) {
		int status = writers[i](g, err);

		if (status != MEW_OK)
			return status;
	}
	return MEW_OK;
}
