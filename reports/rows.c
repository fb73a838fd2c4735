/*
 * rows.c - see rows.h.
 * Layer L5. Reads a sealed model.
 */
#include "config.h"

#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "textual.h"

#define BIT(figure) (UINT64_C(1) << MEW_FIG_##figure)

const struct mew_row_head *mew_rows_of(const struct mew_case *c, enum mew_kind kind)
{
	if (!mew_case_has(c, kind))
		return NULL;
	switch (kind) {
	case MEW_KIND_TIME:
		return (const struct mew_row_head *)(const void *)&c->time;
	case MEW_KIND_MEMORY:
		return (const struct mew_row_head *)(const void *)&c->memory;
	default:
		return (const struct mew_row_head *)(const void *)&c->cpu;
	}
}

char *mew_rows_name(const struct mew_case *c)
{
	bool shared = c->shares_key && c->program != NULL, on = c->allocator != NULL;
	char *name;

	if (!shared && !on)
		return strdup(c->key);
	return asprintf(&name, "%s%s%s%s%s%s", c->key, shared ? " (" : "", shared ? c->program : "", shared ? ")" : "",
			on ? " on " : "", on ? c->allocator : "") < 0 ? NULL : name;
}

/* --- intervals -------------------------------------------------------------------------------------------------- */

/* "median_low_ns" from "median_ns" and "low", "share_low" from "share". */
static bool is_end_of(const char *name, const char *figure, const char *end)
{
	size_t all = strlen(figure), base = all > 3 && strcmp(figure + all - 3, "_ns") == 0 ? all - 3 : all;
	size_t n = strlen(end);

	return strncmp(name, figure, base) == 0 && name[base] == '_' && strncmp(name + base + 1, end, n) == 0 &&
	       strcmp(name + base + 1 + n, figure + base) == 0;
}

static const struct mew_figure *end_of(enum mew_kind kind, const struct mew_figure *figure, const char *end)
{
	size_t n;
	const struct mew_figure *all = mew_figures(kind, &n);

	for (size_t i = 0; i < n; i++)
		if (is_end_of(all[i].name, figure->name, end))
			return &all[i];
	return NULL;
}

bool mew_rows_interval(enum mew_kind kind, const struct mew_row_head *row, const struct mew_figure *figure, double *low,
		       double *high)
{
	const struct mew_figure *from = end_of(kind, figure, "low"), *to = end_of(kind, figure, "high");

	return from != NULL && to != NULL && mew_row_number(row, from, low) && mew_row_number(row, to, high);
}

bool mew_rows_is_end(enum mew_kind kind, const struct mew_figure *figure)
{
	size_t n;
	const struct mew_figure *all = mew_figures(kind, &n);

	for (size_t i = 0; i < n; i++)
		if (is_end_of(figure->name, all[i].name, "low") || is_end_of(figure->name, all[i].name, "high"))
			return true;
	return false;
}

/* --- figures ---------------------------------------------------------------------------------------------------- */

bool mew_rows_put_number(struct mew_json *j, const struct mew_row_head *row, const struct mew_figure *figure)
{
	double value;

	if (!mew_row_number(row, figure, &value))
		return false;
	if (figure->type == MEW_VALUE_U64)
		mew_json_u64(j, *(const uint64_t *)(const void *)((const char *)row + figure->offset));
	else
		mew_json_f64(j, value + 0.0); /* no -0 */
	return true;
}

enum mew_better mew_rows_better(enum mew_kind kind, const struct mew_figure *figure)
{
	static const uint64_t lower[MEW_KINDS] = {
		[MEW_KIND_TIME] = BIT(MEDIAN_NS) | BIT(CPU_NS),
		[MEW_KIND_MEMORY] = BIT(PEAK_BYTES) | BIT(ALLOCATIONS_PER_ITERATION) | BIT(BYTES_PER_ITERATION) |
				    BIT(LEAK_BYTES_PER_ITERATION) | BIT(PEAK_USABLE_BYTES) | BIT(RSS_PEAK_DELTA_BYTES) |
				    BIT(MAPPED_PEAK_BYTES),
	};
	static const uint64_t higher[MEW_KINDS] = {
		[MEW_KIND_TIME] = BIT(BYTES_PER_SECOND) | BIT(ITEMS_PER_SECOND),
	};

	if ((lower[kind] >> figure->bit & 1) != 0)
		return MEW_BETTER_LOWER;
	return (higher[kind] >> figure->bit & 1) != 0 ? MEW_BETTER_HIGHER : MEW_BETTER_NONE;
}

bool mew_rows_is_sum(enum mew_kind kind, const struct mew_figure *figure)
{
	static const uint64_t sums[MEW_KINDS] = {
		[MEW_KIND_TIME] = BIT(ITERATIONS) | BIT(SAMPLES),
		[MEW_KIND_MEMORY] =
			BIT(TOTAL_ALLOCATIONS) | BIT(MEMORY_ITERATIONS) | BIT(CUMULATIVE_BYTES) | BIT(FREES) |
				    BIT(REALLOCS_MOVED) | BIT(REALLOCS_IN_PLACE) | BIT(FAILED) | BIT(FOREIGN_FREES) |
				    BIT(ADOPTED) | BIT(TEMPORARY_ALLOCATIONS),
		[MEW_KIND_CPU] = BIT(SAMPLE_COUNT) | BIT(CPU_ITERATIONS) | BIT(CYCLES) | BIT(INSTRUCTIONS) |
				 BIT(CACHE_MISSES) | BIT(BRANCH_MISSES),
	};

	return (sums[kind] >> figure->bit & 1) != 0;
}
