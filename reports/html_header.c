/*
 * html_header.c - the first line of the report's data: figures, cases, functions and what they lie in, as JSON.
 * Layer L5. Reads sealed models; the format is described in html.c.
 */
#include "config.h"

#include "html_header.h"

#include <stdlib.h>
#include <string.h>

#include "emit.h"

#define SCHEMA 2

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
	for (size_t i = 0; files->of != NULL && i < f->n; i++)
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

bool mew_html_has_data(const struct mew_case *c, enum mew_kind kind)
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
	if (c.allocator != NULL) {
		mew_json_key(j, "allocator");
		mew_json_string(j, c.allocator);
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
		if (mew_case_has(&c, kind))
			put_row(j, mew_case_row(&c, kind), kind);
	mew_json_object_end(j);
	mew_json_key(j, "data");
	mew_json_object(j);
	for (enum mew_kind kind = 0; kind < MEW_KINDS; kind++) {
		if (!mew_html_has_data(&c, kind))
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

/* Everything about one result, as members of the object that is open. */
static void put_part(struct mew_json *j, const struct mew_html_part *part, const struct files *files, size_t *line)
{
	put_environment(j, part->model);
	mew_json_key(j, "cases");
	mew_json_array(j);
	for (size_t i = 0; i < part->model->ncases; i++)
		put_case(j, part->model->cases[i], line);
	mew_json_array_end(j);
	put_functions(j, &part->functions, files);
	put_tables(j, part->model, files);
}

static void put_header(struct mew_json *j, const struct mew_html_part *parts, size_t nparts, const struct files *files,
		       size_t source_line)
{
	size_t line = 1;

	mew_json_object(j);
	mew_json_key(j, "schema");
	mew_json_u64(j, SCHEMA);
	mew_json_key(j, "mew");
	mew_json_string(j, mew_version());
	put_figures(j);
	put_part(j, &parts[0], &files[0], &line);
	if (nparts > 1) {
		mew_json_key(j, "base");
		mew_json_object(j);
		put_part(j, &parts[1], &files[1], &line);
		mew_json_object_end(j);
	}
	if (source_line != 0) {
		mew_json_key(j, "sources");
		mew_json_u64(j, source_line);
	}
	mew_json_object_end(j);
}

int mew_html_header(struct mew_writer *w, const struct mew_html_part *parts, size_t nparts, size_t source_line)
{
	struct files files[MEW_HTML_PARTS] = { { 0 } };
	struct mew_json j;
	bool done = true;

	for (size_t i = 0; i < nparts && done; i++)
		done = number_files(&files[i], &parts[i].functions);
	if (done) {
		mew_json_init(&j, w, 0);
		put_header(&j, parts, nparts, files, source_line);
	}
	for (size_t i = 0; i < nparts; i++)
		free_files(&files[i]);
	return done ? 0 : -1;
}
