/*
 * record_ends.c - see record_ends.h.
 * Layer L4. The command's thread.
 */
#include "config.h"

#include "record_ends.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os.h"

#define ASK_MS 10 /* between looks for an end that no descriptor tells of */

void mew_record_ends_init(struct mew_record_ends *e)
{
	*e = (struct mew_record_ends){ .fd = epoll_create1(EPOLL_CLOEXEC) };
}

void mew_record_ends_fini(struct mew_record_ends *e)
{
	if (e->fd >= 0)
		(void)close(e->fd);
	e->fd = -1;
}

static void watch(struct mew_record_ends *e, struct mew_recorder *r)
{
	for (; e->nwatched < r->n; e->nwatched++) {
		struct mew_recording *g = &r->list[e->nwatched];
		struct epoll_event event = { .events = EPOLLIN };

		if (g->pid == e->command)
			continue;
		g->end = (int)syscall(SYS_pidfd_open, g->pid, 0);
		if (g->end >= 0 && epoll_ctl(e->fd, EPOLL_CTL_ADD, g->end, &event) != 0) {
			(void)close(g->end);
			g->end = -1;
		}
	}
}

static bool is_gone(const struct mew_recording *g, int wait_ms)
{
	struct pollfd end = { .fd = g->end, .events = POLLIN };

	if (g->end < 0)
		return kill(g->pid, 0) != 0 && errno == ESRCH;
	return poll(&end, 1, wait_ms) == 1;
}

void mew_record_ends_look(struct mew_record_ends *e, struct mew_recorder *r, int wait_ms)
{
	uint64_t now = mew_os_now_ns(), until = now + (uint64_t)wait_ms * 1000000;

	watch(e, r);
	for (size_t i = 0; i < r->n; i++) {
		struct mew_recording *g = &r->list[i];
		bool gone;

		if (g->ended_ns != 0 || g->pid == e->command)
			continue;
		gone = is_gone(g, now < until ? (int)((until - now) / 1000000) : 0);
		now = wait_ms > 0 ? mew_os_now_ns() : now; /* behind the wait: that is when it was seen */
		if (!gone)
			continue;
		g->ended_ns = now;
		if (g->end >= 0)
			(void)close(g->end);
		g->end = -1;
	}
}

int mew_record_ends_due(const struct mew_record_ends *e, const struct mew_recorder *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->list[i].ended_ns == 0 && r->list[i].end < 0 && r->list[i].pid != e->command)
			return ASK_MS;
	return -1;
}
