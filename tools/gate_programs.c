/*
 * gate_programs.c - a gate of benchmark programs: exact figures of both sides, then pairs of fresh processes until
 * every case is decided or the time is up.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate.h"

#include "cli.h"
#include "error.h"
#include "gate_time.h"
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

static const char *text_of(const char *text)
{
	return text != NULL ? text : "";
}

static void check_work(struct mew_gate_case *c, const struct mew_host_case *base, const struct mew_host_case *head)
{
	if (strcmp(text_of(base->label), text_of(head->label)) != 0)
		mew_gate_fail(c, "base runs it as \"%.60s\", head as \"%.60s\": that is other work",
			      text_of(base->label), text_of(head->label));
	if (base->threads != head->threads)
		mew_gate_fail(c, "base runs it on %u threads, head on %u: that is other work", base->threads,
			      head->threads);
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
	check_work(c, from, &other->cases[twin]);
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

/* Are both still the files that they were? Otherwise g->identity says which is not. */
static bool check_identity(struct programs *p)
{
	struct stat now[MEW_SIDES];

	look_at_files(p, now);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (!same_file(&p->files[side], &now[side]))
			(void)snprintf(p->g->identity, sizeof p->g->identity,
				       "%s was replaced while it was measured: %.150s", mew_side_name(side),
				       p->g->options->programs[side]);
	return p->g->identity[0] == '\0';
}

static void take_facts(struct programs *p)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		mew_model_take_facts(p->g->models[side], p->pair.host[side].facts);
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

/* Where the figures cannot be had at all, time is judged alone, and the reports say why. */
static void exact_pass(void *data, enum mew_side side, bool again)
{
	struct programs *p = data;
	struct mew_gate *g = p->g;
	struct mew_model *into = again ? g->recounts[side] : g->models[side];
	struct mew_plan_case *cases = calloc(g->ncases + 1, sizeof *cases);
	struct mew_driver d = mew_host_driver(&p->pair.host[side]);
	struct mew_plan_options o;
	struct mew_error err = { .text = "no memory for the cases" };
	int status = MEW_E_NOMEM;
	size_t n = 0;

	mew_plan_defaults(&o);
	o.memory_iterations = g->options->memory_iterations;
	o.stacks = false;
	for (size_t i = 0; cases != NULL && i < g->ncases; i++)
		if (g->cases[i].reason == NULL && (!again || mew_gate_wants_recount(g, &g->cases[i])))
			cases[n++] = plan_case(&g->cases[i], &p->pair.host[side], side);
	if (cases != NULL)
		status = mew_host_begin_pass(&p->pair.host[side], MEW_PASS_MEMORY, &err);
	if (status == MEW_OK)
		status = mew_plan_run(&d, cases, n, MEW_PASS_MEMORY, &o, into, &err);
	if (status != MEW_OK)
		(void)snprintf(g->uncounted, sizeof g->uncounted, "%.230s", err.text);
	free(cases);
	mew_gate_check_exact(g, into, side);
}

/* --- time ------------------------------------------------------------------------------------------------------- */

static int observe(const struct programs *p, struct mew_pair *pair, struct mew_pair_case *c,
		   struct mew_pair_observation *got, struct mew_gate_observation *out, struct mew_error *err)
{
	uint64_t target = c->threads > 1 ? SAMPLE_THREADED_NS : SAMPLE_NS;
	bool is_new = c->loops == 0;
	int status = is_new ? mew_pair_calibrate(pair, c, target, err) : MEW_OK;

	if (status == MEW_OK && is_new && p->g->options->extra_work > 0)
		status = mew_pair_add_work(c, (double)target, p->g->options->extra_work, err);
	if (status == MEW_OK)
		status = mew_pair_observe(pair, c, p->g->options->rounds, WARMUP_NS, got, err);
	if (status == MEW_OK)
		*out = mew_gate_observation_of(got);
	return status;
}

static int observe_case(void *data, struct mew_gate_case *c, struct mew_gate_observation *out, struct mew_error *err)
{
	struct programs *p = data;

	return observe(p, &p->pair, &c->pair, &p->scratch, out, err);
}

static bool skips(void *data, struct mew_gate_case *c)
{
	struct programs *p = data;

	return mew_pair_skips(&p->pair, &c->pair);
}

/* What was replaced is another program: nothing of it is measured. */
static int start_fresh(void *data, struct mew_error *err)
{
	struct programs *p = data;
	int status;

	if (!check_identity(p))
		return mew_error_set(err, MEW_E_INVALID, "%s", p->g->identity);
	status = mew_pair_fresh(&p->pair, err);
	if (status != MEW_OK) /* a file that is being written cannot be run: that is the better reason */
		(void)check_identity(p);
	return status;
}

/* --- context ---------------------------------------------------------------------------------------------------- */

#define CONTEXT_PAIRS 8u /* enough for an interval */

/* A case of the context's program, next to the base's. */
static bool context_case(const struct mew_pair *pair, const struct mew_gate_case *c, struct mew_pair_case *out)
{
	*out = c->pair;
	return find_case(&pair->host[MEW_HEAD], c->key, &out->item[MEW_HEAD]) == 0;
}

/* Shown and never judged: a case that fails here is left out from then on. */
static void observe_context(struct programs *p, size_t k, struct mew_gate_case *c)
{
	struct mew_gate_observation o;
	struct mew_pair_case twin;
	struct mew_error err;

	if (c->reason != NULL || c->is_skipped || c->lost[k] || !context_case(&p->contexts[k], c, &twin))
		return;
	if (observe(p, &p->contexts[k], &twin, &p->scratch, &o, &err) == MEW_OK) {
		o.context = true;
		(void)mew_gate_observe(&c->contexts[k], &o);
		return;
	}
	c->lost[k] = true;
	mew_progress_clear(&p->progress);
	if (!mew_gate_is_cancelled(p->g))
		mew_cli_complain("context %s: %s: %s", p->g->options->contexts[k].name, c->key, err.text);
}

/* About what a pair took in the gate, until one of the context's was seen. */
static double expected_pair_s(const struct mew_gate *g)
{
	return g->processes > 0 ? g->seconds / g->processes : 0;
}

/* Returns false when --budget ended them. */
static bool take_pairs(struct programs *p, size_t k, struct mew_pair *pair)
{
	double longest_s = expected_pair_s(p->g);
	struct mew_error err;

	for (unsigned n = 0; n < CONTEXT_PAIRS && !mew_gate_is_cancelled(p->g); n++) {
		uint64_t start = mew_os_now_ns();

		if (mew_gate_time_left(p->g) < longest_s)
			return false;
		if (mew_pair_fresh(pair, &err) != MEW_OK)
			break;
		for (size_t i = 0; i < p->g->ncases; i++)
			observe_context(p, k, &p->g->cases[i]);
		longest_s = fmax(longest_s, (double)(mew_os_now_ns() - start) / 1e9);
	}
	return true;
}

static void take_context(struct programs *p, size_t k)
{
	const struct mew_gate_context *context = &p->g->options->contexts[k];
	const char *const programs[MEW_SIDES] = { p->g->options->programs[MEW_BASE], context->program };
	struct mew_pair *pair = &p->contexts[k];
	struct mew_error err;

	if (mew_pair_open(pair, programs, &p->g->options->host, p->g->options->seed, &err) != MEW_OK) {
		mew_progress_clear(&p->progress);
		mew_cli_complain("context %s: %s", context->name, err.text);
		return;
	}
	if (!take_pairs(p, k, pair)) {
		mew_progress_clear(&p->progress);
		mew_cli_complain("context %s: the --budget ended before all of its pairs", context->name);
	}
}

/* --- all of it -------------------------------------------------------------------------------------------------- */

static int measure(struct programs *p)
{
	const struct mew_gate_method method = { p, start_fresh, observe_case, skips };
	struct mew_gate *g = p->g;
	struct mew_error err;
	int code = choose_cases(p);

	if (code != MEW_EXIT_FINE)
		return code;
	take_facts(p);
	code = mew_calibration_apply(g);
	if (code != MEW_EXIT_FINE)
		return code;
	if (mew_gate_continue(g, &err) != MEW_OK) { /* its looks need the floors of the calibration */
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_INVALID;
	}
	if (g->options->memory_iterations > 0)
		mew_gate_exact_passes(g, exact_pass, p);
	if (mew_gate_take_time(g, &method, &p->progress, &err) != MEW_OK && !g->interrupted && g->identity[0] == '\0') {
		mew_progress_clear(&p->progress);
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	for (size_t k = 0; k < g->options->ncontexts && !g->interrupted && g->identity[0] == '\0'; k++)
		take_context(p, k);
	mew_gate_stop_clock(g);
	(void)check_identity(p);
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
	look_at_files(p, p->files); /* before one of them is started */
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
