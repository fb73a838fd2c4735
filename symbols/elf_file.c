/*
 * elf_file.c - opens ELF files, the vDSO and separate debug files; a file whose build differs is never used.
 * Layer L3, inside libmew_symbols. Any thread; allocates, maps files.
 */
#include "config.h"

#include "elf_file.h"

#include <ctype.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug_file.h"
#include "ranges.h"

#define MEMORY_FILE "/memfd:" /* what the kernel calls a file of memfd_create(2) */

const char *mew_elf_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static void read_build_id(struct mew_elf *f)
{
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(f->elf, &bytes);

	if (n <= 0 || (size_t)n > sizeof f->build_id)
		return;
	memcpy(f->build_id, bytes, (size_t)n);
	f->build_id_bytes = (size_t)n;
}

static bool is_usable(Elf *elf)
{
	GElf_Ehdr header;

	return elf != NULL && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) != NULL;
}

void mew_elf_close(struct mew_elf *f)
{
	if (f->elf != NULL)
		(void)elf_end(f->elf);
	if (f->fd >= 0)
		(void)close(f->fd);
	free(f->path);
	*f = (struct mew_elf){ .fd = -1 };
}

static bool open_regular(struct mew_elf *f, const char *path, char *why)
{
	struct stat st;

	if (strncmp(path, MEMORY_FILE, sizeof MEMORY_FILE - 1) == 0) {
		(void)snprintf(why, MEW_WHY_MAX, "%s was a file in memory (memfd) and went with its process", path);
		return false;
	}
	/* O_NONBLOCK: a path that became a pipe must not hang the report */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0 || fstat(f->fd, &st) != 0) {
		(void)snprintf(why, MEW_WHY_MAX, "%s cannot be read any more: %s", path, strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode)) {
		(void)snprintf(why, MEW_WHY_MAX, "%s is not a regular file", path);
		return false;
	}
	return true;
}

bool mew_elf_open(struct mew_elf *f, const char *path, char *why)
{
	*f = (struct mew_elf){ .fd = -1 };
	(void)elf_version(EV_CURRENT);
	if (!open_regular(f, path, why))
		goto fail;
	f->elf = elf_begin(f->fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	f->path = strdup(path);
	if (!is_usable(f->elf) || f->path == NULL) {
		(void)snprintf(why, MEW_WHY_MAX, "%s is not an ELF file that can be read", path);
		goto fail;
	}
	read_build_id(f);
	return true;
fail:
	mew_elf_close(f);
	return false;
}

/* The kernel maps the vDSO whole, section headers last. */
static bool open_vdso(struct mew_elf *f, char *why)
{
	uintptr_t base = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const ElfW(Ehdr) *header;
	char *image;

	*f = (struct mew_elf){ .fd = -1 };
	if (base != 0) {
		image = (char *)base;
		header = (const ElfW(Ehdr) *)base;
		f->elf = elf_memory(image, (size_t)header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
	}
	if (!is_usable(f->elf)) {
		(void)snprintf(why, MEW_WHY_MAX, "this process has no vDSO to read names from");
		mew_elf_close(f);
		return false;
	}
	read_build_id(f);
	return true;
}

static void hex(const struct mew_elf *f, char *text)
{
	for (size_t i = 0; i < f->build_id_bytes; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", f->build_id[i]);
	text[2 * f->build_id_bytes] = '\0';
}

static bool is_build(const struct mew_elf *f, const char *path, const char *wanted, char *why)
{
	char found[2 * MEW_BUILD_ID_MAX + 1];

	hex(f, found);
	if (wanted[0] == '\0' || strcmp(found, wanted) == 0)
		return true;
	(void)snprintf(why, MEW_WHY_MAX, "%s is no longer the file that ran (build id %.16s, now %.16s): measure again",
		       mew_elf_base_name(path), wanted, found[0] == '\0' ? "none" : found);
	return false;
}

/* Where code lies: debug information of discarded functions points elsewhere (to 0, 1 or the top). */
static bool list_code(struct mew_elf_module *m)
{
	size_t capacity = 0;
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(m->file.elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) == NULL || (header.sh_flags & SHF_EXECINSTR) == 0)
			continue;
		if (!mew_grow(&m->code, &capacity, m->ncode, sizeof *m->code))
			return false;
		m->code[m->ncode++] = (struct mew_code_range){ header.sh_addr, header.sh_addr + header.sh_size };
	}
	return true;
}

bool mew_elf_is_code(const struct mew_elf_module *m, uint64_t address)
{
	for (size_t i = 0; i < m->ncode; i++)
		if (address >= m->code[i].lo && address < m->code[i].hi)
			return true;
	return false;
}

static size_t parse_build_id(const char *hex_text, unsigned char bytes[MEW_BUILD_ID_MAX])
{
	size_t n = 0;
	unsigned byte;

	/* of an even number of digits: a saved result may say anything */
	for (; n < MEW_BUILD_ID_MAX && isxdigit((unsigned char)hex_text[2 * n]) &&
	     isxdigit((unsigned char)hex_text[2 * n + 1]) &&
	       sscanf(hex_text + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = (unsigned char)byte;
	return n;
}

/* A debug file keeps the addresses of all sections, so names and lines come out of it alone. */
static bool open_stand_in(struct mew_elf *f, const char *path, const char *build_id, const struct mew_servers *servers)
{
	struct mew_elf gone = { .fd = -1 };
	char unused[MEW_WHY_MAX];
	bool is_found;

	gone.build_id_bytes = parse_build_id(build_id, gone.build_id);
	gone.path = strdup(path);
	is_found = gone.path != NULL && gone.build_id_bytes > 0 && mew_debug_file_find(f, &gone, servers, unused);
	free(gone.path);
	return is_found;
}

static bool open_file(struct mew_elf *f, const char *path, const char *build_id, const struct mew_servers *servers,
		      char *why)
{
	if (mew_elf_open(f, path, why) && is_build(f, path, build_id, why))
		return true;
	mew_elf_close(f);
	return open_stand_in(f, path, build_id, servers);
}

bool mew_elf_module_open(struct mew_elf_module *m, const char *path, const char *build_id,
			 const struct mew_servers *servers, char *why)
{
	bool is_vdso = strcmp(path, "[vdso]") == 0;

	*m = (struct mew_elf_module){ .debug = { .fd = -1 } };
	if (is_vdso ? !open_vdso(&m->file, why) || !is_build(&m->file, path, build_id, why) :
		      !open_file(&m->file, path, build_id, servers, why))
		return false;
	if (!list_code(m)) {
		(void)snprintf(why, MEW_WHY_MAX, "no memory to read %s", mew_elf_base_name(path));
		return false;
	}
	if (mew_elf_has_dwarf(m->file.elf))
		m->dwarf = m->file.elf;
	else if (!is_vdso && mew_debug_file_find(&m->debug, &m->file, servers, m->why))
		m->dwarf = mew_elf_has_dwarf(m->debug.elf) ? m->debug.elf : NULL;
	if (!is_vdso && m->debug.elf == NULL)
		mew_small_elf_open(m);
	return true;
}

void mew_elf_module_close(struct mew_elf_module *m)
{
	mew_small_elf_close(m);
	mew_elf_close(&m->debug);
	mew_elf_close(&m->file);
	free(m->code);
	m->code = NULL;
	m->ncode = 0;
}
