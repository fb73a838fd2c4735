/*
 * record_ends.c - see record_ends.h.
 * Layer L4. The command's thread.
 */
#include "config.h"

#include "record_ends.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os.h"

#define ASK_MS 10          /* between looks for what no descriptor tells of */
#define LAST_NS 200000000u /* a pipeline's last parts end about when the shell that waits for them does */

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

static bool is_gone(const struct mew_recording *g)
{
	struct pollfd end = { .fd = g->end, .events = POLLIN };

	if (g->end < 0)
		return kill(g->pid, 0) != 0 && errno == ESRCH;
	return poll(&end, 1, 0) == 1;
}

static bool is_awaited(const struct mew_record_ends *e, const struct mew_recording *g)
{
	return g->ended_ns == 0 && g->pid != e->command;
}

void mew_record_ends_look(struct mew_record_ends *e, struct mew_recorder *r)
{
	uint64_t now = mew_os_now_ns();

	watch(e, r);
	for (size_t i = 0; i < r->n; i++) {
		struct mew_recording *g = &r->list[i];

		if (!is_awaited(e, g) || !is_gone(g))
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
		if (is_awaited(e, &r->list[i]) && r->list[i].end < 0)
			return ASK_MS;
	return -1;
}

/* --- behind the command ------------------------------------------------------------------------------------------- */

static bool all_ended(const struct mew_record_ends *e, const struct mew_recorder *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (is_awaited(e, &r->list[i]))
			return false;
	return true;
}

static bool is_known(const struct mew_recorder *r, long pid)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->list[i].pid == pid)
			return true;
	return false;
}

/* A forked child has the environment of its parent, a zombie none any more. */
static bool is_told(long pid, const char *socket)
{
	size_t size = 0, n = sizeof MEW_RECORD_ENV;
	char path[48], *entry = NULL;
	bool found = false;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%ld/environ", pid);
	f = fopen(path, "re");
	while (f != NULL && !found && getdelim(&entry, &size, '\0', f) > 0)
		found = strncmp(entry, MEW_RECORD_ENV "=", n) == 0 && strncmp(entry + n, socket, strlen(socket)) == 0;
	free(entry);
	if (f != NULL)
		(void)fclose(f);
	return found;
}

/* How many processes run that are told of us and have not answered: just forked, say, or unable to. */
static size_t count_strangers(const struct mew_recorder *r, const char *socket)
{
	DIR *dir = opendir("/proc");
	size_t n = 0;

	for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
		long pid = strtol(d->d_name, NULL, 10); /* 0: no process */

		n += pid > 0 && !is_known(r, pid) && is_told(pid, socket);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

/* What they ran is known to nobody. */
static int leave_out_strangers(struct mew_recorder *r, const char *socket, struct mew_error *err)
{
	size_t n = r->is_full ? 0 : count_strangers(r, socket);
	char why[120];

	if (n == 0)
		return MEW_OK;
	(void)snprintf(why, sizeof why, "%zu processes that still run and have not answered", n);
	return mew_recorder_leave_out(r, why, err);
}

/*
 * Whoever is gone when it is looked for has said all that it had to say. So what waits is taken behind that: nobody is
 * known to have ended then whose last image is not known.
 */
int mew_record_ends_settle(struct mew_record_ends *e, struct mew_recorder *r, const char *socket, struct mew_error *err)
{
	struct pollfd waits[] = { { .fd = r->listener, .events = POLLIN }, { .fd = e->fd, .events = POLLIN } };
	uint64_t until = mew_os_now_ns() + LAST_NS;

	for (;;) {
		bool is_late = mew_os_now_ns() >= until, is_over;

		mew_record_ends_look(e, r);
		is_over = all_ended(e, r) && count_strangers(r, socket) == 0;
		if (mew_recorder_accept(r, err) != MEW_OK)
			return MEW_E_NOMEM;
		if (is_over && all_ended(e, r))
			return MEW_OK;
		if (is_late)
			return leave_out_strangers(r, socket, err);
		if (r->is_full)
			waits[0].fd = -1;
		(void)poll(waits, MEW_COUNTOF(waits), ASK_MS);
	}
}
