/*
 * gate_json.c - what a gate leaves for programs: samples.json while it runs, summary.json at its end.
 * Layer L6. Streamed through the writer; whole or not at all.
 */
#include "config.h"

#include "gate_files.h"

#include "emit.h"
#include "error.h"
#include "gate_resume.h"

#include <math.h>
#include <stdio.h>

/* --- who was compared ------------------------------------------------------------------------------------------- */

static void put_facts(struct mew_json *j, const struct mew_model *m)
{
	mew_json_key(j, "facts");
	mew_json_object(j);
	for (size_t i = 0; i < m->nfacts; i++)
		mew_json_put_some_text(j, m->facts[i].name, m->facts[i].value);
	mew_json_object_end(j);
}

static void put_sides(struct mew_json *j, const struct mew_gate *g)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		mew_json_key(j, mew_side_name(side));
		mew_json_object(j);
		mew_json_put_some_text(j, "program", g->options->programs[side]);
		mew_json_put_some_text(j, "revision", g->options->revisions[side]);
		mew_gate_put_tool(j, &g->tools[side]);
		put_facts(j, g->models[side]);
		mew_json_object_end(j);
	}
	mew_json_put_some_text(j, "workload_revision", g->options->workload_revision);
}

static void put_calibration(struct mew_json *j, const struct mew_calibration *c)
{
	if (c == NULL)
		return;
	mew_json_key(j, "calibration");
	mew_json_object(j);
	mew_json_put_u64(j, "trials", c->trials);
	mew_json_put_u64(j, "false_positives", c->false_positives);
	mew_json_put_u64(j, "samples", c->samples);
	mew_json_object_end(j);
}

/* What both files begin with. */
static void put_head(struct mew_json *j, const struct mew_gate *g)
{
	mew_json_put_u64(j, "schema_version", MEW_GATE_SCHEMA);
	mew_json_put_some_text(j, "mew", mew_version());
	mew_json_put_some_text(j, "mew_build_id", g->self.build_id);
	mew_json_put_u64(j, "started", g->started_s);
	mew_json_put_u64(j, "seed", g->options->seed);
	mew_json_put_some_text(j, "ci_run", g->options->ci_run);
	put_sides(j, g);
	mew_gate_put_phases_hash(j, g);
	put_calibration(j, g->calibration);
	mew_json_put_u64(j, "processes", g->processes);
	mew_json_put_f64(j, "seconds", g->seconds);
	mew_json_put_bool(j, "out_of_time", g->out_of_time);
	mew_json_put_bool(j, "interrupted", g->interrupted);
}

/* --- samples.json ----------------------------------------------------------------------------------------------- */

static void put_observation(struct mew_json *j, const struct mew_gate_observation *o)
{
	mew_json_object(j);
	mew_json_put_f64(j, "log_ratio", o->log_ratio);
	mew_json_put_f64(j, "base_ns", o->ns[MEW_BASE]);
	mew_json_put_f64(j, "head_ns", o->ns[MEW_HEAD]);
	mew_json_put_u64(j, "loops", o->loops);
	mew_json_put_u64(j, "rounds", o->rounds);
	mew_json_put_u64(j, "disturbed", o->disturbed);
	mew_json_put_u64(j, "ties", o->ties);
	if (o->cpu >= 0)
		mew_json_put_u64(j, "cpu", (uint64_t)o->cpu);
	if (o->head_first)
		mew_json_put_bool(j, "head_first", true);
	mew_json_object_end(j);
}

static void put_series(struct mew_json *j, const char *key, const struct mew_gate_series *s)
{
	mew_json_key(j, key);
	mew_json_array(j);
	for (size_t i = 0; i < s->n; i++)
		put_observation(j, &s->list[i]);
	mew_json_array_end(j);
}

static void put_contexts(struct mew_json *j, const struct mew_gate *g, const struct mew_gate_case *c)
{
	if (g->options->ncontexts == 0)
		return;
	mew_json_key(j, "contexts");
	mew_json_object(j);
	for (size_t k = 0; k < g->options->ncontexts; k++)
		if (c->contexts[k].n > 0)
			put_series(j, g->options->contexts[k].name, &c->contexts[k]);
	mew_json_object_end(j);
}

static int write_samples(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_gate *g = data;
	struct mew_json j;

	(void)err;
	mew_json_init(&j, w, 4);
	mew_json_object(&j);
	put_head(&j, g);
	mew_gate_put_arguments(&j, g);
	mew_json_key(&j, "cases");
	mew_json_array(&j);
	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_gate_case *c = &g->cases[i];

		mew_json_object(&j);
		mew_json_put_some_text(&j, "key", c->key);
		mew_json_put_some_text(&j, "label", c->label);
		mew_json_put_some_text(&j, "invalid", c->reason);
		mew_json_put_some_text(&j, "skipped", c->is_skipped ? c->why : NULL);
		put_series(&j, "observations", &c->series);
		mew_gate_put_counts(&j, g, c);
		put_contexts(&j, g, c);
		mew_json_object_end(&j);
	}
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

int mew_gate_write_samples(const struct mew_gate *g, struct mew_error *err)
{
	return mew_gate_file(g, "samples.json", write_samples, err);
}

/* --- summary.json ----------------------------------------------------------------------------------------------- */

static void put_limit(struct mew_json *j, const struct mew_verdict *v)
{
	if (v->limit.has_percent)
		mew_json_put_f64(j, "limit_percent", v->limit.percent);
	if (v->limit.has_units)
		mew_json_put_f64(j, "limit_units", v->limit.units);
	if (v->allow != NULL) {
		mew_json_put_some_text(j, "allowed_because", v->allow->reason);
		mew_json_put_some_text(j, "allowed_until", v->allow->expires);
	}
}

static void put_verdict(struct mew_json *j, const struct mew_gate_case *c, const struct mew_verdict *v)
{
	char words[200];

	mew_gate_words(v, words, sizeof words);
	mew_json_object(j);
	mew_json_put_some_text(j, "metric", v->metric->name);
	mew_json_put_some_text(j, "better", v->metric->direction == MEW_MORE_IS_BETTER ? "more" : "less");
	mew_json_put_some_text(j, "outcome", mew_outcome_name(v->outcome));
	mew_json_put_some_text(j, "words", words);
	mew_json_put_f64(j, "base", v->base);
	mew_json_put_f64(j, "head", v->head);
	mew_json_put_f64(j, "ratio", v->ratio);
	if (v->has_interval) {
		mew_json_put_f64(j, "ratio_low", v->interval.low);
		mew_json_put_f64(j, "ratio_high", v->interval.high);
	}
	if (!v->metric->exact) {
		mew_json_put_u64(j, "observations", v->n);
		mew_json_put_u64(j, "least_observations", v->least);
		mew_json_put_f64(j, "p_worse", v->p_worse);
		mew_json_put_f64(j, "p_better", v->p_better);
	}
	put_limit(j, v);
	mew_json_put_some_text(j, "why", v->why);
	if (v == mew_gate_time(c))
		mew_json_put_some_text(j, "note", c->why);
	mew_json_object_end(j);
}

/* Beside the verdicts: what the contexts measured, in words. */
static void put_context_words(struct mew_json *j, const struct mew_gate *g, const struct mew_gate_case *c)
{
	bool begun = false;

	for (size_t k = 0; k < g->options->ncontexts; k++) {
		char text[MEW_GATE_CONTEXT_BYTES];

		if (!mew_gate_context_words(g, c, k, text))
			continue;
		if (!begun) {
			mew_json_key(j, "contexts");
			mew_json_array(j);
		}
		begun = true;
		mew_json_string(j, text);
	}
	if (begun)
		mew_json_array_end(j);
}

static int write_summary(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_gate *g = data;
	struct mew_json j;
	char text[280];

	(void)err;
	mew_json_init(&j, w, 4);
	mew_json_object(&j);
	put_head(&j, g);
	mew_json_put_some_text(&j, "verdict", mew_outcome_name(g->outcome));
	mew_json_put_u64(&j, "exit_code", (uint64_t)g->exit_code);
	mew_json_put_some_text(&j, "invalid_because", g->identity);
	mew_json_put_some_text(&j, "note", mew_gate_sameness(g));
	if (mew_gate_uncounted_words(g, text, sizeof text))
		mew_json_put_text(&j, "not_counted", text);
	mew_json_put_some_text(&j, "flame_graphs", g->html);
	mew_json_put_some_text(&j, "flame_graphs_missing", g->unexplained);
	mew_json_key(&j, "cases");
	mew_json_array(&j);
	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_gate_case *c = &g->cases[i];

		mew_json_object(&j);
		mew_json_put_some_text(&j, "key", c->key);
		mew_json_put_some_text(&j, "label", c->label);
		mew_json_put_f64(&j, "noise_floor", c->noise_floor);
		mew_json_key(&j, "verdicts");
		mew_json_array(&j);
		for (size_t k = 0; k < c->nverdicts; k++)
			put_verdict(&j, c, &c->verdicts[k]);
		mew_json_array_end(&j);
		put_context_words(&j, g, c);
		mew_json_object_end(&j);
	}
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

int mew_gate_write_summary(const struct mew_gate *g, struct mew_error *err)
{
	return mew_gate_file(g, "summary.json", write_summary, err);
}
