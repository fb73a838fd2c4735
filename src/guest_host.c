/*
 * guest_host.c - see guest_host.h.
 * Layer L4. The command's thread; it sleeps while the program runs.
 */
#include "config.h"

#include "guest_host.h"

#include "error.h"
#include "launch.h"
#include "os.h"
#include "record_target.h"
#include "trace_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 10000000 /* between two looks at the program */
#define SETTINGS_MAX 10

/* --- what is preloaded -------------------------------------------------------------------------------------------- */

/* The folders in which the command's libraries may be: where it was built, beside it, where it was installed. */
static bool find_library(const char *name, char *out, size_t size)
{
	char self[2048];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
	static const char *const places[] = { "/.libs/", "/../lib/" };

	if (slash != NULL)
		*slash = '\0';
	for (size_t i = 0; slash != NULL && i < MEW_COUNTOF(places); i++)
		if ((size_t)snprintf(out, size, "%s%s%s", self, places[i], name) < size && access(out, R_OK) == 0)
			return true;
	return (size_t)snprintf(out, size, "%s/%s", MEW_LIBDIR, name) < size && access(out, R_OK) == 0;
}

static void add_preload(struct mew_guest_host *h, const char *path)
{
	size_t n = strlen(h->preload);

	(void)snprintf(h->preload + n, sizeof h->preload - n, "%s%s", n > 0 ? ":" : "", path);
}

static bool add_library(struct mew_guest_host *h, const char *name)
{
	char path[2200];
	bool found = find_library(name, path, sizeof path);

	if (found)
		add_preload(h, path);
	return found;
}

/* The hooks first where allocations are counted; elsewhere malloc is as fast as it is without mew. */
static int choose_preload(struct mew_guest_host *h, enum mew_guest_pass pass, struct mew_error *err)
{
	const char *hooks = h->facts != NULL ? mew_model_fact(h->facts, "hooks") : NULL;
	const char *allocator = h->facts != NULL ? mew_model_fact(h->facts, "allocator") : NULL;
	bool sanitized = h->facts != NULL && mew_model_fact(h->facts, "sanitizer") != NULL;

	h->preload[0] = '\0';
	if (pass == MEW_GUEST_MEMORY && !sanitized) {
		if (!add_library(h, "libmew_hooks.so.0"))
			return mew_error_set(err, MEW_E_UNSUPPORTED,
					     "libmew_hooks.so.0 is neither beside the command nor in %s: install it",
					     MEW_LIBDIR);
		if (h->facts != NULL && mew_model_fact(h->facts, "operator_new") != NULL)
			(void)add_library(h, "libmew_hooks_cxx.so.0");
	}
	if (pass == MEW_GUEST_CPU && !sanitized)
		(void)add_library(h, "libmew_threads.so.0");
	if (pass != MEW_GUEST_MEMORY && hooks != NULL && strcmp(hooks, "first") == 0 && allocator != NULL &&
	    allocator[0] == '/')
		add_preload(h, allocator);
	if (add_library(h, "libmew_guest.so.0") && !sanitized)
		(void)add_library(h, "libmew_gbench.so.0"); /* not there: the program may have it compiled in */
	return MEW_OK;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

/*
 * Google Benchmark takes each flag from the environment too. That reaches programs that do not hand their arguments on,
 * and no program trips over a flag that it does not know.
 */
struct settings {
	char *texts[SETTINGS_MAX]; /* NAME=value; NAME alone is removed */
	size_t n;
	bool failed;
};

static void MEW_PRINTF(2, 3) set(struct settings *s, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (s->n == SETTINGS_MAX || vasprintf(&s->texts[s->n], format, ap) < 0)
		s->failed = true;
	else
		s->n++;
	va_end(ap);
}

static void free_settings(struct settings *s)
{
	while (s->n > 0)
		free(s->texts[--s->n]);
}

static void make_settings(struct settings *s, const struct mew_guest_host *h, const struct mew_guest_request *rq)
{
	const char *old = getenv("LD_PRELOAD");

	set(s, "%s=%d", MEW_GUEST_ENVIRONMENT, h->memory_fd);
	if (h->preload[0] != '\0')
		set(s, "LD_PRELOAD=%s%s%s", h->preload, old != NULL ? ":" : "", old != NULL ? old : "");
	set(s, "BENCHMARK_OUT"); /* each pass would write over it */
	if (rq->pass == MEW_GUEST_LIST)
		set(s, "BENCHMARK_LIST_TESTS=true");
	if (rq->filter != NULL)
		set(s, "BENCHMARK_FILTER=%s", rq->filter);
	if (rq->iterations > 0 && h->counted)
		set(s, "BENCHMARK_MIN_TIME=%" PRIu64 "x", rq->iterations);
	else if (rq->min_time > 0) /* those that take iterations want to see a unit */
		set(s, "BENCHMARK_MIN_TIME=%.9f%s", rq->min_time, h->counted ? "s" : "");
	if (rq->repetitions > 0)
		set(s, "BENCHMARK_REPETITIONS=%u", rq->repetitions);
	set(s, "BENCHMARK_ENABLE_RANDOM_INTERLEAVING=%s", rq->interleave ? "true" : "false");
}

/* --- a process ---------------------------------------------------------------------------------------------------- */

/* In the child, after fork: the command has one thread, so its environment may be changed. Never returns. */
static void become_program(const struct mew_guest_host *h, const struct mew_guest_request *rq, struct settings *s,
			   int report)
{
	char *argv[] = { (char *)(uintptr_t)h->program, NULL };
	int in = open("/dev/null", O_RDONLY), out = h->output_fd >= 0 ? h->output_fd : STDERR_FILENO;
	sigset_t none;
	int failure;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	if (in >= 0)
		(void)dup2(in, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	(void)fcntl(h->memory_fd, F_SETFD, 0);
	if (rq->turns != NULL)
		(void)fcntl(rq->turns->page_fd, F_SETFD, 0);
	for (size_t i = 0; i < s->n; i++)
		if (strchr(s->texts[i], '=') != NULL)
			(void)putenv(s->texts[i]);
		else
			(void)unsetenv(s->texts[i]);
	(void)execv(h->program, argv);
	failure = errno;
	if (write(report, &failure, sizeof failure) < 0)
		_exit(126);
	_exit(127);
}

static int launch(const struct mew_guest_host *h, const struct mew_guest_request *rq, struct settings *s,
		  struct mew_error *err)
{
	int report[2], failure = 0, pid;

	if (s->failed || pipe2(report, O_CLOEXEC) != 0)
		return mew_error_set(err, MEW_E_NOMEM, "%s cannot be started: no memory or no descriptor is left",
				     h->program);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0)
		become_program(h, rq, s, report[1]);
	failure = pid < 0 ? errno : 0;
	(void)close(report[1]);
	if (pid > 0) {
		(void)setpgid(pid, pid);
		while (read(report[0], &failure, sizeof failure) < 0 && errno == EINTR)
			;
	}
	(void)close(report[0]);
	if (failure == 0)
		return pid;
	if (pid > 0)
		(void)mew_launch_end(pid, MEW_PATIENCE_NS, NULL);
	return mew_launch_refused(h->program, failure, err);
}

/* The frame at *at, which moves behind it; NULL when it is not complete yet. A program can write here what it wants. */
static const unsigned char *next_frame(const struct mew_guest_host *h, uint64_t *at, size_t *bytes)
{
	const struct mew_guest_channel *channel = h->channel;
	uint64_t used = __atomic_load_n(&channel->used, __ATOMIC_ACQUIRE), room = MEW_GUEST_BYTES - sizeof *channel,
		length;
	const unsigned char *frame = (const unsigned char *)(channel + 1) + *at;

	if (used > room || *at > used || used - *at < sizeof length)
		return NULL;
	memcpy(&length, frame, sizeof length);
	if (length > used - *at - sizeof length)
		return NULL;
	*at += sizeof length + length;
	*bytes = length;
	return frame + sizeof length;
}

static struct mew_model *model_of(const unsigned char *frame, size_t bytes)
{
	struct mew_wire w = { .data = malloc(bytes + 1), .size = bytes, .capacity = bytes + 1 };
	struct mew_model *m = mew_model_new();

	if (w.data != NULL)
		memcpy(w.data, frame, bytes);
	if (w.data == NULL || m == NULL || !mew_wire_model(&w, m)) {
		mew_model_free(m);
		m = NULL;
	}
	mew_wire_fini(&w);
	return m;
}

static bool take_frames(struct mew_guest_host *h, const struct mew_guest_request *rq, uint64_t *at)
{
	const unsigned char *frame;
	bool any = false;
	size_t bytes;

	while (rq->take != NULL && (frame = next_frame(h, at, &bytes)) != NULL) {
		struct mew_model *piece = model_of(frame, bytes);

		any = true;
		if (piece != NULL)
			rq->take(rq->data, piece);
		mew_model_free(piece);
	}
	if (rq->take != NULL)
		rq->take(rq->data, NULL);
	return any;
}

bool mew_guest_look(struct mew_guest_host *h, const struct mew_guest_request *rq, enum mew_guest_end *end,
		    int *wait_status)
{
	struct mew_guest_process *p = &h->process;
	double limit_ns = h->options->timeout * 1e9;
	int done = waitpid(p->pid, wait_status, WNOHANG);
	bool cancelled = h->options->cancelled != NULL && *h->options->cancelled != 0;

	if (take_frames(h, rq, &p->at))
		p->since_ns = mew_os_now_ns();
	if (done == p->pid) {
		(void)kill(-p->pid, SIGKILL);
		*end = MEW_GUEST_ENDED;
	} else if (cancelled || (limit_ns > 0 && (double)(mew_os_now_ns() - p->since_ns) > limit_ns)) {
		*wait_status = mew_launch_end(p->pid, 0, NULL);
		(void)take_frames(h, rq, &p->at);
		*end = cancelled ? MEW_GUEST_CANCELLED : MEW_GUEST_TIMED_OUT;
	} else {
		return false;
	}
	mew_trace_command(h->program, h->program, p->started_ns, mew_os_now_ns(), *wait_status);
	p->pid = 0;
	return true;
}

int mew_guest_start_process(struct mew_guest_host *h, const struct mew_guest_request *rq, struct mew_error *err)
{
	struct settings s = { .n = 0 };
	int status = choose_preload(h, rq->pass, err), pid;

	if (status != MEW_OK)
		return status;
	*h->channel = (struct mew_guest_channel){
		.magic = MEW_GUEST_MAGIC,
		.bytes = MEW_GUEST_BYTES,
		.pass = rq->pass,
		.stacks = rq->stacks,
		.interval_ns = rq->interval_ns,
		.clock = rq->clock,
		.process = rq->process,
		.pace_fd = rq->turns != NULL ? rq->turns->page_fd : -1,
		.side = rq->turns != NULL ? rq->turns->side : 0,
	};
	free(mew_guest_take_output(h)); /* an earlier one's is no business of the cases of this one */
	make_settings(&s, h, rq);
	h->process = (struct mew_guest_process){ .started_ns = mew_os_now_ns(), .since_ns = mew_os_now_ns() };
	pid = launch(h, rq, &s, err);
	free_settings(&s);
	if (pid < 0)
		return pid;
	h->process.pid = pid;
	return MEW_OK;
}

int mew_guest_run_process(struct mew_guest_host *h, const struct mew_guest_request *rq, enum mew_guest_end *end,
			  int *wait_status, struct mew_error *err)
{
	const struct timespec pause = { 0, LOOK_NS };
	int status = mew_guest_start_process(h, rq, err);

	while (status == MEW_OK && !mew_guest_look(h, rq, end, wait_status))
		(void)nanosleep(&pause, NULL);
	return status;
}

/* --- filters ------------------------------------------------------------------------------------------------------ */

size_t mew_guest_escape(char *out, const char *name)
{
	size_t n = 0;

	for (; *name != '\0'; name++) {
		if (strchr(".[]{}()*+?^$|\\", *name) != NULL)
			out[n++] = '\\';
		out[n++] = *name;
	}
	return n;
}

char *mew_guest_filter_one(const char *name)
{
	char *filter = malloc(2 * strlen(name) + 3);
	size_t n = 1;

	if (filter == NULL)
		return NULL;
	filter[0] = '^';
	n += mew_guest_escape(filter + n, name);
	memcpy(filter + n, "$", 2);
	return filter;
}

char *mew_guest_take_output(struct mew_guest_host *h)
{
	struct mew_host view = { .output_fd = h->output_fd };

	return mew_host_take_output(&view);
}

/* --- its cases ---------------------------------------------------------------------------------------------------- */

size_t mew_guest_find(const struct mew_guest_host *h, const char *name)
{
	size_t i = 0;

	while (i < h->nnames && strcmp(h->names[i], name) != 0)
		i++;
	return i;
}

static int take_names(struct mew_guest_host *h, const unsigned char *text, size_t bytes, struct mew_error *err)
{
	char *copy = strndup((const char *)text, bytes), *rest = copy, *line;
	size_t lines = 1;

	for (size_t i = 0; i < bytes; i++)
		lines += text[i] == '\n';
	h->names = calloc(lines, sizeof *h->names);
	h->nnames = 0;
	while (copy != NULL && h->names != NULL && (line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0' && mew_guest_find(h, line) == h->nnames &&
		    (h->names[h->nnames] = strdup(line)) != NULL)
			h->nnames++;
	free(copy);
	if (copy == NULL || h->names == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the cases of %s", h->program);
	if (h->nnames == 0)
		return mew_error_set(err, MEW_E_INVALID,
				     "%s has no benchmark, or its filter (BENCHMARK_FILTER?) matches none", h->program);
	return MEW_OK;
}

/* One line of what it printed. */
static void append_output(struct mew_guest_host *h, struct mew_error *err)
{
	char *said = mew_guest_take_output(h);
	size_t n = strlen(err->text);

	if (said == NULL)
		return;
	(void)snprintf(err->text + n, sizeof err->text - n, "; it printed: %.160s", said);
	for (char *p = err->text; *p != '\0'; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	for (n = strlen(err->text); n > 0 && err->text[n - 1] == ' '; n--)
		err->text[n - 1] = '\0';
	free(said);
}

static int no_benchmarks(struct mew_guest_host *h, int wait_status, struct mew_error *err)
{
	uint32_t loaded = __atomic_load_n(&h->channel->loaded, __ATOMIC_RELAXED);
	char path[2200], how[96];

	if (loaded == 0 && mew_record_check(h->program, err) == MEW_E_UNSUPPORTED)
		return err->status;
	mew_launch_describe(wait_status, how, sizeof how);
	if (h->channel->refusal[0] != '\0')
		return mew_error_set(err, MEW_E_UNSUPPORTED, "%s: %.*s", h->program,
				     (int)sizeof h->channel->refusal - 1, h->channel->refusal);
	if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0)
		(void)mew_error_set(err, MEW_E_INVALID, "%s did not list its benchmarks (%s)", h->program, how);
	else if (loaded != 0 && loaded != MEW_GUEST_LEFT)
		(void)mew_error_set(err, MEW_E_INVALID,
				    "%s ended by _exit, or executed itself or another program without mew's LD_PRELOAD, "
				    "MEW_GUEST_CHANNEL or the descriptor that it names: let it end by exit, or keep them",
				    h->program);
	else if (!find_library("libmew_gbench.so.0", path, sizeof path))
		(void)mew_error_set(err, MEW_E_UNSUPPORTED,
				    "libmew_gbench.so.0 is neither beside the command nor in %s: build mew where "
				    "libbenchmark-dev is installed, or include <mew/gbench.hpp> in %s", MEW_LIBDIR,
				    h->program);
	else
		(void)mew_error_set(err, MEW_E_INVALID,
				    "%s runs no benchmarks of the shared Google Benchmark; if it has an archive of it, "
				    "include <mew/gbench.hpp> in one of its files and link it as mew(1) says",
				    h->program);
	append_output(h, err);
	return err->status;
}

static int list(struct mew_guest_host *h, struct mew_error *err)
{
	struct mew_guest_request rq = { .pass = MEW_GUEST_LIST };
	const unsigned char *facts, *names;
	size_t nfacts, nnames;
	enum mew_guest_end end;
	uint64_t at = 0;
	int wait_status, status = mew_guest_run_process(h, &rq, &end, &wait_status, err);

	if (status != MEW_OK)
		return status;
	facts = next_frame(h, &at, &nfacts);
	names = facts != NULL ? next_frame(h, &at, &nnames) : NULL;
	if (names == NULL)
		return no_benchmarks(h, wait_status, err);
	h->facts = model_of(facts, nfacts);
	if (h->facts == NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "the libmew_guest of %s is of another version than this command", h->program);
	h->counted = h->channel->counted != 0;
	free(mew_guest_take_output(h));
	return take_names(h, names, nnames, err);
}

int mew_guest_open(struct mew_guest_host *h, const char *program, const struct mew_host_options *options,
		   struct mew_error *err)
{
	*h = (struct mew_guest_host){ .program = program, .options = options, .output_fd = -1 };
	h->memory_fd = memfd_create("mew-guest", MFD_CLOEXEC);
	if (h->memory_fd < 0 || ftruncate(h->memory_fd, (off_t)MEW_GUEST_BYTES) != 0)
		return mew_error_errno(err, MEW_E_IO, "no memory file for the results of %s", program);
	h->channel = mmap(NULL, MEW_GUEST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, h->memory_fd, 0);
	if (h->channel == MAP_FAILED) {
		h->channel = NULL;
		return mew_error_errno(err, MEW_E_NOMEM, "no address space for the results of %s: raise `ulimit -v`",
				       program);
	}
	if (options->capture) {
		h->output_fd = memfd_create("mew-output", MFD_CLOEXEC);
		if (h->output_fd < 0)
			return mew_error_errno(err, MEW_E_IO, "no memory file for the output of %s", program);
		(void)fcntl(h->output_fd, F_SETFL, O_APPEND);
	}
	return list(h, err);
}

void mew_guest_close(struct mew_guest_host *h)
{
	for (size_t i = 0; i < h->nnames; i++)
		free(h->names[i]);
	free(h->names);
	mew_model_free(h->facts);
	if (h->channel != NULL)
		(void)munmap(h->channel, MEW_GUEST_BYTES);
	if (h->memory_fd >= 0)
		(void)close(h->memory_fd);
	if (h->output_fd >= 0)
		(void)close(h->output_fd);
	*h = (struct mew_guest_host){ .memory_fd = -1, .output_fd = -1 };
}
