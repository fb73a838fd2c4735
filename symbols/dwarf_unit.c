/*
 * dwarf_unit.c - one pass over a compile unit's tree: where its functions and the calls inlined into them lie.
 * Layer L3, inside libmew_symbols. Any thread; allocates. The tree comes from a file: each step is checked and bounded.
 */
#include "config.h"

#include "dwarf_index.h"

#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>

/* Scopes in scopes; a tree deeper than this is taken as damaged. */
#define DEPTH_MAX 256

struct walk {
	struct mew_dwarf *dwarf;
	struct mew_dwarf_unit *unit;
	unsigned functions; /* open around the entry being visited */
	bool is_cxx;
	bool is_passing; /* through a function without an address asked about, for the functions of its local types */
};

void mew_dwarf_unit_damage(struct mew_dwarf *d, struct mew_dwarf_unit *unit, const char *why)
{
	const char *text = why != NULL ? why : dwarf_errmsg(dwarf_errno());

	if (d->cause[0] == '\0')
		(void)snprintf(d->cause, sizeof d->cause, "%s", text != NULL ? text : "inconsistent tree");
	if (unit->is_damaged)
		return;
	unit->is_damaged = true;
	d->damaged++;
}

static bool add_node(struct walk *w, Dwarf_Die *die, uint32_t parent, uint32_t *number)
{
	struct mew_dwarf_unit *unit = w->unit;

	if (unit->nnodes >= MEW_NO_ITEM ||
	    !mew_grow(&unit->nodes, &unit->node_capacity, unit->nnodes, sizeof *unit->nodes))
		return false;
	*number = (uint32_t)unit->nnodes;
	unit->nodes[unit->nnodes++] = (struct mew_dwarf_node){ .die = dwarf_dieoffset(die), .parent = parent };
	return true;
}

/* Enter the node if the tree gives it code that was asked about. *number stays MEW_NO_ITEM when there is none. */
static bool add_code(struct walk *w, Dwarf_Die *die, uint32_t parent, unsigned depth, uint32_t *number)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	*number = MEW_NO_ITEM;
	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (!mew_dwarf_wants(w->dwarf, lo, hi) || !mew_elf_is_code(w->dwarf->module, lo))
			continue;
		if (*number == MEW_NO_ITEM && !add_node(w, die, parent, number))
			return false;
		if (!mew_ranges_add(&w->unit->ranges, lo, hi, depth, *number))
			return false;
	}
	if (at < 0)
		mew_dwarf_unit_damage(w->dwarf, w->unit, NULL);
	return true;
}

static bool walk_children(struct walk *w, Dwarf_Die *parent, uint32_t node, unsigned depth);

static bool visit_function(struct walk *w, Dwarf_Die *die, unsigned depth)
{
	bool was_passing = w->is_passing, is_done;
	uint32_t number;

	if (!add_code(w, die, MEW_NO_ITEM, depth, &number))
		return false;
	/*
	 * what is below a function without a wanted address may be the code of its local classes and lambdas, no more
	 */
	if (number == MEW_NO_ITEM && !w->unit->has_scopes)
		return true;
	w->is_passing = number == MEW_NO_ITEM;
	w->functions++;
	is_done = walk_children(w, die, number, depth + 1);
	w->functions--;
	w->is_passing = was_passing;
	return is_done;
}

static bool visit_inlined(struct walk *w, Dwarf_Die *die, uint32_t node, unsigned depth)
{
	uint32_t number;

	if (w->is_passing)
		return true;
	if (!add_code(w, die, node, depth, &number))
		return false;
	return number == MEW_NO_ITEM || walk_children(w, die, number, depth + 1);
}

/*
 * Types are most of the tree. Code in them: none in C; in C++ that of local classes only; anywhere in Rust and others.
 */
static bool may_hold_code(const struct walk *w)
{
	return w->unit->has_scopes && (!w->is_cxx || w->functions > 0);
}

static bool visit(struct walk *w, Dwarf_Die *die, uint32_t node, unsigned depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		return visit_function(w, die, depth);
	case DW_TAG_inlined_subroutine:
		return visit_inlined(w, die, node, depth);
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_namespace:
	case DW_TAG_module:
		return walk_children(w, die, node, depth + 1);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return !may_hold_code(w) || walk_children(w, die, node, depth + 1);
	default:
		return true;
	}
}

static bool walk_children(struct walk *w, Dwarf_Die *parent, uint32_t node, unsigned depth)
{
	Dwarf_Die child, next;
	Dwarf_Off at;
	int status = dwarf_child(parent, &child);

	if (status == 0 && depth > DEPTH_MAX)
		status = -1;
	while (status == 0) {
		if (!visit(w, &child, node, depth))
			return false;
		at = dwarf_dieoffset(&child);
		status = dwarf_siblingof(&child, &next);
		/* a damaged sibling reference that leads back would never end */
		if (status == 0 && dwarf_dieoffset(&next) <= at)
			status = -1;
		child = next;
	}
	if (status < 0)
		mew_dwarf_unit_damage(w->dwarf, w->unit, NULL);
	return true;
}

static bool is_scoped_language(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

static bool is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

static void read_lines(struct mew_dwarf *d, struct mew_dwarf_unit *unit)
{
	Dwarf_Attribute memory;
	const char *directory = dwarf_formstring(dwarf_attr(&unit->die, DW_AT_comp_dir, &memory)), *why;
	Dwarf_Word offset;

	if (dwarf_formudata(dwarf_attr(&unit->die, DW_AT_stmt_list, &memory), &offset) != 0)
		return;
	unit->has_lines = true;
	why = mew_line_program_open(&unit->lines, &d->sections, offset, directory == NULL ? "" : directory);
	if (why == NULL)
		why = mew_line_program_run(&unit->lines, d->module, (uint32_t)(unit - d->units), d->addresses, d->n,
					   d->rows);
	if (why != NULL)
		mew_dwarf_unit_damage(d, unit, why);
}

bool mew_dwarf_unit_load(struct mew_dwarf *d, struct mew_dwarf_unit *unit)
{
	struct walk w = { .dwarf = d, .unit = unit };
	uint8_t type;

	if (unit->is_loaded)
		return true;
	unit->is_loaded = true;
	unit->code = unit->die;
	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &unit->code, NULL, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		unit->code = unit->die;
	read_lines(d, unit);
	if (unit->code.addr == NULL)
		return true;
	unit->has_scopes = is_scoped_language(&unit->code);
	w.is_cxx = is_cxx(&unit->code);
	return walk_children(&w, &unit->code, MEW_NO_ITEM, 1) && mew_ranges_flatten(&unit->ranges);
}

void mew_dwarf_unit_fini(struct mew_dwarf_unit *unit)
{
	mew_line_program_close(&unit->lines);
	mew_ranges_fini(&unit->ranges);
	free(unit->nodes);
	unit->nodes = NULL;
}
