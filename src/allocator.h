/*
 * allocator.h - who provides malloc and operator new in this process, and what keeps the hooks from seeing them.
 * Layer L0. Outside windows: the loader is asked.
 */
#ifndef MEW_ALLOCATOR_H
#define MEW_ALLOCATOR_H

#include "base.h"

struct mew_hooks_api;

/* The sanitizer this program is built with, which replaces malloc; NULL for none. */
const char *mew_allocator_sanitizer(void);

/* Was the program linked without a dynamic loader? Nothing can be preloaded then, and nothing be put before malloc. */
bool mew_allocator_is_static(void);

/* Does the program run with privileges of its file (setuid, setgid, capabilities)? The loader ignores preloads then. */
bool mew_allocator_is_privileged(void);

/* Is this the address of something in the program itself, and not in a library? */
bool mew_allocator_in_program(uintptr_t address);

/*
 * The file that provides the first malloc of the process.
 *
 * address  returned: that malloc; may be NULL
 * Returns  a path as the loader knows it, "another library" when it does not say
 */
const char *mew_allocator_first(uintptr_t *address);

/*
 * Has the program a malloc inside that it does not show to the loader (linked in statically and hidden), so that its
 * own calls go there and those of the libraries to the hooks? Told by its symbol table: a stripped program keeps it
 * secret.
 *
 * api      of the hooks
 * Context  any thread; reads the program's file
 */
bool mew_allocator_is_hidden(const struct mew_hooks_api *api);

/*
 * The file that provides malloc (behind the hooks, where they are) when it also has operators new of its own which this
 * process uses: what they allocate never comes to malloc.
 *
 * api      of the hooks; NULL: they are absent
 * Returns  a path as the loader knows it; NULL when there is no C++ here, or its operator new calls malloc
 */
const char *mew_allocator_own_operators(const struct mew_hooks_api *api);

/*
 * What the process allocates from (behind the hooks, where they are), asked of it by its own call for that.
 *
 * api      of the hooks; NULL: they are absent
 * version  returned, in `size` bytes; "" where it has no call that is known
 * Returns  a path as the loader knows it; NULL when it does not say
 */
const char *mew_allocator_in_use(const struct mew_hooks_api *api, char *version, size_t size);

/* The name of a path without its folders. */
const char *mew_allocator_base_name(const char *path);

#endif
