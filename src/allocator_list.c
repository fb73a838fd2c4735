/*
 * allocator_list.c - see allocator_list.h. Nothing is loaded to look for it: an allocator changes the process it is in.
 * Layer L4. The command's thread.
 */
#include "config.h"

#include "allocator_list.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 1024
#define NAMES "system, jemalloc, tcmalloc, mimalloc"

static const struct known {
	const char *name, *package;
	const char *files[3]; /* the first that is here */
} known[] = {
	{ "jemalloc", "libjemalloc2", { "libjemalloc.so.2" } },
	{ "tcmalloc", "libtcmalloc-minimal4 or libgoogle-perftools4",
	  { "libtcmalloc_minimal.so.4", "libtcmalloc.so.4" } },
	{ "mimalloc", "libmimalloc2.0", { "libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so" } },
};

/* The file of this process's C library, which is that of the programs too. */
static const char *c_library(void)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0 ? info.dli_fname : NULL;
}

static bool is_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, R_OK) == 0;
}

static char *in_folder(const char *folder, size_t length, const char *file)
{
	char path[PATH_BYTES];
	int n = snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, file);

	return length > 0 && n > 0 && (size_t)n < sizeof path && is_file(path) ? realpath(path, NULL) : NULL;
}

/* Where the loader looks, in its order: what the environment says, the C library's folder, the common ones. */
static char *find_file(const char *file)
{
	static const char *const folders[] = { "/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib" };
	const char *at = getenv("LD_LIBRARY_PATH"), *libc = c_library();
	char *found = NULL;

	while (at != NULL && *at != '\0' && found == NULL) {
		size_t length = strcspn(at, ":");

		found = in_folder(at, length, file);
		at += length + (at[length] == ':');
	}
	if (found == NULL && libc != NULL && strrchr(libc, '/') != NULL)
		found = in_folder(libc, (size_t)(strrchr(libc, '/') - libc), file);
	for (size_t i = 0; i < MEW_COUNTOF(folders) && found == NULL; i++)
		found = in_folder(folders[i], strlen(folders[i]), file);
	return found;
}

static int find_known(const char *name, char **path, struct mew_error *err)
{
	for (size_t i = 0; i < MEW_COUNTOF(known); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		for (size_t k = 0; k < MEW_COUNTOF(known[i].files) && known[i].files[k] != NULL && *path == NULL; k++)
			*path = find_file(known[i].files[k]);
		if (*path != NULL)
			return MEW_OK;
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%s (%s) is not installed: install Debian's package %s, or give the path of the "
				     "file", name, known[i].files[0], known[i].package);
	}
	return mew_error_set(err, MEW_E_INVALID, "\"%s\" is none of " NAMES ", nor a path with a slash", name);
}

static int find_path(const char *name, char **path, struct mew_error *err)
{
	if (strcmp(name, "system") == 0) {
		*path = c_library() != NULL ? realpath(c_library(), NULL) : NULL;
		return *path != NULL ? MEW_OK :
		       mew_error_set(err, MEW_E_UNSUPPORTED, "the file of the C library is not known here");
	}
	if (strchr(name, '/') == NULL)
		return find_known(name, path, err);
	if (!is_file(name))
		return mew_error_set(err, MEW_E_INVALID, "%s is not a file that can be read", name);
	*path = realpath(name, NULL);
	return *path != NULL ? MEW_OK : mew_error_errno(err, MEW_E_INVALID, "%s", name);
}

static int add(struct mew_allocators *a, char *name, struct mew_error *err)
{
	struct mew_named_allocator *one = &a->list[a->n];
	const char *slash = strrchr(name, '/');
	int status;

	if (a->n == MEW_ALLOCATORS_MAX)
		return mew_error_set(err, MEW_E_INVALID, "more than %d allocators; run mew again for the others",
				     MEW_ALLOCATORS_MAX);
	if (name[0] == '\0')
		return mew_error_set(err, MEW_E_INVALID,
				     "a name is empty; give some of " NAMES ", separated by commas");
	status = find_path(name, &one->path, err);
	if (status != MEW_OK || one->path == NULL)
		return status;
	a->n++;
	one->name = strdup(slash != NULL ? slash + 1 : name);
	if (one->name == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the allocators");
	if (strpbrk(one->path, ": ") != NULL)
		return mew_error_set(err, MEW_E_INVALID,
				     "%s: a path with a colon or a blank cannot be preloaded; copy the file",
				     one->path);
	for (size_t i = 0; i + 1 < a->n; i++)
		if (strcmp(a->list[i].name, one->name) == 0)
			return mew_error_set(err, MEW_E_INVALID, "%s is named twice", one->name);
	return MEW_OK;
}

int mew_allocators_find(struct mew_allocators *a, const char *list, struct mew_error *err)
{
	char *copy = strdup(list), *rest = copy, *name;
	int status = MEW_OK;

	*a = (struct mew_allocators){ .n = 0 };
	if (copy == NULL)
		return mew_error_set(err, MEW_E_NOMEM, "no memory for the allocators");
	while (status == MEW_OK && (name = strsep(&rest, ",")) != NULL)
		status = add(a, name, err);
	free(copy);
	return status;
}

void mew_allocators_fini(struct mew_allocators *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->list[i].name);
		free(a->list[i].path);
	}
	a->n = 0;
}
