/*
 * launch.c - see launch.h.
 * Layer L4. The command's thread.
 */
#include "config.h"

#include "launch.h"

#include "error.h"
#include "os.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * The environment with `first` in front of LD_PRELOAD; the array is freed by the caller, and so is *setting. Made before the
 * fork: other threads may hold the locks that setenv() takes. NULL without memory.
 */
static char **environment_of(const char *first, char **setting)
{
	const char *old = getenv("LD_PRELOAD");
	size_t n = 0, kept = 0;
	char **list;

	*setting = NULL;
	if (first != NULL && asprintf(setting, "LD_PRELOAD=%s%s%s", first, old != NULL ? ":" : "", old != NULL ? old : "") < 0) {
		*setting = NULL;
		return NULL;
	}
	while (environ[n] != NULL)
		n++;
	list = calloc(n + 2, sizeof *list);
	for (size_t i = 0; list != NULL && i < n; i++)
		if (*setting == NULL || strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
			list[kept++] = environ[i];
	if (list != NULL)
		list[kept] = *setting;
	return list;
}

/* In the child, after fork: only calls that are safe there. Never returns. */
static void become_worker(const struct mew_launch *s, char *const argv[], char *const environment[], int report)
{
	int in = open("/dev/null", O_RDONLY);
	int out = s->output >= 0 ? s->output : STDERR_FILENO;
	sigset_t none;
	int failure;

	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	if (in >= 0)
		(void)dup2(in, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	(void)fcntl(s->channel, F_SETFD, 0);
	if (s->inherited != 0)
		(void)fcntl(s->inherited, F_SETFD, 0);
	(void)execve(s->program, argv, environment);
	failure = errno;
	if (write(report, &failure, sizeof failure) < 0)
		_exit(126);
	_exit(127);
}

int mew_launch_worker(const struct mew_launch *s, struct mew_error *err)
{
	char flag[64], *setting, **environment = environment_of(s->preload, &setting), *name = strdup(s->program);
	char *argv[] = { name, flag, NULL };
	int report[2], failure = 0, pid;

	(void)snprintf(flag, sizeof flag, "%s%d", MEW_WORKER_FLAG, s->channel);
	if (name == NULL || environment == NULL || pipe2(report, O_CLOEXEC) != 0) {
		free(environment);
		free(setting);
		free(name);
		return mew_error_errno(err, MEW_E_IO, "%s cannot be started", s->program);
	}
	(void)fflush(NULL); /* nothing of ours may be written twice */
	pid = fork();
	if (pid == 0)
		become_worker(s, argv, environment, report[1]);
	failure = pid < 0 ? errno : 0;
	(void)close(report[1]);
	if (pid > 0) {
		(void)setpgid(pid, pid);
		while (read(report[0], &failure, sizeof failure) < 0 && errno == EINTR)
			;
	}
	(void)close(report[0]);
	free(environment);
	free(setting);
	free(name);
	if (failure == 0)
		return pid;
	if (pid > 0)
		(void)mew_launch_end(pid, false);
	errno = failure;
	(void)mew_error_errno(err, MEW_E_INVALID, "%s cannot be run", s->program);
	return -1;
}

#define PATIENCE_NS 2000000000u

/* Sleep until the process has ended, or for two milliseconds where the kernel has no descriptor for processes (5.2). */
static void await_end(int pidfd, uint64_t left_ns)
{
	const struct timespec pause = { 0, 2000000 };
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	if (pidfd < 0)
		(void)nanosleep(&pause, NULL);
	else
		(void)poll(&fd, 1, (int)(left_ns / 1000000) + 1);
}

/* Did it leave by itself, in time? Then it is reaped. */
static bool has_left(int pid, int *status)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t deadline = mew_os_now_ns() + PATIENCE_NS, now;
	bool left;

	while (!(left = waitpid(pid, status, WNOHANG) == pid) && (now = mew_os_now_ns()) < deadline)
		await_end(pidfd, deadline - now);
	if (pidfd >= 0)
		(void)close(pidfd);
	return left;
}

int mew_launch_end(int pid, bool kill_first)
{
	int status = 0;

	if (!kill_first && has_left(pid, &status)) {
		(void)kill(-pid, SIGKILL);
		return status;
	}
	(void)kill(-pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void mew_launch_describe(int wait_status, char *text, size_t size)
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else
		(void)snprintf(text, size, "exited with code %d", WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1);
}
