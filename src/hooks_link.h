/*
 * hooks_link.h - find libmew_hooks in this process.
 * Layer L0.
 */
#ifndef MEW_HOOKS_LINK_H
#define MEW_HOOKS_LINK_H

#include "../backends/hooks/hooks.h"

/* The hooks' interface; NULL when the library is not in the process or speaks another version. Context: any thread. */
const struct mew_hooks_api *mew_hooks_link(void);

/*
 * The wrappers of pthread_create, dlopen and dlclose that the program's calls reach: those of libmew_threads or of
 * libmew_hooks; NULL when there are none. Context: any thread, not signal, not malloc.
 */
const struct mew_threads_api *mew_threads_link(void);

#endif
