/*
 * ehframe_entry.h - the entries of a .eh_frame, read one at a time.
 * Layer L1. Outside windows; private to ehframe.c.
 *
 * An entry is a 32-bit length, a 32-bit id and that much content. The id is 0 for a CIE, and for an FDE the distance
 * back from the id to its CIE. Length 0 ends the list; 0xffffffff would begin a 64-bit entry, which nobody writes.
 */
#ifndef MEW_EHFRAME_ENTRY_H
#define MEW_EHFRAME_ENTRY_H

#include "cfi.h"
#include "ehframe.h"

struct mew_cie {
	bool usable, signal, augmented;
	size_t entry;
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;
	struct mew_cfi_row initial;
};

struct mew_fde {
	uintptr_t lo, hi;
	struct mew_reader program;
};

/* Functions with a handler for exceptions and those without have a CIE each, and they take turns. */
#define MEW_CIES 32u /* a power of two */

struct mew_frames {
	const struct mew_ehframe *in;
	const struct mew_machine *machine;
	struct mew_cie cie[MEW_CIES]; /* some that were read, by their place */
};

/* Begin to read; both are borrowed. */
void mew_frames_init(struct mew_frames *f, const struct mew_ehframe *in, const struct mew_machine *machine);

/*
 * Open the entry at an offset.
 *
 * entry    returned: what follows the id
 * Returns  false at the end of the list, and when it is damaged
 */
bool mew_frames_entry(const struct mew_frames *f, size_t at, struct mew_reader *entry, uint32_t *id);

/* Read the FDE at an offset up to its program. Returns its CIE; NULL when it is not one or not usable. */
const struct mew_cie *mew_frames_fde(struct mew_frames *f, size_t at, struct mew_fde *out);

#endif
