/*
 * compare_json.c - a comparison as JSON, for programs.
 * Layer L6. The command's thread.
 *
 * The file is one object. What is null was not measured or does not exist.
 *
 *   schema       1; a reader refuses a number above its own
 *   mew          version
 *   kind         "comparison"
 *   rules        { alpha, time: "signs" or "bootstrap", strict, seed, allow: [ { cases, metric, percent, units, reason,
 *                expires, expired } ] }
 *   comparisons  list, a head each against the same base:
 *     base, head          names of the files
 *     verdict, exit_code  of a gate; null without --gate
 *     other_machine       true: the base's timings are context, not evidence
 *     differences         [ { fact, base, head } ]
 *     missing, new        keys of cases in the base alone, in the head alone
 *     geometric_mean      { ratio, cases } of time
 *     cases               [ { key, label, base_processes, head_processes,
 *                           mann_whitney: { u, effect, p } of the processes' medians, or null,
 *                           metrics: { name: { base, head, ratio, low, high, range: "decides" or "rough" or null,
 *                           pairs, least_pairs, limit_percent, limit_units, p_worse, p_better, verdict, reason,
 *                           rule_reason } } } ]
 *                         p_* are corrected for all cases, by signs alone; an infinite ratio is null
 */
#include "config.h"

#include "compare.h"

#include <math.h>

#include "emit.h"
#include "mew.h"

#define SCHEMA 1u
#define PRETTY 6u

/* Numbers that are not finite become null. */
static void member_f64(struct mew_json *j, const char *key, bool exists, double value)
{
	mew_json_key(j, key);
	if (exists && isfinite(value))
		mew_json_f64(j, value + 0.0);
	else
		mew_json_null(j);
}

static void put_rules(struct mew_json *j, const struct mew_rules *rules)
{
	mew_json_key(j, "rules");
	mew_json_object(j);
	member_f64(j, "alpha", true, rules->alpha == 0 ? 0.05 : rules->alpha);
	mew_json_put_text(j, "time", rules->time_rule == MEW_TIME_SIGNS ? "signs" : "bootstrap");
	mew_json_put_bool(j, "strict", rules->strict);
	mew_json_put_u64(j, "seed", rules->resampling.seed);
	mew_json_key(j, "allow");
	mew_json_array(j);
	for (size_t i = 0; i < rules->nallows; i++) {
		const struct mew_allow *a = &rules->allows[i];

		mew_json_object(j);
		mew_json_put_text(j, "cases", a->cases);
		mew_json_put_text(j, "metric", a->metric);
		member_f64(j, "percent", a->limit.has_percent, a->limit.percent);
		member_f64(j, "units", a->limit.has_units, a->limit.units);
		mew_json_put_text(j, "reason", a->reason);
		mew_json_put_text(j, "expires", a->expires);
		mew_json_put_bool(j, "expired", !mew_allow_is_live(a, rules->today));
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
	mew_json_object_end(j);
}

static void put_verdict(struct mew_json *j, const struct mew_compare_case *c, const struct mew_verdict *v)
{
	bool is_time = !v->metric->exact, is_tested = is_time && v->n > 0;

	mew_json_key(j, v->metric->name);
	mew_json_object(j);
	member_f64(j, "base", true, v->base);
	member_f64(j, "head", true, v->head);
	member_f64(j, "ratio", true, v->ratio);
	member_f64(j, "low", v->has_interval, v->interval.low);
	member_f64(j, "high", v->has_interval, v->interval.high);
	mew_json_put_text(j, "range", !v->has_interval ? NULL : c->is_rough ? "rough" : "decides");
	member_f64(j, "pairs", is_tested, (double)v->n);
	member_f64(j, "least_pairs", is_tested, (double)v->least);
	member_f64(j, "limit_percent", v->limit.has_percent, v->limit.percent);
	member_f64(j, "limit_units", v->limit.has_units, v->limit.units);
	member_f64(j, "p_worse", is_tested, v->p_worse);
	member_f64(j, "p_better", is_tested, v->p_better);
	mew_json_put_text(j, "verdict", mew_outcome_name(v->outcome));
	mew_json_put_text(j, "reason", v->why);
	mew_json_put_text(j, "rule_reason", v->allow != NULL ? v->allow->reason : NULL);
	mew_json_object_end(j);
}

static void put_ranks(struct mew_json *j, const struct mew_compare_case *c)
{
	mew_json_key(j, "mann_whitney");
	if (!c->has_ranks) {
		mew_json_null(j);
		return;
	}
	mew_json_object(j);
	member_f64(j, "u", true, c->ranks.u);
	member_f64(j, "effect", true, c->ranks.effect);
	member_f64(j, "p", true, c->ranks.p);
	mew_json_object_end(j);
}

static void put_case(struct mew_json *j, const struct mew_compare_case *c)
{
	mew_json_object(j);
	mew_json_put_text(j, "key", c->base->key);
	mew_json_put_text(j, "label", c->base->label);
	mew_json_put_u64(j, "base_processes", c->base_processes);
	mew_json_put_u64(j, "head_processes", c->head_processes);
	put_ranks(j, c);
	mew_json_key(j, "metrics");
	mew_json_object(j);
	for (size_t k = 0; k < MEW_COMPARE_METRICS; k++)
		if (c->verdicts[k].outcome != MEW_OUTCOME_ABSENT)
			put_verdict(j, c, &c->verdicts[k]);
	mew_json_object_end(j);
	mew_json_object_end(j);
}

static void put_keys(struct mew_json *j, const char *name, const struct mew_case *const *list, size_t n)
{
	mew_json_key(j, name);
	mew_json_array(j);
	for (size_t i = 0; i < n; i++)
		mew_json_string(j, list[i]->key);
	mew_json_array_end(j);
}

static void put_differences(struct mew_json *j, const struct mew_comparison *c)
{
	mew_json_put_bool(j, "other_machine", c->other_machine);
	mew_json_key(j, "differences");
	mew_json_array(j);
	for (size_t i = 0; i < c->ndifferences; i++) {
		mew_json_object(j);
		mew_json_put_text(j, "fact", c->differences[i].name);
		mew_json_put_text(j, "base", c->differences[i].base);
		mew_json_put_text(j, "head", c->differences[i].head);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

static void put_gate(struct mew_json *j, const struct mew_compare_set *set, const struct mew_comparison *c)
{
	mew_json_put_text(j, "verdict", set->gated ? mew_compare_gate_word(c) : NULL);
	mew_json_key(j, "exit_code");
	if (set->gated)
		mew_json_i64(j, c->exit_code);
	else
		mew_json_null(j);
}

static void put_comparison(struct mew_json *j, const struct mew_compare_set *set, const struct mew_comparison *c)
{
	mew_json_object(j);
	mew_json_put_text(j, "base", c->base_name);
	mew_json_put_text(j, "head", c->head_name);
	put_gate(j, set, c);
	put_differences(j, c);
	put_keys(j, "missing", c->missing, c->nmissing);
	put_keys(j, "new", c->added, c->nadded);
	mew_json_key(j, "geometric_mean");
	mew_json_object(j);
	member_f64(j, "ratio", c->nratios > 0, c->mean_ratio);
	mew_json_put_u64(j, "cases", c->nratios);
	mew_json_object_end(j);
	mew_json_key(j, "cases");
	mew_json_array(j);
	for (size_t i = 0; i < c->ncases; i++)
		put_case(j, &c->cases[i]);
	mew_json_array_end(j);
	mew_json_object_end(j);
}

int mew_compare_json(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct mew_compare_set *set = data;
	struct mew_json j;

	(void)err;
	mew_json_init(&j, w, PRETTY);
	mew_json_object(&j);
	mew_json_put_u64(&j, "schema", SCHEMA);
	mew_json_put_text(&j, "mew", mew_version());
	mew_json_put_text(&j, "kind", "comparison");
	put_rules(&j, set->rules);
	mew_json_key(&j, "comparisons");
	mew_json_array(&j);
	for (size_t i = 0; i < set->n; i++)
		put_comparison(&j, set, &set->list[i]);
	mew_json_array_end(&j);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}
