/*
 * sections.c - see sections.h.
 * Layer L3, inside libmew_symbols. Any thread.
 */
#include "config.h"

#include "sections.h"

bool mew_sections_next(struct mew_sections *s)
{
	size_t names;

	if (s->elf == NULL || elf_getshdrstrndx(s->elf, &names) != 0)
		return false;
	while ((s->section = elf_nextscn(s->elf, s->section)) != NULL) {
		s->name = NULL;
		if (gelf_getshdr(s->section, &s->header) != NULL)
			s->name = elf_strptr(s->elf, names, s->header.sh_name);
		if (s->name != NULL)
			return true;
	}
	return false;
}
