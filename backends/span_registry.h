/*
 * span_registry.h - which spans are open, whether they still live, and when the malloc hooks serve them.
 * Layer L3. Outside malloc; any thread.
 */
#ifndef MEW_SPAN_REGISTRY_H
#define MEW_SPAN_REGISTRY_H

#include "error.h"

struct mew_span_stack;

#define MEW_SPAN_NO_LIMIT UINT64_MAX

/*
 * Open and close a span: the contracts of mew_span_begin() and mew_span_end().
 *
 * limit    allocations after which stacks are kept, or MEW_SPAN_NO_LIMIT; for spans of a thread
 * frame    where the stack of the public function's caller ends: __builtin_frame_address(0) in the former; spans of
 *          this thread below it are dead
 * stacks   room for MEW_SPAN_STACKS, may be NULL; *nstacks of them are returned
 * Returns  MEW_OK or a status with err filled
 */
int mew_spans_begin(struct mew_span *span, int scope, uint64_t limit, const void *frame, struct mew_error *err);
int mew_spans_end(struct mew_span *span, const void *frame, struct mew_span_stack *stacks, size_t *nstacks,
		  struct mew_error *err);

/* Close a span without its figures; nothing happens when it is not open. `frame` as above. */
void mew_spans_drop(struct mew_span *span, const void *frame);

/* Discard the dead spans of the calling thread, so that they do not keep the hooks armed. `frame` as above. */
void mew_spans_sweep(const void *frame);

/*
 * Calls of the malloc family by the calling thread belong to mew from here on, or no longer. Returns what held before.
 */
bool mew_spans_keep_out(bool out);

/*
 * A memory capture needs the hooks: spans that are open lose them, and none can begin until it is over. It does not ask
 * whether they are alive, since one left by longjmp cannot always be told from one that is.
 */
void mew_spans_give_way(void);
void mew_spans_come_back(void);
/* A memory capture has the hooks now. */
bool mew_spans_must_wait(void);

/* Spans have the hooks now. */
bool mew_spans_hold_hooks(void);

#endif
