/*
 * otlp_histogram.h - distributions as OTLP histograms: one bucket more than there are bounds, bounds ascending.
 * Layer L5. Private to reports/otlp*.c.
 */
#ifndef MEW_OTLP_HISTOGRAM_H
#define MEW_OTLP_HISTOGRAM_H

#include "emit.h"
#include "model.h"

struct mew_otlp {
	struct mew_json *j;            /* borrowed */
	const struct mew_model *model; /* sealed; borrowed */
	uint64_t start_ns, end_ns;     /* since 1970 */
};

#define MEW_OTLP_BOUNDS 160u

struct mew_otlp_histogram {
	double bounds[MEW_OTLP_BOUNDS]; /* bucket i holds what is above bound i - 1 and at most bound i */
	uint64_t counts[MEW_OTLP_BOUNDS + 1];
	size_t nbounds;
	uint64_t count;
	double sum, min, max;
	bool has_sum; /* and min and max */
};

/* Fill from a case; false where it has no such distribution. */
typedef bool mew_otlp_histogram_fn(struct mew_otlp_histogram *h, const struct mew_case *c);
/*
 * Nanoseconds of an iteration, the samples of measurement/value; bounds lie at most an eighth apart in a narrow range.
 */
mew_otlp_histogram_fn mew_otlp_times;
/* Sizes of allocations, the row's power-of-two classes. */
mew_otlp_histogram_fn mew_otlp_sizes;

/* The members of a data point from "count" on. */
void mew_otlp_put_histogram(struct mew_json *j, const struct mew_otlp_histogram *h);

/* A 64-bit integer as a string, as the proto3 JSON mapping wants it. */
void mew_otlp_put_whole(struct mew_json *j, uint64_t value);

#endif
