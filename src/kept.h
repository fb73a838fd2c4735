/*
 * kept.h - memory of a capture that another process can still read when this one is gone.
 * Layer L0. Without a place given, the memory is private like any other, and nothing is different.
 */
#ifndef MEW_KEPT_H
#define MEW_KEPT_H

#include "base.h"

/*
 * Give a place: a shared mapping that whatever is kept from now on lies in. NULL takes it away; what lies there stays.
 *
 * memory   zeroed, page-aligned, borrowed until another place is given
 * Context  one thread, no capture runs
 */
void mew_kept_place(void *memory, size_t bytes);

/*
 * Map zeroed memory in the place, else like mew_os_reserve(). Give it back with the same size: in the place its pages
 * go back to the kernel, and its addresses serve the next one of that size.
 *
 * Returns  page-aligned memory; NULL when the place is full or the kernel refuses
 * Context  any thread, not signal, not malloc
 */
void *mew_kept_map(size_t bytes);
void mew_kept_unmap(void *memory, size_t bytes);

/* A file's static variable that leads to what it keeps: a reader puts that of the dead process in place of its own. */
struct mew_kept_static {
	void *at;
	size_t bytes;
};

#endif
