/*
 * gate_step.c - see gate_step.h.
 * Layer L6. The command's thread. SIGCHLD is blocked and waited for, so that an end is seen when it happens.
 */
#include "config.h"

#include "gate_step.h"

#include "error.h"
#include "launch.h"
#include "os.h"
#include "trace_command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS 50000000 /* how late an interrupt may be seen */

void mew_command_adopt(void)
{
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* --- what is left behind ---------------------------------------------------------------------------------------- */

/* The parent of a process, from the fourth field of its stat line; the second may hold anything, ')' too. */
static long parent_of(const char *pid)
{
	char path[64], line[512], *end;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, line, sizeof line - 1);
	(void)close(fd);
	line[n < 0 ? 0 : n] = '\0';
	end = strrchr(line, ')');
	return end != NULL && strlen(end) > 4 ? strtol(end + 4, NULL, 10) : -1;
}

static size_t kill_children(void)
{
	DIR *dir = opendir("/proc");
	size_t n = 0;

	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || parent_of(e->d_name) != (long)getpid())
			continue;
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		n++;
	}
	if (dir != NULL)
		(void)closedir(dir);
	return n;
}

void mew_command_sweep(void)
{
	/* the children of a killed one come to us with its end */
	for (int rounds = 0; rounds < 1000 && kill_children() > 0; rounds++)
		;
}

/* --- running ---------------------------------------------------------------------------------------------------- */

/* In the child; never returns. The program has one thread, so setenv is safe here. */
static void become(const struct mew_command_run *r)
{
	int in = open("/dev/null", O_RDONLY);
	sigset_t none;

	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(r->log, STDOUT_FILENO) < 0 ||
	    dup2(r->log, STDERR_FILENO) < 0 ||
	    chdir(r->directory) != 0)
		_exit(126);
	for (size_t i = 0; i < r->nenv; i++)
		if (setenv(r->env[i].name, r->env[i].value, 1) != 0)
			_exit(126);
	(void)execl("/bin/sh", "sh", "-c", r->line, (char *)NULL);
	_exit(127);
}

struct child {
	pid_t pid;  /* 0: not running */
	int status; /* of waitpid(), for the timeline; its end too */
	uint64_t end_ns;
};

static void end_all(struct child *children, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (children[i].pid > 0) {
			(void)kill(-children[i].pid, SIGKILL);
			while (waitpid(children[i].pid, &children[i].status, 0) < 0 && errno == EINTR)
				;
			children[i].pid = 0;
			children[i].end_ns = mew_os_now_ns();
		}
	mew_command_sweep();
}

/* Reap those that have ended. Returns how many still run; -1: one failed, described in err. */
static int reap(struct child *children, size_t n, struct mew_error *err)
{
	int running = 0;

	for (size_t i = 0; i < n; i++) {
		siginfo_t info = { .si_pid = 0 };
		char text[128];
		int status = 0;

		if (children[i].pid == 0)
			continue;
		/* its group is killed before its number is free again */
		if (waitid(P_PID, (id_t)children[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
			running++;
			continue;
		}
		if (info.si_code != CLD_EXITED || info.si_status != 0)
			(void)kill(-children[i].pid, SIGKILL);
		while (waitpid(children[i].pid, &status, 0) < 0 && errno == EINTR)
			;
		children[i].pid = 0;
		children[i].status = status;
		children[i].end_ns = mew_os_now_ns();
		if (status != 0) {
			mew_launch_describe(status, text, sizeof text);
			(void)mew_error_set(err, MEW_E_BODY, "%s", text);
			return -1;
		}
	}
	return running;
}

static int wait_all(struct child *children, size_t n, double timeout, const volatile int *cancelled, uint64_t start,
		    struct mew_error *err)
{
	const struct timespec slice = { 0, SLICE_NS };
	int running;
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	while ((running = reap(children, n, err)) > 0) {
		if (cancelled != NULL && *cancelled != 0)
			return mew_error_set(err, MEW_E_BODY, "was interrupted");
		if (timeout > 0 && (double)(mew_os_now_ns() - start) / 1e9 > timeout)
			return mew_error_set(err, MEW_E_BODY, "took longer than --timeout %g s", timeout);
		(void)sigtimedwait(&child, NULL, &slice);
	}
	return running == 0 ? MEW_OK : MEW_E_BODY;
}

/* The program of a shell's line: its first word that sets no variable. Else it has no name: it could be a secret. */
static void name_program(const char *line, char *name, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-$";
	size_t n;

	for (line += strspn(line, " \t"); line[n = strspn(line, plain)] == '='; line += strspn(line, " \t")) {
		n += 1 + strspn(line + n + 1, plain);
		if (line[n] != ' ' && line[n] != '\t') { /* a value alone, or one that is quoted */
			n = 0;
			break;
		}
		line += n;
	}
	if (n > 0 && (line[n] == '\0' || line[n] == ' ' || line[n] == '\t'))
		(void)snprintf(name, size, "%.*s", (int)n, line);
	else
		(void)snprintf(name, size, "command");
}

/* Each on the timeline. */
static void trace(const struct mew_command_run *list, const struct child *children, size_t n, uint64_t start)
{
	char name[200];

	for (size_t i = 0; i < n; i++) {
		if (children[i].end_ns == 0) /* it could not be started */
			continue;
		name_program(list[i].line, name, sizeof name);
		mew_trace_command(name, list[i].line, start, children[i].end_ns, children[i].status);
	}
}

int mew_command_run(const struct mew_command_run *list, size_t n, double timeout, const volatile int *cancelled,
		    uint64_t *ns, struct mew_error *err)
{
	struct child *children = calloc(n + 1, sizeof *children);
	uint64_t start;
	int status = MEW_OK;

	*ns = 0;
	if (children == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "found no memory");
	(void)fflush(NULL);
	start = mew_os_now_ns();
	for (size_t i = 0; i < n && status == MEW_OK; i++) {
		children[i].pid = fork();
		if (children[i].pid == 0)
			become(&list[i]);
		if (children[i].pid < 0) {
			children[i].pid = 0;
			status = mew_error_errno(err, MEW_E_BODY, "could not be started");
		} else {
			(void)setpgid(children[i].pid, children[i].pid);
		}
	}
	if (status == MEW_OK)
		status = wait_all(children, n, timeout, cancelled, start, err);
	*ns = mew_os_now_ns() - start;
	if (status != MEW_OK)
		end_all(children, n);
	trace(list, children, n, start);
	free(children);
	return status;
}
