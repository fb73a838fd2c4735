/*
 * output.h - a report into a file or a directory.
 * Layer L6.
 */
#ifndef MEW_OUTPUT_H
#define MEW_OUTPUT_H

#include "model.h"
#include "registry.h"

/*
 * Write a report of a sealed model: a file whole or not at all ("-" is standard output), or a directory (made when it
 * is not there) with one file per case and kind that has stacks, named after the key.
 *
 * in       borrowed; the model, and what the report is to show of it; a `base` only for a report that compares
 * Returns  MEW_OK; MEW_E_IO naming the file; MEW_E_INVALID when a directory report finds no stacks to write
 */
int mew_output_report(const struct mew_report *report, const struct mew_report_input *in, const char *path,
		      struct mew_error *err);

/*
 * Could mew_output_report() write to this path now? For before the measurement.
 *
 * made     whether a folder that was not there was made for it; the caller removes it, once what else may lie in it was tried
 * Returns  MEW_OK; MEW_E_IO naming the path
 */
int mew_output_check(const struct mew_report *report, const char *path, bool *made, struct mew_error *err);

#endif
