/*
 * internal.h - what the files of libmew_hooks share.
 * Below all layers. Everything here may run inside malloc, before main and before any constructor.
 */
#ifndef MEW_HOOKS_INTERNAL_H
#define MEW_HOOKS_INTERNAL_H

#include <stdbool.h>

#include "hooks.h"

#define MEW_HOOKS_EXPORT __attribute__((visibility("default")))
/*
 * A function whose last call must be a jump at every optimisation level, so that it leaves no frame and its callee sees
 * the caller's return address. clang has an attribute for the call instead, and without optimisation it takes no other.
 */
#if defined(__clang__)
#define MEW_HOOKS_JUMPS
#define MEW_HOOKS_JUMP __attribute__((musttail))
#else
#define MEW_HOOKS_JUMPS __attribute__((optimize("O2", "optimize-sibling-calls")))
#define MEW_HOOKS_JUMP
#endif
#define MEW_HOOKS_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/* Said here and not on the command line alone: only a hidden declaration lets the jump name its pointer directly. */
#pragma GCC visibility push(hidden)

/* Where the exported functions jump to: first the boot functions, then the next provider's, then the armed ones. */
extern struct mew_malloc_family mew_hooks_now;
/* The next provider's, with its gaps filled. Valid once mew_hooks_resolve() returned true. */
extern struct mew_malloc_family mew_hooks_next;

/*
 * Find the next provider of the family and point `now` at it.
 *
 * Returns  true when that is done; false on the thread that is in the middle of it
 * Context  any thread, malloc, before constructors; ends the process with a message when there is no provider
 */
bool mew_hooks_resolve(void);

/* The next definition of a function after this library, as an address; 0 for none. Context: not malloc. */
uintptr_t mew_hooks_find(const char *name);

/* Where the file that holds an address is loaded; 0 for none. Context: not malloc. */
uintptr_t mew_hooks_module_base(uintptr_t address);

/* Memory until resolution is done: never given back, zeroed, aligned to 16. Ends the process when it is used up. */
void *mew_hooks_boot_alloc(size_t size, size_t alignment);
bool mew_hooks_boot_owns(const void *block);
bool mew_hooks_boot_was_used(void);

/* Members of the api that live beside the wrappers (wrap.c). */
/* Nobody listens any more: a forked child. */
void mew_hooks_forget_listeners(void);
int mew_hooks_set_listener(const struct mew_hooks_listener *listener);
uint64_t mew_hooks_deepbind_dropped(void);
uint64_t mew_hooks_modules_unannounced(void);

/* The frame under every wrapped thread's function, and the end of its code. */
void *mew_hooks_thread_main(void *start);
extern const char mew_hooks_thread_end[];

/* The system calls behind mmap, munmap and mremap. */
extern const struct mew_map_family mew_hooks_maps_next;

/*
 * Send the program's own calls to a family; `is_libc`: the allocator is the C library's. Returns false when they go to
 * another one already. Context: outside malloc. Disarming: any.
 */
bool mew_hooks_maps_arm(const struct mew_map_family *family, bool is_libc);
void mew_hooks_maps_disarm(void);

/* Who is told of announcements of pools; NULL: nobody. Returns false when somebody else is. */
bool mew_hooks_pools_watch(const struct mew_pool_watch_ *watch);

/* Write a line to standard error without stdio and end the process. */
void mew_hooks_die(const char *text) __attribute__((noreturn));

#pragma GCC visibility pop

#endif
