/*
 * cpu_counters.c - cycles, instructions and misses of the window by groups of perf events.
 * Layer L3. Outside windows; the counters run by themselves and two readings make a figure.
 *
 * The kernel shares counters among groups where there are not enough: a group that counted for a part of the time is
 * scaled up to all of it, as perf stat does. Reading takes a system call, more than a pause may cost, so a case with
 * pauses has no such figures.
 */
#include "config.h"

#include "cpu_counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNTED_ALL 0.995 /* what is missing is within the error of the clocks */

const struct mew_cpu_event mew_cpu_hardware[MEW_CPU_COUNTERS] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, MEW_FIG_CYCLES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, MEW_FIG_INSTRUCTIONS },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, MEW_FIG_CACHE_MISSES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, MEW_FIG_BRANCH_MISSES },
};

/* --- opening ----------------------------------------------------------------------------------------------------- */

static int open_one(const struct mew_cpu_event *event, int leader, bool is_user_only)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.size = sizeof attr;
	attr.type = event->type;
	attr.config = event->config;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.exclude_kernel = is_user_only;
	attr.exclude_hv = is_user_only;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
}

static int leader_of(const struct mew_cpu_counters *c)
{
	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++)
		if (c->fds[i] >= 0)
			return c->fds[i];
	return -1;
}

/* These tell of too few counters where others of the group count; of the first event, that there is no such. */
static bool is_of_group(int failed)
{
	return failed == EINVAL || failed == ENOSPC;
}

/* Returns whether the kernel's part was denied. */
static bool open_all(struct mew_cpu_counters *c)
{
	bool is_denied = false;

	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++)
		c->fds[i] = -1;
	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++) {
		int leader = leader_of(c);

		c->fds[i] = open_one(&c->events[i], leader, c->is_user_only);
		c->failed[i] = c->fds[i] < 0 ? errno : 0;
		if (leader < 0 && is_of_group(c->failed[i]))
			c->failed[i] = EOPNOTSUPP;
		is_denied = is_denied || c->failed[i] == EACCES;
	}
	return is_denied && leader_of(c) < 0;
}

void mew_cpu_counters_open(struct mew_cpu_counters *c, const struct mew_cpu_event *events)
{
	c->events = events;
	c->is_user_only = false;
	if (!open_all(c))
		return;
	c->is_user_only = true;
	(void)open_all(c);
}

void mew_cpu_counters_close(struct mew_cpu_counters *c)
{
	for (unsigned i = 0; c->events != NULL && i < MEW_CPU_COUNTERS; i++)
		if (c->fds[i] >= 0)
			(void)close(c->fds[i]);
	c->events = NULL;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

/* Values in the order in which the group was opened. */
static bool read_group(const struct mew_cpu_counters *c, struct mew_cpu_reading *r)
{
	int leader = c->events != NULL ? leader_of(c) : -1;
	ssize_t got = leader >= 0 ? read(leader, r, sizeof *r) : -1;

	return got >= (ssize_t)(3 * sizeof(uint64_t)) && (size_t)got == (3 + r->n) * sizeof(uint64_t);
}

bool mew_cpu_counters_between(const struct mew_cpu_reading *from, const struct mew_cpu_reading *to, double *counts,
			      double *share)
{
	uint64_t enabled = to->enabled_ns - from->enabled_ns, running = to->running_ns - from->running_ns;

	if (from->n != to->n || to->n > MEW_CPU_COUNTERS || to->running_ns <= from->running_ns)
		return false;
	*share = running < enabled ? (double)running / (double)enabled : 1;
	for (uint64_t i = 0; i < to->n; i++)
		counts[i] = (double)(to->values[i] - from->values[i]) / *share;
	return true;
}

void mew_cpu_counters_begin(struct mew_cpu_counters *c)
{
	c->is_read = read_group(c, &c->from);
}

void mew_cpu_counters_end(struct mew_cpu_counters *c)
{
	struct mew_cpu_reading r;

	c->is_read = c->is_read && read_group(c, &r) && mew_cpu_counters_between(&c->from, &r, c->counts, &c->share);
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

static const char *why_not(int failed)
{
	switch (failed) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		return "the processor shows no such counter here; virtual machines often have none";
	case EACCES:
		return "perf_event_open is denied: set kernel.perf_event_paranoid to 2 or less, or grant CAP_PERFMON";
	case EPERM:
	case ENOSYS:
		return "perf_event_open is not permitted: let the container's seccomp profile pass it, or grant "
		       "CAP_PERFMON";
	case EMFILE:
	case ENFILE:
		return "no file descriptor was left for the counter: raise ulimit -n (open files)";
	case EINVAL:
	case ENOSPC:
		return "the processor has too few counters to count all four at once";
	default:
		return "the kernel refused the counter";
	}
}

/* Of an event that counts: those before it in the group are the ones that do. */
static double count_of(const struct mew_cpu_counters *c, unsigned which)
{
	unsigned place = 0;

	for (unsigned i = 0; i < which; i++)
		place += c->fds[i] >= 0;
	return c->counts[place];
}

/* The sum over all threads; false with the reason when one of them has no count. */
static bool sum_of(const struct mew_cpu_counters *const *all, size_t n, unsigned which, double *sum, const char **why)
{
	*sum = 0;
	for (size_t k = 0; k < n; k++) {
		if (all[k]->fds[which] < 0)
			*why = why_not(all[k]->failed[which]);
		else if (!all[k]->is_read)
			*why = "the processor's counters were in use by others all the time";
		else
			*sum += count_of(all[k], which);
		if (*why != NULL)
			return false;
	}
	return true;
}

/* Where the processor had fewer counters than were asked for, a figure is an estimate: the row says so. */
static void note_share(const struct mew_cpu_counters *const *all, size_t n, struct mew_sink *sink)
{
	double least = 1;
	char percent[16] = "less than 1", note[140];

	for (size_t k = 0; k < n; k++)
		least = all[k]->share < least ? all[k]->share : least;
	if (least >= COUNTED_ALL)
		return;
	if (least >= 0.01)
		(void)snprintf(percent, sizeof percent, "%.0f", 100 * least);
	(void)snprintf(note, sizeof note,
		       "cycles, instructions and misses were counted for %s %% of the time and scaled: "
		       "others use the counters too", percent);
	mew_sink_note(sink, note);
}

void mew_cpu_counters_put(const struct mew_cpu_counters *const *all, size_t n, bool has_pauses, struct mew_sink *sink)
{
	bool is_partial = false, is_any = false;

	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++) {
		const char *why = has_pauses ? "the case pauses, and reading the counters would make each pause slow"
					     : NULL;
		double sum;

		if (why == NULL && n > 0 && sum_of(all, n, i, &sum, &why)) {
			mew_sink_f64(sink, all[0]->events[i].figure, sum);
			is_any = true;
			is_partial = is_partial || all[0]->is_user_only;
		} else {
			mew_sink_absent(sink, n > 0 ? all[0]->events[i].figure : mew_cpu_hardware[i].figure,
					why != NULL ? why : "no thread was measured");
		}
	}
	if (is_any)
		note_share(all, n, sink);
	if (is_partial)
		mew_sink_note(sink, "cycles, instructions and misses are those of user mode alone: "
				    "kernel.perf_event_paranoid is 2");
}
