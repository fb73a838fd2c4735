/*
 * small_elf.c - unpacks .gnu_debugdata, by which distributions keep the names of local functions in stripped files.
 * Layer L3, inside libmew_symbols. Any thread; allocates. The size that the data unpacks to is bounded.
 */
#include "config.h"

#include "elf_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sections.h"

#ifdef HAVE_LZMA
#include <lzma.h>

#define UNPACKED_MAX ((size_t)64 << 20)
#define DECODER_MEMORY_MAX ((uint64_t)128 << 20)

/* Returns NULL where it cannot be unpacked. */
static unsigned char *unpack(const Elf_Data *packed, size_t *bytes)
{
	for (size_t room = 8 * packed->d_size + 4096; room <= UNPACKED_MAX; room *= 4) {
		uint64_t limit = DECODER_MEMORY_MAX;
		size_t in = 0, out = 0;
		unsigned char *to = malloc(room);
		lzma_ret status;

		if (to == NULL)
			return NULL;
		status = lzma_stream_buffer_decode(&limit, 0, NULL, packed->d_buf, &in, packed->d_size, to, &out, room);
		*bytes = out;
		if (status == LZMA_OK)
			return to;
		free(to);
		if (status != LZMA_BUF_ERROR)
			return NULL;
	}
	return NULL;
}
#else
static unsigned char *unpack(const Elf_Data *packed, size_t *bytes)
{
	(void)packed;
	*bytes = 0;
	return NULL;
}
#endif

static Elf_Data *find_packed(Elf *elf)
{
	struct mew_sections s = { .elf = elf };

	while (mew_sections_next(&s))
		if (s.header.sh_type == SHT_PROGBITS && strcmp(s.name, ".gnu_debugdata") == 0)
			return elf_rawdata(s.section, NULL);
	return NULL;
}

void mew_small_elf_open(struct mew_elf_module *m)
{
	Elf_Data *packed = find_packed(m->file.elf);
	size_t n;

	if (packed == NULL || packed->d_buf == NULL || packed->d_size == 0)
		return;
	m->small.bytes = unpack(packed, &n);
	if (m->small.bytes != NULL)
		m->small.elf = elf_memory((char *)m->small.bytes, n);
	if (m->small.elf != NULL && elf_kind(m->small.elf) == ELF_K_ELF)
		return;
	mew_small_elf_close(m);
	if (m->why[0] == '\0')
		(void)snprintf(m->why, sizeof m->why, "the small symbol table in .gnu_debugdata cannot be read "
#ifdef HAVE_LZMA
			       "(it is damaged)");
#else
			       "(mew was built without liblzma)");
#endif
}

void mew_small_elf_close(struct mew_elf_module *m)
{
	if (m->small.elf != NULL)
		(void)elf_end(m->small.elf);
	free(m->small.bytes);
	m->small = (struct mew_small_elf){ NULL, NULL };
}
