/*
 * memory_hooks.h - may the malloc hooks of this process be used, and what to do when not.
 * Layer L3. Asked outside malloc, by the memory backend and by spans.
 */
#ifndef MEW_MEMORY_HOOKS_H
#define MEW_MEMORY_HOOKS_H

#include "error.h"

#include "hooks/hooks.h"

/*
 * Find libmew_hooks and prove that the calls of this process reach it.
 *
 * out      returned with MEW_OK: the library's interface, good for the life of the process
 * err      may be NULL; the sentence says what is missing and the remedy
 * Returns  MEW_OK; MEW_E_UNSUPPORTED when the library is absent, not first, of another version, or a sanitizer replaces
 *          malloc; MEW_E_BUSY when something else holds the hooks
 * Context  any thread, not signal, not malloc; allocates and frees one string
 */
int mew_memory_find_hooks(const struct mew_hooks_api **out, struct mew_error *err);

#endif
