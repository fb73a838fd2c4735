/*
 * hooks_link.h - find libmew_hooks in this process.
 * Layer L0.
 */
#ifndef MEW_HOOKS_LINK_H
#define MEW_HOOKS_LINK_H

#include "../backends/hooks/hooks.h"

/* The hooks' interface; NULL when the library is not in the process or speaks another version. Context: any thread. */
const struct mew_hooks_api *mew_hooks_link(void);

#endif
