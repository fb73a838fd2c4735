/*
 * sink.h - the only door from a capture backend into the model.
 * Layer L2. Used in drain(), after the window: allocates.
 */
#ifndef MEW_SINK_H
#define MEW_SINK_H

#include "model.h"

struct mew_modules; /* src/modules.h: the snapshot that addresses are looked up in */

struct mew_sink {
	struct mew_model *model; /* borrowed */
	struct mew_case *row;    /* borrowed; the case being filled */
	enum mew_kind kind;
	uint64_t iterations;     /* completed in the window, all threads */
	uint64_t window_ns;      /* wall time of the window, pauses out (mean over threads) */
	const uint64_t *thread_ns; /* of each benchmark thread; borrowed; NULL: not known */
	bool failed;             /* memory ran out; the runner fails the row */
};

/*
 * Intern a captured stack.
 *
 * modules  snapshot that was current when the stack was captured; NULL: no address is in any module
 * pcs      run-time addresses, leaf first; the first is exact, the others are return addresses
 * n        1 or more
 * Returns  the model's stack number; MEW_NO_STACK without memory (sink->failed is set)
 */
uint32_t mew_sink_stack(struct mew_sink *sink, const struct mew_modules *modules, const uintptr_t *pcs, size_t n);

void mew_sink_heap(struct mew_sink *sink, const struct mew_heap_stack *s);
void mew_sink_sample(struct mew_sink *sink, const struct mew_cpu_sample *s);
/*
 * The samples count from this moment of CLOCK_MONOTONIC, in this process: where the timeline of a traced run shows
 * them.
 */
void mew_sink_window(struct mew_sink *sink, uint64_t opened_ns);
void mew_sink_u64(struct mew_sink *sink, int figure, uint64_t value);
void mew_sink_f64(struct mew_sink *sink, int figure, double value);
/* Texts and rows are copied; rows are n of the figure's row type. */
void mew_sink_text(struct mew_sink *sink, int figure, const char *value);
void mew_sink_list(struct mew_sink *sink, int figure, const void *rows, size_t n);
void mew_sink_absent(struct mew_sink *sink, int figure, const char *why);
/* Append a sentence to the row's reason without failing it. */
void mew_sink_note(struct mew_sink *sink, const char *note);
/* ... of libraries that were opened unseen, and of dlopen() calls that RTLD_DEEPBIND was taken off; nothing of none. */
void mew_sink_note_libraries(struct mew_sink *sink, uint64_t unseen, uint64_t deepbind);

#endif
