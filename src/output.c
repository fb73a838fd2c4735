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

struct one {
	const struct mew_report *report;
	struct mew_report_input in;
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

/* "zlib/inflate/case:1" becomes "zlib-inflate-case-1": every run of other characters one dash. */
static void file_name(char *out, size_t size, const char *key)
{
	size_t n = 0;

	for (const char *p = key; *p != '\0' && n + 1 < size; p++) {
		if (isalnum((unsigned char)*p) || *p == '.' || *p == '_')
			out[n++] = *p;
		else if (n > 0 && out[n - 1] != '-')
			out[n++] = '-';
	}
	out[n] = '\0';
}

/* Two keys or programs may look alike as file names: later ones get the case's number. */
static bool name_taken(const struct mew_model *m, size_t i, const char *name)
{
	char other[160];

	for (size_t k = 0; k < i; k++) {
		file_name(other, sizeof other, m->cases[k].key);
		if (strcmp(other, name) == 0)
			return true;
	}
	return false;
}

static int one_part(const struct one *one, const char *folder, struct mew_error *err)
{
	const struct mew_model *m = one->in.model;
	char name[160], number[24] = "", *path;
	struct one copy = *one;
	int status;

	file_name(name, sizeof name, m->cases[one->in.only_case].key);
	if (name_taken(m, one->in.only_case, name))
		(void)snprintf(number, sizeof number, "-%zu", one->in.only_case);
	if (asprintf(&path, "%s/%s%s.%s%s", folder, name, number, mew_kind_name((enum mew_kind)one->in.only_kind),
		     one->report->suffix) < 0)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for a file name in %s", folder);
	status = mew_write_file(path, body, &copy, err);
	free(path);
	return status;
}

static int directory(const struct mew_report *report, const struct mew_report_input *in, const char *path,
		     struct mew_error *err)
{
	struct one one = { .report = report, .in = *in };
	const struct mew_model *m = in->model;
	bool any = false;

	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return mew_error_errno(err, MEW_E_IO, "the directory %s cannot be made", path);
	for (size_t i = 0; i < m->ncases; i++) {
		for (int kind = 0; kind < MEW_KINDS; kind++) {
			int status;

			if (!has_stacks(&m->cases[i], (enum mew_kind)kind))
				continue;
			one.in.only_case = i;
			one.in.only_kind = kind;
			status = one_part(&one, path, err);
			if (status != MEW_OK)
				return status;
			any = true;
		}
	}
	if (any)
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID, "--%s: there are no stacks to write; add --memory or --cpu", report->name);
}

int mew_output_report(const struct mew_report *report, const struct mew_report_input *in, const char *path,
		      struct mew_error *err)
{
	struct one one = { .report = report, .in = *in };

	if (in->base != NULL && !report->compares)
		return mew_error_set(err, MEW_E_INVALID, "--%s shows one result: name one file, or use --html", report->name);
	if (report->shape == MEW_REPORT_DIRECTORY)
		return directory(report, in, path, err);
	return mew_write_file(path, body, &one, err);
}
