/*
 * folded.c - collapsed stacks, one file per case and kind: the text that flamegraph.pl, speedscope and inferno read.
 * Layer L5. Reads a sealed model; the same model gives the same bytes.
 *
 * A line is `frame;...;frame COUNT`, outermost frame first, with one blank before a whole number. The first frame is
 * the case as people call it ("zlib/inflate [64k]"), so that files may be joined. COUNT is nanoseconds of sample weight
 * for cpu, and bytes alive at the high-water mark for memory. Inlined functions are frames of their own. ';' in a name
 * becomes ':', line ends and tabs a blank, an empty name [unknown]; a place without a name is libfoo.so+0x1234; a
 * sample whose stack is missing is [no stack: REASON]. Equal lines are added up, lines that count nothing are left out,
 * and they are sorted.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "mew/report.h"
#include "model.h"
#include "symbolise.h"
#include "textual.h"
#include "writer.h"

#define NAME_BYTES 512 /* of a module and an offset */

struct line {
	char *text;
	uint64_t count;
};

/* --- one line --------------------------------------------------------------------------------------------------- */

static void put_frame(struct mew_writer *w, const char *name)
{
	if (*name == '\0')
		name = "[unknown]";
	for (size_t bytes; *name != '\0'; name += bytes) {
		uint32_t code = mew_utf8_next(name, &bytes);

		if (code == ';')
			mew_write_char(w, ':');
		else if (code < 0x20 || code == 0x7f)
			mew_write_char(w, ' ');
		else if (code == MEW_BAD_CHARACTER)
			mew_write_text(w, "\xef\xbf\xbd");
		else
			mew_write_bytes(w, name, bytes);
	}
}

static void put_location(struct mew_writer *w, const struct mew_model *m, uint32_t location)
{
	const struct mew_location *l = &m->locations[location];
	char name[NAME_BYTES];

	if (l->nlines == 0) {
		mew_write_char(w, ';');
		put_frame(w, mew_location_name(m, location, name, sizeof name));
	}
	for (uint32_t i = l->nlines; i-- > 0;) {
		mew_write_char(w, ';');
		put_frame(w, m->functions[m->lines[l->first_line + i].function].name);
	}
}

/* Taken by the caller; NULL without memory. */
static char *line_text(const struct mew_model *m, const char *title, uint32_t stack, const char *missing)
{
	struct mew_writer *w = malloc(sizeof *w);
	char *text;

	if (w == NULL)
		return NULL;
	mew_writer_memory(w);
	put_frame(w, title);
	if (stack >= m->nstacks || m->stacks[stack].depth == 0) {
		mew_writef(w, ";[no stack: %s]", missing);
	} else {
		for (uint32_t i = m->stacks[stack].depth; i-- > 0;)
			put_location(w, m, m->frames[m->stacks[stack].first + i]);
	}
	text = mew_writer_take(w, NULL);
	free(w);
	return text;
}

/* --- counts per stack ------------------------------------------------------------------------------------------- */

/* counts has a place for each stack and, at the end, one for what has none. */
static void add(uint64_t *counts, size_t nstacks, uint32_t stack, uint64_t count)
{
	uint64_t *at = &counts[stack < nstacks ? stack : nstacks];

	if (__builtin_add_overflow(*at, count, at))
		*at = UINT64_MAX;
}

static uint64_t *count_stacks(const struct mew_model *m, const struct mew_case *c, enum mew_kind kind)
{
	uint64_t *counts = calloc(m->nstacks + 1, sizeof *counts);

	if (counts == NULL)
		return NULL;
	if (kind == MEW_KIND_CPU)
		for (size_t i = 0; i < c->nsamples; i++)
			add(counts, m->nstacks, c->samples[i].stack, c->samples[i].weight_ns);
	else
		for (size_t i = 0; i < c->nheap_stacks; i++)
			add(counts, m->nstacks, c->heap_stacks[i].stack, c->heap_stacks[i].peak_bytes);
	return counts;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

/* Stacks of different addresses read alike when their functions are the same. */
static void put_lines(struct mew_writer *w, struct line *lines, size_t n)
{
	qsort(lines, n, sizeof *lines, by_text);
	for (size_t i = 0; i < n;) {
		uint64_t sum = 0;
		size_t first = i;

		for (; i < n && strcmp(lines[i].text, lines[first].text) == 0; i++)
			if (__builtin_add_overflow(sum, lines[i].count, &sum))
				sum = UINT64_MAX;
		mew_write_text(w, lines[first].text);
		mew_write_char(w, ' ');
		mew_write_u64(w, sum);
		mew_write_char(w, '\n');
	}
}

static int write_stacks(const struct mew_model *m, const struct mew_case *c, enum mew_kind kind, struct mew_writer *w)
{
	const char *missing = kind == MEW_KIND_CPU ? "it could not be unwound" : "it was not recorded";
	uint64_t *counts = count_stacks(m, c, kind);
	struct line *lines = calloc(m->nstacks + 1, sizeof *lines);
	char *title = mew_case_title(m, c);
	int status = counts == NULL || lines == NULL || title == NULL ? MEW_E_NOMEM : MEW_OK;
	size_t n = 0;

	for (size_t i = 0; status == MEW_OK && i <= m->nstacks; i++) {
		if (counts[i] == 0)
			continue;
		lines[n].count = counts[i];
		lines[n].text = line_text(m, title, i < m->nstacks ? (uint32_t)i : MEW_NO_STACK, missing);
		if (lines[n].text == NULL)
			status = MEW_E_NOMEM;
		else
			n++;
	}
	if (status == MEW_OK)
		put_lines(w, lines, n);
	while (n > 0)
		free(lines[--n].text);
	free(lines);
	free(counts);
	free(title);
	return status;
}

static int write_folded(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	int status;

	if (in->only_case >= in->model->ncases ||
	    (in->only_kind != MEW_KIND_MEMORY && in->only_kind != MEW_KIND_CPU))
		return mew_error_set(err, MEW_E_INVALID,
				     "folded stacks exist for the memory and cpu rows of a case; run with "
				     "--memory or --cpu");
	status = write_stacks(in->model, &in->model->cases[in->only_case], (enum mew_kind)in->only_kind, w);
	return status == MEW_OK ? MEW_OK :
				  mew_error_set(err, status, "the stacks of %s could not be written: out of memory",
						in->model->cases[in->only_case].key);
}

const struct mew_report mew_report_folded = {
	.abi = MEW_REPORT_ABI,
	.name = "folded",
	.help = "collapsed stacks for flame graph tools, a file per case and kind",
	.suffix = ".folded",
	.shape = MEW_REPORT_DIRECTORY,
	.needs_symbols = 1,
	.write = write_folded,
};
