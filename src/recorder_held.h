/*
 * recorder_held.h - memory for an exec, which a child of vfork leaves to its parent.
 * Layer L6.
 */
#ifndef MEW_RECORDER_HELD_H
#define MEW_RECORDER_HELD_H

#include <stddef.h>

/*
 * Zeroed memory of its own map. What children of vfork left that this thread made before is unmapped first.
 *
 * Returns  taken by the caller, for mew_recorder_held_unmap() where the exec fails; NULL without memory
 * Context  any thread, signal, child of vfork
 */
void *mew_recorder_held_map(size_t bytes);
void mew_recorder_held_unmap(void *memory, size_t bytes);

#endif
