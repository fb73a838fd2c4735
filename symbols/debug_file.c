/*
 * debug_file.c - looks for a separate debug file by build id and by .gnu_debuglink, as gdb documents it.
 * Layer L3, inside libmew_symbols. Any thread; opens files.
 */
#include "config.h"

#include "debug_file.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sections.h"
#include "servers.h"

#define DEBUG_ROOT "/usr/lib/debug"

bool mew_elf_has_dwarf(Elf *elf)
{
	struct mew_sections s = { .elf = elf };

	while (mew_sections_next(&s))
		if (s.header.sh_type != SHT_NOBITS &&
		    (strcmp(s.name, ".debug_info") == 0 || strcmp(s.name, ".zdebug_info") == 0))
			return true;
	return false;
}

/* CRC-32 of IEEE 802.3, reflected, as .gnu_debuglink stores it. */
static uint32_t checksum(const unsigned char *bytes, size_t n)
{
	uint32_t table[256], crc = UINT32_MAX;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320u : 0);
	}
	for (size_t i = 0; i < n; i++)
		crc = table[(crc ^ bytes[i]) & 0xff] ^ (crc >> 8);
	return ~crc;
}

static bool has_checksum(const struct mew_elf *f, uint32_t wanted)
{
	size_t n;
	const char *raw = elf_rawfile(f->elf, &n);

	return raw != NULL && checksum((const unsigned char *)raw, n) == wanted;
}

static bool is_same_build(const struct mew_elf *f, const struct mew_elf *of, const uint32_t *crc)
{
	if (of->build_id_bytes == 0)
		return crc != NULL && has_checksum(f, *crc);
	return f->build_id_bytes == of->build_id_bytes && memcmp(f->build_id, of->build_id, of->build_id_bytes) == 0;
}

static bool is_same_file(const struct mew_elf *a, const struct mew_elf *b)
{
	struct stat x, y;

	return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool try_file(struct mew_elf *f, const struct mew_elf *of, const char *path, const uint32_t *crc, char *why)
{
	if (access(path, F_OK) != 0 || !mew_elf_open(f, path, why))
		return false;
	if (is_same_file(f, of)) {
		mew_elf_close(f);
		return false;
	}
	if (!is_same_build(f, of, crc)) {
		(void)snprintf(why, MEW_WHY_MAX, "debug file %s belongs to another build of %s and was not used", path,
			       mew_elf_base_name(of->path));
		mew_elf_close(f);
		return false;
	}
	why[0] = '\0';
	return true;
}

bool mew_debug_file_at(struct mew_elf *f, const struct mew_elf *of, const char *path, char *why)
{
	return path[0] != '\0' && try_file(f, of, path, NULL, why);
}

static bool find_by_build_id(struct mew_elf *f, const struct mew_elf *of, char *why)
{
	char path[sizeof DEBUG_ROOT + sizeof "/.build-id//.debug" + 2 * MEW_BUILD_ID_MAX];
	int used;

	if (of->build_id_bytes < 2)
		return false;
	used = snprintf(path, sizeof path, DEBUG_ROOT "/.build-id/%02x/", of->build_id[0]);
	for (size_t i = 1; i < of->build_id_bytes && used > 0; i++)
		used += snprintf(path + used, sizeof path - (size_t)used, "%02x", of->build_id[i]);
	(void)snprintf(path + used, sizeof path - (size_t)used, ".debug");
	return try_file(f, of, path, NULL, why);
}

/* One place of a debug link: "<root><directory>/<sub><name>". */
static bool try_place(struct mew_elf *f, const struct mew_elf *of, const char *root, const char *directory,
		      const char *sub, char *why)
{
	char path[PATH_MAX];
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(of->elf, &crc);
	int n;

	if (name == NULL || name[0] == '\0' || strchr(name, '/') != NULL)
		return false;
	n = snprintf(path, sizeof path, "%s%s/%s%s", root, directory, sub, name);
	return n > 0 && (size_t)n < sizeof path && try_file(f, of, path, &crc, why);
}

static bool find_by_link(struct mew_elf *f, const struct mew_elf *of, const char *path, char *why)
{
	char directory[PATH_MAX];
	size_t n = (size_t)(mew_elf_base_name(path) - path);

	if (n == 0 || n >= sizeof directory)
		return false;
	memcpy(directory, path, n);
	directory[n - 1] = '\0';
	return try_place(f, of, "", directory, "", why) || try_place(f, of, "", directory, ".debug/", why) ||
	       try_place(f, of, DEBUG_ROOT, directory, "", why);
}

static bool find_by_links(struct mew_elf *f, const struct mew_elf *of, char *why)
{
	char *real;
	bool is_found;

	if (find_by_link(f, of, of->path, why))
		return true;
	/* the loader may have come by a symbolic link; debug files lie beside the real name */
	real = realpath(of->path, NULL);
	is_found = real != NULL && strcmp(real, of->path) != 0 && find_by_link(f, of, real, why);
	free(real);
	return is_found;
}

bool mew_debug_file_find(struct mew_elf *f, const struct mew_elf *of, const struct mew_servers *servers, char *why)
{
	if (find_by_build_id(f, of, why) || (of->elf != NULL && find_by_links(f, of, why)))
		return true;
	if (!mew_servers_ask(servers, mew_elf_base_name(of->path), of->build_id, of->build_id_bytes, f))
		return false;
	why[0] = '\0';
	return true;
}
