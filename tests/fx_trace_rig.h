/*
 * fx_trace_rig.h - a folder of fragments for each test of the timeline, and what mew said meanwhile.
 * Test fixture; what goes wrong fails the test.
 */
#ifndef FX_TRACE_RIG_H
#define FX_TRACE_RIG_H

extern char rig_folder[32]; /* fragments; results go beside it, with a suffix */
extern char rig_said[2000]; /* lines that rig_say() was given */
extern int rig_directory;   /* a descriptor of the folder */

/* To be given to mew where it asks how to say something. */
void rig_say(const char *text);

/* Set-up and teardown of a test. Return 0. */
int rig_make_folder(void **data);
int rig_remove_folder(void **data);

void rig_put_file(const char *path, const char *text);

/* The whole text, at most 99,999 bytes; the caller frees it. */
char *rig_get_file(const char *path);

/* Fails the test unless `part` stands in `text`. */
void rig_has(const char *text, const char *part);

#endif
