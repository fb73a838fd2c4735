/*
 * recorder_exec.h - the exec family in a recorded program; see recorder_exec.c.
 * Layer L6.
 */
#ifndef MEW_RECORDER_EXEC_H
#define MEW_RECORDER_EXEC_H

#include "record.h"

/* Look up the real functions before they are needed: a child of vfork must not. Context: constructor. */
void mew_recorder_exec_init(void);

/* From now on nobody can wait for the recorder's signal. Context: constructor, forked child. */
void mew_recorder_signals_guard(void);

/* The function of that name behind ours into `slot`, a pointer to it; NULL where there is none. Context: any thread. */
void mew_recorder_find(void *slot, const char *name);

/* Write into `root` what the process becomes; of the parent or NULL: nowhere. Context: constructor, forked child. */
void mew_recorder_exec_note(struct mew_record_root *root);

#endif
