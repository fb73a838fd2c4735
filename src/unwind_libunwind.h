/*
 * unwind_libunwind.h - the functions of libunwind.so.8 that a walk by it needs.
 * Layer L1. Private to unwinder.c, which loads it, and unwind_libunwind.c, which walks.
 */
#ifndef MEW_UNWIND_LIBUNWIND_H
#define MEW_UNWIND_LIBUNWIND_H

#include "base.h"

#ifdef __x86_64__
#define MEW_LIBUNWIND_PREFIX "_ULx86_64_"
#define MEW_LIBUNWIND_IP 16 /* UNW_X86_64_RIP */
#endif

/* The binary interface of soname 8; set once, before a window opens. All NULL while it is not loaded. */
struct mew_libunwind {
	int (*init)(void *cursor, void *ucontext, int flags); /* unw_init_local2 */
	int (*step)(void *cursor);
	int (*get)(void *cursor, int number, uintptr_t *value); /* unw_get_reg */
};
extern struct mew_libunwind mew_libunwind;

#endif
