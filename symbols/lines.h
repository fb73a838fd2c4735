/*
 * lines.h - the line program of one compile unit, run for the addresses asked about and nothing kept of its other rows.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_LINES_H
#define MEW_SYMBOLS_LINES_H

#include "elf_file.h"

struct mew_bytes { /* of a file; read with a check before every step */
	const unsigned char *at, *end;
};

struct mew_line_sections { /* empty where the file has none */
	struct mew_bytes line, line_str, str;
};

struct mew_line_row {
	uint32_t owner; /* set before the run: the unit whose program may fill this row */
	uint32_t file;  /* into the program's files */
	uint32_t line;  /* 0: code of no line, or not found */
	bool is_found;
};

struct mew_line_format { /* version 5: what an entry of the directories or of the files holds */
	uint16_t content, form;
};

#define MEW_LINE_FORMATS_MAX 16

struct mew_line_table { /* the directories, or the files */
	struct mew_line_format formats[MEW_LINE_FORMATS_MAX];
	unsigned nformats;
	struct mew_bytes entries;
	uint64_t n;
};

struct mew_line_program {
	const struct mew_line_sections *sections; /* borrowed */
	const char *directory;                    /* of the compilation; borrowed; "" unknown */
	struct mew_bytes code;
	const unsigned char *lengths; /* of the standard opcodes */
	struct mew_line_table directories, files;
	unsigned version, offset_bytes, step_bytes, opcode_base, line_range;
	int line_base;
	char **paths; /* of the files, made when first asked for */
	size_t npaths;
};

/* Find the sections. Call after dwarf_begin_elf(), which decompresses them. */
void mew_line_sections_init(struct mew_line_sections *s, Elf *elf);

/*
 * Read the head of the program at an offset of .debug_line: versions 2 to 5.
 *
 * s, directory  borrowed until mew_line_program_close()
 * Returns       NULL; or what is wrong with it, a constant. Close in either case.
 */
const char *mew_line_program_open(struct mew_line_program *p, const struct mew_line_sections *s, uint64_t offset,
				  const char *directory);
void mew_line_program_close(struct mew_line_program *p);

/*
 * Run the program and note the row in force at each of n ascending addresses; those it does not cover, and those of
 * another owner, are left alone.
 *
 * m        sequences that begin outside its code belong to functions that the linker discarded
 * Returns  NULL; or what is wrong with it, a constant: then rows behind the damage are missing
 */
const char *mew_line_program_run(const struct mew_line_program *p, const struct mew_elf_module *m, uint32_t owner,
				 const uint64_t *addresses, size_t n, struct mew_line_row *rows);

/* The path of a file, complete as far as it is known; NULL when there is no such file, or no memory. */
const char *mew_line_program_file(struct mew_line_program *p, uint64_t file);

#endif
