/*
 * guest_pair.h - two builds of a Google Benchmark program, their loops in turns: what pair.h does for programs of mew.
 * Layer L4. A pair of fresh processes is one observation of one case: each runs it alone, once for each round, and
 * waits before each loop until it is its turn.
 *
 * Releases from 1.8 on take a number of iterations, and both sides run the same number. Older ones search for it, each
 * side by itself, and take turns in that too.
 */
#ifndef MEW_GUEST_PAIR_H
#define MEW_GUEST_PAIR_H

#include "guest_host.h"
#include "pair.h"

struct mew_guest_pair {
	struct mew_guest_host host[MEW_SIDES];
	struct mew_host_options options;
	struct mew_pace *page;
	int page_fd;
	uint64_t seed;
	unsigned fresh;           /* pairs of processes started so far */
	bool open[MEW_SIDES];     /* host was opened */
};

/*
 * Start each program to learn its cases.
 *
 * programs  base and head; borrowed
 * options   copied; its strings are borrowed
 * seed      of the order of samples
 * Returns   MEW_OK or a status whose text names the side; mew_guest_pair_close() is due in any case
 * Context   the command's thread
 */
int mew_guest_pair_open(struct mew_guest_pair *p, const char *const programs[MEW_SIDES],
			const struct mew_host_options *options, uint64_t seed, struct mew_error *err);
void mew_guest_pair_close(struct mew_guest_pair *p);

/*
 * Find the iterations of a round; nothing to do where c->loops is known.
 *
 * extra    a fraction that the head does more in each round, for calibrating; 0: none
 * Returns  MEW_OK, or what the case failed with, naming the side; MEW_E_UNSUPPORTED when so little cannot be added
 */
int mew_guest_pair_calibrate(struct mew_guest_pair *p, struct mew_pair_case *c, double extra, struct mew_error *err);

/*
 * One observation of a case by two fresh processes, on the next of the processors that this process may use; a case
 * with threads has all of them.
 *
 * rounds   1 to MEW_PAIR_ROUNDS; what the benchmark says itself goes before it
 * out      without its rounds; its loops are those of a round on the base
 * Returns  MEW_OK, or what the case failed with, naming the side
 */
int mew_guest_pair_observe(struct mew_guest_pair *p, const struct mew_pair_case *c, unsigned rounds,
			   struct mew_pair_observation *out, struct mew_error *err);

/* Do both sides skip the case? Each is asked by a process of its own. Context: the command's thread. */
bool mew_guest_pair_skips(struct mew_guest_pair *p, const struct mew_pair_case *c);

#endif
