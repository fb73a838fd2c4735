/*
 * resident.c - how far the loop drives the process's resident memory up, as the kernel counts it.
 * Layer L3. Runs beside the memory pass, in a call of the body of its own, since the table of blocks would be counted
 * too. The kernel's high-water mark is set back when the window opens (proc(5), clear_refs).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "mew/backend.h"
#include "sink.h"

#define KIB 1024u

struct mew_capture {
	uint64_t before, highest; /* bytes */
	char why[240];            /* it is not known; "" when it is */
	char status[8192];        /* here and not on the stack, whose fresh pages would be part of the growth */
};

/* Without stdio: between the two readings nothing of mew's should touch new memory. */
static bool read_status(char *text, size_t size)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* A line such as "VmHWM:    1234 kB", in bytes. */
static bool read_line(const char *text, const char *name, uint64_t *bytes)
{
	const char *at = strstr(text, name);
	char *end;

	if (at == NULL)
		return false;
	at += strlen(name);
	*bytes = strtoull(at, &end, 10) * KIB;
	return end != at;
}

static int reset_highest(struct mew_error *err)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC), reason = errno;
	ssize_t n = -1;

	if (fd >= 0) {
		n = write(fd, "5", 1);
		reason = errno;
		(void)close(fd);
	}
	if (n == 1)
		return MEW_OK;
	return mew_error_set(err, MEW_E_DENIED,
			     "the peak of resident memory cannot be set back, /proc/self/clear_refs: %s",
			     strerror(reason));
}

static int resident_probe(struct mew_error *err)
{
	char text[8192];
	uint64_t bytes;
	int status = reset_highest(err);

	if (status != MEW_OK)
		return status;
	if (!read_status(text, sizeof text) || !read_line(text, "VmHWM:", &bytes) || !read_line(text, "VmRSS:", &bytes))
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "the peak of resident memory is not known: /proc/self/status has no VmHWM");
	return MEW_OK;
}

static int resident_open(struct mew_capture **out, const struct mew_capture_config *config, struct mew_error *err)
{
	(void)config;
	*out = calloc(1, sizeof **out);
	return *out != NULL ? MEW_OK : mew_error_set(err, MEW_E_NOMEM, "no memory to watch the resident memory");
}

static int resident_thread_begin(struct mew_capture *c, unsigned thread, struct mew_error *err)
{
	(void)c;
	(void)thread;
	(void)err;
	return MEW_OK;
}

static int resident_begin(struct mew_capture *c, struct mew_error *err)
{
	struct mew_error refused;

	(void)err; /* a machine without this figure has the others */
	mew_error_clear(&refused);
	if (reset_highest(&refused) != MEW_OK)
		(void)snprintf(c->why, sizeof c->why, "%s", refused.text);
	else if (!read_status(c->status, sizeof c->status) || !read_line(c->status, "VmRSS:", &c->before))
		(void)snprintf(c->why, sizeof c->why, "/proc/self/status cannot be read");
	return MEW_OK;
}

static void resident_end(struct mew_capture *c)
{
	if (c->why[0] == '\0' && (!read_status(c->status, sizeof c->status) ||
				   !read_line(c->status, "VmHWM:", &c->highest)))
		(void)snprintf(c->why, sizeof c->why, "/proc/self/status cannot be read");
}

static void resident_of_thread(struct mew_capture *c, unsigned thread)
{
	(void)c;
	(void)thread;
}

static int resident_drain(struct mew_capture *c, struct mew_sink *sink, struct mew_error *err)
{
	(void)err;
	if (c->why[0] != '\0')
		mew_sink_absent(sink, MEW_FIG_RSS_PEAK_DELTA_BYTES, c->why);
	else
		mew_sink_u64(sink, MEW_FIG_RSS_PEAK_DELTA_BYTES, c->highest > c->before ? c->highest - c->before : 0);
	return MEW_OK;
}

static void resident_close(struct mew_capture *c)
{
	free(c);
}

extern const struct mew_backend mew_backend_resident; /* the registry declares it for itself */

const struct mew_backend mew_backend_resident = {
	.abi = MEW_BACKEND_ABI,
	.name = "resident",
	.help = "growth of resident memory up to its highest in the loop",
	.pass = MEW_PASS_RESIDENT,
	.probe = resident_probe,
	.open = resident_open,
	.thread_begin = resident_thread_begin,
	.begin = resident_begin,
	.pause = resident_of_thread,
	.resume = resident_of_thread,
	.end = resident_end,
	.thread_end = resident_of_thread,
	.drain = resident_drain,
	.close = resident_close,
};
