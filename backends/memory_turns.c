/*
 * memory_turns.c - what single iterations did: how often each allocated, and whether the heap grows from one to the
 * next. Layer L3. A benchmark thread at the end of each turn of its loop, in the window but outside malloc: no heap
 * here.
 *
 * With one benchmark thread a turn has what the whole process allocated since the last one; with several, what its own
 * thread did, since the turns of others overlap it.
 */
#include "config.h"

#include "memory.h"

#include "os.h"
#include "sink.h"
#include "trace.h"
#include "trend.h"

#define LIVE_POINTS 50u /* that a row shows of them */
#define SHOWN_NS 1000000u

static struct {
	unsigned lock;
	unsigned threads;
	uint64_t turns, largest; /* largest: iterations of one turn */
	uint64_t first, least, most;
	uint64_t usual; /* of the first turn that was no thread's first */
	bool has_usual, uneven;

	/* what the timeline has of them last */
	uint64_t shown_ns, shown_allocations;
	int64_t shown_live, highest;

	/* live bytes after so many iterations: every `stride`-th turn, so that the room suffices for any number */
	uint64_t iterations, stride;
	size_t npoints;
	double x[MEW_TREND_POINTS], y[MEW_TREND_POINTS];
} turns;

void mew_heap_turns_begin(unsigned threads)
{
	turns.threads = threads;
	turns.turns = turns.largest = 0;
	turns.first = turns.most = 0;
	turns.least = UINT64_MAX;
	turns.has_usual = turns.uneven = false;
	turns.iterations = 0;
	turns.stride = 1;
	turns.npoints = 0;
	turns.shown_ns = turns.shown_allocations = 0;
	turns.shown_live = turns.highest = 0;
}

void mew_heap_turns_join(struct mew_heap_thread *self)
{
	self->before_turn = turns.threads == 1 ? 0 : self->allocations;
	self->has_turned = false;
}

/* Half of the points make room; those that stay are where a run of the doubled stride would have put them. */
static void thin_out(void)
{
	for (size_t i = 1; i < turns.npoints; i += 2) {
		turns.x[i / 2] = turns.x[i];
		turns.y[i / 2] = turns.y[i];
	}
	turns.npoints /= 2;
	turns.stride *= 2;
}

static void note_live(int64_t live)
{
	if (turns.turns % turns.stride != 0)
		return;
	turns.x[turns.npoints] = (double)turns.iterations;
	turns.y[turns.npoints++] = (double)live;
	if (turns.npoints == MEW_TREND_POINTS)
		thin_out();
}

static void note_allocations(struct mew_heap_thread *self, uint64_t n)
{
	if (turns.turns == 0)
		turns.first = n;
	if (n < turns.least)
		turns.least = n;
	if (n > turns.most)
		turns.most = n;
	if (self->has_turned && !turns.has_usual) {
		turns.usual = n;
		turns.has_usual = true;
	} else if (self->has_turned && n != turns.usual) {
		turns.uneven = true;
	}
	self->has_turned = true;
}

static void show(const char *name, const char *series, uint64_t now, uint64_t value)
{
	struct mew_trace_record r = { MEW_TRACE_COUNTER, series, name, now, value };

	mew_trace_push(&r);
}

/*
 * A step on the timeline where the live heap changed by more than 1/256 of its peak, and otherwise at most one in a
 * millisecond; the rate is over the time since the step before. Lock held.
 */
static void show_heap(uint64_t allocations, int64_t live)
{
	uint64_t now = mew_os_now_ns();
	int64_t change = live > turns.shown_live ? live - turns.shown_live : turns.shown_live - live;

	if (live > turns.highest)
		turns.highest = live;
	if (turns.shown_ns != 0 && now - turns.shown_ns < SHOWN_NS && change <= turns.highest / 256)
		return;
	show("live heap", "bytes", now, live > 0 ? (uint64_t)live : 0);
	if (turns.shown_ns != 0 && now > turns.shown_ns)
		show("allocations", "per second", now,
		     (allocations - turns.shown_allocations) * 1000000000u / (now - turns.shown_ns));
	turns.shown_ns = now;
	turns.shown_allocations = allocations;
	turns.shown_live = live;
}

static void note_turn(struct mew_heap_thread *self, uint64_t iterations)
{
	uint64_t sum, all;
	int64_t live;

	mew_heap_totals(&sum, &live);
	all = sum;
	if (turns.threads != 1)
		sum = self->allocations;
	if (!mew_heap_lock(&turns.lock))
		return; /* a forked child */
	note_allocations(self, sum - self->before_turn);
	self->before_turn = sum;
	turns.turns++;
	turns.iterations += iterations;
	if (iterations > turns.largest)
		turns.largest = iterations;
	note_live(live);
	if (mew_trace_is_on())
		show_heap(all, live);
	mew_heap_unlock(&turns.lock);
}

/* The one thread of a process takes no lock in its events: what a handler allocates then is counted as ever. */
void mew_heap_turn(struct mew_heap_thread *self, uint64_t iterations)
{
	bool locks = !mew_heap_alone();
	unsigned char was = locks ? mew_heap_account_begin() : MEW_HEAP_FREE;

	note_turn(self, iterations);
	if (locks)
		mew_heap_account_end(was);
}

static void drain_sequence(struct mew_sink *sink)
{
	static const int figures[] = { MEW_FIG_ALLOCATIONS_FIRST, MEW_FIG_ALLOCATIONS_MIN, MEW_FIG_ALLOCATIONS_MAX,
				       MEW_FIG_STEADY };
	const char *why = turns.turns == 0    ? "no iteration was completed in the window"
			  : turns.largest > 1 ? "MEW_LOOP_BATCH runs several iterations in a turn: single ones are not "
						"seen"
					      : NULL;

	for (size_t i = 0; why != NULL && i < MEW_COUNTOF(figures); i++)
		mew_sink_absent(sink, figures[i], why);
	if (why != NULL)
		return;
	mew_sink_u64(sink, MEW_FIG_ALLOCATIONS_FIRST, turns.first);
	mew_sink_u64(sink, MEW_FIG_ALLOCATIONS_MIN, turns.least);
	mew_sink_u64(sink, MEW_FIG_ALLOCATIONS_MAX, turns.most);
	if (turns.has_usual)
		mew_sink_u64(sink, MEW_FIG_STEADY, !turns.uneven);
	else
		mew_sink_absent(sink, MEW_FIG_STEADY, "only one iteration was completed: ask for more");
}

/* Every so manieth point, the last one always. */
static void drain_live(struct mew_sink *sink)
{
	struct mew_live_point points[LIVE_POINTS];
	size_t step = (turns.npoints + LIVE_POINTS - 1) / LIVE_POINTS, n = 0;

	for (size_t left = turns.npoints; left > 0; left -= step) {
		size_t i = (turns.npoints - 1) % step + n * step; /* so that the last one is among them */

		points[n].iterations = (uint64_t)turns.x[i];
		points[n++].live_bytes = turns.y[i] > 0 ? (uint64_t)turns.y[i] : 0;
		if (left <= step)
			break;
	}
	if (n > 0)
		mew_sink_list(sink, MEW_FIG_LIVE_BY_ITERATION, points, n);
	else
		mew_sink_absent(sink, MEW_FIG_LIVE_BY_ITERATION, "no iteration was completed in the window");
}

void mew_heap_turns_drain(struct mew_sink *sink)
{
	struct mew_trend trend;

	drain_sequence(sink);
	drain_live(sink);
	if (!mew_trend(turns.x, turns.y, turns.npoints, &trend)) {
		mew_sink_absent(sink, MEW_FIG_LEAK_BYTES_PER_ITERATION, "a slope needs at least 3 iterations");
		trend.has_interval = false;
	} else {
		mew_sink_f64(sink, MEW_FIG_LEAK_BYTES_PER_ITERATION, trend.slope);
	}
	if (trend.has_interval) {
		mew_sink_f64(sink, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW, trend.low);
		mew_sink_f64(sink, MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, trend.high);
	} else {
		mew_sink_absent(sink, MEW_FIG_LEAK_BYTES_PER_ITERATION_LOW, "an interval needs at least 6 iterations");
		mew_sink_absent(sink, MEW_FIG_LEAK_BYTES_PER_ITERATION_HIGH, "an interval needs at least 6 iterations");
	}
}
