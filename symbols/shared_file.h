/*
 * shared_file.h - the file into which dwz moved what several debug files have in common (.gnu_debugaltlink).
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_SHARED_FILE_H
#define MEW_SYMBOLS_SHARED_FILE_H

#include "elf_file.h"

#include <elfutils/libdw.h>

enum mew_shared { MEW_SHARED_NONE, MEW_SHARED_OPEN, MEW_SHARED_MISSING, MEW_SHARED_REFUSED };

/*
 * Find the shared file that debug information refers to, if it does: by build id below /usr/lib/debug, by its name, on
 * the servers.
 *
 * dwarf    borrowed; of the file `of`
 * f        filled for MEW_SHARED_OPEN; closed by the caller
 * why      returned, MEW_WHY_MAX bytes: one sentence for MEW_SHARED_MISSING and for MEW_SHARED_REFUSED, which is a file of
 *          another build in its place: libdw, which does not compare, would take it
 * Context  any thread; opens files
 */
enum mew_shared mew_shared_file_find(struct mew_elf *f, const struct mew_elf *of, Dwarf *dwarf,
				     const struct mew_servers *servers, char *why);

#endif
