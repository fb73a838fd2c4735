/*
 * memory_jemalloc.c - what jemalloc itself says of the heap at the two edges of a window.
 * Layer L3. Before the hooks are armed and after they are disarmed, on the runner's thread: never inside the window.
 */
#include "config.h"

#include "memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "allocator.h"
#include "sink.h"

typedef int mallctl_fn(const char *name, void *old, size_t *old_size, void *new_value, size_t new_size);

/* Weak references also make a program that has them linked in statically show them to the loader. */
extern mallctl_fn mallctl __attribute__((weak));
extern mallctl_fn je_mallctl __attribute__((weak));

enum value { ALLOCATED, ACTIVE, RESIDENT, RETAINED, VALUES };

static const char *const names[VALUES] = { "stats.allocated", "stats.active", "stats.resident", "stats.retained" };

struct edge {
	bool read;
	size_t value[VALUES];
};

static struct jemalloc {
	mallctl_fn *control; /* NULL: the allocator is another one */
	char why[160];
	struct edge opened, closed;
} state; /* one capture per process */

static const void *module_of(uintptr_t address)
{
	Dl_info info;

	return address != 0 && dladdr((const void *)address, &info) != 0 ? info.dli_fbase : NULL;
}

/* jemalloc's control function, when it is that of the allocator behind the hooks or one that the program has inside. */
static mallctl_fn *find_control(const struct mew_hooks_api *api)
{
	const void *wanted = module_of((uintptr_t)api->next->do_malloc);
	mallctl_fn *const linked[] = { mallctl, je_mallctl };
	static const char *const symbols[] = { "mallctl", "je_mallctl" };

	for (size_t i = 0; i < MEW_COUNTOF(linked); i++) {
		uintptr_t found = linked[i] != NULL ? (uintptr_t)linked[i] : (uintptr_t)dlsym(RTLD_DEFAULT, symbols[i]);

		if (found != 0 && (module_of(found) == wanted || mew_allocator_in_program(found)))
			return (mallctl_fn *)found;
	}
	return NULL;
}

/* Bring jemalloc's statistics up to date and read them. */
static bool read_edge(struct edge *e)
{
	uint64_t epoch = 1;
	size_t size = sizeof epoch;

	e->read = false;
	if (state.control == NULL || state.control("epoch", &epoch, &size, &epoch, sizeof epoch) != 0)
		return false;
	for (size_t i = 0; i < VALUES; i++) {
		size = sizeof e->value[i];
		if (state.control(names[i], &e->value[i], &size, NULL, 0) != 0)
			return false;
	}
	e->read = true;
	return true;
}

void mew_heap_jemalloc_open(const struct mew_hooks_api *api)
{
	const char *allocator = mew_allocator_base_name(api->next_path());

	memset(&state, 0, sizeof state);
	state.control = find_control(api);
	if (state.control == NULL)
		(void)snprintf(state.why, sizeof state.why,
			       "the allocator is %.80s: run on jemalloc to see its own figures", allocator);
	else if (!read_edge(&state.opened))
		(void)snprintf(state.why, sizeof state.why,
			       "the jemalloc in this process keeps no statistics: use one that is configured with "
			       "--enable-stats");
}

void mew_heap_jemalloc_close(void)
{
	if (state.opened.read)
		(void)read_edge(&state.closed);
}

static void push_edge(struct mew_sink *sink, const struct edge *e, int first, int fragmentation)
{
	/* the figures alternate: of the loop's begin, of its end */
	for (int i = 0; i < VALUES; i++)
		mew_sink_u64(sink, first + 2 * i, e->value[i]);
	if (e->value[ACTIVE] == 0) {
		mew_sink_absent(sink, fragmentation, "jemalloc had no active pages");
		return;
	}
	mew_sink_f64(sink, fragmentation, 1.0 - (double)e->value[ALLOCATED] / (double)e->value[ACTIVE]);
}

void mew_heap_jemalloc_drain(struct mew_sink *sink)
{
	if (state.opened.read && state.closed.read) {
		push_edge(sink, &state.opened, MEW_FIG_JEMALLOC_ALLOCATED_OPEN, MEW_FIG_JEMALLOC_FRAGMENTATION_OPEN);
		push_edge(sink, &state.closed, MEW_FIG_JEMALLOC_ALLOCATED_CLOSE, MEW_FIG_JEMALLOC_FRAGMENTATION_CLOSE);
		return;
	}
	for (int f = MEW_FIG_JEMALLOC_ALLOCATED_OPEN; f <= MEW_FIG_JEMALLOC_FRAGMENTATION_CLOSE; f++)
		mew_sink_absent(sink, f, state.why);
}
