/*
 * trace_check.h - is a trace sound: what viewers would drop, move or misread.
 * Layer L6.
 */
#ifndef MEW_TRACE_CHECK_H
#define MEW_TRACE_CHECK_H

#include <stdbool.h>

#include "mew.h"

struct mew_trace_verdict {
	size_t events, faults;
	bool cut; /* an array without its end: sound, but of a run that did not end */
};

/*
 * Check a file against the rules: nesting on each track, pairs of begins and ends, of spans and of arrows, profiles
 * whose samples and nodes have what they hang on, known phases, order in time, no time below zero, names for all
 * tracks.
 *
 * say      called for each fault, with a sentence; at most 20
 * Returns  MEW_OK, also when there are faults; MEW_E_IO, MEW_E_INVALID when the file is no trace; MEW_E_NOMEM
 */
int mew_trace_check(const char *path, void (*say)(const char *text), struct mew_trace_verdict *out,
		    struct mew_error *err);

#endif
