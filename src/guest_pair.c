/*
 * guest_pair.c - see guest_pair.h.
 * Layer L4. The command's thread, which sleeps while they measure.
 */
#include "config.h"

#include "guest_pair.h"

#include "error.h"
#include "launch.h"
#include "stats.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_S 0.001     /* long against what the framework does around a loop, short against what the machine does */
#define LOOK_NS 2000000

struct side { /* what one process reported */
	const struct mew_pair_case *c;
	double ns[MEW_PAIR_ROUNDS]; /* of an iteration */
	double sample_ns;           /* of the last sample */
	unsigned n;
	uint64_t loops;             /* of a sample */
	int status;
	char reason[200];
	enum mew_guest_end end;
	int wait_status;
	bool ended;
};

int mew_guest_pair_open(struct mew_guest_pair *p, const char *const programs[MEW_SIDES],
			const struct mew_host_options *options, uint64_t seed, struct mew_error *err)
{
	*p = (struct mew_guest_pair){ .options = *options, .seed = seed, .page_fd = -1 };
	p->page = mew_pace_create(&p->page_fd);
	if (p->page == NULL)
		return mew_error_errno(err, MEW_E_NOMEM, "no page for the two sides to take turns by");
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		int status = mew_guest_open(&p->host[side], programs[side], &p->options, err);

		p->open[side] = true;
		if (status != MEW_OK)
			return mew_side_failed(side, status, err);
	}
	return MEW_OK;
}

void mew_guest_pair_close(struct mew_guest_pair *p)
{
	if (p->page == NULL)
		return;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (p->open[side])
			mew_guest_close(&p->host[side]);
	mew_pace_unmap(p->page);
	(void)close(p->page_fd);
	*p = (struct mew_guest_pair){ .page_fd = -1 };
}

/* --- what a process says ------------------------------------------------------------------------------------------ */

static void take_run(struct side *s, const struct mew_run *run, enum mew_side side)
{
	uint64_t loops = run->loops;

	for (size_t i = 0; i < run->nsamples && s->n < MEW_PAIR_ROUNDS; i++) {
		s->loops = loops;
		s->sample_ns = (double)run->real_ns[i];
		if (side == MEW_HEAD && s->c->extra > 0 && loops == s->c->loops + s->c->extra)
			loops = s->c->loops; /* known extra work is not divided by */
		s->ns[s->n++] = (double)run->real_ns[i] / (double)loops;
	}
}

static void take_piece(struct side *s, const struct mew_model *piece, enum mew_side side)
{
	for (size_t i = 0; piece != NULL && i < piece->ncases; i++) {
		const struct mew_case *c = &piece->cases[i];

		if (strcmp(c->key, s->c->key) != 0)
			continue;
		if (mew_case_has(c, MEW_KIND_TIME) && c->time.status != MEW_OK && s->status == MEW_OK) {
			s->status = c->time.status;
			(void)snprintf(s->reason, sizeof s->reason, "%s",
				       c->time.reason != NULL ? c->time.reason : "it failed");
		}
		for (size_t k = 0; k < c->nruns; k++)
			take_run(s, &c->runs[k], side);
	}
}

static void take_base(void *data, struct mew_model *piece)
{
	take_piece(data, piece, MEW_BASE);
}

static void take_head(void *data, struct mew_model *piece)
{
	take_piece(data, piece, MEW_HEAD);
}

/* It has ended: MEW_OK, or why its samples cannot be used. */
static int judge_side(const struct side *s, struct mew_guest_host *h, enum mew_side side, struct mew_error *err)
{
	char how[96], *said;

	if (s->status != MEW_OK) {
		(void)mew_error_set(err, s->status, "%s", s->reason);
		return mew_side_failed(side, s->status, err);
	}
	if (s->end == MEW_GUEST_CANCELLED)
		return mew_error_set(err, MEW_E_BUSY, "interrupted");
	if (s->n > 0)
		return MEW_OK;
	mew_launch_describe(s->wait_status, how, sizeof how);
	if (s->end == MEW_GUEST_TIMED_OUT)
		(void)mew_error_set(err, MEW_E_BODY, "\"%.100s\" did not end within --timeout %g s", s->c->key,
				    h->options->timeout);
	else
		(void)mew_error_set(err, MEW_E_BODY, "\"%.100s\" was not reported: its process %s", s->c->key, how);
	said = mew_guest_take_output(h);
	mew_error_add_printed(err, said);
	free(said);
	return mew_side_failed(side, MEW_E_BODY, err);
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static struct mew_guest_request request(const struct mew_guest_pair *p, enum mew_side side, struct side *into,
					const char *filter)
{
	const struct mew_pair_case *c = into->c;
	bool counted = p->host[MEW_BASE].counted && p->host[MEW_HEAD].counted;

	return (struct mew_guest_request){
		.pass = MEW_GUEST_TIME,
		.filter = filter,
		.min_time = SAMPLE_S,
		.iterations = counted ? c->loops + (side == MEW_HEAD ? c->extra : 0) : 0,
		.repetitions = 1,
		.take = side == MEW_BASE ? take_base : take_head,
		.data = into,
	};
}

static bool has_threads(const char *key)
{
	return strstr(key, "/threads:") != NULL;
}

/* Both sides or none: one pinned alone would be favoured. */
static int pin(const struct mew_guest_pair *p, int cpu)
{
	cpu_set_t set, all;

	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) != 0)
		return -1;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		if (sched_setaffinity(p->host[side].process.pid, sizeof set, &set) != 0) {
			for (enum mew_side back = MEW_BASE; back < MEW_SIDES; back++)
				(void)sched_setaffinity(p->host[back].process.pid, sizeof all, &all);
			return -1;
		}
	return cpu;
}

/* Until both have ended; one that is gone must not be waited for by the other. */
static void wait_both(struct mew_guest_pair *p, const struct mew_guest_request rq[MEW_SIDES],
		      struct side sides[MEW_SIDES])
{
	const struct timespec pause = { 0, LOOK_NS };

	for (;;) {
		for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
			struct side *s = &sides[side];

			if (s->ended || !mew_guest_look(&p->host[side], &rq[side], &s->end, &s->wait_status))
				continue;
			s->ended = true;
			mew_pace_leave(p->page);
		}
		if (sides[MEW_BASE].ended && sides[MEW_HEAD].ended)
			return;
		(void)nanosleep(&pause, NULL);
	}
}

static int start_both(struct mew_guest_pair *p, const struct mew_guest_request rq[MEW_SIDES], struct mew_error *err)
{
	enum mew_side first = mew_pace_coin(&p->seed) ? MEW_HEAD : MEW_BASE;

	for (int i = 0; i < MEW_SIDES; i++) {
		enum mew_side side = i == 0 ? first : !first;
		int status = mew_guest_start_process(&p->host[side], &rq[side], err);

		if (status == MEW_OK)
			continue;
		if (i > 0)
			(void)mew_launch_end(p->host[first].process.pid, 0, NULL);
		return mew_side_failed(side, status, err);
	}
	return MEW_OK;
}

static int run_both(struct mew_guest_pair *p, const struct mew_pair_case *c, unsigned rounds,
		    struct side sides[MEW_SIDES], int *cpu, struct mew_error *err)
{
	char *filter = mew_guest_filter_one(c->key);
	struct mew_guest_turns turns[MEW_SIDES];
	struct mew_guest_request rq[MEW_SIDES];
	int status;

	if (filter == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to observe \"%.100s\"", c->key);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++) {
		turns[side] = (struct mew_guest_turns){ p->page_fd, side };
		rq[side] = request(p, side, &sides[side], filter);
		rq[side].repetitions = rounds;
		rq[side].turns = &turns[side];
	}
	mew_pace_plan(p->page, MEW_PAIR_ROUNDS, &p->seed); /* how many searches for iterations precede the rounds is not known */
	status = start_both(p, rq, err);
	if (status == MEW_OK) {
		*cpu = has_threads(c->key) ? -1 : pin(p, mew_pair_processor(p->fresh));
		p->fresh++;
		wait_both(p, rq, sides);
	}
	free(filter);
	return status;
}

/* --- an observation ----------------------------------------------------------------------------------------------- */

/* Did the sample lose the processor? The rounds are the last loops of the process. */
static bool is_disturbed(const struct mew_guest_channel *channel, unsigned rounds, unsigned i)
{
	uint32_t loops = channel->loops;

	return loops >= rounds && channel->disturbed[(loops - rounds + i) % MEW_GUEST_LOOPS] != 0;
}

static int join(const struct mew_guest_pair *p, struct side sides[MEW_SIDES], struct mew_pair_observation *out,
		struct mew_error *err)
{
	struct side *base = &sides[MEW_BASE], *head = &sides[MEW_HEAD];
	unsigned n = base->n < head->n ? base->n : head->n, kept = 0;
	double *x = calloc(2 * (size_t)n + 1, sizeof *x); /* those that were not disturbed, then all */

	if (x == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to observe \"%.100s\"", base->c->key);
	for (unsigned i = 0; i < n; i++) {
		if (base->ns[i] <= 0 || head->ns[i] <= 0) {
			free(x);
			return mew_error_set(err, MEW_E_LOST,
					     "\"%.100s\" took no time that the clock can see in a sample",
					     base->c->key);
		}
		x[n + i] = log(head->ns[i] / base->ns[i]);
		out->ties += base->ns[i] == head->ns[i];
		if (!is_disturbed(p->host[MEW_BASE].channel, base->n, i) &&
		    !is_disturbed(p->host[MEW_HEAD].channel, head->n, i))
			x[kept++] = x[n + i];
	}
	/* where most are disturbed, leaving them out would choose by luck */
	out->log_ratio = 2 * kept >= n ? mew_stats_median(x, kept) : mew_stats_median(x + n, n);
	out->disturbed = 2 * kept >= n ? n - kept : 0;
	out->nrounds = n;
	out->loops = base->loops;
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES; side++)
		out->ns[side] = mew_stats_median(sides[side].ns, sides[side].n);
	free(x);
	return MEW_OK;
}

int mew_guest_pair_observe(struct mew_guest_pair *p, const struct mew_pair_case *c, unsigned rounds,
			   struct mew_pair_observation *out, struct mew_error *err)
{
	struct side *sides = calloc(MEW_SIDES, sizeof *sides);
	int cpu = -1, status;

	*out = (struct mew_pair_observation){ .cpu = -1 };
	if (sides == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to observe \"%.100s\"", c->key);
	sides[MEW_BASE].c = sides[MEW_HEAD].c = c;
	status = run_both(p, c, rounds, sides, &cpu, err);
	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && status == MEW_OK; side++)
		status = judge_side(&sides[side], &p->host[side], side, err);
	if (status == MEW_OK && c->extra > 0 && sides[MEW_HEAD].loops != c->loops + c->extra)
		status = mew_error_set(err, MEW_E_UNSUPPORTED, "\"%.100s\" says itself how many iterations it runs",
				       c->key);
	if (status == MEW_OK)
		status = join(p, sides, out, err);
	out->cpu = cpu;
	free(sides);
	return status;
}

/* --- one side alone ----------------------------------------------------------------------------------------------- */

static int run_alone(struct mew_guest_pair *p, const struct mew_pair_case *c, enum mew_side side, struct side *s,
		     struct mew_error *err)
{
	char *filter = mew_guest_filter_one(c->key);
	struct mew_guest_request rq;
	int status = MEW_E_NOMEM;

	if (filter != NULL) {
		s->c = c;
		rq = request(p, side, s, filter);
		status = mew_guest_run_process(&p->host[side], &rq, &s->end, &s->wait_status, err);
	} else {
		(void)mew_error_set(err, status, "no memory to run \"%.100s\"", c->key);
	}
	free(filter);
	return status == MEW_OK ? judge_side(s, &p->host[side], side, err) : mew_side_failed(side, status, err);
}

bool mew_guest_pair_skips(struct mew_guest_pair *p, const struct mew_pair_case *c)
{
	bool skips = true;

	for (enum mew_side side = MEW_BASE; side < MEW_SIDES && skips; side++) {
		struct side *s = calloc(1, sizeof *s);
		struct mew_error err;

		skips = s != NULL && run_alone(p, c, side, s, &err) == MEW_E_UNSUPPORTED &&
			strstr(err.text, "skipped: ") != NULL;
		free(s);
	}
	return skips;
}

/* --- how many iterations ------------------------------------------------------------------------------------------ */

int mew_guest_pair_calibrate(struct mew_guest_pair *p, struct mew_pair_case *c, double extra, struct mew_error *err)
{
	struct side *s;
	int status;

	if (c->loops != 0)
		return MEW_OK;
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory to calibrate \"%.100s\"", c->key);
	status = run_alone(p, c, MEW_BASE, s, err);
	if (status == MEW_OK) {
		c->loops = s->loops > 0 ? s->loops : 1;
		if (extra > 0 && (!p->host[MEW_BASE].counted || !p->host[MEW_HEAD].counted))
			status = mew_error_set(err, MEW_E_UNSUPPORTED,
					       "Google Benchmark before 1.8 takes no number of iterations");
		else if (extra > 0)
			status = mew_pair_add_work(c, s->sample_ns, extra, err);
	}
	free(s);
	return status;
}
