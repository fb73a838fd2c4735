/*
 * trace_write.c - what it costs to join and write the trace of a large run: 1,000 cases of 5 phases, in processor time
 * beside that of writing the same bytes once, whole and to the disk, as mew does. Prints "row value" lines.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace_merge.h"
#include "writer.h"

#define CASES 1000
#define PHASES 5
#define TURNS 20

static void say(const char *text)
{
	(void)fprintf(stderr, "%s\n", text);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double cpu_ms(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* What the workers of such a run leave: a slice for each phase, and steps of resident memory. */
static void make_fragment(int directory)
{
	int fd = openat(directory, "mew-20-1.json", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (f == NULL)
		fail("the fragment");
	(void)fputs("[\n{\"ph\":\"M\",\"pid\":20,\"tid\":0,\"name\":\"mew_trace\",\"args\":{\"zero_ns\":\"0\"}},\n", f);
	for (int i = 0; i < CASES * PHASES; i++) {
		(void)fprintf(f, "{\"ph\":\"X\",\"pid\":20,\"tid\":20,\"cat\":\"phase\",\"name\":\"measurement/value\",\"ts\":%d.125,\"dur\":99.500,"
				 "\"args\":{\"case\":\"group/case:%d\",\"repetition\":0,\"loops\":1000,\"iterations\":100000}},\n",
			      i * 100, i / PHASES);
		(void)fprintf(f, "{\"ph\":\"C\",\"pid\":20,\"tid\":0,\"name\":\"resident memory\",\"ts\":%d.250,\"args\":{\"bytes\":%d}},\n",
			      i * 100, 4096 * i);
	}
	if (fclose(f) != 0)
		fail("the fragment");
}

struct text {
	char *data;
	size_t bytes;
};

static int put_text(struct mew_writer *w, void *data, struct mew_error *err)
{
	const struct text *t = data;

	(void)err;
	mew_write_bytes(w, t->data, t->bytes);
	return MEW_OK;
}

static struct text read_all(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	struct text t = { NULL, 0 };

	if (fd < 0 || fstat(fd, &st) != 0 || (t.data = malloc((size_t)st.st_size + 1)) == NULL ||
	    read(fd, t.data, (size_t)st.st_size) != st.st_size)
		fail(path);
	t.bytes = (size_t)st.st_size;
	(void)close(fd);
	return t;
}

static size_t merge(int directory, const char *own, const char *output)
{
	const struct mew_clock_pair pair = { 1000000000, 1700000000000000000, 1000000000 };
	struct mew_trace_merge m = { .own = own, .directory = directory, .output = output, .pairs = &pair, .npairs = 1, .say = say,
				     .fixed_clock = true };
	struct mew_error err;

	if (mew_trace_merge(&m, &err) != MEW_OK)
		fail(err.text);
	return m.events;
}

int main(void)
{
	char folder[] = "/tmp/mew-trace_write.XXXXXX", own[64], output[64];
	struct mew_error err;
	double start, merged, written;
	struct text text;
	size_t events = 0;
	FILE *f;
	int directory = -1;

	if (mkdtemp(folder) == NULL || (directory = open(folder, O_RDONLY | O_DIRECTORY)) < 0)
		fail(folder);
	(void)snprintf(own, sizeof own, "%s/own", folder);
	(void)snprintf(output, sizeof output, "%s/out", folder);
	f = fopen(own, "w");
	if (f == NULL || fputs("[\n{\"ph\":\"M\",\"pid\":10,\"name\":\"mew_trace\",\"args\":{\"zero_ns\":\"0\"}},\n", f) < 0 || fclose(f) != 0)
		fail(own);
	make_fragment(directory);
	start = cpu_ms();
	for (int i = 0; i < TURNS; i++)
		events = merge(directory, own, output);
	merged = (cpu_ms() - start) / TURNS;
	text = read_all(output);
	start = cpu_ms();
	for (int i = 0; i < TURNS; i++)
		if (mew_write_file(output, put_text, &text, &err) != MEW_OK)
			fail(err.text);
	written = (cpu_ms() - start) / TURNS;
	(void)printf("events %zu\nbytes %zu\nmerge_cpu_ms %.3f\nwrite_cpu_ms %.3f\n", events, text.bytes, merged, written);
	(void)printf("merge_per_write %.1f\n", merged / written);
	free(text.data);
	(void)unlinkat(directory, "mew-20-1.json", 0);
	(void)unlink(own);
	(void)unlink(output);
	(void)close(directory);
	return rmdir(folder) == 0 ? 0 : 1;
}
