/*
 * dwarf.c - which compile unit owns an address, and the chain of functions inlined there.
 * Layer L3, inside libmew_symbols. Any thread; allocates. Units without an asked address are not read past their head.
 */
#include "config.h"

#include "dwarf_index.h"

#include <dwarf.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sections.h"

static void note_unreadable(struct mew_dwarf *d)
{
	const char *text = dwarf_errmsg(dwarf_errno());

	if (d->unreadable++ == 0)
		(void)snprintf(d->cause, sizeof d->cause, "%s", text != NULL ? text : "no reason given");
}

static bool add_unit(struct mew_dwarf *d, Dwarf_Die *die)
{
	uint32_t number = (uint32_t)d->nunits;
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	bool has_code = false;

	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (!mew_dwarf_wants(d, lo, hi) || !mew_elf_is_code(d->module, lo))
			continue;
		if (!mew_ranges_add(&d->cover, lo, hi, 0, number))
			return false;
		has_code = true;
	}
	if (at < 0 || dwarf_tag(die) == DW_TAG_invalid)
		note_unreadable(d);
	if (!has_code)
		return true;
	if (!mew_grow(&d->units, &d->unit_capacity, d->nunits, sizeof *d->units))
		return false;
	d->units[d->nunits++] = (struct mew_dwarf_unit){ .die = *die };
	return true;
}

/* Returns false without memory. */
static bool list_units(struct mew_dwarf *d)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;
	int status;

	while ((status = dwarf_get_units(d->dwarf, unit, &unit, NULL, &type, &die, NULL)) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (!add_unit(d, &die))
			return false;
	}
	/* a unit's head leads to the next one */
	if (status < 0)
		note_unreadable(d);
	return true;
}

static const char *file_name(const struct mew_elf_module *m)
{
	const char *path = m->dwarf == m->file.elf ? m->file.path : m->debug.path;

	return path == NULL ? "the vDSO" : mew_elf_base_name(path);
}

/* Returns false without memory. */
static bool list_rows(struct mew_dwarf *d)
{
	d->rows = calloc(d->n > 0 ? d->n : 1, sizeof *d->rows);
	for (size_t i = 0; d->rows != NULL && i < d->n; i++)
		d->rows[i].owner = mew_ranges_find(&d->cover, d->addresses[i]);
	return d->rows != NULL;
}

/* Returns false where the debug information must not be used: why. */
static bool share(struct mew_dwarf *d, const struct mew_servers *servers, char *why)
{
	const struct mew_elf *of = d->module->dwarf == d->module->file.elf ? &d->module->file : &d->module->debug;

	switch (of->path == NULL ? MEW_SHARED_NONE :
				   mew_shared_file_find(&d->shared_file, of, d->dwarf, servers, d->unshared)) {
	case MEW_SHARED_OPEN:
		d->shared = dwarf_begin_elf(d->shared_file.elf, DWARF_C_READ, NULL);
		if (d->shared == NULL) { /* libdw would look for one itself, and take any */
			(void)snprintf(why, MEW_WHY_MAX,
				       "the debug information that dwz moved out of it cannot be read: %s",
				       dwarf_errmsg(-1));
			return false;
		}
		dwarf_setalt(d->dwarf, d->shared);
		d->unshared[0] = '\0';
		return true;
	case MEW_SHARED_REFUSED:
		(void)snprintf(why, MEW_WHY_MAX, "%s", d->unshared);
		return false;
	default:
		return true;
	}
}

/*
 * libdw unpacks every section that it knows when it opens a file. Where variables lie and what macros say is asked by
 * nobody here, and is up to a third of what there is: as a section without contents it is left alone. The change is in
 * our private pages of the file.
 */
static void set_aside(Elf *elf)
{
	static const char *const unused[] = { ".debug_loclists", ".debug_loc", ".debug_macro", ".debug_macinfo",
					      ".debug_frame" };
	struct mew_sections s = { .elf = elf };

	while (mew_sections_next(&s))
		for (size_t i = 0; i < MEW_COUNTOF(unused); i++)
			if (strcmp(s.name, unused[i]) == 0) {
				s.header.sh_type = SHT_NOBITS;
				(void)gelf_update_shdr(s.section, &s.header);
			}
}

bool mew_dwarf_open(struct mew_dwarf *d, const struct mew_elf_module *m, const uint64_t *addresses, size_t n,
		    const struct mew_servers *servers, char *why)
{
	const char *name = file_name(m);

	*d = (struct mew_dwarf){ .module = m, .addresses = addresses, .n = n, .shared_file = { .fd = -1 } };
	if (m->dwarf == m->file.elf ? m->file.fd >= 0 : m->debug.fd >= 0)
		set_aside(m->dwarf);
	d->dwarf = dwarf_begin_elf(m->dwarf, DWARF_C_READ, NULL);
	if (d->dwarf == NULL) {
		(void)snprintf(why, MEW_WHY_MAX, "debug information of %s cannot be read: %s", name,
			       dwarf_errmsg(dwarf_errno()));
		return false;
	}
	if (!share(d, servers, why))
		return false;
	mew_line_sections_init(&d->sections, m->dwarf);
	if (!list_units(d) || !mew_ranges_flatten(&d->cover) || !list_rows(d)) {
		(void)snprintf(why, MEW_WHY_MAX, "no memory to read the debug information of %s", name);
		return false;
	}
	if (d->unreadable > 0)
		(void)snprintf(d->lost, sizeof d->lost,
			       "debug information of %s is damaged: %zu compile units (or more behind them) cannot be "
			       "read (%s)", name, d->unreadable, d->cause);
	d->cause[0] = '\0';
	return true;
}

void mew_dwarf_close(struct mew_dwarf *d)
{
	for (size_t i = 0; i < d->nunits; i++)
		mew_dwarf_unit_fini(&d->units[i]);
	for (size_t i = 0; i < d->ndetails; i++)
		mew_dwarf_detail_fini(&d->details[i]);
	mew_ranges_fini(&d->cover);
	free(d->units);
	free(d->rows);
	free(d->places);
	free(d->place_addresses);
	free(d->place_rows);
	free(d->details);
	if (d->dwarf != NULL)
		(void)dwarf_end(d->dwarf);
	if (d->shared != NULL)
		(void)dwarf_end(d->shared);
	mew_elf_close(&d->shared_file);
	*d = (struct mew_dwarf){ .shared_file = { .fd = -1 } };
}

static struct mew_dwarf_unit *unit_at(const struct mew_dwarf *d, uint64_t address)
{
	uint32_t item = mew_ranges_find(&d->cover, address);

	return item == MEW_NO_ITEM ? NULL : &d->units[item];
}

static bool is_packed(const struct mew_dwarf *d, char path[PATH_MAX])
{
	const char *of[] = { d->module->file.path, d->module->debug.path };

	for (size_t i = 0; i < MEW_COUNTOF(of); i++)
		if (of[i] != NULL && snprintf(path, PATH_MAX, "%s.dwp", of[i]) < PATH_MAX && access(path, F_OK) == 0)
			return true;
	return false;
}

static const char *split_name(Dwarf_Die *unit)
{
	Dwarf_Attribute memory;
	Dwarf_Attribute *attribute = dwarf_attr(unit, DW_AT_dwo_name, &memory);
	const char *name = dwarf_formstring(attribute == NULL ? dwarf_attr(unit, DW_AT_GNU_dwo_name, &memory) :
					    attribute);

	return name == NULL ? "unnamed" : name;
}

static void note_split(struct mew_dwarf *d)
{
	struct mew_dwarf_unit *first = NULL;
	char path[PATH_MAX];

	for (size_t i = d->nunits; i > 0; i--) {
		if (!d->units[i - 1].is_loaded || d->units[i - 1].code.addr != NULL)
			continue;
		first = &d->units[i - 1];
		d->split++;
	}
	if (first != NULL && is_packed(d, path))
		(void)snprintf(d->apart, sizeof d->apart,
			       "the debug information of %zu of the compile units used is in %.100s, and the elfutils "
			       "here reads no such package: keep the .dwo files; inlined functions are missing",
			       d->split, mew_elf_base_name(path));
	else if (first != NULL)
		(void)snprintf(d->apart, sizeof d->apart,
			       "the debug information of %zu of the compile units used is in .dwo files that were not "
			       "found (%.100s): inlined functions are missing", d->split, split_name(&first->die));
}

bool mew_dwarf_load(struct mew_dwarf *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->rows[i].owner != MEW_NO_ITEM && !mew_dwarf_unit_load(d, &d->units[d->rows[i].owner]))
			return false;
	note_split(d);
	if (d->damaged > 0)
		(void)snprintf(d->damage, sizeof d->damage,
			       "debug information of %s is damaged in %zu of the compile units used (%s): lines or "
			       "inlined functions may be missing",
			       file_name(d->module), d->damaged, d->cause);
	return true;
}

static bool tell(struct mew_dwarf *d, const struct mew_line_row *row, const char **file, uint32_t *line)
{
	if (!row->is_found)
		return false;
	*line = row->line;
	*file = mew_line_program_file(&d->units[row->owner].lines, row->file);
	return true;
}

bool mew_dwarf_line(struct mew_dwarf *d, uint64_t address, const char **file, uint32_t *line)
{
	size_t number = mew_first_from(d->addresses, d->n, address);

	return number < d->n && d->addresses[number] == address && tell(d, &d->rows[number], file, line);
}

bool mew_dwarf_ask(struct mew_dwarf *d, uint64_t address, uint64_t place)
{
	uint32_t owner = mew_ranges_find(&d->cover, address);

	if (owner == MEW_NO_ITEM || place == 0)
		return true;
	if (!mew_grow(&d->places, &d->place_capacity, d->nplaces, sizeof *d->places))
		return false;
	d->places[d->nplaces++] = (struct mew_dwarf_place){ place, owner };
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct mew_dwarf_place *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->owner > y->owner) - (x->owner < y->owner);
}

bool mew_dwarf_answer(struct mew_dwarf *d)
{
	if (d->nplaces == 0)
		return true;
	qsort(d->places, d->nplaces, sizeof *d->places, by_address);
	d->place_addresses = calloc(d->nplaces, sizeof *d->place_addresses);
	d->place_rows = calloc(d->nplaces, sizeof *d->place_rows);
	if (d->place_addresses == NULL || d->place_rows == NULL)
		return false;
	for (size_t i = 0; i < d->nplaces; i++) {
		d->place_addresses[i] = d->places[i].address;
		d->place_rows[i].owner = d->places[i].owner;
		d->units[d->places[i].owner].has_places = true;
	}
	/* what is wrong with a program was noted when it ran for the addresses */
	for (size_t i = 0; i < d->nunits; i++)
		if (d->units[i].has_places && d->units[i].has_lines)
			(void)mew_line_program_run(&d->units[i].lines, d->module, (uint32_t)i, d->place_addresses,
						   d->nplaces, d->place_rows);
	return true;
}

bool mew_dwarf_place(struct mew_dwarf *d, uint64_t place, const char **file, uint32_t *line)
{
	size_t number = d->place_rows == NULL ? d->nplaces : mew_first_from(d->place_addresses, d->nplaces, place);

	return number < d->nplaces && d->place_addresses[number] == place &&
	       tell(d, &d->place_rows[number], file, line);
}

size_t mew_dwarf_frames(struct mew_dwarf *d, uint64_t address, struct mew_dwarf_frame *out)
{
	struct mew_dwarf_unit *unit = unit_at(d, address);
	uint32_t line = 0, node = unit == NULL ? MEW_NO_ITEM : mew_ranges_find(&unit->ranges, address);
	const char *file = NULL;
	size_t n = 0;

	(void)mew_dwarf_line(d, address, &file, &line);
	while (node != MEW_NO_ITEM) {
		const struct mew_dwarf_detail *detail = mew_dwarf_detail(d, unit, node);

		if (detail == NULL) {
			d->is_out_of_memory = true;
			return 0;
		}
		/* too deep: the outermost function is worth more than one in the middle */
		if (n == MEW_INLINE_MAX)
			n--;
		/* -gline-tables-only does not say where a function is defined, only where its code is from */
		if (detail->file[0] != '\0' || file == NULL)
			file = detail->file;
		out[n++] = (struct mew_dwarf_frame){ detail->name, file, detail->entry, detail->line, line,
						     detail->is_qualified };
		line = detail->call_line;
		file = detail->call_file;
		node = unit->nodes[node].parent;
	}
	return n;
}

const char *mew_dwarf_note(const struct mew_dwarf *d, uint64_t address)
{
	const struct mew_dwarf_unit *unit = unit_at(d, address);

	if (unit == NULL)
		return d->lost[0] != '\0' ? d->lost : NULL;
	if (unit->is_damaged)
		return d->damage;
	if (unit->code.addr == NULL)
		return d->apart;
	return d->unshared[0] != '\0' ? d->unshared : NULL;
}
