/*
 * table.c - the report for people: a table per kind, then notes, user counters, and the machine it was measured on.
 * Layer L5. Reads a sealed model.
 *
 * Each table (table_rows.c) has a title, a head of names and units, a row per case and a legend. A case without figures
 * shows the reason in its row. Below stand the notes of single cases, then the counters that bodies set, then one line
 * about the machine and one with the grade of its quietness. -v adds every figure unrounded, the reason for each one
 * that is absent (table_figures.c), and all facts about the machine. Nothing is said by colour alone.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "grid.h"
#include "mew/report.h"
#include "model.h"
#include "table_rows.h"
#include "textual.h"
#include "writer.h"

#define DEFAULT_WIDTH 80u
#define LEAST_WIDTH 40u
#define OUTPUT_LINES 10u /* of what a failing body printed */
#define COUNTER_DIGITS 4u
#define FACT_INDENT 22u
#define OUTPUT_INDENT 6u

/* --- notes of single cases -------------------------------------------------------------------------------------- */

/* Samples that say less than they should, in words. */
static void put_sample_note(const struct mew_table *t, const struct mew_case *c)
{
	const struct mew_row_head *row = mew_rows_of(c, MEW_KIND_CPU);
	const struct {
		int bit;
		uint64_t count;
		const char *what;
	} parts[] = {
		{ MEW_FIG_CPU_LOST, c->cpu.lost, "lost" },
		{ MEW_FIG_TRUNCATED, c->cpu.truncated, "with a stack that was cut" },
		{ MEW_FIG_UNRESOLVED, c->cpu.unresolved, "in a function without a name" },
	};
	char note[160];
	int first = snprintf(note, sizeof note, "%llu samples kept", (unsigned long long)c->cpu.sample_count),
	    used = first;

	for (size_t i = 0; i < MEW_COUNTOF(parts); i++)
		if (mew_row_has(row, parts[i].bit) && parts[i].count != 0)
			used += snprintf(note + used, sizeof note - (size_t)used, ", %llu %s",
					 (unsigned long long)parts[i].count, parts[i].what);
	if (used > first)
		mew_table_note(t, c, MEW_STYLE_WARN, note);
}

static const char *last_lines(const char *text, unsigned lines)
{
	const char *at = text + strlen(text);

	while (at > text && at[-1] == '\n')
		at--;
	for (; at > text; at--)
		if (at[-1] == '\n' && --lines == 0)
			break;
	return at;
}

static void put_output(const struct mew_table *t, const char *output)
{
	const char *line = last_lines(output, OUTPUT_LINES);

	while (*line != '\0') {
		size_t bytes = strcspn(line, "\n");
		char *copy = strndup(line, bytes);

		if (copy == NULL) {
			mew_write_no_memory(t->w);
		} else if (bytes > 0) {
			mew_write_text(t->w, "    | ");
			mew_write_wrapped(t->w, &t->view, OUTPUT_INDENT, OUTPUT_INDENT, MEW_STYLE_PLAIN, copy);
		}
		free(copy);
		line += bytes + (line[bytes] == '\n');
	}
}

/* Do time and memory stand in the table of allocators, which has the reason of a failed timing alone? */
static bool is_apart(const struct mew_table *t)
{
	return t->kind != MEW_KIND_CPU && t->model->has_allocators;
}

static void put_notes(const struct mew_table *t)
{
	for (size_t i = 0; i < t->model->ncases; i++) {
		const struct mew_case *c = &t->model->cases[i];
		const struct mew_row_head *row = mew_rows_of(c, t->kind);

		if (row == NULL)
			continue;
		if (row->reason != NULL &&
		    (row->status == MEW_OK ? row->present != 0 : t->kind == MEW_KIND_MEMORY && is_apart(t)))
			mew_table_note(t, c, MEW_STYLE_WARN, row->reason);
		if (row->status == MEW_OK && t->kind == MEW_KIND_CPU)
			put_sample_note(t, c);
		if (row->status != MEW_OK && c->output != NULL && *c->output != '\0') {
			mew_table_note(t, c, MEW_STYLE_PLAIN, "its body printed");
			put_output(t, c->output);
		}
	}
}

/* --- the functions behind the figures ---------------------------------------------------------------------------- */

static int put_tops(const struct mew_table *t)
{
	struct mew_grid grid;
	const char *title;
	int status;

	mew_grid_init(&grid);
	title = mew_table_fill_tops(t, &grid, true);
	status = grid.failed ? MEW_E_NOMEM : MEW_OK;
	if (status == MEW_OK && grid.nrows > 0) {
		mew_write_char(t->w, '\n');
		mew_write_styled(t->w, &t->view, MEW_STYLE_BOLD, title);
		mew_write_char(t->w, '\n');
		status = mew_grid_write(&grid, t->w, &t->view);
	}
	mew_grid_fini(&grid);
	return status;
}

/* --- counters --------------------------------------------------------------------------------------------------- */

void mew_table_fill_counters(const struct mew_model *m, struct mew_grid *grid)
{
	char text[MEW_NUMBER_BYTES];

	mew_grid_column(grid, "case", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(grid, "counter", "", MEW_ALIGN_TEXT, false);
	mew_grid_column(grid, "value", "", MEW_ALIGN_NUMBER, false);
	for (size_t i = 0; i < m->ncases; i++) {
		const struct mew_case *c = &m->cases[i];
		char *title = c->ncounters > 0 ? mew_case_title(m, c) : NULL;

		for (size_t k = 0; k < c->ncounters; k++) {
			mew_text_number(text, c->counters[k].value, COUNTER_DIGITS, true);
			mew_grid_row(grid);
			mew_grid_cell(grid, MEW_STYLE_PLAIN, k > 0 ? "" : title == NULL ? c->key : title);
			mew_grid_cell(grid, MEW_STYLE_PLAIN, c->counters[k].name);
			mew_grid_cell(grid, MEW_STYLE_PLAIN, text);
		}
		free(title);
	}
}

static int put_counters(const struct mew_table *t)
{
	struct mew_grid grid;
	int status;

	mew_grid_init(&grid);
	mew_table_fill_counters(t->model, &grid);
	status = grid.failed ? MEW_E_NOMEM : MEW_OK;
	if (grid.nrows > 0) {
		mew_write_text(t->w, "\n");
		mew_write_styled(t->w, &t->view, MEW_STYLE_BOLD, "counters of the bodies");
		mew_write_char(t->w, '\n');
		status = mew_grid_write(&grid, t->w, &t->view);
	}
	mew_grid_fini(&grid);
	return status;
}

/* --- the machine ------------------------------------------------------------------------------------------------ */

char *mew_table_machine(const struct mew_model *m)
{
	static const struct {
		const char *name, *is, *before, *after; /* `is`: shown only for this value */
	} parts[] = {
		{ "cpu_model", NULL, "", "" },
		{ "cpu_count", NULL, "", " processors" },
		{ "virtual_machine", "yes", "virtual machine", NULL },
		{ "optimized", "no", "compiled without optimisation", NULL },
		{ "kernel", NULL, "", "" },
		{ "libc", NULL, "", "" },
		{ "compiler", NULL, "", "" },
	};
	char *line = NULL;
	size_t size = 0, shown = 0;
	FILE *to = open_memstream(&line, &size);

	if (to == NULL)
		return NULL;
	for (size_t i = 0; i < MEW_COUNTOF(parts); i++) {
		const char *value = mew_model_fact(m, parts[i].name);

		if (value == NULL || (parts[i].is != NULL && strcmp(value, parts[i].is) != 0))
			continue;
		(void)fprintf(to, "%s%s%s%s", shown++ == 0 ? "machine: " : ", ", parts[i].before,
			      parts[i].is != NULL ? "" : value, parts[i].after != NULL ? parts[i].after : "");
	}
	if (fclose(to) == 0)
		return line;
	free(line);
	return NULL;
}

static void put_facts(const struct mew_table *t)
{
	for (size_t i = 0; i < t->model->nfacts; i++) {
		mew_writef(t->w, "  %-18s  ", t->model->facts[i].name);
		mew_write_wrapped(t->w, &t->view, FACT_INDENT, FACT_INDENT, MEW_STYLE_PLAIN, t->model->facts[i].value);
	}
}

static void put_machine(const struct mew_table *t)
{
	char *line = mew_table_machine(t->model);

	if (line == NULL)
		mew_write_no_memory(t->w);
	else if (*line != '\0')
		mew_write_wrapped(t->w, &t->view, 0, 9, MEW_STYLE_PLAIN, line);
	free(line);
}

static void put_grade(const struct mew_table *t)
{
	const struct mew_model *m = t->model;
	enum mew_style style = m->grade <= 'B' ? MEW_STYLE_GOOD : m->grade == 'C' ? MEW_STYLE_WARN : MEW_STYLE_BAD;
	char grade[2] = { m->grade, '\0' };

	if (m->grade == 0)
		return;
	mew_write_text(t->w, "grade ");
	mew_write_styled(t->w, &t->view, style, grade);
	if (m->grade_reason != NULL && *m->grade_reason != '\0') {
		mew_write_text(t->w, ": ");
		mew_write_wrapped(t->w, &t->view, 9, 9, MEW_STYLE_PLAIN, m->grade_reason);
	} else {
		mew_write_char(t->w, '\n');
	}
}

static void put_hooks(const struct mew_table *t)
{
	mew_write_text(t->w, "hooks: ");
	mew_write_wrapped(t->w, &t->view, 7, 7, MEW_STYLE_PLAIN, t->model->hooks);
}

/* Which file each allocator was. */
static void put_allocators(const struct mew_table *t)
{
	const char *const prefix = "allocator_";

	for (size_t i = 0; i < t->model->nfacts; i++) {
		const struct mew_fact *fact = &t->model->facts[i];
		char *line;

		if (strncmp(fact->name, prefix, strlen(prefix)) != 0)
			continue;
		if (asprintf(&line, "%s: %s", fact->name + strlen(prefix), fact->value) < 0) {
			mew_write_no_memory(t->w);
			continue;
		}
		mew_write_wrapped(t->w, &t->view, 0, 2, MEW_STYLE_PLAIN, line);
		free(line);
	}
}

static void put_environment(const struct mew_table *t, bool verbose)
{
	if (t->model->nfacts == 0 && t->model->grade == 0)
		return;
	mew_write_char(t->w, '\n');
	if (verbose)
		put_facts(t);
	else
		put_machine(t);
	if (!verbose)
		put_allocators(t);
	put_grade(t);
	if (verbose && t->model->hooks != NULL && *t->model->hooks != '\0')
		put_hooks(t);
}

/* --- the report ------------------------------------------------------------------------------------------------- */

static bool any_row(const struct mew_model *m, enum mew_kind kind)
{
	for (size_t i = 0; i < m->ncases; i++)
		if (mew_rows_of(&m->cases[i], kind) != NULL)
			return true;
	return false;
}

static int put_kind(struct mew_table *t, bool verbose)
{
	int status = MEW_OK;

	if (!is_apart(t))
		status = mew_table_write_kind(t);
	else if (t->kind == MEW_KIND_TIME)
		status = mew_table_write_allocators(t);
	put_notes(t);
	if (status == MEW_OK && !is_apart(t))
		status = put_tops(t);
	if (verbose)
		mew_table_write_figures(t);
	return status;
}

static int put_tables(struct mew_table *t, const struct mew_report_input *in)
{
	int status = MEW_OK;
	size_t shown = 0;

	for (int kind = 0; kind < MEW_KINDS && status == MEW_OK; kind++) {
		t->kind = (enum mew_kind)kind;
		if ((in->kinds != 0 && (in->kinds >> kind & 1u) == 0) || !any_row(t->model, t->kind))
			continue;
		if (shown++ > 0 && (kind != MEW_KIND_MEMORY || !is_apart(t)))
			mew_write_char(t->w, '\n');
		status = put_kind(t, in->verbose);
	}
	if (shown == 0)
		mew_write_text(t->w, "nothing was measured\n");
	return status;
}

static int write_table(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	size_t width = in->width <= 0 ? DEFAULT_WIDTH : (size_t)in->width;
	struct mew_table t = {
		.model = in->model,
		.w = w,
		.view = { .width = width < LEAST_WIDTH ? LEAST_WIDTH : width, .utf8 = in->utf8, .color = in->color },
	};
	int status = put_tables(&t, in);

	if (status == MEW_OK && (in->kinds == 0 || (in->kinds >> MEW_KIND_TIME & 1u) != 0))
		status = put_counters(&t);
	if (status != MEW_OK)
		return mew_error_set(err, status, "the table could not be written: out of memory");
	put_environment(&t, in->verbose);
	return MEW_OK;
}

const struct mew_report mew_report_table = {
	.abi = MEW_REPORT_ABI,
	.name = "table",
	.help = "tables for people",
	.suffix = ".txt",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_table,
};
