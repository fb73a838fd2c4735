/*
 * recorder_exec.h - the exec family in a recorded program; see recorder_exec.c.
 * Layer L6.
 */
#ifndef MEW_RECORDER_EXEC_H
#define MEW_RECORDER_EXEC_H

/* Look up the real functions before they are needed: a child of vfork must not. Context: constructor. */
void mew_recorder_exec_init(void);

#endif
