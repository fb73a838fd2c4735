/*
 * elf_file.h - a module's file and the file that holds its debug information, each proven by build id.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_ELF_FILE_H
#define MEW_SYMBOLS_ELF_FILE_H

#include "base.h"

#include <libelf.h>

#define MEW_BUILD_ID_MAX 64
#define MEW_WHY_MAX 320

struct mew_servers; /* servers.h */

struct mew_elf {
	int fd; /* -1: none, or memory */
	Elf *elf;
	char *path;
	unsigned char build_id[MEW_BUILD_ID_MAX];
	size_t build_id_bytes; /* 0: it has none */
};

struct mew_code_range {
	uint64_t lo, hi;
};

struct mew_small_elf { /* symbols of a stripped file, unpacked from its .gnu_debugdata */
	Elf *elf;
	unsigned char *bytes;
};

struct mew_elf_module {
	struct mew_elf file;  /* what was mapped into the process, or its debug file where that is gone */
	struct mew_elf debug; /* elf NULL: there is no separate one */
	struct mew_small_elf small; /* elf NULL: none */
	Elf *dwarf;           /* the one of the two that has .debug_info; NULL: neither. Borrowed */
	struct mew_code_range *code; /* its executable sections */
	size_t ncode;
	char why[MEW_WHY_MAX]; /* why a separate debug file was refused; "" none was */
};

/* Open one ELF file. Returns false with why filled (MEW_WHY_MAX bytes) and nothing left open. */
bool mew_elf_open(struct mew_elf *f, const char *path, char *why);
void mew_elf_close(struct mew_elf *f);

/*
 * Open a module and look for its debug information: in the file itself, then /usr/lib/debug/.build-id, then the name
 * in .gnu_debuglink beside the file, in its .debug/ and under /usr/lib/debug. A debug file of another build (build id,
 * or the checksum of .gnu_debuglink where there is no build id) is refused. Where the module itself is gone or was
 * replaced, its debug file stands in for it, found by the build id of what was mapped.
 *
 * path      borrowed; "[vdso]" is the vDSO of this process
 * build_id  borrowed; lower-case hex; "" skips the check
 * servers   borrowed; asked for what this machine lacks; NULL: none is asked
 * why       returned on failure: one sentence; MEW_WHY_MAX bytes
 * Returns   true; close with mew_elf_module_close() in either case
 */
bool mew_elf_module_open(struct mew_elf_module *m, const char *path, const char *build_id,
			 const struct mew_servers *servers, char *why);
void mew_elf_module_close(struct mew_elf_module *m);

/* Unpack the .gnu_debugdata of m->file where it has one; m->why says why that did not work. Close in either case. */
void mew_small_elf_open(struct mew_elf_module *m);
void mew_small_elf_close(struct mew_elf_module *m);

/* Is this address inside an executable section? */
bool mew_elf_is_code(const struct mew_elf_module *m, uint64_t address);

/* The part of a path after its last slash. Returns a pointer into path. */
const char *mew_elf_base_name(const char *path);

#endif
