/*
 * fx_trace.c - a benchmark program with records of its own on the timeline; FX_TRACE_CHILD is a command that it runs.
 */
#define _GNU_SOURCE 1
#include <mew.h>
#include <mew/trace.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

MEW_BENCHMARK_NAMED(first, "first")
{
	struct mew_stream requests = mew_stream("requests");
	uint64_t now = mew_trace_now();

	(void)mew_stream_section(requests, "overlaps", now - 4000, now - 1000);
	(void)mew_stream_section(requests, "overlaps", now - 3000, now);
	MEW_LOOP(st) {
		mew_section("outer") {
			mew_section("inner")
				mew_clobber();
			mew_mark("a \"mark\"");
		}
		MEW_PAUSED(st)
			mew_clobber();
	}
}

static void set_up(void *arg)
{
	const char *child = getenv("FX_TRACE_CHILD");

	(void)arg;
	if (child != NULL && system(child) != 0)
		(void)fprintf(stderr, "the child failed\n");
}

MEW_BENCHMARK_NAMED(second, "second", .after = "first", .threads = 2, .setup = set_up)
{
	MEW_LOOP(st) {
		void *p = malloc(100);

		mew_keep(p);
		free(p);
	}
}

MEW_BENCHMARK_NAMED(fails, "fails")
{
	MEW_LOOP(st) {
		mew_section("half") {
			mew_fail(st, "on purpose");
			break;
		}
	}
}

/* What a failing assertion does: the inner section and the outer one are left without their ends. */
MEW_BENCHMARK_NAMED(jumps, "jumps")
{
	static jmp_buf back;

	if (setjmp(back) == 0) {
		MEW_LOOP(st) {
			struct mew_section outer = mew_section_begin("jumped over");

			mew_section("jumped out of")
				longjmp(back, 1);
			mew_section_end(&outer);
		}
	}
	mew_section("after the jump")
		mew_fail(st, "it jumped, on purpose");
}

/* The process that asked for the trace dies in the middle of it. */
MEW_BENCHMARK_NAMED(killer, "killer")
{
	MEW_LOOP(st)
		mew_clobber();
	if (getenv("FX_TRACE_KILL") != NULL) {
		(void)kill(getppid(), SIGKILL);
		(void)sleep(5);
	}
}

/* The child leaves by exit(), and so does what it recorded. */
MEW_BENCHMARK_NAMED(forks, "forks")
{
	pid_t child;

	mew_section("before the fork")
		mew_clobber();
	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		mew_section("in the child")
			mew_clobber();
		exit(0);
	}
	(void)waitpid(child, NULL, 0);
	MEW_LOOP(st)
		mew_clobber();
}

/* Children that end without a word: whatever they have recorded by then is on the timeline. */
static void end_in_silence(const char *how)
{
	char name[60];

	mew_section("ended in time")
		mew_mark(how);
	(void)snprintf(name, sizeof name, "open when it ended by %s", how);
	(void)mew_section_begin(mew_trace_name(name));
	if (strcmp(how, "a signal") == 0)
		(void)raise(SIGKILL);
	if (strcmp(how, "exec") == 0)
		(void)execl("/bin/true", "true", (char *)NULL);
	_exit(0);
}

MEW_BENCHMARK_NAMED(silent, "silent")
{
	static const char *const ways[] = { "_exit", "a signal", "exec" };

	(void)fflush(NULL);
	MEW_LOOP(st) {
		for (size_t i = 0; i < 3; i++) {
			pid_t child = fork();

			if (child == 0)
				end_in_silence(ways[i]);
			(void)waitpid(child, NULL, 0);
		}
	}
}

/* The benchmark process itself is killed in a body that has recorded something. */
MEW_BENCHMARK_NAMED(dies, "dies")
{
	mew_mark("before it died");
	(void)raise(SIGKILL);
	MEW_LOOP(st)
		mew_clobber();
}

/* As a program does that becomes a daemon; but for sockets, without which mew would lose the case. Then it opens a file. */
MEW_BENCHMARK_NAMED(closes, "closes")
{
	struct stat what;
	int fd;

	for (fd = 3; fd < 200; fd++)
		if (fstat(fd, &what) == 0 && !S_ISSOCK(what.st_mode))
			(void)close(fd);
	for (fd = 0; fd >= 0 && fd < 20;) /* under each number that is free now */
		fd = open("innocent", O_WRONLY | O_CREAT, 0666);
	mew_section("after they were closed")
		mew_clobber();
	MEW_LOOP(st)
		mew_clobber();
}

static void *end_section(void *section)
{
	mew_section_end(section);
	return NULL;
}

MEW_BENCHMARK_NAMED(elsewhere, "elsewhere")
{
	struct mew_section section = mew_section_begin("ended elsewhere");
	pthread_t other;

	if (pthread_create(&other, NULL, end_section, &section) == 0)
		(void)pthread_join(other, NULL);
	MEW_LOOP(st)
		mew_clobber();
}

MEW_MAIN()
