/*
 * record_target.c - see record_target.h.
 * Layer L4. The command's thread; reads the first bytes of the file and its dynamic symbols.
 */
#include "config.h"

#include "record_target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define INTERPRETERS 4 /* a script of a script, as deep as the kernel goes */

/* --- finding ------------------------------------------------------------------------------------------------------ */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

int mew_record_find(const char *command, char *out, size_t size, struct mew_error *err)
{
	const char *list = getenv("PATH"), *end;

	if (strchr(command, '/') != NULL) {
		(void)snprintf(out, size, "%s", command);
		if (is_program(out))
			return MEW_OK;
		if (access(out, F_OK) == 0)
			errno = EACCES;
		return mew_error_errno(err, MEW_E_IO, "%.200s cannot be run", command);
	}
	for (list = list != NULL ? list : "/bin:/usr/bin"; list != NULL; list = *end != '\0' ? end + 1 : NULL) {
		end = strchrnul(list, ':');
		(void)snprintf(out, size, "%.*s%s%s", (int)(end - list), list, end > list ? "/" : "./", command);
		if (is_program(out))
			return MEW_OK;
	}
	errno = ENOENT;
	return mew_error_errno(err, MEW_E_IO, "%.200s is not found in PATH", command);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

struct file {
	const char *path;
	const unsigned char *bytes;
	size_t size;
};

static bool has_privileges(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return false;
	return ((st.st_mode & S_ISUID) != 0 && st.st_uid != geteuid()) ||
	       ((st.st_mode & S_ISGID) != 0 && st.st_gid != getegid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

static const void *part(const struct file *f, uint64_t offset, uint64_t bytes)
{
	return offset <= f->size && bytes <= f->size - offset ? f->bytes + offset : NULL;
}

/* Does one of its dynamic strings say that it brings a sanitizer? */
static const char *sanitizer_of(const struct file *f, const ElfW(Phdr) *dynamic)
{
	static const char *const names[][2] = { { "__asan_init", "AddressSanitizer" }, { "__tsan_init", "ThreadSanitizer" },
						{ "__msan_init", "MemorySanitizer" }, { "__hwasan_init", "HWAddressSanitizer" } };

	if (part(f, dynamic->p_offset, dynamic->p_filesz) == NULL)
		return NULL;
	for (size_t i = 0; i < MEW_COUNTOF(names); i++)
		if (memmem(f->bytes, f->size, names[i][0], strlen(names[i][0]) + 1) != NULL)
			return names[i][1];
	return NULL;
}

/* Libraries of one C library cannot be loaded beside another. */
static bool is_musl(const struct file *f, const ElfW(Phdr) *loader)
{
	const char *path = part(f, loader->p_offset, loader->p_filesz);

	return path != NULL && memmem(path, loader->p_filesz, "/ld-musl-", 9) != NULL;
}

static int check_headers(const struct file *f, const ElfW(Ehdr) *e, struct mew_error *err)
{
	const ElfW(Phdr) *ph = part(f, e->e_phoff, (uint64_t)e->e_phnum * sizeof *ph), *dynamic = NULL, *loader = NULL;
	const char *name;

	for (size_t i = 0; ph != NULL && i < e->e_phnum; i++) {
		if (ph[i].p_type == PT_INTERP)
			loader = &ph[i];
		if (ph[i].p_type == PT_DYNAMIC)
			dynamic = &ph[i];
	}
	if (loader == NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%.200s is linked statically, so nothing can be loaded into it: link it without -static",
				     f->path);
	if (is_musl(f, loader))
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%.200s is built for the C library musl, and what mew would load into it for glibc: record a build "
				     "for glibc", f->path);
	name = dynamic != NULL ? sanitizer_of(f, dynamic) : NULL;
	if (name != NULL)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%.200s is built with %s, which must come first itself: record a build without -fsanitize",
				     f->path, name);
	return MEW_OK;
}

static int check_elf(const struct file *f, struct mew_error *err)
{
	static const ElfW(Ehdr) *self;
	const ElfW(Ehdr) *e = part(f, 0, sizeof *e);
	extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

	self = &__ehdr_start;
	if (e == NULL || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0)
		return mew_error_set(err, MEW_E_UNSUPPORTED, "%.200s is neither a program of this system nor a script",
				     f->path);
	if (e->e_ident[EI_CLASS] != self->e_ident[EI_CLASS] || e->e_machine != self->e_machine)
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%.200s is a program for another machine than mew: use a mew built for that one", f->path);
	return check_headers(f, e, err);
}

/* "#!/usr/bin/env python3" leads to env, which becomes what it finds. Returns false for what is no script. */
static bool interpreter_of(const struct file *f, char *out, size_t size)
{
	size_t n = f->size < PATH_MAX ? f->size : PATH_MAX - 1, from = 2, to;

	if (f->size < 3 || memcmp(f->bytes, "#!", 2) != 0)
		return false;
	while (from < n && (f->bytes[from] == ' ' || f->bytes[from] == '\t'))
		from++;
	for (to = from; to < n && f->bytes[to] > ' '; to++)
		;
	(void)snprintf(out, size, "%.*s", (int)(to - from), (const char *)f->bytes + from);
	return true;
}

static int check_file(const struct file *f, char *next, size_t size, struct mew_error *err)
{
	next[0] = '\0';
	if (interpreter_of(f, next, size))
		return MEW_OK;
	if (has_privileges(f->path))
		return mew_error_set(err, MEW_E_UNSUPPORTED,
				     "%.200s runs with the privileges of its file (setuid, setgid or capabilities), and nothing "
				     "is preloaded into it: record a copy without them", f->path);
	return check_elf(f, err);
}

int mew_record_check(const char *path, struct mew_error *err)
{
	char current[PATH_MAX], next[PATH_MAX];
	int status = MEW_OK;

	(void)snprintf(current, sizeof current, "%s", path);
	for (int i = 0; i < INTERPRETERS; i++) {
		int fd = open(current, O_RDONLY | O_CLOEXEC);
		struct file f = { .path = current };
		struct stat st;
		void *bytes;

		if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
			if (fd >= 0)
				(void)close(fd);
			/* without the right to read it, it can still be run: then the run shows */
			return MEW_OK;
		}
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		(void)close(fd);
		if (bytes == MAP_FAILED)
			return mew_error_errno(err, MEW_E_IO, "%.200s cannot be read", current);
		f.bytes = bytes;
		f.size = (size_t)st.st_size;
		status = check_file(&f, next, sizeof next, err);
		(void)munmap(bytes, f.size);
		if (status != MEW_OK || next[0] == '\0')
			return status;
		(void)snprintf(current, sizeof current, "%s", next);
	}
	return status;
}
