/*
 * elf_names.h - functions of a file by name: its symbol tables, read where the file lies.
 * Layer L0. Any thread, not signal, not malloc; without malloc itself, so also in a program that is recorded.
 */
#ifndef MEW_ELF_NAMES_H
#define MEW_ELF_NAMES_H

#include "base.h"

#define MEW_NAME_BYTES 200u /* of a function that can be asked for */

struct mew_elf_function {
	const char *name; /* as the table has it: mangled, perhaps with a version behind '@' */
	uint64_t address; /* virtual, of the file */
	uint64_t bytes;   /* 0: not known */
	bool is_chosen;   /* an ifunc: the address is that of the code that chooses */
};

/* Returns false to end the visit. */
typedef bool mew_elf_function_fn(void *data, const struct mew_elf_function *f);

/*
 * Visit the functions that a file defines: of .symtab and .dynsym, and of its file in the system's folder for debug
 * information where it has no .symtab itself.
 *
 * build_id  of the file, in hex; "" none
 * Returns   false when the file cannot be read or is none of this machine
 */
bool mew_elf_functions(const char *path, const char *build_id, mew_elf_function_fn *visit, void *data);

struct mew_wanted_name { /* prepared for many comparisons */
	char text[MEW_NAME_BYTES];
	struct {
		char start[MEW_NAME_BYTES * 2]; /* of a mangled name; "" unused */
		bool is_nested;                 /* then the end of the list of names must follow */
	} mangled[6];
};

/*
 * text     a symbol as nm(1) shows it, or the qualified name of a C++ or Rust function without its parameters: all
 *          overloads and templates of that name are meant
 * Returns  false when it is empty or too long
 */
bool mew_name_prepare(struct mew_wanted_name *w, const char *text);

/* Is the symbol that function, or the copy that the compiler made of it (foo.constprop.0)? Context: any thread. */
bool mew_name_is(const struct mew_wanted_name *w, const char *symbol);

/* Number of single edits that make `b` of `a`, letters of either case alike; `most` and 1 when there are more. */
unsigned mew_name_distance(const char *a, const char *b, unsigned most);

#endif
