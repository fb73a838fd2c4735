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

const struct mew_cpu_event mew_cpu_hardware[MEW_CPU_COUNTERS] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, MEW_FIG_CYCLES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, MEW_FIG_INSTRUCTIONS },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, MEW_FIG_CACHE_MISSES },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, MEW_FIG_BRANCH_MISSES },
};

struct reading { /* of a group: PERF_FORMAT_GROUP with both times */
	uint64_t n, enabled_ns, running_ns, values[MEW_CPU_COUNTERS];
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

/* Returns whether the kernel's part was denied. */
static bool open_all(struct mew_cpu_counters *c)
{
	bool is_denied = false;

	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++)
		c->fds[i] = -1;
	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++) {
		c->fds[i] = open_one(&c->events[i], leader_of(c), c->is_user_only);
		c->failed[i] = c->fds[i] < 0 ? errno : 0;
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
static bool read_group(const struct mew_cpu_counters *c, struct reading *r)
{
	int leader = c->events != NULL ? leader_of(c) : -1;
	ssize_t got = leader >= 0 ? read(leader, r, sizeof *r) : -1;

	return got >= (ssize_t)(3 * sizeof(uint64_t)) && (size_t)got == (3 + r->n) * sizeof(uint64_t);
}

void mew_cpu_counters_begin(struct mew_cpu_counters *c)
{
	struct reading r;

	c->is_read = read_group(c, &r);
	if (!c->is_read)
		return;
	c->enabled_ns = r.enabled_ns;
	c->running_ns = r.running_ns;
	for (unsigned i = 0, k = 0; i < MEW_CPU_COUNTERS; i++)
		if (c->fds[i] >= 0)
			c->from[i] = r.values[k++];
}

void mew_cpu_counters_end(struct mew_cpu_counters *c)
{
	struct reading r;
	double scale;

	c->is_read = c->is_read && read_group(c, &r) && r.running_ns > c->running_ns;
	if (!c->is_read)
		return;
	scale = (double)(r.enabled_ns - c->enabled_ns) / (double)(r.running_ns - c->running_ns);
	for (unsigned i = 0, k = 0; i < MEW_CPU_COUNTERS; i++)
		if (c->fds[i] >= 0)
			c->counts[i] = (double)(r.values[k++] - c->from[i]) * scale;
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
	default:
		return "the kernel refused the counter";
	}
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
			*sum += all[k]->counts[which];
		if (*why != NULL)
			return false;
	}
	return true;
}

void mew_cpu_counters_put(const struct mew_cpu_counters *const *all, size_t n, bool has_pauses, struct mew_sink *sink)
{
	bool is_partial = false;

	for (unsigned i = 0; i < MEW_CPU_COUNTERS; i++) {
		const char *why = has_pauses ? "the case pauses, and reading the counters would make each pause slow"
					     : NULL;
		double sum;

		if (why == NULL && n > 0 && sum_of(all, n, i, &sum, &why)) {
			mew_sink_f64(sink, all[0]->events[i].figure, sum);
			is_partial = is_partial || all[0]->is_user_only;
		} else {
			mew_sink_absent(sink, n > 0 ? all[0]->events[i].figure : mew_cpu_hardware[i].figure,
					why != NULL ? why : "no thread was measured");
		}
	}
	if (is_partial)
		mew_sink_note(sink, "cycles, instructions and misses are those of user mode alone: "
				    "kernel.perf_event_paranoid is 2");
}
