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
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * The environment with `first` in front of LD_PRELOAD; the array is freed by the caller, and so is *setting. NULL
 * without memory.
 */
static char **environment_of(const char *first, char **setting)
{
	const char *old = getenv("LD_PRELOAD");
	size_t n = 0, kept = 0;
	char **list;

	*setting = NULL;
	if (first != NULL && asprintf(setting, "LD_PRELOAD=%s%s%s", first, old != NULL ? ":" : "",
				      old != NULL ? old : "") < 0) {
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

/* Which descriptors it gets. One that is put on itself loses its close-on-exec flag. Returns 0 or an errno. */
static int plan_files(posix_spawn_file_actions_t *files, const struct mew_launch *s, int in)
{
	int out = s->output >= 0 ? s->output : STDERR_FILENO;
	const int pairs[][2] = {
		{ in, STDIN_FILENO }, { out, STDOUT_FILENO }, { out, STDERR_FILENO },
		{ s->channel, s->channel }, { s->inherited != 0 ? s->inherited : -1, s->inherited },
	};
	int failure = 0;

	for (size_t i = 0; i < MEW_COUNTOF(pairs) && failure == 0; i++)
		if (pairs[i][0] >= 0)
			failure = posix_spawn_file_actions_adddup2(files, pairs[i][0], pairs[i][1]);
	return failure;
}

/* A process group of its own, and the signals as a program finds them. */
static void plan_signals(posix_spawnattr_t *as)
{
	sigset_t none, ours;

	(void)sigemptyset(&none);
	(void)sigemptyset(&ours);
	(void)sigaddset(&ours, SIGINT);
	(void)sigaddset(&ours, SIGTERM);
	(void)posix_spawnattr_setsigmask(as, &none);
	(void)posix_spawnattr_setsigdefault(as, &ours);
	(void)posix_spawnattr_setpgroup(as, 0);
	(void)posix_spawnattr_setflags(as, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/*
 * posix_spawn() shares our memory until the exec: a fork would copy page tables, and every page that is written after
 * it.
 */
static int spawn(const struct mew_launch *s, char *const argv[], char *const environment[], int in, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t as;
	int failure = posix_spawn_file_actions_init(&files);

	if (failure != 0)
		return failure;
	failure = posix_spawnattr_init(&as);
	if (failure == 0) {
		plan_signals(&as);
		failure = plan_files(&files, s, in);
		if (failure == 0)
			failure = posix_spawn(pid, s->program, &files, &as, argv, environment);
		(void)posix_spawnattr_destroy(&as);
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return failure;
}

int mew_launch_refused(const char *program, int failure, struct mew_error *err)
{
	struct stat st;
	const char *remedy;
	int status;

	if (stat(program, &st) != 0)
		remedy = strchr(program, '/') != NULL ? "" :
			 "; it is not looked for in PATH: name it by its path, such as ./bench";
	else if (S_ISDIR(st.st_mode))
		remedy = "; it is a directory: name the program in it";
	else if (failure == EACCES)
		remedy = "; is it a program? then make it executable";
	else if (failure == ENOENT)
		remedy = "; the loader or interpreter that it names is missing";
	else
		remedy = failure == ENOEXEC ? "; it is no program of this machine" : "";
	status = mew_error_set(err, MEW_E_INVALID, "%.120s cannot be run: %s%s", program, strerror(failure), remedy);
	err->sys_errno = failure;
	return status;
}

int mew_launch_worker(const struct mew_launch *s, struct mew_error *err)
{
	char flag[64], *setting, *name = strdup(s->program), **environment = environment_of(s->preload, &setting);
	char *argv[] = { name, flag, NULL };
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), failure = ENOMEM;
	pid_t pid = -1;

	(void)snprintf(flag, sizeof flag, "%s%d%s", MEW_WORKER_FLAG, s->channel, s->known ? MEW_WORKER_KNOWN : "");
	if (name != NULL && environment != NULL)
		failure = spawn(s, argv, environment, in, &pid);
	if (in >= 0)
		(void)close(in);
	free(environment);
	free(setting);
	free(name);
	if (failure == 0)
		return pid;
	(void)mew_launch_refused(s->program, failure, err);
	return -1;
}

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
static bool has_left(int pid, uint64_t patience_ns, int *status)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t deadline = mew_os_now_ns() + patience_ns, now;
	bool left;

	while (!(left = waitpid(pid, status, WNOHANG) == pid) && (now = mew_os_now_ns()) < deadline)
		await_end(pidfd, deadline - now);
	if (pidfd >= 0)
		(void)close(pidfd);
	return left;
}

int mew_launch_end(int pid, uint64_t patience_ns, bool *had_to_kill)
{
	int status = 0;
	bool left = patience_ns > 0 && has_left(pid, patience_ns, &status);

	(void)kill(-pid, SIGKILL);
	if (had_to_kill != NULL)
		*had_to_kill = patience_ns > 0 && !left;
	if (left)
		return status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void mew_launch_describe(int wait_status, char *text, size_t size)
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(wait_status),
			       strsignal(WTERMSIG(wait_status)));
	else
		(void)snprintf(text, size, "exited with code %d",
			       WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1);
}
