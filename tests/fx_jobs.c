/*
 * fx_jobs.c - a benchmark program whose cases show when and where they ran, for the tests of --jobs.
 *
 * The hook "log" appends a line for each begin and end of a block to the file FX_JOBS_LOG: process, phase, key. With
 * FX_JOBS_PATIENCE the two cases of "meet" wait so many seconds in the memory pass until the other one has begun too.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const labels[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", NULL };
static const char *const pair[] = { "one", "other", NULL };
static const char *const four[] = { "a", "b", "c", "d", NULL };

static __attribute__((noinline)) void *inner(size_t n)
{
	void *p = malloc(n);

	mew_keep(p);
	return p;
}

static __attribute__((noinline)) void *outer(size_t n)
{
	void *p = inner(n);

	mew_keep(p);
	return p;
}

MEW_BENCHMARK_NAMED(counts, "counts", .cases = labels, .tags = "exact")
{
	size_t n = mew_case_index(st) + 1;

	MEW_LOOP(st) {
		void *kept[16];

		for (size_t i = 0; i < n; i++)
			kept[i] = i % 2 == 0 ? outer(16 * n) : inner(100 + i);
		for (size_t i = 0; i < n; i++)
			free(kept[i]);
	}
}

/* The dependent stands first in the program: mew puts it behind what it names. */
MEW_BENCHMARK_NAMED(last, "order/last", .after = "order/middle", .tags = "exact order")
{
	MEW_LOOP(st)
		free(inner(30));
}

MEW_BENCHMARK_NAMED(middle, "order/middle", .after = "counts", .tags = "exact order")
{
	MEW_LOOP(st)
		free(inner(20));
}

MEW_BENCHMARK_NAMED(threads, "threads", .threads = 2, .tags = "exact")
{
	MEW_LOOP(st)
		free(inner(50));
}

MEW_BENCHMARK_NAMED(talks, "talks", .cases = four)
{
	(void)printf("these are the words of %s\n", mew_case_label(st));
	MEW_LOOP(st) {
		mew_clobber();
		mew_fail(st, "on purpose");
		break;
	}
}

MEW_BENCHMARK_NAMED(crash, "bad/crash")
{
	(void)printf("last words\n");
	MEW_LOOP(st)
		(void)raise(SIGKILL);
}

MEW_BENCHMARK_NAMED(endless, "bad/endless", .cases = pair)
{
	volatile int always = 1;

	MEW_LOOP(st)
		while (always)
			;
}

MEW_BENCHMARK_NAMED(meet, "meet", .cases = pair)
{
	MEW_LOOP(st)
		free(inner(10));
}

MEW_BENCHMARK_NAMED(skipped, "skipped")
{
	mew_skip(st, "nothing to do");
}

static void write_line(const char *what, const struct mew_phase_info *info)
{
	const char *path = getenv("FX_JOBS_LOG");
	int fd = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1, n;
	char line[200];

	n = snprintf(line, sizeof line, "%s %d %s/%s %s\n", what, (int)getpid(), info->group, info->step, info->key);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		abort();
	(void)close(fd);
}

static int has_begun(const char *key)
{
	char line[400], wanted[100];
	FILE *f = fopen(getenv("FX_JOBS_LOG"), "re");
	int found = 0;

	(void)snprintf(wanted, sizeof wanted, " memory/warmup %s\n", key);
	while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
		found = strncmp(line, "begin", 5) == 0 && strstr(line, wanted) != NULL;
	if (f != NULL)
		(void)fclose(f);
	return found;
}

static void meet(const struct mew_phase_info *info)
{
	const struct timespec pause = { 0, 1000000 };
	const char *patience = getenv("FX_JOBS_PATIENCE");
	time_t until = time(NULL) + (patience != NULL ? atoi(patience) : 0);

	if (patience == NULL || info->phase != MEW_PHASE_MEMORY_WARMUP || strncmp(info->key, "meet/", 5) != 0)
		return;
	while (!has_begun(strcmp(info->key, "meet/case:0") == 0 ? "meet/case:1" : "meet/case:0") && time(NULL) <= until)
		(void)nanosleep(&pause, NULL);
}

static int log_begin(const struct mew_phase_info *info, void *data)
{
	(void)data;
	write_line("begin", info);
	meet(info);
	return 0;
}

static int log_end(const struct mew_phase_info *info, void *data)
{
	(void)data;
	write_line("end", info);
	return 0;
}

static const struct mew_hook to_log = { .name = "log", .begin = log_begin, .end = log_end };
MEW_HOOK(to_log);

MEW_MAIN()
