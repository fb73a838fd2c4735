/*
 * unwind_table.c - what it costs to compile the unwind table of a library: nanoseconds of CPU time for each of its
 * functions, the first time (its pages come from the file) and at best of some later times.
 * Benchmark; its arguments are libraries, in place of the C library and the compiler's.
 */
#include "config.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ehframe.h"
#include "image.h"
#include "os.h"

#define ROUNDS 9

/* As modules.c does it: the arena serves one library after the other. */
static struct mew_arena arena = { .huge = true };

static double compile(const struct mew_ehframe *frames, struct mew_unwind_table *copy)
{
	const struct mew_unwind_table *table;
	uint64_t start = mew_os_thread_cpu_ns(), end;

	if (mew_ehframe_compile(frames, &arena, &table) != 0 || table == NULL)
		return 0;
	end = mew_os_thread_cpu_ns();
	*copy = *table;
	return (double)(end - start) / copy->fdes;
}

static int measure(struct dl_phdr_info *info, size_t size, void *wanted)
{
	const struct mew_image image = { info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };
	const char *path = info->dlpi_name, *base = strrchr(path, '/');
	double first, best, again;
	struct mew_unwind_table table;
	struct mew_ehframe frames;

	(void)size;
	if (base == NULL || strstr(base, wanted) == NULL || !mew_image_frames(&image, path, &frames))
		return 0;
	first = best = compile(&frames, &table);
	if (first == 0)
		return 0;
	for (int i = 1; i < ROUNDS; i++) {
		again = compile(&frames, &table);
		if (again > 0 && again < best)
			best = again;
	}
	printf("%-28s %8u functions %9u rows %9zu bytes, ns a function: first %6.0f, best %6.0f\n", base + 1, table.fdes,
	       table.nrows, table.bytes, first, best);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = { "libc.so.6", "libstdc++.so.6", "libcrypto.so.3", "libLLVM-14.so.1" };

	for (int i = 0; i < (argc > 1 ? argc - 1 : (int)MEW_COUNTOF(usual)); i++) {
		const char *name = argc > 1 ? argv[i + 1] : usual[i], *base = strrchr(name, '/');
		char wanted[128];

		(void)snprintf(wanted, sizeof wanted, "%s", base != NULL ? base + 1 : name);
		if (dlopen(name, RTLD_LAZY) == NULL)
			printf("%-28s is not installed: left out\n", name);
		else
			(void)dl_iterate_phdr(measure, wanted);
	}
	return EXIT_SUCCESS;
}
