/*
 * demangle.c - asks the C++ runtime's own demangler, linked where configure found it, else the one the process has.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A longer name is shown as it is: the demangler's recursion grows with it. */
#define LONGEST 16384

#define RUST_HASH 19 /* "::h" and 16 digits */

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *bytes, int *status);

#ifdef HAVE_CXA_DEMANGLE
extern demangle_fn __cxa_demangle; /* the Itanium C++ ABI names it; <cxxabi.h> declares it for C++ only */

static demangle_fn *runtime(void)
{
	return __cxa_demangle;
}
#else
static demangle_fn *runtime(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	demangle_fn *function;

	memcpy(&function, &symbol, sizeof function);
	return function;
}
#endif

bool mew_is_mangled(const char *name)
{
	return name[0] == '_' && name[1] == 'Z';
}

/* Rust's older names are C++ ones of a path that ends in a hash: "core::fmt::write::h0123456789abcdef". */
static bool cut_rust_hash(char *name)
{
	size_t n = strlen(name);

	if (n < RUST_HASH || memcmp(name + n - RUST_HASH, "::h", 3) != 0 ||
	    strspn(name + n - RUST_HASH + 3, "0123456789abcdef") != RUST_HASH - 3)
		return false;
	name[n - RUST_HASH] = '\0';
	return true;
}

/* They spell what may not stand in a path of C++. Shortens the name in place. */
static void spell_rust(char *name)
{
	static const struct {
		const char *from, *to;
	} spellings[] = { { "$LT$", "<" },   { "$GT$", ">" },	{ "$LP$", "(" },   { "$RP$", ")" },   { "$C$", "," },
			  { "$RF$", "&" },   { "$BP$", "*" },	{ "$SP$", "@" },   { "$u20$", " " },  { "$u27$", "'" },
			  { "$u5b$", "[" },  { "$u5d$", "]" },	{ "$u7b$", "{" },  { "$u7d$", "}" },  { "$u3b$", ";" },
			  { "$u2b$", "+" },  { "$u22$", "\"" }, { "..", "::" } };
	const char *in = name;
	char *out = name;

	while (*in != '\0') {
		size_t n = 0;

		/* a part that begins with a spelling has a "_" in front */
		if (in[0] == '_' && in[1] == '$' && (in == name || in[-1] == ':'))
			in++;
		for (size_t i = 0; n == 0 && i < sizeof spellings / sizeof spellings[0]; i++) {
			if (strncmp(in, spellings[i].from, strlen(spellings[i].from)) != 0)
				continue;
			n = strlen(spellings[i].from);
			memcpy(out, spellings[i].to, strlen(spellings[i].to));
			out += strlen(spellings[i].to);
		}
		if (n == 0)
			*out++ = *in;
		in += n > 0 ? n : 1;
	}
	*out = '\0';
}

char *mew_demangle(const char *name, bool keep_clone)
{
	size_t n = strcspn(name, "@");
	char *copy, *readable = NULL;
	int status;

	if (n == 0)
		n = strlen(name);
	if (!keep_clone && mew_is_mangled(name) && memchr(name, '.', n) != NULL)
		n = strcspn(name, ".");
	copy = strndup(name, n);
	if (copy == NULL || !mew_is_mangled(copy) || n > LONGEST || runtime() == NULL)
		return copy;
	readable = runtime()(copy, NULL, NULL, &status);
	if (readable == NULL)
		return copy;
	free(copy);
	if (cut_rust_hash(readable))
		spell_rust(readable);
	return readable;
}
