/*
 * host.c - see host.h.
 * Layer L4. The command's thread; never while a window is open on the same processor: it sleeps in poll.
 */
#include "config.h"

#include "host.h"

#include "error.h"
#include "host_internal.h"
#include "os.h"
#include "launch.h"
#include "trace_command.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELLO_NS ((uint64_t)20 * 1000000000u)
#define LINGER_NS UINT64_C(100000000) /* for the exit of a program that is known to hang there */

/* Reap the worker; its wait status. had_to_kill as in launch.h. */
static int end_worker(struct mew_host *h, bool kill_first, bool *had_to_kill)
{
	uint64_t patience_ns = kill_first ? 0 : h->lingers ? LINGER_NS : MEW_PATIENCE_NS;
	int status = mew_launch_end(h->pid, patience_ns, had_to_kill);

	mew_trace_command(h->program, h->program, h->started_ns, mew_os_now_ns(), status);
	h->pid = 0;
	return status;
}

void mew_host_kill(struct mew_host *h)
{
	if (h->pid > 0)
		(void)end_worker(h, true, NULL);
	if (h->fd >= 0)
		(void)close(h->fd);
	h->pid = 0;
	h->fd = -1;
	h->hooks_active = h->threaded = h->used = h->greeted = h->preloaded = false;
	if (h->opened != NULL)
		memset(h->opened, 0, h->ncases);
}

/* --- talking ---------------------------------------------------------------------------------------------------- */

/* The worker went away or fell silent: say how, and clear it away. */
static int lost(struct mew_host *h, int got, struct mew_error *err)
{
	char how[96];
	int status;
	bool had_to_kill;

	if (got == MEW_E_BUSY) {
		mew_host_kill(h);
		return mew_error_set(err, MEW_E_BUSY, "interrupted");
	}
	if (got == MEW_E_BODY) {
		mew_host_kill(h);
		return mew_error_set(err, MEW_E_BODY, "did not end within --timeout %g s; its process was killed",
				     h->options->timeout);
	}
	if (got == MEW_E_IO) { /* what comes after such a frame cannot be told from it */
		mew_host_kill(h);
		return mew_error_set(err, MEW_E_IO,
				     "its answer could not be read, so its process was killed: there was no memory for "
				     "it, or the body wrote to a descriptor that it had not opened");
	}
	status = end_worker(h, got != 0, &had_to_kill);
	mew_host_kill(h);
	/* it closed its end and went on, or ended when it found that out */
	if (had_to_kill || (WIFEXITED(status) && WEXITSTATUS(status) == MEW_WORKER_CUT))
		return mew_error_set(err, MEW_E_BODY, "it closed the descriptor by which its process talks to mew: "
				     "close only what was opened there");
	mew_launch_describe(status, how, sizeof how);
	return mew_error_set(err, MEW_E_BODY, "the benchmark's process was lost: %s", how);
}

int mew_host_send(struct mew_host *h, enum mew_message message, struct mew_error *err)
{
	return mew_wire_send(h->fd, message, &h->out) == MEW_OK ? MEW_OK : lost(h, 0, err);
}

int mew_host_answer(struct mew_host *h, int answer, uint64_t deadline_ns, struct mew_error *err)
{
	const char *text;
	int got, status;

	got = mew_wire_receive(h->fd, &h->in, deadline_ns, h->options->cancelled, h->wake_fd);
	if (got <= 0)
		return lost(h, got, err);
	if (got == answer && got != MEW_MSG_DONE)
		return MEW_OK;
	if (got != MEW_MSG_DONE) {
		mew_host_kill(h); /* what it sends next fits no better */
		return mew_error_set(err, MEW_E_IO, "%s gave an answer that does not fit (%d)", h->program, got);
	}
	status = -(int)mew_wire_number(&h->in);
	text = mew_wire_text(&h->in);
	if (status != MEW_OK)
		return mew_error_set(err, status, "%s", text != NULL ? text : mew_status_name(status));
	return MEW_OK;
}

int mew_host_ask(struct mew_host *h, enum mew_message message, int answer, uint64_t deadline_ns, struct mew_error *err)
{
	int status = mew_host_send(h, message, err);

	return status == MEW_OK ? mew_host_answer(h, answer, deadline_ns, err) : status;
}

/* --- starting --------------------------------------------------------------------------------------------------- */

int mew_host_start(struct mew_host *h, struct mew_error *err)
{
	struct mew_launch s = { .program = h->program, .output = h->output_fd, .inherited = h->options->inherited,
				.preload = h->preload,
				.known = h->facts != NULL && h->pass == MEW_PASS_TIME &&
					 h->options->allocator == NULL };
	int pair[2];

	if (h->pid > 0)
		return MEW_OK;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return mew_error_errno(err, MEW_E_IO, "no socket for %s%s", h->program, mew_error_descriptors());
	s.channel = pair[1];
	h->started_ns = mew_os_now_ns();
	h->preloaded = h->preload != NULL;
	h->pid = mew_launch_worker(&s, err);
	(void)close(pair[1]);
	h->fd = pair[0];
	if (h->pid < 0) {
		h->pid = 0;
		(void)close(h->fd);
		h->fd = -1;
		return MEW_E_INVALID;
	}
	return MEW_OK;
}

static int not_a_mew_program(struct mew_host *h, int got, struct mew_error *err)
{
	char *said;
	char how[96] = "it did not answer";

	if (got == MEW_E_IO)
		(void)snprintf(how, sizeof how, "its answer is not one of this mew's");
	if (got == 0)
		mew_launch_describe(end_worker(h, false, NULL), how, sizeof how);
	else
		(void)end_worker(h, true, NULL);
	mew_host_kill(h);
	said = mew_host_take_output(h);
	(void)mew_error_set(err, MEW_E_INVALID, "%s is not a mew program (%s): it must end with MEW_MAIN()%s%.80s",
			    h->program, how, said != NULL ? "; it printed: " : "", said != NULL ? said : "");
	for (char *p = err->text; *p != '\0'; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	free(said);
	return MEW_E_INVALID;
}

/* A preload may be ignored or come too late: what was asked for must be what is measured. */
static int check_allocator(const struct mew_host *h, const struct mew_model *facts, struct mew_error *err)
{
	const char *used = mew_model_fact(facts, "malloc"), *sanitizer = mew_model_fact(facts, "sanitizer");
	char *real = used != NULL ? realpath(used, NULL) : NULL, *wanted;
	int status = MEW_OK;

	wanted = h->options->allocator != NULL ? realpath(h->options->allocator, NULL) : NULL;
	if (wanted != NULL && sanitizer != NULL)
		status = mew_error_set(err, MEW_E_UNSUPPORTED,
				       "%s is built with %s, which has its own malloc: build it without for --allocator", h->program, sanitizer);
	else if (wanted != NULL && (real == NULL || strcmp(real, wanted) != 0))
		status = mew_error_set(err, MEW_E_UNSUPPORTED,
				       "%s allocates from %s and not from %s: --allocator needs a program with a "
				       "loader and no malloc of its own, and a file that defines malloc", h->program,
				       used != NULL ? used : "an unknown place", h->options->allocator);
	free(real);
	free(wanted);
	return status;
}

/* Start a worker and take its greeting; its facts are kept the first time. */
static int greet(struct mew_host *h, struct mew_error *err)
{
	struct mew_model *facts;
	uint64_t protocol;
	int got, status = mew_host_start(h, err);

	if (status != MEW_OK)
		return status;
	got = mew_wire_receive(h->fd, &h->in, mew_os_now_ns() + HELLO_NS, h->options->cancelled, h->wake_fd);
	if (got == MEW_E_BUSY)
		return lost(h, got, err);
	if (got != MEW_MSG_HELLO)
		return not_a_mew_program(h, got, err);
	h->greeted = true;
	protocol = mew_wire_number(&h->in);
	if (protocol != MEW_WIRE_PROTOCOL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%s speaks protocol %llu, this mew %u: link it with the same libmew as the command",
				     h->program, (unsigned long long)protocol, MEW_WIRE_PROTOCOL);
	facts = mew_model_new();
	if (facts == NULL || !mew_wire_model(&h->in, facts)) {
		mew_model_free(facts);
		return mew_error_set(err, MEW_E_IO, "the greeting of %s could not be read", h->program);
	}
	status = check_allocator(h, facts, err);
	if (h->facts == NULL) /* the first worker has no hooks of ours: its facts say how the program is linked */
		h->facts = facts;
	else
		mew_model_free(facts);
	return status;
}

static int activate_hooks(struct mew_host *h, struct mew_error *err)
{
	mew_wire_reset(&h->out);
	mew_wire_put_number(&h->out, h->options->nhooks);
	for (size_t i = 0; i < h->options->nhooks; i++)
		mew_wire_put_text(&h->out, h->options->hooks[i]);
	return mew_host_ask(h, MEW_MSG_HOOKS, MEW_MSG_DONE, 0, err);
}

int mew_host_ensure(struct mew_host *h, struct mew_error *err)
{
	int status = h->greeted ? MEW_OK : greet(h, err);

	if (status == MEW_OK && h->options->nhooks > 0 && h->pid > 0 && !h->hooks_active) {
		status = activate_hooks(h, err);
		h->hooks_active = status == MEW_OK;
	}
	return status;
}

static char *copy(const char *text)
{
	return text != NULL ? strdup(text) : NULL;
}

static int learn_cases(struct mew_host *h, struct mew_error *err)
{
	uint64_t n;
	int status;

	mew_wire_reset(&h->out);
	status = mew_host_ask(h, MEW_MSG_LIST, MEW_MSG_CATALOGUE, 0, err);
	if (status != MEW_OK)
		return status;
	h->hook_names = copy(mew_wire_text(&h->in));
	n = mew_wire_number(&h->in);
	if (n > h->in.size)
		return mew_error_set(err, MEW_E_IO, "the list of cases of %s could not be read", h->program);
	h->cases = calloc(n + 1, sizeof *h->cases);
	h->opened = calloc(n + 1, 1);
	if (h->cases == NULL || h->opened == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the cases of %s", h->program);
	for (; h->ncases < n && !h->in.failed; h->ncases++) {
		struct mew_host_case *c = &h->cases[h->ncases];

		c->key = copy(mew_wire_text(&h->in));
		c->label = copy(mew_wire_text(&h->in));
		c->tags = copy(mew_wire_text(&h->in));
		c->threads = (unsigned)mew_wire_number(&h->in);
		c->min_time = mew_wire_real(&h->in);
		c->iterations = mew_wire_number(&h->in);
		c->repetitions = (unsigned)mew_wire_number(&h->in);
		c->after = copy(mew_wire_text(&h->in));
		if (c->key == NULL)
			h->in.failed = true;
	}
	if (h->in.failed)
		return mew_error_set(err, MEW_E_IO, "the list of cases of %s could not be read", h->program);
	return MEW_OK;
}

static void init(struct mew_host *h, const char *program, const struct mew_host_options *options)
{
	*h = (struct mew_host){ .program = program, .options = options, .fd = -1, .output_fd = -1, .wake_fd = -1,
				.preload = options->allocator };
	mew_wire_init(&h->in);
	mew_wire_init(&h->out);
}

static int open_output(struct mew_host *h, struct mew_error *err)
{
	if (!h->options->capture)
		return MEW_OK;
	h->output_fd = memfd_create("mew-output", MFD_CLOEXEC);
	if (h->output_fd < 0)
		return mew_error_errno(err, MEW_E_IO, "no memory file for the output of %s%s", h->program,
				       mew_error_descriptors());
	(void)fcntl(h->output_fd, F_SETFL, O_APPEND);
	return MEW_OK;
}

int mew_host_open(struct mew_host *h, const char *program, const struct mew_host_options *options,
		  struct mew_error *err)
{
	int status;

	init(h, program, options);
	status = open_output(h, err);
	if (status == MEW_OK)
		status = mew_host_ensure(h, err);
	return status == MEW_OK ? learn_cases(h, err) : status;
}

int mew_host_share(struct mew_host *h, const struct mew_host *from, struct mew_error *err)
{
	init(h, from->program, from->options);
	h->is_shared = true;
	h->lingers = from->lingers;
	h->cases = from->cases;
	h->ncases = from->ncases;
	h->facts = from->facts;
	h->opened = calloc(h->ncases + 1, 1);
	if (h->opened == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the cases of %s", h->program);
	return open_output(h, err);
}

/* A gate starts hundreds of workers: without a word, and waiting for each, it would take minutes longer. */
static void note_lingering(struct mew_host *h)
{
	char line[400];

	if (!h->lingers && !h->is_shared && h->options->say != NULL) { /* that of the shared one says it */
		(void)snprintf(line, sizeof line,
			       "%.200s: its process hangs at its exit, when all is measured (atexit, destructors, a "
						  "tear-down): it was killed after 2 s, and later ones have 0.1 s",
						  h->program);
		h->options->say(line);
	}
	h->lingers = true;
}

void mew_host_retire(struct mew_host *h)
{
	bool had_to_kill = false;

	if (h->fd >= 0) { /* an end of file tells the worker to leave; it tears down what is open */
		(void)shutdown(h->fd, SHUT_WR);
		if (h->pid > 0)
			(void)end_worker(h, false, &had_to_kill);
	}
	if (had_to_kill)
		note_lingering(h);
	mew_host_kill(h);
}

static void free_cases(struct mew_host *h)
{
	for (size_t i = 0; i < h->ncases; i++) {
		free(h->cases[i].key);
		free(h->cases[i].label);
		free(h->cases[i].tags);
		free(h->cases[i].after);
	}
	free(h->cases);
	free(h->hook_names);
	mew_model_free(h->facts);
}

void mew_host_close(struct mew_host *h)
{
	mew_host_retire(h);
	if (!h->is_shared)
		free_cases(h);
	free(h->opened);
	mew_wire_fini(&h->in);
	mew_wire_fini(&h->out);
	if (h->output_fd >= 0)
		(void)close(h->output_fd);
	*h = (struct mew_host){ .fd = -1, .output_fd = -1, .wake_fd = -1 };
}
