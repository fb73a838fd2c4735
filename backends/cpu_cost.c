/*
 * cpu_cost.c - calibrates the cost of one sample: gaps in the clock of a thread that reads nothing but the clock.
 * Layer L3. Outside windows, on the runner thread. The clock is CLOCK_MONOTONIC: 20 to 30 ns a read where a sample
 * takes thousands, so no time-stamp counter is needed.
 */
#include "config.h"

#include "cpu_cost.h"

#include "cpu_timer.h"
#include "os.h"
#include "stackset.h"
#include "stats.h"

#define PERIOD_NS 100000u
#define TICKS 200u
#define TICKS_LEAST 50u
#define PATIENCE_NS 60000000u
#define LONGEST_NS 200000u /* longer gaps are process switches */

struct calibration {
	struct mew_cpu_window window;
	struct mew_cpu_thread *thread;
	double stolen_ns[TICKS];
	size_t n;
};

/*
 * Every tick falls between two reads. Those in which the ring grew are kept, and the clock is read once more then: the
 * tick may have come after the read but before the look at the ring.
 */
static void watch(struct calibration *c)
{
	const uint64_t *head = &c->thread->ring.head;
	uint64_t start = mew_os_now_ns(), last = start, now, seen = __atomic_load_n(head, __ATOMIC_RELAXED), grown;
	uint64_t read_ns = UINT64_MAX, gap;

	do {
		now = mew_os_now_ns();
		grown = __atomic_load_n(head, __ATOMIC_RELAXED);
		if (grown == seen) {
			read_ns = now - last < read_ns ? now - last : read_ns;
		} else {
			now = mew_os_now_ns();
			gap = now - last;
			if (grown == seen + 1 && read_ns != UINT64_MAX && gap > 2 * read_ns && gap < LONGEST_NS)
				c->stolen_ns[c->n++] = (double)(gap - 2 * read_ns);
			seen = grown;
		}
		last = now;
	} while (c->n < TICKS && now - start < PATIENCE_NS);
}

/* Returns NULL, or why nothing was watched. */
static const char *sample_the_clock(struct calibration *c)
{
	const char *why = NULL;
	struct mew_error err;

	c->window = (struct mew_cpu_window){ .period_ns = PERIOD_NS, .stacks = mew_stackset_new(64, 4096) };
	if (c->window.stacks == NULL)
		return "no memory to calibrate the cost of a sample";
	if (mew_cpu_signal_take(&err) != MEW_OK || mew_cpu_thread_new(&c->thread, &c->window, &err) != MEW_OK) {
		mew_stackset_free(c->window.stacks);
		return "the cost of a sample cannot be calibrated: no signal or timer for the thread that runs the "
		       "cases; raise ulimit -i";
	}
	c->window.opened_ns = mew_os_now_ns();
	if (mew_cpu_thread_arm(c->thread, c->window.opened_ns) == 0)
		watch(c);
	else
		why = "the cost of a sample cannot be calibrated: the timer cannot be set";
	mew_cpu_thread_disarm(c->thread);
	mew_cpu_thread_detach(c->thread);
	mew_cpu_thread_free(c->thread);
	mew_stackset_free(c->window.stacks);
	return why;
}

uint64_t mew_cpu_cost_median(double *stolen_ns, size_t n)
{
	struct mew_interval of_median;
	double median;

	mew_stats_sort(stolen_ns, n);
	if (n < TICKS_LEAST || !mew_stats_median_interval_sorted(stolen_ns, n, 0.95, &of_median))
		return 0;
	median = mew_stats_median_sorted(stolen_ns, n);
	return of_median.high - of_median.low > median / 2 ? 0 : (uint64_t)median;
}

uint64_t mew_cpu_cost_ns(const char **why)
{
	static struct {
		bool is_done;
		uint64_t ns;
		const char *why;
	} known;
	struct calibration c = { .n = 0 };

	if (!known.is_done) {
		known.is_done = true;
		known.why = sample_the_clock(&c);
		if (known.why == NULL)
			known.ns = mew_cpu_cost_median(c.stolen_ns, c.n);
		if (known.why == NULL && known.ns == 0)
			known.why = "the machine was too busy to calibrate the cost of a sample: run again when less "
				    "else is running";
	}
	*why = known.why;
	return known.ns;
}
