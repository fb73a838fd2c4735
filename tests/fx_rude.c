/*
 * fx_rude.c - cases that do to their process what a benchmark should not: for rude.sh.
 * Test. Each makes exactly one allocation of 10 bytes an iteration.
 */
#define _GNU_SOURCE 1
#include <mew.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void work(struct mew_state *st)
{
	MEW_LOOP(st) {
		void *block = malloc(10);

		mew_keep(block);
		free(block);
	}
}

MEW_BENCHMARK(prints)
{
	(void)printf("no result: {\"cases\": []}\n");
	work(st);
	(void)write(STDOUT_FILENO, "behind\n", 7);
}

MEW_BENCHMARK(closes)
{
	for (int fd = 3; fd < 1024; fd++)
		(void)close(fd);
	if (getenv("RUDE_LASTS") != NULL) /* beyond mew's patience with one that is gone from its sight */
		(void)sleep(3);
	work(st);
}

/* Into whatever socket the process has, which is the one that mew talks by. */
static void scribble(const char *text, size_t bytes)
{
	struct stat what;

	for (int fd = 3; fd < 1024; fd++)
		if (fstat(fd, &what) == 0 && S_ISSOCK(what.st_mode))
			(void)write(fd, text, bytes);
}

MEW_BENCHMARK(scribbles)
{
	scribble("\377\377\377\377\377\377\377\377", 8);
	work(st);
}

/* As a size, its first four bytes are one that a result may have. */
MEW_BENCHMARK(scribbles_text)
{
	scribble("12345678\n", 9);
	work(st);
}

MEW_BENCHMARK(moves)
{
	if (chdir("/") != 0)
		mew_fail(st, "no way out");
	work(st);
}

MEW_BENCHMARK(preloads)
{
	(void)setenv("LD_PRELOAD", "libm.so.6", 1);
	work(st);
}

MEW_BENCHMARK(drops)
{
	if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
		mew_fail(st, "still somebody");
	work(st);
}

MEW_BENCHMARK(after)
{
	work(st);
}

MEW_MAIN()
