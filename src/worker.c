/*
 * worker.c - see worker.h. The protocol is in wire.h.
 * Layer L4. The process's main thread.
 */
#include "config.h"

#include "worker.h"

#include "duo.h"
#include "environment.h"
#include "error.h"
#include "hooks_link.h"
#include "wire.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define MAX_HOOKS 32

struct worker {
	int fd;
	struct mew_wire in, out;
	struct mew_catalogue catalogue;
	int catalogue_status;
	struct mew_error catalogue_error;
	const struct mew_hook *hooks[MAX_HOOKS];
	size_t nhooks;
	struct mew_runner runner;
	struct mew_duo *duo; /* once two blocks were asked for at once */
};

static int done(struct worker *w, int status, const char *text, const struct mew_model *model)
{
	mew_wire_reset(&w->out);
	mew_wire_put_number(&w->out, (uint64_t)-status);
	mew_wire_put_text(&w->out, text);
	mew_wire_put_number(&w->out, model != NULL);
	if (model != NULL)
		mew_wire_put_model(&w->out, model);
	if (w->out.failed) {
		mew_wire_reset(&w->out);
		mew_wire_put_number(&w->out, (uint64_t)-MEW_E_NOMEM);
		mew_wire_put_text(&w->out, "the result is too large to hand over; take fewer samples");
		mew_wire_put_number(&w->out, 0);
	}
	return mew_wire_send(w->fd, MEW_MSG_DONE, &w->out);
}

static int done_error(struct worker *w, int status, const struct mew_error *err)
{
	return done(w, status, status != MEW_OK ? err->text : NULL, NULL);
}

/* Where this copy of libmew was loaded from: the command looks for libmew_hooks beside it. */
static void library_fact(struct mew_model *m)
{
	Dl_info info;
	void *here;
	const char *(*version)(void) = mew_version;

	memcpy(&here, &version, sizeof here);
	if (dladdr(here, &info) != 0 && info.dli_fname != NULL)
		(void)mew_model_add_fact(m, "libmew", info.dli_fname);
}

static int hello(struct worker *w, bool known)
{
	struct mew_model *m = mew_model_new();
	int status;

	if (m == NULL)
		return MEW_E_NOMEM;
	if (!known) { /* they ask the loader for names, which reads the tables of every library */
		mew_environment_process(m);
		library_fact(m);
	}
	mew_wire_reset(&w->out);
	mew_wire_put_number(&w->out, MEW_WIRE_PROTOCOL);
	mew_wire_put_model(&w->out, m);
	status = mew_wire_send(w->fd, MEW_MSG_HELLO, &w->out);
	mew_model_free(m);
	return status;
}

static int list(struct worker *w)
{
	char names[512];

	if (w->catalogue_status != MEW_OK)
		return done_error(w, w->catalogue_status, &w->catalogue_error);
	mew_hook_names(names, sizeof names);
	mew_wire_reset(&w->out);
	mew_wire_put_text(&w->out, names);
	mew_wire_put_number(&w->out, w->catalogue.n);
	for (size_t i = 0; i < w->catalogue.n; i++) {
		const struct mew_item *it = &w->catalogue.items[i];

		mew_wire_put_text(&w->out, it->key);
		mew_wire_put_text(&w->out, it->label);
		mew_wire_put_text(&w->out, it->entry->tags);
		mew_wire_put_number(&w->out, it->entry->threads != 0 ? it->entry->threads : 1);
		mew_wire_put_real(&w->out, it->entry->min_time);
		mew_wire_put_number(&w->out, it->entry->iterations);
		mew_wire_put_number(&w->out, it->entry->repetitions);
		mew_wire_put_text(&w->out, it->entry->after);
	}
	return mew_wire_send(w->fd, MEW_MSG_CATALOGUE, &w->out);
}

static int activate(struct worker *w)
{
	uint64_t n = mew_wire_number(&w->in);
	char names[512];

	mew_hook_names(names, sizeof names);
	w->nhooks = 0;
	for (uint64_t i = 0; i < n; i++) {
		const char *name = mew_wire_text(&w->in);
		const struct mew_hook *hook = name != NULL ? mew_hook_find(name) : NULL;
		char text[240];

		if (hook == NULL || w->nhooks == MAX_HOOKS) {
			(void)snprintf(text, sizeof text,
				       hook == NULL ? "there is no hook \"%.60s\"; registered here: %.120s" :
									 "too many hooks from \"%.60s\" on%.0s",
				       name != NULL ? name : "", names[0] != '\0' ? names : "none");
			return done(w, MEW_E_INVALID, text, NULL);
		}
		w->hooks[w->nhooks++] = hook;
	}
	w->runner.nhooks = w->nhooks;
	return done(w, MEW_OK, NULL, NULL);
}

static int run(struct worker *w)
{
	struct mew_request rq;
	struct mew_error err;
	struct mew_model *m;
	int status;

	mew_wire_request(&w->in, &rq);
	m = mew_model_new();
	if (w->in.failed || m == NULL) {
		mew_model_free(m);
		return done(w, MEW_E_INVALID, "the request could not be read", NULL);
	}
	status = mew_runner_run(&w->runner, &rq, m, &err);
	(void)fflush(NULL); /* the command collects what the body printed, per case */
	status = done(w, status, status != MEW_OK ? err.text : NULL, m);
	mew_model_free(m);
	return status;
}

struct half { /* one of two blocks whose samples take turns */
	struct worker *w;
	struct mew_request rq;
	struct mew_model *model;
	struct mew_error err;
	int status;
};

static void run_half(void *data)
{
	struct half *h = data;

	h->status = mew_runner_run(&h->w->runner, &h->rq, h->model, &h->err);
}

/* Both on this thread; the page between them says whose sample comes next. */
static void run_halves(struct worker *w, struct half halves[2])
{
	void *const data[2] = { &halves[0], &halves[1] };

	if (w->duo == NULL)
		w->duo = mew_duo_new();
	for (int i = 0; i < 2; i++) {
		halves[i].rq.plan.duo = w->duo;
		if (w->duo == NULL)
			halves[i].status = mew_error_errno(&halves[i].err, MEW_E_NOMEM,
							   "no stacks for two cases at once");
	}
	if (w->duo != NULL)
		mew_duo_run(w->duo, run_half, data);
}

static int run_both(struct worker *w)
{
	struct half halves[2] = { { .w = w }, { .w = w } };
	int status = MEW_OK;

	for (int i = 0; i < 2; i++) {
		mew_wire_request(&w->in, &halves[i].rq);
		halves[i].model = mew_model_new();
	}
	if (w->in.failed || halves[0].model == NULL || halves[1].model == NULL || halves[0].rq.captured ||
	    halves[1].rq.captured) {
		for (int i = 0; i < 2; i++)
			halves[i].status = mew_error_set(&halves[i].err, MEW_E_INVALID,
							 "the request could not be read");
	} else {
		run_halves(w, halves);
	}
	(void)fflush(NULL);
	for (int i = 0; i < 2; i++) {
		if (status == MEW_OK)
			status = done(w, halves[i].status, halves[i].status != MEW_OK ? halves[i].err.text : NULL,
				      halves[i].model);
		mew_model_free(halves[i].model);
	}
	return status;
}

static int serve(struct worker *w, int message)
{
	struct mew_error err;
	uint32_t item;
	enum mew_pass pass;
	int status;

	switch (message) {
	case MEW_MSG_LIST:
		return list(w);
	case MEW_MSG_HOOKS:
		return activate(w);
	case MEW_MSG_RUN:
		return run(w);
	case MEW_MSG_BOTH:
		return run_both(w);
	case MEW_MSG_OPEN:
	case MEW_MSG_CLOSE:
		item = (uint32_t)mew_wire_number(&w->in);
		pass = (enum mew_pass)mew_wire_number(&w->in);
		status = MEW_OK;
		if (message == MEW_MSG_OPEN)
			status = mew_runner_open(&w->runner, item, pass, &err);
		else
			mew_runner_close(&w->runner, item, pass);
		(void)fflush(NULL);
		return done_error(w, status, &err);
	default:
		return MEW_E_IO;
	}
}

static bool running; /* set once, before any body */

bool mew_worker_is_running(void)
{
	return running;
}

/*
 * A body that closes what it did not open has closed the way to the command too; the number may be another file by now.
 */
static bool is_cut(int fd)
{
	int kind;
	socklen_t size = sizeof kind;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) != 0;
}

int mew_worker_main(int fd, bool known)
{
	struct worker w = { .fd = fd };
	int message;

	running = true;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
		(void)fprintf(stderr, "%s%d: not an open descriptor; only `mew` starts workers\n", MEW_WORKER_FLAG, fd);
		return 2;
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not take the last words with it */
	mew_wire_init(&w.in);
	mew_wire_init(&w.out);
	w.catalogue_status = mew_catalogue_init(&w.catalogue, mew_entries(), &w.catalogue_error);
	mew_runner_init(&w.runner, &w.catalogue, w.hooks, 0);
	if (hello(&w, known) == MEW_OK)
		do
			message = mew_wire_receive(fd, &w.in, 0, NULL, -1);
		while (message > 0 && serve(&w, message) == MEW_OK);
	mew_runner_fini(&w.runner);
	mew_duo_free(w.duo);
	mew_catalogue_fini(&w.catalogue);
	mew_wire_fini(&w.in);
	mew_wire_fini(&w.out);
	return is_cut(fd) ? MEW_WORKER_CUT : 0;
}
