/*
 * dwarf_detail.c - name, file and lines of one function, read from its entry and those it refers to.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "dwarf_index.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"

static uint32_t number_of(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute memory;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, attribute, &memory), &value) != 0 || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute memory;
	Dwarf_Attribute *attribute = dwarf_attr_integrate(die, DW_AT_linkage_name, &memory);

	if (attribute == NULL)
		attribute = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &memory);
	return attribute == NULL ? NULL : dwarf_formstring(attribute);
}

/* May the last part of what was kept be taken back by a ".."? Not the root, and not a ".." that stayed. */
static bool has_parent(const char *path, const char *out)
{
	if (out == path || (out == path + 1 && path[0] == '/'))
		return false;
	return out - path < 3 || memcmp(out - 3, "../", 3) != 0;
}

void mew_path_simplify(char *path)
{
	char *out = path;
	const char *in = path;

	while (*in != '\0') {
		size_t n = strcspn(in, "/");
		bool is_dot = n == 1 && in[0] == '.', is_dots = n == 2 && in[0] == '.' && in[1] == '.';

		if (is_dots && has_parent(path, out)) {
			out--;
			while (out > path && out[-1] != '/')
				out--;
		} else if (!is_dot && (n > 0 || in == path)) {
			memmove(out, in, n);
			out += n;
			if (in[n] == '/')
				*out++ = '/';
		}
		in += n + (in[n] == '/' ? 1 : 0);
	}
	*out = '\0';
}

/*
 * The file that an attribute (decl_file, call_file) names; NULL unknown. By libdw for entries of other units only: it
 * would run the whole line program once more. Not dwarf_decl_file(): it takes file 0 for
 * "none" (from DWARF 5 on it is the first file, and clang uses it), and in elfutils 0.188 it aborts on a unit whose
 * line table it has not read.
 */
static const char *file_named_by(struct mew_dwarf_unit *own, Dwarf_Attribute *attribute)
{
	Dwarf_Word index;
	Dwarf_Half version;
	Dwarf_Die unit;
	Dwarf_Files *files;
	size_t n;

	if (attribute == NULL || dwarf_formudata(attribute, &index) != 0)
		return NULL;
	/* the number counts in the table of the unit that the attribute stands in, which may be another one */
	if (attribute->cu == own->die.cu)
		return own->has_lines ? mew_line_program_file(&own->lines, index) : NULL;
	if (dwarf_cu_die(attribute->cu, &unit, &version, NULL, NULL, NULL, NULL, NULL) == NULL ||
	    (index == 0 && version < 5) || dwarf_getsrcfiles(&unit, &files, &n) != 0 || index >= n)
		return NULL;
	return dwarf_filesrc(files, (size_t)index, NULL, NULL);
}

static char *file_of(struct mew_dwarf_unit *unit, Dwarf_Die *die)
{
	Dwarf_Attribute memory;
	const char *file = file_named_by(unit, dwarf_attr_integrate(die, DW_AT_decl_file, &memory));
	char *copy = strdup(file == NULL ? "" : file);

	if (copy != NULL)
		mew_path_simplify(copy);
	return copy;
}

static uint64_t entry_of(Dwarf_Die *die)
{
	Dwarf_Addr base, lo, hi;

	if (dwarf_tag(die) != DW_TAG_subprogram)
		return 0;
	return dwarf_entrypc(die, &lo) == 0 || dwarf_ranges(die, 0, &base, &lo, &hi) > 0 ? lo : 0;
}

static bool read_detail(struct mew_dwarf_detail *detail, struct mew_dwarf_unit *unit, Dwarf_Die *die)
{
	const char *linkage = linkage_name(die), *plain = dwarf_diename(die);
	Dwarf_Attribute memory;
	bool has_scopes = unit->has_scopes;
	int line;

	/*
	 * C gives linkage names to renamed functions only (__GI_qsort): there the source's name is the better one,
	 * unless it stands for a C++ function.
	 */
	if (!has_scopes && linkage != NULL && strncmp(linkage, "_Z", 2) != 0)
		linkage = NULL;
	if (linkage != NULL)
		detail->name = mew_demangle(linkage, false);
	else
		detail->name = strdup(plain == NULL ? "" : plain);
	detail->is_qualified = linkage != NULL || !has_scopes;
	detail->file = file_of(unit, die);
	if (dwarf_decl_line(die, &line) == 0 && line > 0)
		detail->line = (uint32_t)line;
	else
		detail->entry = entry_of(die);
	detail->call_line = number_of(die, DW_AT_call_line);
	detail->call_file = file_named_by(unit, dwarf_attr(die, DW_AT_call_file, &memory));
	return detail->name != NULL && detail->file != NULL;
}

const struct mew_dwarf_detail *mew_dwarf_detail(struct mew_dwarf *d, struct mew_dwarf_unit *unit, uint32_t node)
{
	struct mew_dwarf_node *n = &unit->nodes[node];
	struct mew_dwarf_detail *detail;
	Dwarf_Die die;

	if (n->detail != 0)
		return &d->details[n->detail - 1];
	if (!mew_grow(&d->details, &d->detail_capacity, d->ndetails, sizeof *d->details))
		return NULL;
	detail = &d->details[d->ndetails];
	*detail = (struct mew_dwarf_detail){ .line = 0 };
	if (dwarf_offdie(dwarf_cu_getdwarf(unit->code.cu), n->die, &die) == NULL)
		return NULL;
	if (!read_detail(detail, unit, &die)) {
		mew_dwarf_detail_fini(detail);
		return NULL;
	}
	n->detail = (uint32_t)++d->ndetails;
	return detail;
}

void mew_dwarf_detail_fini(struct mew_dwarf_detail *detail)
{
	free(detail->name);
	free(detail->file);
}
