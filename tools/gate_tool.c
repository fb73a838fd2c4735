/*
 * gate_tool.c - see gate_tool.h.
 * Layer L6. The command's thread.
 */
#include "config.h"

#include "gate_tool.h"

#include "error.h"
#include "fnv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIM_BYTES 4096u
#define MOST_SHIMS 8

/* The first word into `word`; false where a shell would do more than take it as it is. */
static bool first_word(const char *line, char *word, size_t size)
{
	const char *from = line + strspn(line, " \t"), *end;
	size_t n;

	if (*from == '"' || *from == '\'') {
		end = strchr(from + 1, *from);
		from++;
	} else {
		end = from + strcspn(from, " \t");
	}
	n = end != NULL ? (size_t)(end - from) : size;
	if (n == 0 || n >= size)
		return false;
	memcpy(word, from, n);
	word[n] = '\0';
	return strpbrk(word, "=$;&|<>(){}`\\\"'*?\n") == NULL;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *word, char *out, size_t size)
{
	const char *path = getenv("PATH");

	if (strchr(word, '/') != NULL) {
		(void)snprintf(out, size, "%s", word);
		return is_program(out);
	}
	while (path != NULL && *path != '\0') {
		size_t n = strcspn(path, ":");

		(void)snprintf(out, size, "%.*s/%s", n == 0 ? 1 : (int)n, n == 0 ? "." : path, word);
		if (is_program(out))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* The file that a shim hands over to; false: it is no shim. */
static bool behind_shim(const char *path, char *out, size_t size)
{
	char text[SHIM_BYTES + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, SHIM_BYTES) : -1;
	const char *line;

	if (fd >= 0)
		(void)close(fd);
	if (n < 3 || n == (ssize_t)SHIM_BYTES || text[0] != '#' || text[1] != '!')
		return false;
	text[n] = '\0';
	line = strstr(text, "\nexec ");
	if (line == NULL || !first_word(line + 6, out, size) || out[0] != '/')
		return false;
	line += 6;
	n = (ssize_t)strcspn(line, "\n");
	/* all arguments and nothing else behind it */
	return n > 5 && strncmp(line + n - 5, " \"$@\"", 5) == 0 && is_program(out);
}

#define MOST_NOTES 4096u
#define MOST_SEGMENTS 64u

/* Of a program of this machine, by its notes; "" for a script and for one that was linked without. */
static void read_build_id(int fd, char text[MEW_BUILD_ID_TEXT])
{
	ElfW(Ehdr) header;
	ElfW(Phdr) segment;
	char notes[MOST_NOTES];

	text[0] = '\0';
	if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    header.e_phentsize != sizeof segment)
		return;
	for (unsigned i = 0; i < header.e_phnum && i < MOST_SEGMENTS; i++) {
		if (pread(fd, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) !=
		    (ssize_t)sizeof segment)
			return;
		if (segment.p_type != PT_NOTE || segment.p_filesz > sizeof notes ||
		    pread(fd, notes, segment.p_filesz, (off_t)segment.p_offset) != (ssize_t)segment.p_filesz)
			continue;
		if (mew_build_id_of_notes(notes, segment.p_filesz, text))
			return;
	}
}

static int hash_file(struct mew_tool *tool, struct mew_error *err)
{
	int fd = open(tool->path, O_RDONLY | O_CLOEXEC);
	unsigned char block[16384];
	ssize_t n = -1;

	tool->hash = MEW_FNV_START;
	if (fd >= 0 && fstat(fd, &tool->seen) == 0)
		while ((n = read(fd, block, sizeof block)) > 0)
			tool->hash = mew_fnv_bytes(tool->hash, block, (size_t)n);
	if (n == 0)
		read_build_id(fd, tool->build_id);
	if (fd >= 0)
		(void)close(fd);
	if (n != 0)
		return mew_error_errno(err, MEW_E_IO, "%.200s cannot be read, so it cannot be told from another",
				       tool->path);
	tool->bytes = (uint64_t)tool->seen.st_size;
	return MEW_OK;
}

static int resolve(const char *line, char out[PATH_MAX], struct mew_error *err)
{
	char word[PATH_MAX / 4], found[PATH_MAX];

	if (!first_word(line, word, sizeof word))
		return mew_error_set(err, MEW_E_INVALID,
				     "\"%.80s\" must begin with a program: give variables by \"env\" in the phases "
				     "file, and anything longer as a script", line);
	if (!find_in_path(word, found, sizeof found))
		return mew_error_set(err, MEW_E_INVALID,
				     "%.120s is no program that can be run: give its path, or put it into PATH", word);
	for (int i = 0; i <= MOST_SHIMS; i++) {
		if (realpath(found, out) == NULL)
			return mew_error_errno(err, MEW_E_IO, "%.120s cannot be followed", found);
		if (!behind_shim(out, found, sizeof found))
			return MEW_OK;
	}
	return mew_error_set(err, MEW_E_INVALID,
			     "%.120s leads from one shim to the next without an end: name the real file", word);
}

int mew_tool_find(const char *line, struct mew_tool *out, struct mew_error *err)
{
	int status = resolve(line, out->path, err);

	return status == MEW_OK ? hash_file(out, err) : status;
}

int mew_tool_file(const char *path, struct mew_tool *out, struct mew_error *err)
{
	if (realpath(path, out->path) == NULL)
		return mew_error_errno(err, MEW_E_IO, "%.120s cannot be followed", path);
	return hash_file(out, err);
}

int mew_tool_check(const char *line, struct mew_tool *tool, struct mew_error *err)
{
	struct mew_tool now = { .bytes = 0 };
	struct stat st;
	int status = resolve(line, now.path, err);

	if (status != MEW_OK)
		return status;
	if (strcmp(now.path, tool->path) != 0)
		return mew_error_set(err, MEW_E_INVALID, "was %.80s and is %.80s now", tool->path, now.path);
	if (stat(now.path, &st) == 0 && st.st_ino == tool->seen.st_ino && st.st_dev == tool->seen.st_dev &&
	    st.st_size == tool->seen.st_size && st.st_mtim.tv_sec == tool->seen.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == tool->seen.st_mtim.tv_nsec && st.st_ctim.tv_sec == tool->seen.st_ctim.tv_sec &&
	    st.st_ctim.tv_nsec == tool->seen.st_ctim.tv_nsec)
		return MEW_OK;
	status = hash_file(&now, err);
	if (status != MEW_OK)
		return status;
	if (now.bytes != tool->bytes || now.hash != tool->hash)
		return mew_error_set(err, MEW_E_INVALID, "%.120s was replaced while it was measured", tool->path);
	tool->seen = now.seen;
	return MEW_OK;
}
