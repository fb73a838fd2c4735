/*
 * build_id.h - the number by which a linker names what it made.
 * Layer L1. Defined in image.c.
 */
#ifndef MEW_BUILD_ID_H
#define MEW_BUILD_ID_H

#include "base.h"

/* 20 bytes of SHA-1 are usual; longer ones are cut. */
#define MEW_BUILD_ID_TEXT 129

/*
 * The build id among the notes of a segment, in lower-case hex.
 *
 * notes    bytes of a PT_NOTE segment, of whatever size
 * Returns  false, and text as it was, when it is none of them
 * Context  any thread
 */
bool mew_build_id_of_notes(const void *notes, size_t bytes, char text[MEW_BUILD_ID_TEXT]);

#endif
