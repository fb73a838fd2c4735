/*
 * symtab.c - own symbol index: a look-up in it costs tens of nanoseconds, libdw's linear search 150 us and more.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "symtab.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "stubs.h"

/* Sized before unsized, functions before labels, global before weak before local, malloc before __libc_malloc. */
static unsigned rank_of(const GElf_Sym *symbol, const char *name)
{
	unsigned binding = GELF_ST_BIND(symbol->st_info), type = GELF_ST_TYPE(symbol->st_info);
	unsigned rank = 7;

	while (rank > 0 && *name == '_') {
		rank--;
		name++;
	}
	rank += binding == STB_GLOBAL ? 16 : binding == STB_WEAK ? 8 : 0;
	rank += type == STT_FUNC || type == STT_GNU_IFUNC ? 32 : 0;
	return rank + (symbol->st_size != 0 ? 64 : 0);
}

static bool is_function(const struct mew_elf_module *m, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	return mew_elf_is_code(m, symbol->st_value);
}

static bool add_section(struct mew_symtab *t, const struct mew_elf_module *m, Elf *elf, Elf_Scn *section,
			const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = data == NULL || header->sh_entsize == 0 ? 0 : (size_t)(header->sh_size / header->sh_entsize);
	GElf_Sym symbol;

	for (size_t i = 1; i < n && i <= INT32_MAX; i++) {
		const char *name;

		if (gelf_getsym(data, (int)i, &symbol) == NULL)
			break;
		if (!is_function(m, &symbol))
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name == NULL || name[0] == '\0' || name[0] == '$')
			continue;
		if (!mew_grow(&t->symbols, &t->capacity, t->n, sizeof *t->symbols))
			return false;
		t->symbols[t->n++] = (struct mew_symbol){ symbol.st_value, symbol.st_value + symbol.st_size, name,
							   rank_of(&symbol, name), false };
	}
	return true;
}

static bool add_file(struct mew_symtab *t, const struct mew_elf_module *m, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	if (elf == NULL)
		return true;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) == NULL)
			continue;
		if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM)
			continue;
		if (!add_section(t, m, elf, section, &header))
			return false;
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct mew_symbol *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* One name per address: the best. */
static void keep_best(struct mew_symtab *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++)
		if (kept == 0 || t->symbols[kept - 1].lo != t->symbols[i].lo)
			t->symbols[kept++] = t->symbols[i];
	t->n = kept;
}

static uint64_t end_of_section(const struct mew_elf_module *m, uint64_t address)
{
	for (size_t i = 0; i < m->ncode; i++)
		if (address >= m->code[i].lo && address < m->code[i].hi)
			return m->code[i].hi;
	return address;
}

/* Ends for symbols without a size. A label inside a sized function is no function of its own and stays empty. */
static void fill_sizes(struct mew_symtab *t, const struct mew_elf_module *m)
{
	uint64_t covered = 0;

	for (size_t i = 0; i < t->n; i++) {
		struct mew_symbol *symbol = &t->symbols[i];

		if (symbol->hi > covered)
			covered = symbol->hi;
		if (symbol->hi != symbol->lo || symbol->lo < covered)
			continue;
		symbol->hi = end_of_section(m, symbol->lo);
		if (i + 1 < t->n && t->symbols[i + 1].lo < symbol->hi)
			symbol->hi = t->symbols[i + 1].lo;
	}
}

bool mew_symtab_init(struct mew_symtab *t, const struct mew_elf_module *m)
{
	*t = (struct mew_symtab){ .n = 0 };
	if (!add_file(t, m, m->file.elf) || !add_file(t, m, m->debug.elf) || !add_file(t, m, m->small.elf) ||
	    !mew_stubs_add(t, m))
		return false;
	if (t->n > 0)
		qsort(t->symbols, t->n, sizeof *t->symbols, by_address);
	keep_best(t);
	fill_sizes(t, m);
	for (size_t i = 0; i < t->n; i++)
		if (!mew_ranges_add(&t->ranges, t->symbols[i].lo, t->symbols[i].hi, 0, (uint32_t)i))
			return false;
	return mew_ranges_flatten(&t->ranges);
}

void mew_symtab_fini(struct mew_symtab *t)
{
	mew_ranges_fini(&t->ranges);
	free(t->symbols);
	*t = (struct mew_symtab){ .n = 0 };
}

const struct mew_symbol *mew_symtab_find(const struct mew_symtab *t, uint64_t address)
{
	uint32_t item = mew_ranges_find(&t->ranges, address);

	return item == MEW_NO_ITEM ? NULL : &t->symbols[item];
}
