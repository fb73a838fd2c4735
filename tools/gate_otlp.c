/*
 * gate_otlp.c - metrics.otlp.json: OpenTelemetry metrics of a gate, gauges with case, arm and result as attributes.
 * Layer L6. One request on one line, as the file exporter writes it; 64-bit integers are texts, enumerations numbers.
 */
#include "config.h"

#include "gate_files.h"

#include "emit.h"

#include <math.h>
#include <stdio.h>

#define NS_PER_S 1000000000u

static void put_attribute(struct mew_json *j, const char *key, const char *value)
{
	mew_json_object(j);
	mew_json_key(j, "key");
	mew_json_string(j, key);
	mew_json_key(j, "value");
	mew_json_object(j);
	mew_json_key(j, "stringValue");
	mew_json_string(j, value);
	mew_json_object_end(j);
	mew_json_object_end(j);
}

struct point {
	const char *key, *phase, *arm;
	enum mew_outcome outcome;
	double value;
};

static void put_point(struct mew_json *j, const struct mew_gate *g, const struct point *p)
{
	char nanos[32];

	(void)snprintf(nanos, sizeof nanos, "%llu", (unsigned long long)g->started_s * NS_PER_S);
	mew_json_object(j);
	mew_json_key(j, "timeUnixNano");
	mew_json_string(j, nanos);
	mew_json_key(j, "asDouble");
	mew_json_f64(j, p->value);
	mew_json_key(j, "attributes");
	mew_json_array(j);
	put_attribute(j, "mew.case", p->key);
	put_attribute(j, "mew.phase", p->phase);
	if (p->arm != NULL)
		put_attribute(j, "mew.arm", p->arm);
	put_attribute(j, "mew.result", mew_outcome_name(p->outcome));
	mew_json_array_end(j);
	mew_json_object_end(j);
}

/* Commands have phases of their own; the figures of a benchmark program come from two passes. */
static const char *phase_of(const struct mew_gate_case *c, const struct mew_verdict *v)
{
	bool is_counted = v->metric->exact && v->metric->bit >= 0; /* by mew; joined counts of commands have no bit */

	if (c->phase != NULL)
		return c->phase->key;
	return mew_phase_name(is_counted ? MEW_PHASE_MEMORY_VALUE : MEW_PHASE_MEASUREMENT_VALUE);
}

/* UCUM, as in the catalogue; a command's counts are not in it. */
static const char *unit_of(const struct mew_metric *metric)
{
	size_t n;
	const struct mew_figure *figures = mew_figures(metric->kind, &n);

	for (size_t i = 0; i < n; i++)
		if (figures[i].bit == metric->bit)
			return figures[i].unit;
	return "1";
}

/* One metric of all cases: a gauge for each side, or the ratio. Writes nothing where no case has it. */
static void put_metric(struct mew_json *j, const struct mew_gate *g, const struct mew_metric *metric, bool ratio)
{
	char name[80];
	bool open = false;

	(void)snprintf(name, sizeof name, "mew.gate.%s%s", metric->name, ratio ? ".ratio" : "");
	for (size_t i = 0; i < g->ncases; i++)
		for (size_t k = 0; k < g->cases[i].nverdicts; k++) {
			const struct mew_verdict *v = &g->cases[i].verdicts[k];
			const struct point points[] = {
				{ g->cases[i].key, phase_of(&g->cases[i], v), ratio ? NULL : "base", v->outcome,
				  ratio ? v->ratio : v->base },
				{ g->cases[i].key, phase_of(&g->cases[i], v), "head", v->outcome, v->head },
			};

			if (v->metric != metric)
				continue;
			for (size_t m = 0; m < (ratio ? 1 : 2); m++) {
				if (!isfinite(points[m].value))
					continue;
				if (!open) {
					mew_json_object(j);
					mew_json_key(j, "name");
					mew_json_string(j, name);
					mew_json_key(j, "unit");
					mew_json_string(j, ratio ? "1" : unit_of(metric));
					mew_json_key(j, "gauge");
					mew_json_object(j);
					mew_json_key(j, "dataPoints");
					mew_json_array(j);
				}
				open = true;
				put_point(j, g, &points[m]);
			}
		}
	if (open) {
		mew_json_array_end(j);
		mew_json_object_end(j);
		mew_json_object_end(j);
	}
}

static void put_resource(struct mew_json *j, const struct mew_gate *g)
{
	const char *arch = mew_model_fact(g->models[MEW_HEAD], "machine");

	mew_json_key(j, "resource");
	mew_json_object(j);
	mew_json_key(j, "attributes");
	mew_json_array(j);
	put_attribute(j, "service.name", "mew-gate");
	if (arch != NULL)
		put_attribute(j, "host.arch", arch);
	if (g->options->revisions[MEW_HEAD] != NULL)
		put_attribute(j, "vcs.ref.head.revision", g->options->revisions[MEW_HEAD]);
	if (g->options->revisions[MEW_BASE] != NULL)
		put_attribute(j, "vcs.ref.base.revision", g->options->revisions[MEW_BASE]);
	mew_json_array_end(j);
	mew_json_object_end(j);
}

static int write_otlp(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_gate *g = data;
	struct mew_json j;
	size_t n;
	const struct mew_metric *metrics = mew_metrics(&n);

	(void)err;
	mew_json_init(&j, w, 0);
	mew_json_object(&j);
	mew_json_key(&j, "resourceMetrics");
	mew_json_array(&j);
	mew_json_object(&j);
	put_resource(&j, g);
	mew_json_key(&j, "scopeMetrics");
	mew_json_array(&j);
	mew_json_object(&j);
	mew_json_key(&j, "scope");
	mew_json_object(&j);
	mew_json_key(&j, "name");
	mew_json_string(&j, "mew.gate");
	mew_json_key(&j, "version");
	mew_json_string(&j, mew_version());
	mew_json_object_end(&j);
	mew_json_key(&j, "metrics");
	mew_json_array(&j);
	for (size_t i = 0; i < n; i++) {
		put_metric(&j, g, &metrics[i], false);
		put_metric(&j, g, &metrics[i], true);
	}
	for (size_t i = 0; i < g->rules.ncounts && g->machines == 0; i++)
		put_metric(&j, g, &g->rules.counts[i], false);
	for (size_t i = 0; i < g->nmerged_metrics; i++)
		put_metric(&j, g, &g->merged_metrics[i], false);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

int mew_gate_write_otlp(const struct mew_gate *g, struct mew_error *err)
{
	return mew_gate_file(g, "metrics.otlp.json", write_otlp, err);
}
