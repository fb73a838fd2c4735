/*
 * starts.h - where functions begin, by the unwind table of a module: what is left to tell when it is stripped.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_STARTS_H
#define MEW_SYMBOLS_STARTS_H

#include "elf_file.h"

struct mew_starts { /* the search table of .eh_frame_hdr, and the section its entries lead to */
	const unsigned char *table; /* n pairs of 32-bit offsets from `base`: function, description */
	size_t n;
	uint64_t base;
	const unsigned char *frames;
	uint64_t frames_address, frames_bytes;
};

/* Find the table; n is 0 where there is none of the usual form. Borrows from the module, which must stay open. */
void mew_starts_init(struct mew_starts *s, const struct mew_elf_module *m);

/* The start of the function that holds an address; 0 when the table does not know one that reaches so far. */
uint64_t mew_starts_find(const struct mew_starts *s, uint64_t address);

#endif
