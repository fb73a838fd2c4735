/*
 * cpu_scan.c - see cpu_scan.h.
 * Layer L3. Outside handlers. Raw system calls: those of the C library are cancellation points.
 */
#include "config.h"

#include "cpu_scan.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpu_crew.h"

#define SCAN_NS 2000000L

static int open_raw(const char *path, int flags)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_RDONLY | O_CLOEXEC);
}

static void close_raw(int fd)
{
	(void)syscall(SYS_close, fd);
}

/* --- tasks and names --------------------------------------------------------------------------------------------- */

struct entry { /* of getdents64(2) */
	uint64_t inode;
	int64_t offset;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

/* 0 for what is no number. */
static int number_of(const char *text)
{
	int n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (*text - '0');
	return *text == '\0' ? n : 0;
}

int mew_cpu_scan_tasks(void (*each)(int tid, void *data), void *data)
{
	_Alignas(struct entry) char buffer[4096];
	int fd = open_raw("/proc/self/task", O_DIRECTORY);
	long got;

	if (fd < 0)
		return -1;
	while ((got = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0)
		for (long at = 0; at < got;) {
			const struct entry *e = (const void *)(buffer + at);
			int tid = number_of(e->name);

			if (tid > 0)
				each(tid, data);
			at += e->bytes;
		}
	close_raw(fd);
	return got == 0 ? 0 : -1;
}

void mew_cpu_scan_name(int tid, char *name, size_t size)
{
	char path[48];
	long got;
	int fd;

	name[0] = '\0';
	(void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
	fd = open_raw(path, 0);
	if (fd < 0)
		return;
	got = syscall(SYS_read, fd, name, size - 1);
	close_raw(fd);
	name[got > 0 ? got : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

/* --- the thread -------------------------------------------------------------------------------------------------- */

struct mew_cpu_scanner {
	pthread_t thread;
	struct mew_cpu_crew *crew;
};

static void *scan(void *data)
{
	const struct mew_cpu_scanner *s = data;
	const struct timespec pause = { 0, SCAN_NS };

	(void)prctl(PR_SET_NAME, "mew:threads");
	mew_cpu_crew_hide();
	while (mew_cpu_crew_scan(s->crew))
		(void)nanosleep(&pause, NULL);
	return NULL;
}

struct mew_cpu_scanner *mew_cpu_scanner_start(struct mew_cpu_crew *crew)
{
	struct mew_cpu_scanner *s = malloc(sizeof *s);
	sigset_t all, former;
	int error;

	if (s == NULL)
		return NULL;
	s->crew = crew;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &former);
	error = pthread_create(&s->thread, NULL, scan, s);
	(void)pthread_sigmask(SIG_SETMASK, &former, NULL);
	if (error == 0)
		return s;
	free(s);
	return NULL;
}

void mew_cpu_scanner_join(struct mew_cpu_scanner *s)
{
	if (s == NULL)
		return;
	(void)pthread_join(s->thread, NULL);
	free(s);
}
