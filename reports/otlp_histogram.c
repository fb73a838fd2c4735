/*
 * otlp_histogram.c - see otlp_histogram.h.
 * Layer L5. Reads a sealed model.
 */
#include "config.h"

#include "otlp_histogram.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"

#define FINEST 8.0 /* bounds in an octave */

void mew_otlp_put_whole(struct mew_json *j, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
	mew_json_string(j, text);
}

static void add(struct mew_otlp_histogram *h, double value, uint64_t count)
{
	size_t i = 0;

	while (i < h->nbounds && value > h->bounds[i])
		i++;
	h->counts[i] += count;
	h->count += count;
}

/* --- times ------------------------------------------------------------------------------------------------------ */

static bool is_value(const struct mew_run *run)
{
	return run->phase == MEW_PHASE_MEASUREMENT_VALUE && run->loops > 0;
}

static void find_range(struct mew_otlp_histogram *h, const struct mew_case *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->nruns; i++)
		for (size_t k = 0; is_value(&c->runs[i]) && k < c->runs[i].nsamples; k++) {
			double ns = (double)c->runs[i].real_ns[k] / (double)c->runs[i].loops;

			h->min = n == 0 || ns < h->min ? ns : h->min;
			h->max = n++ == 0 || ns > h->max ? ns : h->max;
			h->sum += ns;
		}
	h->has_sum = n > 0;
}

/* The same bounds in every run: eighths of powers of two, and where these are too many, whole powers of two. */
static void choose_bounds(struct mew_otlp_histogram *h)
{
	double low = h->min < 1 ? 1 : h->min, high = h->max < 1 ? 1 : h->max;
	double steps = log2(high / low) * FINEST > MEW_OTLP_BOUNDS - 3 * FINEST ? 1 : FINEST;
	int exponent = (int)floor(log2(low));

	for (double bound = 0; bound < high && h->nbounds < MEW_OTLP_BOUNDS; exponent++)
		for (int s = 0; s < steps && bound < high && h->nbounds < MEW_OTLP_BOUNDS; s++) {
			bound = ldexp(1 + (double)s / steps, exponent);
			if (ldexp(1 + (s + 1) / steps, exponent) > low)
				h->bounds[h->nbounds++] = bound;
		}
}

bool mew_otlp_times(struct mew_otlp_histogram *h, const struct mew_case *c)
{
	const struct mew_row_head *row = mew_rows_of(c, MEW_KIND_TIME);

	*h = (struct mew_otlp_histogram){ .nbounds = 0 };
	if (row == NULL || row->status != MEW_OK)
		return false;
	find_range(h, c);
	if (!h->has_sum)
		return false;
	choose_bounds(h);
	for (size_t i = 0; i < c->nruns; i++)
		for (size_t k = 0; is_value(&c->runs[i]) && k < c->runs[i].nsamples; k++)
			add(h, (double)c->runs[i].real_ns[k] / (double)c->runs[i].loops, 1);
	return true;
}

/* --- sizes ------------------------------------------------------------------------------------------------------ */

bool mew_otlp_sizes(struct mew_otlp_histogram *h, const struct mew_case *c)
{
	const struct mew_row_head *row = mew_rows_of(c, MEW_KIND_MEMORY);
	const struct mew_memory_case *memory = &c->memory;

	*h = (struct mew_otlp_histogram){ .nbounds = 0 };
	if (row == NULL || !mew_row_has(row, MEW_FIG_SIZE_HISTOGRAM) || memory->nsize_histogram > MEW_OTLP_BOUNDS)
		return false;
	for (size_t i = 0; i < memory->nsize_histogram; i++) {
		double high = (double)memory->size_histogram[i].high;

		if (h->nbounds == 0 || high > h->bounds[h->nbounds - 1])
			h->bounds[h->nbounds++] = high;
	}
	for (size_t i = 0; i < memory->nsize_histogram; i++)
		add(h, (double)memory->size_histogram[i].high, memory->size_histogram[i].count);
	return h->count > 0;
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

void mew_otlp_put_histogram(struct mew_json *j, const struct mew_otlp_histogram *h)
{
	mew_json_key(j, "count");
	mew_otlp_put_whole(j, h->count);
	if (h->has_sum) {
		mew_json_put_f64(j, "sum", h->sum);
		mew_json_put_f64(j, "min", h->min);
		mew_json_put_f64(j, "max", h->max);
	}
	mew_json_key(j, "explicitBounds");
	mew_json_array(j);
	for (size_t i = 0; i < h->nbounds; i++)
		mew_json_f64(j, h->bounds[i]);
	mew_json_array_end(j);
	mew_json_key(j, "bucketCounts");
	mew_json_array(j);
	for (size_t i = 0; i <= h->nbounds; i++)
		mew_otlp_put_whole(j, h->counts[i]);
	mew_json_array_end(j);
}
