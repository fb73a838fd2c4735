/*
 * modules.h - the process's loaded files at one moment: an immutable snapshot behind one atomic pointer.
 * Layer L1. Readers: any thread, signal, malloc, without locks. Renewal: outside windows, or from wrappers of dlopen
 * and dlclose.
 */
#ifndef MEW_MODULES_H
#define MEW_MODULES_H

#include "base.h"

struct mew_kept_static; /* kept.h */
struct mew_unwind_table; /* ehframe.h; rows of one module */

struct mew_module_map {
	uintptr_t lo, hi;     /* run-time range of its executable segments */
	uintptr_t bias;       /* run-time address minus the file's virtual address */
	const char *path;     /* absolute; "[vdso]"; the executable's own path for the main program */
	const char *build_id; /* lower-case hex, "" for none */
	bool gone;            /* was closed; its range still names it until another module takes the place */
	const struct mew_unwind_table *table; /* NULL: no usable .eh_frame */
};

struct mew_modules {
	uint64_t generation; /* rises with each snapshot */
	size_t n;
	const struct mew_module_map *map; /* sorted by lo, not overlapping */
};

/*
 * Take a new snapshot if modules came or went since the last one, and publish it.
 * Old snapshots and tables stay valid for the life of the process (a signal handler may still read them); they are
 * small.
 *
 * Returns  0; -1 when memory ran out (the old snapshot stays)
 * Context  any thread, serialised inside; not signal, not malloc; maps memory, never calls malloc
 */
int mew_modules_renew(void);

/* Call `function` after each new snapshot, on the thread that took it; NULL: nobody. Context: one caller at a time. */
void mew_modules_on_change(void (*function)(void));

/*
 * The variable that points to the newest snapshot, which is kept (kept.h) but for the unwind tables. And: from now on
 * the newest one is that of another process, and there is nothing to renew. Context: no capture runs.
 */
void mew_modules_static(struct mew_kept_static *s);
void mew_modules_freeze(void);

/* The newest snapshot; NULL before the first mew_modules_renew(). Context: any thread, signal, malloc. */
const struct mew_modules *mew_modules_current(void);

/* The module that holds pc; NULL for none. Context: any thread, signal, malloc. */
const struct mew_module_map *mew_modules_find(const struct mew_modules *m, uintptr_t pc);

/*
 * Does code of a file that is still there lie before this return address? No leftover value points there by chance.
 * Context: any thread, signal, malloc.
 */
bool mew_modules_is_code(const struct mew_modules *m, uintptr_t return_address);

/*
 * Take off the word that the kernel appends to the name of a file that was replaced since, or never had a place
 * (memfd). Context: any thread.
 */
void mew_modules_cut_deleted(char *path);

#endif
