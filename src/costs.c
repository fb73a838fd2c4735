/*
 * costs.c - what the clock, an empty turn and a pause cost in this process, so that results can say and correct it.
 * Layer L4. Measured once, outside windows; minima of several short rounds, since only disturbance can add.
 */
#include "config.h"

#include "state.h"

#include "os.h"

#include <pthread.h>

#define ROUNDS 7
#define READS 2000u
#define TURNS 50000u
#define PAIRS 1000u

static struct mew_loop_costs costs;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static double clock_round(void)
{
	uint64_t start = mew_os_now_ns(), last = start;

	for (unsigned i = 0; i < READS; i++)
		last = mew_os_now_ns();
	return (double)(last - start) / READS;
}

static double turn_round(void)
{
	uint64_t start = mew_os_now_ns();

	for (uint64_t left = TURNS; left != 0; left--)
		mew_turn_mark_();
	return (double)(mew_os_now_ns() - start) / TURNS;
}

/* What a pair of pause and resume leaves in the time between two readings, after the paused time is taken out. */
static double pause_round(void)
{
	struct mew_block block = { .threads = 1 };
	struct mew_state st = { .block = &block, .stage = MEW_STAGE_LOOP, .shown = MEW_PAUSES_SHOWN };
	uint64_t start = mew_os_now_ns(), spent;

	for (unsigned i = 0; i < PAIRS; i++) {
		mew_pause(&st);
		mew_resume(&st);
	}
	spent = mew_os_now_ns() - start;
	return (double)(spent - st.paused_ns) / PAIRS;
}

static double least(double (*round)(void))
{
	double best = round();

	for (int i = 1; i < ROUNDS; i++) {
		double next = round();

		if (next < best)
			best = next;
	}
	return best;
}

static void measure(void)
{
	costs.clock_ns = least(clock_round);
	costs.turn_ns = least(turn_round);
	costs.pause_ns = least(pause_round);
}

const struct mew_loop_costs *mew_loop_costs(void)
{
	(void)pthread_once(&once, measure);
	return &costs;
}
