/*
 * shared_file.c - see shared_file.h.
 * Layer L3, inside libmew_symbols. Any thread; opens files.
 */
#include "config.h"

#include "shared_file.h"

#include <elfutils/libdwelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "debug_file.h"
#include "servers.h"

/* The name counts from where the file itself lies, not from a link to it. */
static bool place_of(const struct mew_elf *of, const char *name, char path[PATH_MAX])
{
	char *real = name[0] == '/' || of->path == NULL ? NULL : realpath(of->path, NULL);
	int folder = real == NULL ? 0 : (int)(mew_elf_base_name(real) - real);
	int n = snprintf(path, PATH_MAX, "%.*s%s", folder, real == NULL ? "" : real, name);

	free(real);
	return n > 0 && n < PATH_MAX;
}

enum mew_shared mew_shared_file_find(struct mew_elf *f, const struct mew_elf *of, Dwarf *dwarf,
				     const struct mew_servers *servers, char *why)
{
	struct mew_elf wanted = { .fd = -1 };
	const void *id = NULL;
	const char *name = NULL;
	ssize_t n = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
	char path[PATH_MAX], refused[MEW_WHY_MAX] = "";

	if (n <= 0 || (size_t)n > sizeof wanted.build_id || name == NULL)
		return MEW_SHARED_NONE;
	memcpy(wanted.build_id, id, (size_t)n);
	wanted.build_id_bytes = (size_t)n;
	if (!place_of(of, name, path))
		path[0] = '\0';
	wanted.path = path;
	if (mew_debug_file_at(f, &wanted, path, refused) || mew_debug_file_find(f, &wanted, servers, refused))
		return MEW_SHARED_OPEN;
	if (refused[0] != '\0') {
		(void)snprintf(why, MEW_WHY_MAX,
			       "%s is another build than the one that %s shares names with (dwz): its debug "
			       "information was not used", mew_elf_base_name(name), mew_elf_base_name(of->path));
		return MEW_SHARED_REFUSED;
	}
	(void)snprintf(why, MEW_WHY_MAX,
		       "%s, which %s shares names with (dwz), was not found: names and files may be missing",
		       mew_elf_base_name(name), mew_elf_base_name(of->path));
	return MEW_SHARED_MISSING;
}
