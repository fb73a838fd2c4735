/*
 * cli_record.c - see cli_record.h: start the command with the recorder preloaded, wait, read, report.
 * Layer L6. The command's thread; it sleeps while the recorded program runs.
 */
#include "config.h"

#include "cli_record.h"

#include "cli_trace.h"
#include "environment.h"
#include "error.h"
#include "os.h"
#include "record_ends.h"
#include "record_read.h"
#include "record_target.h"
#include "record_trace.h"
#include "session.h"
#include "trace_command.h"
#include "unwinder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEFT_OUT_LINES 8

struct recording {
	struct mew_cli *cli;
	struct mew_record_orders orders;
	struct mew_recorder recorder;
	struct mew_model *model;
	char preload[4096], told[256 + 2 * MEW_NAME_BYTES], path[PATH_MAX];
	struct rlimit files;          /* of open descriptors, and what ends of children mean: as mew found them */
	struct sigaction children;
	int pid, wait_status;
	struct mew_record_ends ends;
	bool opened; /* the windows at orders.from_ns, of the processes that there were */
	uint64_t started_ns, ended_ns;
	struct mew_record_trace *trace; /* NULL: none is asked for */
};

/* --- what is preloaded -------------------------------------------------------------------------------------------- */

/* The folder of the program that this code is in, then where mew was installed. */
static bool find_library(const char *name, char *out, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash;
	const char *const beside[] = { "/", "/.libs/", "/../lib/" };

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash != NULL)
		*slash = '\0';
	for (size_t i = 0; slash != NULL && i < MEW_COUNTOF(beside); i++)
		if ((size_t)snprintf(out, size, "%s%s%s", self, beside[i], name) < size && access(out, R_OK) == 0)
			return true;
	return (size_t)snprintf(out, size, "%s/%s", MEW_LIBDIR, name) < size && access(out, R_OK) == 0;
}

/*
 * Operator new over the hooks for every program, since nobody knows before which allocator it brings: where that has
 * none of its own, calls jump on. Last, so that its look-ups are over before the recorder's constructor opens the
 * window.
 */
static int choose_preload(struct recording *r, struct mew_error *err)
{
	bool memory = (r->orders.kinds & MEW_RECORD_MEMORY) != 0;
	const char *const names[] = { memory ? "libmew_hooks.so.0" : "libmew_threads.so.0", "libmew_record.so",
				      "libmew_hooks_cxx.so.0" };
	const char *old = getenv("LD_PRELOAD");
	char path[PATH_MAX];
	size_t used = 0, n = memory ? 3 : 2;

	for (size_t i = 0; i < n; i++) {
		if (!find_library(names[i], path, sizeof path))
			return mew_error_set(err, MEW_E_UNSUPPORTED,
					     "%s is neither beside this mew nor in %s: install it",
					     names[i], MEW_LIBDIR);
		if (strpbrk(path, ": ") != NULL)
			return mew_error_set(err, MEW_E_UNSUPPORTED,
					     "%.200s cannot be preloaded, since its path has a blank or a colon: "
					     "install mew elsewhere",
					     path);
		used += (size_t)snprintf(r->preload + used, sizeof r->preload - used, "%s%s", i > 0 ? ":" : "", path);
	}
	r->orders.preloaded = (unsigned)n;
	if (old != NULL && *old != '\0')
		used += (size_t)snprintf(r->preload + used, sizeof r->preload - used, ":%s", old);
	if (used >= sizeof r->preload)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "LD_PRELOAD is too long: unset it");
	return MEW_OK;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* In the child, after fork; the signals as they were before. Never returns. */
static void become_command(const struct recording *r, const sigset_t *mask, int report)
{
	int failure;

	if (setenv("LD_PRELOAD", r->preload, 1) == 0 && setenv(MEW_RECORD_ENV, r->told, 1) == 0) {
		(void)setrlimit(RLIMIT_NOFILE, &r->files);
		(void)sigaction(SIGCHLD, &r->children, NULL);
		(void)sigprocmask(SIG_SETMASK, mask, NULL);
		(void)execv(r->path, r->cli->programs);
	}
	failure = errno;
	if (write(report, &failure, sizeof failure) < 0)
		_exit(MEW_EXIT_CANNOT_RUN);
	_exit(MEW_EXIT_NOT_FOUND);
}

static int start(struct recording *r, const sigset_t *mask, struct mew_error *err)
{
	int report[2], failure = 0;

	if (pipe2(report, O_CLOEXEC) != 0)
		return mew_error_errno(err, MEW_E_IO, "%.200s cannot be started", r->path);
	(void)fflush(NULL); /* nothing of ours may be written twice */
	r->pid = fork();
	if (r->pid == 0)
		become_command(r, mask, report[1]);
	failure = r->pid < 0 ? errno : 0;
	(void)close(report[1]);
	while (r->pid > 0 && read(report[0], &failure, sizeof failure) < 0 && errno == EINTR)
		;
	(void)close(report[0]);
	if (failure == 0)
		return MEW_OK;
	if (r->pid > 0)
		(void)waitpid(r->pid, NULL, 0);
	errno = failure;
	return mew_error_errno(err, MEW_E_IO, "%.200s cannot be run", r->path);
}

/* What is sent to mew alone is meant for the command; the keyboard's signals reach it anyway. */
static void pass_signals(const struct recording *r, int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
			(void)kill(r->pid, (int)info.ssi_signo);
}

static int until_window(const struct recording *r)
{
	uint64_t now = mew_os_now_ns();

	if (r->orders.from_ns == 0 || r->opened)
		return -1;
	return now >= r->orders.from_ns ? 0 : (int)((r->orders.from_ns - now) / 1000000 + 1);
}

/* Of two times to wait, the one that ends first; less than 0 never does. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Also without memory for what is recorded: the command must not run on behind us. */
static int wait_for_command(struct recording *r, int signals, struct mew_error *err)
{
	struct pollfd waits[] = { { .fd = signals, .events = POLLIN }, { .fd = r->recorder.listener, .events = POLLIN },
				  { .fd = r->ends.fd, .events = POLLIN } };
	int status = MEW_OK;
	bool opens;

	for (;;) {
		int wait = sooner(until_window(r), mew_record_ends_due(&r->ends, &r->recorder));

		if (r->trace != NULL)
			wait = sooner(wait, MEW_RECORD_TICK_MS);
		if (r->recorder.is_full || status != MEW_OK)
			waits[1].fd = -1;
		(void)poll(waits, MEW_COUNTOF(waits), wait);
		opens = until_window(r) == 0; /* before the look at who is there: later ones know it by themselves */
		if (status == MEW_OK)
			status = mew_recorder_accept(&r->recorder, err);
		if (r->trace != NULL) {
			mew_record_trace_look(r->trace, &r->recorder);
			mew_cli_trace_tick();
		}
		if (opens) {
			mew_recorder_open_windows(&r->recorder);
			r->opened = true;
		}
		pass_signals(r, signals);
		mew_record_ends_look(&r->ends, &r->recorder);
		if (waitpid(r->pid, &r->wait_status, WNOHANG) == r->pid)
			break;
	}
	r->ended_ns = mew_os_now_ns();
	if (status == MEW_OK)
		status = r->orders.follow ? mew_record_ends_settle(&r->ends, &r->recorder, r->orders.socket, err)
					  : mew_recorder_accept(&r->recorder, err);
	for (size_t i = 0; i < r->recorder.n; i++)
		if (r->recorder.list[i].pid == r->pid)
			r->recorder.list[i].ended_ns = r->ended_ns;
	return status;
}

/* Each process that is recorded has a file that is held until its end. */
static void raise_descriptors(struct recording *r)
{
	struct rlimit most;

	(void)getrlimit(RLIMIT_NOFILE, &r->files);
	most = (struct rlimit){ r->files.rlim_max, r->files.rlim_max };
	(void)setrlimit(RLIMIT_NOFILE, &most);
}

/* Run it, our own signals set aside. */
static int run(struct recording *r, struct mew_error *err)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, usual = { .sa_handler = SIG_DFL }, interrupt, quit;
	sigset_t mine, before;
	int signals, status;

	(void)sigemptyset(&mine);
	(void)sigaddset(&mine, SIGCHLD);
	(void)sigaddset(&mine, SIGTERM);
	(void)sigaddset(&mine, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &mine, &before);
	(void)sigaction(SIGCHLD, &usual, &r->children); /* ignored, an end would bring neither signal nor status */
	raise_descriptors(r);
	signals = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return mew_error_errno(err, MEW_E_IO, "no descriptor to wait for the command");
	mew_record_ends_init(&r->ends);
	r->started_ns = mew_os_now_ns();
	if (r->cli->start_after > 0)
		r->orders.from_ns = r->started_ns + (uint64_t)(r->cli->start_after * 1e9);
	mew_record_put_orders(&r->orders, r->told, sizeof r->told);
	status = start(r, &before, err);
	r->ends.command = r->pid;
	(void)sigaction(SIGINT, &ignore, &interrupt);
	(void)sigaction(SIGQUIT, &ignore, &quit);
	if (status == MEW_OK)
		status = wait_for_command(r, signals, err);
	(void)sigaction(SIGINT, &interrupt, NULL);
	(void)sigaction(SIGQUIT, &quit, NULL);
	(void)close(signals);
	mew_record_ends_fini(&r->ends);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

/* --- afterwards --------------------------------------------------------------------------------------------------- */

static bool any_opened(const struct recording *r)
{
	for (size_t i = 0; i < r->recorder.n; i++)
		if (r->recorder.list[i].file >= 0 && mew_recording_opened(&r->recorder.list[i], &r->orders))
			return true;
	return false;
}

/* What came of one process: its case, made just now, and its part of the timeline. */
static int read_one(struct recording *r, const struct mew_recording *g)
{
	size_t before = r->model->ncases;
	struct mew_error err;
	int status = mew_recording_read(g, &r->orders, r->model, &err);

	if (status == MEW_OK && r->trace != NULL)
		status = mew_record_trace_write(r->trace, g, &r->orders,
						r->model->ncases > before ? &r->model->cases[before] : NULL, &err);
	if (status == MEW_OK)
		return MEW_EXIT_FINE;
	mew_cli_complain("record: %s", err.text);
	return MEW_EXIT_USAGE;
}

/* Programs that were started without us, since our libraries would keep them from running or go unused. */
static void tell_left_out(const struct mew_recorder *r)
{
	size_t others = 0;

	for (size_t i = 0; i < r->nleft; i++) {
		if (i >= LEFT_OUT_LINES)
			others += r->left[i].times;
		else if (r->left[i].times == 1)
			mew_cli_complain("record: left out: %s", r->left[i].why);
		else
			mew_cli_complain("record: left out %zu times: %s", r->left[i].times, r->left[i].why);
	}
	if (others > 0)
		mew_cli_complain("record: %zu more programs are left out for such reasons", others);
}

/* Does the list know the process again, later? Then what it was before ended when it became that. */
static bool is_known_later(const struct mew_recorder *r, size_t i)
{
	for (size_t k = i + 1; k < r->n; k++)
		if (r->list[k].pid == r->list[i].pid)
			return true;
	return false;
}

/* A program that should have been followed and never came: its sandbox, or its own network, keeps it from us. */
static void note_unseen(struct recording *r, size_t i)
{
	const struct mew_recording *g = &r->recorder.list[i];
	bool is_explained = !r->orders.follow || r->recorder.is_full || r->recorder.refused > 0;
	struct mew_record_root root;
	struct mew_error err;
	char why[300];

	if (is_explained || g->file < 0 || mew_recording_root(g->file, &root, &err) != MEW_OK || root.became_ns == 0 ||
	    root.is_left_out || is_known_later(&r->recorder, i))
		return;
	(void)snprintf(why, sizeof why,
		       "%.120s was started by exec and could not answer: is it in a sandbox, in a network namespace of "
		       "its own, or out of descriptors?", root.became);
	if (mew_recorder_leave_out(&r->recorder, why, &err) != MEW_OK)
		mew_cli_complain("record: %s", err.text);
}

/* Files are closed one by one: names and reports need descriptors too, and the processes may have taken all. */
static int read_all(struct recording *r)
{
	/*
	 * With --follow most processes may have no such function: those in which no window opened are left out if one
	 * did.
	 */
	bool opened_alone = r->cli->start_on != NULL && any_opened(r);
	int code = MEW_EXIT_FINE;

	for (size_t i = 0; i < r->recorder.n; i++) {
		struct mew_recording *g = &r->recorder.list[i];
		bool is_left_out = opened_alone && !mew_recording_opened(g, &r->orders);

		if (g->ended_ns == 0 && is_known_later(&r->recorder, i))
			g->ended_ns = r->ended_ns;
		if (g->ended_ns != 0)
			note_unseen(r, i);
		if (!is_left_out && g->ended_ns == 0)
			mew_cli_complain("record: process %d still runs and is left out", g->pid);
		else if (!is_left_out && read_one(r, g) != MEW_EXIT_FINE)
			code = MEW_EXIT_USAGE;
		mew_recording_close(g);
	}
	if (r->recorder.is_full) {
		mew_cli_complain("record: no descriptor was left for more than the first %zu processes, the others are "
				 "left out: raise `ulimit -n`", r->recorder.n);
		code = MEW_EXIT_USAGE;
	}
	tell_left_out(&r->recorder);
	if (r->recorder.refused > 0)
		mew_cli_complain("record: %zu programs run by another user are left out", r->recorder.refused);
	if (r->recorder.n > 0)
		return code;
	mew_cli_complain("record: %s did not load libmew_record: is it sandboxed, or does it start its programs "
			 "without LD_PRELOAD?", r->path);
	return MEW_EXIT_USAGE;
}

static int report(struct recording *r)
{
	int code = read_all(r), files;
	struct mew_symbolise_servers servers;
	struct mew_error err;

	if (r->model->ncases == 0)
		return code != MEW_EXIT_FINE ? code : MEW_EXIT_INVALID;
	if (mew_session_finish(r->model, mew_cli_servers(r->cli, &servers), &err) != MEW_OK ||
	    mew_cli_tables(r->cli, r->model, &err) != MEW_OK) {
		mew_cli_complain("%s", err.text);
		return MEW_EXIT_USAGE;
	}
	files = mew_cli_outputs(r->cli, r->model, NULL);
	return code != MEW_EXIT_FINE ? code : files;
}

/* The command's own code comes before ours: a script that checks it must see no difference. */
static int exit_code(const struct recording *r, int ours)
{
	if (WIFSIGNALED(r->wait_status))
		return 128 + WTERMSIG(r->wait_status);
	return WEXITSTATUS(r->wait_status) != 0 ? WEXITSTATUS(r->wait_status) : ours;
}

static int record(struct recording *r)
{
	struct mew_error err;
	int status = mew_unwinder_check(getenv("MEW_UNWINDER"), &err);

	if (status == MEW_OK && mew_record_find(r->cli->programs[0], r->path, sizeof r->path, &err) != MEW_OK) {
		mew_cli_complain("record: %s", err.text);
		return err.sys_errno == ENOENT ? MEW_EXIT_NOT_FOUND : MEW_EXIT_CANNOT_RUN;
	}
	if (status == MEW_OK && (mew_cli_check_outputs(r->cli) != MEW_EXIT_FINE ||
				 mew_cli_check_servers(r->cli) != MEW_EXIT_FINE))
		return MEW_EXIT_USAGE;
	if (status == MEW_OK)
		status = mew_record_check(r->path, &err);
	if (status == MEW_OK)
		status = mew_recorder_init(&r->recorder, &r->orders, &err);
	if (status == MEW_OK)
		status = choose_preload(r, &err);
	if (status == MEW_OK)
		status = run(r, &err);
	if (status == MEW_OK) {
		mew_trace_command(r->path, r->path, r->started_ns, r->ended_ns, r->wait_status);
		return exit_code(r, report(r));
	}
	mew_cli_complain("record: %s", err.text);
	return MEW_EXIT_USAGE;
}

/* The timeline around it; the command's own exit code comes first here too. */
static int traced(struct recording *r)
{
	int code = mew_cli_trace_begin(&r->cli->trace);

	if (code != MEW_EXIT_FINE || r->cli->trace.file == NULL)
		return code != MEW_EXIT_FINE ? code : record(r);
	r->trace = mew_record_trace_new();
	if (r->trace == NULL)
		mew_cli_complain("record: no memory for the timeline of the programs");
	code = record(r);
	return mew_cli_trace_end(&r->cli->trace, r->pid > 0, code);
}

/* What the figures are about, for readers of the report. Returns MEW_OK or MEW_E_NOMEM. */
static int add_fact(struct mew_model *m, const struct mew_cli *c)
{
	char text[2 * MEW_NAME_BYTES + 64];

	if (c->start_after > 0)
		(void)snprintf(text, sizeof text, "whole programs but for their first %g s", c->start_after);
	else if (c->start_on != NULL || c->stop_on != NULL)
		(void)snprintf(text, sizeof text, "programs from %s to %s",
			       c->start_on != NULL ? c->start_on : "the start",
			       c->stop_on != NULL ? c->stop_on : "the end");
	else
		(void)snprintf(text, sizeof text, "whole programs");
	return mew_model_add_fact(m, MEW_FACT_RECORDED, text) == 0 ? MEW_OK : MEW_E_NOMEM;
}

int mew_cli_record(struct mew_cli *c)
{
	struct recording *r = calloc(1, sizeof *r);
	int code = MEW_EXIT_USAGE;

	if (r != NULL)
		r->model = mew_model_new();
	if (r == NULL || r->model == NULL || add_fact(r->model, c) != MEW_OK) {
		if (r != NULL)
			mew_model_free(r->model);
		mew_cli_complain("no memory to record");
		free(r);
		return code;
	}
	r->cli = c;
	r->recorder.listener = -1;
	r->orders = (struct mew_record_orders){
		.kinds = (c->passes[MEW_PASS_MEMORY] ? MEW_RECORD_MEMORY : 0u) |
			 (c->passes[MEW_PASS_CPU] ? MEW_RECORD_CPU : 0u),
		.interval_ns = (uint64_t)llround(c->plan.interval * 1e9),
		.clock = c->plan.clock,
		.follow = c->follow,
	};
	(void)snprintf(r->orders.start_on, sizeof r->orders.start_on, "%s", c->start_on != NULL ? c->start_on : "");
	(void)snprintf(r->orders.stop_on, sizeof r->orders.stop_on, "%s", c->stop_on != NULL ? c->stop_on : "");
	mew_environment_machine(r->model);
	code = traced(r);
	mew_record_trace_free(r->trace);
	mew_recorder_fini(&r->recorder);
	mew_model_free(r->model);
	free(r);
	return code;
}
