/*
 * span_text.h - what a failed budget has to say, with the names of the functions that allocated.
 * Layer L4. The thread of the budget, after its span was closed; allocates.
 */
#ifndef MEW_SPAN_TEXT_H
#define MEW_SPAN_TEXT_H

#include "base.h"
#include "mew.h"

struct mew_span_stack; /* backends/memory_span.h */

/*
 * "FILE:LINE: 3 allocations where at most 1 is allowed", then the stacks, one frame a line.
 *
 * f        borrowed; everything but its text is set
 * why      the sentence for a status other than MEW_OK
 * stacks   n of them, of the first allocations beyond the budget
 * Returns  taken by the caller, who calls free(); NULL without memory
 */
char *mew_span_text(const struct mew_span_failure *f, const char *why, const struct mew_span_stack *stacks, size_t n);

#endif
