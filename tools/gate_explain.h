/*
 * gate_explain.h - after the verdict: where the time and the allocations of a case that got worse went.
 * Layer L6. The command's thread; nothing here changes a verdict.
 */
#ifndef MEW_GATE_EXPLAIN_H
#define MEW_GATE_EXPLAIN_H

#include "gate.h"
#include "writer.h"

/*
 * Profile both sides of the cases that got worse (with --html and none worse: of all that could be compared) and write
 * the page that shows the difference, to --html or into --output. Without either nothing is done.
 *
 * The time comes out of --budget: what is left of it after the pairs. What is not profiled, and why, stands in
 * g->unexplained; g->html is the page that was written.
 */
void mew_gate_explain(struct mew_gate *g);

/* The functions that grew, as a part of mew-gate.md of at most so many bytes; nothing when nothing was profiled. */
void mew_gate_put_growth(struct mew_writer *w, const struct mew_gate *g, uint64_t most);

#endif
