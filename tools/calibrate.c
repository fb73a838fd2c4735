/*
 * calibrate.c - see calibrate.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "calibrate.h"

#include "cli.h"
#include "environment.h"
#include "splitmix.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOOR_QUANTILE 0.95
#define POWER 0.8
#define ALPHA 0.05

static const double extras[MEW_CALIBRATION_CONTROLS] = { 0.01, 0.02, 0.05 };
const char *const mew_control_names[MEW_CALIBRATION_CONTROLS] = { "+1 % found", "+2 % found", "+5 % found" };

struct series { /* of one case over all A/A trials */
	double *estimates, *observations;
	size_t nestimates, nobservations;
};

struct calibrate {
	const struct mew_calibrate_options *o;
	struct mew_calibration *c;
	struct series *series; /* as many as c->cases */
	struct mew_progress progress;
	size_t done;
	uint64_t seed;
};

static bool is_cancelled(const struct calibrate *k)
{
	return k->o->host.cancelled != NULL && *k->o->host.cancelled != 0;
}

/* --- what a trial leaves ---------------------------------------------------------------------------------------- */

static bool is_difference(const struct mew_verdict *v)
{
	return v != NULL && (v->outcome == MEW_OUTCOME_REGRESSED || v->outcome == MEW_OUTCOME_IMPROVED);
}

/* The series of the first trial's cases: each trial has the same ones. What is skipped has no times, so no noise. */
static int make_series(struct calibrate *k, const struct mew_gate *g)
{
	size_t most = (size_t)k->o->trials * k->o->samples;

	if (k->series != NULL)
		return 0;
	k->series = calloc(g->ncases, sizeof *k->series);
	for (size_t i = 0; k->series != NULL && i < g->ncases; i++) {
		struct series *s = &k->series[k->c->ncases];

		if (g->cases[i].is_skipped)
			continue;
		if (mew_calibration_case(k->c, g->cases[i].key) == NULL)
			return -1;
		s->estimates = calloc(k->o->trials, sizeof(double));
		s->observations = calloc(most, sizeof(double));
		if (s->estimates == NULL || s->observations == NULL)
			return -1;
	}
	return k->series != NULL && mew_calibration_identify(k->c, k->o->program, g->models[MEW_BASE]) == 0 ? 0 : -1;
}

/* Where the case of a trial is kept; NULL: it is not, because it was skipped. */
static struct mew_calibration_case *kept_case(const struct calibrate *k, const struct mew_gate_case *c)
{
	return c->is_skipped ? NULL : mew_calibration_find(k->c, c->key);
}

static void take_trial(struct calibrate *k, const struct mew_gate *g)
{
	bool any = false;

	for (size_t i = 0; i < g->ncases; i++) {
		const struct mew_verdict *v = mew_gate_time(&g->cases[i]);
		struct mew_calibration_case *to = kept_case(k, &g->cases[i]);
		struct series *s;

		if (to == NULL)
			continue;
		s = &k->series[to - k->c->cases];
		any = any || is_difference(v);
		s->estimates[s->nestimates++] = fabs(log(v->ratio));
		for (size_t n = 0; n < g->cases[i].series.n; n++)
			s->observations[s->nobservations++] = g->cases[i].series.list[n].log_ratio;
		to->trials++;
	}
	k->c->trials++;
	k->c->false_positives += any;
}

static void take_control(struct calibrate *k, const struct mew_gate *g, size_t which)
{
	for (size_t i = 0; i < g->ncases; i++) {
		struct mew_calibration_case *c = kept_case(k, &g->cases[i]);
		const struct mew_verdict *v = mew_gate_time(&g->cases[i]);
		struct mew_control *to;

		if (c == NULL)
			continue;
		to = &c->controls[which];
		if (g->cases[i].reason != NULL) { /* it ran in the A/A trials: the extra work is what cannot be done */
			(void)snprintf(to->why, sizeof to->why, "%s", g->cases[i].reason);
			continue;
		}
		to->trials++;
		to->found += v != NULL && v->outcome == MEW_OUTCOME_REGRESSED;
	}
}

/* --- one trial -------------------------------------------------------------------------------------------------- */

static const char *first_failure(const struct mew_gate *g)
{
	for (size_t i = 0; i < g->ncases; i++)
		if (g->cases[i].reason != NULL)
			return g->cases[i].reason;
	for (size_t i = 0; i < g->ncases; i++)
		if (!g->cases[i].is_skipped)
			return NULL;
	return g->ncases > 0 ? g->cases[0].why : NULL;
}

/* A case that fails ends the calibration: its noise is not known. So does a trial in which all are skipped. */
static int judge(struct calibrate *k, struct mew_gate *g, double extra, size_t which)
{
	struct mew_error err;

	if (is_cancelled(k))
		return MEW_EXIT_FINE;
	if (extra == 0 && first_failure(g) != NULL) {
		mew_cli_complain("calibrate: %s", first_failure(g));
		return MEW_EXIT_INVALID;
	}
	if (mew_gate_settle(g, &err) != MEW_OK) {
		mew_cli_complain("calibrate: %s", err.text);
		return MEW_EXIT_USAGE;
	}
	if (make_series(k, g) != 0) {
		mew_cli_complain("calibrate: no memory for %zu cases", g->ncases);
		return MEW_EXIT_USAGE;
	}
	if (extra == 0)
		take_trial(k, g);
	else
		take_control(k, g, which);
	return MEW_EXIT_FINE;
}

static int trial(struct calibrate *k, double extra, size_t which)
{
	const struct mew_metric_limit limit = { "time", { .percent = 0, .has_percent = true } };
	const struct mew_rules rules = { .limits = &limit, .nlimits = 1 };
	struct mew_gate_options o = {
		.programs = { k->o->program, k->o->program },
		.select = k->o->select,
		.host = k->o->host,
		.pairs = k->o->samples,
		.rounds = k->o->rounds,
		.extra_work = extra,
		.calibration = "none",
		.seed = mew_random_split(&k->seed),
		.gbench = k->o->gbench,
		.quiet = true,
		.progress = MEW_NEVER,
	};
	struct mew_gate *g = calloc(1, sizeof *g);
	int code = MEW_EXIT_USAGE;

	mew_progress_show(&k->progress, k->c, k->o->program, (int)which, "calibrate", k->done++,
			  (size_t)k->o->trials * (1 + MEW_CALIBRATION_CONTROLS));
	if (g == NULL || mew_gate_init(g, &o, &rules) != 0) {
		mew_cli_complain("no memory for a gate");
	} else {
		mew_environment_machine(g->models[MEW_BASE]);
		code = o.gbench ? mew_gate_guests(g) : mew_gate_programs(g);
		if (code == MEW_EXIT_FINE)
			code = judge(k, g, extra, which);
	}
	if (g != NULL)
		mew_gate_fini(g);
	free(g);
	return code;
}

/* --- what all say ----------------------------------------------------------------------------------------------- */

/*
 * Of n = samples observations the median's standard error is about 1.253 s / sqrt(n), with s from the median absolute
 * deviation; an effect of (z(1 - alpha / 2) + z(power)) of these is found with that power.
 */
static double smallest_effect(struct series *s, unsigned samples)
{
	double *scratch = calloc(s->nobservations + 1, sizeof *scratch), spread;
	double z = mew_stats_normal_quantile(1 - ALPHA / 2) + mew_stats_normal_quantile(POWER);

	if (scratch == NULL)
		return (double)NAN;
	mew_stats_sort(s->observations, s->nobservations);
	spread = 1.4826 * mew_stats_mad(s->observations, s->nobservations,
					mew_stats_median_sorted(s->observations, s->nobservations), scratch);
	free(scratch);
	return expm1(z * 1.253 * spread / sqrt(samples));
}

static void conclude(struct calibrate *k)
{
	for (size_t i = 0; k->series != NULL && i < k->c->ncases; i++) {
		struct series *s = &k->series[i];

		if (s->nestimates > 0) {
			mew_stats_sort(s->estimates, s->nestimates);
			k->c->cases[i].noise_floor =
				expm1(mew_stats_quantile_sorted(s->estimates, s->nestimates, FLOOR_QUANTILE));
			k->c->cases[i].smallest_effect = smallest_effect(s, k->o->samples);
		}
		free(s->estimates);
		free(s->observations);
	}
	free(k->series);
}

int mew_calibrate(const struct mew_calibrate_options *o, struct mew_calibration *c)
{
	struct calibrate k = { .o = o, .c = c, .seed = o->seed };
	int code = MEW_EXIT_FINE;

	mew_progress_init(&k.progress, o->progress);
	/* round by round: what the machine does in these minutes falls on all alike */
	for (unsigned t = 0; t < o->trials && code == MEW_EXIT_FINE && !is_cancelled(&k); t++) {
		code = trial(&k, 0, 0);
		for (size_t i = 0; i < MEW_CALIBRATION_CONTROLS && code == MEW_EXIT_FINE && !is_cancelled(&k); i++)
			code = trial(&k, extras[i], i);
	}
	mew_progress_clear(&k.progress);
	for (size_t i = 0; i < c->ncases; i++)
		for (size_t n = 0; n < MEW_CALIBRATION_CONTROLS; n++)
			c->cases[i].controls[n].extra = extras[n];
	conclude(&k);
	return code;
}
