/*
 * terminal.c - see terminal.h.
 * Layer L6. Writes to standard error alone, between blocks.
 */
#include "config.h"

#include "terminal.h"

#include "os.h"

#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define REDRAW_NS 100000000u

bool mew_when_parse(const char *text, enum mew_when *out)
{
	static const char *const names[] = { "auto", "always", "never" };

	for (size_t i = 0; i < MEW_COUNTOF(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (enum mew_when)i;
			return true;
		}
	return false;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0';
}

static bool is_dumb(void)
{
	const char *term = getenv("TERM");

	return term == NULL || strcmp(term, "dumb") == 0;
}

int mew_terminal_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (columns != NULL && atoi(columns) >= 40)
		return atoi(columns);
	if (!isatty(fd))
		return 120;
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return 80;
}

bool mew_terminal_color(enum mew_when when, int fd)
{
	const char *force = getenv("FORCE_COLOR");

	if (when != MEW_AUTO)
		return when == MEW_ALWAYS;
	if (is_set("NO_COLOR"))
		return false;
	if (force != NULL && force[0] != '\0' && strcmp(force, "0") != 0)
		return true;
	return isatty(fd) && !is_dumb();
}

bool mew_terminal_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void mew_progress_init(struct mew_progress *p, enum mew_when when)
{
	bool terminal = isatty(STDERR_FILENO) && !is_dumb() && !is_set("CI");

	*p = (struct mew_progress){ .live = when != MEW_NEVER && terminal, .start_ns = mew_os_now_ns(), .last_pass = -1 };
	p->lines = when == MEW_ALWAYS && !p->live;
}

/* "12 s" or "3 min"; nothing is known before the first step. */
static void time_left(const struct mew_progress *p, size_t done, size_t total, char *text, size_t size)
{
	uint64_t spent = mew_os_now_ns() - p->start_ns;
	uint64_t left;

	text[0] = '\0';
	if (done == 0)
		return;
	left = spent / done * (total - done) / 1000000000u;
	if (left >= 120)
		(void)snprintf(text, size, ", about %llu min left", (unsigned long long)(left / 60));
	else
		(void)snprintf(text, size, ", about %llu s left", (unsigned long long)left);
}

void mew_progress_show(struct mew_progress *p, const void *id, const char *key, int pass, const char *pass_name,
		       size_t done, size_t total)
{
	uint64_t now = mew_os_now_ns();
	int width = mew_terminal_width(STDERR_FILENO), n;
	char left[48], line[512];

	if (p->lines && (id != p->last_case || pass != p->last_pass))
		(void)fprintf(stderr, "[%zu/%zu] %s %s\n", done + 1, total, pass_name, key);
	p->last_case = id;
	p->last_pass = pass;
	if (!p->live || (p->drawn && now - p->last_ns < REDRAW_NS))
		return;
	time_left(p, done, total, left, sizeof left);
	n = snprintf(line, sizeof line, "[%zu/%zu] %s %s%s", done + 1, total, pass_name, key, left);
	if (n >= width && width < (int)sizeof line)
		line[width - 1] = '\0';
	(void)fprintf(stderr, "\r%s\033[K", line);
	(void)fflush(stderr);
	p->drawn = true;
	p->last_ns = now;
}

void mew_progress_clear(struct mew_progress *p)
{
	if (p->drawn)
		(void)fprintf(stderr, "\r\033[K");
	p->drawn = false;
}
