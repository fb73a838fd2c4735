/*
 * gate_programs.c - a gate of benchmark programs: exact figures of both sides, then pairs of fresh processes until every
 * case is decided or the time is up.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "cli.h"
#include "cli_trace.h"
#include "error.h"
#include "os.h"
#include "plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SAMPLE_NS 100000u          /* short: two adjacent samples meet the same machine */
#define SAMPLE_THREADED_NS 2000000u
#define WARMUP_NS 400000u

struct programs {
	struct mew_gate *g;
	struct mew_pair pair;
	struct mew_pair contexts[MEW_GATE_CONTEXTS]; /* the base again, and a context */
	struct stat files[MEW_SIDES];
	struct mew_pair_observation scratch;
	struct mew_progress progress;
	uint64_t start_ns, longest_ns; /* longest sweep over the undecided cases */
};

/* --- which cases ------------------------------------------------------------------------------------------------ */

static int find_case(const struct mew_host *h, const char *key, uint32_t *item)
{
	for (size_t i = 0; i < h->ncases; i++)
		if (strcmp(h->cases[i].key, key) == 0) {
			*item = (uint32_t)i;
			return 0;
		}
	return -1;
}

static int add_case(struct programs *p, const struct mew_host_case *from, enum mew_side side)
{
	const struct mew_host *other = &p->pair.host[!side];
	struct mew_gate_case *c;
	uint32_t item = 0, twin = 0;

	if (!mew_select_matches(p->g->options->select, from->key, from->label, from->tags))
		return 0;
	if (find_case(other, from->key, &twin) == 0 && side == MEW_HEAD)
		return 0; /* it came with the base */
	c = mew_gate_add(p->g, from->key, from->label);
	if (c == NULL)
		return -1;
	(void)find_case(&p->pair.host[side], from->key, &item);
	if (find_case(other, from->key, &twin) != 0) {
		mew_gate_fail(c, "only %s has it, so there is nothing to compare: choose the common cases by -k or -t",
			      mew_side_name(side));
		return 0;
	}
	c->pair = (struct mew_pair_case){ .key = c->key, .item = { item, twin }, .threads = from->threads };
	if (other->cases[twin].threads != from->threads)
		mew_gate_fail(c, "base runs it on %u threads, head on %u: that is other work", from->threads,
			      other->cases[twin].threads);
	return 0;
}

static int choose_cases(struct programs *p)
{
	size_t all = 0;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		all += p->pair.host[side].ncases;
		for (size_t i = 0; i < p->pair.host[side].ncases; i++)
			if (add_case(p, &p->pair.host[side].cases[i], side) != 0) {
				mew_cli_complain("no memory for the cases");
				return MEW_EXIT_USAGE;
			}
	}
	for (size_t i = 0; i < p->g->ncases; i++) /* the array has moved while it grew; the keys have not */
		p->g->cases[i].pair.key = p->g->cases[i].key;
	for (size_t i = 0; i < p->g->ncases; i++) {
		struct mew_error err;

		if (mew_gate_continue(p->g, &p->g->cases[i], &err) != MEW_OK) {
			mew_cli_complain("%s", err.text);
			return MEW_EXIT_INVALID;
		}
	}
	if (p->g->ncases > 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("none of the %zu cases matches -k, -F and -t; `mew list` shows them", all);
	return MEW_EXIT_INVALID;
}

/* --- identity --------------------------------------------------------------------------------------------------- */

static void look_at_files(struct programs *p, struct stat files[MEW_SIDES])
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (stat(p->g->options->programs[side], &files[side]) != 0)
			files[side] = (struct stat){ 0 };
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void check_identity(struct programs *p)
{
	struct stat now[MEW_SIDES];

	look_at_files(p, now);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (!same_file(&p->files[side], &now[side]))
			(void)snprintf(p->g->identity, sizeof p->g->identity,
				       "%s was replaced while it was measured: %.150s", mew_side_name(side),
				       p->g->options->programs[side]);
}

static void take_facts(struct programs *p)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		const struct mew_model *facts = p->pair.host[side].facts;

		for (size_t i = 0; facts != NULL && i < facts->nfacts; i++)
			(void)mew_model_add_fact(p->g->models[side], facts->facts[i].name, facts->facts[i].value);
	}
}

/* --- exact figures ---------------------------------------------------------------------------------------------- */

static struct mew_plan_case plan_case(const struct mew_gate_case *c, const struct mew_host *h, enum mew_side side)
{
	const struct mew_host_case *from = &h->cases[c->pair.item[side]];

	return (struct mew_plan_case){
		.item = c->pair.item[side],
		.key = c->key,
		.label = from->label,
		.tags = from->tags,
		.threads = from->threads,
		.iterations = from->iterations,
	};
}

/* A case that fails here fails the gate; where the figures cannot be had at all, time is judged alone. */
static void exact_pass(struct programs *p, enum mew_side side)
{
	struct mew_gate *g = p->g;
	struct mew_plan_case *cases = calloc(g->ncases + 1, sizeof *cases);
	struct mew_driver d = mew_host_driver(&p->pair.host[side]);
	struct mew_plan_options o;
	struct mew_error err;
	size_t n = 0;

	mew_plan_defaults(&o);
	o.memory_iterations = g->options->memory_iterations;
	o.stacks = false;
	for (size_t i = 0; cases != NULL && i < g->ncases; i++)
		if (g->cases[i].reason == NULL)
			cases[n++] = plan_case(&g->cases[i], &p->pair.host[side], side);
	if (cases != NULL && mew_host_begin_pass(&p->pair.host[side], MEW_PASS_MEMORY, &err) == MEW_OK)
		(void)mew_plan_run(&d, cases, n, MEW_PASS_MEMORY, &o, g->models[side], &err);
	free(cases);
	for (size_t i = 0; i < g->ncases; i++) {
		struct mew_case *row = mew_model_case(g->models[side], g->cases[i].key, NULL);

		if (row == NULL || (row->kinds >> MEW_KIND_MEMORY & 1) == 0)
			continue;
		if (row->memory.status == MEW_E_BODY || row->memory.status == MEW_E_LOOP || row->memory.status == MEW_E_LOST)
			mew_gate_fail(&g->cases[i], "%s, counting allocations: %s", mew_side_name(side), row->memory.reason);
	}
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static bool is_cancelled(const struct programs *p)
{
	return p->g->options->host.cancelled != NULL && *p->g->options->host.cancelled != 0;
}

static size_t undecided(const struct mew_gate *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->ncases; i++)
		n += g->cases[i].stage != MEW_GATE_DECIDED && g->cases[i].series.n < g->options->pairs;
	return n;
}

#define CONTROL_NS 5000000u /* longest sample of a control */

/* Iterations that are so much of a sample; one sample must have enough of them for that. */
static int add_work(struct mew_pair_case *c, uint64_t target_ns, double extra, struct mew_error *err)
{
	uint64_t least = (uint64_t)ceil(1 / extra);

	if (c->loops < least && target_ns / c->loops * least > CONTROL_NS)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "one iteration is more than %g %% of the longest sample", extra * 100);
	if (c->loops < least)
		c->loops = least;
	c->extra = (uint64_t)((double)c->loops * extra + 0.5);
	return MEW_OK;
}

static int observe(struct programs *p, struct mew_pair *pair, struct mew_gate_case *c, struct mew_gate_series *into, bool context)
{
	uint64_t target = c->pair.threads > 1 ? SAMPLE_THREADED_NS : SAMPLE_NS;
	struct mew_pair_observation *got = &p->scratch;
	struct mew_gate_observation o;
	struct mew_error err;
	bool is_new = c->pair.loops == 0;
	int status = is_new ? mew_pair_calibrate(pair, &c->pair, target, &err) : MEW_OK;

	if (status == MEW_OK && is_new && p->g->options->extra_work > 0)
		status = add_work(&c->pair, target, p->g->options->extra_work, &err);
	if (status == MEW_OK)
		status = mew_pair_observe(pair, &c->pair, p->g->options->rounds, WARMUP_NS, got, &err);
	if (status != MEW_OK) {
		if (!is_cancelled(p))
			mew_gate_fail(c, "%s", err.text);
		return status;
	}
	o = (struct mew_gate_observation){
		.log_ratio = got->log_ratio,
		.ns = { got->ns[MEW_BASE], got->ns[MEW_HEAD] },
		.loops = got->loops,
		.rounds = got->nrounds,
		.disturbed = got->disturbed,
		.ties = got->ties,
		.cpu = got->cpu,
		.context = context,
	};
	if (mew_gate_observe(into, &o) == 0)
		return MEW_OK;
	mew_gate_fail(c, "no memory for its observations");
	return MEW_E_NOMEM;
}

static void trace_case(const struct mew_gate_case *c, uint64_t start_ns)
{
	static const char *const stages[] = { "looking", "confirming", "decided" };
	struct mew_trace_args args = { 0 };

	mew_trace_arg_text(&args, "label", c->label);
	mew_trace_arg_number(&args, "observations", c->series.n);
	mew_trace_arg_text(&args, "state", c->reason != NULL ? "failed" : stages[c->stage]);
	mew_trace_arg_text(&args, "reason", c->reason);
	mew_cli_trace_since(start_ns, "case", c->key, &args);
}

/* One pair of fresh processes for all cases that are not decided. Returns a status that ends the gate. */
static int sweep(struct programs *p, struct mew_error *err)
{
	struct mew_gate *g = p->g;
	uint64_t start = mew_os_now_ns();
	int status = mew_pair_fresh(&p->pair, err);

	for (size_t i = 0; i < g->ncases && status == MEW_OK && !is_cancelled(p); i++) {
		struct mew_gate_case *c = &g->cases[i];
		uint64_t case_start = mew_os_now_ns();

		if (c->stage == MEW_GATE_DECIDED || c->series.n >= g->options->pairs)
			continue;
		mew_progress_show(&p->progress, c, c->key, 0, "gate", c->series.n, g->options->pairs);
		if (observe(p, &p->pair, c, &c->series, false) == MEW_OK)
			status = mew_gate_look(g, c, g->ncases, err);
		trace_case(c, case_start);
	}
	g->processes++;
	mew_cli_trace_since(start, "repetition", "pair of processes", NULL);
	mew_cli_trace_tick();
	return status;
}

static bool has_time(struct programs *p)
{
	uint64_t now = mew_os_now_ns();
	double left = p->g->options->budget - (double)(now - p->start_ns) / 1e9;

	if (p->g->options->budget == 0 || left >= (double)p->longest_ns / 1e9)
		return true;
	p->g->out_of_time = true;
	return false;
}

static int take_time(struct programs *p, struct mew_error *err)
{
	int status = MEW_OK;

	p->start_ns = mew_os_now_ns();
	while (status == MEW_OK && !is_cancelled(p) && undecided(p->g) > 0 && has_time(p)) {
		uint64_t before = mew_os_now_ns(), took;

		status = sweep(p, err);
		took = mew_os_now_ns() - before;
		if (took > p->longest_ns)
			p->longest_ns = took;
		if (status == MEW_OK)
			status = mew_gate_write_samples(p->g, err);
	}
	p->g->seconds = (double)(mew_os_now_ns() - p->start_ns) / 1e9;
	p->g->interrupted = is_cancelled(p);
	return status;
}

/* --- context ---------------------------------------------------------------------------------------------------- */

#define CONTEXT_PAIRS 8u /* enough for an interval */

static int context_case(const struct mew_pair *pair, struct mew_gate_case *c, struct mew_gate_case *out)
{
	*out = *c;
	return find_case(&pair->host[MEW_HEAD], c->key, &out->pair.item[MEW_HEAD]);
}

/* Shown and never judged: what fails here is left out. */
static void take_context(struct programs *p, size_t k)
{
	const struct mew_gate_context *context = &p->g->options->contexts[k];
	const char *const programs[MEW_SIDES] = { p->g->options->programs[MEW_BASE], context->program };
	struct mew_pair *pair = &p->contexts[k];
	struct mew_error err;

	if (mew_pair_open(pair, programs, &p->g->options->host, p->g->options->seed, &err) != MEW_OK) {
		mew_cli_complain("context %s: %s", context->name, err.text);
		return;
	}
	for (unsigned n = 0; n < CONTEXT_PAIRS && !is_cancelled(p) && mew_pair_fresh(pair, &err) == MEW_OK; n++)
		for (size_t i = 0; i < p->g->ncases; i++) {
			struct mew_gate_case twin;

			if (p->g->cases[i].reason == NULL && context_case(pair, &p->g->cases[i], &twin) == 0) {
				(void)observe(p, pair, &twin, &p->g->cases[i].contexts[k], true);
				if (twin.reason != NULL)
					free(twin.reason);
			}
		}
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static int measure(struct programs *p)
{
	struct mew_gate *g = p->g;
	struct mew_error err;
	int code = choose_cases(p);

	if (code != MEW_EXIT_FINE)
		return code;
	take_facts(p);
	code = mew_calibration_apply(g);
	if (code != MEW_EXIT_FINE)
		return code;
	look_at_files(p, p->files);
	if (g->options->memory_iterations > 0)
		for (enum mew_side side = MEW_BASE; side < MEW_SIDES && !is_cancelled(p); side++)
			exact_pass(p, side);
	if (take_time(p, &err) != MEW_OK && !g->interrupted) {
		mew_progress_clear(&p->progress);
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	for (size_t k = 0; k < g->options->ncontexts && !g->interrupted; k++)
		take_context(p, k);
	check_identity(p);
	return MEW_EXIT_FINE;
}

int mew_gate_programs(struct mew_gate *g)
{
	struct programs *p = calloc(1, sizeof *p);
	struct mew_error err;
	int code;

	if (p == NULL) {
		mew_cli_complain("no memory for the gate");
		return MEW_EXIT_USAGE;
	}
	p->g = g;
	mew_progress_init(&p->progress, g->options->progress);
	if (mew_pair_open(&p->pair, g->options->programs, &g->options->host, g->options->seed, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		code = MEW_EXIT_USAGE;
	} else {
		code = measure(p);
	}
	mew_progress_clear(&p->progress);
	mew_pair_close(&p->pair);
	for (size_t k = 0; k < g->options->ncontexts; k++)
		mew_pair_close(&p->contexts[k]);
	free(p);
	return code;
}
