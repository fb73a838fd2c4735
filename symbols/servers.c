/*
 * servers.c - see servers.h.
 * Layer L3, inside libmew_symbols. One thread. Nothing here links libdebuginfod, and this process never loads it.
 */
#include "config.h"

#include "servers.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols.h"

#define SECOND_NS 1000000000u
#define GRACE_NS (SECOND_NS / 2) /* for libdebuginfod to notice the limit itself and to remove what it began */
#define URL_MAX 512
#define RETRIES "0" /* each would get the whole time again */

struct answer {
	bool is_whole;
	int error; /* 0, or an errno */
	char path[PATH_MAX];
	char url[URL_MAX]; /* "" where nobody was asked: kept from an earlier download */
};

/* What is used of libdebuginfod (elfutils 0.178 and later). */
struct debuginfod_client;
typedef struct debuginfod_client *begin_fn(void);
typedef int find_fn(struct debuginfod_client *client, const unsigned char *build_id, int bytes, char **path);
typedef const char *url_fn(struct debuginfod_client *client);

/* --- the child ---------------------------------------------------------------------------------------------------- */

/* ISO C has no cast from an object to a function pointer; POSIX promises that the bytes are the same. */
static bool find_function(void *handle, const char *name, void *function, size_t bytes)
{
	void *symbol = dlsym(handle, name);

	memcpy(function, &symbol, bytes);
	return symbol != NULL;
}

static void look(struct answer *a, const unsigned char *build_id, size_t bytes)
{
	void *handle = dlopen(MEW_SYMBOLS_DEBUGINFOD, RTLD_NOW | RTLD_LOCAL);
	struct debuginfod_client *client;
	char *path = NULL;
	const char *url;
	begin_fn *begin;
	url_fn *get_url;
	find_fn *find;
	int fd;

	a->error = ELIBACC;
	if (handle == NULL || !find_function(handle, "debuginfod_begin", &begin, sizeof begin) ||
	    !find_function(handle, "debuginfod_find_debuginfo", &find, sizeof find) ||
	    !find_function(handle, "debuginfod_get_url", &get_url, sizeof get_url))
		return;
	client = begin();
	fd = client == NULL ? -ENOMEM : find(client, build_id, (int)bytes, &path);
	a->error = fd < 0 ? -fd : 0;
	if (fd < 0)
		return;
	url = get_url(client);
	(void)snprintf(a->url, sizeof a->url, "%s", url == NULL ? "" : url);
	if ((size_t)snprintf(a->path, sizeof a->path, "%s", path) >= sizeof a->path)
		a->error = ENAMETOOLONG;
}

/* It counts whole seconds, and takes 0 for no limit. */
static void set_limit(uint64_t left_ns)
{
	const char *given = getenv("DEBUGINFOD_MAXTIME");
	unsigned long users = given == NULL ? 0 : strtoul(given, NULL, 10);
	unsigned long left = left_ns < SECOND_NS ? 1 : (unsigned long)(left_ns / SECOND_NS);
	char text[32];

	(void)snprintf(text, sizeof text, "%lu", users > 0 && users < left ? users : left);
	(void)setenv("DEBUGINFOD_MAXTIME", text, 1);
	(void)setenv("DEBUGINFOD_TIMEOUT", text, 1);
	(void)setenv("DEBUGINFOD_RETRY_LIMIT", RETRIES, 1);
	(void)unsetenv("DEBUGINFOD_PROGRESS"); /* it writes on the terminal */
}

static void run_child(int to, const unsigned char *build_id, size_t bytes, uint64_t left_ns)
{
	struct answer a = { .is_whole = true };
	const char *from = (const char *)&a;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	set_limit(left_ns);
	look(&a, build_id, bytes);
	for (size_t done = 0; done < sizeof a;) {
		ssize_t n = write(to, from + done, sizeof a - done);

		if (n < 0)
			break;
		done += (size_t)n;
	}
	_exit(0);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec t = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* Read the answer; it stays incomplete when the child ends early or has not answered by then. */
static void read_answer(int from, struct answer *a, uint64_t until_ns)
{
	char *to = (char *)a;
	size_t got = 0;

	for (uint64_t now = now_ns(); got < sizeof *a && now < until_ns; now = now_ns()) {
		struct pollfd wait = { .fd = from, .events = POLLIN };
		ssize_t n;

		if (poll(&wait, 1, (int)((until_ns - now) / 1000000 + 1)) <= 0)
			continue;
		n = read(from, to + got, sizeof *a - got);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (got < sizeof *a)
		*a = (struct answer){ .error = now_ns() < until_ns ? ECHILD : ETIME };
}

static void fetch(const struct mew_servers *s, const unsigned char *build_id, size_t bytes, struct answer *a)
{
	uint64_t now = now_ns();
	int ends[2];
	pid_t child;

	*a = (struct answer){ .error = ETIME };
	if (now >= s->until_ns)
		return;
	if (pipe(ends) != 0) {
		a->error = errno;
		return;
	}
	child = fork();
	if (child == 0) {
		(void)close(ends[0]);
		run_child(ends[1], build_id, bytes, s->until_ns - now);
	}
	a->error = errno;
	(void)close(ends[1]);
	if (child > 0) {
		read_answer(ends[0], a, s->until_ns + GRACE_NS);
		(void)kill(child, SIGKILL);
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(ends[0]);
}

static void tell(const struct mew_servers *s, const char *what, const char *about, const char *url)
{
	char line[MEW_WHY_MAX + URL_MAX];
	const char *end = strstr(url, "/buildid/");

	(void)snprintf(line, sizeof line, "%s: %s%.*s", what, about,
		       (int)(end == NULL ? strlen(url) : (size_t)(end - url)), url);
	s->told(s->data, line);
}

static void tell_failure(const struct mew_servers *s, const char *what, int error)
{
	char text[MEW_WHY_MAX];

	if (error == ENOENT)
		(void)snprintf(text, sizeof text, "no server has its debug information");
	else if (error == ETIME || error == ETIMEDOUT)
		(void)snprintf(text, sizeof text, "no debug information within the time limit");
	else if (error == ELIBACC)
		(void)snprintf(text, sizeof text, MEW_SYMBOLS_DEBUGINFOD " cannot be loaded: install libdebuginfod1");
	else if (error == ECHILD)
		(void)snprintf(text, sizeof text, "the download was ended from outside");
	else
		(void)snprintf(text, sizeof text, "its debug information was not downloaded: %s", strerror(error));
	tell(s, what, text, "");
}

bool mew_servers_ask(const struct mew_servers *s, const char *what, const unsigned char *build_id, size_t bytes,
		     struct mew_elf *f)
{
	char text[MEW_WHY_MAX];
	struct answer a;
	struct stat st;

	if (s == NULL || bytes == 0)
		return false;
	fetch(s, build_id, bytes, &a);
	if (a.error != 0) {
		tell_failure(s, what, a.error);
		return false;
	}
	if (!mew_elf_open(f, a.path, text)) {
		tell(s, what, a.url[0] == '\0' ? text : "no ELF file came from ", a.url);
		return false;
	}
	if (f->build_id_bytes != bytes || memcmp(f->build_id, build_id, bytes) != 0) {
		mew_elf_close(f);
		tell(s, what, "a file of another build, which was not used, came from ",
		     a.url[0] == '\0' ? a.path : a.url);
		return false;
	}
	(void)snprintf(text, sizeof text, "%lld bytes of debug information %s",
		       fstat(f->fd, &st) == 0 ? (long long)st.st_size : 0,
		       a.url[0] == '\0' ? "are here from an earlier download" : "from ");
	tell(s, what, text, a.url);
	return true;
}
