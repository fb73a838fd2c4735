/*
 * sections.h - a walk over the sections of an ELF file.
 * Layer L3, inside libmew_symbols. Any thread.
 */
#ifndef MEW_SYMBOLS_SECTIONS_H
#define MEW_SYMBOLS_SECTIONS_H

#include "base.h"

#include <gelf.h>

struct mew_sections { /* begins as { .elf = elf } */
	Elf *elf; /* borrowed; NULL has none */
	Elf_Scn *section;
	GElf_Shdr header;
	const char *name;
};

/* Go on to the next section, leaving out those whose header or name cannot be read. Returns false behind the last. */
bool mew_sections_next(struct mew_sections *s);

#endif
