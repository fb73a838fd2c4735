/*
 * plan_trace.h - cases and repetitions on the timeline, and the arrows along `.after`.
 * Layer L4. The plan's thread, outside windows.
 */
#ifndef MEW_PLAN_TRACE_H
#define MEW_PLAN_TRACE_H

#include "plan.h"
#include "trace_log.h"

/* Is `key` the case that `after` names, or one of the family that it names? */
bool mew_plan_comes_first(const char *after, const char *key);

/*
 * A visit of a case begins. It was ready since its pass began, its visit before ended, and those ended that it comes
 * after; when another one was visited since then, it waited.
 *
 * cases    n of the pass
 * free_ns  the visit before this one ended then, or the pass began
 */
void mew_plan_trace_begin(const struct mew_plan_case *cases, size_t n, struct mew_plan_case *c, uint64_t free_ns);

/*
 * It ends: the whole of it, or one repetition where those of all cases are taken in turn.
 *
 * cases    n of the pass
 * row      of the case in this pass; borrowed
 */
void mew_plan_trace_end(const struct mew_plan_case *cases, size_t n, struct mew_plan_case *c,
			const struct mew_row_head *row);

/* A repetition from start_ns until now; start_ns 0: nothing to show. */
void mew_plan_trace_repetition(const struct mew_plan_case *c, unsigned process, unsigned repetition, uint64_t start_ns);

#endif
