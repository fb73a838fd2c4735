/*
 * stubs.c - see stubs.h.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 *
 * A stub (System V ABI for x86-64, 5.2) has 16 bytes, in .plt.got without IBT 8, and holds `jmp *offset(%rip)`: ff 25
 * and four bytes. The slot that it reads is filled by a relocation of type JUMP_SLOT or GLOB_DAT, which names the
 * function.
 */
#include "config.h"

#include "stubs.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "sections.h"

struct slot {
	uint64_t address;
	const char *name;
};

struct slots {
	struct slot *all;
	size_t n, capacity;
};

static bool add_relocations(struct slots *s, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Scn *symbols = elf_getscn(elf, header->sh_link);
	Elf_Data *names = symbols == NULL ? NULL : elf_getdata(symbols, NULL);
	GElf_Shdr symbols_header;
	GElf_Rela relocation;
	GElf_Sym symbol;

	if (data == NULL || names == NULL || gelf_getshdr(symbols, &symbols_header) == NULL)
		return true;
	for (int i = 0; gelf_getrela(data, i, &relocation) != NULL; i++) {
		unsigned long type = GELF_R_TYPE(relocation.r_info);
		const char *name;

		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
		    gelf_getsym(names, (int)GELF_R_SYM(relocation.r_info), &symbol) == NULL)
			continue;
		name = elf_strptr(elf, symbols_header.sh_link, symbol.st_name);
		if (name == NULL || name[0] == '\0')
			continue;
		if (!mew_grow(&s->all, &s->capacity, s->n, sizeof *s->all))
			return false;
		s->all[s->n++] = (struct slot){ relocation.r_offset, name };
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static bool list_slots(struct slots *s, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_RELA &&
		    (header.sh_flags & SHF_ALLOC) != 0 && !add_relocations(s, elf, section, &header))
			return false;
	if (s->n > 0)
		qsort(s->all, s->n, sizeof *s->all, by_address);
	return true;
}

static bool add_stubs(struct mew_symtab *t, const struct slots *s, Elf_Scn *section, const GElf_Shdr *header)
{
	const Elf_Data *data = elf_rawdata(section, NULL);
	const unsigned char *bytes = data == NULL ? NULL : data->d_buf;
	size_t size = header->sh_entsize == 8 ? 8 : 16;

	for (size_t at = 0; bytes != NULL && at + 6 <= data->d_size; at++) {
		const struct slot *slot;
		int32_t offset;
		uint64_t lo = header->sh_addr + at / size * size;

		if (bytes[at] != 0xff || bytes[at + 1] != 0x25)
			continue;
		memcpy(&offset, bytes + at + 2, sizeof offset);
		slot = bsearch(&(struct slot){ .address = header->sh_addr + at + 6 + (uint64_t)(int64_t)offset },
			       s->all, s->n, sizeof *s->all, by_address);
		if (slot == NULL)
			continue;
		if (!mew_grow(&t->symbols, &t->capacity, t->n, sizeof *t->symbols))
			return false;
		t->symbols[t->n++] = (struct mew_symbol){ lo, lo + size, slot->name, 0, true };
	}
	return true;
}

static bool is_linkage_table(const char *name)
{
	return strcmp(name, ".plt") == 0 || strcmp(name, ".plt.sec") == 0 || strcmp(name, ".plt.got") == 0;
}

bool mew_stubs_add(struct mew_symtab *t, const struct mew_elf_module *m)
{
	struct slots slots = { NULL, 0, 0 };
	struct mew_sections s = { .elf = m->file.elf };
	GElf_Ehdr file;
	bool is_done;

	if (gelf_getehdr(m->file.elf, &file) == NULL || file.e_machine != EM_X86_64)
		return true;
	is_done = list_slots(&slots, m->file.elf);
	while (is_done && slots.n > 0 && mew_sections_next(&s))
		if (s.header.sh_type == SHT_PROGBITS && is_linkage_table(s.name))
			is_done = add_stubs(t, &slots, s.section, &s.header);
	free(slots.all);
	return is_done;
}
