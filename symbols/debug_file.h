/*
 * debug_file.h - the separate file with a module's debug information.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_DEBUG_FILE_H
#define MEW_SYMBOLS_DEBUG_FILE_H

#include "elf_file.h"

/* Does it hold .debug_info, plain or compressed? */
bool mew_elf_has_dwarf(Elf *elf);

/*
 * Find and open the debug file of `of`: on this machine, then on the servers.
 *
 * f        filled when true is returned; closed by the caller
 * of       borrowed; one without an `elf` is known by its build id alone
 * servers  borrowed; NULL: none is asked
 * why      returned: the reason why a file that was there was refused; left alone when there was none
 * Context  any thread; opens files
 */
bool mew_debug_file_find(struct mew_elf *f, const struct mew_elf *of, const struct mew_servers *servers, char *why);

/* The same for one place: the file at `path`, where it is there and of the build of `of`. */
bool mew_debug_file_at(struct mew_elf *f, const struct mew_elf *of, const char *path, char *why);

#endif
