/*
 * table_rows.c - one table of the report for people: which columns a kind has, their units, the text of every cell.
 * Layer L5. Reads a sealed model.
 *
 * What is read first stands left: the case, its headline figure, how far to trust it. A column keeps one unit, chosen
 * by the median of its values, and where the terminal is narrow the rightmost optional columns are left out.
 */
#include "config.h"

#include "table_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "textual.h"

#define DIGITS 4u
#define TRUSTED_OVERHEADS 20.0 /* a shorter result measures the loop too */
#define PERCENT 100.0
#define LEGEND_INDENT 2u

/* --- what the tables show --------------------------------------------------------------------------------------- */

enum show {
	SHOW_FIGURE,
	SHOW_OCCURRING, /* a column only where it is not 0 for all */
	SHOW_TREND,     /* a value only where its interval excludes 0, for else it may be none */
	SHOW_MARKED,
	SHOW_INTERVAL,
	SHOW_BATCHES,
	SHOW_SHARE,
	SHOW_SHARE_RANGE
};

struct mew_table_column {
	const char *title;
	const char *unit;  /* NULL: the unit of the scale */
	const char *legend; /* "title: legend" stands below; NULL for none */
	enum show show;
	int figure;
	enum mew_scale scale;
	double base;   /* factor from the figure's unit to the base of the scale */
	bool optional; /* left out when no case has it, or when there is no room */
	bool exact;
};

#define FIGURE(title, bit, scale, base, optional, legend)                                                              \
	{ title, NULL, legend, SHOW_FIGURE, bit, scale, base, optional, false }
#define COUNT(title, bit, optional, legend)                                                                            \
	{ title, NULL, legend, SHOW_FIGURE, bit, MEW_SCALE_NONE, 1, optional, true }
#define BYTES(title, show, bit, legend)                                                                                \
	{ title, NULL, legend, show, bit, MEW_SCALE_BYTES, 1, true, false }
#define OTHER(title, unit, show, bit, optional, legend)                                                                \
	{ title, unit, legend, show, bit, MEW_SCALE_NONE, 1, optional, false }

#define PLUS_MINUS "\xc2\xb1" /* "+/-" where there is no UTF-8 */

static const struct mew_table_column time_columns[] = {
	{ "median", NULL, NULL, SHOW_MARKED, MEW_FIG_MEDIAN_NS, MEW_SCALE_TIME, 1, false, false },
	OTHER(PLUS_MINUS, "%", SHOW_INTERVAL, MEW_FIG_MEDIAN_LOW_NS, false, "half of the median's 95 % interval"),
	FIGURE("cpu", MEW_FIG_CPU_NS, MEW_SCALE_TIME, 1, true, "CPU time of all threads"),
	FIGURE("throughput", MEW_FIG_BYTES_PER_SECOND, MEW_SCALE_BYTE_RATE, 1, true, NULL),
	FIGURE("items", MEW_FIG_ITEMS_PER_SECOND, MEW_SCALE_RATE, 1, true, NULL),
	FIGURE("p99", MEW_FIG_P99_NS, MEW_SCALE_TIME, 1, true, "of the samples, each of which is the mean of a batch"),
	FIGURE("min", MEW_FIG_MIN_NS, MEW_SCALE_TIME, 1, true, NULL),
	OTHER("samples", "x batch", SHOW_BATCHES, MEW_FIG_SAMPLES, true, "how many, and the iterations in each"),
};

static const struct mew_table_column memory_columns[] = {
	FIGURE("peak live", MEW_FIG_PEAK_BYTES, MEW_SCALE_BYTES, 1, false, "most bytes alive at once"),
	COUNT("allocs/iter", MEW_FIG_ALLOCATIONS_PER_ITERATION, false, "allocations of one iteration, freed or not"),
	BYTES("leak/iter", SHOW_TREND, MEW_FIG_LEAK_BYTES_PER_ITERATION, "steady growth of what is alive"),
	FIGURE("bytes/iter", MEW_FIG_BYTES_PER_ITERATION, MEW_SCALE_BYTES, 1, true, "what they asked for"),
	FIGURE("live at end", MEW_FIG_NET_BYTES, MEW_SCALE_BYTES, 1, true, "not freed when the loop ended"),
	BYTES("rss", SHOW_OCCURRING, MEW_FIG_RSS_PEAK_DELTA_BYTES, "growth of resident memory up to its highest"),
	BYTES("mapped", SHOW_OCCURRING, MEW_FIG_MAPPED_PEAK_BYTES, "most that the program mapped itself"),
	COUNT("allocs", MEW_FIG_TOTAL_ALLOCATIONS, true, NULL),
	COUNT("frees", MEW_FIG_FREES, true, NULL),
	{ "temporary", NULL, "freed before their thread's next allocation", SHOW_OCCURRING,
	  MEW_FIG_TEMPORARY_ALLOCATIONS, MEW_SCALE_NONE, 1, true, true },
	COUNT("iterations", MEW_FIG_MEMORY_ITERATIONS, true, NULL),
	BYTES("je allocated", SHOW_FIGURE, MEW_FIG_JEMALLOC_ALLOCATED_CLOSE,
	      "jemalloc's figures when the loop was left"),
	BYTES("je active", SHOW_FIGURE, MEW_FIG_JEMALLOC_ACTIVE_CLOSE, NULL),
	OTHER("je unused", "%", SHOW_SHARE, MEW_FIG_JEMALLOC_FRAGMENTATION_CLOSE, true,
	      "of the active ones, fragmentation"),
	BYTES("je resident", SHOW_FIGURE, MEW_FIG_JEMALLOC_RESIDENT_CLOSE, NULL),
	BYTES("je retained", SHOW_FIGURE, MEW_FIG_JEMALLOC_RETAINED_CLOSE, NULL),
};

static const struct mew_table_column cpu_columns[] = {
	OTHER("share", "%", SHOW_SHARE, MEW_FIG_TOP_FUNCTION_SHARE, false,
	      "of the samples in the function itself, not in those it calls"),
	OTHER("95 %", "range", SHOW_SHARE_RANGE, MEW_FIG_TOP_FUNCTION_SHARE_LOW, true, "where the share lies"),
	FIGURE("self", MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, MEW_SCALE_TIME, 1e9, true, "time of that share"),
	FIGURE("loop", MEW_FIG_WALL_TIME, MEW_SCALE_TIME, 1e9, true, "time of the sampled loop"),
	COUNT("samples", MEW_FIG_SAMPLE_COUNT, true, NULL),
};

/* A whole program is one iteration, and its window no loop. */
static const struct mew_table_column program_memory_columns[] = {
	FIGURE("peak live", MEW_FIG_PEAK_BYTES, MEW_SCALE_BYTES, 1, false, "most bytes alive at once"),
	COUNT("allocs", MEW_FIG_TOTAL_ALLOCATIONS, false, "allocations, freed or not"),
	FIGURE("bytes", MEW_FIG_CUMULATIVE_BYTES, MEW_SCALE_BYTES, 1, true, "what they asked for"),
	COUNT("frees", MEW_FIG_FREES, true, NULL),
	FIGURE("live at end", MEW_FIG_NET_BYTES, MEW_SCALE_BYTES, 1, true, "not freed when the window closed"),
	BYTES("mapped", SHOW_OCCURRING, MEW_FIG_MAPPED_PEAK_BYTES, "most that the program mapped itself"),
	{ "temporary", NULL, "freed before their thread's next allocation", SHOW_OCCURRING,
	  MEW_FIG_TEMPORARY_ALLOCATIONS, MEW_SCALE_NONE, 1, true, true },
};

static const struct mew_table_column program_cpu_columns[] = {
	OTHER("share", "%", SHOW_SHARE, MEW_FIG_TOP_FUNCTION_SHARE, false,
	      "of the samples in the function itself, not in those it calls"),
	OTHER("95 %", "range", SHOW_SHARE_RANGE, MEW_FIG_TOP_FUNCTION_SHARE_LOW, true, "where the share lies"),
	FIGURE("self", MEW_FIG_TOP_FUNCTION_TOTAL_SELF_TIME, MEW_SCALE_TIME, 1e9, true, "time of that share"),
	FIGURE("cpu", MEW_FIG_CPU_TIME, MEW_SCALE_TIME, 1e9, true, "CPU time of the window, all threads"),
	FIGURE("window", MEW_FIG_WALL_TIME, MEW_SCALE_TIME, 1e9, true, "how long it lasted"),
	COUNT("samples", MEW_FIG_SAMPLE_COUNT, true, NULL),
};

static const struct kind {
	const char *title;
	const struct mew_table_column *columns;
	size_t ncolumns;
	const char *text_title; /* last column, a text; NULL for none */
} loop_kinds[MEW_KINDS] = {
	[MEW_KIND_TIME] = { "time: one iteration of the loop", time_columns, MEW_COUNTOF(time_columns), NULL },
	[MEW_KIND_MEMORY] = { "memory: heap blocks that the loop allocated", memory_columns,
			      MEW_COUNTOF(memory_columns), NULL },
	[MEW_KIND_CPU] = { "cpu: the function in which the loop spends most time itself", cpu_columns,
			   MEW_COUNTOF(cpu_columns), "top function" },
}, program_kinds[MEW_KINDS] = {
	[MEW_KIND_TIME] = { "time: one iteration of the loop", time_columns, MEW_COUNTOF(time_columns), NULL },
	[MEW_KIND_MEMORY] = { "memory: heap blocks that the program allocated in its window", program_memory_columns,
			      MEW_COUNTOF(program_memory_columns), NULL },
	[MEW_KIND_CPU] = { "cpu: the function in which the program spends most time itself", program_cpu_columns,
			   MEW_COUNTOF(program_cpu_columns), "top function" },
};

static const struct kind *kind_of(const struct mew_table *t)
{
	return &(mew_model_fact(t->model, MEW_FACT_RECORDED) != NULL ? program_kinds : loop_kinds)[t->kind];
}

/* --- values ----------------------------------------------------------------------------------------------------- */

static const struct mew_figure *figure_of(enum mew_kind kind, int bit)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(kind, &n);

	for (size_t i = 0; i < n; i++)
		if (figures[i].bit == bit)
			return &figures[i];
	return NULL;
}

static bool number(const struct mew_row_head *row, enum mew_kind kind, int bit, double *value)
{
	const struct mew_figure *figure = figure_of(kind, bit);

	return row != NULL && figure != NULL && mew_row_number(row, figure, value);
}

static bool excludes_zero(const struct mew_row_head *row)
{
	double low, high;

	return number(row, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW, &low) &&
	       number(row, MEW_KIND_MEMORY, MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, &high) && (low > 0 || high < 0);
}

/* What a column says of a row; false where it has nothing to say. */
static bool column_number(const struct mew_row_head *row, enum mew_kind kind, const struct mew_table_column *column,
			  double *value)
{
	return number(row, kind, column->figure, value) && (column->show != SHOW_TREND || excludes_zero(row));
}

static bool too_short(const struct mew_row_head *row)
{
	double median, overhead;

	return number(row, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, &median) &&
	       number(row, MEW_KIND_TIME, MEW_FIG_LOOP_OVERHEAD_NS, &overhead) && median < TRUSTED_OVERHEADS * overhead;
}

/* One decimal, and never a zero for what is only small. */
static void put_percent(char *out, double percent)
{
	percent = round(percent * 10) > 0 || percent <= 0 ? round(percent * 10) / 10 : percent;
	if (percent > 0 && percent < 0.1)
		(void)strcpy(out, "<0.1");
	else
		mew_text_number(out, percent, percent >= 100 ? 4 : percent >= 10 ? 3 : percent >= 1 ? 2 : 1, false);
}

static bool interval_text(const struct mew_row_head *row, char *out)
{
	double median, low, high;

	if (!number(row, MEW_KIND_TIME, MEW_FIG_MEDIAN_NS, &median) || median <= 0 ||
	    !number(row, MEW_KIND_TIME, MEW_FIG_MEDIAN_LOW_NS, &low) ||
	    !number(row, MEW_KIND_TIME, MEW_FIG_MEDIAN_HIGH_NS, &high))
		return false;
	put_percent(out, (high - low) / 2 / median * PERCENT);
	return true;
}

static bool batches_text(const struct mew_row_head *row, char *out)
{
	double samples, loops;

	if (!number(row, MEW_KIND_TIME, MEW_FIG_SAMPLES, &samples))
		return false;
	mew_text_number(out, samples, 9, true);
	if (number(row, MEW_KIND_TIME, MEW_FIG_LOOPS, &loops)) {
		out = stpcpy(out + strlen(out), " x ");
		mew_text_number(out, loops, 9, true);
	}
	return true;
}

static bool share_range_text(const struct mew_row_head *row, char *out)
{
	double low, high;

	if (!number(row, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE_LOW, &low) ||
	    !number(row, MEW_KIND_CPU, MEW_FIG_TOP_FUNCTION_SHARE_HIGH, &high))
		return false;
	mew_text_number(out, floor(low * PERCENT), 3, true);
	out = stpcpy(out + strlen(out), "..");
	mew_text_number(out, ceil(high * PERCENT), 3, true);
	return true;
}

static bool figure_text(const struct mew_table *t, const struct mew_table_layout *l, const struct mew_row_head *row,
			size_t k, char *out)
{
	const struct mew_table_column *column = l->columns[k];
	double value;

	if (!column_number(row, t->kind, column, &value))
		return false;
	value = value * column->base / l->units[k]->factor;
	mew_text_number(out, value, DIGITS,
			column->exact || (column->scale == MEW_SCALE_BYTES && l->units[k]->factor == 1));
	if (column->show == SHOW_MARKED && too_short(row))
		(void)strcat(out, "!");
	return true;
}

/* The text of a cell; false when the row has no such figure. `out` holds two numbers and what stands between. */
static bool cell_text(const struct mew_table *t, const struct mew_table_layout *l, const struct mew_row_head *row,
		      size_t k, char *out)
{
	double value;

	switch (l->columns[k]->show) {
	case SHOW_INTERVAL:
		return interval_text(row, out);
	case SHOW_BATCHES:
		return batches_text(row, out);
	case SHOW_SHARE_RANGE:
		return share_range_text(row, out);
	case SHOW_SHARE:
		if (!number(row, t->kind, l->columns[k]->figure, &value))
			return false;
		put_percent(out, value * PERCENT);
		return true;
	default:
		return figure_text(t, l, row, k, out);
	}
}

/* --- one table -------------------------------------------------------------------------------------------------- */

static const struct mew_unit *unit_of(const struct mew_table *t, const struct mew_table_column *column)
{
	double *values = malloc((t->model->ncases + 1) * sizeof *values);
	const struct mew_unit *unit;
	size_t n = 0;

	if (values == NULL)
		mew_write_no_memory(t->w);
	for (size_t i = 0; values != NULL && i < t->model->ncases; i++)
		if (column_number(mew_rows_of(&t->model->cases[i], t->kind), t->kind, column, &values[n]))
			values[n++] *= column->base;
	unit = mew_unit_pick(column->scale, values, n);
	free(values);
	return unit;
}

static bool anyone_has(const struct mew_table *t, const struct mew_table_column *column)
{
	double value;

	for (size_t i = 0; i < t->model->ncases; i++)
		if (column_number(mew_rows_of(&t->model->cases[i], t->kind), t->kind, column, &value) &&
		    (column->show != SHOW_OCCURRING || value != 0))
			return true;
	return false;
}

static const char *title_of(const struct mew_table *t, const struct mew_table_column *column)
{
	return !t->view.utf8 && strcmp(column->title, PLUS_MINUS) == 0 ? "+/-" : column->title;
}

/* All times of a table share the unit of the first, so that a row can be read across. */
static void choose_columns(const struct mew_table *t, struct mew_table_layout *l, struct mew_grid *g)
{
	const struct kind *kind = kind_of(t);
	const struct mew_unit *time = NULL;

	mew_grid_column(g, "case", "", MEW_ALIGN_TEXT, false);
	l->n = 0;
	for (size_t k = 0; k < kind->ncolumns; k++) {
		const struct mew_table_column *column = &kind->columns[k];
		const struct mew_unit *unit;

		if (column->optional && !anyone_has(t, column))
			continue;
		unit = column->scale == MEW_SCALE_TIME && time != NULL ? time : unit_of(t, column);
		time = column->scale == MEW_SCALE_TIME ? unit : time;
		l->columns[l->n] = column;
		l->units[l->n++] = unit;
		mew_grid_column(g, title_of(t, column),
				column->unit != NULL ? column->unit : t->view.utf8 ? unit->name : unit->ascii,
				column->show == SHOW_BATCHES || column->show == SHOW_SHARE_RANGE ? MEW_ALIGN_RIGHT :
												  MEW_ALIGN_NUMBER,
				column->optional);
	}
	if (kind->text_title != NULL)
		mew_grid_column(g, kind->text_title, "", MEW_ALIGN_TEXT, false);
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* A row without figures: what became of the case, in one sentence. */
static void put_reason(struct mew_grid *g, const struct mew_row_head *row)
{
	const char *reason = row->reason != NULL && *row->reason != '\0' ? row->reason : mew_status_name(row->status);
	bool skipped = begins_with(reason, "skipped");
	bool refused = row->status == MEW_E_UNSUPPORTED || row->status == MEW_E_DENIED || row->status == MEW_E_BUSY;
	const char *what = skipped || row->status == MEW_OK ? "" : refused ? "not measured: " : "failed: ";
	char *sentence = malloc(strlen(what) + strlen(reason) + 1);

	if (sentence == NULL) {
		g->failed = true;
		return;
	}
	(void)stpcpy(stpcpy(sentence, what), reason);
	mew_grid_sentence(g, skipped || row->status == MEW_OK || refused ? MEW_STYLE_WARN : MEW_STYLE_BAD, sentence);
	free(sentence);
}

static const char *top_function(const struct mew_cpu_case *cpu)
{
	return cpu->top_function != NULL && (cpu->present >> MEW_FIG_TOP_FUNCTION & 1) != 0 ? cpu->top_function : "-";
}

static void put_row(struct mew_table *t, const struct mew_table_layout *l, struct mew_grid *g, const struct mew_case *c)
{
	const struct mew_row_head *row = mew_rows_of(c, t->kind);
	char text[2 * MEW_NUMBER_BYTES + 4], *title = mew_case_title(t->model, c);

	mew_grid_row(g);
	if (title == NULL)
		g->failed = true;
	else
		mew_grid_cell(g, MEW_STYLE_PLAIN, title);
	free(title);
	if (row->status != MEW_OK || row->present == 0) {
		put_reason(g, row);
		return;
	}
	for (size_t k = 0; k < l->n; k++) {
		bool marked = l->columns[k]->show == SHOW_MARKED && too_short(row);

		t->marked = t->marked || marked;
		mew_grid_cell(g, marked ? MEW_STYLE_WARN : k == 0 ? MEW_STYLE_BOLD : MEW_STYLE_PLAIN,
			      cell_text(t, l, row, k, text) ? text : "-");
	}
	if (kind_of(t)->text_title != NULL)
		mew_grid_cell(g, MEW_STYLE_PLAIN, top_function(&c->cpu));
}

/* --- the parts, and the whole ------------------------------------------------------------------------------------ */

const char mew_table_mark[] = "!: under 20 times the cost of an empty turn of the loop, which is part of the figure; "
			      "put more work into one iteration";

const char *mew_table_fill(struct mew_table *t, struct mew_table_layout *layout, struct mew_grid *grid)
{
	t->marked = false;
	choose_columns(t, layout, grid);
	for (size_t i = 0; i < t->model->ncases; i++)
		if (mew_rows_of(&t->model->cases[i], t->kind) != NULL)
			put_row(t, layout, grid, &t->model->cases[i]);
	return kind_of(t)->title;
}

char *mew_table_legend(const struct mew_table *t, const struct mew_table_layout *l, const struct mew_grid *g)
{
	char *legend = NULL;
	size_t size = 0, shown = 0;
	FILE *to = open_memstream(&legend, &size);

	if (to == NULL)
		return NULL;
	for (size_t k = 0; k < l->n; k++)
		if (l->columns[k]->legend != NULL && !g->columns[k + 1].out) /* the first one of the grid is the case */
			(void)fprintf(to, "%s%s: %s", shown++ == 0 ? "" : "; ", title_of(t, l->columns[k]),
				      l->columns[k]->legend);
	if (fclose(to) == 0)
		return legend;
	free(legend);
	return NULL;
}

static void put_indented(const struct mew_table *t, enum mew_style style, const char *text)
{
	char *line;

	if (asprintf(&line, "%*s%s", (int)LEGEND_INDENT, "", text) < 0) {
		mew_write_no_memory(t->w);
		return;
	}
	mew_write_wrapped(t->w, &t->view, 0, LEGEND_INDENT, style, line);
	free(line);
}

static void put_legend(const struct mew_table *t, const struct mew_table_layout *layout, const struct mew_grid *grid)
{
	char *legend = mew_table_legend(t, layout, grid);

	if (legend == NULL)
		mew_write_no_memory(t->w);
	else if (*legend != '\0')
		put_indented(t, MEW_STYLE_DIM, legend);
	free(legend);
	if (t->marked)
		put_indented(t, MEW_STYLE_WARN, mew_table_mark);
}

int mew_table_write_kind(struct mew_table *t)
{
	struct mew_table_layout layout;
	struct mew_grid grid;
	int status;

	mew_grid_init(&grid);
	mew_write_styled(t->w, &t->view, MEW_STYLE_BOLD, mew_table_fill(t, &layout, &grid));
	mew_write_char(t->w, '\n');
	status = mew_grid_write(&grid, t->w, &t->view);
	if (status == MEW_OK)
		put_legend(t, &layout, &grid);
	mew_grid_fini(&grid);
	return status;
}
