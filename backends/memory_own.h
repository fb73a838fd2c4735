/*
 * memory_own.h - allocations that mew makes itself on a thread of the program, beside a running memory capture.
 * Layer L3. Any thread, outside malloc.
 */
#ifndef MEW_MEMORY_OWN_H
#define MEW_MEMORY_OWN_H

/*
 * From here to the end the calling thread's calls of the allocator are none of the program's. Returns what end is
 * given.
 */
unsigned char mew_heap_own_begin(void);
void mew_heap_own_end(unsigned char was);

/* The calling thread begins anew: a forked child whose variables were put back. */
void mew_heap_forget_thread(void);

/* The window is closed, with the hooks in place: for good, or until it is opened, here or from outside. */
void mew_memory_shut_window(void);
/* ... and opened. Context: outside events. */
void mew_memory_open_window(void);

#endif
