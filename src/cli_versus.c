/*
 * cli_versus.c - see cli_versus.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "cli_versus.h"

#include "emit.h"
#include "versus.h"
#include "writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static bool writes_only_json(const struct mew_cli *c)
{
	for (size_t i = 0; i < c->noutputs; i++)
		if (strcmp(c->outputs[i].report->name, "json") != 0)
			return false;
	return true;
}

static int check(const struct mew_cli *c)
{
	const char *wrong = NULL;

	if (c->nprograms != 1)
		wrong = "takes one program: `mew run --versus KEY_A KEY_B ./bench`";
	else if (c->gbench)
		wrong = "is for programs of mew: leave out --gbench-program";
	else if (c->passes[MEW_PASS_MEMORY] || c->passes[MEW_PASS_CPU] || !writes_only_json(c) || c->trace.file != NULL)
		wrong = "compares time alone and has one report: leave out passes, reports but --json, and --trace";
	else if (c->plan.dry_run || c->plan.latency || c->plan.repetitions > 1 || c->plan.processes > 1)
		wrong = "takes its samples in pairs: leave out --dry-run, --latency, --repetitions and --processes";
	else if (c->host.nhooks > 0)
		wrong = "runs both cases at once, where hooks cannot tell them apart: leave out --hook";
	if (wrong == NULL)
		return MEW_EXIT_FINE;
	mew_cli_complain("--versus %s", wrong);
	return MEW_EXIT_USAGE;
}

/* --- JSON -------------------------------------------------------------------------------------------------------
 *
 * schema_version, kind ("versus"), mew, program, seed, seconds, verdict (mew_outcome_name), ratio
 * (head / base), ratio_low, ratio_high, observations, least_observations, p_worse, p_better,
 * disturbed, base and head {key, loops, median_ns}, pairs [{block, base_ns, head_ns, head_first, disturbed}]: all of
 * them in the order in which they were taken; _ns of a pair is the whole sample of `loops` iterations. Two pairs are an
 * observation.
 */

#define SCHEMA 1u

static void put_verdict(struct mew_json *j, const struct mew_verdict *t)
{
	mew_json_put_text(j, "verdict", mew_outcome_name(t->outcome));
	mew_json_put_f64(j, "ratio", t->ratio);
	if (t->has_interval) {
		mew_json_put_f64(j, "ratio_low", t->interval.low);
		mew_json_put_f64(j, "ratio_high", t->interval.high);
	}
	mew_json_put_u64(j, "observations", t->n);
	mew_json_put_u64(j, "least_observations", t->least);
	mew_json_put_f64(j, "p_worse", t->p_worse);
	mew_json_put_f64(j, "p_better", t->p_better);
}

static void put_sides(struct mew_json *j, const struct mew_cli *c, const struct mew_versus *v)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		mew_json_key(j, side == MEW_BASE ? "base" : "head");
		mew_json_object(j);
		mew_json_put_text(j, "key", c->versus[side]);
		mew_json_put_u64(j, "loops", v->loops[side]);
		mew_json_put_f64(j, "median_ns", v->ns[side]);
		mew_json_object_end(j);
	}
}

static void put_pairs(struct mew_json *j, const struct mew_versus *v)
{
	mew_json_key(j, "pairs");
	mew_json_array(j);
	for (size_t i = 0; i < v->npairs; i++) {
		const struct mew_versus_pair *p = &v->pairs[i];

		mew_json_object(j);
		mew_json_put_u64(j, "block", p->block);
		mew_json_put_u64(j, "base_ns", p->ns[MEW_BASE]);
		mew_json_put_u64(j, "head_ns", p->ns[MEW_HEAD]);
		mew_json_put_bool(j, "head_first", p->head_first);
		mew_json_put_bool(j, "disturbed", p->disturbed);
		mew_json_object_end(j);
	}
	mew_json_array_end(j);
}

struct written {
	const struct mew_cli *c;
	const struct mew_versus *v;
};

static int write_json(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct written *of = data;
	struct mew_json j;

	(void)err;
	mew_json_init(&j, w, 2);
	mew_json_object(&j);
	mew_json_put_u64(&j, "schema_version", SCHEMA);
	mew_json_put_text(&j, "kind", "versus");
	mew_json_put_text(&j, "mew", mew_version());
	mew_json_put_text(&j, "program", of->c->programs[0]);
	mew_json_put_u64(&j, "seed", of->v->seed);
	mew_json_put_f64(&j, "seconds", of->v->seconds);
	put_verdict(&j, &of->v->verdict);
	mew_json_put_u64(&j, "disturbed", of->v->disturbed);
	put_sides(&j, of->c, of->v);
	put_pairs(&j, of->v);
	mew_json_object_end(&j);
	mew_write_char(w, '\n');
	return MEW_OK;
}

static int write_files(const struct mew_cli *c, const struct mew_versus *v)
{
	struct written of = { c, v };
	int code = MEW_EXIT_FINE;

	for (size_t i = 0; i < c->noutputs; i++) {
		const char *path = c->outputs[i].path;
		struct mew_error err;

		if (mew_write_file(path, write_json, &of, &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			code = MEW_EXIT_USAGE;
		} else if (!c->quiet && strcmp(path, "-") != 0) {
			(void)fprintf(stderr, "wrote %s\n", path);
		}
	}
	return code;
}

/* --- for people ------------------------------------------------------------------------------------------------- */

static void print(const struct mew_cli *c, const struct mew_versus *v)
{
	const struct mew_verdict *t = &v->verdict;
	double percent = (t->ratio - 1) * 100;

	if (t->outcome == MEW_OUTCOME_REGRESSED || t->outcome == MEW_OUTCOME_IMPROVED)
		(void)printf("%s is %s than %s by %.2f %%", c->versus[MEW_HEAD], percent > 0 ? "slower" : "faster",
			     c->versus[MEW_BASE], fabs(percent));
	else
		(void)printf("no difference resolved between %s and %s: %+.2f %%", c->versus[MEW_HEAD],
			     c->versus[MEW_BASE], percent);
	if (t->has_interval)
		(void)printf(" (%+.2f to %+.2f)", (t->interval.low - 1) * 100, (t->interval.high - 1) * 100);
	(void)printf("\n");
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		(void)printf("  %.4g ns an iteration of %s\n", v->ns[side], c->versus[side]);
	(void)printf("  %zu observations of four samples each, %u disturbed ones left out\n", t->n, v->disturbed);
	(void)printf("  %.3f s, seed %llu\n", v->seconds, (unsigned long long)v->seed);
	(void)printf("  true of this build alone: linked anew, the two may lie otherwise in memory\n");
}

static int show(const struct mew_cli *c, const struct mew_versus *v)
{
	int code;

	if (v->verdict.n == 0) {
		mew_cli_complain("--versus: every sample lost the processor: quieten the machine, or give more "
				 "--max-time");
		return MEW_EXIT_INVALID;
	}
	if (mew_cli_wants_tables(c))
		print(c, v);
	code = write_files(c, v);
	if (code != MEW_EXIT_FINE)
		return code;
	return v->verdict.outcome == MEW_OUTCOME_INCONCLUSIVE ? MEW_EXIT_INCONCLUSIVE : MEW_EXIT_FINE;
}

static int code_of(int status)
{
	switch (status) {
	case MEW_E_BUSY:
	case MEW_E_LOST:
		return MEW_EXIT_INVALID;
	case MEW_E_INVALID:
	case MEW_E_IO:
	case MEW_E_NOMEM:
	case MEW_E_DENIED:
		return MEW_EXIT_USAGE;
	default:
		return MEW_EXIT_FAILED;
	}
}

static uint64_t random_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
		seed = (uint64_t)time(NULL);
	return seed >> 11; /* it must pass through JSON's numbers, which may be doubles */
}

int mew_cli_versus(const struct mew_cli *c)
{
	struct mew_versus_options o = {
		.keys = { c->versus[MEW_BASE], c->versus[MEW_HEAD] },
		.host = &c->host,
		.max_time = c->plan.max_time > 0 ? c->plan.max_time : 0.5,
		.seed = c->seed_given ? c->seed : random_seed(),
	};
	struct mew_versus v;
	struct mew_error err;
	int status, code;

	if (check(c) != MEW_EXIT_FINE || mew_cli_check_outputs(c) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	o.program = c->programs[0];
	status = mew_versus(&o, &v, &err);
	if (status != MEW_OK) {
		mew_cli_complain("--versus: %s", err.text);
		code = code_of(status);
	} else {
		code = show(c, &v);
	}
	mew_versus_free(&v);
	return code;
}
