/*
 * symbols.c - time and memory of naming addresses, by libmew_symbols.so or by any command that reads them from a file.
 * Benchmark program: forks once, and prints what the child took as "row value" lines for compare.sh.
 *
 *   symbols mew LIBMEW_SYMBOLS MODULE ADDRESSES     names them by libmew_symbols.so
 *   symbols print LIBMEW_SYMBOLS MODULE ADDRESSES   the same, printed as `llvm-symbolizer -i` prints it; no figures
 *   symbols command ADDRESSES COMMAND...            runs the command with ADDRESSES as its standard input
 *
 * ADDRESSES holds one hexadecimal number a line, ascending.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base.h"
#include "symbols.h"

struct answers {
	const uint64_t *offsets;
	size_t frames, notes, index;
	bool is_printed, is_begun;
};

static void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "symbols: %s: %s\n", what, why);
	exit(2);
}

static uint64_t *read_addresses(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");
	uint64_t *all = NULL;
	size_t capacity = 0;
	char line[64];

	if (f == NULL)
		die(path, strerror(errno));
	for (*n = 0; fgets(line, sizeof line, f) != NULL; (*n)++) {
		if (*n == capacity) {
			uint64_t *grown;

			capacity = capacity == 0 ? 1024 : 2 * capacity;
			grown = reallocarray(all, capacity, sizeof *all);
			if (grown == NULL)
				die(path, "no memory");
			all = grown;
		}
		all[*n] = strtoull(line, NULL, 16);
	}
	(void)fclose(f);
	return all;
}

/* A line with the address opens each answer, an empty one ends it. */
static void open_answer(struct answers *a, size_t index)
{
	if (a->is_begun && a->index == index)
		return;
	(void)printf("%s0x%llx\n", a->is_begun ? "\n" : "", (unsigned long long)a->offsets[index]);
	a->is_begun = true;
	a->index = index;
}

static int take_frame(void *data, const struct mew_symbols_frame *f)
{
	struct answers *a = data;

	a->frames++;
	if (a->is_printed) {
		open_answer(a, f->index);
		(void)printf("%s\n%s:%u:0\n", f->function, f->file, f->line);
	}
	return 0;
}

static int take_note(void *data, size_t index, const char *why)
{
	struct answers *a = data;

	a->notes++;
	if (a->is_printed) {
		open_answer(a, index);
		(void)fprintf(stderr, "# 0x%llx: %s\n", (unsigned long long)a->offsets[index], why);
	}
	return 0;
}

static int take_start(void *data, size_t index, uint64_t start)
{
	(void)data;
	(void)index;
	(void)start;
	return 0;
}

static int resolve(const char *library, const char *module, const char *addresses, bool is_printed)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL), *symbol;
	struct answers a = { .is_printed = is_printed };
	struct mew_symbols_query q = { .abi = MEW_SYMBOLS_ABI, .path = module, .build_id = "", .frame = take_frame,
				       .note = take_note, .start = take_start, .data = &a };
	mew_symbols_resolve_fn *entry;
	int status;

	if (handle == NULL)
		die(library, dlerror());
	symbol = dlsym(handle, MEW_SYMBOLS_ENTRY);
	if (symbol == NULL)
		die(library, dlerror());
	memcpy(&entry, &symbol, sizeof entry);
	q.offsets = a.offsets = read_addresses(addresses, &q.n);
	status = entry(&q);
	if (status != 0 || a.frames < q.n / 2)
		die(module, "most of its addresses were not named");
	return 0;
}

static void run_command(const char *addresses, char **argv)
{
	int in = open(addresses, O_RDONLY), out = open("/dev/null", O_WRONLY);

	if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		die(addresses, strerror(errno));
	(void)execvp(argv[0], argv);
	die(argv[0], strerror(errno));
}

static double milliseconds(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage used;
	double begin;
	int status;
	pid_t child;

	if (argc == 5 && strcmp(argv[1], "print") == 0)
		return resolve(argv[2], argv[3], argv[4], true);
	if (argc < 4 || (strcmp(argv[1], "mew") == 0 && argc != 5))
		die("usage", "symbols mew|print LIBMEW_SYMBOLS MODULE ADDRESSES | command ADDRESSES COMMAND...");
	begin = now();
	child = fork();
	if (child == 0) {
		if (strcmp(argv[1], "mew") != 0)
			run_command(argv[2], argv + 3);
		_exit(resolve(argv[2], argv[3], argv[4], false));
	}
	if (child < 0 || wait4(child, &status, 0, &used) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die(argv[1], "it did not end well");
	(void)printf("wall_ms %.3f\ncpu_ms %.3f\npeak_mib %.3f\n", now() - begin,
		     milliseconds(used.ru_utime) + milliseconds(used.ru_stime), (double)used.ru_maxrss / 1024);
	return 0;
}
