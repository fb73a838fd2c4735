/*
 * dwarf_index.h - functions, inlined functions and lines of a module, read once per compile unit that is asked about.
 * Layer L3, inside libmew_symbols.
 */
#ifndef MEW_SYMBOLS_DWARF_INDEX_H
#define MEW_SYMBOLS_DWARF_INDEX_H

#include "elf_file.h"
#include "lines.h"
#include "ranges.h"
#include "shared_file.h"

#include <elfutils/libdw.h>

/* Inlined functions nest no deeper than this; what is deeper counts as its outermost representable caller. */
#define MEW_INLINE_MAX 128

struct mew_dwarf_detail { /* what is printed of a node; read when it is first shown */
	char *name; /* demangled; "" without one */
	char *file; /* "" unknown */
	const char *call_file; /* where it was inlined; libdw's; NULL unknown */
	uint64_t entry;        /* of a function whose line is unknown: its first instruction; else 0 */
	uint32_t line, call_line;
	bool is_qualified; /* the name came from a linkage name, or the language has no scopes */
};

struct mew_dwarf_node { /* a function or an inlined call of one */
	Dwarf_Off die;
	uint32_t parent; /* the node this one is inlined into; MEW_NO_ITEM: a function */
	uint32_t detail; /* 1 + number into details; 0 not read yet */
};

struct mew_dwarf_unit {
	Dwarf_Die die;  /* of the unit, in the file itself: ranges and lines */
	Dwarf_Die code; /* parent of its functions: the same, or the one in a .dwo file; addr NULL: not found */
	struct mew_line_program lines;
	bool is_loaded, is_damaged, has_scopes, has_lines, has_places;
	struct mew_dwarf_node *nodes;
	size_t nnodes, node_capacity;
	struct mew_ranges ranges; /* items are numbers into nodes */
};

struct mew_dwarf_place { /* an instruction besides those given at the start */
	uint64_t address;
	uint32_t owner;
};

struct mew_dwarf {
	const struct mew_elf_module *module; /* borrowed */
	Dwarf *dwarf, *shared; /* NULL: it has no shared file, or that is not here */
	struct mew_elf shared_file;
	const uint64_t *addresses; /* n of them, ascending: all else is passed over. Borrowed */
	size_t n;
	struct mew_line_row *rows; /* of the addresses; the owner is a number into units */
	struct mew_dwarf_place *places; /* sorted by mew_dwarf_answer() */
	uint64_t *place_addresses;
	struct mew_line_row *place_rows;
	size_t nplaces, place_capacity;
	struct mew_line_sections sections;
	struct mew_dwarf_unit *units;
	size_t nunits, unit_capacity;
	struct mew_ranges cover; /* where units have addresses asked about; items are numbers into units */
	struct mew_dwarf_detail *details;
	size_t ndetails, detail_capacity;
	size_t unreadable; /* units whose head could not be read: nobody knows what they own */
	size_t damaged;    /* used units with something that could not be read */
	char cause[96]; /* libdw's first complaint */
	size_t split;      /* used units whose .dwo file is missing */
	char lost[MEW_WHY_MAX];   /* the sentence about unreadable units; "" none */
	char unshared[MEW_WHY_MAX]; /* about the shared file that was not found; "" none */
	char apart[MEW_WHY_MAX];    /* about split units */
	char damage[MEW_WHY_MAX]; /* about damaged ones */
	bool is_out_of_memory;
};

struct mew_dwarf_frame { /* texts live until mew_dwarf_close() */
	const char *function; /* "" without a name */
	const char *file;
	uint64_t entry; /* the first instruction, where function_line is unknown; 0 unknown */
	uint32_t function_line, line;
	bool is_qualified;
};

/*
 * Open the debug information of a module and list the compile units that own one of n ascending addresses.
 *
 * m, addresses  borrowed until mew_dwarf_close(); m->dwarf must not be NULL
 * servers       borrowed during the call; asked for a shared file that this machine lacks; NULL: none is asked
 * why           returned when it cannot be read: one sentence, MEW_WHY_MAX bytes
 * Returns       true; mew_dwarf_close() in either case
 */
bool mew_dwarf_open(struct mew_dwarf *d, const struct mew_elf_module *m, const uint64_t *addresses, size_t n,
		    const struct mew_servers *servers, char *why);
void mew_dwarf_close(struct mew_dwarf *d);

/* Read these units, so that mew_dwarf_note() knows all damage. False without memory. */
bool mew_dwarf_load(struct mew_dwarf *d);

/* Is one of the addresses in [lo, hi)? */
static inline bool mew_dwarf_wants(const struct mew_dwarf *d, uint64_t lo, uint64_t hi)
{
	size_t first = mew_first_from(d->addresses, d->n, lo);

	return first < d->n && d->addresses[first] < hi;
}

/* The functions at an address, innermost first, at most MEW_INLINE_MAX; 0 where none is known. */
size_t mew_dwarf_frames(struct mew_dwarf *d, uint64_t address, struct mew_dwarf_frame *out);

/*
 * The row of the line table at an address given at the start. *file lives until mew_dwarf_close(), and is NULL when it
 * has no name. Returns false where there is no row.
 */
bool mew_dwarf_line(struct mew_dwarf *d, uint64_t address, const char **file, uint32_t *line);

/*
 * Other places in the unit that owns an address: ask for all of them, then mew_dwarf_answer() once (both return false
 * without memory), then mew_dwarf_place() as mew_dwarf_line().
 */
bool mew_dwarf_ask(struct mew_dwarf *d, uint64_t address, uint64_t place);
bool mew_dwarf_answer(struct mew_dwarf *d);
bool mew_dwarf_place(struct mew_dwarf *d, uint64_t place, const char **file, uint32_t *line);

/* Why something may be missing at this address; NULL when all of its unit was read. */
const char *mew_dwarf_note(const struct mew_dwarf *d, uint64_t address);

/* dwarf_unit.c: the one pass over a unit. Counts damage; false without memory. */
bool mew_dwarf_unit_load(struct mew_dwarf *d, struct mew_dwarf_unit *unit);
void mew_dwarf_unit_fini(struct mew_dwarf_unit *unit);
/* why NULL: libdw's own complaint. */
void mew_dwarf_unit_damage(struct mew_dwarf *d, struct mew_dwarf_unit *unit, const char *why);

/* dwarf_detail.c: name, file and lines of a node; NULL without memory. */
const struct mew_dwarf_detail *mew_dwarf_detail(struct mew_dwarf *d, struct mew_dwarf_unit *unit, uint32_t node);
void mew_dwarf_detail_fini(struct mew_dwarf_detail *detail);

/* Take "x/./", "//" and "x/../" out of a path, so that one file has one name however it was included. In place. */
void mew_path_simplify(char *path);

#endif
