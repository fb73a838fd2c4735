/*
 * demangle.c - readable names by libiberty, which knows Rust; without it by the C++ runtime's own demangler.
 * Layer L3, inside libmew_symbols. Any thread; allocates.
 */
#include "config.h"

#include "demangle.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* A longer name is shown as it is: the demangler's recursion grows with it. */
#define LONGEST 16384

bool mew_is_mangled(const char *name)
{
	if (name[0] != '_')
		return false;
	return name[1] == 'Z' || (name[1] == 'R' && name[2] >= 'A' && name[2] <= 'Z');
}

#ifdef HAVE_LIBIBERTY
/*
 * A name may refer to its own parts, each of which doubles what comes out: what is longer than this is not waited for.
 */
#define LONGEST_READABLE 65536

#define WITH_PARAMETERS 1 /* DMGL_PARAMS */
#define WITH_TYPES 16     /* DMGL_TYPES */

/*
 * Its header declares functions of libc in its own way, so these stand here. Neither keeps memory between two pieces.
 */
typedef void piece_fn(const char *piece, size_t bytes, void *data);
extern int cplus_demangle_v3_callback(const char *mangled, int options, piece_fn *callback, void *data);
extern int rust_demangle_callback(const char *mangled, int options, piece_fn *callback, void *data);

struct readable { /* on the stack: names come in pieces, and growing each on the heap took a tenth of all the time */
	jmp_buf give_up; /* the only way out of a demangler */
	size_t n;
	char text[LONGEST_READABLE];
};

static void add_piece(const char *piece, size_t bytes, void *data)
{
	struct readable *r = data;

	if (bytes > sizeof r->text - r->n)
		longjmp(r->give_up, 1);
	if (bytes > 0)
		memcpy(r->text + r->n, piece, bytes);
	r->n += bytes;
}

typedef int demangle_fn(const char *mangled, int options, piece_fn *callback, void *data);

static bool read_name(struct readable *r, const char *name, demangle_fn *demangle)
{
	return setjmp(r->give_up) == 0 && demangle(name, WITH_PARAMETERS | WITH_TYPES, add_piece, r) != 0 && r->n > 0;
}

static char *readable_by(const char *name, demangle_fn *demangle)
{
	struct readable r;

	r.n = 0;
	return read_name(&r, name, demangle) ? strndup(r.text, r.n) : NULL;
}

static char *readable_rust(const char *name)
{
	return readable_by(name, rust_demangle_callback);
}

static char *readable_cxx(const char *name)
{
	return readable_by(name, cplus_demangle_v3_callback);
}
#else
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

static char *readable_rust(const char *name)
{
	(void)name;
	return NULL;
}

static char *readable_cxx(const char *name)
{
	int status;

	return runtime() == NULL ? NULL : runtime()(name, NULL, NULL, &status);
}
#endif

char *mew_demangle(const char *name, bool keep_clone)
{
	size_t n = strcspn(name, "@");
	char *copy = strndup(name, n > 0 ? n : strlen(name)), *readable;

	if (copy == NULL || !mew_is_mangled(copy) || strlen(copy) > LONGEST)
		return copy;
	/* Rust's older names look like C++, and have dots inside */
	readable = readable_rust(copy);
	if (readable == NULL && !keep_clone)
		copy[strcspn(copy, ".")] = '\0';
	if (readable == NULL)
		readable = readable_cxx(copy);
	if (readable == NULL)
		return copy;
	free(copy);
	return readable;
}
