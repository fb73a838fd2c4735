/*
 * host_driver.c - the driver over a worker: passes, reopening after a loss, what a body printed.
 * Layer L4. The command's thread.
 */
#include "config.h"

#include "host.h"

#include "error.h"
#include "host_internal.h"
#include "os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_MAX ((size_t)65536)

static bool has_fact(const struct mew_host *h, const char *name, const char *value)
{
	const char *got = mew_model_fact(h->facts, name);

	return got != NULL && strcmp(got, value) == 0;
}

/*
 * The path of a library beside the libmew that the program uses, else where mew was installed, into at most `size`
 * bytes at `out`. Returns its length, 0 when it is in neither.
 */
static size_t library_path(const struct mew_host *h, const char *name, char *out, size_t size)
{
	const char *library = mew_model_fact(h->facts, "libmew");
	const char *slash = library != NULL ? strrchr(library, '/') : NULL;
	const char *const folders[] = { slash != NULL ? library : "", MEW_LIBDIR "/" };

	for (size_t i = 0; i < MEW_COUNTOF(folders); i++) {
		int length = i == 0 ? (slash != NULL ? (int)(slash - library) + 1 : 0) : (int)strlen(folders[i]);
		int n = snprintf(out, size, "%.*s%s", length, folders[i], name);

		if (length > 0 && n > 0 && (size_t)n < size && access(out, R_OK) == 0)
			return (size_t)n;
	}
	return 0;
}

/*
 * What the memory pass preloads: the hooks, unless they are linked in and first, and operator new over them where the
 * allocator has its own. Without the latter the row says what is not counted. Where a preload is refused (the program
 * has a sanitizer) or ignored (it has no loader), the worker says so.
 */
static int choose_hooks(struct mew_host *h, struct mew_error *err)
{
	size_t n = 0;

	if (mew_model_fact(h->facts, "sanitizer") != NULL || has_fact(h, "linked", "statically"))
		return MEW_OK;
	if (!has_fact(h, "hooks", "first") || h->options->allocator != NULL) {
		n = library_path(h, "libmew_hooks.so.0", h->preload_hooks, sizeof h->preload_hooks - 1);
		if (n == 0)
			return mew_error_set(err, MEW_E_UNSUPPORTED,
					     "libmew_hooks.so.0 is neither beside libmew nor in %s: install it, or "
					     "link the program with -lmew_hooks", MEW_LIBDIR);
		h->preload = h->preload_hooks;
	}
	if (mew_model_fact(h->facts, "operator_new") == NULL)
		return MEW_OK;
	if (n > 0)
		h->preload_hooks[n++] = ':';
	if (library_path(h, "libmew_hooks_cxx.so.0", h->preload_hooks + n, sizeof h->preload_hooks - n) > 0)
		h->preload = h->preload_hooks;
	else if (n > 0)
		h->preload_hooks[n - 1] = '\0';
	return MEW_OK;
}

/* In the memory pass the allocator that was asked for comes behind the hooks, so that they are in front of it. */
static int add_allocator(struct mew_host *h, struct mew_error *err)
{
	const char *allocator = h->options->allocator;
	size_t n = h->preload != NULL ? strlen(h->preload_hooks) : 0;

	if (allocator == NULL)
		return MEW_OK;
	if (n + strlen(allocator) + 2 > sizeof h->preload_hooks)
		return mew_error_set(err, MEW_E_INVALID, "%s: the path is too long to be preloaded", allocator);
	(void)snprintf(h->preload_hooks + n, sizeof h->preload_hooks - n, "%s%s", n > 0 ? ":" : "", allocator);
	h->preload = h->preload_hooks;
	return MEW_OK;
}

/*
 * The wrapper that announces threads; where it cannot be had, the CPU backend looks for them itself. Returns its
 * length.
 */
static size_t choose_threads(const struct mew_host *h, char *out, size_t size)
{
	if (mew_model_fact(h->facts, "sanitizer") != NULL || has_fact(h, "linked", "statically"))
		return 0;
	return library_path(h, "libmew_threads.so.0", out, size);
}

/*
 * Timing and sampling run at the native speed of malloc: the library that provides the next malloc is preloaded, so
 * that it comes before the hooks in the search, and for sampling the wrapper of pthread_create in front of it. The
 * memory pass needs the hooks first.
 */
static int choose_preload(struct mew_host *h, enum mew_pass pass, struct mew_error *err)
{
	size_t size = sizeof h->preload_native, n = 0;
	const char *next;
	int status;

	h->preload = NULL;
	if (pass == MEW_PASS_MEMORY) {
		status = choose_hooks(h, err);
		return status == MEW_OK ? add_allocator(h, err) : status;
	}
	if (pass == MEW_PASS_CPU)
		n = choose_threads(h, h->preload_native, size);
	next = mew_model_fact(h->facts, "allocator");
	if (h->options->allocator != NULL)
		next = h->options->allocator;
	else if (!has_fact(h, "hooks", "first"))
		next = NULL;
	if (next != NULL && next[0] == '/')
		n += (size_t)snprintf(h->preload_native + n, size - n, "%s%s", n > 0 ? ":" : "", next);
	if (n > 0)
		h->preload = h->preload_native;
	return MEW_OK;
}

int mew_host_launch(struct mew_host *h, enum mew_pass pass, struct mew_error *err)
{
	int status;

	h->pass = pass;
	status = choose_preload(h, pass, err);
	if (status != MEW_OK)
		return status;
	if (h->used || h->preloaded || h->preload != NULL)
		mew_host_retire(h);
	return mew_host_start(h, err);
}

int mew_host_begin_pass(struct mew_host *h, enum mew_pass pass, struct mew_error *err)
{
	int status = mew_host_launch(h, pass, err);

	return status == MEW_OK ? mew_host_ensure(h, err) : status;
}

/* --- the driver's calls ----------------------------------------------------------------------------------------- */

uint64_t mew_host_deadline(const struct mew_host *h)
{
	return h->options->timeout > 0 ? mew_os_now_ns() + mew_plan_ns(h->options->timeout) : 0;
}

/* What earlier cases printed, and nobody asked for, is not this one's; the time is per turn. */
static void begin_turn(struct mew_host *h, uint32_t item)
{
	free(mew_host_take_output(h));
	h->deadline_item = item;
	h->deadline_ns = mew_host_deadline(h);
}

static int open_in_worker(struct mew_host *h, uint32_t item, struct mew_error *err)
{
	int status = mew_host_ensure(h, err);

	if (status != MEW_OK || h->opened[item])
		return status;
	mew_wire_reset(&h->out);
	mew_wire_put_number(&h->out, item);
	mew_wire_put_number(&h->out, h->pass);
	h->used = true;
	status = mew_host_ask(h, MEW_MSG_OPEN, MEW_MSG_DONE, h->deadline_ns, err);
	h->opened[item] = status == MEW_OK;
	return status;
}

/*
 * A process that ever had a second thread counts allocations with atomic counters from then on: threaded cases get a
 * worker of their own in the memory pass.
 */
static int open_item(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	struct mew_host *h = data;

	if ((pass == MEW_PASS_MEMORY && (h->threaded || h->cases[item].threads > 1)) || (h->options->apart && h->used))
		mew_host_retire(h);
	begin_turn(h, item);
	return open_in_worker(h, item, err);
}

/* A failed case shows what its body printed. */
static void keep_output(struct mew_host *h, uint32_t item, struct mew_model *out)
{
	char *text = mew_host_take_output(h);
	struct mew_case *row = text != NULL ? mew_model_case(out, h->cases[item].key, NULL) : NULL;

	if (row != NULL)
		row->output = mew_model_string(out, text);
	free(text);
}

int mew_host_take_block(struct mew_host *h, uint32_t item, int status, struct mew_model *out, struct mew_error *err)
{
	/* hooks may have left data also when the block failed */
	if (h->pid > 0 && mew_wire_number(&h->in) != 0 && !mew_wire_model(&h->in, out))
		return mew_error_set(err, MEW_E_IO, "a result of %s could not be read", h->program);
	if (status != MEW_OK)
		keep_output(h, item, out);
	return status;
}

void mew_host_add_output(struct mew_host *h, const struct mew_model *m, struct mew_error *err)
{
	const char *kept = m != NULL && m->ncases > 0 ? m->cases[0].output : NULL;
	char *left = kept == NULL ? mew_host_take_output(h) : NULL;

	if (err->status == MEW_E_BODY || err->status == MEW_E_LOOP) /* one that skips, say, needs no more words */
		mew_error_add_printed(err, kept != NULL ? kept : left);
	free(left);
}

static int run_item(void *data, const struct mew_request *rq, struct mew_model *out, struct mew_error *err)
{
	struct mew_host *h = data;
	int status;

	if (h->deadline_item != rq->item) /* interleaved */
		begin_turn(h, rq->item);
	status = open_in_worker(h, rq->item, err);
	if (status != MEW_OK)
		return status;
	h->threaded = h->threaded || h->cases[rq->item].threads > 1;
	mew_wire_reset(&h->out);
	mew_wire_put_request(&h->out, rq);
	status = mew_host_ask(h, MEW_MSG_RUN, MEW_MSG_DONE, h->deadline_ns, err);
	return mew_host_take_block(h, rq->item, status, out, err);
}

static int close_item(void *data, uint32_t item, enum mew_pass pass, struct mew_error *err)
{
	struct mew_host *h = data;

	if (h->pid <= 0 || !h->opened[item])
		return MEW_OK;
	h->opened[item] = 0;
	if (h->deadline_item != item)
		begin_turn(h, item);
	mew_wire_reset(&h->out);
	mew_wire_put_number(&h->out, item);
	mew_wire_put_number(&h->out, pass);
	return mew_host_ask(h, MEW_MSG_CLOSE, MEW_MSG_DONE, mew_host_deadline(h), err);
}

static char *said(void *data)
{
	return mew_host_take_output(data);
}

static int renew(void *data, struct mew_error *err)
{
	mew_host_retire(data);
	return mew_host_ensure(data, err);
}

struct mew_driver mew_host_driver(struct mew_host *h)
{
	return (struct mew_driver){ .data = h, .open = open_item, .run = run_item, .close = close_item, .said = said,
				     .renew = renew };
}

char *mew_host_take_output(struct mew_host *h)
{
	off_t size = h->output_fd >= 0 ? lseek(h->output_fd, 0, SEEK_END) : 0;
	size_t n = (size_t)size > OUTPUT_MAX ? OUTPUT_MAX : (size_t)size;
	char *text;
	ssize_t got;

	if (size <= 0)
		return NULL;
	text = malloc(n + 1);
	got = text != NULL ? pread(h->output_fd, text, n, size - (off_t)n) : -1; /* the end says what went wrong */
	if (ftruncate(h->output_fd, 0) != 0 || got < 0) {
		free(text);
		return NULL;
	}
	text[got] = '\0';
	return text;
}
