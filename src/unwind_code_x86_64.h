/*
 * unwind_code_x86_64.h - reads code that has no unwind rules: linkage stubs, the end of a signal handler, calls.
 * Layer L1. Private to unwind_x86_64.c. The code must be mapped; of what lies around the page of an address nothing is
 * read. Any thread, signal, malloc.
 */
#ifndef MEW_UNWIND_CODE_X86_64_H
#define MEW_UNWIND_CODE_X86_64_H

#include "base.h"

/*
 * Linkage stubs that a linker wrote without unwind rules (lld writes none, GNU ld none for static programs): how many
 * words lie between rsp and the CFA. Returns 0 when the code at ip is no stub.
 */
uintptr_t mew_code_stub_words(uintptr_t ip);

/* Is this the end of every signal handler, which not every C library has rules for? */
bool mew_code_returns_from_signal(uintptr_t ip);

/* The function that the direct call before a return address calls. False when no such call lies there. */
bool mew_code_called(uintptr_t return_address, uintptr_t *target);

#endif
