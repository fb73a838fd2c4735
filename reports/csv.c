/*
 * csv.c - one line per case and one column per figure, for spreadsheets and data frames.
 * Layer L5. Reads a sealed model.
 *
 * RFC 4180 with LF line ends, UTF-8, a head line, a '.' as decimal point. Columns: key, label, program, threads;
 * allocator, where several were asked for; for
 * each of time, memory and cpu KIND_status ("MEW_OK", ...), KIND_reason and KIND_FIGURE in base units, so the unit is
 * in the name (time_median_ns, memory_peak_bytes, cpu_wall_time in seconds); then counter_NAME for each counter that
 * any body set. The columns up to the counters are the same in every file. What was not measured is an empty field,
 * never a zero. Figures that are lists have no column.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "mew/report.h"
#include "model.h"
#include "textual.h"
#include "writer.h"

static void put_field(struct mew_writer *w, const char *text)
{
	mew_text_csv(w, "", text);
}

static void put_number(struct mew_writer *w, double value)
{
	if (isfinite(value))
		mew_write_f64(w, value + 0.0); /* no -0 */
}

/* --- counters --------------------------------------------------------------------------------------------------- */

struct names { /* of all counters, each once, in the order of their first use */
	const char **list;
	size_t n;
};

static bool has_name(const struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->list[i], name) == 0)
			return true;
	return false;
}

static int collect_names(struct names *names, const struct mew_model *m)
{
	size_t most = 1;

	for (size_t i = 0; i < m->ncases; i++)
		most += m->cases[i].ncounters;
	*names = (struct names){ .list = calloc(most, sizeof *names->list) };
	if (names->list == NULL)
		return MEW_E_NOMEM;
	for (size_t i = 0; i < m->ncases; i++)
		for (size_t k = 0; k < m->cases[i].ncounters; k++)
			if (!has_name(names, m->cases[i].counters[k].name))
				names->list[names->n++] = m->cases[i].counters[k].name;
	return MEW_OK;
}

static void put_counters(struct mew_writer *w, const struct names *names, const struct mew_case *c)
{
	for (size_t i = 0; i < names->n; i++) {
		mew_write_char(w, ',');
		for (size_t k = 0; k < c->ncounters; k++)
			if (strcmp(c->counters[k].name, names->list[i]) == 0) {
				put_number(w, c->counters[k].value);
				break;
			}
	}
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

static void put_head(struct mew_writer *w, const struct mew_model *m, const struct names *counters)
{
	mew_write_text(w, m->has_allocators ? "key,label,program,threads,allocator" : "key,label,program,threads");
	for (int kind = 0; kind < MEW_KINDS; kind++) {
		const char *name = mew_kind_name((enum mew_kind)kind);
		size_t n;
		const struct mew_figure *figures = mew_figures((enum mew_kind)kind, &n);

		mew_writef(w, ",%s_status,%s_reason", name, name);
		for (size_t i = 0; i < n; i++)
			if (figures[i].type != MEW_VALUE_LIST)
				mew_writef(w, ",%s_%s", name, figures[i].name);
	}
	for (size_t i = 0; i < counters->n; i++) {
		mew_write_char(w, ',');
		mew_text_csv(w, "counter_", counters->list[i]);
	}
	mew_write_char(w, '\n');
}

static void put_figure(struct mew_writer *w, const struct mew_row_head *row, const struct mew_figure *figure)
{
	const void *at = (const char *)row + figure->offset;

	if (figure->type == MEW_VALUE_LIST)
		return;
	mew_write_char(w, ',');
	if (row->status != MEW_OK || (row->present >> figure->bit & 1) == 0)
		return;
	switch (figure->type) {
	case MEW_VALUE_U64:
		mew_write_u64(w, *(const uint64_t *)at);
		break;
	case MEW_VALUE_F64:
		put_number(w, *(const double *)at);
		break;
	case MEW_VALUE_TEXT:
		put_field(w, *(const char *const *)at);
		break;
	case MEW_VALUE_LIST:
		break;
	}
}

static void put_row(struct mew_writer *w, enum mew_kind kind, const struct mew_row_head *row, bool exists)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);

	mew_write_char(w, ',');
	put_field(w, exists ? mew_status_name(row->status) : NULL);
	mew_write_char(w, ',');
	put_field(w, exists ? row->reason : NULL);
	for (size_t i = 0; i < n; i++) {
		if (exists)
			put_figure(w, row, &figures[i]);
		else if (figures[i].type != MEW_VALUE_LIST)
			mew_write_char(w, ',');
	}
}

static void put_case(struct mew_writer *w, const struct mew_case *c, bool allocators)
{
	const void *const rows[MEW_KINDS] = {
		[MEW_KIND_TIME] = &c->time, [MEW_KIND_MEMORY] = &c->memory, [MEW_KIND_CPU] = &c->cpu,
	};

	put_field(w, c->key);
	mew_write_char(w, ',');
	put_field(w, c->label);
	mew_write_char(w, ',');
	put_field(w, c->program);
	mew_write_char(w, ',');
	mew_write_u64(w, c->threads);
	if (allocators) {
		mew_write_char(w, ',');
		put_field(w, c->allocator);
	}
	for (int kind = 0; kind < MEW_KINDS; kind++)
		put_row(w, (enum mew_kind)kind, rows[kind], mew_case_has(c, kind));
}

static int write_csv(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	const struct mew_model *m = in->model;

	struct names counters;

	if (collect_names(&counters, m) != MEW_OK)
		return mew_error_set(err, MEW_E_NOMEM, "the csv report could not be written: out of memory");
	put_head(w, m, &counters);
	for (size_t i = 0; i < m->ncases; i++) {
		put_case(w, &m->cases[i], m->has_allocators);
		put_counters(w, &counters, &m->cases[i]);
		mew_write_char(w, '\n');
	}
	free(counters.list);
	return MEW_OK;
}

const struct mew_report mew_report_csv = {
	.abi = MEW_REPORT_ABI,
	.name = "csv",
	.help = "a line per case, a column per figure",
	.suffix = ".csv",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_csv,
};
