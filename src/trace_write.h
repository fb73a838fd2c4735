/*
 * trace_write.h - events as the text of one trace file.
 * Layer L6. After the measurement.
 *
 * Format   an object with traceEvents, sorted, and otherData. Times are microseconds since the start of the run, with three
 *          decimals: whole nanoseconds, exact.
 *          https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 */
#ifndef MEW_TRACE_WRITE_H
#define MEW_TRACE_WRITE_H

#include "trace_events.h"
#include "writer.h"

/* One event and its line's end, without a comma. */
void mew_trace_write_event(struct mew_writer *w, const struct mew_trace_event *e);

#endif
