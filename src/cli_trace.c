/*
 * cli_trace.c - see cli_trace.h. The process's own events stream into FILE.partial, which a viewer loads at any moment.
 * Layer L6. The command's thread; an exit handler is the backstop.
 */
#include "config.h"

#include "cli_trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "os.h"
#include "symbolise.h"
#include "trace_command.h"
#include "trace_merge.h"
#include "trace_samples.h"

#define PAIRS 256u
#define TICK_NS 50000000

static struct {
	int pid;       /* that has a trace to end; 0: none */
	int directory; /* open since it was made: a name that leads elsewhere later is not followed */
	int lock;      /* keeps other runs off the partial file until the trace is made of it */
	char *path, *partial;
	int64_t zero_ns;
	struct mew_clock_pair pairs[PAIRS];
	size_t npairs;
} trace = { .directory = -1, .lock = -1 };

/* --- flags ------------------------------------------------------------------------------------------------------ */

int mew_cli_trace_file(struct mew_cli_trace *t, const char *value)
{
	if (value != NULL && value[0] == '\0')
		return mew_cli_bad("--trace", value, "a file name");
	if (value != NULL && strcmp(value, "-") == 0)
		return mew_cli_bad("--trace", value, "a file name (standard output is taken)");
	t->file = value != NULL ? value : MEW_TRACE_DEFAULT;
	return MEW_EXIT_FINE;
}

int mew_cli_trace_redact(const char *value)
{
	if (!mew_trace_redact(value))
		return mew_cli_bad("--redact", value, "an extended regular expression");
	return MEW_EXIT_FINE;
}

static void add_command(const struct mew_cli_trace *t, struct mew_trace_args *args)
{
	size_t bytes = 1;
	char *line, *shown;

	for (int i = 0; i < t->argc; i++)
		bytes += strlen(t->argv[i]) + 1;
	line = calloc(bytes, 1);
	for (int i = 0; line != NULL && i < t->argc; i++) {
		(void)strcat(line, i > 0 ? " " : "");
		(void)strcat(line, t->argv[i]);
	}
	shown = line != NULL ? mew_trace_shown_line(line) : NULL;
	mew_trace_arg_text(args, "command", shown);
	free(shown);
	free(line);
}

/* --- begin ------------------------------------------------------------------------------------------------------ */

static void make_parents(const char *path)
{
	char *copy = strdup(path);

	for (char *p = copy != NULL ? copy + 1 : NULL; p != NULL && (p = strchr(p, '/')) != NULL; *p++ = '/') {
		*p = '\0';
		(void)mkdir(copy, 0777); /* what is missing shows when the file is opened */
	}
	free(copy);
}

static void remove_fragments(void)
{
	struct stat ours, named;
	DIR *dir = fdopendir(trace.directory);
	struct dirent *d;

	if (dir == NULL)
		return;
	rewinddir(dir);
	while ((d = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), d->d_name, 0); /* not directories: nobody was asked for those */
	if (fstat(dirfd(dir), &ours) != 0 || lstat(trace.path, &named) != 0 || ours.st_ino != named.st_ino ||
	    ours.st_dev != named.st_dev)
		mew_cli_complain("trace: %s was put in the place of the directory of fragments, and is left alone",
				 trace.path);
	else if (rmdir(trace.path) != 0)
		mew_cli_complain("trace: %s cannot be removed: %s", trace.path, strerror(errno));
	(void)closedir(dir);
	trace.directory = -1;
}

static void forget(void)
{
	(void)unsetenv(MEW_TRACE_DIR_VARIABLE);
	if (trace.lock >= 0)
		(void)close(trace.lock);
	trace.lock = -1;
	free(trace.path);
	free(trace.partial);
	trace.path = trace.partial = NULL;
	trace.pid = 0;
}

static void discard(void)
{
	if (trace.pid != (int)getpid())
		return;
	mew_trace_log_end();
	if (trace.partial != NULL)
		(void)unlink(trace.partial);
	if (trace.directory >= 0)
		remove_fragments();
	forget();
}

static int make_directory(void)
{
	const char *base = getenv("TMPDIR");

	if (base == NULL || base[0] != '/')
		base = "/tmp";
	if (asprintf(&trace.path, "%s/mew-trace.XXXXXX", base) < 0)
		trace.path = NULL;
	if (trace.path != NULL && mkdtemp(trace.path) != NULL &&
	    (trace.directory = open(trace.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) >= 0)
		return MEW_EXIT_FINE;
	mew_cli_complain("trace: no directory for fragments in %s: %s; set TMPDIR", base, strerror(errno));
	return MEW_EXIT_USAGE;
}

/* What is known to fail fails before anything is measured. Beside a device or a pipe there is no place for a file. */
static int choose_partial(const char *file)
{
	size_t n = strlen(file);
	struct stat st;
	bool exists = stat(file, &st) == 0, apart;
	bool in_memory = strncmp(file, "/dev/shm/", 9) == 0; /* files like any other */

	if ((exists && S_ISDIR(st.st_mode)) || file[n - 1] == '/') {
		mew_cli_complain("--trace: %s is a directory; name a file in it", file);
		return MEW_EXIT_USAGE;
	}
	apart = (exists && !S_ISREG(st.st_mode)) || (strncmp(file, "/dev/", 5) == 0 && !in_memory) ||
		strncmp(file, "/proc/", 6) == 0;
	if (asprintf(&trace.partial, "%s%s.partial", apart ? trace.path : file, apart ? "/" : "") >= 0)
		return MEW_EXIT_FINE;
	trace.partial = NULL;
	mew_cli_complain("trace: no memory for the name of a file");
	return MEW_EXIT_USAGE;
}

static int begin(const struct mew_cli_trace *t)
{
	struct mew_error err;

	if (make_directory() != MEW_EXIT_FINE || choose_partial(t->file) != MEW_EXIT_FINE)
		return MEW_EXIT_USAGE;
	make_parents(t->file);
	if (mew_trace_log_begin(NULL, trace.partial, &err) != MEW_OK) {
		mew_cli_complain("--trace: %s", err.text);
		free(trace.partial); /* it is not ours */
		trace.partial = NULL;
		return MEW_EXIT_USAGE;
	}
	trace.lock = mew_trace_log_hold();
	(void)setenv(MEW_TRACE_DIR_VARIABLE, trace.path, 1);
	return MEW_EXIT_FINE;
}

static int join_other(const char *directory)
{
	if (mew_trace_is_on()) {
		mew_cli_complain("--trace: this run is part of a traced one and shows there; unset %s for a file of "
				 "its own",
				 MEW_TRACE_DIR_VARIABLE);
		return MEW_EXIT_FINE;
	}
	mew_cli_complain("--trace: %s is \"%s\", no directory of this user's own; unset it", MEW_TRACE_DIR_VARIABLE,
			 directory);
	return MEW_EXIT_USAGE;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

int mew_cli_trace_check(const struct mew_cli_trace *t, char *const programs[], int n)
{
	if (t->file == NULL || strcmp(t->file, MEW_TRACE_DEFAULT) != 0)
		return MEW_EXIT_FINE;
	for (int i = 0; i < n; i++) {
		if (ends_in(programs[i], ".json") || ends_in(programs[i], ".json.gz")) {
			mew_cli_complain("--trace: the file follows a '=': --trace=%s", programs[i]);
			return MEW_EXIT_USAGE;
		}
	}
	return MEW_EXIT_FINE;
}

static void on_failed_write(int signal)
{
	(void)signal;
}

/*
 * `mew run --trace | head`, or a limit to the size of files, ends with a failed write and a trace, not in the middle. A
 * handler, unlike SIG_IGN, is not inherited.
 */
static void survive_writes(void)
{
	static const int signals[] = { SIGPIPE, SIGXFSZ };
	struct sigaction before, sa = { .sa_handler = on_failed_write };

	(void)sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < MEW_COUNTOF(signals); i++)
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
			(void)sigaction(signals[i], &sa, NULL);
}

int mew_cli_trace_begin(const struct mew_cli_trace *t)
{
	const char *inherited = getenv(MEW_TRACE_DIR_VARIABLE);
	static bool registered;

	if (t->file == NULL)
		return MEW_EXIT_FINE;
	if (inherited != NULL && inherited[0] != '\0')
		return join_other(inherited);
	if (!registered && atexit(discard) == 0)
		registered = true;
	survive_writes();
	trace.pid = (int)getpid();
	trace.npairs = 0;
	if (begin(t) != MEW_EXIT_FINE) {
		discard();
		return MEW_EXIT_USAGE;
	}
	mew_clock_pair_read(&trace.pairs[trace.npairs++]);
	trace.zero_ns = trace.pairs[0].monotonic_ns;
	return MEW_EXIT_FINE;
}

void mew_cli_trace_tick(void)
{
	struct mew_clock_pair now;

	if (trace.pid == 0)
		return;
	mew_clock_pair_read(&now);
	if (now.monotonic_ns - trace.pairs[trace.npairs - 1].monotonic_ns < TICK_NS)
		return;
	if (trace.npairs == PAIRS) { /* a long run: every second one is enough */
		for (size_t i = 1; i < PAIRS / 2; i++)
			trace.pairs[i] = trace.pairs[i * 2];
		trace.npairs = PAIRS / 2;
	}
	trace.pairs[trace.npairs++] = now;
}

void mew_cli_trace_since(uint64_t start_ns, const char *category, const char *name, const struct mew_trace_args *args)
{
	mew_trace_slice(&(struct mew_trace_slice){
		.category = category, .name = name, .start_ns = start_ns, .end_ns = mew_os_now_ns(), .args = args });
}

void mew_cli_trace_program(uint64_t start_ns, const char *program)
{
	char *shown = mew_trace_is_on() ? mew_trace_shown_name(mew_base_name(program)) : NULL;

	mew_cli_trace_since(start_ns, "benchmark", shown, NULL);
	free(shown);
}

/* Where the fragments of this run are, made here or inherited; -1: nowhere. */
static int open_directory(void)
{
	return trace.pid != 0 ? fcntl(trace.directory, F_DUPFD_CLOEXEC, 0) : mew_trace_log_directory();
}

void mew_cli_trace_samples(const struct mew_model *m)
{
	struct mew_error err;

	if (mew_trace_samples_show(m, mew_trace_is_on() ? open_directory() : -1, &err) != MEW_OK)
		mew_cli_complain("trace: %s", err.text);
}

/* --- end -------------------------------------------------------------------------------------------------------- */

static void say(const char *text)
{
	mew_cli_complain("trace: %s", text);
}

static void say_what_was_left_out(const struct mew_trace_merge *m)
{
	uint64_t alone = m->dropped - m->far - m->beyond, unfit = m->lost + m->beyond;

	if (m->thinned > 0)
		(void)fprintf(stderr, "; %llu samples were left out", (unsigned long long)m->thinned);
	if (m->far > 0)
		(void)fprintf(stderr, "; left out: %llu at times outside the run (microseconds since 1970 are wanted)",
			      (unsigned long long)m->far);
	if (m->bad + alone + unfit > 0)
		(void)fprintf(stderr, "; left out: %llu malformed, %llu without a partner, %llu that did not fit",
			      (unsigned long long)m->bad, (unsigned long long)alone, (unsigned long long)unfit);
}

static int finish(const struct mew_cli_trace *t, int code)
{
	struct mew_trace_merge m = {
		.own = trace.partial,
		.directory = trace.directory,
		.output = t->file,
		.zero_ns = trace.zero_ns,
		.pairs = trace.pairs,
		.npairs = trace.npairs,
		.say = say,
	};
	struct mew_error err;

	if (mew_trace_merge(&m, &err) != MEW_OK) {
		mew_cli_complain("trace: %s; what was recorded stays in %s and %s", err.text, trace.partial,
				 trace.path);
		forget();
		return code != MEW_EXIT_FINE ? code : MEW_EXIT_USAGE;
	}
	(void)fprintf(stderr, "trace: wrote %s (%zu events", t->file, m.events);
	say_what_was_left_out(&m);
	(void)fputs(")\n", stderr);
	discard();
	return code;
}

int mew_cli_trace_end(const struct mew_cli_trace *t, bool keep, int code)
{
	struct mew_trace_args args = { 0 };

	if (trace.pid == 0) {
		mew_trace_drain();
		return code;
	}
	mew_trace_arg_number(&args, "exit_code", (uint64_t)code);
	add_command(t, &args);
	mew_cli_trace_since((uint64_t)trace.zero_ns, "run", "run", &args);
	mew_cli_trace_tick();
	mew_trace_log_end();
	if (keep)
		return finish(t, code);
	discard();
	return code;
}
