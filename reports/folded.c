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
#include "stacks.h"
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
	mew_write_name(w, *name == '\0' ? "[unknown]" : name, ';', ':');
}

static void put_stack(struct mew_writer *w, const struct mew_model *m, uint32_t stack)
{
	struct mew_stack_walk walk = mew_stack_begin(m, stack);
	struct mew_stack_frame frame;
	char name[NAME_BYTES];

	while (mew_stack_next(&walk, &frame)) {
		mew_write_char(w, ';');
		put_frame(w, frame.function == MEW_NO_FUNCTION ?
				     mew_location_name(m, frame.location, name, sizeof name) :
				     m->functions[frame.function].name);
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
	if (mew_stack_known(m, stack))
		put_stack(w, m, stack);
	else
		mew_writef(w, ";[no stack: %s]", missing);
	text = mew_writer_take(w, NULL);
	free(w);
	return text;
}

/* --- counts per stack ------------------------------------------------------------------------------------------- */

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
			sum = mew_stack_plus(sum, lines[i].count);
		mew_write_text(w, lines[first].text);
		mew_write_char(w, ' ');
		mew_write_u64(w, sum);
		mew_write_char(w, '\n');
	}
}

static int write_stacks(const struct mew_model *m, const struct mew_case *c, enum mew_kind kind, struct mew_writer *w)
{
	const char *missing = kind == MEW_KIND_CPU ? "it could not be unwound" : "it was not recorded";
	size_t nsums = 0, n = 0;
	struct mew_stack_sum *sums = mew_stack_sums(m, c, kind, false, &nsums);
	struct line *lines = calloc(nsums + 1, sizeof *lines);
	char *title = mew_case_title(m, c);
	int status = sums == NULL || lines == NULL || title == NULL ? MEW_E_NOMEM : MEW_OK;

	for (size_t i = 0; status == MEW_OK && i < nsums; i++) {
		lines[n].count = sums[i].values[kind == MEW_KIND_CPU ? MEW_STACK_WEIGHT : MEW_STACK_PEAK];
		if (lines[n].count == 0)
			continue;
		lines[n].text = line_text(m, title, sums[i].stack, missing);
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
	free(sums);
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
