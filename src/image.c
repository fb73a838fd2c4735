/*
 * image.c - reads program headers, notes and section headers of one loaded ELF file.
 * Layer L1. Outside windows; runs inside dlopen wrappers, so no malloc.
 */
#include "config.h"

#include "image.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "hotpath.h"

bool mew_image_code(const struct mew_image *image, uintptr_t *lo, uintptr_t *hi)
{
	*lo = UINTPTR_MAX;
	*hi = 0;
	for (size_t i = 0; i < image->nphdr; i++) {
		const ElfW(Phdr) *p = &image->phdr[i];
		uintptr_t at = image->bias + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || p->p_memsz == 0)
			continue;
		if (at < *lo)
			*lo = at;
		if (at + p->p_memsz > *hi)
			*hi = at + p->p_memsz;
	}
	return *lo < *hi;
}

/* The rest of the readable segment that holds address; size 0 where none does. */
static struct mew_span span_at(const struct mew_image *image, uintptr_t address)
{
	for (size_t i = 0; i < image->nphdr; i++) {
		const ElfW(Phdr) *p = &image->phdr[i];
		uintptr_t from = address - image->bias - p->p_vaddr;

		if (p->p_type == PT_LOAD && (p->p_flags & PF_R) && from < p->p_memsz)
			return (struct mew_span){ (const uint8_t *)address, p->p_memsz - from, address };
	}
	return (struct mew_span){ NULL, 0, address };
}

/* The same, cut to a length that a header declares. */
static struct mew_span span_of(const struct mew_image *image, uintptr_t vaddr, size_t bytes)
{
	struct mew_span span = span_at(image, image->bias + vaddr);

	if (span.size > bytes)
		span.size = bytes;
	return span;
}

static void hex(char *text, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*text++ = digits[bytes[i] >> 4];
		*text++ = digits[bytes[i] & 15];
	}
	*text = '\0';
}

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Notes: sizes of name and contents, a type, then both, each padded to 4 bytes. */
bool mew_build_id_of_notes(const void *notes, size_t bytes, char text[MEW_BUILD_ID_TEXT])
{
	const uint8_t *at = notes;
	ElfW(Nhdr) note;

	while (bytes >= sizeof note) {
		size_t name = sizeof note, contents;

		memcpy(&note, at, sizeof note);
		if (note.n_namesz > bytes || note.n_descsz > bytes) /* padding them could overflow where size_t has 32 bits */
			return false;
		contents = name + padded(note.n_namesz);
		if (contents + padded(note.n_descsz) > bytes)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0) {
			hex(text, at + contents,
			    note.n_descsz < MEW_BUILD_ID_TEXT / 2 ? note.n_descsz : MEW_BUILD_ID_TEXT / 2);
			return true;
		}
		at += contents + padded(note.n_descsz);
		bytes -= contents + padded(note.n_descsz);
	}
	return false;
}

void mew_image_build_id(const struct mew_image *image, char text[MEW_BUILD_ID_TEXT])
{
	text[0] = '\0';
	for (size_t i = 0; i < image->nphdr; i++) {
		const ElfW(Phdr) *p = &image->phdr[i];
		struct mew_span notes;

		if (p->p_type != PT_NOTE)
			continue;
		notes = span_of(image, p->p_vaddr, p->p_memsz);
		if (mew_build_id_of_notes(notes.bytes, notes.size, text))
			return;
	}
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Is the file the one in memory? Its program headers must be those that were loaded. */
static bool same_file(const struct mew_image *image, int fd, const ElfW(Ehdr) *header)
{
	ElfW(Phdr) p;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phnum != image->nphdr ||
	    header->e_phentsize != sizeof p || header->e_shentsize != sizeof(ElfW(Shdr)))
		return false;
	for (size_t i = 0; i < image->nphdr; i++) {
		if (!read_at(fd, &p, sizeof p, header->e_phoff + i * sizeof p) ||
		    memcmp(&p, &image->phdr[i], sizeof p) != 0)
			return false;
	}
	return true;
}

static bool find_section(int fd, const ElfW(Ehdr) *header, const char *name, ElfW(Shdr) *out)
{
	char found[16];
	ElfW(Shdr) names;
	size_t bytes = strlen(name) + 1;

	if (bytes > sizeof found ||
	    !read_at(fd, &names, sizeof names, header->e_shoff + (uint64_t)header->e_shstrndx * sizeof names))
		return false;
	for (uint64_t i = 0; i < header->e_shnum; i++) {
		if (!read_at(fd, out, sizeof *out, header->e_shoff + i * sizeof *out))
			return false;
		if ((out->sh_flags & SHF_ALLOC) && read_at(fd, found, bytes, names.sh_offset + out->sh_name) &&
		    memcmp(found, name, bytes) == 0)
			return true;
	}
	return false;
}

/* Static programs are often linked without PT_GNU_EH_FRAME, but .eh_frame is loaded all the same. */
static bool frames_by_section(const struct mew_image *image, const char *path, struct mew_ehframe *out)
{
	ElfW(Ehdr) header;
	ElfW(Shdr) section;
	bool found;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	found = read_at(fd, &header, sizeof header, 0) && same_file(image, fd, &header) &&
		find_section(fd, &header, ".eh_frame", &section);
	(void)close(fd);
	if (!found)
		return false;
	out->frames = span_of(image, section.sh_addr, section.sh_size);
	return out->frames.size > 0;
}

bool mew_image_frames(const struct mew_image *image, const char *path, struct mew_ehframe *out)
{
	*out = (struct mew_ehframe){ .header = { .size = 0 } };
	if (!mew_image_code(image, &out->lo, &out->hi))
		return false;
	for (size_t i = 0; i < image->nphdr; i++) {
		const ElfW(Phdr) *p = &image->phdr[i];

		if (p->p_type != PT_GNU_EH_FRAME)
			continue;
		out->header = span_of(image, p->p_vaddr, p->p_memsz);
		out->frames = span_at(image, mew_ehframe_address(&out->header));
		if (out->frames.size > 0)
			return true;
	}
	out->header.size = 0;
	return path != NULL && frames_by_section(image, path, out);
}

bool mew_image_at(uintptr_t address, struct mew_image *out)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)address;

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(ElfW(Phdr)))
		return false;
	*out = (struct mew_image){ 0, (const ElfW(Phdr) *)(address + header->e_phoff), header->e_phnum };
	for (size_t i = 0; i < out->nphdr; i++) {
		if (out->phdr[i].p_type == PT_LOAD) {
			out->bias = address - (out->phdr[i].p_vaddr - out->phdr[i].p_offset);
			return true;
		}
	}
	return false;
}
