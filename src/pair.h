/*
 * pair.h - two builds of a benchmark program, measured in lock-step: adjacent samples of equal iteration counts.
 * Layer L4. One observation is what one pair of fresh processes says of a case: samples within one process share its
 * layout, so they are no independent evidence.
 */
#ifndef MEW_PAIR_H
#define MEW_PAIR_H

#include "host.h"
#include "pace.h"

#define MEW_PAIR_ROUNDS (MEW_PACE_TURNS / MEW_SIDES) /* most rounds of one observation */

struct mew_pair_case {
	const char *key;          /* borrowed */
	uint32_t item[MEW_SIDES]; /* of each side's catalogue */
	unsigned threads;
	uint64_t loops;           /* iterations per sample on both sides; mew_pair_calibrate() finds it */
	uint64_t batch;           /* iterations of a turn of the loop, which loops and extra are multiples of; 0: not known, as 1 */
	uint64_t sample_ns;       /* what they last on the base side, about; 0: not known */
	uint64_t extra;           /* iterations more of the head in each sample, which its time is not divided by: known extra work */
};

struct mew_pair_round { /* one sample of each side, one after the other */
	uint64_t ns[MEW_SIDES];
	bool head_first;
	bool disturbed;           /* a sample lost the processor: the round is left out, both halves */
};

struct mew_pair_observation {
	double log_ratio;         /* median over the rounds of ln(head / base) */
	double ns[MEW_SIDES];     /* median time of one iteration */
	uint64_t loops;           /* iterations per sample */
	unsigned nrounds, ties, disturbed; /* of them: exactly equal, left out */
	int cpu;                  /* both sides ran on it; -1: on all */
	struct mew_pair_round rounds[MEW_PAIR_ROUNDS];
};

struct mew_pair {
	struct mew_host host[MEW_SIDES];
	struct mew_host_options options;
	struct mew_pace *page;
	int page_fd;
	uint64_t seed;
	unsigned fresh;           /* pairs of processes started so far */
	int cpu;
	enum mew_side first;      /* started and warmed up before the other; random for each pair of processes */
	bool open[MEW_SIDES];     /* host was opened */
};

/* The n-th (modulo their number) of the processors that this process may use; -1 when they cannot be told. */
int mew_pair_processor(unsigned n);

/* "base" or "head". */
const char *mew_side_name(enum mew_side side);
/* Put the side's name in front of its error. Returns the status. */
int mew_side_failed(enum mew_side side, int status, struct mew_error *err);

/*
 * Start a worker of each program and learn its cases.
 *
 * programs  base and head; borrowed
 * options   copied; its strings are borrowed
 * seed      of the order of samples
 * Returns   MEW_OK or a status whose text names the side; mew_pair_close() is due in any case
 * Context   the command's thread
 */
int mew_pair_open(struct mew_pair *p, const char *const programs[MEW_SIDES], const struct mew_host_options *options,
		  uint64_t seed, struct mew_error *err);
void mew_pair_close(struct mew_pair *p);

/* Replace both processes by fresh ones, on the next of the processors that this process may use. */
int mew_pair_fresh(struct mew_pair *p, struct mew_error *err);

/*
 * Find the iterations of a sample that lasts about target_ns on the base side. Once per case.
 * Returns  MEW_OK, or what the case failed with, naming the side
 */
int mew_pair_calibrate(struct mew_pair *p, struct mew_pair_case *c, uint64_t target_ns, struct mew_error *err);

/* Do both sides skip the case (mew_skip())? Each is run once. */
bool mew_pair_skips(struct mew_pair *p, const struct mew_pair_case *c);

/*
 * Let the head do known extra work: iterations that are a part of a sample, which must have enough of them for that.
 *
 * c          calibrated; its loops may grow
 * sample_ns  what they last, about
 * extra      the part, above 0
 * Returns    MEW_OK; MEW_E_UNSUPPORTED when one iteration is too long
 */
int mew_pair_add_work(struct mew_pair_case *c, double sample_ns, double extra, struct mew_error *err);

/*
 * Take one observation of a case with the running processes.
 *
 * rounds     1 to MEW_PAIR_ROUNDS, behind rounds of about warmup_ns a side that are left out whatever they say
 * Returns    MEW_OK; what the case failed with, naming the side; MEW_E_INVALID when the sides say that they did other work
 */
int mew_pair_observe(struct mew_pair *p, const struct mew_pair_case *c, unsigned rounds, uint64_t warmup_ns,
		     struct mew_pair_observation *out, struct mew_error *err);

#endif
