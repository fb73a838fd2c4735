/*
 * html.c - the HTML report: one page that holds its viewer and its data, and asks nobody for anything.
 * Layer L5. Reads a sealed model; the same model gives the same bytes.
 *
 * The page is html/viewer.html with the data in between. The data are lines, each a zlib stream in base64:
 *
 *   line 0     the header, JSON: schema, mew, grade, hooks, facts, figures, cases, functions (as columns), files,
 *              modules, builds
 *   line 1...  per case and kind: the samples of its time, or the call tree of its stacks (html_tree.h); the header's
 *              cases[i].data says which line. A line is unpacked when its case is opened.
 *
 * A row is { status, reason, profiler, values by the order of `figures`, absent: { place: reason } }. A figure is [name,
 * unit, help], a list has its columns as fourth, and its value is a list of rows, each a list of values.
 * The samples are numbers: count of runs, and per run its process, repetition, loops, count and the raw nanoseconds.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "error.h"
#include "html_page.h"
#include "html_tree.h"
#include "mew/report.h"

#define SCHEMA 1

/* Numbers for the files that functions are defined in, in the order of first use: one string each. */
struct files {
	const char **names;
	uint32_t *of;    /* by place in the table of functions */
	uint32_t *slots; /* open addressing by the text; number + 1 */
	size_t nslots, n;
};

/* --- files ------------------------------------------------------------------------------------------------------ */

static uint32_t file_number(struct files *f, const char *name)
{
	uint64_t h = 14695981039346656037u;
	size_t s;

	for (const char *c = name; *c != '\0'; c++)
		h = (h ^ (unsigned char)*c) * 1099511628211u;
	for (s = (size_t)h & (f->nslots - 1); f->slots[s] != 0; s = (s + 1) & (f->nslots - 1))
		if (strcmp(f->names[f->slots[s] - 1], name) == 0)
			return f->slots[s] - 1;
	f->names[f->n] = name;
	f->slots[s] = (uint32_t)++f->n;
	return f->slots[s] - 1;
}

static bool number_files(struct files *files, const struct mew_shown_functions *f)
{
	files->nslots = 16;
	while (files->nslots < f->n * 2)
		files->nslots *= 2;
	files->names = malloc((f->n + 1) * sizeof *files->names);
	files->of = malloc((f->n + 1) * sizeof *files->of);
	files->slots = calloc(files->nslots, sizeof *files->slots);
	if (files->names == NULL || files->of == NULL || files->slots == NULL)
		return false;
	for (size_t i = 0; i < f->n; i++)
		files->of[i] = file_number(files, f->all[i].file);
	return true;
}

static void free_files(struct files *files)
{
	free(files->names);
	free(files->of);
	free(files->slots);
}

/* --- header: tables --------------------------------------------------------------------------------------------- */

static void put_functions(struct mew_json *j, const struct mew_shown_functions *f, const struct files *files)
{
	mew_json_key(j, "functions");
	mew_json_object(j);
	mew_json_key(j, "name");
	mew_json_array(j);
	for (size_t i = 0; i < f->n; i++)
		mew_json_string(j, f->all[i].name);
	mew_json_array_end(j);
	mew_json_key(j, "file");
	mew_json_array(j);
	for (size_t i = 0; i < f->n; i++)
		mew_json_u64(j, files->of[i]);
	mew_json_array_end(j);
	mew_json_key(j, "line");
	mew_json_array(j);
	for (size_t i = 0; i < f->n; i++)
		mew_json_u64(j, f->all[i].line);
	mew_json_array_end(j);
	mew_json_key(j, "module");
	mew_json_array(j);
	for (size_t i = 0; i < f->n; i++)
		mew_json_i64(j, f->all[i].module == MEW_NO_MODULE ? -1 : (int64_t)f->all[i].module);
	mew_json_array_end(j);
	mew_json_key(j, "why"); /* by place, for the few that have one */
	mew_json_object(j);
	for (size_t i = 0; i < f->n; i++) {
		char place[24];

		if (f->all[i].why == NULL)
			continue;
		(void)snprintf(place, sizeof place, "%zu", i);
		mew_json_key(j, place);
		mew_json_string(j, f->all[i].why);
	}
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_tables(struct mew_json *j, const struct mew_model *m, const struct files *files)
{
	mew_json_key(j, "files");
	mew_json_array(j);
	for (size_t i = 0; i < files->n; i++)
		mew_json_string(j, files->names[i]);
	mew_json_array_end(j);
	mew_json_key(j, "modules");
	mew_json_array(j);
	for (size_t i = 0; i < m->nmodules; i++)
		mew_json_string(j, m->modules[i].path);
	mew_json_array_end(j);
	mew_json_key(j, "builds");
	mew_json_array(j);
	for (size_t i = 0; i < m->nmodules; i++)
		mew_json_string(j, m->modules[i].build_id);
	mew_json_array_end(j);
}

static void put_catalogue(struct mew_json *j, const struct mew_figure *figures, size_t n)
{
	mew_json_array(j);
	for (size_t i = 0; i < n; i++) {
		const struct mew_list_type *list = figures[i].list;

		mew_json_array(j);
		mew_json_string(j, figures[i].name);
		mew_json_string(j, figures[i].unit);
		mew_json_string(j, figures[i].help);
		if (list != NULL)
			put_catalogue(j, list->columns, list->ncolumns);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
}

static void put_figures(struct mew_json *j)
{
	mew_json_key(j, "figures");
	mew_json_object(j);
	for (enum mew_kind kind = 0; kind < MEW_KINDS; kind++) {
		size_t n;
		const struct mew_figure *figures = mew_figures(kind, &n);

		mew_json_key(j, mew_kind_name(kind));
		put_catalogue(j, figures, n);
	}
	mew_json_object_end(j);
}

/* --- header: cases ---------------------------------------------------------------------------------------------- */

/* A figure of a row, or a column of a row of a list. */
static void put_scalar(struct mew_json *j, const char *base, const struct mew_figure *figure)
{
	const char *at = base + figure->offset;

	if (figure->type == MEW_VALUE_TEXT) {
		const char *text;

		memcpy(&text, at, sizeof text);
		mew_json_string(j, text);
	} else if (figure->type == MEW_VALUE_F64) {
		double value;

		memcpy(&value, at, sizeof value);
		mew_json_f64(j, value);
	} else {
		uint64_t value;

		memcpy(&value, at, sizeof value);
		mew_json_u64(j, value);
	}
}

static void put_value(struct mew_json *j, const struct mew_row_head *row, const struct mew_figure *figure)
{
	const struct mew_list_type *list = figure->list;
	const char *rows;
	size_t n;

	if (!mew_row_has(row, figure->bit)) {
		mew_json_null(j);
		return;
	}
	if (list == NULL) {
		put_scalar(j, (const char *)row, figure);
		return;
	}
	rows = mew_row_list(row, figure, &n);
	mew_json_array(j);
	for (size_t i = 0; i < n; i++) {
		mew_json_array(j);
		for (size_t k = 0; k < list->ncolumns; k++)
			put_scalar(j, rows + i * list->row_bytes, &list->columns[k]);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
}

static void put_row(struct mew_json *j, const struct mew_row_head *row, enum mew_kind kind)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);

	mew_json_key(j, mew_kind_name(kind));
	mew_json_object(j);
	mew_json_key(j, "status");
	mew_json_string(j, mew_status_name(row->status));
	mew_json_key(j, "reason");
	mew_json_string(j, row->reason);
	mew_json_key(j, "profiler");
	mew_json_string(j, row->profiler);
	mew_json_key(j, "values");
	mew_json_array(j);
	for (size_t i = 0; i < n; i++)
		put_value(j, row, &figures[i]);
	mew_json_array_end(j);
	mew_json_key(j, "absent");
	mew_json_object(j);
	for (size_t i = 0; i < n && row->status == MEW_OK; i++) {
		const char *why = mew_row_has(row, figures[i].bit) ? NULL : mew_row_why(row, figures[i].bit);
		char place[24];

		if (why == NULL || figures[i].special)
			continue;
		(void)snprintf(place, sizeof place, "%zu", i);
		mew_json_key(j, place);
		mew_json_string(j, why);
	}
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static bool has_data(const struct mew_case *c, enum mew_kind kind)
{
	if (kind == MEW_KIND_CPU)
		return c->nsamples != 0;
	return kind == MEW_KIND_MEMORY ? c->nheap_stacks != 0 : c->nruns != 0;
}

static void put_case(struct mew_json *j, struct mew_case c, size_t *line)
{
	const char *const texts[][2] = { { "key", c.key },
					 { "label", c.label },
					 { "program", c.program },
					 { "tags", c.tags },
					 { "output", c.output } };

	mew_json_object(j);
	for (size_t i = 0; i < MEW_COUNTOF(texts); i++) {
		mew_json_key(j, texts[i][0]);
		mew_json_string(j, texts[i][1]);
	}
	mew_json_key(j, "threads");
	mew_json_u64(j, c.threads);
	mew_json_key(j, "counters");
	mew_json_array(j);
	for (size_t i = 0; i < c.ncounters; i++) {
		mew_json_array(j);
		mew_json_string(j, c.counters[i].name);
		mew_json_f64(j, c.counters[i].value);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
	mew_json_key(j, "rows");
	mew_json_object(j);
	for (enum mew_kind kind = 0; kind < MEW_KINDS; kind++)
		if ((c.kinds >> kind & 1) != 0)
			put_row(j, mew_case_row(&c, kind), kind);
	mew_json_object_end(j);
	mew_json_key(j, "data");
	mew_json_object(j);
	for (enum mew_kind kind = 0; kind < MEW_KINDS; kind++) {
		if (!has_data(&c, kind))
			continue;
		mew_json_key(j, mew_kind_name(kind));
		mew_json_u64(j, (*line)++);
	}
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_environment(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "grade");
	if (m->grade == 0) {
		mew_json_null(j);
	} else {
		const char letter[] = { m->grade, '\0' };

		mew_json_array(j);
		mew_json_string(j, letter);
		mew_json_string(j, m->grade_reason);
		mew_json_array_end(j);
	}
	mew_json_key(j, "hooks");
	mew_json_string(j, m->hooks);
	mew_json_key(j, "facts");
	mew_json_array(j);
	for (size_t i = 0; i < m->nfacts; i++) {
		mew_json_array(j);
		mew_json_string(j, m->facts[i].name);
		mew_json_string(j, m->facts[i].value);
		mew_json_array_end(j);
	}
	mew_json_array_end(j);
}

static void put_header(struct mew_writer *w, const struct mew_model *m, const struct mew_shown_functions *f,
		       const struct files *files)
{
	struct mew_json j;
	size_t line = 1;

	mew_json_init(&j, w, 0);
	mew_json_object(&j);
	mew_json_key(&j, "schema");
	mew_json_u64(&j, SCHEMA);
	mew_json_key(&j, "mew");
	mew_json_string(&j, mew_version());
	put_environment(&j, m);
	put_figures(&j);
	mew_json_key(&j, "cases");
	mew_json_array(&j);
	for (size_t i = 0; i < m->ncases; i++)
		put_case(&j, m->cases[i], &line);
	mew_json_array_end(&j);
	put_functions(&j, f, files);
	put_tables(&j, m, files);
	mew_json_object_end(&j);
}

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

static int write_data(struct mew_writer *w, const struct mew_model *m, const struct mew_shown_functions *f)
{
	struct mew_pack pack = { 0 };
	int failed = 0;

	for (size_t i = 0; i < m->ncases && failed == 0; i++) {
		for (enum mew_kind kind = 0; kind < MEW_KINDS && failed == 0; kind++) {
			if (!has_data(&m->cases[i], kind))
				continue;
			failed = kind == MEW_KIND_TIME ? put_samples(&pack, &m->cases[i]) :
							 mew_html_tree(&pack, f, m, &m->cases[i], kind);
			if (failed == 0)
				failed = mew_pack_line(w, pack.data, pack.used);
			mew_pack_fini(&pack);
		}
	}
	return failed;
}

/* Writers hold a large buffer: this one lives on the heap. */
static int write_header(struct mew_writer *w, const struct mew_model *m, const struct mew_shown_functions *f,
			const struct files *files)
{
	struct mew_writer *memory = malloc(sizeof *memory);
	size_t bytes;
	char *text;
	int failed = -1;

	if (memory == NULL)
		return -1;
	mew_writer_memory(memory);
	put_header(memory, m, f, files);
	text = mew_writer_take(memory, &bytes);
	if (text != NULL)
		failed = mew_pack_line(w, text, bytes);
	free(text);
	free(memory);
	return failed;
}

static int write_html(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct mew_shown_functions functions;
	struct files files = { 0 };
	int failed = mew_shown_functions_init(&functions, in->model, NULL);

	if (failed == 0 && !number_files(&files, &functions))
		failed = -1;
	if (failed == 0) {
		mew_write_bytes(w, mew_html_before, sizeof mew_html_before);
		failed = write_header(w, in->model, &functions, &files);
	}
	if (failed == 0)
		failed = write_data(w, in->model, &functions);
	mew_write_bytes(w, mew_html_after, sizeof mew_html_after);
	free_files(&files);
	mew_shown_functions_fini(&functions);
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
	.write = write_html,
};
