/*
 * pair.c - see pair.h. Both workers are asked for a paced block at once; the page between them orders their samples.
 * Layer L4. The command's thread, which sleeps in poll while they measure.
 */
#include "config.h"

#include "pair.h"

#include "error.h"
#include "host_internal.h"
#include "plan.h"
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *mew_side_name(enum mew_side side)
{
	return side == MEW_BASE ? "base" : "head";
}

int mew_side_failed(enum mew_side side, int status, struct mew_error *err)
{
	struct mew_error plain = *err;

	return mew_error_set(err, status, "%s: %s", mew_side_name(side), plain.text);
}

int mew_pair_open(struct mew_pair *p, const char *const programs[MEW_SIDES], const struct mew_host_options *options,
		  uint64_t seed, struct mew_error *err)
{
	*p = (struct mew_pair){ .options = *options, .seed = seed, .page_fd = -1, .cpu = -1 };
	p->page = mew_pace_create(&p->page_fd);
	if (p->page == NULL)
		return mew_error_errno(err, MEW_E_NOMEM, "no page for the two sides to take turns by");
	p->options.inherited = p->page_fd;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		int status = mew_host_open(&p->host[side], programs[side], &p->options, err);

		p->open[side] = true;
		if (status != MEW_OK)
			return mew_side_failed(side, status, err);
	}
	return MEW_OK;
}

void mew_pair_close(struct mew_pair *p)
{
	if (p->page == NULL)
		return;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (p->open[side])
			mew_host_close(&p->host[side]);
	mew_pace_unmap(p->page);
	(void)close(p->page_fd);
	*p = (struct mew_pair){ .page_fd = -1 };
}

/* --- known extra work ------------------------------------------------------------------------------------------- */

#define CONTROL_NS 5000000 /* longest sample with it */

int mew_pair_add_work(struct mew_pair_case *c, double sample_ns, double extra, struct mew_error *err)
{
	uint64_t batch = c->batch != 0 ? c->batch : 1, turns = mew_turns(c->loops, batch),
		least = (uint64_t)ceil(1 / extra);

	if (turns < least && sample_ns / (double)turns * (double)least > CONTROL_NS)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "one iteration is more than %g %% of the longest sample",
				     extra * 100);
	if (turns < least)
		turns = least;
	c->loops = turns * batch;
	c->extra = (uint64_t)((double)turns * extra + 0.5) * batch;
	return MEW_OK;
}

/* --- processors ------------------------------------------------------------------------------------------------- */

int mew_pair_processor(unsigned n)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof set, &set) != 0 || (count = CPU_COUNT(&set)) == 0)
		return -1;
	n %= (unsigned)count;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set) && n-- == 0)
			return i;
	return -1;
}

/* Before a body runs, so that threads it makes inherit it. Both sides or none: one pinned alone would be favoured. */
static void pin(struct mew_pair *p, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu < 0 || cpu >= CPU_SETSIZE) {
		if (sched_getaffinity(0, sizeof set, &set) != 0)
			return;
	} else {
		CPU_SET(cpu, &set);
	}
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (p->host[side].pid > 0 && sched_setaffinity(p->host[side].pid, sizeof set, &set) != 0)
			cpu = -1;
	p->cpu = cpu;
}

int mew_pair_fresh(struct mew_pair *p, struct mew_error *err)
{
	p->first = mew_pace_coin(&p->seed) ? MEW_HEAD : MEW_BASE;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (p->host[side].used) /* both tear down at once; each is waited for below */
			(void)shutdown(p->host[side].fd, SHUT_WR);
	for (int i = 0; i < 2 * MEW_SIDES; i++) { /* both come up side by side */
		enum mew_side side = i % 2 == 0 ? p->first : !p->first;
		int status = i < MEW_SIDES ? mew_host_launch(&p->host[side], MEW_PASS_TIME, err) :
			     mew_host_ensure(&p->host[side], err);

		if (status != MEW_OK)
			return mew_side_failed(side, status, err);
	}
	pin(p, mew_pair_processor(p->fresh++));
	return MEW_OK;
}

/* --- one side alone --------------------------------------------------------------------------------------------- */

static struct mew_request request(const struct mew_pair_case *c, enum mew_side side, enum mew_phase phase)
{
	return (struct mew_request){ .item = c->item[side], .pass = MEW_PASS_TIME, .phase = (int)phase, .side = side };
}

/* As mew_side_failed(), with what the body printed. */
static int body_failed(struct mew_pair *p, enum mew_side side, int status, const struct mew_model *out,
		       struct mew_error *err)
{
	mew_host_add_output(&p->host[side], out, err);
	return mew_side_failed(side, status, err);
}

/* Run a block on one side. */
static int alone(struct mew_pair *p, enum mew_side side, const struct mew_request *rq, struct mew_model *out,
		 struct mew_error *err)
{
	struct mew_driver d = mew_host_driver(&p->host[side]);
	int status = d.open(d.data, rq->item, MEW_PASS_TIME, err);

	if (status == MEW_OK)
		status = d.run(d.data, rq, out, err);
	return status == MEW_OK ? MEW_OK : body_failed(p, side, status, out, err);
}

static const struct mew_run *last_run(const struct mew_model *m)
{
	const struct mew_case *row = m->ncases > 0 ? &m->cases[0] : NULL;

	return row != NULL && row->nruns > 0 ? &row->runs[row->nruns - 1] : NULL;
}

static int calibrate_once(struct mew_pair *p, struct mew_pair_case *c, uint64_t target_ns, uint64_t *loops,
			  double *each_ns, struct mew_error *err)
{
	struct mew_request rq = request(c, MEW_BASE, MEW_PHASE_CALIBRATION_LOOPS);
	struct mew_model *m = mew_model_new();
	const struct mew_run *run;
	int status;

	if (m == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to calibrate \"%s\"", c->key);
	rq.plan = (struct mew_block_plan){ .target_ns = target_ns, .max_samples = 64 };
	status = alone(p, MEW_BASE, &rq, m, err);
	run = last_run(m);
	*loops = 1;
	*each_ns = 0;
	if (run != NULL && run->nsamples > 0) {
		c->batch = m->cases[0].runs[0].loops; /* it was asked for one iteration */
		*each_ns = (double)run->real_ns[run->nsamples - 1] / (double)run->loops;
		*loops = mew_whole_turns(mew_plan_loops(&m->cases[0], target_ns), c->batch);
	}
	mew_model_free(m);
	return status;
}

#define CALIBRATIONS 3 /* one that lost the processor finds too few: the largest did not */

int mew_pair_calibrate(struct mew_pair *p, struct mew_pair_case *c, uint64_t target_ns, struct mew_error *err)
{
	uint64_t loops = 1;
	double each_ns = 0;
	int status = MEW_OK;

	c->loops = 0;
	for (int i = 0; i < CALIBRATIONS && status == MEW_OK; i++) {
		status = calibrate_once(p, c, target_ns, &loops, &each_ns, err);
		if (loops >= c->loops) {
			c->loops = loops;
			c->sample_ns = (uint64_t)(each_ns * (double)loops);
		}
	}
	return status;
}

bool mew_pair_skips(struct mew_pair *p, const struct mew_pair_case *c)
{
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		struct mew_request rq = request(c, side, MEW_PHASE_CALIBRATION_LOOPS);
		struct mew_model *m = mew_model_new();
		struct mew_error err;
		int status = MEW_E_NOMEM;

		rq.plan = (struct mew_block_plan){ .loops = 1, .exact = 1, .max_samples = 1 };
		if (m != NULL)
			status = alone(p, side, &rq, m, &err);
		mew_model_free(m);
		if (status != MEW_E_UNSUPPORTED || strstr(err.text, "skipped: ") == NULL)
			return false;
	}
	return true;
}

/* Both sides have their set-up behind them before either is asked for samples. */
static int open_both(struct mew_pair *p, const struct mew_pair_case *c, struct mew_error *err)
{
	for (int i = 0; i < MEW_SIDES; i++) {
		enum mew_side side = i == 0 ? p->first : !p->first;
		struct mew_driver d = mew_host_driver(&p->host[side]);
		int status = d.open(d.data, c->item[side], MEW_PASS_TIME, err);

		if (status != MEW_OK)
			return body_failed(p, side, status, NULL, err);
	}
	return MEW_OK;
}

#define WARM_ROUNDS 4u /* where it is not known how long they last */

/* A block of its own would cost as much as it measures: the first rounds of the one block are the warm-up. */
static unsigned warm_rounds(const struct mew_pair_case *c, unsigned rounds, uint64_t warmup_ns)
{
	uint64_t n = c->sample_ns > 0 ? warmup_ns / c->sample_ns : WARM_ROUNDS;

	if (n == 0)
		n = 1;
	if (n > 2 * WARM_ROUNDS)
		n = 2 * WARM_ROUNDS;
	return n < MEW_PAIR_ROUNDS - rounds ? (unsigned)n : MEW_PAIR_ROUNDS - rounds;
}

/* --- both in turns ---------------------------------------------------------------------------------------------- */

/* The side whose answer can be read first. Its end of file counts: a dead worker must not leave the other waiting. */
static enum mew_side first_to_answer(const struct mew_pair *p)
{
	struct pollfd fds[MEW_SIDES];
	int timeout = p->options.timeout > 0 ? (int)fmin(p->options.timeout * 1000, 2e9) : -1;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		fds[side] = (struct pollfd){ .fd = p->host[side].fd, .events = POLLIN };
	while (poll(fds, MEW_SIDES, timeout) < 0 && errno == EINTR)
		if (p->options.cancelled != NULL && *p->options.cancelled)
			break;
	return fds[MEW_HEAD].revents != 0 && fds[MEW_BASE].revents == 0 ? MEW_HEAD : MEW_BASE;
}

static uint64_t loops_of(const struct mew_pair_case *c, enum mew_side side)
{
	return c->loops + (side == MEW_HEAD ? c->extra : 0);
}

static int ask(struct mew_pair *p, const struct mew_pair_case *c, enum mew_side side, unsigned rounds,
	       struct mew_error *err)
{
	struct mew_request rq = request(c, side, MEW_PHASE_MEASUREMENT_VALUE);
	struct mew_host *h = &p->host[side];
	uint64_t loops = loops_of(c, side);

	rq.pace_fd = p->page_fd;
	rq.plan = (struct mew_block_plan){ .loops = loops, .exact = loops * rounds, .max_samples = rounds };
	mew_wire_reset(&h->out);
	mew_wire_put_request(&h->out, &rq);
	return mew_host_send(h, MEW_MSG_RUN, err);
}

static int take(struct mew_pair *p, const struct mew_pair_case *c, enum mew_side side, struct mew_model *out,
		struct mew_error *err)
{
	struct mew_host *h = &p->host[side];
	int status = mew_host_answer(h, MEW_MSG_DONE, mew_host_deadline(h), err);

	if (status != MEW_OK)
		mew_pace_leave(p->page);
	return mew_host_take_block(h, c->item[side], status, out, err);
}

/* Run the paced blocks; the first failure is kept, both answers are read. */
static int run_both(struct mew_pair *p, const struct mew_pair_case *c, unsigned rounds,
		    struct mew_model *const out[MEW_SIDES], struct mew_error *err)
{
	bool asked[MEW_SIDES] = { false };
	struct mew_error other;
	enum mew_side side;
	int status = MEW_OK;

	mew_pace_plan(p->page, rounds, &p->seed);
	for (side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++) {
		status = ask(p, c, side, rounds, err);
		asked[side] = status == MEW_OK;
	}
	if (status != MEW_OK) {
		mew_pace_leave(p->page);
		(void)mew_side_failed(side - 1, status, err);
	}
	side = asked[MEW_HEAD] ? first_to_answer(p) : MEW_BASE;
	for (int i = 0; i < MEW_SIDES; i++, side = !side) {
		int got = asked[side] ? take(p, c, side, out[side], status == MEW_OK ? err : &other) : MEW_OK;

		if (status == MEW_OK && got != MEW_OK)
			status = body_failed(p, side, got, out[side], err);
	}
	return status;
}

/* --- what they say ---------------------------------------------------------------------------------------------- */

/* Median of `n` values that `value` takes of the rounds that count. */
static double median_of(const struct mew_pair_observation *o, bool all, double (*value)(const struct mew_pair_round *))
{
	double x[MEW_PAIR_ROUNDS];
	size_t n = 0;

	for (unsigned i = 0; i < o->nrounds; i++)
		if (all || !o->rounds[i].disturbed)
			x[n++] = value(&o->rounds[i]);
	return mew_stats_median(x, n);
}

static double log_of(const struct mew_pair_round *r)
{
	return log((double)r->ns[MEW_HEAD] / (double)r->ns[MEW_BASE]);
}

static double base_of(const struct mew_pair_round *r)
{
	return (double)r->ns[MEW_BASE];
}

static double head_of(const struct mew_pair_round *r)
{
	return (double)r->ns[MEW_HEAD];
}

/* Beyond what dividing by other numbers of loops does to the last digits. */
static bool is_other_amount(double a, double b)
{
	return fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b));
}

/* What the bodies say that they did: a faster head that did less is no result. */
static int check_work(const struct mew_pair_case *c, struct mew_model *const models[MEW_SIDES], struct mew_error *err)
{
	const struct mew_case *base = &models[MEW_BASE]->cases[0], *head = &models[MEW_HEAD]->cases[0];
	bool bytes = is_other_amount(base->bytes_per_iteration, head->bytes_per_iteration);

	if (!bytes && !is_other_amount(base->items_per_iteration, head->items_per_iteration))
		return MEW_OK;
	return mew_error_set(err, MEW_E_INVALID,
			     "\"%.80s\" is other work on each side: an iteration is %g %s in the base, %g in the head",
			     c->key, bytes ? base->bytes_per_iteration : base->items_per_iteration,
			     bytes ? "bytes" : "items", bytes ? head->bytes_per_iteration : head->items_per_iteration);
}

/* Asked first of both sides: where one did more iterations, it ended early, and the other with it. */
static int check_loops(const struct mew_pair_case *c, enum mew_side side, const struct mew_run *run,
		       struct mew_error *err)
{
	uint64_t loops = loops_of(c, side);

	if (run == NULL || run->loops == loops)
		return MEW_OK;
	(void)mew_error_set(err, MEW_E_LOST,
			    "\"%.100s\" did %llu iterations in a sample and not %llu: give its MEW_LOOP_BATCH the same "
			    "number on both sides", c->key, (unsigned long long)run->loops, (unsigned long long)loops);
	return mew_side_failed(side, MEW_E_LOST, err);
}

static int check_runs(const struct mew_pair_case *c, unsigned rounds, const struct mew_run *const runs[MEW_SIDES],
		      struct mew_error *err)
{
	int status = MEW_OK;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++)
		status = check_loops(c, side, runs[side], err);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++) {
		if (runs[side] != NULL && runs[side]->nsamples >= rounds)
			continue;
		(void)mew_error_set(err, MEW_E_LOST, "\"%s\" gave %zu of %u samples", c->key,
				    runs[side] != NULL ? runs[side]->nsamples : (size_t)0, rounds);
		(void)mew_side_failed(side, MEW_E_LOST, err);
		status = MEW_E_LOST;
	}
	return status;
}

/* Turn the two series of samples into rounds by the order of the page, the first `warm` of them left out. */
static int join(const struct mew_pair *p, const struct mew_pair_case *c, unsigned warm,
		struct mew_model *const models[MEW_SIDES], struct mew_pair_observation *out, struct mew_error *err)
{
	const struct mew_run *const runs[MEW_SIDES] = { last_run(models[MEW_BASE]), last_run(models[MEW_HEAD]) };
	unsigned rounds = warm + out->nrounds;
	int status = check_runs(c, rounds, runs, err);

	if (status != MEW_OK)
		return status;
	for (unsigned i = warm; i < rounds; i++) {
		struct mew_pair_round *r = &out->rounds[i - warm];

		r->head_first = p->page->owner[2 * i] == MEW_HEAD;
		r->disturbed = p->page->disturbed[2 * i] != 0 || p->page->disturbed[2 * i + 1] != 0;
		for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
			r->ns[side] = runs[side]->real_ns[i];
		if (r->ns[MEW_BASE] == 0 || r->ns[MEW_HEAD] == 0)
			return mew_error_set(err, MEW_E_LOST, "\"%s\" took no time that the clock can see in a sample",
					     c->key);
		out->ties += r->ns[MEW_BASE] == r->ns[MEW_HEAD];
		out->disturbed += r->disturbed;
	}
	return check_work(c, models, err);
}

int mew_pair_observe(struct mew_pair *p, const struct mew_pair_case *c, unsigned rounds, uint64_t warmup_ns,
		     struct mew_pair_observation *out, struct mew_error *err)
{
	struct mew_model *models[MEW_SIDES] = { mew_model_new(), mew_model_new() };
	int status = models[MEW_BASE] != NULL && models[MEW_HEAD] != NULL ? MEW_OK : MEW_E_NOMEM;
	unsigned warm = warm_rounds(c, rounds, warmup_ns);
	bool all;

	if (status != MEW_OK)
		(void)mew_error_set(err, status, "no memory to observe \"%s\"", c->key);
	else
		status = open_both(p, c, err);
	if (status == MEW_OK)
		status = run_both(p, c, warm + rounds, models, err);
	*out = (struct mew_pair_observation){ .nrounds = rounds, .loops = c->loops, .cpu = p->cpu };
	if (status == MEW_OK)
		status = join(p, c, warm, models, out, err);
	if (status == MEW_OK) {
		all = out->disturbed * 2 > rounds; /* where most are, leaving them out would choose by luck */
		out->log_ratio = median_of(out, all, log_of);
		out->ns[MEW_BASE] = median_of(out, all, base_of) / (double)c->loops;
		out->ns[MEW_HEAD] = median_of(out, all, head_of) / (double)c->loops;
		if (all)
			out->disturbed = 0;
	}
	mew_model_free(models[MEW_BASE]);
	mew_model_free(models[MEW_HEAD]);
	return status;
}
