/*
 * elf_names.c - see elf_names.h.
 * Layer L0. What a file says is checked against its size before it is read.
 */
#include "config.h"

#include "elf_names.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "os.h"

#define DEBUG_FOLDER "/usr/lib/debug/.build-id"
#define DISTANCE_LENGTH 100u
#define NATIVE_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

/* --- the file ----------------------------------------------------------------------------------------------------- */

struct file {
	const unsigned char *bytes;
	size_t size;
};

static void close_file(struct file *f)
{
	mew_os_unmap((void *)(uintptr_t)f->bytes, f->size);
}

static bool open_file(struct file *f, const char *path)
{
	f->size = 0;
	f->bytes = mew_os_map_file(path, &f->size);
	if (f->bytes != NULL && f->size >= sizeof(ElfW(Ehdr)))
		return true;
	close_file(f);
	return false;
}

static bool has(const struct file *f, uint64_t offset, uint64_t bytes)
{
	return offset <= f->size && bytes <= f->size - offset;
}

static bool section(const struct file *f, const ElfW(Ehdr) *e, size_t i, ElfW(Shdr) *out)
{
	if (i >= e->e_shnum || e->e_shentsize != sizeof *out || !has(f, e->e_shoff, (uint64_t)e->e_shnum * sizeof *out))
		return false;
	memcpy(out, f->bytes + e->e_shoff + i * sizeof *out, sizeof *out);
	return out->sh_type == SHT_NOBITS || has(f, out->sh_offset, out->sh_size);
}

struct visit {
	mew_elf_function_fn *call;
	void *data;
	bool has_symtab, done;
};

static void visit_table(struct visit *v, const struct file *f, const ElfW(Shdr) *table, const ElfW(Shdr) *strings)
{
	const char *text = (const char *)f->bytes + strings->sh_offset;
	size_t n = table->sh_entsize == sizeof(ElfW(Sym)) ? table->sh_size / sizeof(ElfW(Sym)) : 0;

	if (strings->sh_size == 0 || text[strings->sh_size - 1] != '\0')
		return;
	for (size_t i = 0; i < n && !v->done; i++) {
		struct mew_elf_function found;
		ElfW(Sym) s;

		memcpy(&s, f->bytes + table->sh_offset + i * sizeof s, sizeof s);
		if ((ELF64_ST_TYPE(s.st_info) != STT_FUNC && ELF64_ST_TYPE(s.st_info) != STT_GNU_IFUNC) ||
		    s.st_shndx == SHN_UNDEF || s.st_value == 0 || s.st_name >= strings->sh_size)
			continue;
		found = (struct mew_elf_function){ text + s.st_name, s.st_value, s.st_size,
						   ELF64_ST_TYPE(s.st_info) == STT_GNU_IFUNC };
		v->done = !v->call(v->data, &found);
	}
}

static bool visit_file(struct visit *v, const char *path)
{
	ElfW(Shdr) table, strings;
	struct file f;
	ElfW(Ehdr) e;

	if (!open_file(&f, path))
		return false;
	memcpy(&e, f.bytes, sizeof e);
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != NATIVE_CLASS) {
		close_file(&f);
		return false;
	}
	for (size_t i = 0; section(&f, &e, i, &table) && !v->done; i++) {
		if ((table.sh_type != SHT_SYMTAB && table.sh_type != SHT_DYNSYM) ||
		    !section(&f, &e, table.sh_link, &strings) || strings.sh_type != SHT_STRTAB)
			continue;
		v->has_symtab = v->has_symtab || table.sh_type == SHT_SYMTAB;
		visit_table(v, &f, &table, &strings);
	}
	close_file(&f);
	return true;
}

bool mew_elf_functions(const char *path, const char *build_id, mew_elf_function_fn *call, void *data)
{
	struct visit v = { .call = call, .data = data };
	char debug[PATH_MAX];

	if (!visit_file(&v, path))
		return false;
	if (v.has_symtab || v.done || strlen(build_id) < 3)
		return true;
	if (snprintf(debug, sizeof debug, DEBUG_FOLDER "/%.2s/%s.debug", build_id, build_id + 2) < (int)sizeof debug)
		(void)visit_file(&v, debug);
	return true;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* "a::b" as "1a1b" behind `start`; false when it does not fit or is no such name. */
static bool mangle(char *out, size_t size, const char *start, const char *text)
{
	size_t used = (size_t)snprintf(out, size, "%s", start);

	while (*text != '\0') {
		const char *end = strstr(text, "::");
		size_t n = end != NULL ? (size_t)(end - text) : strlen(text);

		if (n == 0 || used + n + 8 > size)
			return false;
		used += (size_t)snprintf(out + used, size - used, "%zu%.*s", n, (int)n, text);
		text = end != NULL ? end + 2 : text + n;
	}
	return true;
}

bool mew_name_prepare(struct mew_wanted_name *w, const char *text)
{
	static const struct {
		const char *start;
		bool is_nested, alone, within; /* for a name that stands alone; for one within others */
	} forms[] = {
		{ "_Z", false, true, false },
		{ "_ZL", false, true, false },
		{ "_ZN12_GLOBAL__N_1", true, true, true },
		{ "_ZN", true, false, true },
		{ "_ZNK", true, false, true },
		{ "_ZNR", true, false, true },
	};
	bool alone = strstr(text, "::") == NULL;

	memset(w, 0, sizeof *w);
	if (text[0] == '\0' || strlen(text) >= sizeof w->text)
		return false;
	(void)strcpy(w->text, text);
	for (size_t i = 0; i < MEW_COUNTOF(forms); i++) {
		w->mangled[i].is_nested = forms[i].is_nested;
		if (!(alone ? forms[i].alone : forms[i].within) ||
		    !mangle(w->mangled[i].start, sizeof w->mangled[i].start, forms[i].start, text))
			w->mangled[i].start[0] = '\0';
	}
	return true;
}

static bool begins(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* What may stand behind the name: a version, or what the compiler adds to a copy that is called in its place. */
static bool is_tail(const char *tail)
{
	return *tail == '\0' || *tail == '@' || begins(tail, ".constprop.") || begins(tail, ".isra.") ||
	       begins(tail, ".lto_priv.") || begins(tail, ".llvm.");
}

/* Parts that were split off are not entered from the start. */
static bool is_part(const char *tail)
{
	const char *dot = strchr(tail, '.');

	return dot != NULL && (strstr(dot, ".cold") != NULL || strstr(dot, ".part.") != NULL);
}

bool mew_name_is(const struct mew_wanted_name *w, const char *symbol)
{
	if (begins(symbol, w->text))
		return is_tail(symbol + strlen(w->text)) && !is_part(symbol + strlen(w->text));
	if (symbol[0] != '_' || symbol[1] != 'Z')
		return false;
	for (size_t i = 0; i < MEW_COUNTOF(w->mangled); i++) {
		const char *start = w->mangled[i].start, *tail = symbol + strlen(start);

		if (start[0] == '\0' || !begins(symbol, start) || is_part(tail))
			continue;
		/* Rust's names end in a hash, as if it were one more name */
		if (!w->mangled[i].is_nested || *tail == 'E' || *tail == 'I' || *tail == 'B' || begins(tail, "17h"))
			return true;
	}
	return false;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

unsigned mew_name_distance(const char *a, const char *b, unsigned most)
{
	size_t na = strlen(a), nb = strcspn(b, "@");
	unsigned row[DISTANCE_LENGTH + 1];

	if (na > DISTANCE_LENGTH || nb > DISTANCE_LENGTH || (na > nb ? na - nb : nb - na) > most)
		return most + 1;
	for (size_t k = 0; k <= nb; k++)
		row[k] = (unsigned)k;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= nb; k++) {
			unsigned swap = diagonal + (lower(a[i - 1]) != lower(b[k - 1])), add = row[k - 1] + 1,
				drop = row[k] + 1;

			diagonal = row[k];
			row[k] = swap < add ? (swap < drop ? swap : drop) : add < drop ? add : drop;
		}
	}
	return row[nb] <= most ? row[nb] : most + 1;
}
