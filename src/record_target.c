/*
 * record_target.c - see record_target.h.
 * Layer L4. Any thread, also in a child of vfork; reads the first bytes of the file and its dynamic strings.
 */
#include "config.h"

#include "record_target.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "os.h"

#define INTERPRETERS 4 /* a script of a script, as deep as the kernel goes */

/* Append what fits before `end`, with its zero. Returns the new end of the text. printf needs 2 KiB of the stack. */
static char *append(char *to, const char *end, const char *text, size_t bytes)
{
	size_t fits = (size_t)(end - to) - 1;

	bytes = bytes < fits ? bytes : fits;
	memcpy(to, text, bytes);
	to[bytes] = '\0';
	return to + bytes;
}

/* --- finding ------------------------------------------------------------------------------------------------------ */

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

bool mew_record_path(const char *command, char *out, size_t size)
{
	const char *list = getenv("PATH"), *end;
	char *to;

	if (strchr(command, '/') != NULL) {
		(void)append(out, out + size, command, strlen(command));
		return is_program(out);
	}
	for (list = list != NULL ? list : "/bin:/usr/bin"; list != NULL; list = *end != '\0' ? end + 1 : NULL) {
		end = strchrnul(list, ':');
		to = append(out, out + size, end > list ? list : ".", end > list ? (size_t)(end - list) : 1);
		to = append(to, out + size, "/", 1);
		(void)append(to, out + size, command, strlen(command));
		if (is_program(out))
			return true;
	}
	return false;
}

int mew_record_find(const char *command, char *out, size_t size, struct mew_error *err)
{
	if (mew_record_path(command, out, size))
		return MEW_OK;
	if (strchr(command, '/') != NULL) {
		if (access(out, F_OK) == 0)
			errno = EACCES;
		return mew_error_errno(err, MEW_E_IO, "%.200s cannot be run", command);
	}
	errno = ENOENT;
	return mew_error_errno(err, MEW_E_IO, "%.200s is not found in PATH", command);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

struct file {
	const char *path;
	const unsigned char *bytes;
	size_t size;
	const char *why; /* returned: it cannot be recorded; a sentence whose subject is the path */
	bool breaks;     /* returned: with our libraries it would not start, or complain */
};

static int refuse(struct file *f, int status, const char *why)
{
	f->why = why;
	return status;
}

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

/* Does it define the function, or need it? One that it would call where it is there, as mew does, is neither. */
static bool has_function(const struct file *f, const ElfW(Shdr) *table, const ElfW(Shdr) *strings, const char *name)
{
	const ElfW(Sym) *symbols = part(f, table->sh_offset, table->sh_size);
	const char *texts = part(f, strings->sh_offset, strings->sh_size);
	size_t n = strlen(name) + 1;

	if (symbols == NULL || texts == NULL || memmem(texts, strings->sh_size, name, n) == NULL)
		return false;
	for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
		const ElfW(Sym) *s = &symbols[i];
		bool is_optional = s->st_shndx == SHN_UNDEF && ELF64_ST_BIND(s->st_info) == STB_WEAK;

		if (!is_optional && s->st_name < strings->sh_size && n <= strings->sh_size - s->st_name &&
		    memcmp(texts + s->st_name, name, n) == 0)
			return true;
	}
	return false;
}

#define BUILT_WITH(name) "is built with " name ", which must come first itself: use a build without -fsanitize"

/* Do its dynamic symbols say that it brings a sanitizer? Then the sentence. */
static const char *sanitizer_of(const struct file *f, const ElfW(Ehdr) *e)
{
	static const char *const names[][2] = { { "__asan_init", BUILT_WITH("AddressSanitizer") },
						{ "__tsan_init", BUILT_WITH("ThreadSanitizer") },
						{ "__msan_init", BUILT_WITH("MemorySanitizer") },
						{ "__hwasan_init", BUILT_WITH("HWAddressSanitizer") } };
	const ElfW(Shdr) *sections = part(f, e->e_shoff, (uint64_t)e->e_shnum * sizeof *sections);

	for (size_t i = 0; sections != NULL && i < e->e_shnum; i++)
		for (size_t k = 0; sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < e->e_shnum &&
		     k < MEW_COUNTOF(names); k++)
			if (has_function(f, &sections[i], &sections[sections[i].sh_link], names[k][0]))
				return names[k][1];
	return NULL;
}

/* Libraries of one C library cannot be loaded beside another. */
static bool is_musl(const struct file *f, const ElfW(Phdr) *loader)
{
	const char *path = part(f, loader->p_offset, loader->p_filesz);

	return path != NULL && memmem(path, loader->p_filesz, "/ld-musl-", 9) != NULL;
}

static int check_headers(struct file *f, const ElfW(Ehdr) *e)
{
	const ElfW(Phdr) *ph = part(f, e->e_phoff, (uint64_t)e->e_phnum * sizeof *ph), *loader = NULL;
	const char *sanitizer;

	for (size_t i = 0; ph != NULL && i < e->e_phnum; i++)
		if (ph[i].p_type == PT_INTERP)
			loader = &ph[i];
	if (loader == NULL)
		return refuse(f, MEW_E_UNSUPPORTED, "is linked statically, so nothing can be loaded into it: link it "
						    "without -static");
	f->breaks = true;
	if (is_musl(f, loader))
		return refuse(f, MEW_E_UNSUPPORTED, "is built for the C library musl, and what mew would load into it "
						    "for glibc: use a build for glibc");
	sanitizer = sanitizer_of(f, e);
	if (sanitizer != NULL)
		return refuse(f, MEW_E_UNSUPPORTED, sanitizer);
	f->breaks = false;
	return MEW_OK;
}

static int check_elf(struct file *f)
{
	static const ElfW(Ehdr) *self;
	const ElfW(Ehdr) *e = part(f, 0, sizeof *e);
	extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

	self = &__ehdr_start;
	if (e == NULL || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0)
		return refuse(f, MEW_E_INVALID, "is neither a program of this system nor a script");
	f->breaks = e->e_ident[EI_CLASS] != self->e_ident[EI_CLASS] || e->e_machine != self->e_machine;
	if (f->breaks)
		return refuse(f, MEW_E_UNSUPPORTED, "is a program for another machine than mew: use a mew built for "
						    "that one");
	return check_headers(f, e);
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
	(void)append(out, out + size, (const char *)f->bytes + from, to - from);
	return true;
}

static int check_file(struct file *f, char *next, size_t size)
{
	next[0] = '\0';
	if (interpreter_of(f, next, size))
		return MEW_OK;
	if (has_privileges(f->path))
		return refuse(f, MEW_E_UNSUPPORTED, "runs with the privileges of its file (setuid, setgid or "
						    "capabilities), and nothing is preloaded into it: use a copy "
						    "without them");
	return check_elf(f);
}

/* False where it cannot be read: then the run shows. */
static bool open_file(struct file *f, const char *path)
{
	*f = (struct file){ .path = path };
	f->bytes = mew_os_map_file(path, &f->size);
	return f->bytes != NULL;
}

int mew_record_look(const char *path, struct mew_record_look *look)
{
	int status = MEW_OK;

	look->why = NULL;
	look->breaks = false;
	(void)append(look->path, look->path + sizeof look->path, path, strlen(path));
	for (int i = 0; i < INTERPRETERS && status == MEW_OK; i++) {
		struct file f;

		if (!open_file(&f, look->path))
			break;
		status = check_file(&f, look->next, sizeof look->next);
		look->why = f.why;
		look->breaks = f.breaks;
		mew_os_unmap((void *)(uintptr_t)f.bytes, f.size);
		if (look->next[0] == '\0')
			break;
		memcpy(look->path, look->next, sizeof look->path);
	}
	return status;
}

void mew_record_say(const char *path, const char *why, char *out, size_t size)
{
	size_t bytes = strlen(path), most = size - strlen(why) - 2;
	const char *end = out + size;

	if (bytes > most) {
		out = append(out, end, "...", 3);
		path += bytes - (most - 3);
	}
	out = append(out, end, path, strlen(path));
	out = append(out, end, " ", 1);
	(void)append(out, end, why, strlen(why));
}

int mew_record_check(const char *path, struct mew_error *err)
{
	struct mew_record_look look;
	int status = mew_record_look(path, &look);
	char text[sizeof err->text];

	if (status == MEW_OK)
		return MEW_OK;
	mew_record_say(look.path, look.why, text, sizeof text);
	return mew_error_set(err, status, "%s", text);
}
