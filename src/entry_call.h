/*
 * entry_call.h - the one place a body is called from; captured stacks end at this code.
 * Layer L4.
 */
#ifndef MEW_ENTRY_CALL_H
#define MEW_ENTRY_CALL_H

#include "mew.h"

/* Call run(st, arg). The function has a section of its own, so that its range is known. Context: body thread. */
void mew_entry_call(mew_run_fn *run, struct mew_state *st, void *arg);

/* The code range of mew_entry_call(): a return address inside it ends a stack. */
void mew_entry_range(uintptr_t *lo, uintptr_t *hi);

#endif
