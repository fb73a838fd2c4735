/*
 * cpu_lists.c - see cpu_lists.h.
 * Layer L3. Runner thread, after the window.
 */
#include "config.h"

#include "cpu_lists.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NOTE_BYTES 240

static const char *stop_name(unsigned stop)
{
	switch (stop) {
	case MEW_STOP_END: return "complete";
	case MEW_STOP_FULL: return "too deep";
	case MEW_STOP_NO_RULE: return "code without unwind table";
	case MEW_STOP_BAD_STACK: return "outside the known stack";
	case MEW_STOP_UNSUPPORTED: return "unwind rule not known";
	case MEW_STOP_SHORT_COPY: return "deeper than the copied 8 KiB";
	default: return "other";
	}
}

/* Most frequent first; equal ones in the order of the enum. */
static size_t sort_stops(struct mew_cpu_stop rows[MEW_STOPS], const uint64_t stops[MEW_STOPS])
{
	size_t n = 0, at;

	for (unsigned stop = 0; stop < MEW_STOPS; stop++) {
		if (stops[stop] == 0)
			continue;
		for (at = n++; at > 0 && rows[at - 1].samples < stops[stop]; at--)
			rows[at] = rows[at - 1];
		rows[at] = (struct mew_cpu_stop){ .reason = stop_name(stop), .samples = stops[stop] };
	}
	return n;
}

void mew_cpu_put_stops(struct mew_sink *sink, const uint64_t stops[MEW_STOPS])
{
	struct mew_cpu_stop rows[MEW_STOPS];
	size_t n = sort_stops(rows, stops);
	const char *worst = NULL;
	uint64_t all = 0, cut = 0;
	char note[NOTE_BYTES];

	for (size_t i = n; i-- > 0;) {
		all += rows[i].samples;
		if (strcmp(rows[i].reason, stop_name(MEW_STOP_END)) == 0)
			continue;
		cut += rows[i].samples;
		worst = rows[i].reason;
	}
	mew_sink_list(sink, MEW_FIG_STOPS, rows, n);
	if (cut * 20 <= all)
		return;
	(void)snprintf(note, sizeof note, "%" PRIu64 " %% of the stacks are cut (most: %s), so callers are missing",
		       (cut * 100 + all / 2) / all, worst);
	mew_sink_note(sink, note);
}

void mew_cpu_name_benchmark(struct mew_cpu_thread_figures *row, unsigned thread, char name[MEW_CPU_NAME_BYTES])
{
	(void)snprintf(name, MEW_CPU_NAME_BYTES, "benchmark thread %u", thread);
	row->name = name;
}

void mew_cpu_name_crew(struct mew_cpu_thread_figures *row, const struct mew_cpu_crew_row *from,
		       char name[MEW_CPU_NAME_BYTES])
{
	if (from->threads > 1)
		(void)snprintf(name, MEW_CPU_NAME_BYTES, "%" PRIu64 " more threads", from->threads);
	else
		(void)snprintf(name, MEW_CPU_NAME_BYTES, "%s", from->name[0] != '\0' ? from->name : "thread");
	row->name = name;
	row->tid = from->threads > 1 ? 0 : (uint64_t)from->tid;
	row->wall_time = (double)from->wall_ns * 1e-9;
	row->cpu_time = from->has_cpu ? (double)from->cpu_ns * 1e-9 : 0;
}

/* Why a thread that had a slot could not be sampled, and what helps. */
static const char *why_refused(int engine, int error)
{
	if (error == ENOMEM)
		return "no memory for its samples (raise ulimit -v)";
	if (engine == MEW_CPU_ENGINE_RING)
		return "no perf event with a ring (raise ulimit -n and -l)";
	if (engine == MEW_CPU_ENGINE_PERF)
		return "no perf event (raise ulimit -n)";
	return "no timer (raise ulimit -i)";
}

void mew_cpu_note_crew(struct mew_sink *sink, const struct mew_cpu_crew_losses *losses, int engine)
{
	char note[NOTE_BYTES], why[80];

	if (losses->scanned > 0) {
		(void)snprintf(note, sizeof note,
			       "threads of the case were found only by looking every 2 ms (%" PRIu64 "), and shorter ones may be "
			       "missing: use `mew run`, or link with -lmew_hooks first", losses->scanned);
		mew_sink_note(sink, note);
	}
	if (losses->silent > 0 && engine == MEW_CPU_ENGINE_RING) {
		(void)snprintf(note, sizeof note, "%" PRIu64 " threads of the case gave no sample, though they ran",
			       losses->silent);
		mew_sink_note(sink, note);
	} else if (losses->silent > 0) {
		(void)snprintf(note, sizeof note,
			       "%" PRIu64 " threads of the case gave no sample: do they block signal %d?",
			       losses->silent, mew_cpu_signal_number());
		mew_sink_note(sink, note);
	}
	if (losses->unsampled > 0) {
		if (losses->refused != 0)
			(void)snprintf(why, sizeof why, "%s", why_refused(engine, losses->refused));
		else
			(void)snprintf(why, sizeof why, "more than %u at once", (unsigned)MEW_CPU_SLOTS);
		(void)snprintf(note, sizeof note, "%" PRIu64 " threads of the case are not in these figures: %s",
			       losses->unsampled, why);
		mew_sink_note(sink, note);
	}
	mew_sink_note_libraries(sink, losses->unannounced, 0);
}
