/*
 * stubs.h - names for the stubs of the procedure linkage table, which have no symbols: that of the function behind.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_STUBS_H
#define MEW_SYMBOLS_STUBS_H

#include "symtab.h"

/*
 * Add a symbol for each stub whose jump reads a slot that a relocation fills by name; x86-64 only, elsewhere none are.
 *
 * t, m     borrowed; names stay in the module's string table
 * Returns  false without memory
 */
bool mew_stubs_add(struct mew_symtab *t, const struct mew_elf_module *m);

#endif
