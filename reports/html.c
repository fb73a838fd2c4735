/*
 * html.c - the HTML report: one page that holds its viewer and its data, and asks nobody for anything.
 * Layer L5. Reads a sealed model; the same model gives the same bytes.
 *
 * The page is html/viewer.html with the data in between. The data are lines, each a zlib stream in base64:
 *
 *   line 0     the header, JSON: schema, mew, grade, hooks, facts, figures, cases, functions (as columns), files,
 *              modules, builds; with a second result its facts, grade, hooks, cases and tables again as `base`
 *   line 1...  per case and kind: the samples of its time, or the call tree of its stacks (html_tree.h); the header's
 *              cases[i].data says which line. A line is unpacked when its case is opened.
 *
 *   last       where source was asked for: the lines around hot ones (html_source.h); the header's `sources` says which
 *
 * A row is { status, reason, profiler, values by the order of `figures`, absent: { place: reason } }. A figure is
 * [name, unit, help], a list has its columns as fourth, and its value is a list of rows, each a list of values.
 * The samples are numbers: count of runs, and per run its process, repetition, loops, count and the raw nanoseconds.
 */
#include "config.h"

#include <stdlib.h>

#include "error.h"
#include "html_header.h"
#include "html_page.h"
#include "html_source.h"
#include "mew/report.h"
#include "pack.h"

/* --- the page --------------------------------------------------------------------------------------------------- */

static bool is_value(const struct mew_run *run)
{
	return run->phase == MEW_PHASE_MEASUREMENT_VALUE && run->loops != 0;
}

static int put_samples(struct mew_pack *out, const struct mew_case *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nruns; i++)
		n += is_value(&c->runs[i]);
	mew_pack_number(out, n);
	for (size_t i = 0; i < c->nruns; i++) {
		const struct mew_run *run = &c->runs[i];

		if (!is_value(run))
			continue;
		mew_pack_number(out, run->process);
		mew_pack_number(out, run->repetition);
		mew_pack_number(out, run->loops);
		mew_pack_number(out, run->nsamples);
		for (size_t k = 0; k < run->nsamples; k++)
			mew_pack_number(out, run->real_ns[k]);
	}
	return out->failed ? -1 : 0;
}

static int write_part(struct mew_writer *w, const struct mew_html_part *part)
{
	const struct mew_model *m = part->model;
	struct mew_pack pack = { 0 };
	int failed = 0;

	for (size_t i = 0; i < m->ncases && failed == 0; i++) {
		for (enum mew_kind kind = 0; kind < MEW_KINDS && failed == 0; kind++) {
			if (!mew_html_has_data(&m->cases[i], kind))
				continue;
			failed = kind == MEW_KIND_TIME ?
					 put_samples(&pack, &m->cases[i]) :
					 mew_html_tree(&pack, &part->functions, m, &m->cases[i], kind);
			if (failed == 0)
				failed = mew_pack_line(w, pack.data, pack.used);
			mew_pack_fini(&pack);
		}
	}
	return failed;
}

static size_t lines_of(const struct mew_model *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->ncases; i++)
		for (enum mew_kind kind = 0; kind < MEW_KINDS; kind++)
			n += mew_html_has_data(&m->cases[i], kind);
	return n;
}

/* What goes into a line that is JSON. */
struct document {
	const struct mew_html_part *parts;
	size_t nparts, source_line;
};

static int put_header(struct mew_writer *w, const struct document *d)
{
	return mew_html_header(w, d->parts, d->nparts, d->source_line);
}

static int put_source(struct mew_writer *w, const struct document *d)
{
	return mew_html_source(w, d->parts[0].model);
}

/* One line out of what `put` writes. Writers hold a large buffer: this one lives on the heap. */
static int write_document(struct mew_writer *w, const struct document *d,
			  int (*put)(struct mew_writer *w, const struct document *d))
{
	struct mew_writer *memory = malloc(sizeof *memory);
	size_t bytes;
	char *text;
	int failed;

	if (memory == NULL)
		return -1;
	mew_writer_memory(memory);
	failed = put(memory, d);
	text = mew_writer_take(memory, &bytes);
	if (text == NULL)
		failed = -1;
	if (failed == 0)
		failed = mew_pack_line(w, text, bytes);
	free(text);
	free(memory);
	return failed;
}

static int write_data(struct mew_writer *w, const struct mew_html_part *parts, size_t nparts, bool embed_source)
{
	struct document d = { .parts = parts, .nparts = nparts };
	int failed;

	for (size_t i = 0; i < nparts && embed_source; i++)
		d.source_line += lines_of(parts[i].model) + (i == 0);
	failed = write_document(w, &d, put_header);
	for (size_t i = 0; i < nparts && failed == 0; i++)
		failed = write_part(w, &parts[i]);
	return failed == 0 && embed_source ? write_document(w, &d, put_source) : failed;
}

static int write_html(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct mew_html_part parts[MEW_HTML_PARTS] = { { .model = in->model }, { .model = in->base } };
	size_t nparts = in->base != NULL ? 2 : 1, ready = 0;
	int failed = 0;

	for (; ready < nparts && failed == 0; ready++)
		failed = mew_shown_functions_init(&parts[ready].functions, parts[ready].model, NULL);
	mew_write_bytes(w, mew_html_before, sizeof mew_html_before);
	if (failed == 0)
		failed = write_data(w, parts, nparts, in->embed_source != 0);
	mew_write_bytes(w, mew_html_after, sizeof mew_html_after);
	for (size_t i = 0; i < ready; i++)
		mew_shown_functions_fini(&parts[i].functions);
	if (failed != 0)
		return mew_error_set(err, MEW_E_NOMEM,
				     "no memory for the HTML report: report fewer cases at once (-k)");
	return MEW_OK;
}

const struct mew_report mew_report_html = {
	.abi = MEW_REPORT_ABI,
	.name = "html",
	.help = "one page with tables and flame graphs, for any browser, offline",
	.suffix = ".html",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 1,
	.compares = 1,
	.write = write_html,
};
