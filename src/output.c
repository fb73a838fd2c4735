/*
 * output.c - see output.h.
 * Layer L6. Caller thread.
 */
#include "config.h"

#include "output.h"

#include "error.h"
#include "writer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANNOT_MAKE "the directory %s cannot be made, use another place"
#define KEY_MAX 159 /* bytes of a key in a file's name */

struct one {
	const struct mew_report *report;
	struct mew_report_input in;
};

struct name {
	char text[KEY_MAX + 24];
};

static int body(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct one *one = data;

	return one->report->write(&one->in, w, err);
}

static bool has_stacks(const struct mew_case *c, enum mew_kind kind)
{
	return kind == MEW_KIND_MEMORY ? c->nheap_stacks > 0 : kind == MEW_KIND_CPU && c->nsamples > 0;
}

/* ASCII alone: the locale has no say in the names of files. What is beyond it stays. */
static bool is_plain(unsigned char c)
{
	return c >= 0x80 || c == '.' || c == '_' || isdigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "zlib/inflate/case:1" becomes "zlib-inflate-case-1": every run of other characters one dash. */
static void file_name(struct name *out, const char *key)
{
	size_t n = 0;

	for (const char *p = key; *p != '\0' && n < KEY_MAX; p++) {
		if (is_plain((unsigned char)*p) && (n > 0 || *p != '.'))
			out->text[n++] = *p;
		else if (n > 0 && out->text[n - 1] != '-')
			out->text[n++] = '-';
	}
	out->text[n] = '\0';
	if (n == 0)
		(void)snprintf(out->text, sizeof out->text, "case");
}

static bool is_taken(const struct name *names, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i].text, text) == 0)
			return true;
	return false;
}

/*
 * A name for each case, to be freed. Keys, or programs, may look alike as file names: later ones get the case's number.
 */
static struct name *file_names(const struct mew_model *m)
{
	struct name *names = calloc(m->ncases + 1, sizeof *names), plain;

	for (size_t i = 0; names != NULL && i < m->ncases; i++) {
		file_name(&plain, m->cases[i].key);
		names[i] = plain;
		for (size_t number = i; is_taken(names, i, names[i].text); number += m->ncases)
			(void)snprintf(names[i].text, sizeof names[i].text, "%.*s-%zu", KEY_MAX, plain.text, number);
	}
	return names;
}

static int one_part(const struct one *one, const char *folder, const char *name, struct mew_error *err)
{
	struct one copy = *one;
	char *path;
	int status;

	if (asprintf(&path, "%s/%s.%s%s", folder, name, mew_kind_name((enum mew_kind)one->in.only_kind),
		     one->report->suffix) < 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for a file name in %s", folder);
	status = mew_write_file(path, body, &copy, err);
	free(path);
	return status;
}

static int parts(struct one *one, const char *path, const struct name *names, struct mew_error *err)
{
	const struct mew_model *m = one->in.model;
	bool any = false;

	for (size_t i = 0; i < m->ncases; i++) {
		for (int kind = 0; kind < MEW_KINDS; kind++) {
			int status;

			if (!has_stacks(&m->cases[i], (enum mew_kind)kind))
				continue;
			one->in.only_case = i;
			one->in.only_kind = kind;
			status = one_part(one, path, names[i].text, err);
			if (status != MEW_OK)
				return status;
			any = true;
		}
	}
	if (any)
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID,
			     "--%s: there are no stacks to write: no allocation or sample was kept; add --memory or "
			     "--cpu",
			     one->report->name);
}

static int directory(const struct mew_report *report, const struct mew_report_input *in, const char *path,
		     struct mew_error *err)
{
	struct one one = { .report = report, .in = *in };
	struct name *names;
	int status;

	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return mew_error_errno(err, MEW_E_IO, CANNOT_MAKE, path);
	names = file_names(in->model);
	if (names == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the names of the files in %s", path);
	status = parts(&one, path, names, err);
	free(names);
	return status;
}

int mew_output_report(const struct mew_report *report, const struct mew_report_input *in, const char *path,
		      struct mew_error *err)
{
	struct one one = { .report = report, .in = *in };

	if (in->base != NULL && !report->compares)
		return mew_error_set(err, MEW_E_INVALID, "--%s shows one result: name one file, or use --html",
				     report->name);
	if (report->shape == MEW_REPORT_DIRECTORY)
		return directory(report, in, path, err);
	return mew_write_file(path, body, &one, err);
}

static int check_directory(const char *path, bool *made, struct mew_error *err)
{
	struct stat st;

	*made = mkdir(path, 0777) == 0;
	if (*made)
		return MEW_OK;
	if (errno != EEXIST)
		return mew_error_errno(err, MEW_E_IO, CANNOT_MAKE, path);
	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		errno = ENOTDIR;
	else if (access(path, W_OK | X_OK) == 0)
		return MEW_OK;
	return mew_error_errno(err, MEW_E_IO, "cannot create a file in '%s', use another directory", path);
}

int mew_output_check(const struct mew_report *report, const char *path, bool *made, struct mew_error *err)
{
	*made = false;
	return report->shape == MEW_REPORT_DIRECTORY ? check_directory(path, made, err) :
	       mew_write_file_check(path, err);
}
