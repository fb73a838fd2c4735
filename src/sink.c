/*
 * sink.c - what a backend saw goes into the model: addresses become locations, records become rows.
 * Layer L2. Runner thread, in drain(), after the window.
 */
#include "config.h"

#include "sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "modules.h"
#include "trace_log.h"

/* Number of a module of the snapshot in the model. `last` saves the look-up: neighbours mostly share their module. */
struct last {
	const struct mew_module_map *map;
	uint32_t number;
};

static uint32_t module_number(struct mew_model *m, const struct mew_module_map *map, struct last *last)
{
	if (last->map != map) {
		last->map = map;
		last->number = mew_model_module(m, map->path, map->build_id, map->hi - map->lo, map->gone);
	}
	return last->number;
}

/*
 * A return address may be the first byte after the function (a call that never returns), or after the module, so both
 * the module and the offset are those of the call's last byte.
 */
static uint32_t location_of(struct mew_model *m, const struct mew_modules *modules, uintptr_t pc, bool is_caller,
			    struct last *last)
{
	uintptr_t at = is_caller && pc > 0 ? pc - 1 : pc;
	const struct mew_module_map *map = modules != NULL ? mew_modules_find(modules, at) : NULL;
	uint32_t module;

	if (map == NULL)
		return mew_model_location(m, MEW_NO_MODULE, pc);
	module = module_number(m, map, last);
	return module != UINT32_MAX ? mew_model_location(m, module, at - map->bias) : UINT32_MAX;
}

uint32_t mew_sink_stack(struct mew_sink *sink, const struct mew_modules *modules, const uintptr_t *pcs, size_t n)
{
	uint32_t *locations = NULL, stack = UINT32_MAX;
	struct last last = { NULL, UINT32_MAX };
	size_t bytes;

	if (mew_mul_size(n, sizeof *locations, &bytes))
		locations = malloc(bytes);
	if (locations == NULL)
		goto out;
	for (size_t i = 0; i < n; i++) {
		locations[i] = location_of(sink->model, modules, pcs[i], i > 0, &last);
		if (locations[i] == UINT32_MAX)
			goto out;
	}
	stack = mew_model_stack(sink->model, locations, n);
out:
	free(locations);
	if (stack == UINT32_MAX)
		sink->failed = true;
	return stack;
}

void mew_sink_heap(struct mew_sink *sink, const struct mew_heap_stack *s)
{
	if (mew_model_add_heap_stack(sink->row, s) != 0)
		sink->failed = true;
}

void mew_sink_sample(struct mew_sink *sink, const struct mew_cpu_sample *s)
{
	if (mew_model_add_sample(sink->row, s) != 0)
		sink->failed = true;
}

void mew_sink_window(struct mew_sink *sink, uint64_t opened_ns)
{
	uint64_t zero_ns = mew_trace_log_zero();

	if (zero_ns != 0)
		sink->row->window = (struct mew_sample_window){ (int)getpid(), zero_ns, opened_ns };
}

void mew_sink_u64(struct mew_sink *sink, int figure, uint64_t value)
{
	mew_model_u64(sink->row, sink->kind, figure, value);
}

void mew_sink_f64(struct mew_sink *sink, int figure, double value)
{
	mew_model_f64(sink->row, sink->kind, figure, value);
}

/* A text or a list that was given and is not there found no memory. */
static void check_present(struct mew_sink *sink, int figure)
{
	if (!mew_row_has(mew_case_row(sink->row, sink->kind), figure))
		sink->failed = true;
}

void mew_sink_text(struct mew_sink *sink, int figure, const char *value)
{
	mew_model_text(sink->model, sink->row, sink->kind, figure, value);
	check_present(sink, figure);
}

void mew_sink_list(struct mew_sink *sink, int figure, const void *rows, size_t n)
{
	mew_model_list(sink->model, sink->row, sink->kind, figure, rows, n);
	check_present(sink, figure);
}

void mew_sink_absent(struct mew_sink *sink, int figure, const char *why)
{
	mew_model_absent(sink->model, sink->row, sink->kind, figure, why);
}

void mew_sink_note(struct mew_sink *sink, const char *note)
{
	mew_model_note(sink->model, sink->row, sink->kind, note);
}

void mew_sink_note_libraries(struct mew_sink *sink, uint64_t unseen, uint64_t deepbind)
{
	char text[240];

	if (unseen > 0) {
		(void)snprintf(text, sizeof text,
			       "%llu libraries were opened by a search that depends on the caller: stacks through them "
			       "may be cut, and functions in them may have no name", (unsigned long long)unseen);
		mew_sink_note(sink, text);
	}
	if (deepbind > 0) {
		(void)snprintf(text, sizeof text,
			       "RTLD_DEEPBIND was taken off %llu calls of dlopen, or allocations of those libraries "
			       "would be missing: they may use other functions than without mew",
			       (unsigned long long)deepbind);
		mew_sink_note(sink, text);
	}
}
