/*
 * image.h - one ELF file as it lies in memory: its code, its build id, its unwind information.
 * Layer L1. Outside windows; everything is checked against the loaded segments before it is read.
 */
#ifndef MEW_IMAGE_H
#define MEW_IMAGE_H

#include "base.h"
#include "build_id.h"
#include "ehframe.h"

#include <link.h>

struct mew_image {
	uintptr_t bias;         /* run-time address minus the file's virtual address */
	const ElfW(Phdr) *phdr; /* borrowed */
	size_t nphdr;
};

/* Range of the executable segments; false when there are none. */
bool mew_image_code(const struct mew_image *image, uintptr_t *lo, uintptr_t *hi);

/* The build id in lower-case hex; "" for none. */
void mew_image_build_id(const struct mew_image *image, char text[MEW_BUILD_ID_TEXT]);

/*
 * Where the unwind information lies: by PT_GNU_EH_FRAME, else by the section headers of the file itself when it is
 * still the one that was loaded.
 *
 * path     of the file; may be NULL
 * out      returned with header, frames, lo and hi
 * Returns  false when there is none
 * Context  outside windows; opens and reads the file only in the second case
 */
bool mew_image_frames(const struct mew_image *image, const char *path, struct mew_ehframe *out);

/* The image that begins with an ELF header at this address, such as the vDSO; false when it is none. */
bool mew_image_at(uintptr_t address, struct mew_image *out);

#endif
