/*
 * symtab.h - the symbols of a module, sorted once and searched by bisection.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_SYMTAB_H
#define MEW_SYMBOLS_SYMTAB_H

#include "elf_file.h"
#include "ranges.h"

struct mew_symbol {
	uint64_t lo, hi;  /* hi == lo while its size is unknown */
	const char *name; /* in the file's string table; may have a version behind '@' */
	unsigned rank;    /* which of several names of one address to show; higher is better */
	bool is_stub;     /* of the linkage table: jumps to the function of that name in another module */
};

struct mew_symtab {
	struct mew_symbol *symbols;
	size_t n, capacity;
	struct mew_ranges ranges; /* items are numbers into symbols */
};

/*
 * Index the functions of .symtab and .dynsym of the module, of the small .symtab compressed in its .gnu_debugdata and
 * of its debug file, as far as there are any; and the stubs of its linkage table.
 *
 * m        borrowed; must stay open as long as the table is used
 * Returns  true, also for a module without symbols; false without memory; fini in either case
 */
bool mew_symtab_init(struct mew_symtab *t, const struct mew_elf_module *m);
void mew_symtab_fini(struct mew_symtab *t);

/*
 * The symbol at an address, or NULL. A symbol with a size covers exactly that; one without (written in assembly)
 * reaches to the next symbol. Nothing is guessed beyond: an unnamed static function is not its predecessor.
 */
const struct mew_symbol *mew_symtab_find(const struct mew_symtab *t, uint64_t address);

#endif
