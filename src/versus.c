/*
 * versus.c - see versus.h. A worker runs both bodies on one thread, by the page they take turns with (duo.h).
 * Layer L4. The command's thread, which sleeps while they measure.
 */
#include "config.h"

#include "versus.h"

#include "error.h"
#include "host_internal.h"
#include "os.h"
#include "plan.h"
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_NS 60000u  /* short: two neighbours meet the same machine, and few lose the processor */
#define WARMUP_NS 1000000u
#define CALIBRATIONS 3u   /* one that lost the processor would leave a sample of one iteration, mostly the clock's */
#define CALIBRATION_NS 50000000u /* an iteration of this is the case's own time: another would cost too much */
#define ROUNDS_LEAST 4u   /* of a block: few at first, so that those that can decide come of both ways to place the stacks */
#define DOUBLINGS 3u      /* then more, since each block is a message and a set-up */

struct versus {
	const struct mew_versus_options *o;
	struct mew_host host;
	struct mew_pace *page;
	int page_fd;
	uint64_t seed;
	uint32_t items[MEW_SIDES];
	enum mew_side first;                  /* begins, and has the first stack, in this block */
	unsigned rounds;                      /* of this block */
	double each_ns[MEW_SIDES];            /* an iteration, as it was calibrated */
	uint64_t batch[MEW_SIDES];            /* iterations of a turn of the loop */
	uint64_t most[MEW_SIDES];             /* iterations beyond which a sample would take too long, if most of it is paused */
	struct mew_model *models[MEW_SIDES];  /* of the running block */
	double log_ratios[MEW_VERSUS_PAIRS / 2], ns[MEW_SIDES][MEW_VERSUS_PAIRS / 2];
	size_t n;
	struct mew_versus *out;
};

static bool is_cancelled(const struct versus *v)
{
	return v->o->host->cancelled != NULL && *v->o->host->cancelled != 0;
}

/* --- starting --------------------------------------------------------------------------------------------------- */

static int find_cases(struct versus *v, struct mew_error *err)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		const char *key = v->o->keys[side];
		size_t i = 0;

		while (i < v->host.ncases && strcmp(v->host.cases[i].key, key) != 0)
			i++;
		if (i == v->host.ncases)
			return mew_error_set(err, MEW_E_INVALID,
					     "there is no case \"%.100s\"; `mew list` shows the keys", key);
		if (v->host.cases[i].threads > 1)
			return mew_error_set(err, MEW_E_INVALID,
					     "\"%.100s\" runs on %u threads: only cases of one thread can take turns",
					     key, v->host.cases[i].threads);
		v->items[side] = (uint32_t)i;
	}
	if (v->items[MEW_BASE] == v->items[MEW_HEAD])
		return mew_error_set(err, MEW_E_INVALID, "\"%.100s\" is not compared with itself: name two cases",
				     v->o->keys[0]);
	return MEW_OK;
}

static int start(struct versus *v, struct mew_host_options *options, struct mew_error *err)
{
	int status;

	v->page = mew_pace_create(&v->page_fd);
	if (v->page == NULL)
		return mew_error_errno(err, MEW_E_NOMEM, "no page for the two cases to take turns by");
	*options = *v->o->host;
	options->inherited = v->page_fd;
	status = mew_host_open(&v->host, v->o->program, options, err);
	if (status == MEW_OK)
		status = find_cases(v, err);
	if (status == MEW_OK)
		status = mew_host_begin_pass(&v->host, MEW_PASS_TIME, err);
	return status;
}

/* --- blocks ----------------------------------------------------------------------------------------------------- */

static struct mew_request request(const struct versus *v, enum mew_side side, enum mew_phase phase)
{
	return (struct mew_request){ .item = v->items[side], .pass = MEW_PASS_TIME, .phase = (int)phase, .side = side };
}

static int renew_models(struct versus *v, struct mew_error *err)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		mew_model_free(v->models[side]);
		v->models[side] = mew_model_new();
		if (v->models[side] == NULL)
			return mew_error_set(err, MEW_E_NOMEM, "no memory for a block of samples");
	}
	return MEW_OK;
}

static const struct mew_run *last_run(const struct mew_model *m)
{
	return m->ncases > 0 && m->cases[0].nruns > 0 ? &m->cases[0].runs[m->cases[0].nruns - 1] : NULL;
}

/* One that lost the processor would make all samples too short: the fastest did not. */
static double fastest(const struct mew_run *run)
{
	double least = INFINITY;

	for (size_t i = 0; i < run->nsamples; i++)
		least = fmin(least, (double)run->real_ns[i] / (double)run->loops);
	return least;
}

static uint64_t loops_for(double each_ns, uint64_t most)
{
	return each_ns > 0 && each_ns < SAMPLE_NS ? (uint64_t)fmin(SAMPLE_NS / each_ns, (double)most) : 1;
}

/* The least of some calibrations, of which one after the other runs while they are cheap. */
static int calibrate(struct versus *v, const struct mew_driver *d, enum mew_side side, double *each_ns,
		     struct mew_error *err)
{
	struct mew_request rq = request(v, side, MEW_PHASE_CALIBRATION_LOOPS);
	int status = MEW_OK;

	*each_ns = INFINITY;
	rq.plan = (struct mew_block_plan){ .target_ns = SAMPLE_NS, .max_samples = 64 };
	for (unsigned i = 0; i < CALIBRATIONS && status == MEW_OK && (i == 0 || *each_ns < CALIBRATION_NS); i++) {
		const struct mew_run *run;

		status = renew_models(v, err);
		if (status == MEW_OK)
			status = d->run(d->data, &rq, v->models[side], err);
		if (status == MEW_OK && (run = last_run(v->models[side])) != NULL) {
			*each_ns = fmin(*each_ns, fastest(run));
			v->batch[side] = v->models[side]->cases[0].runs[0].loops; /* it was asked for one iteration */
			if (v->most[side] < 4 * run->loops) /* it would have ended before if they took long */
				v->most[side] = 4 * run->loops;
		}
	}
	return status;
}

/* Calibrate and warm up a case by itself; the time of an iteration is returned. */
static int prepare(struct versus *v, enum mew_side side, double *each_ns, struct mew_error *err)
{
	struct mew_driver d = mew_host_driver(&v->host);
	struct mew_request rq = request(v, side, MEW_PHASE_MEASUREMENT_WARMUP);
	const struct mew_run *run;
	int status = d.open(d.data, rq.item, MEW_PASS_TIME, err);

	if (status == MEW_OK)
		status = calibrate(v, &d, side, each_ns, err);
	if (status != MEW_OK)
		return status;
	rq.plan = (struct mew_block_plan){ .loops = loops_for(*each_ns, v->most[side]), .min_samples = 1,
					   .max_samples = 4096, .min_ns = WARMUP_NS, .max_ns = WARMUP_NS };
	status = renew_models(v, err);
	if (status == MEW_OK)
		status = d.run(d.data, &rq, v->models[side], err);
	if (status == MEW_OK && (run = last_run(v->models[side])) != NULL)
		*each_ns = fmin(*each_ns, fastest(run));
	return status;
}

/* Two blocks of a size, which begin with one side and with the other, then larger ones, as far as the time goes. */
static unsigned rounds_of(const struct versus *v, double left_s)
{
	double round_s = 0;
	unsigned rounds = ROUNDS_LEAST << (v->out->blocks / 2 < DOUBLINGS ? v->out->blocks / 2 : DOUBLINGS);

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		round_s += v->each_ns[side] * (double)v->out->loops[side] / 1e9;
	while (rounds > ROUNDS_LEAST && (double)rounds * round_s > left_s)
		rounds /= 2;
	return rounds;
}

/*
 * Equal iterations where the cases are near each other, as far as their batches have them: then the few nanoseconds of
 * a sample's own fall out.
 */
static void choose_loops(struct versus *v)
{
	uint64_t *loops = v->out->loops;
	const double *each_ns = v->each_ns;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		loops[side] = mew_whole_turns(loops_for(each_ns[side], v->most[side]), v->batch[side]);
	if (each_ns[MEW_HEAD] >= 2 * each_ns[MEW_BASE] || each_ns[MEW_BASE] >= 2 * each_ns[MEW_HEAD])
		return;
	loops[MEW_HEAD] = mew_whole_turns(loops[MEW_BASE], v->batch[MEW_HEAD]);
	loops[MEW_BASE] = mew_whole_turns(loops[MEW_HEAD], v->batch[MEW_BASE]);
}

static int run_block(struct versus *v, double left_s, struct mew_error *err)
{
	struct mew_host *h = &v->host;
	struct mew_error other;
	int status;

	v->rounds = rounds_of(v, left_s);
	mew_pace_plan(v->page, v->rounds, &v->seed);
	v->first = v->out->blocks % 2 != 0 ? !v->first : mew_pace_coin(&v->seed) ? MEW_HEAD : MEW_BASE;
	mew_wire_reset(&h->out);
	for (int i = 0; i < MEW_SIDES; i++) {
		enum mew_side side = i == 0 ? v->first : !v->first;
		struct mew_request rq = request(v, side, MEW_PHASE_MEASUREMENT_VALUE);
		uint64_t loops = v->out->loops[side];

		rq.pace_fd = v->page_fd;
		rq.plan = (struct mew_block_plan){ .loops = loops, .exact = loops * v->rounds,
						   .max_samples = v->rounds };
		mew_wire_put_request(&h->out, &rq);
	}
	status = mew_host_send(h, MEW_MSG_BOTH, err);
	mew_error_clear(&other);
	for (int i = 0; i < MEW_SIDES && h->pid > 0; i++) {
		enum mew_side side = i == 0 ? v->first : !v->first;
		struct mew_error *into = status == MEW_OK ? err : &other;
		int got = mew_host_answer(h, MEW_MSG_DONE, mew_host_deadline(h), into);

		got = mew_host_take_block(h, v->items[side], got, v->models[side], into);
		if (status == MEW_OK)
			status = got;
	}
	v->out->blocks++;
	return status;
}

/* --- what they say ---------------------------------------------------------------------------------------------- */

static int take_pair(struct versus *v, const struct mew_run *const runs[MEW_SIDES], unsigned i, struct mew_error *err)
{
	struct mew_versus_pair *p = &v->out->pairs[v->out->npairs++];

	*p = (struct mew_versus_pair){
		.block = v->out->blocks - 1,
		.head_first = v->page->owner[2 * i] == MEW_HEAD,
		.disturbed = v->page->disturbed[2 * i] != 0 || v->page->disturbed[2 * i + 1] != 0,
	};
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		p->ns[side] = runs[side]->real_ns[i];
		if (p->ns[side] == 0)
			return mew_error_set(err, MEW_E_LOST, "a sample took no time that the clock can see");
	}
	return MEW_OK;
}

static double log_of(const struct versus *v, const struct mew_versus_pair *p)
{
	return log((double)p->ns[MEW_HEAD] / (double)v->out->loops[MEW_HEAD] /
		   ((double)p->ns[MEW_BASE] / (double)v->out->loops[MEW_BASE]));
}

/*
 * The last two pairs are one observation. One coin gives both their order, so both signs turn with it: as observations
 * of their own they would tell equal cases apart in one of ten runs, where a neighbour's noise lasts for two samples.
 */
static void observe(struct versus *v)
{
	const struct mew_versus_pair *p = &v->out->pairs[v->out->npairs - 2];

	if (p[0].disturbed || p[1].disturbed) {
		v->out->disturbed++;
		return;
	}
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		v->ns[side][v->n] = (double)(p[0].ns[side] + p[1].ns[side]) / 2 / (double)v->out->loops[side];
	v->log_ratios[v->n++] = (log_of(v, &p[0]) + log_of(v, &p[1])) / 2;
}

static int take_block(struct versus *v, struct mew_error *err)
{
	const struct mew_run *runs[MEW_SIDES];
	int status = MEW_OK;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		runs[side] = last_run(v->models[side]);
		if (runs[side] == NULL || runs[side]->nsamples < v->rounds || runs[side]->loops != v->out->loops[side])
			return mew_error_set(err, MEW_E_LOST, "\"%.100s\" did not give its samples", v->o->keys[side]);
	}
	for (unsigned i = 0; i + 1 < v->rounds && v->out->npairs + 2 <= MEW_VERSUS_PAIRS && status == MEW_OK; i += 2) {
		status = take_pair(v, runs, i, err);
		if (status == MEW_OK)
			status = take_pair(v, runs, i + 1, err);
		if (status == MEW_OK)
			observe(v);
	}
	return status;
}

static int judge(struct versus *v, struct mew_error *err)
{
	const struct mew_metric_limit zero = { "time", { .percent = 0, .has_percent = true } };
	const struct mew_rules rules = { .sequential = true, .limits = &zero, .nlimits = 1 };
	const struct mew_observations of = { .log_ratios = v->log_ratios, .n = v->n };

	return mew_verdict_time(&rules, v->o->keys[MEW_HEAD], &of, &v->out->verdict, err);
}

static bool is_decided(const struct mew_versus *out)
{
	return out->verdict.outcome == MEW_OUTCOME_REGRESSED || out->verdict.outcome == MEW_OUTCOME_IMPROVED;
}

static int measure(struct versus *v, struct mew_error *err)
{
	uint64_t start_ns;
	int status = renew_models(v, err);

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++)
		status = prepare(v, side, &v->each_ns[side], err);
	choose_loops(v);
	start_ns = mew_os_now_ns();
	while (status == MEW_OK && v->out->npairs < MEW_VERSUS_PAIRS && !is_decided(v->out)) {
		double left_s = v->o->max_time - (double)(mew_os_now_ns() - start_ns) / 1e9;

		if (v->out->blocks > 0 && left_s <= 0)
			break;
		if (is_cancelled(v))
			return mew_error_set(err, MEW_E_BUSY, "interrupted");
		status = renew_models(v, err);
		if (status == MEW_OK)
			status = run_block(v, left_s, err);
		if (status == MEW_OK)
			status = take_block(v, err);
		if (status == MEW_OK)
			status = judge(v, err);
	}
	return status;
}

/* Both bodies print into the one file of their process, and the row of the one that failed took what is in it. */
static void add_output(struct versus *v, struct mew_error *err)
{
	const struct mew_model *with = NULL;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (v->models[side] != NULL && v->models[side]->ncases > 0 && v->models[side]->cases[0].output != NULL)
			with = v->models[side];
	mew_host_add_output(&v->host, with, err);
}

int mew_versus(const struct mew_versus_options *o, struct mew_versus *out, struct mew_error *err)
{
	struct versus *v = calloc(1, sizeof *v);
	struct mew_host_options options;
	uint64_t start_ns = mew_os_now_ns();
	int status;

	*out = (struct mew_versus){ .seed = o->seed, .pairs = calloc(MEW_VERSUS_PAIRS, sizeof *out->pairs) };
	if (v == NULL || out->pairs == NULL) {
		free(v);
		return mew_error_set(err, MEW_E_NOMEM, "no memory to compare two cases");
	}
	v->o = o;
	v->out = out;
	v->seed = o->seed;
	v->host = (struct mew_host){ .fd = -1, .output_fd = -1 };
	status = start(v, &options, err);
	if (status == MEW_OK) {
		status = measure(v, err);
		if (status != MEW_OK)
			add_output(v, err);
	}
	out->seconds = (double)(mew_os_now_ns() - start_ns) / 1e9;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		out->ns[side] = mew_stats_median(v->ns[side], v->n);
		mew_model_free(v->models[side]);
	}
	if (v->page != NULL) {
		mew_host_close(&v->host);
		mew_pace_unmap(v->page);
		(void)close(v->page_fd);
	}
	free(v);
	return status;
}

void mew_versus_free(struct mew_versus *v)
{
	free(v->pairs);
	v->pairs = NULL;
	v->npairs = 0;
}
