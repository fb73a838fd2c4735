/*
 * otlp.c - results as OpenTelemetry metrics in OTLP/JSON: what `POST /v1/metrics` of a collector takes.
 * Layer L5. Reads a sealed model.
 *
 * One object: { resourceMetrics: [{ resource, scopeMetrics: [{ scope, metrics }] }] } by the proto3 JSON mapping: keys
 * in lowerCamelCase, 64-bit integers as strings, enumerators as numbers, nothing that is not finite. A metric is a
 * figure of the catalogue, "mew.KIND.FIGURE" with its UCUM unit, and its points are the cases:
 *
 *   sum         counts of events over the window (allocations, iterations): delta, monotonic
 *   histogram   "mew.time.iteration" from the samples of measurement/value; "mew.memory.size_histogram"
 *   gauge       everything else, "mew.counter" included: what bodies set
 *
 * Attributes of a point: mew.case (the key), mew.pass (time, memory, cpu), mew.label, mew.program, mew.threads; of the
 * resource: service.name (the program), host.arch, os.description and mew.environment.FACT. Points reach from the date
 * of the run over the time that its samples took; without a date both ends are 0, which stands for unknown. Failed rows
 * have no points.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emit.h"
#include "error.h"
#include "grid.h"
#include "mew/report.h"
#include "model.h"
#include "otlp_histogram.h"
#include "rows.h"
#include "symbolise.h"
#include "textual.h"
#include "writer.h"

#define PRETTY 6u /* a point a line */
#define DELTA 1u  /* AGGREGATION_TEMPORALITY_DELTA */
#define NS_PER_S 1000000000u

static void open_list(struct mew_json *j, const char *key)
{
	mew_json_key(j, key);
	mew_json_array(j);
}

/* --- attributes ------------------------------------------------------------------------------------------------- */

static void put_attribute(struct mew_json *j, const char *key, const char *text)
{
	if (text == NULL)
		return;
	mew_json_object(j);
	mew_json_put_text(j, "key", key);
	mew_json_key(j, "value");
	mew_json_object(j);
	mew_json_put_text(j, "stringValue", text);
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_whole_attribute(struct mew_json *j, const char *key, uint64_t value)
{
	mew_json_object(j);
	mew_json_put_text(j, "key", key);
	mew_json_key(j, "value");
	mew_json_object(j);
	mew_json_key(j, "intValue");
	mew_otlp_put_whole(j, value);
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_resource(struct mew_json *j, const struct mew_model *m)
{
	const char *program = m->ncases > 0 ? m->cases[0].program : NULL;
	char *name;

	mew_json_key(j, "resource");
	mew_json_object(j);
	open_list(j, "attributes");
	put_attribute(j, "service.name", program != NULL ? mew_base_name(program) : "mew");
	put_attribute(j, "host.arch", mew_model_fact(m, "machine"));
	put_attribute(j, "os.description", mew_model_fact(m, "kernel"));
	for (size_t i = 0; i < m->nfacts; i++) {
		if (asprintf(&name, "mew.environment.%s", m->facts[i].name) < 0) {
			mew_write_no_memory(j->w);
			break;
		}
		put_attribute(j, name, m->facts[i].value);
		free(name);
	}
	mew_json_array_end(j);
	mew_json_object_end(j);
}

/* --- points ----------------------------------------------------------------------------------------------------- */

static void begin_point(const struct mew_otlp *o, const struct mew_case *c, enum mew_kind kind, const char *counter)
{
	struct mew_json *j = o->j;

	mew_json_object(j);
	open_list(j, "attributes");
	put_attribute(j, "mew.case", c->key);
	put_attribute(j, "mew.pass", mew_kind_name(kind));
	put_attribute(j, "mew.label", c->label);
	put_attribute(j, "mew.program", c->program);
	if (c->allocator != NULL)
		put_attribute(j, "mew.allocator", c->allocator);
	put_whole_attribute(j, "mew.threads", c->threads);
	put_attribute(j, "mew.counter.name", counter);
	mew_json_array_end(j);
	mew_json_key(j, "startTimeUnixNano");
	mew_otlp_put_whole(j, o->start_ns);
	mew_json_key(j, "timeUnixNano");
	mew_otlp_put_whole(j, o->end_ns);
}

static void put_f64_point(const struct mew_otlp *o, const struct mew_case *c, enum mew_kind kind, const char *counter,
			  double value)
{
	begin_point(o, c, kind, counter);
	mew_json_key(o->j, "asDouble");
	mew_json_f64(o->j, value + 0.0); /* no -0 */
	mew_json_object_end(o->j);
}

static void put_point(const struct mew_otlp *o, const struct mew_case *c, enum mew_kind kind,
		      const struct mew_row_head *row, const struct mew_figure *figure)
{
	const void *at = (const char *)row + figure->offset;
	double value;

	if (!mew_row_number(row, figure, &value))
		return;
	if (figure->type != MEW_VALUE_U64 || *(const uint64_t *)at > INT64_MAX) {
		put_f64_point(o, c, kind, NULL, value);
		return;
	}
	begin_point(o, c, kind, NULL);
	mew_json_key(o->j, "asInt");
	mew_otlp_put_whole(o->j, *(const uint64_t *)at);
	mew_json_object_end(o->j);
}

/* --- metrics ---------------------------------------------------------------------------------------------------- */

static void begin_metric(struct mew_json *j, const char *name, const char *help, const char *unit, const char *shape)
{
	mew_json_object(j);
	mew_json_put_text(j, "name", name);
	mew_json_put_text(j, "description", help);
	mew_json_put_text(j, "unit", unit);
	mew_json_key(j, shape);
	mew_json_object(j);
	if (strcmp(shape, "gauge") != 0) {
		mew_json_key(j, "aggregationTemporality");
		mew_json_u64(j, DELTA);
	}
	if (strcmp(shape, "sum") == 0) {
		mew_json_key(j, "isMonotonic");
		mew_json_bool(j, true);
	}
	open_list(j, "dataPoints");
}

static void end_metric(struct mew_json *j)
{
	mew_json_array_end(j);
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_metric(const struct mew_otlp *o, enum mew_kind kind, const struct mew_figure *figure)
{
	const struct mew_model *m = o->model;
	char name[96];
	bool begun = false;
	double value;

	(void)snprintf(name, sizeof name, "mew.%s.%s", mew_kind_name(kind), figure->name);
	for (size_t i = 0; i < m->ncases; i++) {
		const struct mew_row_head *row = mew_rows_of(&m->cases[i], kind);

		if (row == NULL || !mew_row_number(row, figure, &value))
			continue;
		if (!begun)
			begin_metric(o->j, name, figure->help, figure->unit,
				     mew_rows_is_sum(kind, figure) ? "sum" : "gauge");
		begun = true;
		put_point(o, &m->cases[i], kind, row, figure);
	}
	if (begun)
		end_metric(o->j);
}

static void put_counters(const struct mew_otlp *o)
{
	const struct mew_model *m = o->model;
	bool begun = false;

	for (size_t i = 0; i < m->ncases; i++) {
		const struct mew_case *c = &m->cases[i];

		for (size_t k = 0; k < c->ncounters; k++) {
			if (!isfinite(c->counters[k].value))
				continue;
			if (!begun)
				begin_metric(o->j, "mew.counter", "counters that the bodies set", "1", "gauge");
			begun = true;
			put_f64_point(o, c, MEW_KIND_TIME, c->counters[k].name, c->counters[k].value);
		}
	}
	if (begun)
		end_metric(o->j);
}

static void put_histograms(const struct mew_otlp *o, enum mew_kind kind, const char *name, const char *help,
			   const char *unit, mew_otlp_histogram_fn *fill)
{
	struct mew_otlp_histogram h;
	bool begun = false;

	for (size_t i = 0; i < o->model->ncases; i++) {
		if (!fill(&h, &o->model->cases[i]))
			continue;
		if (!begun)
			begin_metric(o->j, name, help, unit, "histogram");
		begun = true;
		begin_point(o, &o->model->cases[i], kind, NULL);
		mew_otlp_put_histogram(o->j, &h);
		mew_json_object_end(o->j);
	}
	if (begun)
		end_metric(o->j);
}

/* --- the report ------------------------------------------------------------------------------------------------- */

/* Of the fact "date", 2026-01-31T12:00:00Z; 0 where there is none. */
static uint64_t date_ns(const struct mew_model *m)
{
	const char *date = mew_model_fact(m, "date"), *end;
	struct tm utc = { .tm_isdst = 0 };
	time_t seconds;

	end = date == NULL ? NULL : strptime(date, "%Y-%m-%dT%H:%M:%SZ", &utc);
	if (end == NULL || *end != '\0')
		return 0;
	seconds = timegm(&utc);
	return seconds <= 0 || (uint64_t)seconds > INT64_MAX / NS_PER_S ? 0 : (uint64_t)seconds * NS_PER_S;
}

static uint64_t measured_ns(const struct mew_model *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->ncases; i++)
		for (size_t k = 0; k < m->cases[i].nruns; k++)
			for (size_t s = 0; s < m->cases[i].runs[k].nsamples; s++)
				if (__builtin_add_overflow(sum, m->cases[i].runs[k].real_ns[s], &sum))
					return 0;
	return sum;
}

static void put_metrics(const struct mew_otlp *o)
{
	for (int kind = 0; kind < MEW_KINDS; kind++) {
		size_t n;
		const struct mew_figure *figures = mew_figures((enum mew_kind)kind, &n);

		for (size_t i = 0; i < n; i++)
			put_metric(o, (enum mew_kind)kind, &figures[i]);
	}
	put_counters(o);
	put_histograms(o, MEW_KIND_TIME, "mew.time.iteration", "time of an iteration, a sample of each batch", "ns",
		       mew_otlp_times);
	put_histograms(o, MEW_KIND_MEMORY, "mew.memory.size_histogram", "allocations by size", "By", mew_otlp_sizes);
}

static int write_otlp(const struct mew_report_input *in, struct mew_writer *w, struct mew_error *err)
{
	struct mew_json j;
	struct mew_otlp o = { .j = &j, .model = in->model, .start_ns = date_ns(in->model) };

	(void)err; /* memory that runs out is the writer's error */
	if (o.start_ns > 0 && __builtin_add_overflow(o.start_ns, measured_ns(in->model), &o.end_ns))
		o.end_ns = o.start_ns;
	mew_json_init(&j, w, PRETTY);
	mew_json_object(&j);
	open_list(&j, "resourceMetrics");
	mew_json_object(&j);
	put_resource(&j, in->model);
	open_list(&j, "scopeMetrics");
	mew_json_object(&j);
	mew_json_key(&j, "scope");
	mew_json_object(&j);
	mew_json_put_text(&j, "name", "mew");
	mew_json_put_text(&j, "version", mew_version());
	mew_json_object_end(&j);
	open_list(&j, "metrics");
	put_metrics(&o);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

const struct mew_report mew_report_otlp = {
	.abi = MEW_REPORT_ABI,
	.name = "otlp",
	.help = "OpenTelemetry metrics, OTLP/JSON",
	.suffix = ".otlp.json",
	.shape = MEW_REPORT_FILE,
	.needs_symbols = 0,
	.write = write_otlp,
};
