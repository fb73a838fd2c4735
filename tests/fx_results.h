/*
 * fx_results.h - a model as a session would leave it, reports into memory, and golden files, for the tests of reports.
 */
#ifndef FX_RESULTS_H
#define FX_RESULTS_H

#include "mew/report.h"
#include "model.h"

/*
 * Two cases of a family, a name with wide characters, one too short for its loop, one that failed with output, one that
 * was skipped; runs of several phases, counters, hook data, heap stacks, samples, inlined functions, places without a
 * name.
 *
 * Returns  sealed; freed by mew_model_free(). Fails the test without memory.
 */
struct mew_model *fx_results(void);

/* The same, still open for additions. */
struct mew_model *fx_results_open(void);

/* What a report writes; freed by free(). Fails the test when the report does. */
char *fx_report(const struct mew_report *report, const struct mew_report_input *in, size_t *bytes);

/*
 * Compare text with tests/golden/NAME under $srcdir (or "."), or write it there where MEW_GOLDEN_UPDATE is set.
 * Fails the test at the first line that differs.
 */
void fx_golden(const char *name, const char *text);

#endif
