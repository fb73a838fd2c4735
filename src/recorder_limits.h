/*
 * recorder_limits.h - limits of address space in a recorded program; see recorder_limits.c.
 * Layer L6.
 */
#ifndef MEW_RECORDER_LIMITS_H
#define MEW_RECORDER_LIMITS_H

#include "record.h"

/* The process that `of` is of has what was recorded mapped; NULL: it has not. Context: constructor, forked child. */
void mew_recorder_limits_note(const struct mew_record_root *of);

#endif
